//! Whether what a breaker has seen is too much.

use super::wilson::lower_bound;
use super::{Breaker, Limits, Probation, Tally, Why};
use crate::time::Moment;

/// What opens a circuit that is not open.
pub(super) struct Opens {
    pub failures: u32,
    pub min_calls: u32,
    pub rate: f64,
}

impl Breaker {
    /// Whether what was seen is too much.
    pub(super) fn judge(&self, now: Moment, limits: &Limits) -> Option<Why> {
        let Opens { failures, rate, .. } = self.opens(now, limits);
        if failures > 0 && self.row >= failures {
            return Some(Why::Row { failures: self.row });
        }
        let (seen, bound) = self.judged(now, limits)?;
        let why = Why::Rate { seen, bound, z: limits.z, limit: rate };
        (bound > rate).then_some(why)
    }

    /// What opens it now: less on probation.
    pub(super) fn opens(&self, now: Moment, limits: &Limits) -> Opens {
        if self.is_whole(now, limits) {
            let Limits { failures, min_calls, rate, .. } = *limits;
            return Opens { failures, min_calls, rate };
        }
        let Probation { failures, min_calls, rate, .. } = limits.probation;
        Opens { failures, min_calls, rate }
    }

    /// What its rate is judged by, and the rate that this is surely over. `None`: too few calls.
    pub(super) fn judged(&self, now: Moment, limits: &Limits) -> Option<(Tally, f64)> {
        let Opens { min_calls, .. } = self.opens(now, limits);
        let seen = self.window.tally(now, limits.window, limits.stretch, min_calls)?;
        Some((seen, lower_bound(seen.failures, seen.calls, limits.z)))
    }
}
