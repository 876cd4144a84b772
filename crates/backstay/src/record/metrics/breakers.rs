//! What is counted of the breakers of targets, and how they stand.

use backstay_decide::breaker::Turn;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use super::{Metrics, label};
use crate::operator::TargetView;

/// What is counted of the breakers of targets, and how they stand.
#[derive(Clone, Debug, Default)]
pub(super) struct BreakerMeters {
    open: Family<PlaneLabels, Gauge>,
    turns: Family<TurnLabels, Counter>,
    states: Family<StateLabels, Gauge>,
    state_seconds: Family<StateLabels, Gauge>,
    modes: Family<ModeLabels, Gauge>,
    orders: Family<ModeLabels, Counter>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PlaneLabels {
    target: String,
    plane: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TurnLabels {
    target: String,
    plane: &'static str,
    from: &'static str,
    to: &'static str,
    cause: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    target: String,
    plane: &'static str,
    state: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModeLabels {
    target: String,
    mode: &'static str,
}

impl BreakerMeters {
    pub(super) fn register(&self, registry: &mut Registry) {
        let open = "Breakers of a target that keep calls away, by plane";
        registry.register("breaker_open", open, self.open.clone());
        registry.register("breaker_changes", "Changes of breakers, by plane", self.turns.clone());
        let states = "Breakers of a target in each state, by plane";
        registry.register("breaker_state", states, self.states.clone());
        let seconds = "How long a breaker of a target has been in its state; the longest, by plane";
        registry.register("breaker_state_seconds", seconds, self.state_seconds.clone());
        registry.register("target_mode", "The mode of a target's breakers", self.modes.clone());
        registry.register("orders", "Modes ordered by an operator", self.orders.clone());
    }
}

impl Metrics {
    /// A breaker of a target changed, and so many of its plane keep calls away now.
    pub fn breaker(&self, target: &str, turn: &Turn, shut: usize) {
        let (target, plane) = (label(target), turn.plane.name());
        let open = PlaneLabels { target: target.clone(), plane };
        self.breakers.open.get_or_create(&open).set(i64::try_from(shut).unwrap_or(i64::MAX));
        let ((from, to), cause) = (turn.change.ends(), turn.change.cause());
        self.breakers.turns.get_or_create(&TurnLabels { target, plane, from, to, cause }).inc();
    }

    /// An operator ordered a mode for a target; `normal`: the config's again.
    pub fn ordered(&self, target: &str, mode: &'static str) {
        self.breakers.orders.get_or_create(&ModeLabels { target: label(target), mode }).inc();
    }

    /// How the breakers of targets stand now, in place of what was said before.
    pub fn breakers_stand(&self, targets: &[TargetView]) {
        self.breakers.states.clear();
        self.breakers.state_seconds.clear();
        self.breakers.modes.clear();
        for view in targets {
            let target = label(&view.target);
            let mode = ModeLabels { target: target.clone(), mode: view.mode };
            self.breakers.modes.get_or_create(&mode).set(1);
            for breaker in &view.breakers {
                let (plane, state) = (breaker.plane, breaker.state);
                let labels = StateLabels { target: target.clone(), plane, state };
                self.breakers.states.get_or_create(&labels).inc();
                let lasts = i64::try_from(breaker.state_seconds).unwrap_or(i64::MAX);
                let longest = self.breakers.state_seconds.get_or_create(&labels);
                longest.set(longest.get().max(lasts));
            }
        }
    }
}
