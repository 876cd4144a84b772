//! Failures that other gateways were reported for, played to ours over sockets.
//!
//! The cases come from `../shared/cases/bug_reports.jsonl`: the exchanges a provider plays, and what
//! should come of them, by key. What each key means for us is in `Expected`'s methods; where our
//! answer differs on purpose, the reason stands there. Cases told in words only are in `scenarios`.

mod beside;
mod fields;
mod leaving;
pub(crate) mod played;
mod scenarios;
mod streams;

use std::time::Duration;

use backstay_wire::Dialect;
use serde_json::{Map, Value, json};

use crate::client::Seen;
use crate::shared::shared;
use crate::world::{HELLO, Setup, World, request};
use played::{Heard, Played};

const OPENAI: Dialect = Dialect::OpenaiChat;

/// Areas whose cases are about what happens to a call, not to a text.
const AREAS: [&str; 7] = [
    "retry_429",
    "fallback_routing",
    "circuit_breaker",
    "deadline_idempotency",
    "completion_status",
    "streaming_wire",
    "stream_guard",
];

/// A wait of the provider's that a test does not sit through: the call gets a deadline below it, and
/// has to tell the caller when to come back.
const LONG_WAIT: u64 = 3_000;

fn cases() -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(shared("cases/bug_reports.jsonl")?).expect("cases");
    Some(text.lines().map(|line| serde_json::from_str(line).expect("a case")).collect())
}

/// Areas without exchanges to play.
const OTHERS: [&str; 3] = ["cancellation", "rate_limit_accounting", "load_resource"];

/// Whether a case is about what happens to a call.
fn is_call(case: &Value) -> bool {
    AREAS.iter().chain(&OTHERS).any(|area| case["area"] == *area)
}

/// Whether a case has exchanges that are all there is to it.
fn is_played(case: &Value) -> bool {
    let whole = case["input"]["config"]["history_contains"].is_null();
    case["input_kind"] == "http" && whole && is_call(case)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reported_exchanges_come_out_as_they_should() {
    let Some(cases) = cases() else { return };
    let ours = |case: &&Value| is_played(case);
    let runs = cases
        .iter()
        .filter(ours)
        .map(|case| async move { Expected::of(case).problems(&Run::of(case).await) });
    let problems: Vec<String> =
        futures_util::future::join_all(runs).await.into_iter().flatten().collect();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

const OK: &str = r#"{"status": 200, "headers": {"content-type": "application/json"}, "body": {"choices": [
    {"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}}"#;

/// Long enough for a connection to count as idle.
const IDLE: Duration = Duration::from_millis(1_200);

const CUT: &str = r#"{"transport": "close_before_response"}"#;

/// Attempts told, and requests seen, of the calls one after the other.
async fn told_and_seen(exchanges: &[&str], calls: usize, idle: Duration) -> (Vec<usize>, usize) {
    let exchanges = exchanges.iter().map(|text| serde_json::from_str(text).expect("JSON"));
    let one = Played::start(exchanges.collect()).await;
    let world = Setup::new()
        .tables(&one.provider("one"))
        .target("p1", "one", &[])
        .route("route", &["p1"], "deadline = \"9s\"")
        .start()
        .await;
    let mut told = Vec::new();
    for call in 0..calls {
        if call > 0 {
            tokio::time::sleep(idle).await;
        }
        told.push(world.ask(OPENAI, &request(OPENAI, "route", HELLO)).await.attempts());
    }
    world.stop().await;
    (told, one.heard().len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_an_idle_connection_is_replaced_for_nothing_and_only_once_a_call() {
    let (new, idle, busy, twice, each) = tokio::join!(
        told_and_seen(&[CUT, OK], 1, IDLE),
        told_and_seen(&[OK, CUT, OK], 2, IDLE),
        told_and_seen(&[OK, CUT, OK], 2, Duration::ZERO),
        told_and_seen(&[OK, CUT, CUT, OK], 2, IDLE),
        told_and_seen(&[OK, CUT, OK, CUT, OK], 3, IDLE),
    );
    assert_eq!(new, (vec![2], 2), "a new connection that breaks is a failed attempt");
    assert_eq!(idle, (vec![1, 1], 3));
    assert_eq!(busy, (vec![1, 2], 3));
    assert_eq!(twice, (vec![1, 2], 4));
    assert_eq!(each, (vec![1, 1, 1], 5));
}

/// What came of a case.
struct Run {
    /// The caller's view.
    seen: Seen,
    /// Requests at the first target, at the second.
    first: Vec<Heard>,
    second: Vec<Heard>,
    /// A later call's, to the same route.
    later: Seen,
}

impl Run {
    async fn of(case: &Value) -> Self {
        let input = &case["input"];
        let exchanges = input["exchanges"].as_array().expect("exchanges");
        let route = |exchange: &&Value| exchange["route"] == "p2";
        let (mut second, mut first): (Vec<&Value>, Vec<&Value>) = exchanges.iter().partition(route);
        // A case of two targets that names none of them: both play the list.
        let backed = !second.is_empty()
            || input["routes"] == 2
            || input["config"]["routes"].is_array()
            || case["expected"]["fallback"] == true
            || case["expected"]["client_error_code"].is_string();
        if backed && second.is_empty() {
            second = if input["config"]["routes"].is_array() {
                first.clone()
            } else if first.len() == 2 && case["expected"]["attempts_listed"] == 2 {
                vec![first.pop().expect("the second")]
            } else {
                Vec::new()
            };
        }
        let healthy = json!({"status": 200, "headers": {"content-type": "application/json"},
            "body": {"id": "x", "object": "chat.completion", "model": "m", "choices": [{"index": 0,
                "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}});
        let warm = first.iter().any(|exchange| exchange["connection"] == "reused");
        if warm {
            first.insert(0, &healthy);
        }
        if second.is_empty() {
            second.push(&healthy);
        }
        if first.is_empty() {
            first = vec![&healthy];
        }
        play(case, (first, second), backed, warm).await
    }
}

async fn play(
    case: &Value,
    (first, second): (Vec<&Value>, Vec<&Value>),
    backed: bool,
    warm: bool,
) -> Run {
    let date = case["input"]["now"].as_str().map(http_date);
    let owned = |list: Vec<&Value>| {
        list.into_iter().map(|exchange| dated(exchange, date.as_deref())).collect()
    };
    let (one, two) = (Played::start(owned(first)).await, Played::start(owned(second)).await);
    let world = world(case, &one, &two, backed).await;
    let (mut body, mut before) = (request(OPENAI, "route", HELLO), 0);
    if let Some(cap) = case["input"]["exchanges"][0]["request"]["max_tokens"].as_u64() {
        body["max_tokens"] = json!(cap);
    }
    if warm {
        world.ask(OPENAI, &body).await;
        before = one.heard().len();
        tokio::time::sleep(IDLE).await;
    }
    let seen = world.ask(OPENAI, &body).await;
    let first = one.heard().split_off(before);
    let second = two.heard();
    let later = world.ask(OPENAI, &body).await;
    world.stop().await;
    Run { seen, first, second, later }
}

/// The exchange as a server says it whose clock stands at `date`.
fn dated(exchange: &Value, date: Option<&str>) -> Value {
    let mut exchange = exchange.clone();
    if let Some(date) = date {
        exchange["headers"]["date"] = json!(date);
    }
    exchange
}

/// A time as HTTP writes it.
fn http_date(time: &str) -> String {
    let time: jiff::Timestamp = time.parse().expect("a time");
    time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

async fn world(case: &Value, one: &Played, two: &Played, backed: bool) -> World {
    let config = &case["input"]["config"];
    let long = longest_wait(&case["expected"]) >= LONG_WAIT;
    let usual = if long { 1_500 } else { 9_000 };
    let deadline = config["deadline_ms"].as_u64().unwrap_or(usual);
    let attempts = config["max_attempts"].as_u64();
    let attempts = attempts.map_or(String::new(), |most| format!("max_attempts = {most}\n"));
    let tiers: &[&str] = if backed { &["p1", "p2"] } else { &["p1"] };
    let more = format!("deadline = \"{deadline}ms\"\n{attempts}");
    Setup::new()
        .tables(&one.provider("one"))
        .tables(&two.provider("two"))
        .target("p1", "one", &[])
        .target("p2", "two", &[])
        .route("route", tiers, &more)
        .start()
        .await
}

fn longest_wait(expected: &Value) -> u64 {
    let waits = expected["waits_ms"].as_array();
    waits.into_iter().flatten().filter_map(Value::as_u64).max().unwrap_or(0)
}

/// What should come of a case, key by key.
struct Expected<'a> {
    id: &'a str,
    keys: &'a Map<String, Value>,
}

impl<'a> Expected<'a> {
    fn of(case: &'a Value) -> Self {
        let keys = case["expected"].as_object().expect("expectations");
        Self { id: case["id"].as_str().expect("an id"), keys }
    }

    fn problems(&self, run: &Run) -> Vec<String> {
        let wrong = |(key, value): (&String, &Value)| {
            let problem = self.problem(key, value, run)?;
            let (seen, first, second) = (&run.seen, run.first.len(), run.second.len());
            Some(format!(
                "{} {key} {value}: {problem}; {} {} (requests {first}, {second})",
                self.id,
                seen.status,
                seen.text()
            ))
        };
        self.keys.iter().filter_map(wrong).collect()
    }

    /// Why one expectation does not hold.
    fn problem(&self, key: &str, value: &Value, run: &Run) -> Option<String> {
        let seen = &run.seen;
        let word = value.as_str().unwrap_or_default();
        let unless = |holds: bool, said: String| (!holds).then_some(said);
        let requests = |count: u64, wanted: &Value| {
            unless(Some(count) == wanted.as_u64(), format!("{count} requests"))
        };
        let sent = (run.first.len() + run.second.len()) as u64;
        match key {
            "final" => unless(
                u64::from(seen.status) == value.as_u64()? || is_told_to_wait(self.keys, seen),
                format!("status {}", seen.status),
            ),
            "waits_ms" => waits(value.as_array()?, run),
            // Whether the provider did the work is not known; a model call has no effect but its cost,
            // so a target that is alone is asked again (docs/decisions/0003).
            "same_route_retries" if self.keys.get("outcome") == Some(&json!("unknown_outcome")) => {
                None
            }
            "same_route_retries" => retries(value.as_u64()?, run),
            "upstream_requests" | "total_attempts" => requests(sent, value),
            "upstream_calls" => {
                unless(sent <= word.strip_prefix("<=")?.parse().ok()?, sent.to_string())
            }
            "attempts_counted" => counted(value.as_u64()?, run),
            "fallback" => unless(seen.header("x-backstay-target") == "p2", "no fallback".into()),
            "served_by" => unless(
                seen.header("x-backstay-target") == word,
                format!("served by {}", seen.header("x-backstay-target")),
            ),
            "error_class" => error_class(word, run),
            "outcome" => outcome(word, run),
            "action" => unless(
                seen.status == 200 || is_told_to_wait(self.keys, seen),
                "neither an answer nor a time to come back".into(),
            ),
            // The key is the operator's, so the caller is not told 401, which would say that its own
            // key is wrong (docs/decisions/0003).
            "final_status" if word.is_empty() && *value == json!(401) => {
                let ours = seen.header("x-backstay-code");
                unless((seen.status, ours) == (502, "provider_auth"), ours.into())
            }
            "client_error_code" => unless(code(seen) == word, code(seen)),
            "attempts_listed" => {
                unless(seen.attempts() as u64 == value.as_u64()?, "not listed".into())
            }
            // A second call still goes to the target: nothing rests.
            "breaker" => unless(run.later.attempts() > 0, "the target rests".into()),
            "retry_same" => unless(run.first.len() == 1, "asked again".into()),
            "retryable" => {
                unless(run.first.len() > 1 || !run.second.is_empty(), "not tried again".into())
            }
            "status_to_client" => unless(
                Some(u64::from(seen.status)) == value.as_u64(),
                format!("status {}", seen.status),
            ),
            field if fields::is_left_out(field) => None,
            other => Some(format!("an expectation this test does not know: {other}")),
        }
    }
}

/// Requests to the same target after the first one.
fn retries(wanted: u64, run: &Run) -> Option<String> {
    let count = run.first.len().saturating_sub(1) as u64;
    (count != wanted).then(|| format!("{count} retries"))
}

/// A call whose wait is over its deadline ends with a time to come back.
fn is_told_to_wait(keys: &Map<String, Value>, seen: &Seen) -> bool {
    let long = longest_wait(&Value::Object(keys.clone()));
    let told: u64 = seen.header("retry-after").parse().unwrap_or(0);
    let wanted = (long / 1_000).min(60);
    seen.status == 429 && told > 0 && (long == 0 || told.abs_diff(wanted) <= 1)
}

fn waits(wanted: &[Value], run: &Run) -> Option<String> {
    if wanted.iter().filter_map(Value::as_u64).any(|wait| wait >= LONG_WAIT) {
        let keys = json!({"waits_ms": wanted});
        return (!is_told_to_wait(keys.as_object()?, &run.seen))
            .then(|| "no time to come back".to_owned());
    }
    for (index, wait) in wanted.iter().enumerate() {
        let (Some(before), Some(after)) = (run.first.get(index), run.first.get(index + 1)) else {
            return Some(format!("{} requests", run.first.len()));
        };
        let (took, least) = (after.at - before.at, wait.as_u64().unwrap_or(0));
        let least = Duration::from_millis(least);
        if took < least || took > least.mul_f64(1.1) + Duration::from_millis(1_300) {
            return Some(format!("waited {took:?}"));
        }
    }
    None
}

/// A closed connection that was waiting in the pool is replaced without being told as an attempt.
fn counted(wanted: u64, run: &Run) -> Option<String> {
    let (told, reused) = (run.seen.attempts() as u64, run.first.first()?.before > 0);
    (told != wanted || !reused).then(|| format!("{told} attempts, reused: {reused}"))
}

fn error_class(word: &str, run: &Run) -> Option<String> {
    let ours = match word {
        "quota_exhausted" => "provider_quota_exhausted",
        "rate_limit" => "provider_rate_limited",
        "content_filter" => "content_policy",
        "context_length" => "context_exceeded",
        other => other,
    };
    // Where the call was answered in the end, the class shows in what was done on the way.
    let told = run.seen.header("x-backstay-code").to_owned();
    (told != ours && run.seen.status != 200).then_some(told)
}

fn outcome(word: &str, run: &Run) -> Option<String> {
    let (seen, text) = (&run.seen, run.seen.json());
    let told = seen.header("x-backstay-outcome");
    let holds = match word {
        // Handed on with the provider's reason, and never repeated (docs/decisions/0009).
        "refusal" => told == "refused" && run.first.len() == 1,
        // Cut at a cap nobody here set: not resent unchanged (docs/decisions/0011).
        "budget_spent_on_reasoning" | "length" => {
            text["choices"][0]["finish_reason"] == "length" && run.first.len() == 1
        }
        "empty_answer" => seen.header("x-backstay-code") == "reply_empty",
        "unknown_outcome" => seen.status == 200,
        _ => false,
    };
    (!holds).then(|| format!("outcome {told}"))
}

fn code(seen: &Seen) -> String {
    seen.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
}
