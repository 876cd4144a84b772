//! Requests of Anthropic Messages: read, written again, and written for callers of the other
//! dialect.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking, in its own functions too")]

use backstay_wire::chat::{Chat, Format, ImageSource, Part, Role, Tool, ToolChoice, Turn};
use backstay_wire::dialect::{Dialect, Malformed};
use serde_json::{Value, json};

fn try_read(body: &Value) -> Result<Chat, Malformed> {
    Dialect::Anthropic.read_request(body.to_string().as_bytes())
}

fn read(body: &Value) -> Chat {
    try_read(body).unwrap()
}

fn write(chat: &Chat) -> (Value, Vec<String>) {
    let written = Dialect::Anthropic.write_request(chat);
    let losses = written.losses.into_iter().map(|loss| format!("{}: {}", loss.path, loss.note));
    (serde_json::from_slice(&written.bytes).unwrap(), losses.collect())
}

fn plain(content: &Value) -> Value {
    json!({"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": content}]})
}

/// A chat of the other dialect's caller.
fn from_openai(turns: Vec<Turn>) -> Chat {
    let source = Some(Dialect::OpenaiChat);
    Chat { source, model: "m".into(), turns, ..Chat::default() }
}

fn call(id: &str, arguments: &str) -> Part {
    Part::ToolCall { id: id.into(), name: "f".into(), arguments: arguments.into() }
}

fn result(id: &str, text: &str) -> Turn {
    let parts = vec![Part::Text(text.into())];
    Turn { role: Role::Tool, parts: vec![Part::ToolResult { id: id.into(), parts, failed: false }] }
}

#[test]
fn every_field_is_read() {
    let chat = read(&json!({
        "model": "m", "max_tokens": 9, "system": "be brief", "stream": true,
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"}],
        "stop_sequences": ["a", "b"], "temperature": 0.50, "top_p": 0.9,
        "tools": [
            {"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": true},
            {"type": "web_search_20250305", "name": "web_search"},
            {"type": "custom", "name": "g", "input_schema": {}, "defer_loading": true},
        ],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
        "output_config": {"format": {"type": "json_schema", "schema": {"a": 1}}, "effort": "low"},
        "metadata": {"user_id": "u"}, "thinking": {"type": "adaptive"}, "top_k": 4,
        "service_tier": null,
    }));
    assert_eq!(chat.source, Some(Dialect::Anthropic));
    assert_eq!((chat.model.as_str(), chat.max_output_tokens, chat.stream), ("m", Some(9), true));
    assert_eq!(chat.system, [Part::Text("be brief".into())]);
    assert_eq!(chat.turns, [Turn::said(Role::User, "hi"), Turn::said(Role::Assistant, "ho")]);
    assert_eq!(chat.stop, ["a", "b"]);
    assert_eq!(chat.temperature.unwrap().to_string(), "0.5");
    assert_eq!(chat.tool_choice, Some(ToolChoice::Required));
    assert_eq!(chat.parallel_tools, Some(false));
    let names: Vec<&str> = chat.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["f", "g"]);
    assert_eq!((chat.tools[0].strict, chat.tools[1].strict), (Some(true), None));
    let schema = json!({"a": 1});
    let format = Format::JsonSchema { name: "reply".into(), schema, strict: None };
    assert_eq!(chat.format, Some(format));
    assert_eq!(chat.user.as_deref(), Some("u"));
    let extra = json!({
        "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        "output_config": {"effort": "low"}, "thinking": {"type": "adaptive"}, "top_k": 4,
    });
    assert_eq!(Value::Object(chat.extra), extra);
}

#[test]
fn every_block_is_read() {
    let chat = read(&plain(&json!([
        {"type": "tool_result", "tool_use_id": "t1", "content": "ok"},
        {"type": "tool_result", "tool_use_id": "t2", "is_error": true,
            "content": [{"type": "text", "text": "no"}], "cache_control": {"type": "ephemeral"}},
        {"type": "text", "text": "a"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}},
        {"type": "image", "source": {"type": "url", "url": "https://x.example/i"}},
        {"type": "image", "source": {"type": "file", "file_id": "f"}},
        {"type": "document", "source": {"type": "text", "text": "d"}},
        {"type": "tool_result", "tool_use_id": "t3"},
    ])));
    let found =
        |id: &str, parts: Vec<Part>, failed| Part::ToolResult { id: id.into(), parts, failed };
    let rest = json!({"part_fields": {"cache_control": {"type": "ephemeral"}}});
    let picture = |source| Part::Image { media_type: None, source };
    let file = json!({"type": "image", "source": {"type": "file", "file_id": "f"}});
    let document = json!({"type": "document", "source": {"type": "text", "text": "d"}});
    let turn = |role, parts| Turn { role, parts };
    assert_eq!(
        chat.turns,
        [
            turn(Role::Tool, vec![found("t1", vec![Part::Text("ok".into())], false)]),
            turn(
                Role::Tool,
                vec![found("t2", vec![Part::Text("no".into())], true), Part::Other(rest),]
            ),
            turn(
                Role::User,
                vec![
                    Part::Text("a".into()),
                    Part::Image {
                        media_type: Some("image/png".into()),
                        source: ImageSource::Base64("AA".into()),
                    },
                    picture(ImageSource::Url("https://x.example/i".into())),
                    Part::Other(file),
                    Part::Other(document),
                ]
            ),
            turn(Role::Tool, vec![found("t3", vec![], false)]),
        ]
    );
}

#[test]
fn a_missing_field_is_told_as_the_provider_tells_it() {
    for (field, body) in [
        ("model", json!({"max_tokens": 1, "messages": []})),
        ("max_tokens", json!({"model": "m", "messages": [{"role": "user", "content": "a"}]})),
        ("max_tokens", json!({"model": "m", "max_tokens": null, "messages": []})),
        ("messages", json!({"model": "m", "max_tokens": 1})),
    ] {
        let fault = try_read(&body).unwrap_err();
        assert_eq!(fault.path, format!("/{field}"));
        assert!(fault.note.starts_with("Field required"), "{fault}");
    }
}

#[test]
fn a_wrong_body_is_malformed_and_says_where() {
    let with = |name: &str, value: Value| {
        let mut body = plain(&json!("a"));
        body[name] = value;
        body.to_string()
    };
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let deep_content = format!(
        "{{\"model\":\"m\",\"max_tokens\":1,\"messages\":[{{\"role\":\"user\",\"content\":{}",
        "[".repeat(100_000)
    );
    for (body, path) in [
        ("", ""),
        ("[]", ""),
        ("{", ""),
        (&*deep, "/x"),
        (&*deep_content, ""),
        (&*with("messages", json!([])), "/messages"),
        (&*with("messages", json!("hi")), "/messages"),
        (&*with("messages", json!([7])), "/messages/0"),
        (&*with("messages", json!([{"role": "user"}])), "/messages/0"),
        (&*with("messages", json!([{"role": "bot", "content": "a"}])), "/messages/0/role"),
        (&*with("messages", json!([{"role": "user", "content": 7}])), "/messages/0/content"),
        (&*plain(&json!([{"text": "a"}])).to_string(), "/messages/0/content/0"),
        (&*plain(&json!([{"type": "text"}])).to_string(), "/messages/0/content/0"),
        (&*plain(&json!(["a"])).to_string(), "/messages/0/content/0"),
        (&*with("max_tokens", json!(-1)), "/max_tokens"),
        (&*with("max_tokens", json!("9")), "/max_tokens"),
        (&*with("stream", json!("yes")), "/stream"),
        (&*with("stop_sequences", json!("a")), "/stop_sequences"),
        (&*with("system", json!(7)), "/system"),
        (&*with("tools", json!({})), "/tools"),
        (&*with("tools", json!([{"input_schema": {}}])), "/tools/0/name"),
        (&*with("tools", json!([{"name": "f"}])), "/tools/0/input_schema"),
        (&*with("tool_choice", json!({"type": "tool"})), "/tool_choice/name"),
        (&*with("metadata", json!([])), "/metadata"),
    ] {
        let head: String = body.chars().take(80).collect();
        let fault = Dialect::Anthropic.read_request(body.as_bytes()).unwrap_err();
        assert_eq!(fault.path, path, "{head}: {fault}");
        let has_place = fault.note.contains("at line 1 column");
        assert!(!fault.note.is_empty() && (path.is_empty() || !has_place), "{fault}");
    }
    assert!(Dialect::Anthropic.read_request(b"{\"model\":\"\xff\"}").is_err());
}

#[test]
fn a_fault_does_not_quote_what_was_said() {
    for body in [
        json!("a secret"),
        json!({"model": "m", "max_tokens": "a secret"}),
        json!({"metadata": "a secret, expected"}),
        plain(&json!([{"type": "text", "text": ["a secret"]}])),
        plain(&json!([{"type": "image", "source": "a secret"}])),
        json!({"tool_choice": "a secret", "messages": []}),
    ] {
        let fault = try_read(&body).unwrap_err();
        assert!(!fault.note.contains("secret"), "{fault}");
        assert!(fault.note.contains("expected"), "{fault}");
    }
}

#[test]
fn a_request_of_this_dialect_is_written_again_without_a_loss() {
    let body = json!({
        "model": "m", "max_tokens": 9,
        "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
                {"type": "image", "source": {"type": "url", "url": "https://x.example/i"}},
                {"type": "document", "title": "t", "source": {"type": "text", "text": "d"}},
            ]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "b"},
                {"type": "tool_use", "id": "t1", "name": "f", "input": {"a": 1},
                    "caller": {"type": "direct"}},
                {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "is_error": true,
                    "content": [{"type": "text", "text": "no"}]},
                {"type": "text", "text": "c"},
            ]},
        ],
        "tools": [
            {"name": "f", "description": "d", "input_schema": {"type": "object"}, "strict": true},
            {"type": "web_search_20250305", "name": "web_search"},
        ],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": false},
        "stop_sequences": ["a"], "temperature": 0.5, "top_p": 0.9,
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {}}},
        "metadata": {"user_id": "u"}, "stream": true,
        "thinking": {"type": "adaptive"}, "mcp_servers": [{"name": "x"}],
    });
    assert_eq!(write(&read(&body)), (body, vec![]));
}

#[test]
fn arguments_keep_their_bytes() {
    let input = r#"{"n": 12345678901234567890123, "x":1.10}"#;
    let body = format!(
        r#"{{"model":"m","max_tokens":1,"messages":[{{"role":"user","content":"a"}},{{"role":
        "assistant","content":[{{"type":"tool_use","id":"t","name":"f","input":{input}}}]}}]}}"#
    );
    let chat = Dialect::Anthropic.read_request(body.as_bytes()).unwrap();
    let written = Dialect::Anthropic.write_request(&chat).bytes;
    assert!(String::from_utf8(written).unwrap().contains(input));
}

// --- for callers of the other dialect ---

#[test]
fn tool_turns_become_results_that_stand_first_in_one_user_message() {
    let chat = from_openai(vec![
        Turn::said(Role::User, "a"),
        Turn { role: Role::Assistant, parts: vec![call("c1", ""), call("c2", "{\"x\":1}")] },
        result("c1", "one"),
        result("c2", "two"),
        Turn::said(Role::User, "b"),
        Turn::said(Role::User, "c"),
    ]);
    let (body, losses) = write(&chat);
    let text = |words: &str| json!({"type": "text", "text": words});
    let found = |id: &str, words: &str| json!({"type": "tool_result", "tool_use_id": id, "content": [text(words)]});
    assert_eq!(
        body,
        json!({
            "model": "m", "max_tokens": 4096,
            "messages": [
                {"role": "user", "content": "a"},
                {"role": "assistant", "content": [
                    {"type": "tool_use", "id": "c1", "name": "f", "input": {}},
                    {"type": "tool_use", "id": "c2", "name": "f", "input": {"x": 1}},
                ]},
                {"role": "user", "content": [
                    found("c1", "one"), found("c2", "two"), text("b"), text("c"),
                ]},
            ],
        })
    );
    assert_eq!(losses, Vec::<String>::new());
}

#[test]
fn an_instruction_in_the_middle_is_said_as_the_user_behind_the_results() {
    let chat = from_openai(vec![
        Turn::said(Role::User, "a"),
        Turn { role: Role::Assistant, parts: vec![call("c1", "{}")] },
        Turn::said(Role::System, "be brief"),
        result("c1", "one"),
    ]);
    let (body, losses) = write(&chat);
    let kinds: Vec<&Value> =
        body["messages"][2]["content"].as_array().unwrap().iter().map(|b| &b["type"]).collect();
    assert_eq!(kinds, ["tool_result", "text"]);
    assert_eq!(losses.len(), 1, "{losses:?}");
}

#[test]
fn the_user_begins_and_a_lone_instruction_is_the_users() {
    let (body, losses) =
        write(&from_openai(vec![Turn::said(Role::Assistant, "hi"), Turn::said(Role::User, "ho")]));
    assert_eq!(body["messages"][0]["role"], "user");
    assert_eq!(body["messages"][1], json!({"role": "assistant", "content": "hi"}));
    assert_eq!(losses.len(), 1, "{losses:?}");

    let mut lone = from_openai(vec![]);
    lone.system = vec![Part::Text("tell a joke".into())];
    let (body, losses) = write(&lone);
    assert_eq!(body["messages"], json!([{"role": "user", "content": "tell a joke"}]));
    assert_eq!(body.get("system"), None);
    assert_eq!(losses.len(), 1, "{losses:?}");
}

#[test]
fn blank_text_is_dropped_and_a_last_assistant_turn_ends_without_space() {
    let (body, losses) = write(&from_openai(vec![
        Turn::said(Role::User, "a"),
        Turn::said(Role::Assistant, " \n"),
        Turn { role: Role::User, parts: vec![Part::Text(String::new()), Part::Text("b".into())] },
        Turn::said(Role::Assistant, "so: \n"),
    ]));
    let text = |words: &str| json!({"type": "text", "text": words});
    assert_eq!(
        body["messages"],
        json!([
            {"role": "user", "content": [text("a"), text("b")]},
            {"role": "assistant", "content": "so:"},
        ])
    );
    assert_eq!(losses.len(), 2, "{losses:?}");
}

#[test]
fn pictures_are_split_out_of_data_urls() {
    let picture = |media_type: Option<&str>, source| Part::Image {
        media_type: media_type.map(str::to_owned),
        source,
    };
    let url = |text: &str| ImageSource::Url(text.to_owned());
    let (body, losses) = write(&from_openai(vec![Turn {
        role: Role::User,
        parts: vec![
            picture(None, url("data:image/png;charset=x;base64,AAAA")),
            picture(None, url("https://x.example/i")),
            picture(Some("image/gif"), ImageSource::Base64("BB".into())),
            picture(None, url("data:image/svg+xml,<svg/>")),
            picture(None, ImageSource::Base64("CC".into())),
        ],
    }]));
    let image = |source: Value| json!({"type": "image", "source": source});
    assert_eq!(
        body["messages"][0]["content"],
        json!([
            image(json!({"type": "base64", "media_type": "image/png", "data": "AAAA"})),
            image(json!({"type": "url", "url": "https://x.example/i"})),
            image(json!({"type": "base64", "media_type": "image/gif", "data": "BB"})),
        ])
    );
    assert_eq!(losses.len(), 2, "{losses:?}");
}

#[test]
fn broken_arguments_are_wrapped_and_foreign_reasoning_is_left_out() {
    let (body, losses) = write(&from_openai(vec![
        Turn::said(Role::User, "a"),
        Turn {
            role: Role::Assistant,
            parts: vec![
                Part::Thinking { text: "hm".into(), signature: Some("s".into()) },
                Part::Refusal("no".into()),
                call("c1", "{\"a\":"),
            ],
        },
        result("c1", "one"),
    ]));
    assert_eq!(
        body["messages"][1]["content"],
        json!([
            {"type": "text", "text": "no"},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"_raw": "{\"a\":"}},
        ])
    );
    assert_eq!(losses.len(), 3, "{losses:?}");
    assert!(losses.iter().all(|loss| loss.starts_with("/messages/1/content/")), "{losses:?}");
}

#[test]
fn ids_with_letters_that_are_not_taken_still_meet_their_results() {
    let (body, _) = write(&from_openai(vec![
        Turn::said(Role::User, "a"),
        Turn {
            role: Role::Assistant,
            parts: vec![call("functions.f:0", "{}"), call("functions:f.0", "{}"), call("", "{}")],
        },
        result("functions.f:0", "one"),
        result("functions:f.0", "two"),
        result("", "three"),
    ]));
    let ids = |at: usize, key: &str| -> Vec<String> {
        let blocks = body["messages"][at]["content"].as_array().unwrap();
        blocks.iter().map(|block| block[key].as_str().unwrap().to_owned()).collect()
    };
    let called = ids(1, "id");
    assert_eq!(called, ids(2, "tool_use_id"));
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    assert!(called.iter().all(|id| !id.is_empty() && id.chars().all(plain)), "{called:?}");
    assert!(called[0] != called[1] && called[1] != called[2], "{called:?}");
}

#[test]
fn tools_and_choices_are_said_in_this_dialects_words() {
    let tool = |parameters: Value| Tool {
        name: "f".into(),
        description: String::new(),
        parameters,
        strict: Some(false),
        extra: serde_json::Map::new(),
    };
    let mut chat = from_openai(vec![Turn::said(Role::User, "a")]);
    chat.tools = vec![tool(Value::Null), tool(json!({"properties": {}}))];
    let (body, _) = write(&chat);
    assert_eq!(
        body["tools"],
        json!([
            {"name": "f", "input_schema": {"type": "object", "properties": {}}, "strict": false},
            {"name": "f", "input_schema": {"properties": {}, "type": "object"}, "strict": false},
        ])
    );
    for (choice, parallel, expected) in [
        (None, None, Value::Null),
        (None, Some(false), json!({"type": "auto", "disable_parallel_tool_use": true})),
        (Some(ToolChoice::Auto), None, json!({"type": "auto"})),
        (Some(ToolChoice::Never), Some(false), json!({"type": "none"})),
        (Some(ToolChoice::Required), None, json!({"type": "any"})),
        (
            Some(ToolChoice::Named("f".into())),
            Some(true),
            json!({"type": "tool", "name": "f", "disable_parallel_tool_use": false}),
        ),
    ] {
        chat.tool_choice = choice;
        chat.parallel_tools = parallel;
        let (body, losses) = write(&chat);
        assert_eq!(body["tool_choice"], expected);
        assert_eq!(losses, Vec::<String>::new());
    }
    chat.tools.clear();
    let (body, losses) = write(&chat);
    assert_eq!(body.get("tool_choice"), None);
    assert_eq!(losses.len(), 1, "{losses:?}");
}

#[test]
fn what_this_dialect_cannot_say_is_a_loss_each() {
    let body = json!({
        "model": "m", "n": 2, "logprobs": true, "seed": 7, "temperature": 1.5,
        "stop": ["END", " "], "user": "u", "top_k": 5, "service_tier": "flex",
        "metadata": {"a": "b"}, "response_format": {"type": "json_object"},
        "messages": [{"role": "user", "name": "ann", "content": [
            {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}},
            {"type": "input_audio", "input_audio": {"data": "", "format": "wav"}},
        ]}],
    });
    let chat = Dialect::OpenaiChat.read_request(body.to_string().as_bytes()).unwrap();
    let (body, losses) = write(&chat);
    assert_eq!(
        body,
        json!({
            "model": "m", "max_tokens": 4096, "stop_sequences": ["END"], "temperature": 1,
            "metadata": {"user_id": "u"}, "top_k": 5,
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}},
            ]}],
        })
    );
    let mut paths: Vec<&str> = losses.iter().map(|loss| loss.split(": ").next().unwrap()).collect();
    paths.sort_unstable();
    assert_eq!(
        paths,
        [
            "/logprobs",
            "/messages/0/content/2",
            "/messages/0/content/3/name",
            "/metadata",
            "/n",
            "/response_format",
            "/seed",
            "/service_tier",
            "/stop/1",
            "/temperature",
        ]
    );
}

#[test]
fn a_schema_goes_to_the_output_config() {
    let mut chat = from_openai(vec![Turn::said(Role::User, "a")]);
    let schema = json!({"type": "object"});
    chat.format = Some(Format::JsonSchema { name: "x".into(), schema, strict: Some(true) });
    let (body, losses) = write(&chat);
    let format = json!({"type": "json_schema", "schema": {"type": "object"}});
    assert_eq!(body["output_config"], json!({"format": format}));
    assert_eq!(losses, Vec::<String>::new());
}
