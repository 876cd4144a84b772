//! Counts who waits for a seat and who gets none.

use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::{Metrics, seconds};
use crate::admit::line;

/// Who waits for a seat, who has one and who got none.
#[derive(Clone, Debug)]
pub(super) struct QueueMeters {
    waiting: Family<ClassLabels, Gauge>,
    wait: Family<ClassLabels, Histogram, fn() -> Histogram>,
    left: Family<LeftLabels, Counter>,
    seats: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabels {
    class: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeftLabels {
    class: String,
    why: &'static str,
}

impl QueueMeters {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("queue_waiting", "Calls that wait for a seat", self.waiting.clone());
        let wait = "How long calls waited that had to wait for a seat";
        registry.register("queue_wait_seconds", wait, self.wait.clone());
        registry.register("queue_left", "Calls that got no seat, by the reason", self.left.clone());
        registry.register("seats_taken", "Calls that have a seat", self.seats.clone());
    }
}

impl Default for QueueMeters {
    fn default() -> Self {
        Self {
            waiting: Family::default(),
            wait: Family::new_with_constructor(seconds),
            left: Family::default(),
            seats: Gauge::default(),
        }
    }
}

impl Metrics {
    /// A call of a class waited for a seat, whether it got one or not.
    pub fn waited_in_queue(&self, class: &str, waited: Duration) {
        let labels = ClassLabels { class: class.into() };
        self.queue.wait.get_or_create(&labels).observe(waited.as_secs_f64());
    }

    /// A call of a class got no seat: it was refused, shed, late, or its caller gave up.
    pub fn left_queue(&self, class: &str, why: &'static str) {
        self.queue.left.get_or_create(&LeftLabels { class: class.into(), why }).inc();
    }

    /// How the queue stands, in place of what was said before.
    pub fn queue(&self, report: &line::Report) {
        self.queue.waiting.clear();
        for class in &report.classes {
            let labels = ClassLabels { class: class.name.to_string() };
            let count = i64::try_from(class.count).unwrap_or(i64::MAX);
            self.queue.waiting.get_or_create(&labels).set(count);
        }
        self.queue.seats.set(report.running.into());
    }
}
