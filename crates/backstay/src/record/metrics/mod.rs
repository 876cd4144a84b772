//! The numbers at `/metrics`, in the Prometheus text format.
//!
//! Labels are routes, targets, codes and outcomes: from config or from closed vocabularies, so that
//! their number is bounded. A target that a caller names itself (`provider/model`) is counted as
//! `provider/*`.

mod beside;
mod breakers;
mod limits;
mod meter;
mod queue;
mod replies;
mod spend;
mod streams;

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use super::Outcome;
pub use beside::BesideMeters;
use breakers::BreakerMeters;
pub use limits::LimitMeters;
pub use meter::{RouteMeter, TargetMeter};
use queue::QueueMeters;
pub use replies::GOOD;
use replies::ReplyMeters;
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
    tokens: Family<TokenLabels, Counter>,
    in_flight: Gauge,
    limits: LimitMeters,
    streams: StreamMeters,
    alerts: Family<AlertLabels, Counter>,
    shadow: Family<WatchLabels, Counter>,
    rescues: Family<RescueLabels, Counter>,
    beside: BesideMeters,
    breakers: BreakerMeters,
    replies: ReplyMeters,
    queue: QueueMeters,
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
struct TokenLabels {
    target: String,
    direction: &'static str,
}

fn seconds() -> Histogram {
    Histogram::new(SECONDS)
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
            tokens: Family::default(),
            in_flight: Gauge::default(),
            limits: LimitMeters::default(),
            streams: StreamMeters::default(),
            alerts: Family::default(),
            shadow: Family::default(),
            rescues: Family::default(),
            beside: BesideMeters::default(),
            breakers: BreakerMeters::default(),
            replies: ReplyMeters::default(),
            queue: QueueMeters::default(),
            spend: SpendMeters::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&self) {
        let mut registry = self.registry.lock();
        self.limits.register(&mut registry);
        self.streams.register(&mut registry);
        self.queue.register(&mut registry);
        self.spend.register(&mut registry);
        self.beside.register(&mut registry);
        self.replies.register(&mut registry);
        self.breakers.register(&mut registry);
        registry.register("calls", "Calls ended, by route, outcome and code", self.calls.clone());
        let latency = "Time from a call's arrival to its last byte";
        registry.register("call_seconds", latency, self.latency.clone());
        let attempts = "Requests to providers, by target and fault (empty: a reply)";
        registry.register("attempts", attempts, self.attempts.clone());
        let first_token = "Time from sending to the first content of a stream";
        registry.register("first_token_seconds", first_token, self.first_token.clone());
        registry.register("tokens", "Tokens providers reported", self.tokens.clone());
        registry.register("calls_in_flight", "Calls not yet ended", self.in_flight.clone());
        registry.register("shadow", "Calls only watched, by what would be", self.shadow.clone());
        let rescues =
            "Streams that broke after their release and were to go on, by how and what came of it";
        registry.register("rescues", rescues, self.rescues.clone());
        registry.register("alerts", "Alerts, by what became of them", self.alerts.clone());
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

    /// As [`Metrics::ended`], of a call that was answered, by counters that were found before.
    pub fn answered(&self, meter: &RouteMeter, took: Duration) {
        self.in_flight.dec();
        meter.answered(took);
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
            routes: Default::default(),
        }
    }

    /// The counters of `route` at the target named `target`.
    pub fn route(&self, route: &str, target: &str) -> RouteMeter {
        let (route, outcome) = (route.to_owned(), Outcome::Answered.word());
        let calls = CallLabels { route: route.clone(), outcome, code: String::new() };
        let latency = RouteLabels { route: route.clone() };
        RouteMeter {
            good: self.replies.judged(&route, target, GOOD),
            answered: self.calls.get_or_create(&calls).clone(),
            latency: self.latency.get_or_create(&latency).clone(),
            route,
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
