//! Replies that are almost what was asked for: what is mended, aligned, let through or replaced,
//! and that every change is told.

use backstay::record::Step;
use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::client::Seen;
use crate::fixed::Fixed;
use crate::world::{BOTH, HELLO, Setup, TICKET, TRIAGE, World, request, triaged};

const OPENAI: Dialect = Dialect::OpenaiChat;

/// Time for two re-asks.
const ROUTE: &str = "deadline = \"6s\"";

/// A reply of the Chat Completions API that says `text`, or calls a tool with `arguments`.
fn said(text: &str) -> String {
    reply(&json!({"role": "assistant", "content": text}), "stop")
}

fn called(arguments: &str, finish: &str) -> String {
    let function = json!({"name": "weather", "arguments": arguments});
    let call = json!({"id": "c1", "type": "function", "function": function, "odd": 1.50});
    reply(&json!({"role": "assistant", "content": null, "tool_calls": [call]}), finish)
}

fn reply(message: &Value, finish: &str) -> String {
    json!({"id": "x", "object": "chat.completion", "created": 1, "model": "m", "odd": true,
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
    .to_string()
}

/// A world with one route over a provider that always says `body`.
async fn world(body: &str, route: &str) -> (World, Fixed) {
    let fixed = Fixed::start(body).await;
    let setup = Setup::new().tables(&fixed.provider("fixed"));
    let world = setup.alone("r", "fixed", &["healthy"], &format!("{ROUTE}\n{route}")).start().await;
    (world, fixed)
}

/// Asks for a value of S1's schema.
fn decision() -> Value {
    let schema = json!({"type": "object", "required": ["status"], "additionalProperties": false,
        "properties": {"status": {"enum": ["APPROVED", "DENIED", "ON_HOLD"]}, "n": {"type": "integer"}}});
    let mut body = request(OPENAI, "r", HELLO);
    body["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "decision", "schema": schema}});
    body
}

fn content(seen: &Seen) -> String {
    seen.json()["choices"][0]["message"]["content"].as_str().unwrap_or_default().to_owned()
}

/// How a call ended, after how many attempts, and what it said.
fn ended(seen: &Seen) -> (u16, String, usize, String) {
    (seen.status, seen.header("x-backstay-outcome").to_owned(), seen.attempts(), content(seen))
}

fn answer(outcome: &str, attempts: usize, text: &str) -> (u16, String, usize, String) {
    (200, outcome.to_owned(), attempts, text.to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_enum_becomes_the_declared_fallback_at_once_or_after_exactly_three_calls() {
    const PENDING: &str = r#"{"status": "pending_review", "n": 1.0e1}"#;
    let held = r#"{"status": "ON_HOLD", "n": 1.0e1}"#;
    let declared = "fields = [{ at = \"/status\", fallback = \"ON_HOLD\" }]";
    let at_once = "fields = [{ at = \"/status\", on_fail = \"fallback\", fallback = \"ON_HOLD\" }]";
    let cast = format!("{declared}\nalign = {{ enum = \"fallback\" }}");
    for (route, attempts) in [(cast.as_str(), 1), (at_once, 1), (declared, 3)] {
        let (world, _fixed) = world(&said(PENDING), route).await;
        let seen = world.ask(OPENAI, &decision()).await;
        assert_eq!(ended(&seen), answer("fallback", attempts, held), "{route}: {}", seen.text());
        assert_eq!(seen.header("x-backstay-edits"), "enum_fallback=1");
        assert_eq!(seen.json()["odd"], true, "the rest of the reply is the provider's own");
        let row = world.engine().call_log().find(seen.header("x-backstay-call-id"));
        let row = row.unwrap().unwrap();
        assert_eq!((row.outcome.as_ref(), row.edits.as_str()), ("fallback", "enum_fallback=1"));
        let metrics = world.get("/metrics").await.text();
        let series = "backstay_edits_total{kind=\"enum_fallback\",target=\"r-1\",model=\"r-1\"} 1";
        assert!(metrics.contains(series), "{metrics}");
        world.stop().await;
    }
    // With none declared it is a fault, as before.
    let (world, _fixed) = world(&said(PENDING), "").await;
    let seen = world.ask(OPENAI, &decision()).await;
    assert_eq!((seen.status, seen.attempts()), (502, 3));
    assert_eq!(seen.json()["error"]["code"], "reply_schema_error");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fallback_names_the_request_whose_reply_it_is() {
    let steps = ["enum-miss", "wrong-schema", "wrong-schema"];
    let route =
        format!("{ROUTE}\n{TRIAGE}\nfields = [{{ at = \"/category\", fallback = \"other\" }}]");
    let world = Setup::new().alone("r", "openai", &steps, &route).start().await;
    let seen = world.ask(OPENAI, &request(OPENAI, "r", TICKET)).await;
    assert_eq!(
        (seen.header("x-backstay-outcome"), seen.attempts()),
        ("fallback", 3),
        "{}",
        seen.text()
    );
    let row = world.engine().call_log().find(seen.header("x-backstay-call-id"));
    let notes = row.unwrap().unwrap().trail.notes;
    let first = notes.into_iter().find_map(|note| match note.step {
        Step::Came { provider_request_id, .. } => provider_request_id,
        _ => None,
    });
    assert_eq!(first.as_deref(), Some(seen.header("x-request-id")));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_whose_own_fallback_does_not_fit_is_refused_before_any_call() {
    let (world, fixed) = world(&said(r#"{"status": "DENIED"}"#), "").await;
    let mut body = decision();
    let status = &mut body["response_format"]["json_schema"]["schema"]["properties"]["status"];
    status["x-backstay-fallback"] = json!("ON HOLD");
    let seen = world.ask(OPENAI, &body).await;
    assert_eq!((seen.status, fixed.connections()), (400, 0), "{}", seen.text());
    let error = &seen.json()["error"];
    assert_eq!(error["param"], "response_format");
    let told = error["message"].as_str().unwrap();
    assert!(told.contains("x-backstay-fallback at '/properties/status'"), "{told}");
    // A call of a tool takes no fallback.
    let mut body = request(OPENAI, "r", HELLO);
    let parameters = json!({"properties": {"a": {"enum": ["x"], "x-backstay-fallback": "y"}}});
    body["tools"] = json!([{"type": "function",
        "function": {"name": "t", "parameters": parameters}}]);
    let seen = world.ask(OPENAI, &body).await;
    assert_eq!(seen.status, 200, "{}", seen.text());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_that_is_rejected_ends_the_call_and_one_that_is_flagged_passes_marked() {
    const LOWER: &str = r#"{"status": "maybe"}"#;
    let reject = "fields = [{ at = \"/status\", on_fail = \"reject\" }]";
    let (rejecting, _fixed) = world(&said(LOWER), reject).await;
    let seen = rejecting.ask(OPENAI, &decision()).await;
    assert_eq!((seen.status, seen.attempts()), (502, 1), "{}", seen.text());
    assert_eq!(seen.json()["error"]["code"], "reply_schema_error");
    rejecting.stop().await;
    let flag = "fields = [{ at = \"/category\", on_fail = \"flag\" }]";
    let mut odd = triaged();
    odd["category"] = json!("odd");
    let odd = odd.to_string();
    let (flagging, _fixed) = world(&said(&odd), &format!("{flag}\n{TRIAGE}")).await;
    let seen = flagging.ask(OPENAI, &request(OPENAI, "r", TICKET)).await;
    assert_eq!(ended(&seen), answer("flagged", 1, &odd), "{}", seen.text());
    flagging.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_of_the_route_does_not_weaken_a_callers_own_schema() {
    let flag = "fields = [{ at = \"/category\", on_fail = \"flag\" }]";
    let other = "fields = [{ at = \"/category\", on_fail = \"fallback\", fallback = \"other\" }]";
    let mut body = request(OPENAI, "r", TICKET);
    body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "s", "schema":
        {"type": "object", "properties": {"category": {"enum": ["ok", "other"]}}}}});
    let of_its_own = |fields: &str| format!("{fields}\nschema = \"triage.schema.json\"");
    for route in [flag.to_owned(), of_its_own(flag), of_its_own(other)] {
        let reply = said(r#"{"category": "nope"}"#);
        let (world, _fixed) = world(&reply, &format!("reasks = 0\n{route}")).await;
        let seen = world.ask(OPENAI, &body).await;
        assert_eq!((seen.status, seen.attempts()), (502, 1), "{route}: {}", seen.text());
        assert_eq!(seen.json()["error"]["code"], "reply_schema_error");
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn usage_in_the_answer_is_that_of_every_attempt_of_its_call() {
    let declared = "stream = \"buffered\"\nfields = [{ at = \"/status\", fallback = \"ON_HOLD\" }]";
    let (world, _fixed) = world(&said(r#"{"status": "maybe"}"#), declared).await;
    let seen = world.ask(OPENAI, &decision()).await;
    assert_eq!((seen.status, seen.attempts()), (200, 3), "{}", seen.text());
    let used = json!({"prompt_tokens": 3, "completion_tokens": 3, "total_tokens": 6});
    assert_eq!(seen.json()["usage"], used);
    let mut body = decision();
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    let seen = world.ask(OPENAI, &body).await;
    assert!(seen.text().contains("\"total_tokens\":6"), "{}", seen.text());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_of_a_tool_that_was_not_offered_is_asked_for_again() {
    let (world, fixed) = world(&called("{}", "tool_calls"), "").await;
    let mut body = request(OPENAI, "r", HELLO);
    body["tools"] = json!([{"type": "function", "function": {"name": "clock"}}]);
    let seen = world.ask(OPENAI, &body).await;
    assert_eq!((seen.status, seen.attempts()), (502, 3), "{}", seen.text());
    assert_eq!(seen.json()["error"]["code"], "reply_schema_error");
    let told = fixed.last_request().await;
    assert!(told.contains("tool 'weather' is not offered"), "{told}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn parameters_that_are_no_schema_are_told_and_do_not_stop_the_call() {
    let (world, _fixed) = world(&called("{\"city\": 3,}", "tool_calls"), "").await;
    let mut body = request(OPENAI, "r", HELLO);
    body["tools"] = json!([{"type": "function",
        "function": {"name": "weather", "parameters": {"type": "objekt"}}}]);
    let seen = world.ask(OPENAI, &body).await;
    assert_eq!((seen.status, seen.header("x-backstay-outcome")), (200, "mended"));
    let notes = seen.header("x-backstay-notes");
    assert!(notes.contains("arguments of tool 'weather' not checked"), "{notes}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mended_call_in_the_older_field_stays_there_and_numbers_keep_their_digits() {
    let raw = |arguments: &str| {
        format!(
            r#"{{"id":"x","created":1,"model":"m","cost":0.1234567890123456789,"choices":[{{"index":0,"message":{{"role":"assistant","content":null,"function_call":{{"name":"a","arguments":"{arguments}"}}}},"finish_reason":"function_call"}}],"big":123456789012345678901234}}"#
        )
    };
    let (world, _fixed) = world(&raw(r#"{\"q\":1,}"#), "").await;
    let mut body = request(OPENAI, "r", HELLO);
    body["functions"] = json!([{"name": "a", "parameters": {"type": "object"}}]);
    let seen = world.ask(OPENAI, &body).await;
    assert_eq!((seen.status, seen.text().as_ref()), (200, raw(r#"{\"q\":1}"#).as_str()));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_stand_in_the_body_where_the_caller_or_the_route_asks_for_them() {
    const BROKEN: &str = "Here:\n{'status': 'on hold', \"n\": \"12\", \"x\": 1,}";
    let route = "align = { enum = \"fold\", coerce = [\"str->int\"], extra = \"drop\" }";
    let whole = "{\"status\": \"ON_HOLD\", \"n\": 12}";
    let (world, _fixed) = world(&said(BROKEN), route).await;
    let seen = world.ask(OPENAI, &decision()).await;
    assert_eq!(ended(&seen), answer("mended", 1, whole), "{}", seen.text());
    assert!(seen.json().get("backstay").is_none(), "nobody asked for it");
    let counts = seen.header("x-backstay-edits").to_owned();
    for kind in ["prose_before=1", "trailing_comma=1", "enum_fold=1", "extra_dropped=1"] {
        assert!(counts.contains(kind), "{counts}");
    }
    let seen = world.ask_with(OPENAI, &[("x-backstay-edits", "1")], &decision()).await;
    let edits = &seen.json()["backstay"]["edits"];
    let edits = edits.as_array().unwrap();
    let of = |kind: &str| edits.iter().find(|edit| edit["kind"] == kind).unwrap();
    assert_eq!(
        *of("coerce_str_int"),
        json!({"kind": "coerce_str_int", "class": "aligned", "path": "/n", "before": "\"12\"",
            "after": "12"})
    );
    assert_eq!(of("prose_before")["span"], json!([0, 5]));
    assert_eq!(
        (&of("enum_fold")["before"], &of("enum_fold")["after"]),
        (&json!("\"on hold\""), &json!("\"ON_HOLD\""))
    );
    world.stop().await;
    let (always, _fixed) = world_of(r#"{"status": "DENIED"}"#, "report_edits = \"always\"").await;
    let seen = always.ask(OPENAI, &decision()).await;
    assert_eq!(seen.json()["backstay"], json!({"edits": []}));
    assert_eq!(seen.header("x-backstay-outcome"), "answered");
    always.stop().await;
}

async fn world_of(text: &str, route: &str) -> (World, Fixed) {
    world(&said(text), route).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_readings_are_told_to_the_model_and_a_policy_of_one_kind_mends_that_kind_only() {
    let two = "{\"status\": \"DENIED\"}\n{\"status\": \"APPROVED\"}";
    let (doubtful, fixed) = world_of(two, "").await;
    let seen = doubtful.ask(OPENAI, &decision()).await;
    assert_eq!((seen.status, seen.attempts()), (502, 3));
    assert_eq!(seen.json()["error"]["code"], "reply_not_json");
    let asked = fixed.last_request().await;
    for reading in ["DENIED", "APPROVED"] {
        assert!(
            asked.contains(&format!("{{\\\\\\\"status\\\\\\\": \\\\\\\"{reading}"))
                || asked.contains(&format!("{{\\\"status\\\": \\\"{reading}")),
            "{asked}"
        );
    }
    assert!(asked.contains("could be read as (2)"), "{asked}");
    doubtful.stop().await;
    for (text, mend, outcome) in [
        ("```json\n{\"status\": \"DENIED\"}\n```", "mend = { allow = [\"fence\"] }", "mended"),
        ("So: {\"status\": \"DENIED\"}", "mend = { allow = [\"fence\"] }", "failed"),
        ("So: {\"status\": \"DENIED\"}", "mend = { deny = [\"fence\"] }", "mended"),
        ("So: {\"status\": \"DENIED\"}", "mend = \"strict\"", "mended"),
        ("So: {\"status\": \"DENIED\"}", "mend = \"off\"", "failed"),
        ("{\"status\": \"DENIED\", \"status\": \"APPROVED\"}", "mend = \"lenient\"", "mended"),
    ] {
        let (world, _fixed) = world_of(text, mend).await;
        let seen = world.ask(OPENAI, &decision()).await;
        assert_eq!(seen.header("x-backstay-outcome"), outcome, "{mend}: {}", seen.text());
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cut_reply_is_never_an_answer_unless_the_route_takes_what_there_is() {
    let cut = r#"{"status": "DENIED", "n": 4, "x"#;
    let message = json!({"role": "assistant", "content": cut});
    for (route, status, outcome) in [
        ("", 502, "failed"),
        ("mend = { partial = \"accept\" }", 200, "partial"),
        // What is left must pass every other check.
        ("mend = { partial = \"accept\", deny = [\"trunc_key\"] }", 502, "failed"),
    ] {
        let (world, _fixed) = world(&reply(&message, "length"), route).await;
        let seen = world.ask(OPENAI, &decision()).await;
        assert_eq!((seen.status, seen.header("x-backstay-outcome")), (status, outcome), "{route}");
        if status == 200 {
            assert_eq!(content(&seen), r#"{"status": "DENIED", "n": 4}"#);
            assert_eq!(seen.json()["choices"][0]["finish_reason"], "length");
        }
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tool_arguments_are_mended_checked_and_never_released_when_cut() {
    let mut body = request(OPENAI, "r", HELLO);
    body["tools"] = crate::pairs::tools(OPENAI);
    for stream in [false, true] {
        let (world, _fixed) =
            world(&called("{'city': 'Bern',}", "tool_calls"), "stream = \"buffered\"").await;
        let mut body = body.clone();
        body["stream"] = json!(stream);
        let seen = world.ask(OPENAI, &body).await;
        assert_eq!((seen.status, seen.header("x-backstay-outcome")), (200, "mended"));
        let escaped = r#""arguments":"{\"city\": \"Bern\"}""#;
        assert!(seen.text().contains(escaped), "{}", seen.text());
        if !stream {
            let call = &seen.json()["choices"][0]["message"]["tool_calls"][0];
            assert_eq!(call["odd"], 1.5, "the rest of the call is the provider's own");
        }
        world.stop().await;
    }
    // A tool that needs an argument is not called without one; the error names tool and key.
    for (arguments, code, told) in [
        ("", "reply_schema_error", "arguments of tool 'weather': missing 'city'"),
        (
            "{\"city\": 3}",
            "reply_schema_error",
            "arguments of tool 'weather': 'city' should be str",
        ),
        ("{\"city\": ", "reply_not_json", "arguments of tool 'weather': "),
    ] {
        let (world, fixed) = world(&called(arguments, "tool_calls"), "").await;
        let seen = world.ask(OPENAI, &body).await;
        assert_eq!((seen.status, seen.attempts()), (502, 3), "{}", seen.text());
        assert_eq!(seen.json()["error"]["code"], code);
        assert!(fixed.last_request().await.contains(told), "{}", fixed.last_request().await);
        world.stop().await;
    }
    // Cut at the caller's own cap, text is handed on; half a call is not.
    let (world, _fixed) = world(&called("{\"city\": \"Be", "length"), "").await;
    let mut body = body.clone();
    body["max_tokens"] = json!(5);
    let seen = world.ask(OPENAI, &body).await;
    assert_eq!((seen.status, seen.attempts()), (502, 1), "{}", seen.text());
    assert_eq!(seen.json()["error"]["code"], "reply_truncated");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blank_arguments_are_an_empty_object_where_nothing_is_required() {
    let (world, _fixed) = world(&called(" ", "tool_calls"), "").await;
    let mut body = request(OPENAI, "r", HELLO);
    body["tools"] = json!([{"type": "function",
        "function": {"name": "weather", "parameters": {"type": "object", "properties": {}}}}]);
    let seen = world.ask(OPENAI, &body).await;
    assert_eq!((seen.status, seen.header("x-backstay-edits")), (200, "no_arguments=1"));
    let call = &seen.json()["choices"][0]["message"]["tool_calls"][0];
    assert_eq!(call["function"]["arguments"], "{}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_see_the_aligned_value_and_hold_for_fallbacks_too() {
    let rules = "rules = [{ name = \"denied is final\", check = \"reply.status != 'DENIED' || reply.n == 0\" }]";
    let align = "align = { enum = \"fold\", coerce = [\"str->int\"] }";
    let (world, _fixed) =
        world_of(r#"{"status": "denied", "n": "0"}"#, &format!("{rules}\n{align}")).await;
    let seen = world.ask(OPENAI, &decision()).await;
    assert_eq!(ended(&seen), answer("mended", 1, r#"{"status": "DENIED", "n": 0}"#));
    world.stop().await;
    let fallback = "fields = [{ at = \"/status\", fallback = \"DENIED\" }]";
    let (world, _fixed) =
        world_of(r#"{"status": "odd", "n": 4}"#, &format!("{rules}\n{fallback}")).await;
    let seen = world.ask(OPENAI, &decision()).await;
    assert_eq!((seen.status, seen.attempts()), (502, 3), "the rule does not hold for it");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_routes_own_fallback_serves_both_dialects_after_the_reasks() {
    let fields = "fields = [{ at = \"/category\", fallback = \"other\" }]";
    let route = format!("{ROUTE}\n{TRIAGE}\n{fields}");
    let world = Setup::new()
        .alone("o", "openai", &["enum-miss"], &route)
        .alone("a", "anthropic", &["enum-miss"], &route)
        .start()
        .await;
    for dialect in BOTH {
        for name in ["o", "a"] {
            let seen = world.ask(dialect, &request(dialect, name, TICKET)).await;
            assert_eq!((seen.status, seen.attempts()), (200, 3), "{}", seen.text());
            assert_eq!(seen.header("x-backstay-outcome"), "fallback");
            let told = crate::told::plain(dialect, &seen.json());
            let mut want = triaged();
            want["category"] = json!("other");
            assert_eq!(serde_json::from_str::<Value>(&told.text).unwrap(), want);
        }
    }
    world.stop().await;
}
