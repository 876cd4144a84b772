//! What an attempt holds of its target. Dropping it gives everything back, whatever happened.

use std::sync::Arc;

use backstay_decide::Moment;
use backstay_decide::breaker::{KeyRest, Passes, Report, Rules, Turn};
use backstay_decide::lease::Lease;

use super::health::TargetHealth;

/// The passes of a target's breakers and a place among its calls.
#[derive(Debug)]
pub struct Held {
    health: Arc<TargetHealth>,
    parts: Option<(Passes, Lease)>,
}

impl Held {
    pub(super) fn new(health: Arc<TargetHealth>, passes: Passes, place: Lease) -> Self {
        Self { health, parts: Some((passes, place)) }
    }

    /// Which of the provider's keys to use.
    pub fn key(&self) -> usize {
        self.parts.as_ref().map_or(0, |(passes, _)| passes.key)
    }

    /// The attempt brought its first content.
    pub fn started(&self, now: Moment, rules: &Rules) -> Vec<Turn> {
        let started = |(passes, _): &(Passes, Lease)| self.health.started(passes, now, rules);
        self.parts.as_ref().map(started).unwrap_or_default()
    }

    /// Reports how the attempt ended and gives everything back.
    pub fn settle(mut self, report: Report, now: Moment, rules: &Rules) -> Vec<Turn> {
        let settle = |parts| self.health.settle(parts, report, now, rules);
        self.parts.take().map(settle).unwrap_or_default()
    }

    /// Leaves the target alone until `until`, as it asked.
    pub fn rest_until(&self, until: Moment) {
        self.health.rest_until(until);
    }

    /// Leaves the key that was used alone until `until`.
    pub fn rest_key(&self, until: Moment, why: KeyRest) {
        self.health.rest_key(self.key(), until, why);
    }
}

impl Drop for Held {
    /// Dropped without a report: the caller left, or a faster attempt won. Neutral.
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            self.health.release(parts);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use backstay_decide::breaker::{Ask, Elsewhere, Report, Rules, Seen, Suits};
    use backstay_decide::{Fault, Moment};

    use super::super::health::{TargetHealth, Wish};
    use super::Held;
    use crate::route::Health;

    const LEASE: Duration = Duration::from_secs(10);

    fn wish(now: Moment) -> Wish<'static> {
        let ask = Ask { now, lease: LEASE, elsewhere: Elsewhere::Nobody, suits: Suits::Test };
        Wish { ask, schema: None, rules: &Rules::DEFAULT }
    }

    fn take(health: &Arc<TargetHealth>, now: Moment) -> Option<Held> {
        health.take(&wish(now)).0
    }

    fn target(places: u32) -> crate::policy::Target {
        let policy = crate::policy::Policy::default();
        let provider = Arc::new(crate::policy::Provider {
            name: "p".into(),
            dialect: backstay_wire::Dialect::OpenaiChat,
            base_url: "http://127.0.0.1:1/v1".parse().unwrap(),
            credentials: crate::policy::CredentialSource::Nobody,
            headers: Vec::new(),
            cap_field: crate::policy::CapField::MaxTokens,
            subset: backstay_wire::lower::Subset::Whole,
            connect: LEASE,
        });
        let mut policy = policy;
        policy.providers.insert("p".into(), provider);
        let route = crate::route::direct(&policy, "p/m").unwrap();
        let mut target = (*route.tiers[0][0]).clone();
        target.max_concurrency = places;
        target
    }

    #[test]
    fn a_dropped_guard_gives_its_place_back_and_says_nothing_of_health() {
        let health = Health::default().of(&target(1), "m");
        let now = Moment::ORIGIN;
        let held = take(&health, now).unwrap();
        assert!(take(&health, now).is_none(), "the only place is taken");
        drop(held);
        let stand = health.stand(&wish(now));
        assert_eq!((stand.in_flight, stand.refused), (0, None));
        assert!(take(&health, now).is_some());
    }

    #[test]
    fn five_failures_in_a_row_let_it_rest_and_the_place_is_back_each_time() {
        let health = Health::default().of(&target(1), "m");
        let now = Moment::ORIGIN.plus(Duration::from_secs(1));
        let down = Seen { fault: Some(Fault::ServerError), ..Seen::default() };
        let changes: Vec<_> = (0..5)
            .flat_map(|_| {
                let held = take(&health, now).unwrap();
                held.settle(Report::of(down), now, &Rules::DEFAULT)
            })
            .collect();
        assert_eq!(changes.len(), 1);
        assert_eq!(health.shut("availability", now, &Rules::DEFAULT), 1);
        assert!(take(&health, now).is_none());
        assert_eq!(health.stand(&wish(now)).in_flight, 0);
        assert!(health.force(&wish(now)).0.is_some());
    }

    #[test]
    fn a_target_that_moved_begins_anew_and_one_with_more_places_goes_on() {
        let all = Health::default();
        let (now, mut target) = (Moment::ORIGIN, target(1));
        let before = all.of(&target, "m");
        target.max_concurrency = 2;
        let held = (take(&before, now), take(&all.of(&target, "m"), now));
        assert!(held.0.is_some() && held.1.is_some(), "the same target, now with two places");
        let mut provider = (*target.provider).clone();
        provider.base_url = "http://127.0.0.1:2/v1".parse().unwrap();
        target.provider = Arc::new(provider);
        assert_eq!(all.of(&target, "m").stand(&wish(now)).in_flight, 0);
    }

    #[test]
    fn a_caller_s_word_and_a_target_s_name_never_meet() {
        let all = Health::default();
        let named = target(0);
        let mut worded = target(0);
        (worded.id, worded.model) = ("p".into(), None);
        assert!(!Arc::ptr_eq(&all.of(&named, "m"), &all.of(&worded, "m")));
    }
}
