//! Routes nobody configured: a target by its name, or `provider/model`.

use std::sync::Arc;
use std::time::Duration;

use backstay_decide::breaker::Rules;

use crate::policy::{
    AfterRelease, GuardPolicy, Holding, Limits, OnDisconnect, OnSemantic, Pattern, Pinning, Policy,
    ReaskPolicy, RefusalPolicy, Route, RouteMode, Structured, Target, Timeouts, Upstream,
};

/// The official SDKs' own limit; a direct route must not be stricter than calling the provider.
const DEADLINE: Duration = Duration::from_mins(10);

/// The name of such a route; no configured one has it.
pub(crate) const DIRECT: &str = "direct";

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
