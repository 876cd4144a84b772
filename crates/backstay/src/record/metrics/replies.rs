//! What is counted of replies that were judged, mended, or not as their dialect has them.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::{Metrics, TargetLabels, label};

/// The status of a reply that passed every check.
pub const GOOD: &str = "ok";

/// What is counted of replies.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplyMeters {
    verdicts: Family<VerdictLabels, Counter>,
    edits: Family<EditLabels, Counter>,
    unknown: Family<TargetLabels, Counter>,
    quirks: Family<QuirkLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabels {
    route: String,
    target: String,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QuirkLabels {
    target: String,
    quirk: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EditLabels {
    kind: &'static str,
    target: String,
    model: String,
}

impl ReplyMeters {
    pub(super) fn register(&self, registry: &mut Registry) {
        let verdicts = "Replies judged, by route, target and status";
        registry.register("verdicts", verdicts, self.verdicts.clone());
        let edits = "Edits made to replies, by kind, target and the provider's model";
        registry.register("edits", edits, self.edits.clone());
        let unknown = "Elements of replies this version does not know";
        registry.register("unknown_elements", unknown, self.unknown.clone());
        let quirks = "Replies put right that were not as their dialect has it, by kind";
        registry.register("quirks", quirks, self.quirks.clone());
    }

    /// Counts the replies of `target` to calls of `route` that were judged so.
    pub(super) fn judged(&self, route: &str, target: &str, status: &'static str) -> Counter {
        let labels = VerdictLabels { route: route.into(), target: label(target), status };
        self.verdicts.get_or_create(&labels).clone()
    }
}

impl Metrics {
    /// A reply was judged.
    pub fn judged(&self, route: &str, target: &str, status: &'static str) {
        self.replies.judged(route, target, status).inc();
    }

    /// A reply was handed on with `count` edits of a kind. `model` is the provider's name of it;
    /// empty where the caller named it.
    pub fn edited(&self, kind: &'static str, count: u32, target: &str, model: &str) {
        let labels = EditLabels { kind, target: label(target), model: model.into() };
        self.replies.edits.get_or_create(&labels).inc_by(count.into());
    }

    /// A reply was not as its dialect has it, and was put right.
    pub fn quirk(&self, target: &str, quirk: &'static str) {
        self.replies.quirks.get_or_create(&QuirkLabels { target: label(target), quirk }).inc();
    }

    /// A reply held `count` elements not known here.
    pub fn unknown(&self, target: &str, count: u64) {
        self.replies.unknown.get_or_create(&TargetLabels { target: label(target) }).inc_by(count);
    }
}
