//! What the providers of a case say, as exchanges to play, and how far a stream gets.

use backstay_wire::Dialect;
use backstay_wire::chat::{Delta, Fold, FoldEnd, Quirk};
use backstay_wire::frame::sse::{Decoder, Frame};
use serde_json::{Value, json};

use super::{Behind, RESCUED, Said, Setting};
use crate::reported::played::bytes;

/// The longest a stream of many waits may take in all; longer ones are played faster.
const LONGEST: u64 = 6_000;

/// The targets of a case, in their order: the dialect of each, and the exchange it plays for ever.
pub(super) fn targets(case: &Value, setting: Setting) -> Vec<(Dialect, Value)> {
    let input = &case["input"];
    let stream = |sse: Value| vec![target(&json!({"sse": sse}))];
    let mut targets: Vec<(Dialect, Value)> = match input["routes"].as_array() {
        Some(routes) => routes.iter().map(target).collect(),
        None if case["input_kind"] == "text_stream" => stream(said(input)),
        None if case["input_kind"] == "http" => {
            let exchange = &input["exchanges"][0];
            match setting.said {
                Said::AsGiven => vec![target(&json!({"http": exchange}))],
                Said::AsStream => stream(retold(&exchange["body"])),
            }
        }
        None if input["gen"].is_object() => stream(looping(input)),
        None => stream(input.clone()),
    };
    faster(&mut targets[0].1);
    if setting.behind == Behind::Healthy {
        targets.push((Dialect::OpenaiChat, healthy()));
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

fn healthy() -> Value {
    json!({"status": 200, "headers": {"content-type": "application/json"},
        "body": {"id": "x", "object": "chat.completion", "model": "m", "choices": [{"index": 0,
            "message": {"role": "assistant", "content": RESCUED}, "finish_reason": "stop"}]}})
}

/// Plays many waits faster; one without an end stays as it is.
fn faster(exchange: &mut Value) {
    let steps = exchange.pointer_mut("/sse/transport").and_then(Value::as_array_mut);
    let Some(steps) = steps else { return };
    let waits = steps.iter().filter_map(|step| step["wait_ms"].as_u64());
    let (sum, longest) = waits.fold((0, 0), |(sum, most), wait| (sum + wait, most.max(wait)));
    if sum <= LONGEST || longest > 60_000 {
        return;
    }
    let times = sum / LONGEST + 1;
    for step in steps {
        if let Some(wait) = step["wait_ms"].as_u64() {
            step["wait_ms"] = json!(wait / times);
        }
    }
}

/// The events of a stream of Chat Completions, one a step.
#[derive(Default)]
struct Script {
    steps: Vec<Value>,
}

impl Script {
    fn say(&mut self, delta: &Value, finish: &Value) {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        self.event(&json!({"id": "c1", "object": "chat.completion.chunk", "model": "m",
            "choices": [choice]}));
    }

    fn event(&mut self, event: &Value) {
        self.steps.push(json!({"text": format!("data: {event}\n\n")}));
    }

    /// Ends it well.
    fn stream(mut self) -> Value {
        self.steps.push(json!({"text": "data: [DONE]\n\n"}));
        self.steps.push(json!({"close": "clean"}));
        json!({"protocol": "openai_chat", "http_status": 200, "transport": self.steps})
    }
}

/// A stream that says a text, in pieces of a few characters, in each of its channels.
fn said(input: &Value) -> Value {
    let text: Vec<char> = input["text"].as_str().expect("a text").chars().collect();
    let pieces: Vec<String> = text.chunks(4).map(|piece| piece.iter().collect()).collect();
    let channels = input["channels"].as_array();
    let talks = |channel: &str| channels.is_none_or(|list| list.iter().any(|one| one == channel));
    let mut script = Script::default();
    if channels.is_some() && talks("reasoning") {
        for piece in &pieces {
            script.say(&json!({"reasoning_content": piece}), &Value::Null);
        }
    }
    if talks("text") {
        for piece in &pieces {
            script.say(&json!({"content": piece}), &Value::Null);
        }
    }
    let mut finish = "stop";
    if channels.is_some() && talks("tool_arguments") {
        finish = "tool_calls";
        let call = |arguments: &str| json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]});
        let function = json!({"name": "f", "arguments": "{\"grid\":"});
        let begun = json!({"index": 0, "id": "t1", "type": "function", "function": function});
        script.say(&json!({"tool_calls": [begun]}), &Value::Null);
        for piece in &pieces {
            script.say(&call(piece), &Value::Null);
        }
        script.say(&call("}"), &Value::Null);
    }
    script.say(&json!({}), &json!(finish));
    script.stream()
}

/// A stream that says a block of different lines again and again, a line an event.
fn looping(input: &Value) -> Value {
    const WORDS: [&str; 23] = [
        "harbour", "lantern", "the", "keeper", "walked", "over", "stones", "and", "counted",
        "every", "ship", "that", "passed", "in", "winter", "while", "old", "ropes", "froze",
        "against", "a", "broken", "mast",
    ];
    let size = |key: &str| input["gen"][key].as_u64().expect("a number");
    let (lines, times) = (size("block_lines"), size("repeat_times"));
    let line = |at: u64| {
        let word =
            |place: u64| WORDS[usize::try_from((at * at + place * (at + 3)) % 23).unwrap_or(0)];
        let words: Vec<&str> = (0..7).map(word).collect();
        format!("{at}. {}\n", words.join(" "))
    };
    let mut script = Script::default();
    for _ in 0..times {
        for at in 0..lines {
            script.say(&json!({"content": line(at)}), &Value::Null);
        }
    }
    script.say(&json!({}), &json!("stop"));
    script.stream()
}

/// A whole reply of Chat Completions as the stream in which the same server would tell it.
fn retold(reply: &Value) -> Value {
    let choice = &reply["choices"][0];
    let mut delta = choice["message"].clone();
    if let Some(parts) = delta["content"].as_array().cloned() {
        let of = |key: &str| {
            let words: String = parts.iter().filter_map(|part| part[key].as_str()).collect();
            (!words.is_empty()).then_some(words)
        };
        (delta["content"], delta["refusal"]) = (json!(of("text")), json!(of("refusal")));
    }
    let mut script = Script::default();
    script.say(&delta, &Value::Null);
    script.say(&json!({}), &choice["finish_reason"]);
    if reply["usage"].is_object() {
        script.event(&json!({"id": "c1", "object": "chat.completion.chunk", "model": "m",
            "choices": [], "usage": reply["usage"]}));
    }
    script.stream()
}

/// How far a first target's stream gets by itself, whoever reads it.
#[derive(Clone, Debug, Default)]
pub(super) struct Reach {
    /// Its dialect; `None`: no stream with a head of success.
    pub dialect: Option<Dialect>,
    /// All it says.
    pub bytes: Vec<u8>,
    /// Bytes of text, reasoning and refusal.
    pub shown: usize,
    /// Whether it has no good end.
    pub fails: bool,
    /// What of its tool calls was not as the dialect has it.
    pub quirks: Vec<Quirk>,
}

impl Reach {
    pub(super) fn of((dialect, exchange): &(Dialect, Value)) -> Self {
        let Some(steps) = exchange["sse"]["transport"].as_array() else { return Self::default() };
        let says = |step: &&Value| step["text"].is_string() || step["hex"].is_string();
        let bytes: Vec<u8> = steps.iter().filter(says).flat_map(bytes).collect();
        let (mut decoder, mut reader) = (Decoder::default(), dialect.stream_reader());
        let (mut fold, mut deltas, mut is_broken) = (Fold::default(), Vec::new(), false);
        decoder.push(bytes.clone().into());
        while let Ok(Some(frame)) = decoder.next_frame() {
            if let Frame::Event(event) = frame {
                is_broken |= reader.read(&event, &mut deltas).is_err();
            }
        }
        let shows = |delta: &&Delta| !delta.is_call();
        let shown = deltas.iter().filter(shows).map(Delta::text_bytes).sum();
        for delta in &deltas {
            fold.push(delta);
        }
        let fails = is_broken || !matches!(fold.outcome(), FoldEnd::Whole { .. });
        let quirks = fold.into_reply().quirks;
        Self { dialect: Some(*dialect), bytes, shown, fails, quirks }
    }
}
