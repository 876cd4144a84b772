//! Tests of what is objected to, and of requests without it.

use serde_json::{Value, json};

use super::*;
use crate::Dialect;

fn objection(dialect: Dialect, body: &Value) -> Option<Objection> {
    Objection::of(&dialect.read_error(400, body.to_string().as_bytes()))
}

#[test]
fn an_objection_is_read_from_the_code_and_parameter_or_from_the_sentence() {
    let openai = |message: &str, param: Option<&str>, code: Option<&str>| {
        let body = json!({"error": {"message": message, "param": param, "code": code}});
        objection(Dialect::OpenaiChat, &body)
    };
    let unsupported = Some("unsupported_parameter");
    let field = |field| Some(Objection::Field(field));
    let rows = [
        (
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use \
          'max_completion_tokens' instead.",
            Some("max_tokens"),
            unsupported,
            Some(Objection::OldCap),
        ),
        (
            "Unrecognized request argument supplied: max_completion_tokens",
            None,
            None,
            Some(Objection::NewCap),
        ),
        (
            "Unsupported value: 'temperature' does not support 0.2 with this model.",
            Some("temperature"),
            Some("unsupported_value"),
            field("temperature"),
        ),
        ("Unrecognized request argument supplied: top_k", None, None, field("top_k")),
        ("property 'seed' is unsupported", None, None, field("seed")),
        ("`top_k` is not supported by this model", None, None, field("top_k")),
        ("Unsupported parameter", Some("tools"), unsupported, None),
        ("Unsupported parameter: 'messages'", None, None, None),
        ("temperature must be between 0 and 2", Some("temperature"), Some("invalid_value"), None),
        (
            "Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with maximum \
          length 40, but got a string with length 94 instead.",
            Some("messages[2].tool_calls[0].id"),
            Some("string_above_max_length"),
            Some(Objection::ToolIds),
        ),
        ("Invalid 'input': string too long.", Some("input"), Some("string_above_max_length"), None),
        ("no", None, None, None),
    ];
    for (message, param, code, wanted) in rows {
        assert_eq!(openai(message, param, code), wanted, "{message}");
    }
    let anthropic = |message: &str| {
        let error = json!({"type": "invalid_request_error", "message": message});
        objection(Dialect::Anthropic, &json!({"type": "error", "error": error}))
    };
    let rows = [
        (
            "messages.1.content.0: Invalid `signature` in `thinking` block",
            Some(Objection::SignedThinking),
        ),
        (
            "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant \
          message cannot be modified.",
            Some(Objection::SignedThinking),
        ),
        ("top_k: Extra inputs are not permitted", field("top_k")),
        ("`temperature` and `top_p` cannot both be specified for this model.", field("top_p")),
        (
            "messages.2.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
            Some(Objection::ToolIds),
        ),
        ("messages: at least one message is required", None),
    ];
    for (message, wanted) in rows {
        assert_eq!(anthropic(message), wanted, "{message}");
    }
}

#[test]
fn an_overloaded_server_objects_to_nothing() {
    let body = json!({"error": {"message": "Unsupported parameter: 'temperature'"}}).to_string();
    assert_eq!(Objection::of(&Dialect::OpenaiChat.read_error(503, body.as_bytes())), None);
}

fn applied(body: &str, objections: &[Objection]) -> Option<(String, Vec<String>)> {
    let amended = apply(body.as_bytes(), objections)?;
    let losses = amended.losses.into_iter().map(|loss| loss.path).collect();
    Some((String::from_utf8(amended.body).unwrap(), losses))
}

#[test]
fn a_field_is_taken_out_and_a_cap_renamed_and_every_other_byte_stays() {
    let body = r#"{ "model":"m", "temperature" : 0.20, "max_tokens":5, "x":1e300 }"#;
    let (text, losses) = applied(body, &[Objection::Field("temperature")]).unwrap();
    assert_eq!(text, r#"{ "model":"m", "max_tokens":5, "x":1e300 }"#);
    assert_eq!(losses, ["/temperature"]);
    let (text, losses) = applied(body, &[Objection::OldCap]).unwrap();
    assert!(
        text.contains(r#""max_completion_tokens":5"#) && !text.contains("max_tokens\":5, "),
        "{text}"
    );
    assert_eq!(losses, [""; 0]);
    assert_eq!(applied(body, &[Objection::Field("top_k")]), None);
    assert_eq!(applied("[]", &[Objection::Field("top_k")]), None);
}

#[test]
fn signed_reasoning_goes_and_what_stands_beside_it_stays() {
    let body = r#"{"messages":[{"role":"user","content":"why, \"thinking\"?"},
        {"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"s"},
            {"type":"text","text":"so","x":1.50}]},
        {"role":"assistant","content":[{"type":"redacted_thinking","data":"d"}]},
        {"role":"user","content":[{"type":"text","text":"and"}]}]}"#;
    let (text, losses) = applied(body, &[Objection::SignedThinking]).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["messages"].as_array().unwrap().len(), 3);
    assert_eq!(value["messages"][1]["content"].as_array().unwrap().len(), 1);
    assert!(text.contains(r#""x":1.50"#), "numbers stay as they are written: {text}");
    assert_eq!(losses, ["/messages"]);
    assert_eq!(applied(&text, &[Objection::SignedThinking]), None, "nothing is left to change");
}

#[test]
fn an_id_has_one_short_form_in_the_call_and_in_its_answer() {
    let long = "call_".repeat(18);
    let body = json!({"messages": [
        {"role": "assistant", "content": null,
            "tool_calls": [{"id": long, "type": "function", "function": {"name": "f",
                "arguments": format!("{{\"id\": \"{long}\"}}")}},
                {"id": "call_1", "type": "function", "function": {"name": "g", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": long, "content": "done"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a:b", "name": "f", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a:b", "content": "ok"}]},
    ]});
    let (text, _) = applied(&body.to_string(), &[Objection::ToolIds]).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    let (calls, messages) = (&value["messages"][0]["tool_calls"], &value["messages"]);
    let id = calls[0]["id"].as_str().unwrap();
    assert_eq!((id.len(), messages[1]["tool_call_id"].as_str()), (37, Some(id)));
    assert_eq!(calls[1]["id"], "call_1");
    assert_eq!(
        calls[0]["function"]["arguments"],
        body["messages"][0]["tool_calls"][0]["function"]["arguments"]
    );
    assert_eq!(messages[2]["content"][0]["id"], messages[3]["content"][0]["tool_use_id"]);
    assert!(messages[2]["content"][0]["id"].as_str().unwrap().starts_with("call_"));
    assert_eq!(applied(&text, &[Objection::ToolIds]), None);
}
