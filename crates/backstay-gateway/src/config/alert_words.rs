//! The keys of `[alerts]`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::words::{KeyText, Length};

/// What operators are told of by itself.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct AlertsTable {
    /// The same thing about the same subject is told once in this time, with a count of what was kept
    /// back. `"0s"`: every time. At most `"24h"`.
    pub(super) every: Length,
    /// Where alerts are posted as JSON besides the log. Many such addresses are secrets:
    /// `{ env = "ALERT_URL" }`. Default: nowhere.
    pub(super) webhook: Option<KeyText>,
    /// Headers sent with each, by name, such as `authorization = { env = "ALERT_TOKEN" }`.
    /// Default: none.
    pub(super) headers: BTreeMap<String, KeyText>,
}

impl Default for AlertsTable {
    fn default() -> Self {
        Self { every: Length::seconds(900), webhook: None, headers: BTreeMap::new() }
    }
}
