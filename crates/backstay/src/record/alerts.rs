//! Tells operators what needs a person: a line in the log, and a message for who delivers it.
//!
//! Nothing here waits or sends: a message goes into a bounded queue, and a full one drops it and
//! counts that. `attempt::notify` is what empties it. Without `[alerts]` nothing is kept.

use std::collections::{HashMap, VecDeque};

use backstay_decide::Moment;
use backstay_decide::alert::{Kind, Repeats};
use backstay_decide::shift::{Judged, Shift};
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::Notify;

use super::Metrics;
use super::beside::Work;
use crate::policy::AlertPolicy;

/// Messages that may wait to be delivered. More at once are a storm that the log tells as well.
const MAX_WAITING: usize = 64;

/// Most pairs of route and target whose bad replies are counted.
const MAX_SHIFTS: usize = 1_000;

/// A message to an operator.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Alert {
    /// What happened, by `Kind::name`.
    pub kind: &'static str,
    /// Whose matter it is: a target, a key, a route.
    pub subject: String,
    /// One sentence, with its numbers. No prompt, no reply, no key.
    pub message: String,
    /// When, in milliseconds since 1970 UTC.
    pub at_ms: u64,
    /// How often the same was kept back since it was last told.
    pub repeats: u32,
}

/// What is told, and what waits to be delivered.
#[derive(Debug, Default)]
pub(crate) struct Alerts {
    repeats: Mutex<Repeats>,
    shifts: Mutex<HashMap<String, Shift>>,
    waiting: Mutex<VecDeque<Alert>>,
    bell: Notify,
    delivery: Work,
}

impl Alerts {
    /// Tells `alert` unless the same was told a short while ago.
    pub(crate) fn tell(
        &self,
        (kind, mut alert): (Kind, Alert),
        now: Moment,
        policy: &AlertPolicy,
        metrics: &Metrics,
    ) {
        let noted = self.repeats.lock().note(kind, &alert.subject, now, policy.every);
        let Some(repeats) = noted else {
            metrics.alerted(alert.kind, "kept_back");
            return;
        };
        alert.repeats = repeats;
        metrics.alerted(alert.kind, "told");
        let Alert { kind, subject, message, .. } = &alert;
        tracing::warn!(alert = kind, subject, repeats, "{message}");
        if policy.webhook.is_none() {
            return;
        }
        let mut waiting = self.waiting.lock();
        if waiting.len() >= MAX_WAITING {
            metrics.alerted(kind, "dropped");
            return;
        }
        waiting.push_back(alert);
        drop(waiting);
        self.bell.notify_one();
    }

    /// Counts a reply that had to fit a schema, by `subject`; says in words when they get worse.
    pub(crate) fn judged(&self, subject: &str, judged: Judged) -> Option<String> {
        let mut shifts = self.shifts.lock();
        if let Some(shift) = shifts.get_mut(subject) {
            return shift.note(judged).map(|shifted| shifted.to_string());
        }
        if shifts.len() < MAX_SHIFTS {
            shifts.entry(subject.to_owned()).or_default().note(judged);
        }
        None
    }

    /// How their delivery goes.
    pub(crate) fn delivery(&self) -> &Work {
        &self.delivery
    }

    /// The next message to deliver. Cancelling the wait loses nothing.
    pub(crate) async fn next(&self) -> Alert {
        loop {
            if let Some(alert) = self.waiting.lock().pop_front() {
                return alert;
            }
            self.bell.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::Webhook;

    fn alert(subject: &str) -> (Kind, Alert) {
        let alert = Alert {
            kind: Kind::ModelGone.name(),
            subject: subject.to_owned(),
            message: "gone".to_owned(),
            at_ms: 0,
            repeats: 0,
        };
        (Kind::ModelGone, alert)
    }

    fn policy() -> AlertPolicy {
        let url = "http://127.0.0.1:1/".parse().unwrap();
        let webhook = Some(Webhook { url, headers: Vec::new() });
        AlertPolicy { every: Duration::from_mins(15), webhook }
    }

    #[tokio::test]
    async fn what_waits_is_bounded_and_what_is_dropped_is_counted() {
        let (alerts, metrics) = (Alerts::default(), Metrics::new());
        for number in 0..100 {
            let alert = alert(&number.to_string());
            alerts.tell(alert, Moment::ORIGIN, &policy(), &metrics);
        }
        alerts.tell(alert("0"), Moment::ORIGIN, &policy(), &metrics);
        let text = metrics.text(|_| {});
        for (fate, count) in [("told", 100), ("dropped", 36), ("kept_back", 1)] {
            let line =
                format!("backstay_alerts_total{{kind=\"model_gone\",fate=\"{fate}\"}} {count}");
            assert!(text.contains(&line), "{line}\n{text}");
        }
        for number in 0..MAX_WAITING {
            assert_eq!(alerts.next().await.subject, number.to_string());
        }
        let none = tokio::time::timeout(Duration::from_millis(5), alerts.next()).await;
        assert!(none.is_err(), "nothing is left");
    }
}
