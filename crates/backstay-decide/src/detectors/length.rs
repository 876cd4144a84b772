//! How long a reply is, and how quickly it comes, against what is expected.

use std::time::Duration;

use super::signal::{Finding, Level};

/// The lowest pace that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Floor {
    /// Tokens in a thousand seconds. 0 lets any pace pass.
    pub tokens_per_kilosecond: u32,
    /// How long a reply is watched before it is judged. Shorter ones pass.
    pub over: Duration,
}

/// How many tokens a reply may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Length {
    /// Tokens that replies of its kind have at most, nearly always. Twice as many are told. `None`: not known.
    pub expected: Option<u32>,
    /// Tokens that make a reply worthless. `None`: no such number.
    pub most: Option<u32>,
}

impl Length {
    /// Judges a reply of so many tokens.
    pub(super) fn judge(self, tokens: u32) -> Option<(Finding, Level)> {
        if let Some(limit) = self.most.filter(|most| tokens > *most) {
            return Some((Finding::Runaway { limit }, Level::Hard));
        }
        let limit = self.expected?.saturating_mul(2);
        (tokens > limit).then_some((Finding::Runaway { limit }, Level::Soft))
    }

    /// Whether so many tokens are over three quarters of what is expected.
    pub(super) fn nearly_used(self, tokens: u32) -> Option<u32> {
        self.expected.filter(|expected| u64::from(tokens) * 4 > u64::from(*expected) * 3)
    }
}

impl Floor {
    /// Judges a reply of so many tokens, `elapsed` after its first content.
    pub(super) fn judge(self, tokens: u32, elapsed: Duration) -> Option<Finding> {
        if elapsed < self.over {
            return None;
        }
        let asked = u128::from(self.tokens_per_kilosecond) * elapsed.as_millis();
        let slow = u128::from(tokens) * 1_000_000 < asked;
        let floor = self.tokens_per_kilosecond;
        slow.then_some(Finding::Slow { tokens, elapsed, floor })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_over_a_limit_by_one_token_is_told() {
        let length = Length { expected: Some(100), most: Some(300) };
        let judged =
            |tokens| length.judge(tokens).map(|(finding, level)| (finding.to_string(), level));
        assert_eq!(judged(200), None);
        assert_eq!(judged(201), Some(("over 200 tokens".to_owned(), Level::Soft)));
        assert_eq!(judged(300), Some(("over 200 tokens".to_owned(), Level::Soft)));
        assert_eq!(judged(301), Some(("over 300 tokens".to_owned(), Level::Hard)));
        assert_eq!(Length::default().judge(u32::MAX), None);
        assert_eq!([75, 76].map(|tokens| length.nearly_used(tokens)), [None, Some(100)]);
        assert_eq!(Length::default().nearly_used(u32::MAX), None);
    }

    #[test]
    fn a_pace_at_the_floor_passes_and_is_not_judged_early() {
        let floor = Floor { tokens_per_kilosecond: 2500, over: Duration::from_secs(4) };
        let is_slow = |tokens, seconds| floor.judge(tokens, Duration::from_secs(seconds)).is_some();
        assert!(!is_slow(0, 3) && is_slow(9, 4) && !is_slow(10, 4));
        let any = Floor { tokens_per_kilosecond: 0, ..floor };
        assert_eq!(any.judge(0, Duration::from_hours(1)), None);
    }
}
