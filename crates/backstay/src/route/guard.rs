//! What an attempt holds of its target. Dropping it gives everything back, whatever happened.

use std::sync::Arc;
use std::time::Duration;

use backstay_decide::breaker::{Pass, Transition};
use backstay_decide::lease::Lease;
use backstay_decide::{Moment, Verdict};

use super::health::TargetHealth;

/// A breaker's pass and a place among a target's calls.
#[derive(Debug)]
pub struct Held {
    health: Arc<TargetHealth>,
    parts: Option<(Pass, Lease)>,
    lease: Duration,
}

impl Held {
    pub(super) fn new(
        health: Arc<TargetHealth>,
        pass: Pass,
        place: Lease,
        lease: Duration,
    ) -> Self {
        Self { health, parts: Some((pass, place)), lease }
    }

    /// Reports how the attempt ended and gives everything back.
    pub fn settle(mut self, verdict: Verdict, now: Moment) -> Option<Transition> {
        let parts = self.parts.take()?;
        self.health.settle(parts, verdict, now, self.lease)
    }

    /// Leaves the target alone until `until`, as it asked.
    pub fn rest_until(&self, until: Moment) {
        self.health.rest_until(until);
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

    use backstay_decide::{Moment, Verdict};

    use crate::route::Health;

    const LEASE: Duration = Duration::from_secs(10);

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
        let held = health.take(now, LEASE).unwrap();
        assert!(health.take(now, LEASE).is_none(), "the only place is taken");
        drop(held);
        let stand = health.stand(now);
        assert_eq!((stand.in_flight, stand.resting_until), (0, None));
        assert!(health.take(now, LEASE).is_some());
    }

    #[test]
    fn five_failures_in_a_row_let_it_rest_and_the_place_is_back_each_time() {
        let health = Health::default().of(&target(1), "m");
        let now = Moment::ORIGIN.plus(Duration::from_secs(1));
        for _ in 0..5 {
            health.take(now, LEASE).unwrap().settle(Verdict::Failure, now);
        }
        assert!(health.take(now, LEASE).is_none());
        assert_eq!(health.stand(now).in_flight, 0);
        assert!(health.force(now, LEASE).is_some());
    }

    #[test]
    fn a_target_that_moved_begins_anew_and_one_with_more_places_goes_on() {
        let all = Health::default();
        let (now, mut target) = (Moment::ORIGIN, target(1));
        let before = all.of(&target, "m");
        target.max_concurrency = 2;
        let held = (before.take(now, LEASE), all.of(&target, "m").take(now, LEASE));
        assert!(held.0.is_some() && held.1.is_some(), "the same target, now with two places");
        let mut provider = (*target.provider).clone();
        provider.base_url = "http://127.0.0.1:2/v1".parse().unwrap();
        target.provider = Arc::new(provider);
        assert_eq!(all.of(&target, "m").stand(now).in_flight, 0);
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
