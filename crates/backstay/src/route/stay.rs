//! A call's stay at a target, over all its attempts there: what its budget of retries goes by.

use std::sync::Arc;

use backstay_decide::Moment;
use backstay_decide::extra::{Grant, Kind, Made, Refusal, Visit};

use super::health::TargetHealth;

/// A call's stay at a target. Dropping it says that the call left.
#[derive(Debug)]
pub(crate) struct Stay {
    health: Arc<TargetHealth>,
    parts: Option<StayParts>,
}

/// What a stay holds of its target.
#[derive(Debug)]
pub(super) struct StayParts {
    pub visit: Visit,
    /// Leave for one more attempt, and whether that was made.
    pub grant: Option<(Grant, Made)>,
}

impl Stay {
    pub(super) fn new(health: Arc<TargetHealth>, visit: Visit) -> Self {
        Self { health, parts: Some(StayParts { visit, grant: None }) }
    }

    /// Asks for a retry. One that was granted before and made is over.
    ///
    /// # Errors
    /// The target's budget has none.
    pub(crate) fn ask(&mut self, now: Moment) -> Result<(), Refusal> {
        let Some(parts) = &mut self.parts else { return Ok(()) };
        self.health.ask(Kind::Retry, parts, now)
    }

    /// An attempt goes out: the retry, if one was granted.
    pub(crate) fn sends(&mut self) {
        let grant = self.parts.as_mut().and_then(|parts| parts.grant.as_mut());
        if let Some((_, made)) = grant {
            *made = Made::Sent;
        }
    }

    /// What it holds, for somebody who gives it back with other things.
    pub(super) fn into_parts(mut self) -> Option<StayParts> {
        self.parts.take()
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            self.health.leave(parts, self.health.now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use backstay_decide::extra::{Arrival, Limits};
    use backstay_wire::Dialect;

    use super::*;
    use crate::clock::Clock;
    use crate::policy::{Policy, Provider, Target};
    use crate::route::Health;
    use crate::route::direct::direct;

    const THREADS: u64 = 8;
    const CALLS: u64 = 10_000;

    /// Each call earns a tenth of a retry, and any number may be in flight.
    const LIMITS: Limits = Limits {
        earned: 100,
        floor: Duration::ZERO,
        start: 0,
        cap: 1_000_000,
        at_once: 0,
        at_once_share: 1000,
    };

    fn health(clock: &Clock) -> Arc<TargetHealth> {
        let base = http::Uri::from_static("http://localhost/v1");
        let policy = Policy::of([Provider::at("p", Dialect::OpenaiChat, base, None)]);
        let mut target = Target::clone(&direct(&policy, "p/m").unwrap().tiers[0][0]);
        target.limits.retries = LIMITS;
        Health::default().of(&Arc::new(target), "m", clock)
    }

    /// Calls that each ask for a retry; two of three that get one make it. How many were made.
    fn calls(health: &Arc<TargetHealth>, clock: Clock, count: u64) -> u64 {
        let mut made = 0;
        for number in 0..count {
            let now = clock.now();
            let mut stay = health.arrive(Arrival::First, now);
            if stay.ask(now).is_ok() && number % 3 > 0 {
                stay.sends();
                made += 1;
            }
        }
        made
    }

    /// Case B163: what was read and written in two steps lost what others wrote between them.
    #[test]
    fn eight_threads_lose_no_update_of_a_budget() {
        let clock = Clock::start();
        let health = health(&clock);
        let balance = || health.snapshot("p/m", clock.now()).retries.balance.0;
        // While these two are there no retry is free.
        let mut there = [(), ()].map(|()| health.arrive(Arrival::First, clock.now()));
        let made: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..THREADS).map(|_| scope.spawn(|| calls(&health, clock, CALLS))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert!(made > 0);
        let earned = 100 * (THREADS * CALLS + 2);
        assert_eq!(balance(), earned - 1000 * made, "{made} made");
        (0..30).for_each(|_| drop(health.arrive(Arrival::First, clock.now())));
        // As many may be in flight as calls are there: none was forgotten, in either count.
        let granted = there.each_mut().map(|stay| stay.ask(clock.now()).is_ok());
        assert_eq!(granted, [true, true]);
        drop(there);
        let later = clock.now().plus(Duration::from_mins(1));
        let before = balance();
        let mut alone = health.arrive(Arrival::First, later);
        assert!(alone.ask(later).is_ok());
        assert_eq!(balance(), before + 100, "the retry of a lone call is free");
    }
    #[cfg(shuttle)]
    #[test]
    fn shuttled_threads_lose_no_update_of_a_budget() {
        crate::sync::tried(|| {
            let clock = Clock::start();
            let health = health(&clock);
            let _there = [(), ()].map(|()| health.arrive(Arrival::First, clock.now()));
            (0..18).for_each(|_| drop(health.arrive(Arrival::First, clock.now())));
            let threads = [(); 3].map(|()| {
                let health = Arc::clone(&health);
                shuttle::thread::spawn(move || calls(&health, clock, 3))
            });
            let made: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
            let balance = health.snapshot("p/m", clock.now()).retries.balance.0;
            assert_eq!(balance, 100 * (20 + 9) - 1000 * made, "{made} made");
        });
    }
}
