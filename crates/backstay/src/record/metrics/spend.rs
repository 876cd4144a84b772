//! What callers' keys spend of their limits a day.

use std::sync::atomic::AtomicU64;

use backstay_decide::spend::{Amount, Level};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::admit::spend::Spending;

/// What is told of what callers' keys spend.
#[derive(Clone, Debug, Default)]
pub struct SpendMeters {
    ratio: Family<KeyLabels, Gauge<f64, AtomicU64>>,
    used: Family<UnitLabels, Gauge<f64, AtomicU64>>,
    limit: Family<UnitLabels, Gauge<f64, AtomicU64>>,
    reserved: Family<UnitLabels, Gauge<f64, AtomicU64>>,
    estimated: Family<UnitLabels, Gauge<f64, AtomicU64>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KeyLabels {
    key: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct UnitLabels {
    key: String,
    unit: &'static str,
}

impl SpendMeters {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "spend_ratio",
            "What a key spent of its limit a day, by the limit that is nearer",
            self.ratio.clone(),
        );
        let units = [
            ("spend_used", "What a key spent today", &self.used),
            ("spend_limit", "What a key may spend a day", &self.limit),
            ("spend_reserved", "What a key's calls under way may take", &self.reserved),
            ("spend_estimated", "Of what a key spent, what is an estimate", &self.estimated),
        ];
        for (name, told, family) in units {
            registry.register(name, told, family.clone());
        }
    }

    /// How every key with a limit stands now, in place of what was said before.
    pub fn stand(&self, keys: &[Spending]) {
        self.ratio.clear();
        for family in [&self.used, &self.limit, &self.reserved, &self.estimated] {
            family.clear();
        }
        for spending in keys {
            let key = &spending.key;
            self.ratio.get_or_create(&KeyLabels { key: key.clone() }).set(spending.share());
            spending.money.iter().for_each(|level| self.stands(key, level));
            spending.tokens.iter().for_each(|level| self.stands(key, level));
        }
    }

    fn stands<A: Amount>(&self, key: &str, level: &Level<A>) {
        let labels = UnitLabels { key: key.to_owned(), unit: A::UNIT };
        let set = |family: &Family<UnitLabels, Gauge<f64, AtomicU64>>, amount: A| {
            family.get_or_create(&labels).set(amount.units());
        };
        set(&self.used, level.total.at_least);
        set(&self.limit, level.limit);
        set(&self.reserved, level.total.held);
        set(&self.estimated, level.total.estimated);
    }
}
