//! A moment on the caller's clock, as the distance from that clock's origin.
//!
//! Decisions compare moments and never read a clock. All arithmetic saturates: a moment before the
//! origin is the origin, one past the end of time is the end of time.

use std::fmt;
use std::time::Duration;

/// A length of time as a person reads it: seconds with at most three decimals, rounded up so that
/// a wait is never told shorter than it is: `0.72 s`, `7 s`, or `for ever`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Secs(pub Duration);

impl fmt::Display for Secs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == Duration::MAX {
            return f.write_str("for ever");
        }
        let millis = self.0.as_nanos().div_ceil(1_000_000);
        let text = format!("{}.{:03}", millis / 1000, millis % 1000);
        write!(f, "{} s", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// A point in time: how long after the clock's origin. Zero is the origin itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(Duration);

impl Moment {
    /// The clock's origin, before which nothing happened.
    pub const ORIGIN: Self = Self(Duration::ZERO);

    /// The moment `since_origin` after the origin.
    pub const fn at(since_origin: Duration) -> Self {
        Self(since_origin)
    }

    /// How long after the origin this is.
    pub const fn since_origin(self) -> Duration {
        self.0
    }

    /// How long after `earlier` this is; zero if it is not after it.
    pub const fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }

    /// How long from here until `later`; zero if `later` is past.
    pub const fn until(self, later: Self) -> Duration {
        later.since(self)
    }

    /// The moment `wait` from here; the end of time if that is beyond it.
    #[must_use]
    pub const fn plus(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_told_short_and_never_too_few() {
        let rows = [(0, "0 s"), (1, "0.001 s"), (720_000_000, "0.72 s"), (7_000_000_000, "7 s")];
        for (nanos, told) in rows {
            assert_eq!(Secs(Duration::from_nanos(nanos)).to_string(), told);
        }
        assert_eq!(Secs(Duration::from_secs(100)).to_string(), "100 s");
        assert_eq!(Secs(Duration::from_micros(1_999_001)).to_string(), "2 s");
        assert_eq!(Secs(Duration::MAX).to_string(), "for ever");
    }

    #[test]
    fn differences_never_go_below_zero_and_sums_never_overflow() {
        let (early, late) =
            (Moment::at(Duration::from_secs(2)), Moment::at(Duration::from_secs(5)));
        assert_eq!(late.since(early), Duration::from_secs(3));
        assert_eq!(early.since(late), Duration::ZERO);
        assert_eq!(early.until(late), Duration::from_secs(3));
        assert_eq!(late.until(early), Duration::ZERO);
        assert_eq!(Moment::ORIGIN.plus(Duration::from_secs(5)), late);
        assert_eq!(late.plus(Duration::MAX), Moment::at(Duration::MAX));
        assert_eq!(late.since_origin(), Duration::from_secs(5));
    }
}
