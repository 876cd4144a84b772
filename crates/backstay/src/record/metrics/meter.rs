//! What uneventful calls count, found once and kept: looking a counter up by its labels costs more
//! than counting, and takes a lock that all threads share.

use std::sync::OnceLock;
use std::time::Duration;

use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::histogram::Histogram;

/// Routes by which calls come to one target whose counters are kept. Those of more are looked up.
const MAX_ROUTES: usize = 4;

/// The counters of one target.
#[derive(Debug)]
pub struct TargetMeter {
    pub(super) replies: Counter,
    pub(super) input: Counter,
    pub(super) output: Counter,
    /// The first routes by which calls came.
    pub(super) routes: [OnceLock<RouteMeter>; MAX_ROUTES],
}

/// The counters of one route at one target.
#[derive(Debug)]
pub struct RouteMeter {
    pub(super) route: String,
    /// Replies of the target that were good.
    pub(super) good: Counter,
    /// Calls that were answered, by whichever target.
    pub(super) answered: Counter,
    /// Of all calls.
    pub(super) latency: Histogram,
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

    /// The counters of `route`; `find` looks them up. `None`: too many other routes lead here.
    pub fn of_route(&self, route: &str, find: impl Fn() -> RouteMeter) -> Option<&RouteMeter> {
        let kept = |slot: &'_ OnceLock<RouteMeter>| slot.get_or_init(&find).route == route;
        self.routes.iter().find(|slot| kept(slot)).and_then(OnceLock::get)
    }
}

impl RouteMeter {
    /// A reply was judged to be good.
    pub fn passed(&self) {
        self.good.inc();
    }

    /// A call was answered.
    pub(super) fn answered(&self, took: Duration) {
        self.answered.inc();
        self.latency.observe(took.as_secs_f64());
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use crate::record::{GOOD, Metrics, Outcome};

    #[test]
    fn kept_counters_and_looked_up_ones_are_the_same() {
        let metrics = Metrics::new();
        let target = metrics.target("main");
        let took = Duration::from_millis(3);
        for route in ["a", "b", "c", "d", "e", "a"] {
            metrics.began();
            if let Some(meter) = target.of_route(route, || metrics.route(route, "main")) {
                meter.passed();
                metrics.answered(meter, took);
            } else {
                assert_eq!(route, "e", "a fifth route is not kept");
                metrics.judged(route, "main", GOOD);
                metrics.ended(route, Outcome::Answered, "", took);
            }
        }
        metrics.judged("a", "main", GOOD);
        let text = metrics.text(|_| {});
        for line in [
            "backstay_calls_in_flight 0",
            "backstay_calls_total{route=\"a\",outcome=\"answered\",code=\"\"} 2",
            "backstay_calls_total{route=\"e\",outcome=\"answered\",code=\"\"} 1",
            "backstay_call_seconds_count{route=\"a\"} 2",
            "backstay_verdicts_total{route=\"a\",target=\"main\",status=\"ok\"} 3",
            "backstay_verdicts_total{route=\"b\",target=\"main\",status=\"ok\"} 1",
        ] {
            assert!(text.lines().any(|told| told == line), "{line} in\n{text}");
        }
    }
}
