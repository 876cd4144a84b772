//! The numbers at `/metrics`, in the Prometheus text format.
//!
//! Labels are routes, targets, codes and outcomes: from config or from closed vocabularies, so that
//! their number is bounded. A target that a caller names itself (`provider/model`) is counted as
//! `provider/*`.

mod beside;
mod limits;
mod queue;
mod spend;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use backstay_decide::breaker::Turn;
use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::Outcome;
use crate::operator::TargetView;
pub use beside::BesideMeters;
pub use limits::LimitMeters;
pub use spend::SpendMeters;
pub use streams::StreamMeters;

/// Bounds of latency buckets, in seconds: a cache hit to a long generation.
const SECONDS: [f64; 13] =
    [0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0];

/// Counters and histograms of one engine.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    calls: Family<CallLabels, Counter>,
    latency: Family<RouteLabels, Histogram, fn() -> Histogram>,
    attempts: Family<AttemptLabels, Counter>,
    first_token: Family<TargetLabels, Histogram, fn() -> Histogram>,
    verdicts: Family<VerdictLabels, Counter>,
    tokens: Family<TokenLabels, Counter>,
    edits: Family<EditLabels, Counter>,
    unknown: Family<TargetLabels, Counter>,
    quirks: Family<QuirkLabels, Counter>,
    in_flight: Gauge,
    open: Family<PlaneLabels, Gauge>,
    turns: Family<TurnLabels, Counter>,
    states: Family<StateLabels, Gauge>,
    state_seconds: Family<StateLabels, Gauge>,
    modes: Family<ModeLabels, Gauge>,
    orders: Family<ModeLabels, Counter>,
    limits: LimitMeters,
    streams: StreamMeters,
    alerts: Family<AlertLabels, Counter>,
    shadow: Family<WatchLabels, Counter>,
    rescues: Family<RescueLabels, Counter>,
    beside: BesideMeters,
    waiting: Family<ClassLabels, Gauge>,
    wait: Family<ClassLabels, Histogram, fn() -> Histogram>,
    left: Family<LeftLabels, Counter>,
    seats: Gauge,
    spend: SpendMeters,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CallLabels {
    route: String,
    outcome: &'static str,
    code: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AttemptLabels {
    target: String,
    fault: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TargetLabels {
    target: String,
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
struct WatchLabels {
    route: String,
    would: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RescueLabels {
    route: String,
    way: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct AlertLabels {
    kind: &'static str,
    fate: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModeLabels {
    target: String,
    mode: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerdictLabels {
    route: String,
    target: String,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TokenLabels {
    target: String,
    direction: &'static str,
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ClassLabels {
    class: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LeftLabels {
    class: String,
    why: &'static str,
}

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
}

/// What an uneventful call counts at its target, found once and kept: looking a counter up by its
/// labels costs more than counting.
#[derive(Debug)]
pub struct TargetMeter {
    replies: Counter,
    input: Counter,
    output: Counter,
}

impl TargetMeter {
    /// An attempt ended with a reply worth judging.
    pub fn replied(&self) {
        self.replies.inc();
    }

    /// The provider reported tokens.
    pub fn tokens(&self, input: u64, output: u64) {
        self.input.inc_by(input);
        self.output.inc_by(output);
    }
}

/// The label of a target: its name, but `provider/*` where a caller named the model.
fn label(target: &str) -> String {
    match target.split_once('/') {
        Some((provider, _)) => format!("{provider}/*"),
        None => target.to_owned(),
    }
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Self {
        let metrics = Self {
            registry: Arc::new(Mutex::new(Registry::with_prefix("backstay"))),
            calls: Family::default(),
            latency: Family::new_with_constructor(seconds),
            attempts: Family::default(),
            first_token: Family::new_with_constructor(seconds),
            verdicts: Family::default(),
            tokens: Family::default(),
            edits: Family::default(),
            unknown: Family::default(),
            quirks: Family::default(),
            in_flight: Gauge::default(),
            open: Family::default(),
            turns: Family::default(),
            states: Family::default(),
            state_seconds: Family::default(),
            modes: Family::default(),
            orders: Family::default(),
            limits: LimitMeters::default(),
            streams: StreamMeters::default(),
            alerts: Family::default(),
            shadow: Family::default(),
            rescues: Family::default(),
            beside: BesideMeters::default(),
            waiting: Family::default(),
            wait: Family::new_with_constructor(seconds),
            left: Family::default(),
            seats: Gauge::default(),
            spend: SpendMeters::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&self) {
        let mut registry = self.registry.lock();
        self.limits.register(&mut registry);
        self.streams.register(&mut registry);
        self.register_queue(&mut registry);
        self.spend.register(&mut registry);
        self.beside.register(&mut registry);
        registry.register("calls", "Calls ended, by route, outcome and code", self.calls.clone());
        registry.register(
            "call_seconds",
            "Time from a call's arrival to its last byte",
            self.latency.clone(),
        );
        registry.register(
            "attempts",
            "Requests to providers, by target and fault (empty: a reply)",
            self.attempts.clone(),
        );
        registry.register(
            "first_token_seconds",
            "Time from sending to the first content of a stream",
            self.first_token.clone(),
        );
        registry.register(
            "verdicts",
            "Replies judged, by route, target and status",
            self.verdicts.clone(),
        );
        registry.register(
            "edits",
            "Edits made to replies, by kind, target and the provider's model",
            self.edits.clone(),
        );
        registry.register("tokens", "Tokens providers reported", self.tokens.clone());
        registry.register(
            "unknown_elements",
            "Elements of replies this version does not know",
            self.unknown.clone(),
        );
        registry.register(
            "quirks",
            "Replies put right that were not as their dialect has it, by kind",
            self.quirks.clone(),
        );
        registry.register("calls_in_flight", "Calls not yet ended", self.in_flight.clone());
        registry.register(
            "breaker_open",
            "Breakers of a target that keep calls away, by plane",
            self.open.clone(),
        );
        registry.register("breaker_changes", "Changes of breakers, by plane", self.turns.clone());
        registry.register(
            "breaker_state",
            "Breakers of a target in each state, by plane",
            self.states.clone(),
        );
        registry.register(
            "breaker_state_seconds",
            "How long a breaker of a target has been in its state; the longest, by plane",
            self.state_seconds.clone(),
        );
        registry.register("target_mode", "The mode of a target's breakers", self.modes.clone());
        registry.register("shadow", "Calls only watched, by what would be", self.shadow.clone());
        registry.register(
            "rescues",
            "Streams that broke after their release and were to go on, by how and what came of it",
            self.rescues.clone(),
        );
        registry.register("alerts", "Alerts, by what became of them", self.alerts.clone());
        registry.register("orders", "Modes ordered by an operator", self.orders.clone());
    }

    fn register_queue(&self, registry: &mut Registry) {
        registry.register("queue_waiting", "Calls that wait for a seat", self.waiting.clone());
        registry.register(
            "queue_wait_seconds",
            "How long calls waited that had to wait for a seat",
            self.wait.clone(),
        );
        registry.register("queue_left", "Calls that got no seat, by the reason", self.left.clone());
        registry.register("seats_taken", "Calls that have a seat", self.seats.clone());
    }

    /// What is counted of the limits of targets.
    pub fn limits(&self) -> &LimitMeters {
        &self.limits
    }

    /// What is told of the parts beside the calls.
    pub fn beside(&self) -> &BesideMeters {
        &self.beside
    }

    /// What callers' keys spend.
    pub fn spend(&self) -> &SpendMeters {
        &self.spend
    }

    /// What is counted of streams and guards.
    pub fn streams(&self) -> &StreamMeters {
        &self.streams
    }

    /// A call began.
    pub fn began(&self) {
        self.in_flight.inc();
    }

    /// A call ended. `code` is empty for an answer.
    pub fn ended(&self, route: &str, outcome: Outcome, code: &str, took: Duration) {
        self.in_flight.dec();
        let labels = CallLabels { route: route.into(), outcome: outcome.word(), code: code.into() };
        self.calls.get_or_create(&labels).inc();
        let route = RouteLabels { route: route.into() };
        self.latency.get_or_create(&route).observe(took.as_secs_f64());
    }

    /// A request was refused before a call began: broken, unknown, late, or one too many.
    pub fn refused(&self, code: &str) {
        let labels =
            CallLabels { route: "none".into(), outcome: Outcome::Failed.word(), code: code.into() };
        self.calls.get_or_create(&labels).inc();
    }

    /// The counters of `target`; those of `provider/*` are shared.
    pub fn target(&self, target: &str) -> TargetMeter {
        let target = label(target);
        let tokens = |direction| {
            let labels = TokenLabels { target: target.clone(), direction };
            self.tokens.get_or_create(&labels).clone()
        };
        let replies = AttemptLabels { target: target.clone(), fault: "" };
        TargetMeter {
            replies: self.attempts.get_or_create(&replies).clone(),
            input: tokens("input"),
            output: tokens("output"),
        }
    }

    /// An attempt ended with `fault`.
    pub fn attempted(&self, target: &str, fault: &'static str) {
        self.attempts.get_or_create(&AttemptLabels { target: label(target), fault }).inc();
    }

    /// The first content of a stream came.
    pub fn first_token(&self, target: &str, took: Duration) {
        let labels = TargetLabels { target: label(target) };
        self.first_token.get_or_create(&labels).observe(took.as_secs_f64());
    }

    /// A reply was judged.
    pub fn judged(&self, route: &str, target: &str, status: &'static str) {
        let labels = VerdictLabels { route: route.into(), target: label(target), status };
        self.verdicts.get_or_create(&labels).inc();
    }

    /// A reply was handed on with `count` edits of a kind. `model` is the provider's name of it;
    /// empty where the caller named it.
    pub fn edited(&self, kind: &'static str, count: u32, target: &str, model: &str) {
        let labels = EditLabels { kind, target: label(target), model: model.into() };
        self.edits.get_or_create(&labels).inc_by(count.into());
    }

    /// A reply was not as its dialect has it, and was put right.
    pub fn quirk(&self, target: &str, quirk: &'static str) {
        self.quirks.get_or_create(&QuirkLabels { target: label(target), quirk }).inc();
    }

    /// A reply held `count` elements not known here.
    pub fn unknown(&self, target: &str, count: u64) {
        self.unknown.get_or_create(&TargetLabels { target: label(target) }).inc_by(count);
    }

    /// A breaker of a target changed, and so many of its plane keep calls away now.
    pub fn breaker(&self, target: &str, turn: &Turn, shut: usize) {
        let (target, plane) = (label(target), turn.plane.name());
        let open = PlaneLabels { target: target.clone(), plane };
        self.open.get_or_create(&open).set(i64::try_from(shut).unwrap_or(i64::MAX));
        let ((from, to), cause) = (turn.change.ends(), turn.change.cause());
        self.turns.get_or_create(&TurnLabels { target, plane, from, to, cause }).inc();
    }

    /// An operator ordered a mode for a target; `normal`: the config's again.
    pub fn ordered(&self, target: &str, mode: &'static str) {
        self.orders.get_or_create(&ModeLabels { target: label(target), mode }).inc();
    }

    /// What would have become of a call on a route that only watches.
    pub fn watched(&self, route: &str, would: &'static str) {
        self.shadow.get_or_create(&WatchLabels { route: route.into(), would }).inc();
    }

    /// What came of a stream that was to go on after it broke.
    pub fn rescued(&self, route: &str, way: &'static str, result: &'static str) {
        self.rescues.get_or_create(&RescueLabels { route: route.into(), way, result }).inc();
    }

    /// What became of an alert: `told`, `kept_back`, `delivered` or `dropped`.
    pub fn alerted(&self, kind: &'static str, fate: &'static str) {
        self.alerts.get_or_create(&AlertLabels { kind, fate }).inc();
    }

    /// How the breakers of targets stand now, in place of what was said before.
    pub fn breakers_stand(&self, targets: &[TargetView]) {
        self.states.clear();
        self.state_seconds.clear();
        self.modes.clear();
        for view in targets {
            let target = label(&view.target);
            let mode = ModeLabels { target: target.clone(), mode: view.mode };
            self.modes.get_or_create(&mode).set(1);
            for breaker in &view.breakers {
                let (plane, state) = (breaker.plane, breaker.state);
                let labels = StateLabels { target: target.clone(), plane, state };
                self.states.get_or_create(&labels).inc();
                let lasts = i64::try_from(breaker.state_seconds).unwrap_or(i64::MAX);
                let longest = self.state_seconds.get_or_create(&labels);
                longest.set(longest.get().max(lasts));
            }
        }
    }

    /// Everything as text, once `stand` has said how things stand now. One at a time: what stands is
    /// taken away and said anew.
    pub fn text(&self, stand: impl FnOnce(&Self)) -> String {
        let registry = self.registry.lock();
        stand(self);
        let mut text = String::new();
        if encode(&mut text, &registry).is_err() {
            tracing::error!("metrics could not be written");
        }
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}
