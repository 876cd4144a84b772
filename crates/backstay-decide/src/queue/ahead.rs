//! How much is queued before a given time, in `O(log n)`: a Fenwick tree over seconds.
//!
//! Whoever enters wants to know what goes first: all that has to start no later. Seconds are kept on
//! a ring; what has to start later than the ring reaches counts as its last second, so a sum may be a
//! little too high or low for deadlines that far off, and never for near ones.

use crate::time::Moment;

/// Seconds on the ring: 17 minutes.
const SECONDS: usize = 1024;

/// Where an amount was put; needed to take it out again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot(usize);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ahead {
    /// One-based partial sums.
    sums: Vec<u64>,
    total: u64,
}

impl Ahead {
    pub(super) fn new() -> Self {
        Self { sums: vec![0; SECONDS + 1], total: 0 }
    }

    /// All that is in it.
    pub(super) const fn total(&self) -> u64 {
        self.total
    }

    /// Puts `cost` in at the second of `start`, as seen from `now`.
    pub(super) fn put(&mut self, start: Moment, cost: u64, now: Moment) -> Slot {
        let place = place(start, now);
        self.total = self.total.saturating_add(cost);
        self.walk(place, |sum| *sum = sum.saturating_add(cost));
        Slot(place)
    }

    /// Takes out what was put in.
    pub(super) fn take(&mut self, slot: Slot, cost: u64) {
        self.total = self.total.saturating_sub(cost);
        self.walk(slot.0, |sum| *sum = sum.saturating_sub(cost));
    }

    /// What has to start in the second of `start` or before it, as seen from `now`.
    pub(super) fn until(&self, start: Moment, now: Moment) -> u64 {
        let (from, to) = (now_place(now), place(start, now));
        if from <= to {
            return self.prefix(to).saturating_sub(self.before(from));
        }
        // The ring turns over in between.
        let to_the_end = self.prefix(SECONDS - 1).saturating_sub(self.before(from));
        to_the_end.saturating_add(self.prefix(to))
    }

    fn before(&self, place: usize) -> u64 {
        place.checked_sub(1).map_or(0, |last| self.prefix(last))
    }

    fn prefix(&self, place: usize) -> u64 {
        let (mut ix, mut sum) = (place + 1, 0_u64);
        while ix > 0 {
            sum = sum.saturating_add(self.sums[ix]);
            ix &= ix - 1;
        }
        sum
    }

    fn walk(&mut self, place: usize, change: impl Fn(&mut u64)) {
        let mut ix = place + 1;
        while ix <= SECONDS {
            change(&mut self.sums[ix]);
            ix += ix & ix.wrapping_neg();
        }
    }
}

fn now_place(now: Moment) -> usize {
    // Below 1024, so it fits.
    usize::try_from(now.since_origin().as_secs() % SECONDS as u64).unwrap_or(0)
}

fn place(start: Moment, now: Moment) -> usize {
    let from = now.since_origin().as_secs();
    let far = start.since_origin().as_secs().saturating_sub(from).min(SECONDS as u64 - 1);
    usize::try_from(from.saturating_add(far) % SECONDS as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    #[test]
    fn what_starts_no_later_is_ahead_and_far_deadlines_share_the_last_second() {
        let mut ahead = Ahead::new();
        let now = at(1000);
        ahead.put(at(1010), 5, now);
        let second = ahead.put(at(1030), 7, now);
        ahead.put(at(900_000), 11, now);
        let seen =
            |ahead: &Ahead| [1009, 1010, 1029, 1030, 2022, 2023].map(|s| ahead.until(at(s), now));
        assert_eq!(seen(&ahead), [0, 5, 5, 12, 12, 23]);
        assert_eq!(ahead.total(), 23);
        ahead.take(second, 7);
        assert_eq!(seen(&ahead), [0, 5, 5, 5, 5, 16]);
        assert_eq!(ahead.until(at(0), now), 0);
    }

    proptest! {
        #[test]
        fn sums_are_those_of_a_plain_list(
            now in 0_u64..5000,
            puts in prop::collection::vec((0_u64..1024, 0_u64..1000, any::<bool>()), 0..60),
            asked in 0_u64..1024,
        ) {
            let mut ahead = Ahead::new();
            let mut kept = Vec::new();
            for (far, cost, is_taken) in puts {
                let slot = ahead.put(at(now + far), cost, at(now));
                if is_taken { ahead.take(slot, cost); } else { kept.push((far, cost)); }
            }
            let plain: u64 = kept.iter().filter(|(far, _)| *far <= asked).map(|(_, cost)| cost).sum();
            prop_assert_eq!(ahead.until(at(now + asked), at(now)), plain);
            prop_assert_eq!(ahead.total(), kept.iter().map(|(_, cost)| cost).sum::<u64>());
        }
    }
}
