//! Streams that other gateways were reported for, played to ours in every mode of handing one on.
//!
//! Each case goes to a caller of either dialect, in each mode and whole, first with its target alone
//! and then with a healthy one behind it. What a caller may expect follows from the kind of the case:
//!
//! | the first target | `passthrough` | `gate` | `windowed`, `buffered`, whole |
//! |---|---|---|---|
//! | says a whole answer | the answer | the answer | the answer |
//! | breaks before any text | one error in the stream | rescued | rescued |
//! | breaks after some text | one error in the stream | one error in the stream | rescued |
//! | breaks in a tool call | one error in the stream | rescued | rescued |
//!
//! Rescued: where a healthy target stands behind, its answer; else one typed failure. What `passthrough`
//! cannot take back is told, and never ends like something whole. A text longer than the window is out
//! in `windowed` too. What a key of an expectation means for us is in `Checks`; where our answer differs
//! on purpose, the reason stands there.

mod checks;
mod sources;

use backstay::policy::StreamMode;
use backstay_wire::Dialect;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::cases;
use super::played::Played;
use crate::world::{BOTH, HELLO, Setup, World, request};
use checks::Checks;

/// The areas whose streams are played.
const AREAS: [&str; 2] = ["streaming_wire", "stream_guard"];

/// What the target behind the reported one says.
const RESCUED: &str = "from the second";

/// Cases at once: they wait more than they work.
const AT_ONCE: usize = 16;

/// Whether a case is a stream whose bytes are all there is to it.
pub(super) fn is_played(case: &Value) -> bool {
    let ours = AREAS.iter().any(|area| case["area"] == *area);
    let input = &case["input"];
    let has_steps = input["transport"].is_array()
        || input["routes"].is_array()
        || input["gen"]["repeat_times"].is_u64();
    ours && (case["input_kind"] == "text_stream" || case["input_kind"] == "sse" && has_steps)
}

/// Whether a case is a reply whose completion is in doubt. The caller may have asked for a stream, and
/// the provider may have told it as one.
fn is_completion(case: &Value) -> bool {
    case["area"] == "completion_status" && case["input_kind"] == "http"
}

/// How a caller gets the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Streamed, in this mode.
    Mode(StreamMode),
    /// Whole, though the provider streams.
    Folded,
}

pub(super) const WAYS: [Way; 5] = [
    Way::Mode(StreamMode::Passthrough),
    Way::Mode(StreamMode::Gate),
    Way::Mode(StreamMode::Windowed),
    Way::Mode(StreamMode::Buffered),
    Way::Folded,
];

impl Way {
    /// Its line in a route.
    pub(super) fn line(self) -> String {
        match self {
            Self::Mode(mode) => format!("stream = \"{}\"", mode.name()),
            Self::Folded => "upstream = \"stream\"".to_owned(),
        }
    }

    /// `body` as a call that gets its answer so.
    pub(super) fn asks(self, caller: Dialect, mut body: Value) -> Value {
        if let Self::Mode(_) = self {
            body["stream"] = json!(true);
            if caller == Dialect::OpenaiChat {
                body["stream_options"] = json!({"include_usage": true});
            }
        }
        body
    }
}

/// Whether a healthy target stands behind the reported ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Behind {
    Nothing,
    Healthy,
}

/// How a provider says a reply that is reported in one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    /// As it was reported.
    AsGiven,
    /// As the stream that it would be.
    AsStream,
}

/// One way to play a case.
#[derive(Clone, Copy, Debug)]
struct Setting {
    way: Way,
    caller: Dialect,
    behind: Behind,
    said: Said,
}

fn settings(case: &Value) -> Vec<Setting> {
    let alone = [Behind::Nothing].as_slice();
    let behind =
        if case["input"]["routes"].is_null() { &[Behind::Nothing, Behind::Healthy] } else { alone };
    let given = [Said::AsGiven].as_slice();
    let has_choices = case["input"]["exchanges"][0]["body"]["choices"].is_array();
    let said = if has_choices { &[Said::AsGiven, Said::AsStream] } else { given };
    let mut settings = Vec::new();
    for way in WAYS {
        for caller in BOTH {
            for behind in behind {
                for said in said {
                    settings.push(Setting { way, caller, behind: *behind, said: *said });
                }
            }
        }
    }
    settings
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reported_streams_come_out_as_they_should_in_every_mode() {
    play_reported(is_played).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reported_completions_come_out_as_they_should_in_every_mode() {
    play_reported(is_completion).await;
}

/// Streams that nobody reported, but that break in the same ways.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn siblings_of_reported_streams_come_out_as_they_should_in_every_mode() {
    let siblings = include_str!("siblings.jsonl").lines();
    play_all(siblings.map(|line| serde_json::from_str(line).expect("a case")).collect()).await;
}

async fn play_reported(is_wanted: fn(&Value) -> bool) {
    let Some(mut cases) = cases() else { return };
    cases.retain(is_wanted);
    play_all(cases).await;
}

async fn play_all(cases: Vec<Value>) {
    let runs: Vec<(&Value, Setting)> = cases
        .iter()
        .flat_map(|case| settings(case).into_iter().map(move |setting| (case, setting)))
        .collect();
    let played = runs.len();
    let problems: Vec<Vec<String>> = futures_util::stream::iter(runs)
        .map(|(case, setting)| async move { Checks::of(case, setting).problems().await })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    let problems: Vec<String> = problems.into_iter().flatten().collect();
    assert!(played > 0, "{} cases", cases.len());
    assert!(problems.is_empty(), "{played} plays: {}", problems.join("\n"));
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

/// A gateway in front of the targets of a case. Where a case is about a rescue that fails, broken
/// streams may go on.
async fn world(case: &Value, way: Way, targets: Vec<(Dialect, Value)>) -> (World, Vec<Played>) {
    let goes_on = case["expected"]["primary_error"].is_string();
    let mut setup = Setup::new();
    let (mut players, mut tiers) = (Vec::new(), Vec::new());
    for (at, (dialect, exchange)) in targets.into_iter().enumerate() {
        let (name, id) = (format!("of{at}"), format!("p{}", at + 1));
        let played = Played::start(vec![exchange]).await;
        setup = setup.tables(&played.provider_in(&name, dialect)).target(&id, &name, &[]);
        if goes_on {
            setup = setup.and("prefill = \"assistant\"");
        }
        players.push(played);
        tiers.push(id);
    }
    let (attempts, timers, way) = (tiers.len(), timers(case), way.line());
    let after = if goes_on { "continue" } else { "error" };
    let more = format!(
        "deadline = \"11s\"\nmax_attempts = {attempts}\nafter_release = \"{after}\"\n{timers}{way}"
    );
    let tiers: Vec<&str> = tiers.iter().map(String::as_str).collect();
    (setup.route("route", &tiers, &more).start().await, players)
}

/// A request that offers the tools of the cases, whose arguments may be any object.
fn body(case: &Value, caller: Dialect, way: Way) -> Value {
    let mut body = request(caller, "route", HELLO);
    if let Some(cap) = case["input"]["exchanges"][0]["request"]["max_tokens"].as_u64() {
        body["max_tokens"] = json!(cap);
    }
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
    way.asks(caller, body)
}
