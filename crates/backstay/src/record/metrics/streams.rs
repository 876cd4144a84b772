//! What is counted of streams, and of what guards find in replies.

use backstay_decide::detectors::{Level, Signal};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;

use super::label;
use crate::attempt::Behind;
use crate::policy::StreamMode;
use crate::record::Outcome;

/// What is counted of streams, and of what guards find in replies.
#[derive(Clone, Debug, Default)]
pub struct StreamMeters {
    ended: Family<EndLabels, Counter>,
    found: Family<FoundLabels, Counter>,
    stopped: Family<StopLabels, Counter>,
    spared: Family<SparedLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndLabels {
    mode: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct FoundLabels {
    target: String,
    kind: &'static str,
    level: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StopLabels {
    target: String,
    why: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SparedLabels {
    target: String,
}

impl StreamMeters {
    pub(super) fn register(&self, registry: &mut Registry) {
        let ended = "Streamed calls ended, by mode and outcome";
        registry.register("streams", ended, self.ended.clone());
        let found = "What guards found in replies, by target, kind and level";
        registry.register("guard_signals", found, self.found.clone());
        let stopped = "Replies stopped behind their value, by target and what came there";
        registry.register("early_stops", stopped, self.stopped.clone());
        let spared = "Output tokens that this spared at most";
        registry.register("early_stop_spared_tokens", spared, self.spared.clone());
    }

    /// A reply of a target was stopped behind its value, and so many tokens spared at most.
    pub(crate) fn stopped(&self, target: &str, why: Behind, spared: u64) {
        let why = match why {
            Behind::More => "more",
            Behind::Silence => "silence",
        };
        self.stopped.get_or_create(&StopLabels { target: label(target), why }).inc();
        self.spared.get_or_create(&SparedLabels { target: label(target) }).inc_by(spared);
    }

    /// A call that its caller streamed has ended.
    pub fn ended(&self, mode: StreamMode, outcome: Outcome) {
        let labels = EndLabels { mode: mode.name(), outcome: outcome.word() };
        self.ended.get_or_create(&labels).inc();
    }

    /// A guard found something in a reply of a target.
    pub fn found(&self, target: &str, signal: &Signal) {
        let level = match signal.level {
            Level::Soft => "soft",
            Level::Hard => "hard",
        };
        let labels = FoundLabels { target: label(target), kind: signal.finding.code(), level };
        self.found.get_or_create(&labels).inc();
    }
}
