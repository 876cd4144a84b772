//! What is counted of the limits of targets: places, rates, retries, and the waits for them.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use backstay_decide::pacing::Dimension;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{TargetLabels, label};
use crate::route::Snapshot;

/// What is counted of the limits of targets.
#[derive(Clone, Debug, Default)]
pub struct LimitMeters {
    places: Family<TargetLabels, Gauge>,
    places_taken: Family<TargetLabels, Gauge>,
    filled: Family<RateLabels, Gauge<f64, AtomicU64>>,
    slowed: Family<RateLabels, Counter>,
    retries: Family<TargetLabels, Gauge<f64, AtomicU64>>,
    retries_refused: Family<WaitLabels, Counter>,
    waited: Family<WaitLabels, Counter<f64, AtomicU64>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RateLabels {
    target: String,
    rate: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct WaitLabels {
    target: String,
    why: &'static str,
}

impl LimitMeters {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "places",
            "Calls a target may carry at once now; absent: any number",
            self.places.clone(),
        );
        registry.register("places_taken", "Calls a target carries now", self.places_taken.clone());
        registry.register(
            "pace_filled",
            "How full a target's rate is, of its fullest key: 1 is all that may go at once",
            self.filled.clone(),
        );
        registry.register("pace_slowed", "Times a 429 slowed a target's rate", self.slowed.clone());
        registry.register(
            "retry_balance",
            "Retries that a target's budget holds",
            self.retries.clone(),
        );
        registry.register(
            "retries_refused",
            "Retries that a target's budget did not hold",
            self.retries_refused.clone(),
        );
        registry.register(
            "limit_wait_seconds",
            "Time calls waited for a target's rates or places",
            self.waited.clone(),
        );
    }

    /// How a target of the config stands now. What callers name themselves is left out: its number is
    /// theirs to choose.
    pub fn stands(&self, standing: &Snapshot) {
        if standing.target.contains('/') {
            return;
        }
        let labels = TargetLabels { target: standing.target.clone() };
        if let Some(places) = standing.places {
            self.places.get_or_create(&labels).set(places.into());
        }
        self.places_taken.get_or_create(&labels).set(standing.in_flight.into());
        #[expect(clippy::cast_precision_loss, reason = "at most some millions")]
        let balance = standing.retries.0 as f64 / 1000.0;
        self.retries.get_or_create(&labels).set(balance);
        for dimension in Dimension::ALL {
            let of_it = standing.rates.iter().filter(|(_, level)| level.dimension == dimension);
            if let Some(filled) = of_it.map(|(_, level)| level.filled()).max() {
                let labels = RateLabels { target: labels.target.clone(), rate: dimension.name() };
                self.filled.get_or_create(&labels).set(f64::from(filled) / 1000.0);
            }
        }
    }

    /// A 429 slowed a rate of a target.
    pub fn slowed(&self, target: &str, rate: &'static str) {
        self.slowed.get_or_create(&RateLabels { target: label(target), rate }).inc();
    }

    /// A target's budget had no retry.
    pub fn retry_refused(&self, target: &str, why: &'static str) {
        self.retries_refused.get_or_create(&WaitLabels { target: label(target), why }).inc();
    }

    /// A call waits for a limit of a target.
    pub fn waits(&self, target: &str, why: &'static str, wait: Duration) {
        let labels = WaitLabels { target: label(target), why };
        self.waited.get_or_create(&labels).inc_by(wait.as_secs_f64());
    }
}
