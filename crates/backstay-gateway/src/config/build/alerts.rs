//! `[alerts]`.

use backstay::policy::{AlertPolicy, Webhook};

use super::Loading;
use super::provider::address;
use crate::config::alert_words::AlertsTable;

impl Loading<'_> {
    /// How operators are told.
    pub(super) fn alerts(&mut self, table: &AlertsTable) -> AlertPolicy {
        let headers = self.headers(&["alerts", "headers"], &table.headers);
        let path = ["alerts", "webhook"];
        let text = table.webhook.as_ref().and_then(|written| self.text(&path, written));
        let webhook = match text.as_deref().map(address) {
            Some(Ok(url)) => Some(Webhook { url, headers }),
            Some(Err(wrong)) => {
                let help = "such as { env = \"ALERT_URL\" } with https://…";
                self.wrong(&path, "bad-url", format!("`webhook` {wrong}"), help);
                None
            }
            None => {
                if !headers.is_empty() && table.webhook.is_none() {
                    let message = "`headers` mean nothing without a `webhook`".into();
                    self.doubt(&["alerts", "headers"], "idle-key", message, "take them out");
                }
                None
            }
        };
        AlertPolicy { every: table.every.0, webhook }
    }
}
