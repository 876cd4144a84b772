//! Recorded exchanges with Anthropic Messages, replayed through the dialect.
//!
//! Every request is read and written for both dialects; every reply, stream and error is read. Text,
//! finish and tool calls must agree with the recording's own cross-check, or be a disagreement that
//! is explained in [`EXPLAINED`]. Values that are not known are printed.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, in its own functions too"
)]

#[path = "../../../tests/shared.rs"]
mod shared;

use std::collections::BTreeMap;

use backstay_wire::chat::{Choice, Delta, Finish, Fold, FoldEnd, Part, Reply};
use backstay_wire::dialect::{Dialect, UsageEvent};
use backstay_wire::frame::sse::{Decoder, Frame};
use bytes::Bytes;
use serde_json::Value;
use shared::shared;

/// (exchange, why the cross-check differs).
const EXPLAINED: &[(&str, &str)] = &[
    ("anthropic-020", "the cross-check keeps 2,000 characters of the arguments"),
    ("anthropic-082", "the file holds two replies; the cross-check joins them, the fold ends once"),
    ("anthropic-083", "as anthropic-082"),
];

fn rows() -> Option<Vec<Value>> {
    let text = std::fs::read_to_string(shared("cassettes/anthropic.jsonl")?).unwrap();
    let rows = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    Some(rows.filter(|row| row["api"] == "messages").collect())
}

fn id(row: &Value) -> &str {
    row["id"].as_str().unwrap()
}

/// The recorded reply, however it came, and whether a stream ended well.
fn reply(row: &Value) -> Option<(Reply, Vec<String>)> {
    let response = &row["response"];
    if response["status"].as_u64().is_some_and(|status| status >= 400) {
        return None;
    }
    let body = response["body"].as_str().unwrap();
    if response["body_kind"] == "json" {
        let reply = Dialect::Anthropic.read_reply(body.as_bytes()).unwrap();
        let unknown = reply.unknown.clone();
        return Some((reply, unknown));
    }
    let (mut decoder, mut reader, mut fold) =
        (Decoder::default(), Dialect::Anthropic.stream_reader(), Fold::default());
    let mut writer = Dialect::OpenaiChat.stream_writer("m", UsageEvent::Send);
    let (mut deltas, mut out) = (Vec::new(), Vec::new());
    decoder.push(Bytes::copy_from_slice(body.as_bytes()));
    while let Some(frame) = decoder.finish().unwrap() {
        if let Frame::Event(event) | Frame::Cut(event) = frame {
            reader.read(&event, &mut deltas).unwrap_or_else(|fault| panic!("{}: {fault}", id(row)));
        }
    }
    for delta in &deltas {
        assert!(!matches!(delta, Delta::Error(_)), "{}: {delta:?}", id(row));
        fold.push(delta);
        writer.write(delta, &mut out);
    }
    assert!(matches!(fold.outcome(), FoldEnd::Whole { .. }), "{}: {:?}", id(row), fold.outcome());
    let reply = fold.into_reply();
    let unknown = reply.unknown.clone();
    Some((reply, unknown))
}

/// Name and arguments of each tool call, arguments as a value.
fn calls(choice: &Choice) -> Vec<(String, Value)> {
    let each = |part: &Part| match part {
        Part::ToolCall { name, arguments, .. } => {
            let parsed = serde_json::from_str(arguments);
            Some((name.clone(), parsed.unwrap_or_else(|_| Value::from(arguments.as_str()))))
        }
        _ => None,
    };
    choice.parts.iter().filter_map(each).collect()
}

fn derived_calls(derived: &Value) -> Vec<(String, Value)> {
    let each = |call: &Value| {
        let text = call["arguments"].as_str().unwrap_or_default();
        let text = if text.trim().is_empty() { "{}" } else { text };
        let arguments = serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
        (call["name"].as_str().unwrap().to_owned(), arguments)
    };
    derived["tool_calls"].as_array().into_iter().flatten().map(each).collect()
}

#[test]
fn recorded_replies_and_streams_agree_with_their_cross_check() {
    let Some(rows) = rows() else { return };
    let (mut read, mut unknown) = (0, BTreeMap::<String, Vec<String>>::new());
    let mut disagreements = Vec::new();
    for row in &rows {
        let Some((reply, new)) = reply(row) else { continue };
        read += 1;
        for what in new {
            unknown.entry(what).or_default().push(id(row).to_owned());
        }
        let derived = &row["derived"];
        let choice = &reply.choices[0];
        assert!(choice.finish != Finish::Unknown, "{}", id(row));
        let mut differ = |what: &str, ours: String, theirs: String| {
            if ours != theirs {
                disagreements.push((id(row).to_owned(), format!("{what}: {ours} | {theirs}")));
            }
        };
        let text = derived["text"].as_str().unwrap_or_default();
        differ("text", choice.text(), text.to_owned());
        let word = choice.finish_word.clone().unwrap_or_default();
        differ("finish", word, derived["finish"].as_str().unwrap_or_default().to_owned());
        differ("calls", format!("{:?}", calls(choice)), format!("{:?}", derived_calls(derived)));
        for dialect in [Dialect::OpenaiChat, Dialect::Anthropic] {
            let again = dialect.read_reply(&dialect.write_reply(&reply).bytes).unwrap();
            assert_eq!(calls(&again.choices[0]), calls(choice), "{} in {dialect:?}", id(row));
            if choice.finish != Finish::Refused {
                assert_eq!(again.choices[0].text(), choice.text(), "{} in {dialect:?}", id(row));
            }
        }
    }
    println!("{read} replies and streams read; unknown values: {unknown:#?}");
    for (exchange, what) in &disagreements {
        let reason = EXPLAINED.iter().find(|(known, _)| known == exchange);
        let what: String = what.chars().take(120).collect();
        println!("disagrees: {exchange}: {what} … ({reason:?})");
    }
    let disagrees = |exchange: &str| disagreements.iter().any(|(id, _)| id == exchange);
    for (exchange, _) in EXPLAINED {
        assert!(disagrees(exchange), "{exchange} agrees: take it out of EXPLAINED");
    }
    let explained = |exchange: &str| EXPLAINED.iter().any(|(known, _)| *known == exchange);
    disagreements.retain(|(exchange, _)| !explained(exchange));
    assert_eq!(disagreements, [], "explain each in EXPLAINED or mend the reader");
    assert!(read > 40, "only {read} replies");
}

#[test]
fn recorded_requests_are_read_and_written_for_both_dialects() {
    let Some(rows) = rows() else { return };
    let (mut read, mut losses) = (0, BTreeMap::<String, usize>::new());
    for row in &rows {
        let body = &row["request"]["body"];
        if !body.is_object() {
            continue;
        }
        let chat = Dialect::Anthropic.read_request(body.to_string().as_bytes());
        let chat = chat.unwrap_or_else(|fault| panic!("{}: {fault}", id(row)));
        let own = Dialect::Anthropic.write_request(&chat);
        assert_eq!(own.losses, [], "{}", id(row));
        let again = Dialect::Anthropic.read_request(&own.bytes).unwrap();
        assert_eq!(again, chat, "{} is read back as it was", id(row));
        let other = Dialect::OpenaiChat.write_request(&chat);
        for loss in other.losses {
            *losses.entry(format!("{} ({})", loss.path, loss.note)).or_default() += 1;
        }
        let crossed = Dialect::OpenaiChat.read_request(&other.bytes).unwrap();
        let calls = |chat: &backstay_wire::Chat| {
            let parts = chat.turns.iter().flat_map(|turn| &turn.parts);
            parts.filter(|part| matches!(part, Part::ToolCall { .. })).cloned().collect::<Vec<_>>()
        };
        assert_eq!(calls(&crossed), calls(&chat), "{}", id(row));
        assert_eq!(crossed.last_user_text(), chat.last_user_text(), "{}", id(row));
        read += 1;
    }
    println!("{read} requests; lost in the other dialect: {losses:#?}");
    assert!(read > 40, "only {read} requests");
}

#[test]
fn recorded_errors_have_a_class_other_than_a_failure_of_the_server() {
    let Some(rows) = rows() else { return };
    let mut seen = Vec::new();
    for row in &rows {
        let response = &row["response"];
        let Some(status) = response["status"].as_u64().filter(|status| *status >= 400) else {
            continue;
        };
        let status = u16::try_from(status).unwrap();
        let body = response["body"].as_str().unwrap();
        let error = Dialect::Anthropic.read_error(status, body.as_bytes());
        assert!(!error.message.is_empty() && error.kind.is_some(), "{}", id(row));
        let expected = match status {
            401 => "auth",
            404 => "not_found",
            _ => "bad_request",
        };
        assert_eq!(error.class.word(), expected, "{}: {}", id(row), error.message);
        seen.push(error.class.word());
    }
    println!("{} errors: {seen:?}", seen.len());
    assert!(seen.len() >= 5);
}
