//! What the load on a target is kept within.

use backstay_decide::aimd::Bounds;
use backstay_decide::pacing::{Counting, Rate, Share, Upfront};
use backstay_wire::Dialect;

/// What the load on a target is kept within.
#[derive(Clone, Debug, Default, PartialEq)]
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
