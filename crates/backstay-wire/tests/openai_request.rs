//! Requests of `OpenAI` Chat Completions.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use backstay_wire::chat::{Chat, Format, ImageSource, Loss, Part, Role, Tool, ToolChoice, Turn};
use backstay_wire::dialect::{CapField, Dialect, Malformed};
use serde_json::{Map, Value, json};

fn read(body: &Value) -> Chat {
    Dialect::OpenaiChat.read_request(body.to_string().as_bytes()).unwrap()
}

fn fault(body: &Value) -> Malformed {
    Dialect::OpenaiChat.read_request(body.to_string().as_bytes()).unwrap_err()
}

fn write(chat: &Chat) -> Value {
    serde_json::from_slice(&Dialect::OpenaiChat.write_request(chat).bytes).unwrap()
}

fn losses(chat: &Chat) -> Vec<Loss> {
    Dialect::OpenaiChat.write_request(chat).losses
}

fn ask(extra: &Value) -> Value {
    let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
    for (key, value) in extra.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

fn text(text: &str) -> Part {
    Part::Text(text.to_owned())
}

/// A request with everything in it, in the form in which it is written again.
fn everything() -> Value {
    json!({
        "model": "m",
        "messages": [
            { "role": "system", "content": [
                { "type": "text", "text": "Be kind." },
                { "type": "text", "text": "Be brief.", "cache_control": { "type": "ephemeral" } },
            ] },
            { "role": "user", "name": "ann", "content": [
                { "type": "text", "text": "What is this?" },
                { "type": "image_url", "image_url": { "url": "https://x/y.png", "detail": "low" } },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,QUJD" } },
                { "type": "input_audio", "input_audio": { "data": "QUJD", "format": "wav" } },
                { "type": "file", "file": { "file_id": "f1" } },
            ] },
            { "role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
                { "id": "t1", "type": "function", "function": { "name": "look", "arguments": "{\"a\": 1.50}" } },
                { "id": "t2", "type": "function", "function": { "name": "look", "arguments": "" }, "extra_content": { "sig": "s" } },
                { "id": "t3", "type": "custom", "custom": { "name": "free", "input": "words" } },
            ] },
            { "role": "tool", "tool_call_id": "t1", "content": "a cat" },
            { "role": "tool", "tool_call_id": "t2", "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }], "name": "look" },
            { "role": "system", "content": "Now rhyme." },
            { "role": "assistant", "content": "A cat.", "refusal": "but no more" },
            { "role": "assistant", "content": null, "refusal": "No." },
            { "role": "function", "name": "old", "content": "7" },
            { "role": "user", "content": "" },
        ],
        "max_tokens": 300,
        "temperature": 0.2,
        "top_p": 1,
        "stop": ["a", "b"],
        "stream": true,
        "stream_options": { "include_usage": true, "include_obfuscation": false },
        "user": "u1",
        "response_format": { "type": "json_schema", "json_schema": {
            "name": "triage", "schema": { "type": "object" }, "strict": true, "description": "d",
        } },
        "tools": [
            { "type": "function", "function": {
                "name": "look", "description": "Looks.", "parameters": { "type": "object" }, "strict": false, "note": 1,
            }, "defer": true },
            { "type": "custom", "custom": { "name": "free" } },
        ],
        "tool_choice": { "type": "function", "function": { "name": "look" } },
        "parallel_tool_calls": false,
        "n": 2,
        "seed": 9_007_199_254_740_993_u64,
        "logprobs": true,
        "top_logprobs": 3,
        "logit_bias": { "50256": -100 },
        "metadata": { "k": "v" },
        "service_tier": "flex",
        "reasoning_effort": "low",
        "x_vendor": [null, { "a": 1 }],
    })
}

#[test]
fn a_request_written_again_keeps_its_meaning_whole() {
    let body = everything();
    let chat = read(&body);
    let written = Dialect::OpenaiChat.write_request(&chat);
    assert_eq!(written.losses, []);
    let again: Value = serde_json::from_slice(&written.bytes).unwrap();
    for (key, value) in body.as_object().unwrap() {
        assert_eq!(&again[key], value, "{key}");
    }
    assert_eq!(again.as_object().unwrap().len(), body.as_object().unwrap().len());
    assert_eq!(read(&again), chat);
}

#[test]
fn the_neutral_form_holds_what_both_dialects_have() {
    let chat = read(&everything());
    assert_eq!(chat.source, Some(Dialect::OpenaiChat));
    assert_eq!(chat.max_output_tokens, Some(300));
    assert_eq!(chat.stop, ["a", "b"]);
    assert!(chat.stream && chat.include_usage);
    assert_eq!(chat.system[..2], [text("Be kind."), text("Be brief.")]);
    assert_eq!(chat.tool_choice, Some(ToolChoice::Named("look".to_owned())));
    assert_eq!(chat.parallel_tools, Some(false));
    assert_eq!(chat.tools.len(), 1);
    let user = &chat.turns[0];
    assert_eq!(user.text(), "What is this?");
    assert_eq!(
        user.parts[1],
        Part::Image { media_type: None, source: ImageSource::Url("https://x/y.png".to_owned()) }
    );
    assert_eq!(
        user.parts[3],
        Part::Image {
            media_type: Some("image/png".to_owned()),
            source: ImageSource::Base64("QUJD".to_owned()),
        }
    );
    let roles: Vec<_> = chat.turns.iter().map(|t| t.role).collect();
    assert_eq!(
        roles,
        [
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::Tool,
            Role::System,
            Role::Assistant,
            Role::Assistant,
            Role::Tool,
            Role::User
        ]
    );
    assert_eq!(
        chat.turns[2].parts,
        [Part::ToolResult { id: "t1".to_owned(), parts: vec![text("a cat")], failed: false }]
    );
    let Some(Format::JsonSchema { name, strict, .. }) = &chat.format else { panic!() };
    assert_eq!((name.as_str(), *strict), ("triage", Some(true)));
    assert!(chat.extra.contains_key("logit_bias"));
    assert!(!chat.extra.contains_key("max_tokens"));
}

#[test]
fn short_forms_mean_the_same_as_long_ones() {
    let plain = read(&ask(&json!({})));
    assert_eq!(plain.turns, [Turn::said(Role::User, "hi")]);
    let listed = json!({ "model": "m", "messages": [{ "role": "user", "content": [{ "type": "text", "text": "hi" }] }] });
    assert_eq!(read(&listed), plain);
    let nulls = json!({ "temperature": null, "stop": null, "tools": null, "stream": null, "user": null,
        "response_format": null, "max_tokens": null, "tool_choice": null, "stream_options": null });
    assert_eq!(read(&ask(&nulls)), plain);
    assert_eq!(read(&ask(&json!({ "response_format": { "type": "text" } }))), plain);
    assert_eq!(read(&ask(&json!({ "stop": "x" }))).stop, ["x"]);
    for (word, choice) in [
        ("auto", ToolChoice::Auto),
        ("none", ToolChoice::Never),
        ("required", ToolChoice::Required),
    ] {
        assert_eq!(read(&ask(&json!({ "tool_choice": word }))).tool_choice, Some(choice));
    }
    let system =
        |role: &str| json!({ "model": "m", "messages": [{ "role": role, "content": "s" }] });
    assert_eq!(read(&system("developer")), read(&system("system")));
    let no_parameters = json!({ "tools": [{ "type": "function", "function": { "name": "f" } }] });
    assert_eq!(
        read(&ask(&no_parameters)).tools[0].parameters,
        json!({ "type": "object", "properties": {} })
    );
}

#[test]
fn odd_forms_of_known_fields_survive() {
    for extra in [
        json!({ "tool_choice": { "type": "allowed_tools", "allowed_tools": { "mode": "auto" } } }),
        json!({ "tool_choice": "any" }),
        json!({ "response_format": { "type": "grammar", "grammar": "root ::= x" } }),
        json!({ "response_format": { "type": "json_schema", "value": { "schema": {} } } }),
        json!({ "response_format": { "type": "json_object", "schema": { "type": "object" } } }),
        json!({ "tools": [{ "type": "web_search", "web_search": { "depth": 1 } }] }),
        json!({ "stream_options": { "include_obfuscation": false } }),
        json!({ "functions": [{ "name": "f" }], "function_call": "auto" }),
        json!({ "guided_json": { "type": "object" }, "top_k": 4, "thinking": { "type": "enabled" } }),
    ] {
        let body = ask(&extra);
        assert_eq!(write(&read(&body)), body, "{extra}");
    }
}

#[test]
fn the_cap_is_written_under_the_name_the_provider_knows() {
    let chat = read(&ask(&json!({ "max_completion_tokens": 7 })));
    assert_eq!(chat.max_output_tokens, Some(7));
    assert_eq!(write(&chat)["max_tokens"], 7);
    let written = Dialect::OpenaiChat.write_request_capped(&chat, CapField::MaxCompletionTokens);
    let body: Value = serde_json::from_slice(&written.bytes).unwrap();
    assert_eq!(body["max_completion_tokens"], 7);
    assert_eq!(body.get("max_tokens"), None);
    let both = read(&ask(&json!({ "max_completion_tokens": 7, "max_tokens": 9 })));
    assert_eq!(both.max_output_tokens, Some(7));
    let scanned = |body: &str| backstay_wire::scan::scan(body.as_bytes(), 127).unwrap();
    assert_eq!(CapField::of(&scanned(r#"{"max_tokens":1}"#)), Some(CapField::MaxTokens));
    assert_eq!(
        CapField::of(&scanned(r#"{"max_tokens":1,"max_completion_tokens":2}"#)),
        Some(CapField::MaxCompletionTokens)
    );
    assert_eq!(CapField::of(&scanned("{}")), None);
}

type FaultRow = (Value, &'static str, &'static str);

fn assert_faults(rows: &[FaultRow]) {
    for (body, path, note) in rows {
        let fault = fault(body);
        assert_eq!((fault.path.as_str(), fault.note.as_str()), (*path, *note), "{body}");
    }
}

#[test]
fn a_wrong_type_in_a_message_is_named_by_its_pointer() {
    let message = |message: Value| json!({ "model": "m", "messages": [{ "role": "user", "content": "" }, message] });
    assert_faults(&[
        (json!({ "messages": [] }), "/model", "expected a string, found nothing"),
        (json!({ "model": 5, "messages": [] }), "/model", "expected a string, found a number"),
        (json!({ "model": "m" }), "/messages", "expected an array, found nothing"),
        (
            json!({ "model": "m", "messages": {} }),
            "/messages",
            "expected an array, found an object",
        ),
        (
            json!({ "model": "m", "messages": ["hi"] }),
            "/messages/0",
            "expected an object, found a string",
        ),
        (message(json!({})), "/messages/1/role", "expected a string, found nothing"),
        (
            message(json!({ "role": "robot" })),
            "/messages/1/role",
            "expected one of system, developer, user, assistant, tool, found \"robot\"",
        ),
        (
            message(json!({ "role": "user", "content": 7 })),
            "/messages/1/content",
            "expected a string or an array of parts, found a number",
        ),
        (
            message(json!({ "role": "user", "content": [{}] })),
            "/messages/1/content/0/type",
            "expected a string, found nothing",
        ),
        (
            message(
                json!({ "role": "user", "content": [{ "type": "image_url", "image_url": "x" }] }),
            ),
            "/messages/1/content/0/image_url",
            "expected an object, found a string",
        ),
        (
            message(json!({ "role": "tool", "content": "x" })),
            "/messages/1/tool_call_id",
            "expected a string, found nothing",
        ),
        (
            message(json!({ "role": "assistant", "tool_calls": [{ "id": "t", "function": {} }] })),
            "/messages/1/tool_calls/0/function/name",
            "expected a string, found nothing",
        ),
    ]);
}

#[test]
fn a_wrong_type_of_an_option_is_named_by_its_pointer() {
    assert_faults(&[
        (
            ask(&json!({ "temperature": "hot" })),
            "/temperature",
            "expected a number, found a string",
        ),
        (ask(&json!({ "stream": "yes" })), "/stream", "expected true or false, found a string"),
        (
            ask(&json!({ "max_tokens": -1 })),
            "/max_tokens",
            "expected a whole number from 0, found a negative number",
        ),
        (
            ask(&json!({ "max_completion_tokens": 1.5 })),
            "/max_completion_tokens",
            "expected a whole number from 0, found a number with a fraction",
        ),
        (ask(&json!({ "stop": [1] })), "/stop/0", "expected a string, found a number"),
        (
            ask(&json!({ "stop": 1 })),
            "/stop",
            "expected a string or an array of strings, found a number",
        ),
        (
            ask(&json!({ "tools": [{ "type": "function" }] })),
            "/tools/0/function",
            "expected an object, found nothing",
        ),
        (
            ask(&json!({ "tool_choice": 1 })),
            "/tool_choice",
            "expected a string or an object, found a number",
        ),
        (
            ask(&json!({ "tool_choice": { "type": "function" } })),
            "/tool_choice/function/name",
            "expected a string, found nothing",
        ),
        (
            ask(&json!({ "response_format": {} })),
            "/response_format/type",
            "expected a string, found nothing",
        ),
        (
            ask(&json!({ "response_format": { "type": "json_schema", "json_schema": 1 } })),
            "/response_format/json_schema",
            "expected an object, found a number",
        ),
        (
            ask(&json!({ "stream_options": true })),
            "/stream_options",
            "expected an object, found a boolean",
        ),
        (json!([]), "", "expected an object, found an array"),
    ]);
}

#[test]
fn a_fault_quotes_no_more_than_a_word() {
    let body = json!({ "model": "m", "messages": [{ "role": "x".repeat(1_000_000) }] });
    assert!(fault(&body).note.len() < 200);
}

#[test]
fn broken_json_says_where() {
    let fault = Dialect::OpenaiChat.read_request(b"{\n \"model\": \"m\",}").unwrap_err();
    assert_eq!(
        fault.note,
        "the request body is not valid JSON: expected a key in double quotes after the comma, found '}' at line 2, column 15"
    );
    let deep = format!("{{\"a\":{}", "[".repeat(100_000));
    let fault = Dialect::OpenaiChat.read_request(deep.as_bytes()).unwrap_err();
    assert!(fault.note.contains("the nesting is deeper than 127 levels"), "{}", fault.note);
}

// --- from another dialect ---

fn foreign() -> Chat {
    Chat { source: Some(Dialect::Anthropic), model: "m".to_owned(), ..Chat::default() }
}

#[test]
fn what_another_dialect_left_over_is_lost_and_said() {
    let mut chat = foreign();
    chat.extra = json!({ "thinking": { "type": "enabled", "budget_tokens": 1024 }, "top_k": 4, "service_tier": "auto" })
        .as_object()
        .unwrap()
        .clone();
    let paths: Vec<_> = losses(&chat).into_iter().map(|l| l.path).collect();
    assert_eq!(paths, ["/thinking", "/top_k"]);
    assert_eq!(write(&chat)["service_tier"], "auto");
    assert_eq!(write(&chat).get("thinking"), None);
}

#[test]
fn tool_results_of_one_turn_become_messages_before_what_the_user_says() {
    let result = |id: &str, failed: bool| Part::ToolResult {
        id: id.to_owned(),
        parts: vec![text("r")],
        failed,
    };
    let call =
        Part::ToolCall { id: "a".to_owned(), name: "f".to_owned(), arguments: "{}".to_owned() };
    let chat = Chat {
        turns: vec![
            Turn { role: Role::Assistant, parts: vec![text("I look."), call] },
            Turn {
                role: Role::User,
                parts: vec![result("a", false), result("b", true), text("and?")],
            },
        ],
        ..foreign()
    };
    assert_eq!(
        write(&chat)["messages"],
        json!([
            { "role": "assistant", "content": "I look.", "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "f", "arguments": "{}" } },
            ] },
            { "role": "tool", "content": "r", "tool_call_id": "a" },
            { "role": "tool", "content": "r", "tool_call_id": "b" },
            { "role": "user", "content": "and?" },
        ])
    );
    assert_eq!(losses(&chat).len(), 1);
}

#[test]
fn reasoning_of_another_provider_and_unknown_blocks_are_dropped_and_said() {
    let parts = vec![
        Part::Thinking { text: "hm".to_owned(), signature: Some("s".to_owned()) },
        Part::Thinking { text: "hm".to_owned(), signature: None },
        Part::Other(json!({ "type": "redacted_thinking", "data": "x" })),
        text("Yes."),
    ];
    let chat = Chat { turns: vec![Turn { role: Role::Assistant, parts }], ..foreign() };
    assert_eq!(write(&chat)["messages"], json!([{ "role": "assistant", "content": "Yes." }]));
    let lost = losses(&chat);
    assert_eq!(lost.len(), 3);
    assert_eq!(lost[2].note, "a block of kind redacted_thinking cannot be said; dropped");
}

#[test]
fn a_tool_the_other_provider_runs_itself_is_lost() {
    let tool = |name: &str, extra: Value| Tool {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({ "type": "object" }),
        strict: None,
        extra: extra.as_object().cloned().unwrap_or_else(Map::new),
    };
    let chat = Chat {
        tools: vec![
            tool("plain", json!({ "type": "custom", "cache_control": {} })),
            tool("search", json!({ "type": "web_search_20250305" })),
        ],
        ..foreign()
    };
    let tools = write(&chat)["tools"].clone();
    assert_eq!(
        tools,
        json!([
            { "type": "function", "function": { "name": "plain", "parameters": { "type": "object" } } },
        ])
    );
    let paths: Vec<_> = losses(&chat).into_iter().map(|l| l.path).collect();
    assert_eq!(paths, ["/tools/0/cache_control", "/tools/1"]);
}

#[test]
fn a_chat_built_by_hand_is_written_plainly() {
    let chat = Chat {
        model: "m".to_owned(),
        system: vec![text("s")],
        turns: vec![Turn::said(Role::User, "hi")],
        format: Some(Format::JsonObject),
        ..Chat::default()
    };
    assert_eq!(
        write(&chat),
        json!({
            "model": "m",
            "messages": [{ "role": "system", "content": "s" }, { "role": "user", "content": "hi" }],
            "response_format": { "type": "json_object" },
        })
    );
}
