//! Routes nobody configured: a target by its name, or `provider/model`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use backstay_decide::breaker::Rules;

use crate::policy::{
    AfterRelease, GuardPolicy, Holding, Limits, OnDisconnect, OnSemantic, Pattern, Pinning, Policy,
    ReaskPolicy, RefusalPolicy, Route, RouteMode, Structured, Target, Timeouts, Upstream,
};

/// The official SDKs' own limit; a direct route must not be stricter than calling the provider.
const DEADLINE: Duration = Duration::from_mins(10);

/// The name of such a route; no configured one has it.
pub(crate) const DIRECT: &str = "direct";

/// Most names whose route is kept. Callers make them up, so their number must be bounded; what is over
/// it is made anew for each call.
const MAX_KEPT: usize = 256;

/// The direct routes of one policy, by their names, each made when it is first asked for: so calls by
/// one name have one target, as they do where it is configured.
#[derive(Debug, Default)]
pub(crate) struct Directs(ArcSwap<HashMap<String, Arc<Route>>>);

impl Directs {
    /// The route to the one target that `name` means under `policy`, if any.
    pub(crate) fn of(&self, policy: &Policy, name: &str) -> Option<Arc<Route>> {
        let kept = self.0.load();
        if let Some(route) = kept.get(name) {
            return Some(Arc::clone(route));
        }
        let made = Arc::new(direct(policy, name)?);
        if kept.len() < MAX_KEPT {
            self.0.rcu(|kept| with(kept, name, &made));
        }
        Some(made)
    }
}

fn with(
    kept: &HashMap<String, Arc<Route>>,
    name: &str,
    made: &Arc<Route>,
) -> HashMap<String, Arc<Route>> {
    let mut kept = kept.clone();
    if kept.len() < MAX_KEPT {
        kept.entry(name.to_owned()).or_insert_with(|| Arc::clone(made));
    }
    kept
}

/// A route to the one target that `name` means, if any.
pub(crate) fn direct(policy: &Policy, name: &str) -> Option<Route> {
    let target = target(policy, name)?;
    Some(Route {
        name: DIRECT.into(),
        pattern: Pattern(name.to_owned()),
        mode: RouteMode::Normal,
        revision: target.id.clone(),
        tiers: vec![vec![target]],
        deadline: DEADLINE,
        timeouts: Timeouts::auto(DEADLINE),
        max_attempts: 3,
        reasks: 2,
        reask: ReaskPolicy::default(),
        max_output_tokens: None,
        max_output_tokens_ceiling: None,
        stop: Vec::new(),
        prompt_version: None,
        schema: None,
        rules: Vec::new(),
        upstream: Upstream::Auto,
        stream: None,
        holding: Holding::default(),
        guards: GuardPolicy::default(),
        on_refusal: RefusalPolicy::LastResort,
        on_disconnect: OnDisconnect::Cancel,
        after_release: AfterRelease::Error,
        mending: Arc::default(),
        on_semantic: OnSemantic::Reask,
        last_resort: None,
    })
}

/// The target that `name` means: a configured one, or `provider/model`.
pub(crate) fn target(policy: &Policy, name: &str) -> Option<Arc<Target>> {
    policy.targets.get(name).cloned().or_else(|| at_provider(policy, name))
}

fn at_provider(policy: &Policy, name: &str) -> Option<Arc<Target>> {
    let (provider, model) = name.split_once('/')?;
    let provider = policy.providers.get(provider).filter(|_| !model.is_empty())?;
    Some(Arc::new(Target {
        id: name.to_owned(),
        provider: Arc::clone(provider),
        model: Some(model.to_owned()),
        pinning: Pinning::Alias,
        retires: None,
        context_tokens: None,
        max_output_tokens: None,
        prices: None,
        structured: Structured::JsonSchema,
        subset: None,
        streams: true,
        prefill: None,
        max_request_bytes: 0,
        limits: Limits::usual(provider.dialect),
        breaker: Rules::DEFAULT,
    }))
}

#[cfg(test)]
mod tests {
    use backstay_wire::Dialect;

    use super::*;
    use crate::policy::Provider;

    #[test]
    fn calls_by_one_name_share_a_route_and_names_that_are_made_up_are_bounded() {
        let base = http::Uri::from_static("http://localhost/v1");
        let policy = Policy::of([Provider::at("p", Dialect::OpenaiChat, base, None)]);
        let directs = Directs::default();
        let of = |name: &str| directs.of(&policy, name);
        let first = of("p/m").unwrap();
        for number in 0..MAX_KEPT * 2 {
            assert_eq!(of(&format!("p/{number}")).unwrap().tiers[0][0].id, format!("p/{number}"));
        }
        assert!(Arc::ptr_eq(&first, &of("p/m").unwrap()));
        assert!(of("q/m").is_none() && of("m").is_none());
        assert_eq!(directs.0.load().len(), MAX_KEPT);
    }
}
