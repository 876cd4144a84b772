//! How long an open circuit rests.

use std::time::Duration;

use super::{Limits, Rest};
use crate::dice::Dice;

/// Half the time since the first opening, within the limits, more or less by the dice: short for a
/// hiccup, long for an outage, and not the same in every replica.
pub(super) fn cool_off(since_first: Duration, limits: &Limits, dice: &mut dyn Dice) -> Rest {
    let longest = limits.longest_rest.max(limits.shortest_rest);
    let base = (since_first / 2).clamp(limits.shortest_rest, longest);
    let jitter = if limits.jitter.is_nan() { 0.0 } else { limits.jitter.clamp(0.0, 1.0) };
    let spread = Duration::try_from_secs_f64(base.as_secs_f64() * jitter).unwrap_or(base).min(base);
    let thrown = base.saturating_sub(spread).saturating_add(dice.below(spread.saturating_mul(2)));
    Rest { since_first, base, thrown, asked: None }
}
