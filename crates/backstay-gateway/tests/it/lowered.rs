//! Schemas as they reach the provider: lowered to what it takes, and the replies taken back.

use backstay::record::Step;
use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::client::Seen;
use crate::fixed::Fixed;
use crate::told;
use crate::world::{BOTH, HELLO, Setup, World, pairs, provider, request, short, streamed};

const OPENAI: Dialect = Dialect::OpenaiChat;

const ROUTE: &str = "deadline = \"4s\"\nmax_output_tokens = 500";

/// Each subset that a config can name, with keywords of [`schema`] that must not be sent to it.
const SUBSETS: [(&str, &[&str]); 8] = [
    ("openai_strict", &["minLength", "uniqueItems", "oneOf", "allOf", "default"]),
    ("anthropic", &["minLength", "uniqueItems", "oneOf", "allOf", "maximum", "maxItems"]),
    ("gemini_json_schema", &["minLength", "uniqueItems", "allOf", "default", "const"]),
    ("gemini_response_schema", &["minLength", "uniqueItems", "allOf", "const", "$ref", "oneOf"]),
    ("xgrammar", &["uniqueItems", "allOf"]),
    ("llama_cpp", &["uniqueItems", "allOf", "$ref"]),
    ("ollama", &["uniqueItems", "allOf", "$ref"]),
    ("none", &[]),
];

/// A schema of a bit of everything.
fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "title": {"type": "string", "minLength": 1, "default": "none"},
            "note": {"type": "string"},
            "scores": {"type": "object", "additionalProperties": {"type": "integer", "maximum": 1_000_000_000_000_i64}},
            "place": {"$ref": "#/$defs/Place"},
            "kind": {"oneOf": [{"const": "a"}, {"const": "b"}]},
            "tags": {"type": "array", "items": {"type": "integer"}, "uniqueItems": true,
                     "maxItems": 900},
            "both": {"allOf": [{"type": "integer"}, {"minimum": 1}]}
        },
        "required": ["title", "scores", "place", "kind", "tags", "both"],
        "additionalProperties": false,
        "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}},
                            "required": ["city"], "additionalProperties": false}}
    })
}

/// A request that asks for `schema` in its dialect's own field.
fn asking(dialect: Dialect, model: &str, schema: &Value) -> Value {
    let mut body = request(dialect, model, HELLO);
    match dialect {
        Dialect::OpenaiChat => {
            body["response_format"] = json!({"type": "json_schema",
                "json_schema": {"name": "it", "schema": schema}});
        }
        Dialect::Anthropic => {
            body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
        }
    }
    body
}

/// The schema and `strict` as the provider got them.
fn sent(world: &World, model: &str, dialect: Dialect) -> (Value, Option<bool>) {
    let log = world.log(model);
    let body: Value =
        serde_json::from_str(log.last().and_then(|e| e.body.as_deref()).unwrap_or_default())
            .expect("a JSON body");
    let (schema, strict) = match dialect {
        Dialect::OpenaiChat => {
            ("/response_format/json_schema/schema", "/response_format/json_schema/strict")
        }
        Dialect::Anthropic => ("/output_config/format/schema", "/none"),
    };
    let schema = body.pointer(schema).cloned().unwrap_or_default();
    (schema, body.pointer(strict).and_then(Value::as_bool))
}

fn keys(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            for (key, value) in map {
                found.push(key.clone());
                if key == "properties" || key == "$defs" {
                    value.as_object().into_iter().flatten().for_each(|(_, v)| keys(v, found));
                } else {
                    keys(value, found);
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|value| keys(value, found)),
        _ => {}
    }
}

fn value(dialect: Dialect, seen: &Seen) -> Value {
    serde_json::from_str(&told::plain(dialect, &seen.json()).text).unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_subset_is_sent_what_it_takes_and_the_reply_has_the_callers_form() {
    let mut setup = Setup::new();
    for (subset, _) in SUBSETS {
        for (caller, target) in pairs() {
            let name = format!("{subset}-{}{}", short(caller), short(target));
            let first = format!("{name}-1");
            setup = setup
                .target(&first, provider(target), &["healthy"])
                .and(&format!("schema_subset = \"{subset}\""))
                .route(&name, &[&first], ROUTE);
        }
    }
    let world = setup.start().await;
    let schema = schema();
    for (subset, gone) in SUBSETS {
        for (caller, target) in pairs() {
            let name = format!("{subset}-{}{}", short(caller), short(target));
            let seen = world.ask(caller, &asking(caller, &name, &schema)).await;
            let (got, strict) = sent(&world, &format!("{name}-1"), target);
            let mut found = Vec::new();
            keys(&got, &mut found);
            for key in gone {
                assert!(!found.iter().any(|k| k == key), "{name}: {key} in {got}");
            }
            let is_strict = subset == "openai_strict" && target == Dialect::OpenaiChat;
            assert_eq!(strict, is_strict.then_some(true), "{name}");
            if subset == "none" {
                assert_eq!(got, schema, "{name}");
            }
            // The mock does not know OpenAPI's notation.
            if subset == "gemini_response_schema" {
                continue;
            }
            assert_eq!(seen.status, 200, "{name}: {}", seen.text());
            // The mock fills what it is sent; the caller gets what it asked for.
            let value = value(caller, &seen);
            assert!(value["scores"].is_object(), "{name}: {value}");
            assert!(!value.as_object().expect("an object").values().any(Value::is_null), "{name}");
        }
    }
    world.stop().await;
}

/// A reply with entries of which two have the same key.
const TWICE: &str = r#"{"id":"c","object":"chat.completion","created":1,"model":"m",
"choices":[{"index":0,"message":{"role":"assistant",
"content":"{\"by\": [{\"key\": \"a\", \"value\": 1}, {\"key\": \"a\", \"value\": 2}]}"},
"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_comes_twice_in_the_entries_of_a_map_is_an_error_with_its_place() {
    let fixed = Fixed::start(TWICE).await;
    let world = Setup::new()
        .tables(&fixed.provider("fixed"))
        .target("twice-1", "fixed", &["healthy"])
        .and("schema_subset = \"openai_strict\"")
        .route("twice", &["twice-1"], ROUTE)
        .start()
        .await;
    let schema = json!({"type": "object", "required": ["by"], "additionalProperties": false,
        "properties": {"by": {"type": "object", "additionalProperties": {"type": "integer"}}}});
    let seen = world.ask(OPENAI, &asking(OPENAI, "twice", &schema)).await;
    assert_eq!(seen.status, 502, "{}", seen.text());
    assert!(seen.text().contains("/by: duplicate key 'a'"), "{}", seen.text());
    world.stop().await;
}

/// A reply in the lowered form of [`optional`].
const NULLS: &str = r#"{"id":"c","object":"chat.completion","created":1,"model":"m",
"choices":[{"index":0,"message":{"role":"assistant",
"content":"{\"id\": 12345678901234567890123, \"note\": null, \"maybe\": null}"},
"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

fn optional() -> Value {
    json!({
        "type": "object",
        "properties": {"id": {"type": "integer"}, "note": {"type": "string", "minLength": 1},
                       "maybe": {"type": ["string", "null"]}},
        "required": ["id"],
        "additionalProperties": false
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_optional_property_is_nullable_to_openai_and_its_null_never_gets_out() {
    let fixed = Fixed::start(NULLS).await;
    let world = Setup::new()
        .tables(&fixed.provider("fixed"))
        .target("opt-1", "openai", &["healthy"])
        .and("schema_subset = \"openai_strict\"")
        .route("opt", &["opt-1"], ROUTE)
        .target("nulls-1", "fixed", &["healthy"])
        .and("schema_subset = \"openai_strict\"")
        .route("nulls", &["nulls-1"], ROUTE)
        .start()
        .await;
    let seen = world.ask(OPENAI, &asking(OPENAI, "opt", &optional())).await;
    assert_eq!(seen.status, 200, "{}", seen.text());
    let (got, strict) = sent(&world, "opt-1", OPENAI);
    assert_eq!((&got["required"], strict), (&json!(["id", "note", "maybe"]), Some(true)));
    assert_eq!(got.pointer("/properties/note/anyOf/1/type"), Some(&json!("null")), "{got}");
    for body in
        [asking(OPENAI, "nulls", &optional()), streamed(asking(OPENAI, "nulls", &optional()))]
    {
        let seen = world.ask(OPENAI, &body).await;
        assert_eq!(seen.status, 200, "{}", seen.text());
        let told = if body["stream"] == json!(true) {
            told::stream(OPENAI, &seen)
        } else {
            assert_eq!(seen.header("x-backstay-edits"), "lowered_null_dropped=1");
            assert_eq!(seen.header("x-backstay-outcome"), "answered");
            told::plain(OPENAI, &seen.json())
        };
        assert_eq!(told.text, r#"{"id":12345678901234567890123,"maybe":null}"#);
        let id = seen.header("x-backstay-call-id");
        let row = world.engine().call_log().find(id).expect("a log").expect("a row");
        let lowered = row.trail.notes.iter().find_map(|note| match &note.step {
            Step::Sent { lowered, .. } => Some(lowered.join("; ")),
            _ => None,
        });
        assert_eq!(
            lowered.as_deref(),
            Some(
                "schema lowered: 4 changes; /properties/note: `minLength` left out; \
                 /properties/note: optional `note` made nullable; \
                 /properties/maybe: a missing `maybe` and a `null` cannot be told apart: it \
                 stays; \
                 /properties/maybe: optional `maybe`, nullable already, made required"
            )
        );
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_format_that_fits_goes_through_byte_for_byte() {
    let mut setup = Setup::new();
    for dialect in BOTH {
        let name = format!("fit-{}", short(dialect));
        let first = format!("{name}-1");
        setup = setup
            .target(&first, provider(dialect), &["healthy"])
            .and(if dialect == Dialect::OpenaiChat {
                "schema_subset = \"openai_strict\""
            } else {
                ""
            })
            .route(&name, &[&first], ROUTE);
    }
    let world = setup.start().await;
    for dialect in BOTH {
        let name = format!("fit-{}", short(dialect));
        // The spaces, and a field nobody knows, are the caller's.
        let field = match dialect {
            Dialect::OpenaiChat => {
                r#""response_format" : {"type":"json_schema",  "json_schema": {"x-own": 1, "name":"n", "strict" : true, "schema": {"type":"object","properties":{"a":{"type" :"string"}},"required":["a"],"additionalProperties":false}}}"#
            }
            Dialect::Anthropic => {
                r#""output_config" : {"effort": "low",  "format": {"type":"json_schema", "schema": {"type":"object","properties":{"a":{"type" :"string"}},"additionalProperties":false}}}"#
            }
        };
        let body = format!(
            r#"{{"model": "{name}", "max_tokens": 100, {field}, "messages": [{{"role":"user","content":"hello"}}]}}"#
        );
        let start = crate::world::start(dialect);
        let seen = crate::client::call(world.address(), start, &[], body.as_bytes()).await;
        assert_eq!(seen.status, 200, "{}", seen.text());
        let log = world.log(&format!("{name}-1"));
        let got = log[0].body.as_deref().unwrap_or_default();
        assert!(got.contains(field), "{got}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_annotation_of_ours_goes_to_no_provider_and_no_other_byte_changes() {
    let mut setup = Setup::new();
    for subset in ["openai_strict", "none"] {
        for (from, to) in pairs() {
            let name = format!("own-{}-{}-{subset}", short(from), short(to));
            let first = format!("{name}-1");
            let known = format!("schema_subset = \"{subset}\"");
            setup = setup.target(&first, provider(to), &["healthy"]).and(&known);
            setup = setup.route(&name, &[&first], ROUTE);
        }
    }
    let world = setup.start().await;
    let annotation = r#" "x-backstay-fallback" : "a","#;
    let schema = |annotation: &str| {
        format!(
            r#"{{"type":"object","properties":{{"x-backstay-p":{{{annotation} "type" :"string"}}}},"required":["x-backstay-p"],"additionalProperties":false}}"#
        )
    };
    for subset in ["openai_strict", "none"] {
        for (from, to) in pairs() {
            let name = format!("own-{}-{}-{subset}", short(from), short(to));
            let fields = |annotation: &str| match from {
                Dialect::OpenaiChat => format!(
                    r#""response_format" : {{"type":"json_schema",  "json_schema": {{"name":"n", "strict" : true, "schema": {0}}}}}, "tools": [{{"type":"function", "function": {{"name":"f", "parameters":  {0}}}}}]"#,
                    schema(annotation)
                ),
                Dialect::Anthropic => format!(
                    r#""output_config" : {{"format": {{"type":"json_schema", "schema": {0}}}}}, "tools": [{{"name":"f",  "input_schema":  {0}}}]"#,
                    schema(annotation)
                ),
            };
            let body = format!(
                r#"{{"model": "{name}", "max_tokens": 100, {}, "messages": [{{"role":"user","content":"hello"}}]}}"#,
                fields(annotation)
            );
            let start = crate::world::start(from);
            let seen = crate::client::call(world.address(), start, &[], body.as_bytes()).await;
            assert_eq!(seen.status, 200, "{}", seen.text());
            let log = world.log(&format!("{name}-1"));
            let got = log[0].body.as_deref().unwrap_or_default();
            assert!(!got.contains("fallback"), "{name}: {got}");
            assert!(got.contains("x-backstay-p"), "{name}: {got}");
            if from == to && (from, subset) != (Dialect::Anthropic, "openai_strict") {
                assert!(got.contains(&fields("")), "{name}: {got}");
            }
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_that_cannot_be_lowered_is_said_in_the_prompt() {
    let mut setup = Setup::new();
    for (caller, target) in pairs() {
        let name = format!("any-{}{}", short(caller), short(target));
        let first = format!("{name}-1");
        setup = setup
            .target(&first, provider(target), &["healthy"])
            .and(if target == Dialect::OpenaiChat {
                "schema_subset = \"openai_strict\""
            } else {
                ""
            })
            .route(&name, &[&first], ROUTE);
    }
    let world = setup.start().await;
    let schema = json!({"type": "object", "properties": {"x": {}}, "required": ["x"]});
    for (caller, target) in pairs() {
        let name = format!("any-{}{}", short(caller), short(target));
        let mut body = asking(caller, &name, &schema);
        match caller {
            Dialect::OpenaiChat => body["messages"]
                .as_array_mut()
                .expect("a list")
                .insert(0, json!({"role": "system", "content": "Be brief."})),
            Dialect::Anthropic => body["system"] = json!("Be brief."),
        }
        let _ = world.ask(caller, &body).await;
        let log = world.log(&format!("{name}-1"));
        let got: Value =
            serde_json::from_str(log[0].body.as_deref().unwrap_or_default()).expect("JSON");
        let system = match target {
            Dialect::OpenaiChat => got.pointer("/messages/0/content"),
            Dialect::Anthropic => got.pointer("/system"),
        };
        let system = system.map(Value::to_string).unwrap_or_default();
        assert!(system.contains("Be brief."), "{name}: {got}");
        assert!(system.contains("valid against this JSON Schema"), "{name}: {got}");
        assert!(sent(&world, &format!("{name}-1"), target).0.is_null(), "{name}: {got}");
        if target == Dialect::OpenaiChat {
            assert_eq!(got["response_format"], json!({"type": "json_object"}), "{name}");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strict_tools_are_lowered_and_their_arguments_taken_back() {
    let mut setup = Setup::new();
    for (caller, target) in pairs() {
        let name = format!("tool-{}{}", short(caller), short(target));
        let first = format!("{name}-1");
        setup = setup
            .target(&first, provider(target), &["tool-call"])
            .and(if target == Dialect::OpenaiChat {
                "schema_subset = \"openai_strict\""
            } else {
                ""
            })
            .route(&name, &[&first], ROUTE);
    }
    let world = setup.start().await;
    let parameters = json!({
        "type": "object",
        "properties": {"city": {"type": "string", "minLength": 1},
                       "by": {"type": "object", "additionalProperties": {"type": "integer"}}},
        "required": ["city", "by"]
    });
    for (caller, target) in pairs() {
        let name = format!("tool-{}{}", short(caller), short(target));
        let mut body = request(caller, &name, HELLO);
        body["tools"] = match caller {
            Dialect::OpenaiChat => json!([
                {"type": "function", "function": {"name": "look", "strict": true,
                    "parameters": parameters}},
                {"type": "function", "function": {"name": "loose", "parameters": parameters}},
            ]),
            Dialect::Anthropic => json!([
                {"name": "look", "strict": true, "input_schema": parameters},
                {"name": "loose", "input_schema": parameters},
            ]),
        };
        for body in [body.clone(), streamed(body)] {
            let seen = world.ask(caller, &body).await;
            assert_eq!(seen.status, 200, "{name}: {}", seen.text());
            let told = if body["stream"] == json!(true) {
                told::stream(caller, &seen)
            } else {
                told::plain(caller, &seen.json())
            };
            let call = told.calls.iter().find(|call| call.0 == "look").expect("a call");
            let arguments: Value = serde_json::from_str(&call.1).expect("JSON");
            assert!(arguments["by"].is_object(), "{name}: {arguments}");
        }
        let log = world.log(&format!("{name}-1"));
        let got: Value =
            serde_json::from_str(log[0].body.as_deref().unwrap_or_default()).expect("JSON");
        let at = |index: usize| match target {
            Dialect::OpenaiChat => format!("/tools/{index}/function/parameters"),
            Dialect::Anthropic => format!("/tools/{index}/input_schema"),
        };
        let (strict, loose) = (got.pointer(&at(0)), got.pointer(&at(1)));
        let strict = strict.expect("a tool");
        assert_eq!(strict.pointer("/properties/by/type"), Some(&json!("array")), "{strict}");
        assert_eq!(strict["additionalProperties"], json!(false), "{strict}");
        assert_eq!(loose, Some(&parameters), "{name}");
    }
    world.stop().await;
}
