//! Tests of the breaker: each edge of its picture, then random histories against a plain account.

mod forced;
mod history;
mod opening;
mod probation;
mod resting;
mod round;
mod testing;

use proptest::prelude::*;

use super::*;
use crate::dice::{Scripted, Seeded};

const MINUTE: Duration = Duration::from_mins(1);
const LEASE: Duration = MINUTE;

const fn at(seconds: u64) -> Moment {
    Moment::at(Duration::from_secs(seconds))
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn limits() -> Limits {
    Limits { failures: 3, ..Limits::default() }
}

/// The middle of the dice: a rest without jitter.
fn even() -> Scripted {
    Scripted(Vec::new())
}

const fn ask(now: Moment) -> Ask {
    Ask { now, lease: LEASE, elsewhere: Elsewhere::Live, suits: Suits::Test }
}

/// A call that is no test.
const fn unfit() -> Suits {
    Suits::HealthyOnly(Unfit::Effect { field: "store" })
}

/// Why a call is out of the share, so many before the next that is in it.
const fn share(thousandths: u32, calls: u32) -> Denial {
    Denial::Share { thousandths, calls: Some(calls) }
}

const fn alone(now: Moment) -> Ask {
    Ask { elsewhere: Elsewhere::Nobody, ..ask(now) }
}

/// A breaker under one set of limits, with even dice.
#[derive(Clone, Debug, PartialEq)]
struct Bench {
    breaker: Breaker,
    limits: Limits,
}

impl Bench {
    fn new(limits: Limits) -> Self {
        Self { breaker: Breaker::new(), limits }
    }

    /// Opened by three failures at `now`.
    fn opened(now: Moment) -> Self {
        let mut bench = Self::new(limits());
        for _ in 0..3 {
            bench.call(now, Verdict::Failure);
        }
        assert!(matches!(bench.state(now), State::Open { .. }));
        bench
    }

    /// Closed again by five tests at `now`, which is after its rest: on probation.
    fn on_probation(now: Moment) -> Self {
        let mut bench = Self::opened(at(0));
        bench.close(now);
        assert!(matches!(bench.state(now), State::Probation { .. }));
        bench
    }

    fn close(&mut self, now: Moment) -> Transition {
        for _ in 0..4 {
            let pass = self.admit(alone(now)).unwrap();
            assert_eq!(self.note(pass, Verdict::Success, now), None);
        }
        let pass = self.admit(alone(now)).unwrap();
        self.note(pass, Verdict::Success, now).unwrap()
    }

    fn state(&self, now: Moment) -> State {
        self.breaker.state(now, &self.limits)
    }

    fn admit(&mut self, ask: Ask) -> Result<Pass, Denied> {
        let looked = self.breaker.look(&ask, &self.limits);
        let pass = self.breaker.admit(&ask, &self.limits).pass;
        assert_eq!(
            looked.err(),
            pass.as_ref().err().copied(),
            "a look says what an admission does"
        );
        pass
    }

    /// As [`Self::admit`], and counts as offered.
    fn offer(&mut self, ask: Ask) -> Result<Pass, Denied> {
        self.breaker.offer(ask.now, &self.limits);
        self.admit(ask)
    }

    fn note(&mut self, pass: Pass, verdict: Verdict, now: Moment) -> Option<Transition> {
        self.breaker.note(pass, verdict, now, &self.limits, &mut even())
    }

    /// A call that begins and ends at `now`.
    fn call(&mut self, now: Moment, verdict: Verdict) -> Option<Transition> {
        let pass = self.admit(alone(now)).unwrap();
        self.note(pass, verdict, now)
    }

    fn denied(&mut self, ask: Ask) -> (Option<Moment>, Denial) {
        let denied = self.admit(ask).unwrap_err();
        (denied.until, denied.why)
    }
}

/// The same pass once more: what a caller cannot do, and a broken one might.
fn copy(pass: &Pass) -> Pass {
    Pass { breaker: pass.breaker, epoch: pass.epoch, kind: pass.kind }
}
