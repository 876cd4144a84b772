//! Recorded exchanges with servers of this dialect, replayed through the readers.
//!
//! Every recorded request, reply, stream and error is read; none panics. What is read is compared
//! with `derived`, another reading of the same bytes. Elements not known here are printed
//! (`cargo test -p backstay-wire --test cassettes_openai -- --nocapture`).

#![expect(
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by panicking, in its own functions too"
)]

#[path = "../../../tests/shared.rs"]
mod shared;

use std::collections::BTreeMap;

use backstay_wire::chat::{Delta, Fold, FoldEnd, Part, Reply};
use backstay_wire::dialect::ReadFault;
use backstay_wire::frame::sse::{Decoder, Frame, Limits};
use backstay_wire::{Dialect, Finish};
use bytes::Bytes;
use serde_json::Value;
use shared::shared;

/// What came of one recorded response.
enum Outcome {
    Reply(Box<Reply>),
    /// A class of failure, and where it was found.
    Failure(&'static str),
    Malformed(String),
}

#[derive(Default)]
struct Tally {
    exchanges: usize,
    unknown: BTreeMap<String, usize>,
    failures: BTreeMap<&'static str, usize>,
    disagreements: Vec<String>,
}

fn rows(name: &str) -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(shared(&format!("cassettes/{name}"))?).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str(line).unwrap());
    Some(rows.filter(|row: &Value| row["api"] == "chat.completions").collect())
}

fn replay_stream(body: &str) -> Outcome {
    let mut reader = Dialect::OpenaiChat.stream_reader();
    let mut fold = Fold::default();
    let mut decoder = Decoder::new(Limits::default());
    let mut deltas: Vec<Delta> = vec![];
    // Pieces of 97 bytes: events and characters are cut at odd places.
    for piece in body.as_bytes().chunks(97) {
        decoder.push(Bytes::copy_from_slice(piece));
        while let Some(frame) = decoder.next_frame().unwrap() {
            if let Err(fault) = read_frame(&mut reader, frame, &mut deltas) {
                return Outcome::Malformed(fault);
            }
        }
    }
    if let Some(frame) = decoder.finish().unwrap()
        && let Err(fault) = read_frame(&mut reader, frame, &mut deltas)
    {
        return Outcome::Malformed(fault);
    }
    for delta in &deltas {
        fold.push(delta);
    }
    match fold.outcome() {
        FoldEnd::Failed(error) => Outcome::Failure(error.class.word()),
        _ => Outcome::Reply(Box::new(fold.into_reply())),
    }
}

fn read_frame(
    reader: &mut backstay_wire::dialect::StreamReader,
    frame: Frame,
    deltas: &mut Vec<Delta>,
) -> Result<(), String> {
    match frame {
        // A recording that ends without a blank line was cut by whoever stored it.
        Frame::Event(event) | Frame::Cut(event) => {
            reader.read(&event, deltas).map_err(|fault| fault.to_string())
        }
        Frame::Alive(_) => Ok(()),
    }
}

fn replay(row: &Value) -> Outcome {
    let response = &row["response"];
    let body =
        response["body"].as_str().map_or_else(|| response["body"].to_string(), str::to_owned);
    let status = response["status"].as_u64().unwrap_or(200);
    if status >= 400 {
        let error = Dialect::OpenaiChat.read_error(u16::try_from(status).unwrap(), body.as_bytes());
        assert!(!error.message.is_empty(), "{}", row["id"]);
        return Outcome::Failure(error.class.word());
    }
    if response["body_kind"] == "sse" {
        return replay_stream(&body);
    }
    match Dialect::OpenaiChat.read_reply(body.as_bytes()) {
        Ok(reply) => Outcome::Reply(Box::new(reply)),
        Err(ReadFault::Failure(error)) => Outcome::Failure(error.class.word()),
        Err(ReadFault::Malformed(fault)) => Outcome::Malformed(fault.to_string()),
    }
}

/// A recorded request is read, and writing it loses nothing.
fn check_request(row: &Value) {
    let body = &row["request"]["body"];
    if !body.is_object() {
        return;
    }
    let read = |text: &[u8]| Dialect::OpenaiChat.read_request(text);
    let chat =
        read(body.to_string().as_bytes()).unwrap_or_else(|fault| panic!("{}: {fault}", row["id"]));
    let written = Dialect::OpenaiChat.write_request(&chat);
    assert_eq!(written.losses, [], "{}", row["id"]);
    assert_eq!(read(&written.bytes).unwrap(), chat, "{}", row["id"]);
    // Every top-level field is there again, under its name or the cap's other one.
    let again: Value = serde_json::from_slice(&written.bytes).unwrap();
    for (key, value) in body.as_object().unwrap() {
        let key = if key == "max_completion_tokens" { "max_tokens" } else { key };
        let is_default =
            value.is_null() || value == &Value::Bool(false) || value == &Value::from(vec![0; 0]);
        assert!(again.get(key).is_some() || is_default, "{}: {key}", row["id"]);
    }
}

/// What differs between our reading and `derived`; empty: nothing.
fn differences(reply: &Reply, derived: &Value) -> Vec<&'static str> {
    let mut found = vec![];
    let choice = &reply.choices[0];
    if choice.text() != derived["text"].as_str().unwrap_or_default() {
        found.push("text");
    }
    if choice.finish_word.as_deref() != derived["finish"].as_str() {
        found.push("finish");
    }
    let refusal = derived["refusal"].as_str();
    if choice.refusal() != refusal.filter(|words| !words.is_empty()) {
        found.push("refusal");
    }
    let ours: Vec<(&str, &str)> = choice
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::ToolCall { name, arguments, .. } => Some((name.as_str(), arguments.as_str())),
            _ => None,
        })
        .collect();
    let calls = derived["tool_calls"].as_array().cloned().unwrap_or_default();
    let theirs: Vec<(&str, &str)> = calls
        .iter()
        .map(|c| {
            (c["name"].as_str().unwrap_or_default(), c["arguments"].as_str().unwrap_or_default())
        })
        .collect();
    if ours != theirs {
        found.push("tool calls");
    }
    let reasoning: usize = choice
        .parts
        .iter()
        .map(|part| match part {
            Part::Thinking { text, .. } => text.chars().count(),
            _ => 0,
        })
        .sum();
    if u64::try_from(reasoning).ok() != Some(derived["reasoning_chars"].as_u64().unwrap_or(0)) {
        found.push("reasoning");
    }
    found
}

fn replay_file(name: &str) -> Option<Tally> {
    let mut tally = Tally::default();
    for row in rows(name)? {
        tally.exchanges += 1;
        check_request(&row);
        let id = row["id"].as_str().unwrap();
        let derived = &row["derived"];
        match replay(&row) {
            Outcome::Reply(reply) => {
                for what in &reply.unknown {
                    *tally.unknown.entry(what.clone()).or_default() += 1;
                }
                for what in differences(&reply, derived) {
                    tally.disagreements.push(format!("{id}: {what}"));
                }
                check_rewritten(id, &reply);
            }
            Outcome::Failure(class) => {
                *tally.failures.entry(class).or_default() += 1;
                if !derived.is_null() {
                    tally.disagreements.push(format!("{id}: a failure ({class})"));
                }
            }
            Outcome::Malformed(fault) => {
                tally.disagreements.push(format!("{id}: malformed: {fault}"));
            }
        }
    }
    println!(
        "{name}: {} exchanges, failures {:?}, unknown {:?}",
        tally.exchanges, tally.failures, tally.unknown
    );
    for line in &tally.disagreements {
        println!("  {line}");
    }
    Some(tally)
}

/// A reply written for a caller reads back with the same meaning.
fn check_rewritten(id: &str, reply: &Reply) {
    let written = Dialect::OpenaiChat.write_reply(reply);
    let again = Dialect::OpenaiChat.read_reply(&written.bytes).unwrap();
    assert_eq!(again.choices.len(), reply.choices.len(), "{id}");
    for (ours, theirs) in reply.choices.iter().zip(&again.choices) {
        assert_eq!(ours.text(), theirs.text(), "{id}");
        assert_eq!(ours.finish, theirs.finish, "{id}");
        assert_eq!(ours.refusal(), theirs.refusal(), "{id}");
    }
    assert_eq!(again.usage, reply.usage, "{id}");
}

#[test]
fn openai_is_read_as_recorded() {
    let Some(tally) = replay_file("openai.jsonl") else { return };
    assert!(tally.exchanges >= 30);
    assert_eq!(tally.disagreements, Vec::<String>::new());
    assert_eq!(tally.unknown, BTreeMap::new());
}

#[test]
fn openai_compatible_is_read_as_recorded() {
    let Some(tally) = replay_file("openai-compatible.jsonl") else { return };
    assert!(tally.exchanges >= 3);
    assert_eq!(tally.disagreements, Vec::<String>::new());
    assert_eq!(tally.unknown, BTreeMap::new());
}

/// The other servers of this dialect: read without a panic. What differs, and why it may.
const OTHERS: &[(&str, &[&str])] = &[
    // `derived` keeps the first 4,000 characters.
    ("alibaba.jsonl", &["alibaba-001: text"]),
    ("azure-openai.jsonl", &[]),
    ("bedrock.jsonl", &[]),
    ("cerebras.jsonl", &[]),
    ("copilot.jsonl", &[]),
    ("crusoe.jsonl", &[]),
    ("deepseek.jsonl", &[]),
    ("doubleword.jsonl", &[]),
    ("google-gemini.jsonl", &[]),
    (
        "groq.jsonl",
        &[
            // Not a reply: a stored test object.
            "groq-013: malformed: /choices: expected an array, found nothing",
            // Half a stream, then `event: error`, which `derived` does not read.
            "groq-019: a failure (bad_request)",
            "groq-021: a failure (bad_request)",
        ],
    ),
    ("heroku.jsonl", &[]),
    ("huggingface.jsonl", &[]),
    ("llamacpp.jsonl", &[]),
    (
        "mistral.jsonl",
        &[
            // Content as a list of thinking and text, which `derived` does not read.
            "mistral-022: text",
            "mistral-022: reasoning",
            // `derived` keeps the first 2,000 characters of arguments.
            "mistral-025: tool calls",
            "mistral-026: text",
            "mistral-026: reasoning",
            // Not a reply of this API: a transcription.
            "mistral-027: malformed: /choices: expected an array, found nothing",
        ],
    ),
    ("mistralrs.jsonl", &[]),
    ("moonshotai.jsonl", &[]),
    ("ollama.jsonl", &[]),
    ("openrouter.jsonl", &[]),
    ("perplexity.jsonl", &[]),
    ("snowflake.jsonl", &[]),
    ("venice.jsonl", &[]),
    ("xai.jsonl", &[]),
    ("zai.jsonl", &[]),
];

#[test]
fn compatible_servers_are_read_as_recorded() {
    let mut found = vec![];
    let mut want: Vec<String> = vec![];
    for (name, known) in OTHERS {
        let Some(tally) = replay_file(name) else { return };
        found.extend(tally.disagreements);
        want.extend(known.iter().map(|line| (*line).to_owned()));
    }
    assert_eq!(found, want);
}

#[test]
fn errors_inside_recorded_streams_are_errors() {
    let Some(rows) = rows("error_shapes.jsonl") else { return };
    let class = |id: &str| {
        let row = rows.iter().find(|row| row["id"] == id).unwrap();
        match replay_stream(row["body"].as_str().unwrap()) {
            Outcome::Failure(class) => class,
            Outcome::Reply(reply) => {
                reply.choices.first().map_or(Finish::Unknown, |c| c.finish).word()
            }
            Outcome::Malformed(_) => "malformed",
        }
    };
    assert_eq!(class("shape-13"), "server_error");
    assert_eq!(class("shape-14"), "server_error");
}
