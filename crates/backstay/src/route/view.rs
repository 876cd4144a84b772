//! What is known of targets, for an operator: plain values with units in their names, ready to be
//! written as JSON. Looking changes nothing.

use std::sync::Arc;
use std::time::Duration;

use backstay_decide::Moment;
use backstay_decide::aimd::Places;
use backstay_decide::breaker::{
    Breaker, KeyRest, Limits, Order, Plane, Planes, Rules, State, in_force,
};
use backstay_decide::latency::{Derived, Known, PromptSize, Source};
use serde::Serialize;

use super::TargetHealth;
use crate::clock::Clock;
use crate::contract::TEXT;
use crate::policy::{Route, Target};

/// A target at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct TargetView {
    /// Its name: of `[models.NAME]`, or `provider/model`.
    pub target: String,
    /// The model a caller asked for, where the target keeps the caller's word. Absent: it has a name
    /// of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_as: Option<String>,
    /// The provider's name in config.
    pub provider: String,
    /// The provider's name of the model. Absent: the caller's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The mode in force.
    pub mode: &'static str,
    /// Whose word that is: `config` or `operator`.
    pub mode_by: &'static str,
    /// When an operator gave it, in milliseconds since 1970 UTC. Absent: the config's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode_since_ms: Option<u64>,
    /// When it ends by itself. Absent: when it is taken back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode_until_ms: Option<u64>,
    /// Calls it carries.
    pub in_flight: u32,
    /// Calls it may carry at once now. Absent: any number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub places: Option<u32>,
    /// Until when it asked to be left alone. Absent: it did not, or that is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asked_until_ms: Option<u64>,
    /// Its keys that rest by themselves.
    pub resting_keys: Vec<KeyView>,
    /// Its breakers: availability, then one for each key, then one for each schema asked for.
    pub breakers: Vec<BreakerView>,
    /// The timers of the next attempt of each route that asks it, before they are cut to the deadline:
    /// one row for each size of prompt that was seen, or one for all.
    pub timers: Vec<TimerView>,
}

/// Timers at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct TimerView {
    /// The route's name.
    pub route: String,
    /// The size of prompt, by its most tokens: `1k`, `4k`, `16k`, `64k`, `over_64k`. Absent: any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<&'static str>,
    /// From the request to the first content.
    pub first_token_ms: u64,
    /// Where that comes from: `set`, `static` or `derived`.
    pub first_token_from: &'static str,
    /// Between two pieces of content.
    pub gap_ms: u64,
    /// Where that comes from.
    pub gap_from: &'static str,
    /// The whole attempt, of a call that brings no output cap of its own.
    pub total_ms: u64,
    /// Where that comes from.
    pub total_from: &'static str,
    /// What one first token in a hundred exceeds. Absent: not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_token_p99_ms: Option<u64>,
    /// A first content that comes later counts among the failures. Absent: none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slow_after_ms: Option<u64>,
}

/// A key that rests.
#[derive(Clone, Debug, Serialize)]
pub struct KeyView {
    /// Its place in `api_keys`, from 0.
    pub key: usize,
    /// Why: `throttled`, `quota` or `rejected`.
    pub why: &'static str,
    /// Until when, in milliseconds since 1970 UTC.
    pub until_ms: u64,
}

/// A breaker at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct BreakerView {
    /// `availability`, `throttling`, `quality` or `combined`.
    pub plane: &'static str,
    /// The key it is about, from 0. Absent: not about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<usize>,
    /// The schema it is about: the beginning of its hash. Absent: not about one, but about text or all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<String>,
    /// `closed`, `open`, `half_open` or `probation`.
    pub state: &'static str,
    /// Openings, half-openings and closings so far.
    pub epoch: u64,
    /// Since when it stands so, in milliseconds since 1970 UTC. Absent: from the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since_ms: Option<u64>,
    /// How long it has stood so.
    pub state_seconds: u64,
    /// When the rest or the probation ends, if nothing happens. Absent: not such a state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_ms: Option<u64>,
    /// The share of calls that go through in probation, 0 to 1. Absent: not on probation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The last change in words, with its numbers. Absent: there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_change: Option<String>,
    /// How far back the window looks.
    pub window_seconds: f64,
    /// Calls in it that were counted.
    pub calls: u32,
    /// Those among them that failed.
    pub failures: u32,
    /// Their share, 0 to 1. Absent: no call was counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_rate: Option<f64>,
    /// The calls its rate is judged by: those of the window, or the last ones where that holds too
    /// few. Absent, as the next: there are too few to judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judged_calls: Option<u32>,
    /// The rate that is surely exceeded by them: Wilson's lower bound, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surely_over: Option<f64>,
    /// The rate that opens it, if it is surely exceeded.
    pub allowed: f64,
    /// Hard failures in a row.
    pub failures_in_a_row: u32,
    /// Tests in flight.
    pub tests_in_flight: u32,
    /// Tests that brought content and that ended well, while half-open. Absent: not half-open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tests_passed: Option<[u32; 2]>,
}

/// The moment something is looked at, on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sight<'c> {
    clock: &'c Clock,
    /// The moment.
    pub now: Moment,
}

impl<'c> Sight<'c> {
    /// This moment.
    pub(crate) fn at(clock: &'c Clock) -> Self {
        Self { clock, now: clock.now() }
    }

    /// `moment` in milliseconds since 1970 UTC.
    pub(crate) fn wall_ms(&self, moment: Moment) -> u64 {
        let wall = self.clock.wall();
        let wall =
            wall.saturating_sub(self.now.since(moment)).saturating_add(self.now.until(moment));
        u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)
    }
}

/// What is known of `target`, which `routes` ask; a `health` it has not is one without history.
pub(crate) fn view(
    (target, routes): (&Target, &[Arc<Route>]),
    health: Option<&TargetHealth>,
    order: Option<Order>,
    sight: Sight<'_>,
) -> TargetView {
    let idle = Planes::new(target.keys());
    let rules = in_force(order.as_ref(), &target.breaker, sight.now);
    let ordered = order.filter(|order| order.holds(sight.now));
    let word = health.and_then(|health| health.word.clone());
    let mut state = health.map(|health| health.state.lock());
    let known = state.as_mut().map(|state| state.all_known(sight.now)).unwrap_or_default();
    let (planes, places) = match &state {
        Some(state) => (&state.planes, state.places),
        None => (&idle, Places::new()),
    };
    TargetView {
        target: target.id.clone(),
        asked_as: word,
        provider: target.provider.name.clone(),
        model: target.model.clone(),
        mode: rules.mode().name(),
        mode_by: if ordered.is_some() { "operator" } else { "config" },
        mode_since_ms: ordered.map(|order| sight.wall_ms(order.since)),
        mode_until_ms: ordered.and_then(|order| order.until).map(|until| sight.wall_ms(until)),
        in_flight: places.in_flight(),
        places: places.limit(&target.limits.places),
        asked_until_ms: asked_until(planes, &rules, sight),
        resting_keys: resting_keys(planes, sight),
        breakers: breakers(planes, &rules, sight),
        timers: timers((target, routes), &known, rules.limits(Plane::Availability)),
    }
}

/// The timers of each route that asks `target`, for each size of prompt of which something is known.
fn timers(
    (target, routes): (&Target, &[Arc<Route>]),
    known: &[(PromptSize, Known)],
    limits: &Limits,
) -> Vec<TimerView> {
    let nothing = [(None, Known::default())];
    let sizes = || known.iter().map(|(size, known)| (Some(size.name()), *known));
    let sizes = || if known.is_empty() { nothing.to_vec() } else { sizes().collect() };
    let asks =
        |route: &&Arc<Route>| route.tiers.iter().flatten().any(|asked| asked.id == target.id);
    let rows =
        routes.iter().filter(asks).flat_map(|route| sizes().into_iter().map(move |s| (route, s)));
    rows.map(|(route, (prompt, known))| timer_view(route, prompt, &known, limits)).collect()
}

fn timer_view(
    route: &Route,
    prompt: Option<&'static str>,
    known: &Known,
    limits: &Limits,
) -> TimerView {
    let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    // How long a connection may take is not shown.
    let derived = route.timeouts.derive(Duration::ZERO, known, route.max_output_tokens);
    let Derived { timers, from } = derived;
    let [first_token_from, gap_from, total_from] = from.map(Source::name);
    TimerView {
        route: route.name.clone(),
        prompt,
        first_token_ms: millis(timers.first_token),
        first_token_from,
        gap_ms: millis(timers.gap),
        gap_from,
        total_ms: millis(timers.total),
        total_from,
        first_token_p99_ms: known.first_token.map(millis),
        slow_after_ms: limits.slow.threshold(known).map(millis),
    }
}

fn asked_until(planes: &Planes, rules: &Rules, sight: Sight<'_>) -> Option<u64> {
    let first = planes.all(rules).next().map(|(_, breaker)| breaker.asked_until());
    first.filter(|until| *until > sight.now).map(|until| sight.wall_ms(until))
}

fn resting_keys(planes: &Planes, sight: Sight<'_>) -> Vec<KeyView> {
    let keys = planes.keys();
    let rest = |key| {
        let (until, why) = keys.rests(key, sight.now)?;
        let why = match why {
            KeyRest::Throttled => "throttled",
            KeyRest::Quota => "quota",
            KeyRest::Rejected => "rejected",
        };
        Some(KeyView { key, why, until_ms: sight.wall_ms(until) })
    };
    (0..keys.count()).filter_map(rest).collect()
}

/// Every breaker; those for keys only where the planes are kept apart.
fn breakers(planes: &Planes, rules: &Rules, sight: Sight<'_>) -> Vec<BreakerView> {
    let mut all = planes.all(rules).peekable();
    let combined = all.peek().is_some_and(|(plane, _)| *plane == Plane::Combined);
    all.filter(|(plane, _)| !combined || *plane == Plane::Combined)
        .map(|(plane, breaker)| breaker_view(plane, breaker, rules.limits(plane), sight))
        .collect()
}

fn breaker_view(plane: Plane, breaker: &Breaker, limits: &Limits, sight: Sight<'_>) -> BreakerView {
    let view = breaker.view(sight.now, limits);
    let since = Some(view.since).filter(|since| *since > Moment::ORIGIN);
    let (until, share) = match view.state {
        State::Open { until } => (Some(until), None),
        State::Probation { share, until } => (Some(until), Some(share)),
        State::Closed { .. } | State::HalfOpen { .. } => (None, None),
    };
    let seen = view.seen;
    let rate = f64::from(seen.failures) / f64::from(seen.calls.max(1));
    BreakerView {
        plane: plane.name(),
        key: match plane {
            Plane::Throttling { key } => Some(key),
            Plane::Availability | Plane::Quality { .. } | Plane::Combined => None,
        },
        schema: match plane {
            Plane::Quality { schema } => (schema != TEXT).then(|| format!("{schema:012x}")),
            Plane::Availability | Plane::Throttling { .. } | Plane::Combined => None,
        },
        state: view.state.name(),
        epoch: view.epoch,
        since_ms: since.map(|since| sight.wall_ms(since)),
        state_seconds: sight.now.since(view.since).as_secs(),
        until_ms: until.map(|until| sight.wall_ms(until)),
        share,
        last_change: view.last.map(|change| change.to_string()),
        window_seconds: limits.window.as_secs_f64(),
        calls: seen.calls,
        failures: seen.failures,
        error_rate: (seen.calls > 0).then(|| rounded(rate)),
        judged_calls: view.judged.map(|judged| judged.calls),
        surely_over: view.bound.map(rounded),
        allowed: view.allowed,
        failures_in_a_row: view.row,
        tests_in_flight: view.tests,
        tests_passed: match view.state {
            State::HalfOpen { started, finished, .. } => Some([started, finished]),
            State::Closed { .. } | State::Open { .. } | State::Probation { .. } => None,
        },
    }
}

/// With four digits after the point.
fn rounded(share: f64) -> f64 {
    (share * 10_000.0).round() / 10_000.0
}
