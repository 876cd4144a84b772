//! The keys of the tables in `[models.NAME]` that keep the load on a target within limits.

use backstay_decide::pacing::{Cached, Dimension, Per, Unit, Upfront};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::words::Length;

/// What bounds the calls at once besides their highest number.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PlacesTable {
    /// Never fewer calls at once than this, however much the target strains. 1 to 1000000; without a
    /// `max_concurrency` never below 10.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub(super) floor: u64,
    /// Bytes of request bodies in flight. 0: no limit.
    pub(super) bytes: u64,
    /// What part of its places and rates is kept from calls of other models that fall back on it; 0 to
    /// 1.
    #[schemars(extend("x-type" = "number"))]
    pub(super) kept: f64,
}

impl Default for PlacesTable {
    fn default() -> Self {
        Self { floor: 2, bytes: 0, kept: 0.1 }
    }
}

/// The provider's rates of one key, as published, and how it counts. What is left out is learned from
/// headers and 429s.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RatesTable {
    /// Requests a minute. 0: none is let through. Default: learned.
    pub(super) requests_per_minute: Option<u64>,
    /// Input tokens a minute. Default: learned.
    pub(super) input_tokens_per_minute: Option<u64>,
    /// Output tokens a minute. Default: learned.
    pub(super) output_tokens_per_minute: Option<u64>,
    /// Input and output tokens together, a minute. Default: learned.
    pub(super) tokens_per_minute: Option<u64>,
    /// Requests in any 24 hours. Default: learned.
    pub(super) requests_per_day: Option<u64>,
    /// Input tokens in any 24 hours. Default: learned.
    pub(super) input_tokens_per_day: Option<u64>,
    /// Output tokens in any 24 hours. Default: learned.
    pub(super) output_tokens_per_day: Option<u64>,
    /// Input and output tokens together, in any 24 hours. Default: learned.
    pub(super) tokens_per_day: Option<u64>,
    /// What part of the rates is used steadily, learned ones too: above 0, at most 1. Divide it where
    /// several processes share a key. Default: 0.8.
    #[schemars(extend("x-type" = "number"))]
    pub(super) share: Option<f64>,
    /// What part of a minute's rate may go at once; 0 to 1. With `share` over 1 a minute may hold more
    /// than the rate. Default: what `share` leaves.
    #[schemars(extend("x-type" = "number"))]
    pub(super) burst: Option<f64>,
    /// What output is counted when a request is sent: `"cap"` (its output cap) or `"expected"` (what
    /// the model usually writes, at most the cap). Default: `"expected"` for `anthropic`, else `"cap"`.
    pub(super) reserve: Option<ReserveWord>,
    /// Whether input from the provider's cache counts: `"free"` or `"counted"`. Default: `"free"`.
    pub(super) cached_input: Option<CachedWord>,
}

/// What output is counted when a request is sent.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReserveWord {
    /// Its output cap.
    Cap,
    /// What the model usually writes, at most the cap.
    Expected,
}

/// Whether input from the provider's cache counts.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum CachedWord {
    /// It does not.
    Free,
    /// It does.
    Counted,
}

impl ReserveWord {
    pub(super) fn upfront(self) -> Upfront {
        match self {
            Self::Cap => Upfront::Cap,
            Self::Expected => Upfront::Expected,
        }
    }
}

impl CachedWord {
    pub(super) fn cached(self) -> Cached {
        match self {
            Self::Free => Cached::Free,
            Self::Counted => Cached::Counted,
        }
    }
}

impl RatesTable {
    /// What is published of a dimension.
    pub(super) fn published(&self, dimension: Dimension) -> Option<u64> {
        match (dimension.unit, dimension.per) {
            (Unit::Requests, Per::Minute) => self.requests_per_minute,
            (Unit::Input, Per::Minute) => self.input_tokens_per_minute,
            (Unit::Output, Per::Minute) => self.output_tokens_per_minute,
            (Unit::Total, Per::Minute) => self.tokens_per_minute,
            (Unit::Requests, Per::Day) => self.requests_per_day,
            (Unit::Input, Per::Day) => self.input_tokens_per_day,
            (Unit::Output, Per::Day) => self.output_tokens_per_day,
            (Unit::Total, Per::Day) => self.tokens_per_day,
        }
    }
}

/// What retries cost and earn, over all calls together; for all models, or for one, whose own keys
/// win.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RetriesTable {
    /// What part of a retry each call earns; 0 to 1. A target that fails for long sees its calls and
    /// this part more. Default: 0.1.
    #[schemars(extend("x-type" = "number"))]
    pub(super) earned: Option<f64>,
    /// The time in which at least one retry is earned, by however few calls. `"0s"`: no such least.
    /// Default: `"10s"`.
    pub(super) floor: Option<Length>,
    /// Retries to begin with. Default: 3.
    pub(super) start: Option<u32>,
    /// The most retries that are kept. 0 turns retries at the target off. Default: 10.
    pub(super) cap: Option<u32>,
    /// Retries that may always be in flight at once. Default: 2.
    pub(super) at_once: Option<u32>,
    /// Beyond that, what part of the calls under way may be retries; 0 to 1. Default: 0.2.
    #[schemars(extend("x-type" = "number"))]
    pub(super) at_once_share: Option<f64>,
}

impl RetriesTable {
    /// The same, with what it does not say taken from `base`.
    pub(super) fn over(&self, base: &Self) -> Self {
        Self {
            earned: self.earned.or(base.earned),
            floor: self.floor.or(base.floor),
            start: self.start.or(base.start),
            cap: self.cap.or(base.cap),
            at_once: self.at_once.or(base.at_once),
            at_once_share: self.at_once_share.or(base.at_once_share),
        }
    }
}
