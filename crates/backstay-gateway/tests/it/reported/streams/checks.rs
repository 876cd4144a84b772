//! What should come of a stream, key by key of its case.

use std::time::Duration;

use backstay::policy::StreamMode;
use backstay::record::Row;
use backstay_decide::fault::Fault;
use backstay_wire::Dialect;
use backstay_wire::chat::Quirk;
use serde_json::Value;

use super::sources::{Reach, targets};
use super::{Behind, RESCUED, Setting, Way, body, world};
use crate::client::{Line, PATIENCE, Seen};
use crate::reported::fields;
use crate::reported::played::{Heard, Played};
use crate::told::{self, Told};
use crate::world::{World, start};

/// The longest wait of a caller that reads late: longer than any `gap` of a case.
const LATE: u64 = 3_000;

/// Bytes that `windowed` holds: 512 tokens.
const WINDOW: usize = 512 * 4;

/// A case played in one way, and what should come of it.
pub(super) struct Checks<'a> {
    case: &'a Value,
    setting: Setting,
    reach: Reach,
}

/// What came of it.
struct Run {
    seen: Seen,
    told: Told,
    /// Requests at each target.
    heard: Vec<Vec<Heard>>,
    /// Steps that the first target got to say.
    said: usize,
    metrics: String,
    row: Row,
}

impl<'a> Checks<'a> {
    pub(super) fn of(case: &'a Value, setting: Setting) -> Self {
        let mut reach = Reach::of(&targets(case, setting)[0]);
        // A loop gets no further than to the copy at which it is known.
        if let Some(most) = most(&case["expected"]["detected_by_repeat"]) {
            let times = case["input"]["gen"]["repeat_times"].as_u64();
            let times = times.and_then(|times| usize::try_from(times).ok());
            reach.shown = reach.shown * most / times.expect("a number");
        }
        Self { case, setting, reach }
    }

    pub(super) async fn problems(&self) -> Vec<String> {
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
        let Setting { way, caller, .. } = self.setting;
        let (world, players) = world(self.case, way, targets(self.case, self.setting)).await;
        let mut line = Line::open(world.address()).await;
        let body = body(self.case, caller, way).to_string();
        line.ask(start(caller), &[], body.as_bytes()).await.expect("sent");
        if let Some(late) = self.case["input"]["client"]["reads_after_ms"].as_u64() {
            tokio::time::sleep(Duration::from_millis(late.min(LATE))).await;
        }
        let seen = line.read(PATIENCE).await;
        let metrics = world.get("/metrics").await.text();
        let row = logged(&world).await;
        world.stop().await;
        let is_stream = seen.header("content-type").starts_with("text/event-stream");
        let told =
            if is_stream { told::stream(caller, &seen) } else { told::plain(caller, &seen.json()) };
        let heard = players.iter().map(Played::heard).collect();
        Run { seen, told, heard, said: players[0].said(), metrics, row }
    }

    /// Why one expectation does not hold.
    fn problem(&self, key: &str, value: &Value, run: &Run) -> Option<String> {
        let (seen, told) = (&run.seen, &run.told);
        let word = value.as_str().unwrap_or_default();
        let unless = |holds: bool, said: String| (!holds).then_some(said);
        let asked = run.heard[0].len();
        match key {
            "outcome" | "tool_calls" | "finish_reason" | "flag" if self.came_as_it_is(run) => None,
            "outcome" => self.outcome(word, run),
            "text" | "served_by" | "client_message_starts" | "usage" | "finish_reason"
                if self.is_told() =>
            {
                self.failed("", run)
            }
            "text" => unless(told.text == *value || self.is_rescued(run), told.text.clone()),
            "partial" => unless(!self.is_out() || told.text == *value, told.text.clone()),
            "error_class" => self.failed(code_of_class(word), run),
            // Nothing but the failure itself is told, or the answer of another target.
            "bytes_seen_by_client" => unless(
                self.is_out() && told.text.is_empty() || told.errors.is_empty(),
                "more than an error".to_owned(),
            ),
            "action" | "retryable" => unless(
                !self.is_backed() || self.is_out() || self.is_rescued(run),
                "no fallback".into(),
            ),
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
            // What `passthrough` handed on of it has no end: no caller runs it.
            "tool_calls" if word == "withheld" => unless(
                told.calls.is_empty() || self.is_out() && told.errors.len() == 1,
                format!("{:?}", told.calls),
            ),
            "tool_calls" => calls(value, told),
            "finish_reason" => unless(
                told.finish.as_deref() == Some(self.finish(word)),
                format!("{:?}", told.finish),
            ),
            "flag" => unless(
                run.metrics.contains("quirk=\"finish_missing\"") || word != "finish_reason_missing",
                "not counted".to_owned(),
            ),
            // What nobody has seen yet may be asked for again.
            "retry" => unless(!self.is_out() || asked == 1, asked.to_string()),
            "retry_same" => unless(asked == 1, asked.to_string()),
            "upstream_calls" => unless(is_count(asked, value), asked.to_string()),
            "attempts_recorded" => {
                let (noted, asked) =
                    (run.row.attempts as usize, run.heard.iter().map(Vec::len).sum::<usize>());
                let told = format!("{noted} recorded, {asked} asked");
                unless(noted == asked && is_count(asked, value), told)
            }
            "primary_error" => Self::is_of_the_first(run),
            "within_ms" => {
                let limit = self.case["config"]["ttft_ms"].as_u64().expect("a limit");
                // 200 ms, and more on a machine that does other things beside.
                let most = Duration::from_millis(limit + 1_500);
                unless(seen.took < most || self.is_rescued(run), format!("{:?}", seen.took))
            }
            "detected_by_repeat" => self.cut_off(most(value)?, run),
            "downstream" => {
                unless(self.is_rescued(run) || told.terminals == 0, "a clean end".to_owned())
            }
            "cpu_loop" => unless(seen.took < PATIENCE, "it never ends".to_owned()),
            "status_to_client" => {
                unless(Some(u64::from(seen.status)) == value.as_u64(), String::new())
            }
            field if fields::is_left_out(field) => None,
            other => Some(format!("an expectation this test does not know: {other}")),
        }
    }

    fn is_backed(&self) -> bool {
        self.setting.behind == Behind::Healthy
    }

    fn is_rescued(&self, run: &Run) -> bool {
        self.is_backed() && run.told.text == RESCUED && run.told.errors.is_empty()
    }

    /// Whether something of the first target's stream has left before its end comes.
    fn is_out(&self) -> bool {
        let shown = self.reach.shown;
        self.reach.dialect.is_some()
            && match self.setting.way {
                Way::Mode(StreamMode::Passthrough) => true,
                Way::Mode(StreamMode::Gate) => shown > 0,
                Way::Mode(StreamMode::Windowed) => shown > WINDOW,
                Way::Mode(StreamMode::Buffered) | Way::Folded => false,
            }
    }

    /// Whether the first target's failure is told, whoever stands behind.
    fn is_told(&self) -> bool {
        self.reach.fails && self.is_out()
    }

    /// Whether `passthrough` handed calls on that are not as the dialect has them, the only way it can:
    /// to a caller of the provider's dialect as they came, byte for byte. What shows only in the end,
    /// when all of it is out, may be told as a failure instead.
    fn came_as_it_is(&self, run: &Run) -> bool {
        let Reach { dialect, bytes, quirks, .. } = &self.reach;
        if self.setting.way != Way::Mode(StreamMode::Passthrough) || quirks.is_empty() {
            return false;
        }
        let late = [Quirk::FinishMissing, Quirk::ArgumentsAgain];
        let is_late = quirks.iter().any(|quirk| late.contains(quirk));
        let is_same = *dialect == Some(self.setting.caller);
        is_late && failure(run).is_some()
            || is_same && memchr::memmem::find(&run.seen.body, bytes).is_some()
    }

    fn outcome(&self, word: &str, run: &Run) -> Option<String> {
        let told = &run.told;
        let code = match word {
            "complete" => {
                let is_whole = run.seen.status == 200 && told.errors.is_empty();
                return (!is_whole || told.text == RESCUED).then(|| "not whole".to_owned());
            }
            // Handed on with the provider's reason, and never repeated (docs/decisions/0009).
            "refusal" => {
                let is_told = match self.setting.caller {
                    Dialect::OpenaiChat => !told.refusal.is_empty(),
                    Dialect::Anthropic => told.finish.as_deref() == Some("refusal"),
                };
                let asked: usize = run.heard.iter().map(Vec::len).sum();
                return (!is_told || asked != 1).then(|| format!("{asked} requests"));
            }
            // Cut at a cap nobody here set: not resent unchanged (docs/decisions/0011).
            "budget_spent_on_reasoning" | "length" => {
                let asked: usize = run.heard.iter().map(Vec::len).sum();
                let finish = told.finish.as_deref() == Some(self.finish("length"));
                return (!finish || asked != 1).then(|| format!("{asked} requests"));
            }
            "truncated_upstream" => "provider_stream_cut",
            "error_after_output" => "provider_error",
            "ttft_timeout" => "provider_first_token_timeout",
            "gap_timeout" => "provider_stream_stalled",
            "loop_period" => "reply_looping",
            "empty_answer" => "reply_empty",
            "error event, connection closed" => "provider_rate_limited",
            "error" => "",
            code if Fault::from_code(code).is_some() => code,
            other => return Some(format!("an outcome this test does not know: {other}")),
        };
        self.failed(code, run)
    }

    /// Why this is not what a failure of that code (of any, where it is empty) should come to: told
    /// once, or rescued.
    fn failed(&self, code: &str, run: &Run) -> Option<String> {
        if self.is_backed() && !self.is_out() {
            return (!self.is_rescued(run)).then(|| "not rescued".to_owned());
        }
        let Some(body) = failure(run) else { return Some("no failure".to_owned()) };
        let told = body["error"]["code"].as_str().unwrap_or_default();
        let code = if code.is_empty() { told } else { code };
        let problems = told::not_an_error(self.setting.caller, &body, code);
        (!problems.is_empty()).then(|| problems.join(", "))
    }

    /// Why the failure told is not the first target's: its model had begun to answer.
    fn is_of_the_first(run: &Run) -> Option<String> {
        let Some(body) = failure(run) else { return Some("no failure".to_owned()) };
        let (code, told) = (&body["error"]["code"], body["error"]["message"].to_string());
        let is_first = told.contains("p1") && *code == "provider_stream_cut";
        (!is_first).then(|| format!("{code} {told}"))
    }

    /// Why the provider was not cut off by that many copies, and what the caller got was not.
    fn cut_off(&self, most: usize, run: &Run) -> Option<String> {
        let lines = usize::try_from(self.case["input"]["gen"]["block_lines"].as_u64()?).ok()?;
        let told = run.told.text.lines().count();
        // The provider says a few more lines until it notices that nobody reads.
        let is_soon = told <= most * lines && run.said <= (most + 1) * lines;
        (!is_soon).then(|| format!("{told} lines told, {} said", run.said))
    }

    /// The caller's own word for a finish that is said in the provider's.
    fn finish(&self, word: &'a str) -> &'a str {
        match (self.setting.caller, word) {
            (Dialect::Anthropic, "tool_calls") => "tool_use",
            (Dialect::Anthropic, "stop") => "end_turn",
            (Dialect::Anthropic, "length") => "max_tokens",
            (_, word) => word,
        }
    }
}

/// The row of the one call.
async fn logged(world: &World) -> Row {
    for _ in 0..200 {
        // The empty id is the beginning of every id.
        if let Some(row) = world.engine().call_log().find("").expect("a log") {
            return row;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the call was never logged");
}

/// The one failure that the caller got.
fn failure(run: &Run) -> Option<Value> {
    match run.told.errors.as_slice() {
        [] if run.seen.status >= 400 => Some(run.seen.json()),
        [error] => Some(error.clone()),
        _ => None,
    }
}

/// The bound that an expectation names by `<=`.
fn most(wanted: &Value) -> Option<usize> {
    wanted.as_str()?.strip_prefix("<=")?.parse().ok()
}

/// Whether `count` is the number wanted, or within its bound.
fn is_count(count: usize, wanted: &Value) -> bool {
    most(wanted).map_or(Some(count as u64) == wanted.as_u64(), |most| count <= most)
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
