//! The keys of `[breaker]` and `[models.NAME.breaker]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::return_words::{CanaryTable, ProbationTable};
use super::words::Length;

/// When targets rest, and how they come back; for all models, or for one, whose own keys win.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct BreakerTable {
    /// Whether it acts: `"automatic"`; `"forced_open"` (the target is taken out: no call goes there),
    /// `"forced_closed"` (every call goes there, nothing counts) or `"metrics_only"` (it opens and
    /// closes in the log and the metrics, and every call goes there all the same).
    /// Default: `"automatic"`.
    pub(super) mode: Option<ModeWord>,
    /// Whether availability, throttling and quality have a breaker each: `"separate"`, or one:
    /// `"combined"`, over 15 % of 60 s and nothing else; of the keys here only `mode`,
    /// `failure_rate`, `window`, `slow_first_token`, `slow_factor` and `shortest_rest` hold for it. Default: `"separate"`.
    pub(super) planes: Option<PlanesWord>,
    /// The share of calls that may fail, above 0 and below 1; at least twice what is normal.
    /// Default: 0.15.
    #[schemars(extend("x-type" = "number"))]
    pub(super) failure_rate: Option<f64>,
    /// The fewest calls a rate is judged by. 1 to 1000. Default: 20.
    #[schemars(range(min = 1, max = 1000))]
    pub(super) min_calls: Option<u64>,
    /// Hard failures in a row that open it: for availability as it is, for quality twice as many. 0:
    /// none do. At most 1000. Default: 5.
    #[schemars(range(max = 1000))]
    pub(super) failures_in_a_row: Option<u64>,
    /// The time a rate is taken over. `"1s"` to `"24h"`. Default: `"60s"`.
    pub(super) window: Option<Length>,
    /// A first content that comes later than this and than `slow_factor` times what is usual counts
    /// among the failures, though it came. Default: `"5s"`.
    pub(super) slow_first_token: Option<Length>,
    /// By how much a first content may be later than what all but one in a hundred take with prompts of
    /// its size. 1 to 1000. Default: 2.0.
    #[schemars(range(min = 1, max = 1000), extend("x-type" = "number"))]
    pub(super) slow_factor: Option<f64>,
    /// The shortest rest, before a fifth more or less by the dice. Default: `"30s"`.
    pub(super) shortest_rest: Option<Length>,
    /// The longest rest, before the dice. Not below `shortest_rest`. Default: `"5m"`, or `shortest_rest`
    /// where that is longer.
    pub(super) longest_rest: Option<Length>,
    /// How it is tested after a rest. Default: those below.
    pub(super) canary: CanaryTable,
    /// How it comes back after the test. Default: those below.
    pub(super) probation: ProbationTable,
}

/// Whether a breaker acts.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum ModeWord {
    /// By what it sees.
    Automatic,
    /// The target is taken out.
    ForcedOpen,
    /// The target is held in.
    ForcedClosed,
    /// It only says what it would do.
    MetricsOnly,
}

/// How the things that can be wrong are told apart.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum PlanesWord {
    /// A breaker for each.
    Separate,
    /// One for all.
    Combined,
}

impl BreakerTable {
    /// Whether one breaker is all there is.
    pub(super) fn is_combined(&self) -> bool {
        matches!(self.planes, Some(PlanesWord::Combined))
    }

    /// The same, with what it does not say taken from `base`.
    pub(super) fn over(&self, base: &Self) -> Self {
        Self {
            mode: self.mode.or(base.mode),
            planes: self.planes.or(base.planes),
            failure_rate: self.failure_rate.or(base.failure_rate),
            min_calls: self.min_calls.or(base.min_calls),
            failures_in_a_row: self.failures_in_a_row.or(base.failures_in_a_row),
            window: self.window.or(base.window),
            slow_first_token: self.slow_first_token.or(base.slow_first_token),
            slow_factor: self.slow_factor.or(base.slow_factor),
            shortest_rest: self.shortest_rest.or(base.shortest_rest),
            longest_rest: self.longest_rest.or(base.longest_rest),
            canary: self.canary.over(base.canary),
            probation: self.probation.over(base.probation),
        }
    }
}
