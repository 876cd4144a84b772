//! How much leaves a queue in a second, measured while somebody waits.
//!
//! What leaves while nobody waits says how much came, and nothing of how much could go. So the
//! measure begins anew whenever a queue fills, and knows nothing until something has left it.

use std::time::Duration;

use crate::time::Moment;

/// How far back a measure looks at least, once it has gone on for that long; at most twice as far.
const SPAN: Duration = Duration::from_secs(30);

/// The shortest time a rate is told from: less is chance.
const LEAST: Duration = Duration::from_secs(1);

/// What leaves in a second.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drain {
    /// All that ever left.
    left: u64,
    older: Mark,
    newer: Mark,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mark {
    at: Moment,
    left: u64,
}

impl Drain {
    /// A call of this cost is over.
    pub const fn count(&mut self, cost: u64) {
        self.left = self.left.saturating_add(cost);
    }

    /// The first call waits: what left before says nothing.
    pub const fn begin(&mut self, now: Moment) {
        let mark = Mark { at: now, left: self.left };
        self.older = mark;
        self.newer = mark;
    }

    /// The cost that leaves in a second, at least 1. `None`: not known yet.
    pub fn rate(&mut self, now: Moment) -> Option<u64> {
        if now.since(self.newer.at) >= SPAN {
            self.older = self.newer;
            self.newer = Mark { at: now, left: self.left };
        }
        let left = self.left - self.older.left;
        let time = now.since(self.older.at);
        if left == 0 || time < LEAST {
            return None;
        }
        let each = u128::from(left) * 1_000_000_000 / time.as_nanos();
        Some(u64::try_from(each).unwrap_or(u64::MAX).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(millis: u64) -> Moment {
        Moment::at(Duration::from_millis(millis))
    }

    #[test]
    fn a_rate_is_told_from_what_left_since_somebody_waits() {
        let mut drain = Drain::default();
        drain.count(1_000_000);
        drain.begin(at(5000));
        assert_eq!(drain.rate(at(9000)), None, "nothing left since");
        drain.count(300);
        assert_eq!(drain.rate(at(5999)), None, "less than a second is chance");
        assert_eq!(drain.rate(at(6000)), Some(300));
        assert_eq!(drain.rate(at(8000)), Some(100));
        assert_eq!(drain.rate(at(34_999)), Some(10));
        drain.begin(at(40_000));
        assert_eq!(drain.rate(at(50_000)), None);
        drain.count(1);
        assert_eq!(drain.rate(at(50_000)), Some(1), "slow, and never nothing");
    }

    #[test]
    fn what_left_long_ago_is_forgotten() {
        let mut drain = Drain::default();
        drain.begin(at(0));
        let mut seen = Vec::new();
        for second in 1..=150_u64 {
            drain.count(if second <= 40 { 100 } else { 10 });
            seen.push(drain.rate(at(second * 1000)).unwrap_or(0));
        }
        assert_eq!((seen[38], seen[149]), (100, 10));
        assert!(seen.windows(2).all(|pair| pair[1] <= pair[0]), "{seen:?}");
    }
}
