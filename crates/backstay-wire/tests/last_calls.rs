//! The last tool calls of a conversation.

use backstay_wire::Dialect;
use serde_json::{Value, json};

fn last(dialect: Dialect, messages: &Value, most: usize) -> Vec<String> {
    let body = json!({ "model": "m", "messages": messages }).to_string();
    let calls = dialect.last_calls(body.as_bytes(), most).into_iter();
    calls.map(|call| format!("{}({})", call.tool, call.arguments)).collect()
}

#[test]
fn the_last_calls_are_read_in_order() {
    let call = |id: &str, arguments: &str| {
        json!({ "id": id, "type": "function",
            "function": { "name": "search", "arguments": arguments } })
    };
    let openai = json!([
        { "role": "user", "content": "hi" },
        { "role": "assistant", "content": null, "tool_calls": [call("a", "{\"q\": 1}")] },
        { "role": "tool", "tool_call_id": "a", "content": "none" },
        { "role": "assistant", "tool_calls": [call("b", "{\"q\": \"\u{e9}\"}"), call("c", "")] },
        { "role": "assistant", "tool_calls": null,
            "function_call": { "name": "old", "arguments": "{}" } },
        { "role": "user", "content": [{ "type": "text", "text": "go on" }] },
    ]);
    let all = ["search({\"q\": 1})", "search({\"q\": \"\u{e9}\"})", "search()", "old({})"];
    assert_eq!(last(Dialect::OpenaiChat, &openai, 9), all);
    assert_eq!(last(Dialect::OpenaiChat, &openai, 3), all[1..]);
    assert_eq!(last(Dialect::OpenaiChat, &openai, 0), all[..0]);
    let anthropic = json!([
        { "role": "assistant", "content": [
            { "type": "text", "text": "a \"tool_use\" block" },
            { "type": "tool_use", "id": "a", "name": "search", "input": { "q": "\u{e9}" } },
            { "type": "tool_use", "id": "b", "name": "list", "input": {} },
        ] },
        { "role": "user", "content": [
            { "type": "tool_result", "tool_use_id": "a", "content": "none" },
        ] },
        { "role": "assistant", "content": "text" },
    ]);
    let all = ["search({\"q\":\"\u{e9}\"})", "list({})"];
    assert_eq!(last(Dialect::Anthropic, &anthropic, 9), all);
    assert_eq!(last(Dialect::Anthropic, &anthropic, 1), all[1..]);
}

#[test]
fn what_cannot_be_read_has_no_calls() {
    for dialect in [Dialect::OpenaiChat, Dialect::Anthropic] {
        for messages in [json!(null), json!("x"), json!([]), json!([null, 7, "x", [], {}])] {
            assert_eq!(last(dialect, &messages, 4), [""; 0], "{messages}");
        }
        for odd in [json!(7), json!([7]), json!([{ "function": 7 }]), json!([{ "input": 7 }])] {
            let messages = json!([{ "role": "assistant", "content": odd, "tool_calls": odd }]);
            assert_eq!(last(dialect, &messages, 4), [""; 0], "{messages}");
        }
        assert_eq!(dialect.last_calls(b"{", 4), []);
    }
}
