//! How long to wait before the same target is tried again: exponential backoff with full jitter.
//!
//! Full jitter draws the wait evenly between zero and the bound, so callers that failed together do
//! not come back together. The server's own delay is a floor laid over it in [`crate::recover`].

use std::time::Duration;

use crate::dice::Dice;

/// The bound doubles with each failure: `min(cap, base * 2^failures)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    /// The bound after the first failure. Zero means no wait at all.
    pub base: Duration,
    /// The largest bound.
    pub cap: Duration,
}

impl Backoff {
    /// For failures that pass by themselves. S2's and the SDKs' choice is 0.5 to 1 s; a caller behind a
    /// gateway waits on a deadline, so the shorter one. The longest is the SDKs' own.
    pub const TRANSIENT: Self =
        Self { base: Duration::from_millis(500), cap: Duration::from_secs(8) };
    /// For a target that asked for less load. 1 s: AWS's base for throttling.
    pub const THROTTLED: Self = Self { base: Duration::from_secs(1), cap: Self::TRANSIENT.cap };

    /// The longest wait after `failures` earlier failures, counted from 0.
    pub fn bound(self, failures: u32) -> Duration {
        let factor = 1_u32.checked_shl(failures).unwrap_or(u32::MAX);
        self.base.saturating_mul(factor).min(self.cap)
    }

    /// A wait drawn evenly between zero and [`Backoff::bound`].
    ///
    /// `failures` is the number of failures before the one just seen: 0 for the first.
    pub fn wait(self, failures: u32, dice: &mut dyn Dice) -> Duration {
        dice.below(self.bound(failures))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dice::{Scripted, Seeded};

    const SEED_RULE: Backoff =
        Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(30) };

    #[test]
    fn scripted_dice_give_the_waits_of_the_seed() {
        let mut dice = Scripted(vec![0.23796, 0.54423, 0.36996]);
        let waits: Vec<String> =
            (0..3).map(|n| format!("{:.1}", SEED_RULE.wait(n, &mut dice).as_secs_f64())).collect();
        assert_eq!(waits, ["0.2", "1.1", "1.5"]);
    }

    #[test]
    fn the_bound_doubles_until_the_cap() {
        let bounds: Vec<u64> = (0..7).map(|n| SEED_RULE.bound(n).as_secs()).collect();
        assert_eq!(bounds, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(SEED_RULE.bound(u32::MAX), SEED_RULE.cap);
        assert_eq!(Backoff { base: Duration::MAX, cap: Duration::MAX }.bound(40), Duration::MAX);
        assert_eq!(Backoff { base: Duration::ZERO, cap: Duration::MAX }.bound(9), Duration::ZERO);
    }

    proptest! {
        #[test]
        fn a_wait_lies_between_zero_and_its_bound(
            base in 0_u64..100_000, cap in 0_u64..1_000_000, failures: u32, seed: u64,
        ) {
            let rule = Backoff { base: Duration::from_millis(base), cap: Duration::from_millis(cap) };
            let wait = rule.wait(failures, &mut Seeded::new(seed));
            prop_assert!(wait <= rule.bound(failures));
            prop_assert!(rule.bound(failures) <= rule.cap);
        }
    }

    /// Case B164: 300 ms doubled 64 times overflowed.
    #[test]
    fn no_attempt_is_too_many_for_the_bound() {
        let backoff = Backoff { base: Duration::from_millis(300), cap: Duration::from_secs(30) };
        let bounds = [1, 6, 63, 64, 65, 200, u32::MAX].map(|attempt| backoff.bound(attempt));
        assert!(bounds.is_sorted());
        assert_eq!(bounds.last(), Some(&Duration::from_secs(30)));
    }
}
