//! Stops calling a target that keeps failing, and lets one call through at a time to test it.
//!
//! ```text
//!             failures >= limit                rest is over
//!   Closed ────────────────────────▶ Open ─────────────────────▶ Probing
//!     ▲                               ▲                             │
//!     │                               ├──────── probe failed ───────┤
//!     │                               │    probe lease ran out:     │
//!     │                               │    the next call probes     │
//!     └───────────────────────────────┴──────── probe succeeded ────┘
//! ```
//!
//! Every admission carries the epoch it was made in. An outcome from another epoch changes nothing:
//! a call that began before the circuit opened can neither close nor reopen it. A probe is a lease,
//! so one that never reports blocks nobody for long.
//!
//! Throttling is not failure. A target that said when to come back rests until then by
//! [`Breaker::rest_until`], whatever the circuit's state.

use std::time::Duration;

use crate::dice::Dice;
use crate::time::Moment;

/// What one outcome says about whether the target is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It answered.
    Success,
    /// It did not, and it was its own doing.
    Failure,
    /// Neither: throttled, refused, cancelled, or the caller's own mistake.
    Neutral,
}

/// When to open, and for how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Failures in a row that open the circuit. 0 counts as 1.
    pub failures: u32,
    /// The shortest rest, before its jitter of a fifth either way.
    pub shortest_rest: Duration,
    /// The longest rest, before its jitter of a fifth either way.
    pub longest_rest: Duration,
    /// How long a probe may take to report. Set it to the attempt's `total` and some grace.
    pub probe_lease: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // 5: one in ten calls failing by chance gives five in a row once in 100,000.
            failures: 5,
            shortest_rest: Duration::from_secs(30),
            longest_rest: Duration::from_mins(5),
            probe_lease: Duration::from_mins(1),
        }
    }
}

/// Leave to make one call. Give it back through [`Breaker::note`] or [`Breaker::release`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Pass {
    epoch: u64,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Ordinary,
    Probe,
}

impl Pass {
    /// Whether this call tests a target that was resting.
    pub fn is_probe(self) -> bool {
        self.kind == Kind::Probe
    }
}

/// Where the circuit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Calls go through.
    Closed {
        /// Failures in a row so far.
        failures: u32,
    },
    /// No call goes through before `until`; after it, one does.
    Open {
        /// The end of the rest; it may be past.
        until: Moment,
    },
    /// One call is out to test the target.
    Probing,
}

/// A change of the circuit, for the log and the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transition {
    /// Too many failures in a row.
    Opened {
        /// The end of the rest.
        until: Moment,
    },
    /// A probe failed.
    Reopened {
        /// The end of the next rest.
        until: Moment,
    },
    /// A probe succeeded.
    Closed,
}

/// The health of one target, as far as its last calls show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    phase: Phase,
    /// Counts changes of phase.
    epoch: u64,
    /// The first opening since the circuit was last closed.
    first_opened: Moment,
    /// Until when the target asked to be left alone.
    rest: Moment,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Closed { failures: u32 },
    Open { until: Moment },
    Probing { began: Moment, lease: Moment },
}

impl Default for Breaker {
    fn default() -> Self {
        Self::new()
    }
}

impl Breaker {
    /// A closed circuit without history.
    pub const fn new() -> Self {
        Self {
            phase: Phase::Closed { failures: 0 },
            epoch: 0,
            first_opened: Moment::ORIGIN,
            rest: Moment::ORIGIN,
        }
    }

    /// Leave to call at `now`, or `None` while the target rests or is being tested.
    pub fn admit(&mut self, now: Moment, limits: &Limits) -> Option<Pass> {
        if self.rests_until(now).is_some() {
            return None;
        }
        match self.phase {
            Phase::Closed { .. } => Some(Pass { epoch: self.epoch, kind: Kind::Ordinary }),
            Phase::Open { .. } | Phase::Probing { .. } => Some(self.probe(now, limits)),
        }
    }

    /// Leave to call at `now` whatever the circuit says: where every target rests, one call is let
    /// through rather than none. Counts as a probe unless the circuit is closed.
    pub fn force(&mut self, now: Moment, limits: &Limits) -> Pass {
        match self.phase {
            Phase::Closed { .. } => Pass { epoch: self.epoch, kind: Kind::Ordinary },
            // A second probe beside the first would void it; both report in the same epoch.
            Phase::Probing { lease, .. } if now < lease => {
                Pass { epoch: self.epoch, kind: Kind::Probe }
            }
            Phase::Open { .. } | Phase::Probing { .. } => self.probe(now, limits),
        }
    }

    fn probe(&mut self, now: Moment, limits: &Limits) -> Pass {
        self.epoch += 1;
        self.phase = Phase::Probing { began: now, lease: now.plus(limits.probe_lease) };
        Pass { epoch: self.epoch, kind: Kind::Probe }
    }

    /// Takes note of how an admitted call ended. A report from another epoch is ignored.
    ///
    /// [`Verdict::Neutral`] changes no count; a neutral probe lets the next call probe.
    #[expect(
        clippy::too_many_arguments,
        reason = "state, event, now, rule, dice: the shape of every decision"
    )]
    pub fn note(
        &mut self,
        pass: Pass,
        verdict: Verdict,
        now: Moment,
        limits: &Limits,
        dice: &mut dyn Dice,
    ) -> Option<Transition> {
        if pass.epoch != self.epoch {
            return None;
        }
        match (self.phase, verdict) {
            (Phase::Open { .. }, _) => None,
            (Phase::Closed { .. } | Phase::Probing { .. }, Verdict::Neutral) => {
                self.release(pass);
                None
            }
            (Phase::Closed { .. }, Verdict::Success) => {
                self.phase = Phase::Closed { failures: 0 };
                None
            }
            (Phase::Closed { failures }, Verdict::Failure) => {
                let failures = failures.saturating_add(1);
                if failures < limits.failures {
                    self.phase = Phase::Closed { failures };
                    return None;
                }
                self.first_opened = now;
                Some(Transition::Opened { until: self.open(now, limits, dice) })
            }
            (Phase::Probing { .. }, Verdict::Success) => {
                self.epoch += 1;
                self.phase = Phase::Closed { failures: 0 };
                Some(Transition::Closed)
            }
            (Phase::Probing { .. }, Verdict::Failure) => {
                Some(Transition::Reopened { until: self.open(now, limits, dice) })
            }
        }
    }

    fn open(&mut self, now: Moment, limits: &Limits, dice: &mut dyn Dice) -> Moment {
        self.epoch += 1;
        let until = now.plus(cool_off(now.since(self.first_opened), limits, dice));
        self.phase = Phase::Open { until };
        until
    }

    /// Gives a pass back without a verdict: the call was dropped or cancelled.
    pub fn release(&mut self, pass: Pass) {
        match self.phase {
            Phase::Probing { began, .. } if pass.epoch == self.epoch => {
                self.phase = Phase::Open { until: began };
            }
            Phase::Closed { .. } | Phase::Open { .. } | Phase::Probing { .. } => {}
        }
    }

    /// Leaves the target alone until `until`, as it asked: a Retry-After, or a quota's reset. Never
    /// shortens a rest that was asked for before.
    pub fn rest_until(&mut self, until: Moment) {
        self.rest = self.rest.max(until);
    }

    /// Where the circuit stands. A probe whose lease ran out counts as none.
    pub fn state(&self, now: Moment) -> State {
        match self.phase {
            Phase::Closed { failures } => State::Closed { failures },
            Phase::Open { until } => State::Open { until },
            Phase::Probing { lease, .. } if now >= lease => State::Open { until: lease },
            Phase::Probing { .. } => State::Probing,
        }
    }

    /// The earliest moment a call may go through; `None` if that is now.
    pub fn rests_until(&self, now: Moment) -> Option<Moment> {
        let circuit = match self.phase {
            Phase::Closed { .. } => Moment::ORIGIN,
            Phase::Open { until } => until,
            Phase::Probing { lease, .. } => lease,
        };
        Some(circuit.max(self.rest)).filter(|until| *until > now)
    }
}

/// Half the time since the first opening, within the limits, a fifth more or less by the dice: short
/// for a hiccup, long for an outage, and not the same in every replica.
fn cool_off(since_first: Duration, limits: &Limits, dice: &mut dyn Dice) -> Duration {
    let longest = limits.longest_rest.max(limits.shortest_rest);
    let rest = (since_first / 2).clamp(limits.shortest_rest, longest);
    (rest / 5).saturating_mul(4).saturating_add(dice.below(rest / 5 * 2))
}

#[cfg(test)]
mod tests;
