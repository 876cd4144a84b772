//! The keys of `[queue]`.

use std::collections::BTreeMap;

use backstay::policy::SEATS;
use backstay_decide::queue::Rules;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How many calls run at once, and who waits in which order.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct QueueTable {
    /// Calls that may run at once; further ones wait. At least 1.
    #[schemars(range(min = 1))]
    pub(super) seats: u32,
    /// Calls that may wait; when it is full the lowest class makes room, its newest call first. 0:
    /// nobody waits. At most 1000000.
    #[schemars(range(max = 1_000_000))]
    pub(super) count: u64,
    /// Bytes of request bodies that may wait.
    pub(super) bytes: u64,
    /// Classes of calls, by name; those with the larger share are the higher ones, of the same share
    /// the first by name. At most 16. Any here take the place of the default ones. Default:
    /// `interactive` with a share of 80 and `batch` with 20.
    pub(super) classes: BTreeMap<String, ClassTable>,
}

/// A class of calls.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ClassTable {
    /// Its weight against the others that wait, in seats and in room. 1 to 1000.
    #[schemars(range(min = 1, max = 1000))]
    pub(super) share: u32,
    /// Seats that no other class takes while this one has fewer running. 0: none. All classes together
    /// less than `seats`.
    pub(super) kept: u32,
}

impl Default for QueueTable {
    fn default() -> Self {
        let rules = Rules::default();
        Self {
            seats: SEATS,
            count: rules.count as u64,
            bytes: rules.bytes,
            classes: BTreeMap::new(),
        }
    }
}

impl Default for ClassTable {
    fn default() -> Self {
        Self { share: 10, kept: 0 }
    }
}
