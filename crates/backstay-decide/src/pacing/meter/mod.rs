//! One rate a minute as a leaky bucket: GCRA, with refunds that cannot give too much back.
//!
//! The meter fills by what is reserved and drains at the rate. What fits under the burst may go at
//! once. All sums are whole numbers of token-nanoseconds, so nothing is rounded, and a new rate keeps
//! the debt as it is.
//!
//! **Large reservations.** One over the burst may go once the meter has been empty for as long as
//! the excess takes to drain: no window of a minute ever holds more than `rate + burst`, and no
//! request waits for ever. The time it was empty is leave, not savings: it is used up with it.
//!
//! **Refunds.** Giving back what was reserved and not used must not give back what has drained
//! since. Had less been reserved, the level would be lower by the refund, unless the meter ran dry
//! in between: so a refund is at most the lowest level since its reservation. These lows are a
//! rising row, one a stretch of reservations; over [`MOST_LOWS`] of them two become one, the lower,
//! which makes refunds smaller and never larger.

use std::time::Duration;

use crate::time::Moment;

/// Nanoseconds in the window a rate is told for: one minute.
pub(super) const WINDOW: i128 = 60_000_000_000;

/// The most lows that are kept.
const MOST_LOWS: usize = 64;

/// How fast a meter drains and how high it may stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pace {
    /// Units a minute; 0: nothing drains.
    pub(super) rate: u64,
    /// Units that may stand in the meter.
    pub(super) burst: u64,
}

impl Pace {
    /// The most any minute holds.
    pub(super) const fn most(self) -> u64 {
        self.rate.saturating_add(self.burst)
    }
}

/// When a reservation was made, in the meter's own terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// All units ever reserved, this reservation included.
    booked: u64,
    /// All the rate could have drained since the beginning, in token-nanoseconds.
    drained: i128,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meter {
    /// Token-nanoseconds. Below zero: how long it has been empty, at most a minute.
    level: i128,
    at: Moment,
    booked: u64,
    /// Token-nanoseconds, for [`Mark::drained`].
    drained: i128,
    /// (first reservation, lowest level since it): both rise.
    lows: Vec<(u64, i128)>,
}

const fn scaled(units: u64) -> i128 {
    units as i128 * WINDOW
}

/// Whole units of a level, rounded up; 0 below zero.
fn units(level: i128) -> u64 {
    u64::try_from(level.max(0).saturating_add(WINDOW - 1) / WINDOW).unwrap_or(u64::MAX)
}

impl Meter {
    /// An empty meter that has been empty for a minute.
    pub(super) fn new(pace: Pace, now: Moment) -> Self {
        Self { level: -scaled(pace.rate), at: now, booked: 0, drained: 0, lows: Vec::new() }
    }

    /// Lets the time until `now` drain. A moment before the last one drains nothing.
    pub(super) fn drain(&mut self, pace: Pace, now: Moment) {
        if now <= self.at {
            return;
        }
        let nanos = i128::try_from(now.since(self.at).as_nanos()).unwrap_or(i128::MAX);
        self.at = now;
        let drained = nanos.saturating_mul(i128::from(pace.rate));
        self.drained = self.drained.saturating_add(drained);
        self.level = self.level.saturating_sub(drained).max(-scaled(pace.rate));
        self.lower();
    }

    /// How long until `cost` may be reserved once `before` is; zero: now. [`Duration::MAX`] where
    /// nothing drains.
    pub(super) fn wait(&self, cost: u64, before: u64, pace: Pace) -> Duration {
        let over = cost.saturating_sub(pace.burst).min(pace.rate);
        // The level at which it may go: room for it under the burst, or so far below empty.
        let goal = if cost <= pace.burst { scaled(pace.burst - cost) } else { -scaled(over) };
        let level = match before {
            0 => self.level,
            before => self.level.max(0).saturating_add(scaled(before)),
        };
        let excess = level.saturating_sub(goal);
        if excess <= 0 {
            return Duration::ZERO;
        }
        if pace.rate == 0 {
            return Duration::MAX;
        }
        let rate = i128::from(pace.rate);
        u64::try_from(excess.saturating_add(rate - 1) / rate)
            .map_or(Duration::MAX, Duration::from_nanos)
    }

    /// Reserves `cost` whatever the level. `order` rises from reservation to reservation.
    pub(super) fn reserve(&mut self, cost: u64, order: u64) -> Mark {
        self.level = self.level.max(0).saturating_add(scaled(cost));
        self.booked = self.booked.saturating_add(cost);
        self.lows.push((order, self.level));
        self.merge();
        Mark { booked: self.booked, drained: self.drained }
    }

    /// Adds what was used beyond what was reserved. The meter may stand over its burst: a debt.
    pub(super) fn debit(&mut self, more: u64) {
        self.level = self.level.max(0).saturating_add(scaled(more));
        self.booked = self.booked.saturating_add(more);
    }

    /// Gives back `unused` units of the reservation `order`, as far as they have not drained.
    /// Returns the token-nanoseconds that were given back.
    pub(super) fn refund(&mut self, unused: u64, order: u64) -> i128 {
        let Some(ix) = self.lows.partition_point(|(first, _)| *first <= order).checked_sub(1)
        else {
            return 0;
        };
        let given = scaled(unused).min(self.lows[ix].1).max(0);
        self.level = self.level.saturating_sub(given);
        self.booked = self.booked.saturating_sub(units(given));
        for (_, low) in self.lows.iter_mut().skip(ix) {
            *low -= given;
        }
        let reached = self.lows[ix].1;
        for (_, low) in self.lows.iter_mut().take(ix) {
            *low = (*low).min(reached);
        }
        given
    }

    /// Raises the level so that at most `room` units may go at once, besides those that were
    /// reserved after `mark` and have not drained since: whoever counted the room had not seen them.
    pub(super) fn leave_room(&mut self, room: u64, mark: Option<Mark>, pace: Pace) {
        let unseen = mark.map_or(0, |mark| {
            let booked = self.booked.saturating_sub(mark.booked);
            booked.saturating_sub(units(self.drained.saturating_sub(mark.drained)))
        });
        let least = scaled(pace.burst.saturating_add(unseen)) - scaled(room);
        if least > 0 {
            self.level = self.level.max(least);
        }
    }

    /// Units that stand in the meter, rounded up.
    pub(super) fn used(&self) -> u64 {
        units(self.level)
    }

    /// Lets no low stand over the level.
    fn lower(&mut self) {
        let level = self.level.max(0);
        while let Some((_, low)) = self.lows.last_mut() {
            if *low <= level {
                break;
            }
            *low = level;
            let [.., (_, before), _] = self.lows.as_slice() else { break };
            if *before < level {
                break;
            }
            // The stretch before is as low: both are one, which begins with the older.
            self.lows.pop();
        }
    }

    /// Makes one of two neighbouring stretches, once there are too many: those that are nearest to
    /// each other for their height, so that the least is lost.
    fn merge(&mut self) {
        if self.lows.len() <= MOST_LOWS {
            return;
        }
        let gap = |pair: &[(u64, i128)]| match pair {
            [(_, low), (_, next)] => (next - low).saturating_mul(1024) / (*next).max(1),
            _ => i128::MAX,
        };
        let nearest = (0..self.lows.len() - 1).min_by_key(|ix| gap(&self.lows[*ix..*ix + 2]));
        if let Some(ix) = nearest {
            self.lows.remove(ix + 1);
        }
    }
}

#[cfg(test)]
mod tests;
