//! The seven adapter tests of the seed, over this project's two dialects in place of its two
//! invented providers.
//!
//! Our vocabulary is wider than the seed's four words: its provider A has never seen `tool_calls`,
//! ours maps it to `tool_use` (which the outcome rule still does not parse), so the unknown reason
//! here is an invented word; its `content_filter` is `refused`, ours is `content_filtered`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use backstay_wire::chat::Reply;
use backstay_wire::{Dialect, Finish};
use serde_json::{Value, json};

/// The seed's rule: only a complete reply may be parsed; anything else is handled explicitly.
fn outcome(finish: Finish) -> &'static str {
    match finish {
        Finish::Complete => "parse",
        Finish::Truncated => "raise_limit_or_fail",
        Finish::Refused | Finish::ContentFiltered => "fallback",
        Finish::ToolUse | Finish::ContextExceeded | Finish::Paused | Finish::Unknown => {
            "alert_and_fail_closed"
        }
    }
}

fn adapt_a(content: &str, reason: &str, input: u64, output: u64) -> Reply {
    let body = json!({
        "choices": [{ "message": { "content": content }, "finish_reason": reason }],
        "usage": { "prompt_tokens": input, "completion_tokens": output },
    });
    Dialect::OpenaiChat.read_reply(body.to_string().as_bytes()).unwrap()
}

fn adapt_b(content: &Value, reason: &str, input: u64, output: u64) -> Reply {
    let body = json!({
        "id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": content, "stop_reason": reason,
        "usage": { "input_tokens": input, "output_tokens": output },
    });
    Dialect::Anthropic.read_reply(body.to_string().as_bytes()).unwrap()
}

fn said(text: &str) -> Value {
    json!([{ "type": "text", "text": text }])
}

#[test]
fn a_complete() {
    let reply = adapt_a(r#"{"a":1}"#, "stop", 40, 9);
    assert_eq!(outcome(reply.choices[0].finish), "parse");
}

#[test]
fn a_truncated() {
    let reply = adapt_a(r#"{"a":"#, "length", 40, 300);
    assert_eq!(outcome(reply.choices[0].finish), "raise_limit_or_fail");
}

#[test]
fn a_unknown_fails_closed() {
    let reply = adapt_a(r#"{"a":1}"#, "reason_of_next_year", 40, 9);
    assert_eq!(reply.choices[0].finish, Finish::Unknown);
    assert_eq!(outcome(reply.choices[0].finish), "alert_and_fail_closed");
    assert_eq!(reply.unknown, ["finish reason: reason_of_next_year"]);
    let tools = adapt_a(r#"{"a":1}"#, "tool_calls", 40, 9);
    assert_eq!(tools.choices[0].finish, Finish::ToolUse);
    assert_eq!(outcome(tools.choices[0].finish), "alert_and_fail_closed");
}

#[test]
fn b_complete() {
    let reply = adapt_b(&said(r#"{"a":1}"#), "end_turn", 40, 9);
    assert_eq!(outcome(reply.choices[0].finish), "parse");
}

#[test]
fn b_refusal_with_empty_content() {
    let reply = adapt_b(&json!([]), "refusal", 40, 0);
    assert_eq!(reply.choices[0].text(), "");
    assert_eq!(outcome(reply.choices[0].finish), "fallback");
}

#[test]
fn b_ignores_non_text_blocks() {
    let content = json!([
        { "type": "thinking", "thinking": "ignored", "signature": "s" },
        { "type": "text", "text": r#"{"a":1}"# },
    ]);
    let reply = adapt_b(&content, "end_turn", 40, 30);
    assert_eq!(reply.choices[0].text(), r#"{"a":1}"#);
}

#[test]
fn both_providers_yield_the_same_shape() {
    let a = adapt_a(r#"{"a":1}"#, "stop", 40, 9);
    let b = adapt_b(&said(r#"{"a":1}"#), "end_turn", 40, 9);
    assert_eq!(a.choices[0].text(), b.choices[0].text());
    assert_eq!(a.choices[0].finish, b.choices[0].finish);
    assert_eq!((a.usage.input, a.usage.output), (b.usage.input, b.usage.output));
}
