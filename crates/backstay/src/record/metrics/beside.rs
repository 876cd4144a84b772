//! What is told of the parts beside the calls: what they lost, and whether they do their work.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::record::{PARTS, Trouble};

/// What is told of the parts beside the calls.
#[derive(Clone, Debug, Default)]
pub struct BesideMeters {
    rows_lost: Gauge,
    lines_lost: Gauge,
    degraded: Family<PartLabels, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PartLabels {
    part: &'static str,
}

impl BesideMeters {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "call_log_rows_dropped",
            "Call log rows lost: the writer was behind, or the file could not be written",
            self.rows_lost.clone(),
        );
        registry.register(
            "log_lines_dropped",
            "Log lines lost: nobody read them, or they could not be written",
            self.lines_lost.clone(),
        );
        registry.register(
            "degraded",
            "1: a part beside the calls does not do its work; calls go on",
            self.degraded.clone(),
        );
    }

    /// How the parts stand now: rows and lines lost since the start, and who is in trouble.
    pub fn stand(&self, rows_lost: u64, lines_lost: u64, troubles: &[Trouble]) {
        let count = |number| i64::try_from(number).unwrap_or(i64::MAX);
        self.rows_lost.set(count(rows_lost));
        self.lines_lost.set(count(lines_lost));
        for part in PARTS {
            let is_degraded = troubles.iter().any(|trouble| trouble.part == part);
            self.degraded.get_or_create(&PartLabels { part }).set(is_degraded.into());
        }
    }
}
