//! What is counted of the limits of targets: places, rates, retries, and the waits for them.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use backstay_decide::extra::headroom::Receiver;
use backstay_decide::extra::{self, Thousandths};
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
    retry_cap: Family<TargetLabels, Gauge>,
    retries_taken: Family<TargetLabels, Gauge>,
    retries_allowed: Family<TargetLabels, Gauge>,
    fallback_places: Family<TargetLabels, Gauge>,
    fallback_places_taken: Family<TargetLabels, Gauge>,
    fallback_rate: Family<TargetLabels, Gauge<f64, AtomicU64>>,
    fallback_rate_filled: Family<TargetLabels, Gauge<f64, AtomicU64>>,
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
        self.register_levels(registry);
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

    /// What is told of budgets of retries and of the room for fallbacks.
    fn register_levels(&self, registry: &mut Registry) {
        let shares = [
            ("retry_balance", "Retries that a target's budget holds", &self.retries),
            ("fallback_rate", "How full fallbacks may make a target's rates", &self.fallback_rate),
            (
                "fallback_rate_filled",
                "How full a target's fullest rate is, of its emptiest key",
                &self.fallback_rate_filled,
            ),
        ];
        for (name, told, family) in shares {
            registry.register(name, told, family.clone());
        }
        let counts = [
            ("retry_cap", "The most retries that a target's budget holds", &self.retry_cap),
            ("retries_taken", "Retries of a target that are not over", &self.retries_taken),
            ("retries_allowed", "Retries that a target may get at once", &self.retries_allowed),
            (
                "fallback_places",
                "Calls that may fall back on a target at once now; absent: any number",
                &self.fallback_places,
            ),
            (
                "fallback_places_taken",
                "Calls that a target carries and that fell back on it",
                &self.fallback_places_taken,
            ),
        ];
        for (name, told, family) in counts {
            registry.register(name, told, family.clone());
        }
    }

    /// How the targets of the config stand now, in place of what was said before. What callers name
    /// themselves is left out: its number is theirs to choose.
    pub fn stand(&self, standings: &[Snapshot]) {
        self.clear();
        for standing in standings.iter().filter(|standing| !standing.target.contains('/')) {
            self.stands(standing);
        }
    }

    fn clear(&self) {
        self.filled.clear();
        for family in [&self.retries, &self.fallback_rate, &self.fallback_rate_filled] {
            family.clear();
        }
        for family in [
            &self.places,
            &self.places_taken,
            &self.retry_cap,
            &self.retries_taken,
            &self.retries_allowed,
            &self.fallback_places,
            &self.fallback_places_taken,
        ] {
            family.clear();
        }
    }

    fn stands(&self, standing: &Snapshot) {
        let labels = TargetLabels { target: standing.target.clone() };
        if let Some(places) = standing.places {
            self.places.get_or_create(&labels).set(places.into());
        }
        self.places_taken.get_or_create(&labels).set(standing.in_flight.into());
        self.retries_stand(&labels, &standing.retries);
        self.fallbacks_stand(&labels, &standing.headroom);
        for dimension in Dimension::ALL {
            let of_it = standing.rates.iter().filter(|(_, level)| level.dimension == dimension);
            if let Some(filled) = of_it.map(|(_, level)| level.filled()).max() {
                let labels = RateLabels { target: labels.target.clone(), rate: dimension.name() };
                self.filled.get_or_create(&labels).set(f64::from(filled) / 1000.0);
            }
        }
    }

    fn retries_stand(&self, labels: &TargetLabels, level: &extra::Level) {
        self.retries.get_or_create(labels).set(level.balance.wholes());
        self.retry_cap.get_or_create(labels).set(level.cap.into());
        self.retries_taken.get_or_create(labels).set(level.in_flight.into());
        self.retries_allowed.get_or_create(labels).set(level.allowed.into());
    }

    fn fallbacks_stand(&self, labels: &TargetLabels, receiver: &Receiver) {
        if let Some(places) = receiver.open_places() {
            self.fallback_places.get_or_create(labels).set(places.into());
        }
        self.fallback_places_taken.get_or_create(labels).set(receiver.fallbacks.into());
        let wholes = |thousandths: u32| Thousandths(thousandths.into()).wholes();
        self.fallback_rate.get_or_create(labels).set(wholes(receiver.open_rate()));
        self.fallback_rate_filled.get_or_create(labels).set(wholes(receiver.filled));
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

#[cfg(test)]
mod tests {
    use backstay_decide::pacing::{Level, Per, Unit};

    use super::*;
    use crate::record::Metrics;

    fn snapshot(target: &str) -> Snapshot {
        let dimension = Dimension { unit: Unit::Requests, per: Per::Minute };
        let rate =
            Level { dimension, limit: 60, rate: 48, burst: 10, most: 10, used: 5, factor: 1000 };
        Snapshot {
            target: target.to_owned(),
            in_flight: 1,
            bytes: 0,
            places: Some(4),
            usual_first_token: None,
            headroom: Receiver { places: 4, in_flight: 1, fallbacks: 0, filled: 0, kept: 100 },
            retries: extra::Level { balance: Thousandths(500), cap: 2, in_flight: 0, allowed: 1 },
            rates: vec![(0, rate)],
        }
    }

    fn levels(metrics: &Metrics, standings: &[Snapshot]) -> String {
        metrics.text(|metrics| metrics.limits().stand(standings))
    }

    #[test]
    fn what_is_gone_is_told_no_more() {
        let metrics = Metrics::new();
        let mut a = snapshot("a");
        let text = levels(&metrics, &[a.clone(), snapshot("b")]);
        for line in [
            "backstay_pace_filled{target=\"a\",rate=\"requests_per_minute\"} 0.5",
            "backstay_places{target=\"a\"} 4",
            "backstay_retry_balance{target=\"b\"} 0.5",
            "backstay_fallback_rate_filled{target=\"b\"} 0.0",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        a.rates.clear();
        a.places = None;
        let text = levels(&metrics, &[a]);
        assert!(!text.contains("pace_filled{") && !text.contains("backstay_places{"), "{text}");
        assert!(!text.contains("target=\"b\""), "{text}");
        assert!(text.contains("backstay_places_taken{target=\"a\"} 1"), "{text}");
    }

    #[test]
    fn two_scrapes_at_once_both_tell_everything() {
        let metrics = Metrics::new();
        let standings = [snapshot("a"), snapshot("b")];
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let text = levels(&metrics, &standings);
                        assert_eq!(text.matches("backstay_places_taken{").count(), 2, "{text}");
                    }
                });
            }
        });
    }
}
