//! A limit a day: what was reserved in the last 24 hours, by the hour.
//!
//! A day's quota cannot be smoothed like a minute's: somebody who asks in the morning only may use
//! all of it there. Providers reset at a time of their own or roll; the sum over the last 24 to 25
//! hours keeps within both.

use std::time::Duration;

use crate::time::Moment;

const HOUR: u64 = 3600;

/// The current hour and the 24 before it.
const HOURS: usize = 25;

/// What the provider said is used beyond what we know of, and until when it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    units: u64,
    until: Moment,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Rolling {
    /// Units by hour; an hour's place is its number modulo [`HOURS`].
    hours: [u64; HOURS],
    /// The current hour, counted from the clock's origin. Never goes back.
    hour: u64,
    told: Option<Told>,
}

fn place(hour: u64) -> usize {
    // Below 25, so it fits.
    usize::try_from(hour % HOURS as u64).unwrap_or(0)
}

impl Rolling {
    pub(super) const fn new(now: Moment) -> Self {
        Self { hours: [0; HOURS], hour: now.since_origin().as_secs() / HOUR, told: None }
    }

    /// Forgets hours that are over a day old.
    pub(super) fn roll(&mut self, now: Moment) {
        let hour = (now.since_origin().as_secs() / HOUR).max(self.hour);
        let gone = (hour - self.hour).min(HOURS as u64);
        for step in 0..gone {
            self.hours[place(hour - step)] = 0;
        }
        self.hour = hour;
        if self.told.is_some_and(|told| told.until <= now) {
            self.told = None;
        }
    }

    /// Units that count against the limit.
    pub(super) fn used(&self) -> u64 {
        let own = self.hours.iter().fold(0, |sum: u64, hour| sum.saturating_add(*hour));
        own.saturating_add(self.told.map_or(0, |told| told.units))
    }

    /// How long until `cost` fits under `most`, if nothing else is reserved. `cost` over `most` is
    /// [`Duration::MAX`].
    pub(super) fn wait(&self, cost: u64, most: u64, now: Moment) -> Duration {
        let mut over = self.used().saturating_add(cost).saturating_sub(most);
        if over == 0 {
            return Duration::ZERO;
        }
        let oldest = (self.hour + 1).saturating_sub(HOURS as u64);
        let hours = (oldest..=self.hour).map(|hour| {
            let gone = Moment::at(Duration::from_secs((hour + HOURS as u64) * HOUR));
            (gone, self.hours[place(hour)])
        });
        let mut ends: Vec<(Moment, u64)> =
            hours.chain(self.told.map(|told| (told.until, told.units))).collect();
        ends.sort_unstable();
        for (when, units) in ends {
            over = over.saturating_sub(units);
            if over == 0 {
                return now.until(when);
            }
        }
        Duration::MAX
    }

    /// Reserves `cost` in the current hour and returns that hour.
    pub(super) fn reserve(&mut self, cost: u64) -> u64 {
        let sum = &mut self.hours[place(self.hour)];
        *sum = sum.saturating_add(cost);
        self.hour
    }

    /// Gives `unused` units back to the `hour` they were reserved in, if that is still remembered.
    pub(super) fn refund(&mut self, unused: u64, hour: u64) {
        if hour <= self.hour && self.hour - hour < HOURS as u64 {
            let sum = &mut self.hours[place(hour)];
            *sum = sum.saturating_sub(unused);
        }
    }

    /// Takes note that the provider has only `remaining` units of `most` left, until `reset` from
    /// now, or a day.
    pub(super) fn leave_room(
        &mut self,
        remaining: u64,
        most: u64,
        reset: Option<Duration>,
        now: Moment,
    ) {
        let unknown = most.saturating_sub(remaining).saturating_sub(self.used());
        if unknown == 0 {
            return;
        }
        let day = Duration::from_hours(24);
        let until = now.plus(reset.unwrap_or(day).min(day));
        let known = self.told.map_or(0, |told| told.units);
        self.told = Some(Told { units: known.saturating_add(unknown), until });
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn hour(n: u64) -> Moment {
        Moment::at(Duration::from_hours(n))
    }

    #[test]
    fn a_days_quota_may_be_used_at_once_and_comes_back_a_day_later() {
        let mut day = Rolling::new(hour(100));
        assert_eq!(day.wait(800, 800, hour(100)), Duration::ZERO);
        day.reserve(800);
        assert_eq!(day.wait(1, 800, hour(100)), Duration::from_hours(25));
        day.roll(hour(124));
        assert_eq!((day.used(), day.wait(1, 800, hour(124))), (800, Duration::from_hours(1)));
        day.roll(hour(125));
        assert_eq!((day.used(), day.wait(800, 800, hour(125))), (0, Duration::ZERO));
        assert_eq!(day.wait(801, 800, hour(125)), Duration::MAX);
    }

    #[test]
    fn only_as_many_hours_are_waited_for_as_are_needed() {
        let mut day = Rolling::new(hour(0));
        for (when, units) in [(0, 10), (3, 20), (7, 30)] {
            day.roll(hour(when));
            day.reserve(units);
        }
        let waits: Vec<u64> = [40, 50, 51, 70, 71, 100]
            .map(|cost| day.wait(cost, 100, hour(7)).as_secs() / HOUR)
            .into();
        assert_eq!(waits, [0, 18, 21, 21, 25, 25]);
    }

    #[test]
    fn a_refund_goes_to_the_hour_it_came_from_or_nowhere() {
        let mut day = Rolling::new(hour(0));
        let first = day.reserve(10);
        day.roll(hour(5));
        let second = day.reserve(7);
        day.refund(4, first);
        assert_eq!(day.used(), 13);
        day.roll(hour(25));
        let third = day.reserve(3);
        day.refund(6, first);
        assert_eq!(day.used(), 10, "the first hour is forgotten, and its refund with it");
        day.refund(7, second);
        day.refund(3, third);
        day.refund(7, 9000);
        assert_eq!(day.used(), 0);
    }

    #[test]
    fn what_the_provider_counts_beyond_ours_holds_until_its_reset() {
        let mut day = Rolling::new(hour(0));
        day.reserve(100);
        day.leave_room(300, 1000, Some(Duration::from_hours(2)), hour(0));
        assert_eq!(day.used(), 700);
        day.leave_room(500, 1000, None, hour(0));
        assert_eq!(day.used(), 700, "more room than we thought changes nothing");
        assert_eq!(day.wait(301, 1000, hour(0)), Duration::from_hours(2));
        day.roll(hour(2));
        assert_eq!(day.used(), 100);
        day.leave_room(0, 1000, None, hour(2));
        day.roll(hour(25));
        assert_eq!(day.used(), 900);
        day.roll(hour(26));
        assert_eq!(day.used(), 0);
    }

    proptest! {
        /// Invariant 8 for a day: no 24 hours hold more than the limit.
        #[test]
        fn no_day_holds_more_than_its_limit(
            most in 1_u64..500, asks in prop::collection::vec((0_u64..20_000, 1_u64..200), 1..80),
        ) {
            let mut day = Rolling::new(hour(0));
            let (mut now, mut given) = (0, Vec::new());
            for (sleep, cost) in asks {
                now += sleep;
                let moment = Moment::at(Duration::from_secs(now));
                day.roll(moment);
                let wait = day.wait(cost, most, moment);
                if wait.is_zero() {
                    day.reserve(cost);
                    given.push((now, cost));
                } else if wait < Duration::MAX {
                    let mut then = day.clone();
                    then.roll(moment.plus(wait));
                    prop_assert!(then.wait(cost, most, moment.plus(wait)).is_zero());
                }
            }
            for &(from, _) in &given {
                let sum: u64 = given.iter().filter(|(when, _)| (from..from + 86_400).contains(when)).map(|(_, c)| c).sum();
                prop_assert!(sum <= most);
            }
        }
    }
}
