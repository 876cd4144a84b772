//! A call may be dropped at any point, and then nothing is held for it: no seat, no place in the line,
//! no place or pass of a target, no more of its rates and of its key's day than was sent, and no connection to a
//! provider.
//!
//! Each behaviour is played again and again on a stopped clock; the call is dropped after its first
//! poll, then after its second, and so on until it lives to its end: once right after the poll, and
//! once when it was woken again and before it could see why.
#![expect(clippy::unwrap_used, reason = "a test says so by failing")]

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use backstay::admit::spend::Allowance;
use backstay::call::{self, Body};
use backstay::contract::{Ask, Caller};
use backstay::engine::Engine;
use backstay::policy::{
    LastResort, Pattern, Policy, Provider, Queueing, Route, StreamMode, Target, Tokens, Upstream,
};
use backstay::record::{CallLog, Row};
use backstay_decide::aimd::Bounds;
use backstay_decide::pacing::{Dimension, Per, Rate, Unit};
use backstay_mock::{End, Mock, Settings};
use backstay_wire::Dialect;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

/// No behaviour here takes more polls.
const MAX_POLLS: usize = 400;

/// Tokens that the key of the dropped call may spend in a day.
const ALLOWED: u64 = 10_000;

/// More than the request of a plain call takes, and less than all of what it reserves.
const MARGIN: u64 = 400;

/// What was there before the call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    /// Another call has the only seat, for two seconds.
    AllSeatsTaken,
    /// Another call has the only place at the target.
    AllPlacesTaken,
    /// Another call has the only place at the target, and one more waits for it.
    LineAtTarget,
    /// Five failures have opened the target's breaker.
    TargetRests,
    /// Two calls have used up the target's rate.
    RateUsedUp,
}

/// When the call is dropped, once it was polled as often as it may be.
#[derive(Clone, Copy, Debug)]
enum Drops {
    /// Right after the poll.
    AtOnce,
    /// When it was woken for the next one.
    Woken,
}

impl Before {
    /// What the target plays for the calls that came before, one each.
    fn steps(self) -> &'static [&'static str] {
        match self {
            Self::Nothing => &[],
            Self::AllSeatsTaken => &["slow-headers+wait=2s"],
            // Whoever is next for a place looks every few milliseconds: each look is a poll.
            Self::AllPlacesTaken => &["slow-headers+wait=300ms"],
            Self::LineAtTarget => &["slow-headers+wait=300ms"; 2],
            Self::TargetRests => &["status-500"; 5],
            Self::RateUsedUp => &["healthy"; 2],
        }
    }

    /// Whether those calls are still there when the call comes.
    fn stays(self) -> bool {
        matches!(self, Self::AllSeatsTaken | Self::AllPlacesTaken | Self::LineAtTarget)
    }
}

struct Behaviour {
    name: &'static str,
    before: Before,
    /// What the target plays, one step a call; the last for ever.
    steps: &'static [&'static str],
    /// What the second tier plays; none: there is no second tier.
    second: &'static [&'static str],
    set: fn(&mut Route),
    more: fn() -> Value,
}

const PLAIN: Behaviour = Behaviour {
    name: "plain",
    before: Before::Nothing,
    steps: &["slow-headers+wait=300ms"],
    second: &[],
    set: |_| {},
    more: || json!({}),
};

const SLOW_STREAM: &[&str] = &["healthy+n=6+gap=200ms"];

const BEHAVIOURS: &[Behaviour] = &[
    PLAIN,
    Behaviour { name: "gate", steps: SLOW_STREAM, more: streamed, ..PLAIN },
    Behaviour {
        name: "buffered",
        steps: SLOW_STREAM,
        set: |route| route.stream = Some(StreamMode::Buffered),
        more: streamed,
        ..PLAIN
    },
    Behaviour {
        name: "passthrough",
        steps: SLOW_STREAM,
        set: |route| route.stream = Some(StreamMode::Passthrough),
        more: streamed,
        ..PLAIN
    },
    Behaviour {
        name: "windowed",
        steps: &["healthy+n=6+gap=200ms+size=600"],
        set: |route| {
            route.stream = Some(StreamMode::Windowed);
            route.holding.window.tokens = Tokens(50);
        },
        more: streamed,
        ..PLAIN
    },
    Behaviour {
        name: "folded",
        steps: SLOW_STREAM,
        set: |route| route.upstream = Upstream::Stream,
        ..PLAIN
    },
    Behaviour { name: "tool call", steps: &["tool-call+gap=200ms"], more: tools, ..PLAIN },
    Behaviour { name: "re-ask", steps: &["wrong-schema", "healthy"], more: schema, ..PLAIN },
    Behaviour { name: "retry", steps: &["status-503", "healthy"], ..PLAIN },
    Behaviour { name: "told to wait", steps: &["status-429+after=2", "healthy"], ..PLAIN },
    Behaviour { name: "second tier", steps: &["status-500"], second: &["healthy"], ..PLAIN },
    Behaviour {
        name: "last resort",
        steps: &["quota-429"],
        set: |route| route.last_resort = Some(LastResort::Text("later".into())),
        ..PLAIN
    },
    Behaviour { name: "queue", before: Before::AllSeatsTaken, ..PLAIN },
    Behaviour { name: "full", before: Before::AllPlacesTaken, ..PLAIN },
    Behaviour { name: "line", before: Before::LineAtTarget, ..PLAIN },
    Behaviour { name: "test", before: Before::TargetRests, ..PLAIN },
    Behaviour { name: "paced", before: Before::RateUsedUp, ..PLAIN },
];

fn streamed() -> Value {
    json!({"stream": true})
}

fn tools() -> Value {
    let look = json!({"name": "look", "parameters": {"type": "object"}});
    json!({"stream": true, "tools": [{"type": "function", "function": look}]})
}

fn schema() -> Value {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}},
        "required": ["n"], "additionalProperties": false});
    json!({"response_format":
        {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}})
}

/// A mock and an engine before it: route `r` for the call that is dropped, `other` for those beside it.
struct World {
    mock: Mock,
    engine: Engine,
    others: JoinSet<Value>,
}

impl World {
    async fn of(behaviour: &Behaviour) -> Self {
        let mock = Mock::start(Settings::default()).await.unwrap();
        mock.script("one", &[behaviour.before.steps(), behaviour.steps].concat());
        mock.script("two", behaviour.second);
        let engine = Engine::new(policy(&mock, behaviour), CallLog::memory(100)).unwrap();
        let mut world = Self { mock, engine, others: JoinSet::new() };
        world.prepare(behaviour.before).await;
        world
    }

    async fn prepare(&mut self, before: Before) {
        for _ in before.steps() {
            self.others.spawn(ended(self.engine.clone(), self.ask("other", &json!({}))));
            if before.stays() {
                settle(|| self.mock.log().len() == 1).await;
            } else {
                self.others.join_next().await;
            }
        }
    }

    fn ask(&self, model: &str, more: &Value) -> Ask {
        let messages = json!([{"role": "user", "content": "Tell me about lighthouses."}]);
        let mut body = json!({"model": model, "max_tokens": 500, "messages": messages});
        for (key, value) in more.as_object().unwrap() {
            body[key] = value.clone();
        }
        Ask::new(Dialect::OpenaiChat, body.to_string(), self.engine.now())
    }

    /// As [`World::ask`], by a key that may spend so much.
    fn paid(&self, model: &str, more: &Value) -> Ask {
        let allowance = Allowance { money: None, tokens: Some(ALLOWED) };
        let caller = Caller { name: "app".into(), allowance, ..Caller::default() };
        Ask { caller: Some(Arc::new(caller)), ..self.ask(model, more) }
    }

    /// Tokens that the key has spent.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "of 0 to 10,000")]
    fn spent(&self) -> u64 {
        let text = self.engine.metrics_text();
        let line =
            text.lines().find_map(|line| line.strip_prefix("backstay_spend_ratio{key=\"app\"} "));
        let share: f64 = line.map_or(0.0, |share| share.parse().unwrap());
        (share * 10_000.0).ceil() as u64
    }

    /// Whether another call is answered within a minute.
    async fn answers(&self, model: &str, more: &Value) -> bool {
        let call = ended(self.engine.clone(), self.paid(model, more));
        let told = tokio::time::timeout(Duration::from_mins(1), Box::pin(call)).await;
        told.is_ok_and(|told| !told.is_null())
    }

    /// The row of the dropped call, and how many there are.
    fn rows(&self) -> (Option<Row>, u64) {
        let calls = self.engine.metrics_text();
        let calls =
            calls.lines().filter(|line| line.starts_with("backstay_calls_total{route=\"r\""));
        let count = calls.map(|line| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap());
        let row = self.engine.call_log().find("").unwrap().filter(|row| row.route == "r");
        (row, count.sum())
    }

    /// Requests at the first target's rate.
    fn booked(&self) -> u64 {
        let standings = self.engine.standings();
        let one = standings.iter().find(|standing| standing.target == "one");
        let rates = one.map(|one| one.rates.as_slice()).unwrap_or_default();
        let requests = rates.iter().find(|(_, level)| level.dimension == REQUESTS);
        requests.map_or(0, |(_, level)| level.used)
    }
}

const REQUESTS: Dimension = Dimension { unit: Unit::Requests, per: Per::Minute };

fn policy(mock: &Mock, behaviour: &Behaviour) -> Policy {
    let base: http::Uri = mock.openai_base().parse().unwrap();
    let provider = |name, base| Provider::at(name, Dialect::OpenaiChat, base, None);
    let mut policy = Policy::of([provider("p", base.clone()), provider("q", base)]);
    let plan = Engine::new(policy.clone(), CallLog::off()).unwrap().plan();
    let seats = match behaviour.before {
        Before::AllPlacesTaken => 2,
        Before::LineAtTarget => 3,
        _ => 1,
    };
    let limit = if behaviour.before == Before::RateUsedUp { 10 } else { 600 };
    policy.queue = Queueing { seats, ..Queueing::default() };
    let target = |id: &str| {
        let direct = plan.route(&format!("p/{id}")).unwrap().0;
        let mut target = Target::clone(&direct.tiers[0][0]);
        target.id = id.into();
        target.limits.places = Bounds { floor: 1, ceiling: 1, bytes: 1 << 20 };
        target.limits.rates = vec![Rate { dimension: REQUESTS, limit }];
        Arc::new(target)
    };
    let mut route = Route::clone(&plan.route("p/one").unwrap().0);
    route.tiers = vec![vec![target("one")]];
    route.max_attempts = 1;
    (route.name, route.pattern) = ("other".into(), Pattern("other".into()));
    policy.routes.push(Arc::new(route.clone()));
    route.max_attempts = 3;
    (route.name, route.pattern) = ("r".into(), Pattern("r".into()));
    if !behaviour.second.is_empty() {
        route.tiers.push(vec![target("two")]);
    }
    (behaviour.set)(&mut route);
    policy.routes.push(Arc::new(route));
    policy
}

/// The whole answer, whatever way it comes. `null`: there is none.
async fn ended(engine: Engine, ask: Ask) -> Value {
    match call::answer(&engine, ask).await.map(|answer| answer.body) {
        Ok(Body::Whole(bytes)) => serde_json::from_slice(&bytes).unwrap(),
        Ok(Body::Told(bytes)) => Value::from(String::from_utf8(bytes.to_vec()).unwrap()),
        Ok(Body::Live(live)) => {
            let bytes = live.collect().await.unwrap().to_bytes();
            Value::from(String::from_utf8(bytes.to_vec()).unwrap())
        }
        Err(_) => Value::Null,
    }
}

/// Waits until `done`, at most for 50 ms of the stopped clock: less than anything here takes.
async fn settle(done: impl Fn() -> bool) {
    for _ in 0..50 {
        // What is on the wire is not seen by the clock.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        if done() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Rings when the call is to be polled again.
#[derive(Default)]
struct Bell(Notify);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.notify_one();
    }
}

/// Polls `call` at most `most` times, each time that it is woken, and drops it. `Some`: it ended.
async fn polled<T>(call: impl Future<Output = T>, most: usize, drops: Drops) -> Option<T> {
    let mut call = pin!(call);
    let bell = Arc::new(Bell::default());
    let waker = Waker::from(Arc::clone(&bell));
    for poll in 1..=most {
        if let Poll::Ready(told) = call.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(told);
        }
        if poll == most && matches!(drops, Drops::AtOnce) {
            return None;
        }
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        bell.0.notified().await;
    }
    None
}

/// Plays `behaviour` and drops the call after `most` polls. Whether it ended before that.
async fn drop_after(behaviour: &Behaviour, most: usize, drops: Drops) -> bool {
    let at = format!("{}, dropped {drops:?} after poll {most}", behaviour.name);
    let mut world = World::of(behaviour).await;
    let call = ended(world.engine.clone(), world.paid("r", &(behaviour.more)()));
    let told = Box::pin(polled(call, most, drops)).await;

    let waiting = world.engine.line().report().count[0];
    assert_eq!(waiting, 0, "{at}: its place in the line is taken");
    let (row, count) = world.rows();
    if let Some(told) = told {
        assert!(!told.is_null(), "{at}: no answer: {row:?}");
        assert_eq!(count, 1, "{at}: rows of a call that ended");
        return true;
    }
    assert_eq!(count, u64::from(most > 0), "{at}: rows");
    let row = row.unwrap_or_default();
    let outcome = if most > 0 { "abandoned" } else { "" };
    assert_eq!(row.outcome.as_ref(), outcome, "{at}: {row:?}");
    let sent = u64::from(row.attempts) + behaviour.before.steps().len() as u64;
    assert!(world.booked() <= sent, "{at}: {} booked, {sent} sent", world.booked());
    assert!(row.attempts > 0 || world.spent() == 0, "{at}: {} spent", world.spent());

    world.others.abort_all();
    while world.others.join_next().await.is_some() {}
    settle(|| world.mock.log().iter().all(|entry| entry.end != End::Pending)).await;
    for entry in world.mock.log() {
        assert_ne!(entry.end, End::Pending, "{at}: its connection is open: {entry:?}");
    }
    for standing in world.engine.standings() {
        assert_eq!((standing.in_flight, standing.bytes), (0, 0), "{at}: {standing:?}");
    }
    let report = world.engine.line().report();
    assert_eq!((report.running, report.count[0]), (0, 0), "{at}: {report:?}");
    let metrics = world.engine.metrics_text();
    assert!(metrics.contains("backstay_calls_in_flight 0\n"), "{at}: {metrics}");

    // One seat, one place, one test at a time: what is still held would keep this one out.
    assert!(world.answers("r", &(behaviour.more)()).await, "{at}: the next call got no answer");
    // What is still reserved of the key's day would keep this one out.
    let all = json!({"max_tokens": ALLOWED - world.spent() - MARGIN});
    assert!(world.answers("q/healthy", &all).await, "{at}: more is reserved than was spent");
    world.mock.stop().await;
    false
}

async fn drop_after_every_poll(behaviour: &Behaviour) -> usize {
    let mut most = 0;
    for drops in [Drops::AtOnce, Drops::Woken] {
        let mut polls = 0;
        while !Box::pin(drop_after(behaviour, polls, drops)).await {
            polls += 1;
            assert!(polls < MAX_POLLS, "{}: no end after {polls} polls", behaviour.name);
        }
        most = most.max(polls);
    }
    most
}

#[test]
fn a_call_dropped_after_any_poll_holds_nothing() {
    for behaviour in BEHAVIOURS {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().start_paused(true).build().unwrap();
        let polls = runtime.block_on(drop_after_every_poll(behaviour));
        println!("{}: {polls} polls", behaviour.name);
        assert!(polls > 1, "{}: it never waited", behaviour.name);
    }
}
