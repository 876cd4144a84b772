//! Whole replies of Anthropic Messages, both ways.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use backstay_wire::chat::{Choice, ErrorClass, Finish, ImageSource, Part, Reply, Usage};
use backstay_wire::dialect::{Dialect, ReadFault};
use serde_json::{Value, json};

fn read(body: &Value) -> Reply {
    Dialect::Anthropic.read_reply(body.to_string().as_bytes()).unwrap()
}

fn written(reply: &Reply) -> (Value, Vec<String>) {
    let written = Dialect::Anthropic.write_reply(reply);
    let told = |loss: backstay_wire::Loss| format!("{}: {}", loss.path, loss.note);
    let body = serde_json::from_slice(&written.bytes).unwrap();
    (body, written.losses.into_iter().map(told).collect())
}

fn reply(parts: Vec<Part>, finish: Finish) -> Reply {
    let usage = Usage { input: Some(3), output: Some(2), ..Usage::default() };
    let choices = vec![Choice { parts, finish, finish_word: None }];
    Reply { id: "r1".into(), model: "m".into(), choices, usage, ..Reply::default() }
}

// --- the adapter's contract for a provider of content blocks and a stop reason ---

#[test]
fn an_ended_turn_is_complete() {
    let reply = read(&json!({
        "content": [{"type": "text", "text": "{\"a\":1}"}],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 40, "output_tokens": 9},
    }));
    assert_eq!(reply.choices[0].text(), "{\"a\":1}");
    assert_eq!(reply.choices[0].finish, Finish::Complete);
    assert_eq!((reply.usage.input, reply.usage.output), (Some(40), Some(9)));
}

#[test]
fn a_refusal_with_empty_content_is_refused() {
    let reply = read(&json!({
        "content": [], "stop_reason": "refusal", "usage": {"input_tokens": 40, "output_tokens": 0},
    }));
    assert_eq!(reply.choices[0].finish, Finish::Refused);
    assert_eq!(reply.choices[0].text(), "");
    assert_eq!(reply.choices[0].refusal(), Some(""));
    assert_eq!(reply.unknown, Vec::<String>::new());
}

#[test]
fn blocks_that_are_not_text_do_not_get_into_the_text() {
    let reply = read(&json!({
        "content": [
            {"type": "thinking", "text": "ignored"},
            {"type": "text", "text": "{\"a\":1}"},
            {"type": "hologram", "text": "ignored"},
        ],
        "stop_reason": "end_turn",
        "usage": {"input_tokens": 40, "output_tokens": 30},
    }));
    assert_eq!(reply.choices[0].text(), "{\"a\":1}");
    assert_eq!(reply.unknown, ["content block: hologram"]);
}

#[test]
fn a_stop_reason_never_seen_fails_closed_and_is_counted() {
    for (word, told) in [(json!("tool_calls"), "tool_calls"), (json!(7), "7")] {
        let reply = read(&json!({"content": [], "stop_reason": word}));
        assert_eq!(reply.choices[0].finish, Finish::Unknown);
        assert_eq!(reply.choices[0].finish_word.as_deref(), Some(told));
        assert_eq!(reply.unknown, [format!("stop_reason: {told}")]);
    }
    for body in [json!({"content": [], "stop_reason": null}), json!({"content": []})] {
        let reply = read(&body);
        assert_eq!(reply.choices[0].finish, Finish::Unknown);
        assert_eq!(reply.choices[0].finish_word, None);
    }
}

#[test]
fn every_stop_reason_has_its_finish() {
    for (word, finish) in [
        ("end_turn", Finish::Complete),
        ("stop_sequence", Finish::Complete),
        ("max_tokens", Finish::Truncated),
        ("tool_use", Finish::ToolUse),
        ("pause_turn", Finish::Paused),
        ("compaction", Finish::Paused),
        ("refusal", Finish::Refused),
        ("model_context_window_exceeded", Finish::ContextExceeded),
    ] {
        let read = read(&json!({"content": [], "stop_reason": word}));
        assert_eq!(read.choices[0].finish, finish, "{word}");
        let (body, _) = written(&read);
        assert_eq!(body["stop_reason"], word, "the word is kept");
    }
}

#[test]
fn all_input_is_counted_and_given_back_apart() {
    let usage = json!({
        "input_tokens": 10, "cache_creation_input_tokens": 200, "cache_read_input_tokens": 3000,
        "output_tokens": 50, "output_tokens_details": {"thinking_tokens": 20},
    });
    let reply = read(&json!({"content": [], "stop_reason": "end_turn", "usage": usage}));
    let expected = Usage {
        input: Some(3210),
        output: Some(50),
        cached: Some(3000),
        cache_write: Some(200),
        reasoning: Some(20),
    };
    assert_eq!(reply.usage, expected);
    assert_eq!(written(&reply).0["usage"], usage);
}

#[test]
fn a_tool_call_keeps_every_byte_of_its_arguments() {
    let body = br#"{"content":[{"type":"tool_use","id":"t","name":"f",
        "input":{"n": 12345678901234567890123, "x":1.10,"u":"\u00e9"}}],"stop_reason":"tool_use"}"#;
    let reply = Dialect::Anthropic.read_reply(body).unwrap();
    let arguments = r#"{"n": 12345678901234567890123, "x":1.10,"u":"\u00e9"}"#;
    let call = Part::ToolCall { id: "t".into(), name: "f".into(), arguments: arguments.to_owned() };
    assert_eq!(reply.choices[0].parts, [call]);
    let bytes = Dialect::Anthropic.write_reply(&reply).bytes;
    assert!(String::from_utf8(bytes).unwrap().contains(arguments));
}

#[test]
fn an_error_under_200_is_a_failure_with_its_class() {
    let body = br#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    match Dialect::Anthropic.read_reply(body) {
        Err(ReadFault::Failure(error)) => {
            assert_eq!(error.class, ErrorClass::Overloaded);
            assert_eq!(error.message, "Overloaded");
        }
        other => panic!("{other:?}"),
    }
    let bare = br#"{"error":{"message":"boom"}}"#;
    let found = Dialect::Anthropic.read_reply(bare);
    assert!(matches!(found, Err(ReadFault::Failure(e)) if e.class == ErrorClass::ServerError));
    let null = br#"{"error":null,"content":[],"stop_reason":"end_turn"}"#;
    assert!(Dialect::Anthropic.read_reply(null).is_ok());
}

#[test]
fn what_is_no_reply_is_malformed() {
    let deep = format!(r#"{{"content":[{{"type":"hologram","x":{}"#, "[".repeat(100_000));
    let nested = format!(
        r#"{{"content":[{{"type":"hologram","x":{}{}}}],"stop_reason":"end_turn"}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    for body in [
        "",
        "{}",
        "[]",
        "null",
        "\"x\"",
        "<html>",
        "{\"content\":7}",
        "{\"content\":[{}]}",
        "{\"content\":[{\"type\":\"text\"}]}",
        "{\"content\":[],\"stop_reason\":\"end_turn\"",
        &deep,
        &nested,
    ] {
        let found = Dialect::Anthropic.read_reply(body.as_bytes());
        let head: String = body.chars().take(40).collect();
        assert!(matches!(found, Err(ReadFault::Malformed(_))), "{head}: {found:?}");
    }
    assert!(Dialect::Anthropic.read_reply(b"{\"content\":\"\xff\"}").is_err());
}

#[test]
fn content_that_is_a_string_or_null_is_read() {
    let text = read(&json!({"content": "hi", "stop_reason": "end_turn"}));
    assert_eq!(text.choices[0].text(), "hi");
    let none = read(&json!({"content": null, "stop_reason": "max_tokens"}));
    assert_eq!(none.choices[0].parts, []);
}

#[test]
fn arguments_that_are_no_object_are_wrapped_and_reported() {
    for (arguments, input, loss) in [
        ("", json!({}), false),
        (" \n", json!({}), false),
        (" {\"a\":1} ", json!({"a": 1}), false),
        ("null", json!({"_raw": "null"}), true),
        ("[1]", json!({"_raw": "[1]"}), true),
        ("{\"a\":", json!({"_raw": "{\"a\":"}), true),
        ("{} {}", json!({"_raw": "{} {}"}), true),
        ("\"{}\"", json!({"_raw": "\"{}\""}), true),
    ] {
        let call =
            Part::ToolCall { id: "t".into(), name: "f".into(), arguments: arguments.to_owned() };
        let (body, losses) = written(&reply(vec![call], Finish::ToolUse));
        assert_eq!(body["content"][0]["input"], input, "{arguments}");
        assert_eq!(!losses.is_empty(), loss, "{arguments}: {losses:?}");
    }
}

#[test]
fn a_reply_of_another_provider_is_written_in_the_words_of_this_one() {
    let parts = vec![
        Part::Thinking { text: "hm".into(), signature: None },
        Part::Text("hi".into()),
        Part::ToolCall { id: "c1".into(), name: "f".into(), arguments: "{\"a\":1}".into() },
    ];
    let (body, losses) = written(&reply(parts, Finish::ToolUse));
    assert_eq!(
        body,
        json!({
            "id": "r1", "type": "message", "role": "assistant", "model": "m",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": ""},
                {"type": "text", "text": "hi"},
                {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
            ],
            "stop_reason": "tool_use", "stop_sequence": null,
            "usage": {"input_tokens": 3, "output_tokens": 2},
        })
    );
    assert_eq!(losses, Vec::<String>::new());
}

#[test]
fn a_refusal_goes_to_the_stop_details_and_comes_back() {
    let refused = reply(vec![Part::Refusal("not that".into())], Finish::Complete);
    let (body, _) = written(&refused);
    assert_eq!(body["content"], json!([]));
    assert_eq!(body["stop_reason"], "refusal");
    assert_eq!(body["stop_details"]["explanation"], "not that");
    assert_eq!(read(&body).choices[0].refusal(), Some("not that"));
}

#[test]
fn what_cannot_be_said_is_a_loss_each() {
    let mut lossy = reply(
        vec![
            Part::Image { media_type: None, source: ImageSource::Url("u".into()) },
            Part::Other(json!({"type": "audio"})),
        ],
        Finish::ContentFiltered,
    );
    lossy.choices.push(Choice::default());
    lossy.usage = Usage::default();
    let (body, losses) = written(&lossy);
    assert_eq!(body["stop_reason"], "refusal");
    assert_eq!(losses.len(), 5, "{losses:?}");
    let (body, losses) = written(&reply(vec![], Finish::Unknown));
    assert_eq!(body["stop_reason"], Value::Null);
    assert_eq!(losses.len(), 1, "{losses:?}");
}

#[test]
fn blocks_of_server_tools_are_known_and_kept_whole() {
    let block = json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}});
    let reply = read(&json!({"content": [block], "stop_reason": "end_turn"}));
    assert_eq!(reply.unknown, Vec::<String>::new());
    assert_eq!(written(&reply).0["content"], json!([block]));
}
