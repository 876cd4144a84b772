//! What a breaker shows to an operator: its state and the numbers behind it, at one moment.

use super::{Breaker, Limits, Phase, State, Tally, Transition};
use crate::time::Moment;

/// A breaker at one moment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct View {
    /// Where it stands.
    pub state: State,
    /// Changes of the circuit so far.
    pub epoch: u64,
    /// Since when it stands there. The clock's origin: from the start.
    pub since: Moment,
    /// The last change, with its numbers. `None`: there was none.
    pub last: Option<Transition>,
    /// Hard failures in a row.
    pub row: u32,
    /// Tests in flight.
    pub tests: u32,
    /// What the window holds.
    pub seen: Tally,
    /// What its rate is judged by: the window, or the last calls where that holds too few. `None`:
    /// there are too few of either.
    pub judged: Option<Tally>,
    /// The rate that `judged` is surely over, 0 to 1. `None`: as there.
    pub bound: Option<f64>,
    /// The rate that opens it now, if it is surely exceeded, 0 to 1.
    pub allowed: f64,
}

impl Breaker {
    /// How it stands at `now`.
    pub fn view(&self, now: Moment, limits: &Limits) -> View {
        let (judged, bound) = self.judged(now, limits).unzip();
        View {
            state: self.state(now, limits),
            epoch: self.epoch.into(),
            since: self.since(now, limits),
            last: self.last,
            row: self.row,
            tests: self.in_flight(now),
            seen: self.tally(now, limits),
            judged,
            bound,
            allowed: self.opens(now, limits).rate,
        }
    }

    /// Since when it stands where it stands, what the passing of time did included.
    pub(super) fn since(&self, now: Moment, limits: &Limits) -> Moment {
        if self.phase_at(now, limits) == self.phase {
            return self.changed;
        }
        match self.phase {
            Phase::Closed => self.changed,
            Phase::Open { until } => until,
            Phase::HalfOpen { began, .. } => began.plus(limits.canary.patience),
            Phase::Probation { began } => began.plus(limits.probation.lasts),
        }
    }
}

impl State {
    /// Its name in metrics and answers.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Closed { .. } => "closed",
            Self::Probation { .. } => "probation",
            Self::Open { .. } => "open",
            Self::HalfOpen { .. } => "half_open",
        }
    }
}
