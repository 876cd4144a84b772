//! Which of the calls offered go through, when only a share may.

use std::time::Duration;

use super::Denial;
use crate::time::Moment;

/// Slack for shares that binary fractions cannot hold: twenty times 0.05 is one.
const SLACK: f64 = 1e-9;

/// Counts offers, and saves up for the next call let through.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pace {
    /// Part of a call saved up; one is a whole call. Never more, so a share is never caught up on.
    credit: f64,
    /// Calls offered since the last one let through.
    offers: u32,
    /// When the last one was let through.
    last: Moment,
}

impl Pace {
    /// A pace at which the next call goes through.
    pub(super) const fn begun(now: Moment) -> Self {
        Self { credit: 1.0, offers: 0, last: now }
    }

    /// A call was offered, of which `share` may go through.
    pub(super) fn offer(&mut self, share: f64) {
        self.credit = (self.credit + part(share)).min(1.0);
        self.offers = self.offers.saturating_add(1);
    }

    /// Whether the next call may go through: by share, or because none did for the time `every`.
    /// The latter takes two offers, so that it is never more than half of the calls.
    pub(super) fn is_due(&self, now: Moment, every: Duration) -> bool {
        let by_time = !every.is_zero() && now.since(self.last) >= every && self.offers >= 2;
        by_time || self.credit >= 1.0 - SLACK
    }

    /// A call went through.
    pub(super) fn take(&mut self, now: Moment) {
        self.credit = (self.credit - 1.0).max(0.0);
        self.offers = 0;
        self.last = now;
    }

    /// A call that went through counts for nothing: the next may go through instead.
    pub(super) fn give_back(&mut self) {
        self.credit = 1.0;
    }

    /// Why a call does not go through while it is not due, when `share` of those offered may.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "none is below 0")]
    pub(super) fn denial(&self, share: f64) -> Denial {
        let share = part(share);
        let calls = (1.0 - SLACK - self.credit) / share;
        Denial::Share {
            thousandths: (share * 1000.0).round() as u32,
            calls: calls.is_finite().then(|| calls.ceil() as u32),
        }
    }

    /// Whether none went through for `patience`. Zero: never.
    pub(super) fn idle_for(&self, patience: Duration, now: Moment) -> bool {
        super::outlasted(patience, self.last, now)
    }

    /// When a call may go through at the latest, if enough are offered.
    pub(super) fn due_at(&self, every: Duration) -> Moment {
        self.last.plus(every)
    }
}

/// A share as it counts: from 0 to 1.
const fn part(share: f64) -> f64 {
    if share.is_nan() { 0.0 } else { share.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(10);

    /// How many of `offers`, each `apart` from the next, go through.
    fn through(share: f64, every: Duration, offers: u32, apart: Duration) -> u32 {
        let mut pace = Pace::begun(Moment::ORIGIN);
        let mut through = 0;
        for n in 0..offers {
            let now = Moment::ORIGIN.plus(apart * n);
            pace.offer(share);
            if pace.is_due(now, every) {
                pace.take(now);
                through += 1;
            }
        }
        through
    }

    #[test]
    fn a_twentieth_goes_through_and_the_first_at_once() {
        let quick = Duration::from_millis(5);
        assert_eq!(through(0.05, EVERY, 1, quick), 1);
        assert_eq!(through(0.05, EVERY, 20, quick), 1);
        assert_eq!(through(0.05, EVERY, 21, quick), 2);
        assert_eq!(through(0.05, EVERY, 1001, quick), 51);
    }

    #[test]
    fn with_little_traffic_one_in_ten_seconds_goes_through_and_never_two_in_a_row() {
        assert_eq!(through(0.05, EVERY, 10, Duration::from_secs(5)), 5);
        assert_eq!(through(0.05, EVERY, 10, Duration::from_mins(1)), 5);
        assert_eq!(through(0.05, EVERY, 21, Duration::from_secs(2)), 5);
        assert_eq!(through(0.05, Duration::ZERO, 20, Duration::from_mins(1)), 1);
    }

    #[test]
    fn a_share_out_of_range_is_none_or_all() {
        let second = Duration::from_secs(1);
        assert_eq!(through(f64::NAN, Duration::ZERO, 50, second), 1);
        assert_eq!(through(-1.0, Duration::ZERO, 50, second), 1);
        assert_eq!(through(7.0, Duration::ZERO, 50, second), 50);
    }

    #[test]
    fn a_call_given_back_lets_the_next_one_through() {
        let mut pace = Pace::begun(Moment::ORIGIN);
        pace.take(Moment::ORIGIN);
        assert!(!pace.is_due(Moment::ORIGIN, EVERY));
        pace.give_back();
        assert!(pace.is_due(Moment::ORIGIN, EVERY));
        pace.take(Moment::ORIGIN);
        assert!(!pace.is_due(Moment::ORIGIN, EVERY));
    }

    #[test]
    fn a_call_that_is_not_due_is_told_how_many_come_before_the_next() {
        let mut pace = Pace::begun(Moment::ORIGIN);
        pace.take(Moment::ORIGIN);
        for left in (1..=20).rev() {
            assert_eq!(pace.denial(0.05), Denial::Share { thousandths: 50, calls: Some(left) });
            assert!(!pace.is_due(Moment::ORIGIN, EVERY), "{left} left");
            pace.offer(0.05);
        }
        assert!(pace.is_due(Moment::ORIGIN, EVERY));
        pace.take(Moment::ORIGIN);
        assert_eq!(pace.denial(0.0), Denial::Share { thousandths: 0, calls: None });
        assert_eq!(pace.denial(f64::NAN), Denial::Share { thousandths: 0, calls: None });
    }

    #[test]
    fn the_next_is_due_after_the_floor() {
        let mut pace = Pace::begun(Moment::ORIGIN);
        pace.take(Moment::at(Duration::from_secs(3)));
        assert_eq!(pace.due_at(EVERY), Moment::at(Duration::from_secs(13)));
    }
}
