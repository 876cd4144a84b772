//! What an attempt holds of its target. Dropping it gives everything back, whatever happened.

use std::sync::Arc;

use backstay_decide::Moment;
use backstay_decide::breaker::{self, KeyRest, Turn};
use backstay_decide::pacing::{Dimension, Seen, Slowed};
use backstay_wire::amend::Objection;

use super::ending::{Brought, Ending};
use super::health::TargetHealth;
use super::speed::Going;
use super::standing::Parts;
use crate::policy::Target;

/// The passes of a target's breakers and a place among its calls.
#[derive(Debug)]
pub struct Held {
    health: Arc<TargetHealth>,
    parts: Option<Parts>,
}

impl Held {
    pub(super) fn new(health: Arc<TargetHealth>, parts: Parts) -> Self {
        Self { health, parts: Some(parts) }
    }

    /// Which of the provider's keys to use.
    pub fn key(&self) -> usize {
        self.parts.as_ref().map_or(0, Parts::key)
    }

    /// The attempt goes out, or goes on in another way. What does not is not measured.
    pub fn goes(&mut self, going: Going) {
        if let Some(parts) = &mut self.parts {
            parts.goes(going);
        }
    }

    /// The attempt brought its first content, and goes on.
    pub fn started(&mut self, brought: Brought, now: Moment) -> Vec<Turn> {
        let started = |parts| self.health.started(parts, brought, now);
        self.parts.as_mut().map(started).unwrap_or_default()
    }

    /// Reports how the attempt ended and gives everything back.
    pub fn settle(mut self, ending: Ending, now: Moment) -> Vec<Turn> {
        let settle = |parts| self.health.settle(parts, ending, now);
        self.parts.take().map(settle).unwrap_or_default()
    }

    /// The target does not take something in a request.
    pub fn learn_objection(&self, objection: Objection) {
        self.health.learn_objection(objection);
    }

    /// Gives everything back: nothing was sent.
    pub fn unsent(mut self, now: Moment) {
        if let Some(parts) = self.parts.take() {
            self.health.unsent(parts, now);
        }
    }

    /// Obeys the limits that the reply stated.
    pub fn observe(&self, seen: &[Seen], now: Moment) {
        if let Some(parts) = self.parts.as_ref().filter(|_| !seen.is_empty()) {
            self.health.observe(parts, seen, now);
        }
    }

    /// The attempt met a 429. `about`: the limit that it named.
    pub fn throttled(&self, about: Option<Dimension>, now: Moment) -> Option<Slowed> {
        self.health.throttled(self.parts.as_ref()?, about, now)
    }

    /// Whether the rates had room for the attempt, as far as they were known.
    pub fn paced(&self) -> breaker::Paced {
        match &self.parts {
            Some(parts) if !parts.had_room() => breaker::Paced::WasFull,
            Some(_) | None => breaker::Paced::HadRoom,
        }
    }

    /// Leaves the target alone until `until`, as it asked.
    pub fn rest_until(&self, until: Moment) {
        self.health.rest_until(until);
    }

    /// Leaves the key that was used alone until `until`: one of `sender`, which may have others by now.
    pub fn rest_key(&self, sender: &Target, until: Moment, why: KeyRest) {
        self.health.rest_key(sender.key_digest(self.key()), until, why);
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
pub(super) mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use backstay_decide::aimd::Bounds;
    use backstay_decide::breaker::{Elsewhere, Mode, Paced, Report, Seen};
    use backstay_decide::pacing::{Dimension, Per, Rate, Unit};
    use backstay_decide::{Fault, Moment};
    use backstay_wire::Usage;
    use backstay_wire::tokens::Ratio;

    use super::super::ending::{Brought, Ending};
    use super::super::health::TargetHealth;
    use super::super::paces::Prompt;
    use super::super::speed::Timed;
    use super::super::wish::{Whose, Wish};
    use super::Held;
    use crate::clock::Clock;
    use crate::policy::Target;
    use crate::route::Health;

    const LEASE: Duration = Duration::from_secs(10);

    /// A prompt of so many tokens.
    #[derive(Debug)]
    struct Words(u64);

    impl Prompt for Words {
        fn effect(&self) -> Option<&'static str> {
            None
        }

        fn input(&self, _: u64, _: &Ratio) -> u64 {
            self.0
        }
    }

    fn wish(now: Moment) -> Wish<'static> {
        Wish {
            now,
            lease: LEASE,
            elsewhere: Elsewhere::Nobody,
            left: LEASE,
            min_attempt: Duration::from_secs(1),
            schema: None,
            bytes: 0,
            prompt: &Words(0),
            cap: None,
            whose: Whose::Own,
            arrival: None,
        }
    }

    /// Takes a place at once, whatever the call is.
    pub(in crate::route) fn take(health: &Arc<TargetHealth>, now: Moment) -> Option<Held> {
        health.take(&wish(now)).0.map(|taken| taken.held)
    }

    fn failed(fault: Fault) -> Ending {
        Ending {
            report: Report::of(Seen { fault: Some(fault), ..Seen::default() }),
            brought: Brought::Fault(fault),
            usage: Usage::default(),
            timed: Timed::default(),
            leaves: None,
        }
    }

    /// A target with so many places.
    pub(in crate::route) fn target(places: u32) -> Target {
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
        let route = crate::route::direct::direct(&policy, "p/m").unwrap();
        let mut target = (*route.tiers[0][0]).clone();
        target.limits.places = Bounds { ceiling: places, ..Bounds::default() };
        target
    }

    #[test]
    fn a_dropped_guard_gives_its_place_back_and_says_nothing_of_health() {
        let target = Arc::new(target(1));
        let health = Health::default().of(&target, "m", &Clock::start());
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
        let target = Arc::new(target(1));
        let health = Health::default().of(&target, "m", &Clock::start());
        let now = Moment::ORIGIN.plus(Duration::from_secs(1));
        let fail = |_| take(&health, now).unwrap().settle(failed(Fault::ServerError), now);
        let changes: Vec<_> = (0..5).flat_map(fail).collect();
        assert_eq!(changes.len(), 1);
        assert_eq!(health.shut("availability", now), 1);
        assert!(take(&health, now).is_none());
        assert_eq!(health.snapshot("m", now).in_flight, 0);
        assert!(health.force(&wish(now)).0.is_some());
    }

    #[test]
    fn an_overloaded_target_gets_fewer_calls_and_a_body_too_many_waits() {
        let mut target = target(10);
        target.limits.places.bytes = 1000;
        target.breaker = target.breaker.in_mode(Mode::ForcedClosed);
        let target = Arc::new(target);
        let health = Health::default().of(&target, "m", &Clock::start());
        let now = Moment::ORIGIN;
        let held: Vec<Held> = (0..10).map(|_| take(&health, now).unwrap()).collect();
        for held in held {
            held.settle(failed(Fault::Overloaded), now);
        }
        assert_eq!(health.snapshot("m", now).places, Some(8), "one strain, not ten");
        let large = Wish { bytes: 600, ..wish(now) };
        let first = health.take(&large).0;
        assert!(first.is_some() && health.take(&large).0.is_none());
        let full = health.stand(&large).full.unwrap();
        assert_eq!(full.name(), "full_bytes");
    }

    #[test]
    fn a_429_that_the_pacing_expected_is_no_strain() {
        let mut target = target(10);
        let dimension = Dimension { unit: Unit::Requests, per: Per::Minute };
        target.limits.rates = vec![Rate { dimension, limit: 1 }];
        let health = Health::default().of(&Arc::new(target), "m", &Clock::start());
        let now = Moment::ORIGIN;
        let [in_room, expected] = [(); 2].map(|()| health.force(&wish(now)).0.unwrap().held);
        assert_eq!([in_room.paced(), expected.paced()], [Paced::HadRoom, Paced::WasFull]);
        let places = || health.snapshot("m", now).places;
        expected.settle(failed(Fault::RateLimited), now);
        assert_eq!(places(), Some(10));
        in_room.settle(failed(Fault::RateLimited), now);
        assert_eq!(places(), Some(8));
    }

    #[test]
    fn a_target_that_moved_begins_anew_and_one_with_more_places_goes_on() {
        let (all, clock) = (Health::default(), Clock::start());
        let (now, mut target) = (Moment::ORIGIN, target(1));
        let (one, mut two) = (Arc::new(target.clone()), target.clone());
        let before = all.of(&one, "m", &clock);
        two.limits.places.ceiling = 2;
        let two = Arc::new(two);
        let held = (take(&before, now), take(&all.of(&two, "m", &clock), now));
        assert!(held.0.is_some() && held.1.is_some(), "the same target, now with two places");
        let mut provider = (*target.provider).clone();
        provider.base_url = "http://127.0.0.1:2/v1".parse().unwrap();
        target.provider = Arc::new(provider);
        let moved = Arc::new(target);
        assert_eq!(all.of(&moved, "m", &clock).snapshot("m", now).in_flight, 0);
    }

    #[test]
    fn a_caller_s_word_and_a_target_s_name_never_meet() {
        let (all, clock) = (Health::default(), Clock::start());
        let named = target(0);
        let mut worded = target(0);
        (worded.id, worded.model) = ("p".into(), None);
        assert!(!Arc::ptr_eq(
            &all.of(&Arc::new(named), "m", &clock),
            &all.of(&Arc::new(worded), "m", &clock)
        ));
    }
    /// Takes, holds over a turn of the others, and gives back in one of three ways.
    #[cfg(shuttle)]
    fn in_turn(health: &Arc<TargetHealth>, now: Moment, way: usize, most: u32) {
        let Some(held) = take(health, now) else { return };
        assert!(health.snapshot("m", now).in_flight <= most);
        shuttle::thread::yield_now();
        let report = Report::of(Seen::default());
        let ending = Ending {
            report,
            brought: Brought::Nothing,
            usage: Usage::default(),
            timed: Timed::default(),
            leaves: None,
        };
        match way % 3 {
            0 => drop(held.settle(ending, now)),
            1 => held.unsent(now),
            _ => drop(held),
        }
    }

    /// Four threads at a target with two places; with `failures` before, at one that is being tested.
    #[cfg(shuttle)]
    fn shuttled(failures: u32, most: u32) {
        let health = Health::default().of(&Arc::new(target(2)), "m", &Clock::start());
        let fault = Fault::ServerError;
        let report = Report::of(Seen { fault: Some(fault), ..Seen::default() });
        let mut now = Moment::ORIGIN;
        for _ in 0..failures {
            let (brought, usage) = (Brought::Fault(fault), Usage::default());
            let ending = Ending { report, brought, usage, timed: Timed::default(), leaves: None };
            drop(take(&health, now).unwrap().settle(ending, now));
        }
        now = now.plus(Duration::from_mins(1));
        let threads = [0, 1, 2, 3].map(|thread| {
            let health = Arc::clone(&health);
            shuttle::thread::spawn(move || {
                for round in 0..2 {
                    in_turn(&health, now, thread + round, most);
                }
            })
        });
        for thread in threads {
            thread.join().unwrap();
        }
        assert_eq!(health.snapshot("m", now).in_flight, 0);
        assert!(take(&health, now).is_some(), "a pass or a place was lost");
    }

    #[cfg(shuttle)]
    #[test]
    fn shuttled_threads_lose_no_place() {
        crate::sync::tried(|| shuttled(0, 2));
    }

    #[cfg(shuttle)]
    #[test]
    fn shuttled_threads_lose_no_pass_of_a_target_being_tested() {
        crate::sync::tried(|| shuttled(5, 2));
    }
}
