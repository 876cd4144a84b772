//! The keys of the tables in `[models.NAME]` that keep the load on a target within limits.

use schemars::JsonSchema;
use serde::Deserialize;

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
}

impl Default for PlacesTable {
    fn default() -> Self {
        Self { floor: 2, bytes: 0 }
    }
}
