//! What the load on a target is kept within.

use backstay_decide::aimd::Bounds;
use backstay_decide::extra::{self, headroom};
use backstay_decide::pacing::{Counting, Rate, Share, Upfront};
use backstay_wire::Dialect;

/// What the load on a target is kept within.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Calls and bytes at once.
    pub places: Bounds,
    /// The provider's rates, as published, of each of its keys. What is not here is learned from
    /// headers and 429s.
    pub rates: Vec<Rate>,
    /// What part of the rates is used.
    pub share: Share,
    /// How the provider counts.
    pub counting: Counting,
    /// What retries cost and earn.
    pub retries: extra::Limits,
    /// What is kept from calls that fall back on it, in thousandths of its places and rates; 0 to
    /// 1000.
    pub kept: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            places: Bounds::default(),
            rates: Vec::new(),
            share: Share::default(),
            counting: Counting::default(),
            retries: extra::Limits::default(),
            kept: headroom::KEPT,
        }
    }
}

impl Limits {
    /// Nothing published, and counted as is usual for a dialect: Anthropic counts what is written,
    /// `OpenAI` and most others what may be.
    pub fn usual(dialect: Dialect) -> Self {
        let upfront = match dialect {
            Dialect::Anthropic => Upfront::Expected,
            Dialect::OpenaiChat => Upfront::Cap,
        };
        Self { counting: Counting { upfront, ..Counting::default() }, ..Self::default() }
    }
}
