//! Says when the share of bad replies has risen against its own past.
//!
//! Replies are counted in windows of a hundred. Each full window is held against those before it by a
//! test of two proportions; one that is surely worse is a shift, and becomes the past itself, so that
//! a lasting change is told once. A window that is no shift joins the past, of which the last ten
//! windows' worth count.
//!
//! ```text
//!   p' = (bad + 3/8) / (all + 3/4)                        Anscombe's correction, 1948
//!   z  = 2 (asin √p'now − asin √p'past) √(n m / (n + m))  n of the window, m of the past
//! ```
//!
//! The arcs make the variance the same for any rate, so that 0 of 1,000 is a past like any other.

/// Replies of a window.
const WINDOW: u32 = 100;

/// The fewest replies that make a past.
const LEAST_PAST: u32 = 300;

/// Replies of the past that count: older ones fade when there are more.
const MOST_PAST: u32 = 1_000;

/// How sure it must be: standard deviations. Under a constant rate one window in 30,000 is over 4;
/// the tests have what comes of it a day.
const Z: f64 = 4.0;

/// Replies, and the bad ones among them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// All that were judged.
    pub all: u32,
    /// Those that were bad.
    pub bad: u32,
}

impl Counts {
    /// The share of bad ones, 0 to 1. None judged: 0.
    pub fn share(self) -> f64 {
        f64::from(self.bad) / f64::from(self.all.max(1))
    }

    fn plus(self, other: Self) -> Self {
        Self { all: self.all.saturating_add(other.all), bad: self.bad.saturating_add(other.bad) }
    }

    /// The corrected share as an arc.
    fn arc(self) -> f64 {
        let share = (f64::from(self.bad) + 0.375) / (f64::from(self.all) + 0.75);
        share.sqrt().asin()
    }
}

/// A rise that is no chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shifted {
    /// What was usual.
    pub before: Counts,
    /// What it is now.
    pub now: Counts,
    /// How sure that is, in standard deviations.
    pub z: f64,
}

impl std::fmt::Display for Shifted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { before, now, z } = self;
        let percent = |counts: &Counts| counts.share() * 100.0;
        write!(f, "{} of the last {} replies were bad = {:.1} %", now.bad, now.all, percent(now))?;
        write!(f, ", {} of {} before = {:.1} %", before.bad, before.all, percent(before))?;
        write!(f, " (z {z:.1}, {Z} tells)")
    }
}

/// The share of bad replies of one kind, over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shift {
    past: Counts,
    window: Counts,
}

/// Whether a reply was as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It was.
    Good,
    /// It was not.
    Bad,
}

impl Shift {
    /// Counts a reply; at the end of a window says whether the share has risen.
    pub fn note(&mut self, judged: Judged) -> Option<Shifted> {
        self.window.all += 1;
        self.window.bad += u32::from(judged == Judged::Bad);
        if self.window.all < WINDOW {
            return None;
        }
        let now = std::mem::take(&mut self.window);
        let before = self.past;
        let z = against(now, before);
        if before.all >= LEAST_PAST && z > Z {
            self.past = now;
            return Some(Shifted { before, now, z });
        }
        self.past = faded(before.plus(now));
        None
    }
}

/// How much higher the share of `now` is than that of `past`, in standard deviations.
fn against(now: Counts, past: Counts) -> f64 {
    let (n, m) = (f64::from(now.all), f64::from(past.all));
    2.0 * (now.arc() - past.arc()) * (n * m / (n + m).max(1.0)).sqrt()
}

/// At most [`MOST_PAST`] replies at the same share, to the nearest bad one.
fn faded(past: Counts) -> Counts {
    if past.all <= MOST_PAST {
        return past;
    }
    let kept = (u64::from(past.bad) * u64::from(MOST_PAST) + u64::from(past.all) / 2)
        / u64::from(past.all);
    Counts { all: MOST_PAST, bad: u32::try_from(kept).unwrap_or(MOST_PAST) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dice::{Dice, Seeded};

    fn reply(dice: &mut Seeded, share: f64) -> Judged {
        if dice.unit() < share { Judged::Bad } else { Judged::Good }
    }

    /// Shifts told in `replies` replies of which `share` are bad.
    fn told(shift: &mut Shift, dice: &mut Seeded, share: f64, replies: u32) -> u32 {
        let each = (0..replies).filter_map(|_| shift.note(reply(dice, share)));
        u32::try_from(each.count()).unwrap()
    }

    /// One reply a second for 40 days: 3.5 million of each rate, seed 7.
    const DAYS: u32 = 40;

    #[test]
    fn under_a_constant_rate_false_alarms_are_fewer_than_one_in_ten_days() {
        for share in [0.0, 0.002, 0.01, 0.05, 0.2, 0.5] {
            let mut dice = Seeded::new(7);
            let alarms = told(&mut Shift::default(), &mut dice, share, DAYS * 86_400);
            let a_day = f64::from(alarms) / f64::from(DAYS);
            assert!(a_day <= 0.1, "seed 7: {a_day} false alarms a day at a rate of {share}");
        }
    }

    #[test]
    fn a_rate_that_rises_is_told_once_within_a_few_windows() {
        for (before, after, windows) in [(0.01, 0.2, 2), (0.05, 0.3, 2), (0.0, 0.1, 3)] {
            for seed in 1..=50 {
                let (mut dice, mut shift) = (Seeded::new(seed), Shift::default());
                assert_eq!(told(&mut shift, &mut dice, before, 1_000), 0, "seed {seed}");
                let rise = told(&mut shift, &mut dice, after, windows * WINDOW);
                assert_eq!(rise, 1, "seed {seed}: {before} to {after}");
                assert_eq!(told(&mut shift, &mut dice, after, 2_000), 0, "seed {seed}: told twice");
            }
        }
    }

    #[test]
    fn a_rise_is_told_at_the_last_reply_of_the_first_window_after_a_past_long_enough() {
        let mut shift = Shift::default();
        let told = |shift: &mut Shift, judged, replies: u32| {
            (0..replies).filter_map(|_| shift.note(judged)).count()
        };
        assert_eq!(told(&mut shift, Judged::Good, LEAST_PAST), 0);
        assert_eq!(told(&mut shift, Judged::Bad, WINDOW - 1), 0);
        assert_eq!(told(&mut shift, Judged::Bad, 1), 1);
        let mut short = Shift::default();
        assert_eq!(told(&mut short, Judged::Good, LEAST_PAST - WINDOW), 0);
        assert_eq!(told(&mut short, Judged::Bad, WINDOW), 0);
    }

    #[test]
    fn how_sure_a_rise_is_agrees_with_a_calculation_by_hand() {
        let now = Counts { all: 100, bad: 20 };
        let past = Counts { all: 1000, bad: 50 };
        assert!((against(now, past) - 4.579_433_035_768_933).abs() < 1e-9);
    }

    #[test]
    fn a_fall_and_a_short_past_are_not_told() {
        let (mut dice, mut shift) = (Seeded::new(3), Shift::default());
        assert_eq!(told(&mut shift, &mut dice, 0.5, 1_000), 0);
        assert_eq!(told(&mut shift, &mut dice, 0.0, 1_000), 0);
        let mut young = Shift::default();
        assert_eq!(told(&mut young, &mut dice, 0.0, 200), 0);
        assert_eq!(told(&mut young, &mut dice, 1.0, 100), 0, "two windows are no past");
    }

    #[test]
    fn the_past_keeps_its_share_when_it_fades() {
        assert_eq!(faded(Counts { all: 1_100, bad: 55 }), Counts { all: 1_000, bad: 50 });
        assert_eq!(faded(Counts { all: 1_100, bad: 1_100 }), Counts { all: 1_000, bad: 1_000 });
        let small = Counts { all: 1_000, bad: 3 };
        assert_eq!(faded(small), small);
    }

    #[test]
    fn a_shift_says_its_sum() {
        let shifted = Shifted {
            before: Counts { all: 1_000, bad: 12 },
            now: Counts { all: 100, bad: 23 },
            z: 8.25,
        };
        let words = "23 of the last 100 replies were bad = 23.0 %, 12 of 1000 before = 1.2 % (z 8.2, 4 tells)";
        assert_eq!(shifted.to_string(), words);
    }
}
