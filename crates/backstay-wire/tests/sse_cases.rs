//! Broken streams out of public bug reports: what each adds up to, in the pieces it came in and
//! byte by byte.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, in its own functions too"
)]

#[path = "../../../tests/shared.rs"]
mod shared;

mod folding;

use backstay_wire::chat::{Delta, Fold, FoldEnd, Part};
use backstay_wire::dialect::Dialect;
use backstay_wire::frame::sse::{Decoder, Frame};
use bytes::Bytes;
use folding::fold;
use serde_json::{Value, json};
use shared::shared;

/// Holds what was read against what the report expects; `false` where it expects nothing of it.
fn check(id: &str, fold: Fold, expected: &Value) -> bool {
    let mut checked = false;
    let outcome = fold.outcome();
    let is_right = match expected["outcome"].as_str() {
        Some("complete") => matches!(outcome, FoldEnd::Whole { .. }),
        Some("truncated_upstream") => matches!(outcome, FoldEnd::NoEnd),
        Some("error_after_output") => matches!(outcome, FoldEnd::Failed(_)) && fold.has_content(),
        Some(other) => panic!("{id}: {other}"),
        None => true,
    };
    checked |= expected["outcome"].is_string();
    assert!(is_right, "{id}: {outcome:?}, expected {}", expected["outcome"]);
    if let Some(class) = expected["error_class"].as_str() {
        let class = if class == "upstream_5xx" { "server_error" } else { class };
        let FoldEnd::Failed(error) = &outcome else { panic!("{id}: {outcome:?}") };
        assert_eq!(error.class.word(), class, "{id}");
        assert_eq!(error.class.passes(), expected["retryable"] == true, "{id}");
        checked = true;
    }
    let reply = fold.into_reply();
    if let Some(text) = expected["text"].as_str() {
        assert_eq!(reply.choices[0].text(), text, "{id}");
        checked = true;
    }
    if expected["usage"].is_object() {
        let usage = &expected["usage"];
        let first = |a: &str, b: &str| usage[a].as_u64().or(usage[b].as_u64());
        assert_eq!(reply.usage.input, first("input_tokens", "prompt_tokens"), "{id}");
        assert_eq!(reply.usage.output, first("output_tokens", "completion_tokens"), "{id}");
        checked = true;
    }
    if expected["tool_calls"].is_array() {
        let call = |part: &Part| match part {
            Part::ToolCall { id, name, arguments } => {
                let arguments: Value = serde_json::from_str(arguments).unwrap();
                Some(json!({"id": id, "name": name, "arguments": arguments}))
            }
            _ => None,
        };
        let calls: Vec<Value> = reply.choices[0].parts.iter().filter_map(call).collect();
        assert_eq!(Value::from(calls), expected["tool_calls"], "{id}");
        checked = true;
    }
    checked
}

#[test]
fn reported_streams_add_up_to_what_they_should() {
    let Some(path) = shared("cases/bug_reports.jsonl") else { return };
    let text = std::fs::read_to_string(path).unwrap();
    let mut met = Vec::new();
    for line in text.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let (id, input) = (case["id"].as_str().unwrap(), &case["input"]);
        let dialect = match input["protocol"].as_str() {
            Some("openai_chat") => Dialect::OpenaiChat,
            Some("anthropic_messages") => Dialect::Anthropic,
            _ => continue,
        };
        if case["area"] != "streaming_wire" || !input["transport"].is_array() {
            continue;
        }
        let pieces: Vec<&[u8]> = input["transport"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|step| step["text"].as_str().map(str::as_bytes))
            .collect();
        let bytes: Vec<u8> = pieces.concat();
        let ones: Vec<&[u8]> = bytes.chunks(1).collect();
        for pieces in [&pieces, &ones] {
            let fold = fold(dialect, pieces.iter().copied());
            assert!(check(id, fold, &case["expected"]), "{id} expects nothing");
        }
        met.push(id.to_owned());
    }
    println!("{} reports: {met:?}", met.len());
    assert!(met.len() >= 17, "{met:?}");
}

#[test]
fn a_stream_that_ends_without_its_blank_line_is_whole() {
    let body = b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\
        \"finish_reason\":\"stop\"}]}\n\ndata: [DONE]";
    let fold = fold(Dialect::OpenaiChat, [body.as_slice()]);
    assert!(matches!(fold.outcome(), FoldEnd::Whole { .. }));
    assert!(fold.end_seen());
}

#[test]
fn a_bare_json_error_line_is_a_failure_in_both_dialects() {
    for dialect in [Dialect::OpenaiChat, Dialect::Anthropic] {
        let body = b"{\"error\":{\"message\":\"busy\",\"code\":503}}\n";
        let fold = fold(dialect, [body.as_slice()]);
        assert!(matches!(fold.outcome(), FoldEnd::Failed(e) if e.class.word() == "overloaded"));
    }
}

#[test]
fn half_an_event_at_the_end_is_malformed_and_not_half_an_answer() {
    for dialect in [Dialect::OpenaiChat, Dialect::Anthropic] {
        let mut decoder = Decoder::default();
        decoder.push(Bytes::from_static(b"data: {\"type\":\"content_block_de"));
        let Some(Frame::Cut(event)) = decoder.finish().unwrap() else { panic!("no cut event") };
        let mut deltas: Vec<Delta> = Vec::new();
        assert!(dialect.stream_reader().read(&event, &mut deltas).is_err());
        assert_eq!(deltas, []);
    }
}
