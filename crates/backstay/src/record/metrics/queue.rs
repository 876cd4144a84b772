//! Counts who waits for a seat and who gets none.

use std::time::Duration;

use super::{ClassLabels, LeftLabels, Metrics};
use crate::admit::line;

impl Metrics {
    /// A call of a class waited for a seat, whether it got one or not.
    pub fn waited_in_queue(&self, class: &str, waited: Duration) {
        let labels = ClassLabels { class: class.into() };
        self.wait.get_or_create(&labels).observe(waited.as_secs_f64());
    }

    /// A call of a class got no seat: it was refused, shed, late, or its caller gave up.
    pub fn left_queue(&self, class: &str, why: &'static str) {
        self.left.get_or_create(&LeftLabels { class: class.into(), why }).inc();
    }

    /// How the queue stands, in place of what was said before.
    pub fn queue(&self, report: &line::Report) {
        self.waiting.clear();
        for class in &report.classes {
            let labels = ClassLabels { class: class.name.to_string() };
            let count = i64::try_from(class.count).unwrap_or(i64::MAX);
            self.waiting.get_or_create(&labels).set(count);
        }
        self.seats.set(report.running.into());
    }
}
