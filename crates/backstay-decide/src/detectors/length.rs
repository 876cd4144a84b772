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
