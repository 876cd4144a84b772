//! The keys of the tables in `[breaker]` that say how a target comes back after a rest.

use schemars::JsonSchema;
use serde::Deserialize;

use super::words::Length;

/// How a target is tested after a rest: by a few calls, while the others go elsewhere.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct CanaryTable {
    /// The share of the calls that test it, above 0 and at most 1. Default: 0.05.
    #[schemars(extend("x-type" = "number"))]
    pub(super) share: Option<f64>,
    /// One test is due after this time even where `share` gives none; never for two calls in a row.
    /// `"0s"`: by share only. Default: `"10s"`.
    pub(super) every: Option<Length>,
    /// Most tests in flight. 1 to 256. Default: 3.
    #[schemars(range(min = 1, max = 256))]
    pub(super) at_once: Option<u64>,
    /// Tests that must come to their first content; one must also end well. 1 to 1000. Default: 5.
    #[schemars(range(min = 1, max = 1000))]
    pub(super) passes: Option<u64>,
    /// After so long one test that ended well is enough; and where none began for so long, any call may
    /// be one. `"0s"`: never. Default: `"5m"`.
    pub(super) patience: Option<Length>,
    /// The largest output cap of a call that is short: while short ones come at least once in `every`,
    /// only they are tests. Default: 1000.
    pub(super) short_tokens: Option<u64>,
}

/// The time after the test, when less is forgiven and the load comes back in steps.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ProbationTable {
    /// How long it lasts. `"0s"`: there is none. Default: `"60s"`.
    pub(super) lasts: Option<Length>,
    /// The share of calls that may fail meanwhile, above 0 and below 1. Default: as `failure_rate`.
    #[schemars(extend("x-type" = "number"))]
    pub(super) failure_rate: Option<f64>,
    /// The fewest calls that is judged by. 1 to 1000. Default: 10, at most `min_calls`.
    #[schemars(range(min = 1, max = 1000))]
    pub(super) min_calls: Option<u64>,
    /// Hard failures in a row that open it meanwhile: for availability as it is, for quality twice as
    /// many. 0: none do. At most 1000. Default: 3 (quality 5), at most those of `failures_in_a_row`.
    #[schemars(range(max = 1000))]
    pub(super) failures_in_a_row: Option<u64>,
    /// The share of the calls that go through at first, above 0 and at most 1; it doubles with each
    /// `step`, up to all. Default: 0.25.
    #[schemars(extend("x-type" = "number"))]
    pub(super) share: Option<f64>,
    /// How long each share holds. `"0s"`: all go through from the start. Default: `"20s"`.
    pub(super) step: Option<Length>,
}

impl CanaryTable {
    /// The same, with what it does not say taken from `base`.
    pub(super) fn over(self, base: Self) -> Self {
        Self {
            share: self.share.or(base.share),
            every: self.every.or(base.every),
            at_once: self.at_once.or(base.at_once),
            passes: self.passes.or(base.passes),
            patience: self.patience.or(base.patience),
            short_tokens: self.short_tokens.or(base.short_tokens),
        }
    }
}

impl ProbationTable {
    /// The same, with what it does not say taken from `base`.
    pub(super) fn over(self, base: Self) -> Self {
        Self {
            lasts: self.lasts.or(base.lasts),
            failure_rate: self.failure_rate.or(base.failure_rate),
            min_calls: self.min_calls.or(base.min_calls),
            failures_in_a_row: self.failures_in_a_row.or(base.failures_in_a_row),
            share: self.share.or(base.share),
            step: self.step.or(base.step),
        }
    }
}
