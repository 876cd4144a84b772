//! Slower after a 429, and back again: CUBIC, as a factor on a rate.
//!
//! A cut takes the rate to 70 %. It comes back fast at first, slowly near the height where the 429
//! came, and once past that faster and faster: the provider's limit may have risen. After resilience.md
//! section 4 (CUBIC, beta 0.7), in a form that knows no unit: the height is reached again after a
//! fixed time, whether requests or tokens are counted.

use std::time::Duration;

use super::rate::Unit;
use crate::time::Moment;

/// Thousandths: the full rate.
pub(super) const FULL: u32 = 1000;

/// A cut leaves this part, in thousandths (CUBIC's beta).
const KEPT: u32 = 700;

/// No cut goes below this, in thousandths: a target that is never asked is never seen to recover.
const LEAST: u32 = 50;

/// Until the rate is back at the height of the cut.
const BACK: Duration = Duration::from_mins(1);

/// The same above a million tokens a minute, where OpenAI refuses growth of over 50 % in 15 minutes.
const BACK_OF_LARGE: Duration = Duration::from_mins(15);

/// Where [`BACK_OF_LARGE`] begins.
pub(super) const LARGE: u64 = 1_000_000;

/// Without a reservation to go by, a second cut within this time is the same trouble.
const SAME: Duration = Duration::from_secs(1);

/// The last cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    at: Moment,
    /// The newest reservation at that time: older ones cannot cause another.
    newest: u64,
    /// The factor before it.
    height: u32,
}

/// How much slower a rate is than it should be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slow(Option<Cut>);

/// How long the way back is.
pub(super) const fn back(unit: Unit, limit: u64) -> Duration {
    match unit {
        Unit::Input | Unit::Output | Unit::Total if limit > LARGE => BACK_OF_LARGE,
        Unit::Requests | Unit::Input | Unit::Output | Unit::Total => BACK,
    }
}

impl Slow {
    /// The factor at `now` in thousandths, from [`LEAST`] to `ceiling`.
    pub(super) fn factor(self, back: Duration, ceiling: u32, now: Moment) -> u32 {
        let Some(Cut { at, height, .. }) = self.0 else { return ceiling.min(FULL) };
        let millis = |time: Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
        let (long, back) = (millis(now.since(at)), millis(back).max(1));
        // In thousandths of the way back: below zero before its end.
        let far = ((long - back).saturating_mul(1000) / back).min(100_000);
        let step = i64::from(depth(height)) * (far * far / 1000 * far / 1000) / 1000;
        let factor = (i64::from(height) + step).clamp(LEAST.into(), ceiling.into());
        u32::try_from(factor).unwrap_or(ceiling)
    }

    /// Cuts, unless the reservation that met the 429 is older than the last cut. Says whether it did.
    pub(super) fn cut(
        &mut self,
        factor: u32,
        reserved: Option<u64>,
        newest: u64,
        now: Moment,
    ) -> bool {
        let stale = self.0.is_some_and(|cut| match reserved {
            Some(order) => order <= cut.newest,
            None => now.since(cut.at) < SAME,
        });
        if !stale {
            self.0 = Some(Cut { at: now, newest, height: factor });
        }
        !stale
    }

    /// Forgets the cut once it is made good.
    pub(super) fn settle(&mut self, back: Duration, now: Moment) {
        if self.0.is_some() && self.factor(back, FULL, now) == FULL {
            self.0 = None;
        }
    }
}

/// What a cut at `height` takes away: at least 30, so that the way back from the bottom leads up.
fn depth(height: u32) -> u32 {
    (height - height * KEPT / FULL).max(30)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    fn factors(slow: Slow, moments: &[u64]) -> Vec<u32> {
        moments.iter().map(|s| slow.factor(BACK, FULL, at(*s))).collect()
    }

    #[test]
    fn a_cut_leaves_seventy_percent_and_a_minute_brings_it_back() {
        let mut slow = Slow::default();
        assert_eq!(slow.factor(BACK, FULL, at(0)), FULL);
        assert!(slow.cut(FULL, Some(4), 9, at(0)));
        assert_eq!(
            factors(slow, &[0, 15, 30, 45, 59, 60, 900]),
            [700, 874, 963, 996, 1000, 1000, 1000]
        );
        assert_eq!(slow.factor(BACK_OF_LARGE, FULL, at(60)), 757);
    }

    #[test]
    fn one_burst_of_429s_is_one_cut() {
        let mut slow = Slow::default();
        assert!(slow.cut(FULL, Some(4), 9, at(0)));
        assert!(!slow.cut(700, Some(9), 12, at(5)), "reserved before the cut");
        assert!(slow.cut(800, Some(10), 12, at(5)));
        assert_eq!(factors(slow, &[5]), [560]);
        assert!(!slow.cut(560, None, 12, at(5)));
        assert!(slow.cut(560, None, 12, at(6)));
    }

    #[test]
    fn a_second_cut_comes_back_to_its_own_height_first_and_then_beyond() {
        let mut slow = Slow::default();
        slow.cut(600, None, 0, at(0));
        assert_eq!(factors(slow, &[0, 60, 90, 120, 135, 180]), [420, 600, 622, 780, 951, 1000]);
        assert_eq!(slow.factor(BACK, 4000, at(180)), 2040, "a guessed limit may rise");
    }

    #[test]
    fn the_bottom_is_a_twentieth_and_has_a_way_up() {
        let mut slow = Slow::default();
        for second in 0..40 {
            let factor = slow.factor(BACK, FULL, at(second * 2));
            slow.cut(factor, None, 0, at(second * 2));
        }
        assert_eq!(slow.factor(BACK, FULL, at(78)), LEAST);
        assert!(slow.factor(BACK, FULL, at(78 + 180)) > 250);
        slow.settle(BACK, at(78 + 180));
        assert_ne!(slow, Slow::default());
        slow.settle(BACK, at(78 + 300));
        assert_eq!(slow, Slow::default());
    }

    #[test]
    fn the_way_back_is_long_above_a_million_tokens() {
        assert_eq!(back(Unit::Total, LARGE), BACK);
        assert_eq!(back(Unit::Input, LARGE + 1), BACK_OF_LARGE);
        assert_eq!(back(Unit::Requests, LARGE + 1), BACK);
    }

    proptest! {
        #[test]
        fn the_factor_only_rises_between_cuts_and_stays_in_range(
            height in LEAST..=FULL, a in 0_u64..4_000, b in 0_u64..4_000,
        ) {
            let mut slow = Slow::default();
            slow.cut(height, None, 0, at(0));
            let (early, late) = (slow.factor(BACK, FULL, at(a.min(b))), slow.factor(BACK, FULL, at(a.max(b))));
            prop_assert!((LEAST..=FULL).contains(&early) && early <= late && late <= FULL);
        }
    }
}
