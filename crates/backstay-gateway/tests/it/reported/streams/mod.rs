//! Streams that other gateways were reported for, played to ours in every mode of handing one on.
//!
//! Each case goes to a caller of the provider's dialect and to one of the other, streamed and
//! whole, first with its target alone and then with a healthy one behind it: what broke after its
//! release ends in one typed error, and what broke before is rescued. What a key of an expectation
//! means for us is in `Checks`; where our answer differs on purpose, the reason stands there.

use std::time::Duration;

use backstay_wire::Dialect;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::cases;
use super::played::{Heard, Played};
use crate::client::{Line, PATIENCE, Seen};
use crate::told::{self, Told};
use crate::world::{HELLO, Setup, World, request, start};

/// The areas whose streams are played.
const AREAS: [&str; 2] = ["streaming_wire", "stream_guard"];

/// The longest wait of a caller that reads late: longer than any `gap` of a case.
const LATE: u64 = 3_000;

/// The longest a stream of many waits may take in all; longer ones are played faster.
const LONGEST: u64 = 6_000;

/// What the target behind the reported one says.
const RESCUED: &str = "from the second";

/// Cases at once: they wait more than they work.
const AT_ONCE: usize = 12;

/// Whether a case is a stream whose bytes are all there is to it.
pub(super) fn is_played(case: &Value) -> bool {
    let ours = AREAS.iter().any(|area| case["area"] == *area);
    let input = &case["input"];
    let has_steps = input["transport"].is_array() || input["routes"].is_array();
    ours && (case["input_kind"] == "text_stream" || case["input_kind"] == "sse" && has_steps)
}

/// How a caller gets the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Streamed, in this mode.
    Mode(&'static str),
    /// Whole, though the provider streams.
    Folded,
}

const WAYS: [Way; 3] = [Way::Mode("gate"), Way::Mode("buffered"), Way::Folded];

/// Whether a healthy target stands behind the reported ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    Nothing,
    Healthy,
}

/// One way to play a case.
#[derive(Clone, Copy, Debug)]
struct Setting {
    way: Way,
    caller: Dialect,
    behind: Behind,
}

fn settings(case: &Value) -> Vec<Setting> {
    let mut settings = Vec::new();
    for way in WAYS {
        for caller in [Dialect::OpenaiChat, Dialect::Anthropic] {
            settings.push(Setting { way, caller, behind: Behind::Nothing });
            if case["input"]["routes"].is_null() {
                settings.push(Setting { way, caller, behind: Behind::Healthy });
            }
        }
    }
    settings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reported_streams_come_out_as_they_should_in_every_mode() {
    let Some(cases) = cases() else { return };
    let cases: Vec<&Value> = cases.iter().filter(|case| is_played(case)).collect();
    let runs: Vec<(&Value, Setting)> = cases
        .iter()
        .flat_map(|case| settings(case).into_iter().map(move |setting| (*case, setting)))
        .collect();
    let played = runs.len();
    let problems: Vec<Vec<String>> = futures_util::stream::iter(runs)
        .map(|(case, setting)| async move { Checks::of(case, setting).problems().await })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let problems: Vec<String> = problems.into_iter().flatten().collect();
    println!("{} cases, {played} plays", cases.len());
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// A target of a case: its dialect and the exchange it plays for ever.
fn targets(case: &Value, behind: Behind) -> Vec<(Dialect, Value)> {
    let input = &case["input"];
    let mut targets: Vec<(Dialect, Value)> = match input["routes"].as_array() {
        Some(routes) => routes.iter().map(target).collect(),
        None if case["input_kind"] == "text_stream" => {
            vec![(Dialect::OpenaiChat, json!({"sse": said(input)}))]
        }
        None => vec![target(&json!({"sse": input}))],
    };
    let waits: u64 = steps(&targets[0].1).filter_map(|step| step["wait_ms"].as_u64()).sum();
    let is_endless = steps(&targets[0].1).any(|step| step["wait_ms"].as_u64() > Some(60_000));
    if waits > LONGEST && !is_endless {
        let faster = waits / LONGEST + 1;
        for step in targets[0].1["sse"]["transport"].as_array_mut().expect("steps") {
            if let Some(wait) = step["wait_ms"].as_u64() {
                step["wait_ms"] = json!(wait / faster);
            }
        }
    }
    if behind == Behind::Healthy {
        let healthy = json!({"status": 200, "headers": {"content-type": "application/json"},
            "body": {"id": "x", "object": "chat.completion", "model": "m", "choices": [{"index": 0,
                "message": {"role": "assistant", "content": RESCUED}, "finish_reason": "stop"}]}});
        targets.push((Dialect::OpenaiChat, healthy));
    }
    targets
}

fn target(route: &Value) -> (Dialect, Value) {
    let dialect = match route["sse"]["protocol"].as_str() {
        Some("anthropic_messages") => Dialect::Anthropic,
        _ => Dialect::OpenaiChat,
    };
    if route["sse"].is_object() {
        return (dialect, json!({"sse": route["sse"]}));
    }
    let http = &route["http"];
    let kind = json!({"content-type": "application/json"});
    (dialect, json!({"status": http["status"], "headers": kind, "body": http["body"]}))
}

fn steps(exchange: &Value) -> impl Iterator<Item = &Value> {
    exchange["sse"]["transport"].as_array().into_iter().flatten()
}

/// A stream that says a text, in pieces of a few characters, in each of its channels.
fn said(input: &Value) -> Value {
    let text: Vec<char> = input["text"].as_str().expect("a text").chars().collect();
    let pieces: Vec<String> = text.chunks(4).map(|piece| piece.iter().collect()).collect();
    let channels = input["channels"].as_array();
    let talks = |channel: &str| channels.is_none_or(|list| list.iter().any(|one| one == channel));
    let mut transport = Vec::new();
    let mut say = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let chunk = json!({"id": "c1", "object": "chat.completion.chunk", "model": "m",
            "choices": [choice]});
        transport.push(json!({"text": format!("data: {chunk}\n\n")}));
    };
    if channels.is_some() && talks("reasoning") {
        for piece in &pieces {
            say(json!({"reasoning_content": piece}), Value::Null);
        }
    }
    if talks("text") {
        for piece in &pieces {
            say(json!({"content": piece}), Value::Null);
        }
    }
    let mut finish = "stop";
    if channels.is_some() && talks("tool_arguments") {
        finish = "tool_calls";
        let call = |arguments: &str| json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]});
        let function = json!({"name": "f", "arguments": "{\"grid\":"});
        say(
            json!({"tool_calls": [{"index": 0, "id": "t1", "type": "function",
            "function": function}]}),
            Value::Null,
        );
        for piece in &pieces {
            say(call(piece), Value::Null);
        }
        say(call("}"), Value::Null);
    }
    say(json!({}), json!(finish));
    transport.push(json!({"text": "data: [DONE]\n\n"}));
    transport.push(json!({"close": "clean"}));
    json!({"protocol": "openai_chat", "http_status": 200, "transport": transport})
}

/// The timers of a case, as a route has them.
fn timers(case: &Value) -> String {
    let config = &case["config"];
    let timer = |name: &str, key: &str| {
        let set = config[key].as_u64();
        set.map(|time| format!("{name} = \"{time}ms\"")).unwrap_or_default()
    };
    let set = [timer("first_token", "ttft_ms"), timer("gap", "gap_ms")];
    let set: Vec<&str> = set.iter().map(String::as_str).filter(|one| !one.is_empty()).collect();
    if set.is_empty() { String::new() } else { format!("timeouts = {{ {} }}\n", set.join(", ")) }
}

/// A case played in one way, and what should come of it.
struct Checks<'a> {
    case: &'a Value,
    setting: Setting,
}

/// What came of it.
struct Run {
    seen: Seen,
    told: Told,
    /// Requests at each target.
    heard: Vec<Vec<Heard>>,
    metrics: String,
}

impl<'a> Checks<'a> {
    fn of(case: &'a Value, setting: Setting) -> Self {
        Self { case, setting }
    }

    async fn problems(&self) -> Vec<String> {
        let run = self.run().await;
        let keys = self.case["expected"].as_object().expect("expectations");
        let mut problems: Vec<String> = one_ending(&run).into_iter().collect();
        for (key, value) in keys {
            problems
                .extend(self.problem(key, value, &run).map(|why| format!("{key} {value}: {why}")));
        }
        let (id, seen) = (&self.case["id"], &run.seen);
        let told = |why: String| {
            format!("{id} {:?}: {why}; {} {}", self.setting, seen.status, seen.text())
        };
        problems.into_iter().map(told).collect()
    }

    async fn run(&self) -> Run {
        let Setting { way, caller, behind } = self.setting;
        let (world, players) = world(self.case, way, behind).await;
        let body = body(caller, way);
        let mut line = Line::open(world.address()).await;
        line.ask(start(caller), &[], body.to_string().as_bytes()).await.expect("sent");
        if let Some(late) = self.case["input"]["client"]["reads_after_ms"].as_u64() {
            tokio::time::sleep(Duration::from_millis(late.min(LATE))).await;
        }
        let seen = line.read(PATIENCE).await;
        let metrics = world.get("/metrics").await.text();
        world.stop().await;
        let is_stream = seen.header("content-type").starts_with("text/event-stream");
        let told =
            if is_stream { told::stream(caller, &seen) } else { told::plain(caller, &seen.json()) };
        let heard = players.iter().map(Played::heard).collect();
        Run { seen, told, heard, metrics }
    }

    /// Why one expectation does not hold.
    fn problem(&self, key: &str, value: &Value, run: &Run) -> Option<String> {
        let (seen, told) = (&run.seen, &run.told);
        let word = value.as_str().unwrap_or_default();
        let unless = |holds: bool, said: String| (!holds).then_some(said);
        match key {
            "outcome" => self.outcome(word, run),
            "text" => unless(told.text == *value || self.is_rescued(run), told.text.clone()),
            "partial" => {
                let is_shown = self.setting.way == Way::Mode("gate");
                unless(!is_shown || told.text == *value, told.text.clone())
            }
            "error_class" => self.failed(code_of_class(word), run),
            // Nothing but the failure itself is told, or the answer of another target.
            "bytes_seen_by_client" => {
                unless(told.errors.is_empty(), "an error inside the stream".to_owned())
            }
            "action" | "retryable" => {
                unless(!self.is_backed() || self.is_rescued(run), "no fallback".into())
            }
            "served_by" => unless(
                seen.header("x-backstay-target") == word,
                format!("served by {}", seen.header("x-backstay-target")),
            ),
            "client_message_starts" => {
                let starts = seen.text().matches("event: message_start").count() as u64;
                let counts = self.setting.caller == Dialect::Anthropic && told.terminals > 0;
                unless(!counts || Some(starts) == value.as_u64(), format!("{starts} starts"))
            }
            "usage" => unless(told.usage == Some(tokens(value)), format!("{:?}", told.usage)),
            "tool_calls" if word == "withheld" => {
                unless(told.calls.is_empty(), format!("{:?}", told.calls))
            }
            "tool_calls" => calls(value, told),
            "finish_reason" => unless(
                told.finish.as_deref() == Some(self.finish(word)),
                format!("{:?}", told.finish),
            ),
            "flag" => unless(
                run.metrics.contains("quirk=\"finish_missing\"") || word != "finish_reason_missing",
                "not counted".to_owned(),
            ),
            "retry" => {
                let asked = run.heard[0].len();
                // What nobody has seen yet may be asked for again.
                unless(self.setting.way != Way::Mode("gate") || asked == 1, asked.to_string())
            }
            "upstream_calls" => {
                let asked = run.heard[0].len() as u64;
                unless(Some(asked) == value.as_u64(), asked.to_string())
            }
            "attempts_recorded" => self.attempts(value, run),
            "within_ms" => {
                let limit = self.case["config"]["ttft_ms"].as_u64().expect("a limit");
                // 200 ms, and more on a machine that does other things beside.
                let most = Duration::from_millis(limit + 1_500);
                unless(seen.took < most || self.is_backed(), format!("{:?}", seen.took))
            }
            // The status is the failure's own in our table; the stream's is not invented. What is
            // not told in a stream's text is in the outcome already.
            "semantic_status" | "downstream" | "cpu_loop" | "primary_error" => None,
            other => Some(format!("an expectation this test does not know: {other}")),
        }
    }

    fn is_backed(&self) -> bool {
        self.setting.behind == Behind::Healthy
    }

    fn is_rescued(&self, run: &Run) -> bool {
        self.is_backed() && run.told.text == RESCUED && run.told.errors.is_empty()
    }

    fn outcome(&self, word: &str, run: &Run) -> Option<String> {
        let code = match word {
            "complete" => {
                let is_whole = run.seen.status == 200 && run.told.errors.is_empty();
                let is_own = run.told.text != RESCUED;
                return (!is_whole || !is_own).then(|| "not whole".to_owned());
            }
            "truncated_upstream" => "provider_stream_cut",
            "error_after_output" => "provider_error",
            "ttft_timeout" => "provider_first_token_timeout",
            "gap_timeout" => "provider_stream_stalled",
            "error event, connection closed" => "provider_rate_limited",
            "error" => "",
            other => return Some(format!("an outcome this test does not know: {other}")),
        };
        self.failed(code, run)
    }

    /// Why this is neither a failure of that code (of any, where it is empty), told once, nor an
    /// answer of the healthy target.
    fn failed(&self, code: &str, run: &Run) -> Option<String> {
        if self.is_rescued(run) {
            return None;
        }
        let body = match run.told.errors.as_slice() {
            [] if run.seen.status >= 400 => run.seen.json(),
            [error] => error.clone(),
            _ => return Some("no failure".to_owned()),
        };
        let told = body["error"]["code"].as_str().unwrap_or_default();
        let problems = told::not_an_error(
            self.setting.caller,
            &body,
            if code.is_empty() { told } else { code },
        );
        (!problems.is_empty()).then(|| problems.join(", "))
    }

    /// In the gate nothing is asked of another target once something is out: a continuation has to
    /// be allowed.
    fn attempts(&self, value: &Value, run: &Run) -> Option<String> {
        let asked: usize = run.heard.iter().map(Vec::len).sum();
        let is_out = self.setting.way == Way::Mode("gate");
        let wanted = if is_out { 1 } else { usize::try_from(value.as_u64()?).ok()? };
        (asked != wanted).then(|| asked.to_string())
    }

    /// The caller's own word for a finish that is said in the provider's.
    fn finish(&self, word: &'a str) -> &'a str {
        match (self.setting.caller, word) {
            (Dialect::Anthropic, "tool_calls") => "tool_use",
            (Dialect::Anthropic, "stop") => "end_turn",
            (_, word) => word,
        }
    }
}

/// Whatever a case expects: a stream ends once, with its end or with an error, and what is
/// whole has a finish.
fn one_ending(run: &Run) -> Option<String> {
    let told = &run.told;
    let ends = told.terminals + told.errors.len();
    let is_stream = run.seen.header("content-type").starts_with("text/event-stream");
    if is_stream && (ends, told.late, told.broken.len()) != (1, 0, 0) {
        return Some(format!("ends, late, broken: {ends} {} {:?}", told.late, told.broken));
    }
    let invented = run.seen.status == 200 && told.errors.is_empty() && told.finish.is_none();
    invented.then(|| "a success without a finish".to_owned())
}

/// A gateway in front of the targets of a case.
async fn world(case: &Value, way: Way, behind: Behind) -> (World, Vec<Played>) {
    let mut setup = Setup::new();
    let (mut players, mut tiers) = (Vec::new(), Vec::new());
    for (at, (dialect, exchange)) in targets(case, behind).into_iter().enumerate() {
        let (name, id) = (format!("of{at}"), format!("p{}", at + 1));
        let played = Played::start(vec![exchange]).await;
        setup = setup.tables(&played.provider_in(&name, dialect)).target(&id, &name, &[]);
        players.push(played);
        tiers.push(id);
    }
    let way = match way {
        Way::Mode(mode) => format!("stream = \"{mode}\""),
        Way::Folded => "upstream = \"stream\"".to_owned(),
    };
    let attempts = tiers.len();
    let timers = timers(case);
    let more = format!("deadline = \"11s\"\nmax_attempts = {attempts}\n{timers}{way}");
    let tiers: Vec<&str> = tiers.iter().map(String::as_str).collect();
    (setup.route("route", &tiers, &more).start().await, players)
}

/// A request that offers the tools of the cases, whose arguments may be any object.
fn body(caller: Dialect, way: Way) -> Value {
    let mut body = request(caller, "route", HELLO);
    let names = ["f", "find", "write"];
    let any = json!({"type": "object"});
    body["tools"] = match caller {
        Dialect::OpenaiChat => names
            .iter()
            .map(|name| json!({"type": "function", "function": {"name": name, "parameters": any}}))
            .collect(),
        Dialect::Anthropic => {
            names.iter().map(|name| json!({"name": name, "input_schema": any})).collect()
        }
    };
    if let Way::Mode(_) = way {
        body["stream"] = json!(true);
        if caller == Dialect::OpenaiChat {
            body["stream_options"] = json!({"include_usage": true});
        }
    }
    body
}

fn code_of_class(class: &str) -> &'static str {
    match class {
        "overloaded" => "provider_overloaded",
        "upstream_5xx" => "provider_error",
        "rate_limit" => "provider_rate_limited",
        "quota_exhausted" => "provider_quota_exhausted",
        _ => "a class this test does not know",
    }
}

fn tokens(usage: &Value) -> (u64, u64) {
    let count =
        |one: &str, other: &str| usage[one].as_u64().or(usage[other].as_u64()).expect("a count");
    (count("prompt_tokens", "input_tokens"), count("completion_tokens", "output_tokens"))
}

/// Why the calls told are not those wanted.
fn calls(wanted: &Value, told: &Told) -> Option<String> {
    let wanted: Vec<(String, Value)> = wanted
        .as_array()?
        .iter()
        .map(|call| {
            (call["name"].as_str().unwrap_or_default().to_owned(), call["arguments"].clone())
        })
        .collect();
    let parsed = |text: &String| serde_json::from_str(text).unwrap_or_default();
    let found: Vec<(String, Value)> =
        told.calls.iter().map(|(name, arguments)| (name.clone(), parsed(arguments))).collect();
    (found != wanted).then(|| format!("{:?}", told.calls))
}
