//! Is it an answer? Every way a reply with status 200 can be wrong, under a route with a schema and
//! rules: how often it is asked again, where it goes then, and that nothing invalid ever gets out.

use backstay_wire::Dialect;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::client::Seen;
use crate::fixed::Fixed;
use crate::told;
use crate::world::{BOTH, HELLO, Setup, TICKET, TRIAGE, World, provider, request, short, triaged};

const OPENAI: Dialect = Dialect::OpenaiChat;

/// Time enough for two re-asks and two waits; the route's own cap may be raised once.
const ROUTE: &str = "deadline = \"20s\"\n\
    timeouts = { first_token = \"4s\", gap = \"2s\", total = \"5s\" }\n\
    max_output_tokens = 300\nmax_output_tokens_ceiling = 600";

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Ends {
    /// With the right answer, as the provider sent it.
    Valid,
    /// With the right answer, after edits of this kind.
    Mended(&'static str),
    /// With a valid answer that nobody could know to be wrong.
    Believed,
    /// With the provider's refusal.
    Refused,
    /// With this code; the status is 502.
    Fails(&'static str),
}

use Ends::{Believed, Fails, Mended, Refused, Valid};

struct Row {
    behaviour: &'static str,
    alone: Ends,
    /// Requests where nobody else is there.
    tries: usize,
    /// Requests to the first of two tiers; the second answers unless the first did.
    backed: usize,
}

const fn row(behaviour: &'static str, alone: Ends, tries: usize, backed: usize) -> Row {
    Row { behaviour, alone, tries, backed }
}

#[rustfmt::skip]
const ROWS: &[Row] = &[
    row("healthy",            Valid,                           1, 1),
    row("fenced",             Mended("fence"),                 1, 1),
    row("prose-around",       Mended("prose_before"),          1, 1),
    row("then-prose+size=400", Mended("prose_after"),           1, 1),
    row("two-objects",        Fails("reply_not_json"),         3, 3),
    row("think-tags",         Mended("think_block"),           1, 1),
    row("unclosed",           Mended("missing_closer"),        1, 1),
    row("quiet-refusal",      Fails("reply_not_json"),         3, 3),
    row("wrong-schema",       Fails("reply_schema_error"),     3, 3),
    row("wrong-type",         Fails("reply_schema_error"),     3, 3),
    row("extra-key",          Fails("reply_schema_error"),     3, 3),
    row("enum-miss",          Fails("reply_schema_error"),     3, 3),
    row("invented-quote",     Fails("reply_semantic_error"),   3, 3),
    row("urgent-no-review",   Fails("reply_semantic_error"),   3, 3),
    row("wrong-category",     Believed,                        1, 1),
    row("right-on-second",    Valid,                           2, 2),
    row("right-after+k=2",    Valid,                           3, 3),
    row("refusal",            Refused,                         1, 1),
    row("content-filter",     Refused,                         1, 1),
    row("truncated",          Fails("reply_truncated"),        2, 2),
    row("truncated-by-cap",   Valid,                           2, 2),
    row("unknown-finish",     Fails("reply_unknown_finish"),   1, 1),
    row("null-finish",        Fails("reply_unknown_finish"),   1, 1),
    row("empty-200",          Fails("reply_empty"),            3, 2),
    row("empty-content",      Fails("reply_empty"),            3, 2),
    row("html-200",           Fails("reply_malformed"),        3, 2),
    row("json-array-200",     Fails("reply_malformed"),        3, 2),
];

fn name(at: usize, caller: Dialect, target: Dialect) -> String {
    format!("t{at}-{}{}", short(caller), short(target))
}

/// What is wrong with an answer.
fn wrong_end(ends: Ends, dialect: Dialect, seen: &Seen) -> Vec<String> {
    let body = seen.json();
    let told = told::plain(dialect, &body);
    let outcome = seen.header("x-backstay-outcome");
    let value: Value = serde_json::from_str(&told.text).unwrap_or_default();
    let mut wrongs = Vec::new();
    let mut want = |ok: bool, what: &str| {
        if !ok {
            wrongs.push(format!("{what}: {} {outcome} {body}", seen.status));
        }
    };
    match ends {
        Valid => {
            want(seen.status == 200 && value == triaged(), "not the answer");
            want(outcome == "answered", "not told as answered");
        }
        Mended(kind) => {
            want(seen.status == 200 && value == triaged(), "not the answer");
            want(outcome == "mended", "not told as mended");
            want(seen.header("x-backstay-edits").contains(kind), "the edit is not told");
        }
        Believed => want(seen.status == 200 && value["category"].is_string(), "not an answer"),
        Refused => {
            want(seen.status == 200 && outcome == "refused", "not told as refused");
            let word = told.finish.as_deref().unwrap_or_default();
            let by_word = ["refusal", "content_filter"].contains(&word);
            want(by_word || !told.refusal.is_empty(), "no sign of the refusal");
        }
        Fails(code) => wrongs.extend(told::not_typed(dialect, seen, 502, code)),
    }
    wrongs
}

async fn one(world: &World, row: &Row, caller: Dialect, name: String) -> Vec<String> {
    let two = format!("{name}-two");
    let ask = |model: &str| {
        let mut body = request(caller, model, TICKET);
        // The route's cap is to be in force, so the Messages API's own is left out.
        body.as_object_mut().expect("an object").remove("max_tokens");
        body
    };
    let (first, second) = (ask(&name), ask(&two));
    let (alone, backed) =
        futures_util::future::join(world.ask(caller, &first), world.ask(caller, &second)).await;
    let mut found = wrong_end(row.alone, caller, &alone);
    let log = world.settled_log(&format!("{name}-1")).await;
    if (log.len(), alone.attempts()) != (row.tries, row.tries) {
        found.push(format!("{} calls, {} told, not {}", log.len(), alone.attempts(), row.tries));
    }
    let stays = matches!(row.alone, Valid | Mended(_) | Believed | Refused);
    let end = if stays { row.alone } else { Valid };
    found.extend(wrong_end(end, caller, &backed).into_iter().map(|w| format!("backed: {w}")));
    let had = (
        world.settled_log(&format!("{two}-1")).await.len(),
        world.settled_log(&format!("{two}-2")).await.len(),
    );
    let want = (row.backed, usize::from(!stays));
    if had != want {
        found.push(format!("backed: calls {had:?}, not {want:?}"));
    }
    found.into_iter().map(|wrong| format!("{} {name}: {wrong}", row.behaviour)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_damaged_reply_ends_valid_or_typed_after_exactly_the_tables_calls() {
    let route = format!("{ROUTE}\n{TRIAGE}");
    let mut setup = Setup::new();
    for (at, row) in ROWS.iter().enumerate() {
        for (caller, target) in crate::world::pairs() {
            let name = name(at, caller, target);
            setup = setup.alone(&name, provider(target), &[row.behaviour], &route).backed(
                &format!("{name}-two"),
                provider(target),
                &[row.behaviour],
                &route,
            );
        }
    }
    let world = setup.start().await;
    let calls = ROWS.iter().enumerate().flat_map(|(at, row)| {
        crate::world::pairs().map(move |(caller, target)| (row, caller, name(at, caller, target)))
    });
    let found = join_all(calls.map(|(row, caller, name)| one(&world, row, caller, name))).await;
    let wrongs: Vec<String> = found.into_iter().flatten().collect();
    world.stop().await;
    assert!(wrongs.is_empty(), "\n{}", wrongs.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_under_status_200_is_an_error() {
    let world = Setup::new()
        .alone("o", "openai", &["error-in-200+times=1"], ROUTE)
        .alone("a", "anthropic", &["error-in-200+times=1"], ROUTE)
        .start()
        .await;
    for dialect in BOTH {
        let name = short(dialect);
        let seen = world.ask(dialect, &request(dialect, name, HELLO)).await;
        assert_eq!((seen.status, seen.attempts()), (200, 2), "{}", seen.text());
        let row = world.engine().call_log().find(seen.header("x-backstay-call-id"));
        let trail = serde_json::to_string(&row.unwrap().unwrap().trail).unwrap();
        let code = if dialect == OPENAI { "provider_error" } else { "provider_overloaded" };
        assert!(trail.contains(code), "{trail}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reask_carries_the_reply_and_its_errors_and_a_raised_cap_is_raised_once() {
    let route = format!("{ROUTE}\n{TRIAGE}");
    let world = Setup::new()
        .alone("miss", "openai", &["enum-miss"], &route)
        .alone("cut", "openai", &["truncated"], &route)
        .alone("cut-a", "anthropic", &["truncated"], &route)
        .backed("cut-two", "openai", &["truncated"], &route)
        .start()
        .await;
    world.ask(OPENAI, &request(OPENAI, "miss", TICKET)).await;
    let log = world.settled_log("miss-1").await;
    let messages: Vec<usize> = log.iter().map(|entry| entry.messages).collect();
    assert_eq!(messages, [1, 3, 3], "each re-ask answers the latest reply");
    let body: Value = serde_json::from_str(log[1].body.as_deref().unwrap()).unwrap();
    assert_eq!(body["messages"][1]["role"], "assistant");
    let reply: Value =
        serde_json::from_str(body["messages"][1]["content"].as_str().unwrap()).unwrap();
    assert_eq!(reply["evidence"], triaged()["evidence"], "its own reply, as it was");
    let errors = body["messages"][2]["content"].as_str().unwrap();
    assert!(errors.contains("category"), "{errors}");
    assert!(log.iter().all(|entry| entry.has_schema && entry.max_tokens == Some(300)));
    for name in ["cut", "cut-a", "cut-two"] {
        world.ask(OPENAI, &request(OPENAI, name, TICKET)).await;
        let log = world.settled_log(&format!("{name}-1")).await;
        let caps: Vec<Option<u64>> = log.iter().map(|entry| entry.max_tokens).collect();
        assert_eq!(caps, [Some(300), Some(600)], "{name}");
        assert!(log.iter().all(|entry| entry.messages == 1), "a cut reply is never re-asked");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_last_resort_answers_where_no_model_can_but_not_for_a_callers_own_mistake() {
    let resort = json!({"category": "other", "priority": 3, "summary": "Not sorted",
        "evidence": "(none)", "needs_human": true});
    let route = format!(
        "{ROUTE}\n{TRIAGE}\nlast_resort = {{ reply = {{ category = \"other\", priority = 3, \
         summary = \"Not sorted\", evidence = \"(none)\", needs_human = true }} }}"
    );
    let quick = route.replace("\"20s\"", "\"1500ms\"");
    let world = Setup::new()
        .alone("miss", "openai", &["enum-miss"], &route)
        .alone("refusal", "openai", &["refusal"], &route)
        .alone("policy", "openai", &["content-policy"], &route)
        .alone("odd", "anthropic", &["unknown-finish"], &route)
        .alone("auth", "openai", &["status-401"], &route)
        .alone("silent", "openai", &["silence"], &quick)
        .alone("bad", "openai", &["status-400"], &route)
        .start()
        .await;
    for dialect in BOTH {
        for (name, tries) in
            [("miss", 3), ("refusal", 1), ("policy", 1), ("odd", 1), ("auth", 1), ("silent", 2)]
        {
            world.mock.reset();
            let seen = world.ask(dialect, &request(dialect, name, TICKET)).await;
            let told = told::plain(dialect, &seen.json());
            assert_eq!(seen.header("x-backstay-outcome"), "last_resort", "{name} {}", seen.text());
            let value: Value = serde_json::from_str(&told.text).unwrap_or_default();
            assert_eq!((seen.status, &value), (200, &resort), "{name}");
            if name == "silent" {
                assert!(seen.took.as_millis() < 1_900, "{:?}", seen.took);
                continue;
            }
            assert_eq!(seen.attempts(), tries, "{name}");
        }
        let seen = world.ask(dialect, &request(dialect, "bad", TICKET)).await;
        assert_eq!(told::not_typed(dialect, &seen, 400, "request_rejected"), [""; 0]);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn on_semantic_and_on_refusal_do_as_they_say() {
    let reject = format!("{ROUTE}\n{TRIAGE}\non_semantic = \"reject\"");
    let next = format!("{ROUTE}\n{TRIAGE}\non_refusal = \"next_tier\"");
    let world = Setup::new()
        .backed("reject", "openai", &["invented-quote"], &reject)
        .backed("next", "openai", &["refusal"], &next)
        .alone("policy", "openai", &["content-policy"], ROUTE)
        .alone("blocked", "anthropic", &["content-policy"], ROUTE)
        .start()
        .await;
    let seen = world.ask(OPENAI, &request(OPENAI, "reject", TICKET)).await;
    assert_eq!(told::not_typed(OPENAI, &seen, 502, "reply_semantic_error"), [""; 0]);
    assert_eq!(seen.attempts(), 1);
    let seen = world.ask(OPENAI, &request(OPENAI, "next", TICKET)).await;
    assert_eq!(wrong_end(Valid, OPENAI, &seen), [""; 0]);
    assert_eq!((seen.attempts(), seen.header("x-backstay-tier")), (2, "2"));
    // A refusal before any reply comes with the provider's reason.
    for dialect in BOTH {
        for (name, reason) in [("policy", "safety system"), ("blocked", "content filtering")] {
            let seen = world.ask(dialect, &request(dialect, name, HELLO)).await;
            assert_eq!(told::not_typed(dialect, &seen, 400, "content_policy"), [""; 0]);
            assert!(seen.text().contains(reason), "{}", seen.text());
            assert_eq!(seen.attempts(), 1);
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_callers_own_response_format_wins_over_the_routes_schema() {
    let route = format!("{ROUTE}\nschema = \"triage.schema.json\"");
    let world = Setup::new()
        .alone("own", "openai", &["healthy"], &route)
        .alone("own-a", "anthropic", &["healthy"], &route)
        .alone("wrong", "openai", &["wrong-schema"], &route)
        .start()
        .await;
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["title"],
        "properties": {"title": {"type": "string"}}});
    for dialect in BOTH {
        for (name, status) in [("own", 200), ("own-a", 200), ("wrong", 502)] {
            let mut body = request(dialect, name, HELLO);
            match dialect {
                Dialect::OpenaiChat => {
                    body["response_format"] = json!({"type": "json_schema",
                        "json_schema": {"name": "titled", "schema": schema, "strict": true}});
                }
                Dialect::Anthropic => {
                    body["output_config"] =
                        json!({"format": {"type": "json_schema", "schema": schema}});
                }
            }
            world.mock.reset();
            let seen = world.ask(dialect, &body).await;
            assert_eq!(seen.status, status, "{name} {}", seen.text());
            let log = world.settled_log(&format!("{name}-1")).await;
            let sent = log[0].body.as_deref().unwrap();
            assert!(sent.contains("title") && !sent.contains("needs_human"), "{sent}");
            if status == 200 {
                let told = told::plain(dialect, &seen.json());
                let value: Value = serde_json::from_str(&told.text).unwrap();
                assert!(value["title"].is_string(), "{value}");
            }
        }
    }
    // The mock's reset forgets its scripts' places, not the scripts.
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_cut_at_the_callers_own_cap_is_handed_on_and_under_a_schema_is_a_fault() {
    let schema = format!("{ROUTE}\n{TRIAGE}");
    let world = Setup::new()
        .alone("prose", "openai", &["healthy+size=4000"], ROUTE)
        .alone("prose-a", "anthropic", &["healthy+size=4000"], ROUTE)
        .alone("json", "openai", &["healthy"], &schema)
        .backed("json-two", "openai", &["truncated"], &schema)
        .start()
        .await;
    for dialect in BOTH {
        for name in ["prose", "prose-a"] {
            let mut body = request(dialect, name, HELLO);
            body["max_tokens"] = json!(20);
            let seen = world.ask(dialect, &body).await;
            let told = told::plain(dialect, &seen.json());
            let word = if dialect == OPENAI { "length" } else { "max_tokens" };
            assert_eq!(told.finish.as_deref(), Some(word), "{name} {}", seen.text());
            assert_eq!((seen.status, seen.attempts()), (200, 1));
            assert_eq!(seen.header("x-backstay-outcome"), "truncated");
            assert!(!told.text.is_empty());
        }
        let mut body = request(dialect, "json", TICKET);
        body["max_tokens"] = json!(10);
        let seen = world.ask(dialect, &body).await;
        assert_eq!(told::not_typed(dialect, &seen, 502, "reply_truncated"), [""; 0]);
        assert_eq!(seen.attempts(), 1, "neither raised nor asked again");
        let mut body = request(dialect, "json-two", TICKET);
        body["max_tokens"] = json!(1000);
        let seen = world.ask(dialect, &body).await;
        assert_eq!(wrong_end(Valid, dialect, &seen), [""; 0]);
        assert_eq!((seen.attempts(), seen.header("x-backstay-tier")), (2, "2"));
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_a_rule_cannot_read_is_refused_before_it_costs_anything() {
    let world = Setup::new()
        .alone("ruled", "openai", &["healthy"], &format!("{ROUTE}\n{TRIAGE}"))
        .start()
        .await;
    let body = json!({"model": "ruled", "messages": [{"role": "user", "content": 42}]});
    let seen = world.ask(OPENAI, &body).await;
    assert_eq!(told::not_typed(OPENAI, &seen, 400, "invalid_request"), [""; 0]);
    assert!(world.mock.log().is_empty());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_one_of_several_choices_is_checked_and_mended() {
    const TWO: &str = r#"{"id":"x","object":"chat.completion","created":1,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"message":{"role":"assistant","content":"{\"a\":1}"},"finish_reason":"stop"},{"index":1,"message":{"role":"assistant","content":"```json\n{\"a\":2}\n```"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;
    let fixed = Fixed::start(TWO).await;
    let world = Setup::new()
        .tables(&fixed.provider("fixed"))
        .alone("two", "fixed", &["healthy"], ROUTE)
        .start()
        .await;
    let mut body = request(OPENAI, "two", HELLO);
    body["response_format"] = json!({"type": "json_object"});
    body["n"] = json!(2);
    let seen = world.ask_with(OPENAI, &[("x-backstay-edits", "1")], &body).await;
    assert_eq!((seen.status, seen.header("x-backstay-outcome")), (200, "mended"));
    assert_eq!(seen.json()["backstay"]["edits"][0]["choice"], 1, "the edit says where it is");
    for (at, text) in ["{\"a\":1}", "{\"a\":2}"].into_iter().enumerate() {
        assert_eq!(seen.json()["choices"][at]["message"]["content"], text, "{}", seen.text());
    }
    assert_eq!(seen.json()["system_fingerprint"], "fp_1", "{}", seen.text());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_call_that_nobody_offered_is_no_answer_to_a_schema() {
    let route = format!("{ROUTE}\n{TRIAGE}");
    let world = Setup::new()
        .alone("call", "openai", &["tool-call"], &route)
        .backed("call-two", "anthropic", &["tool-call"], &route)
        .start()
        .await;
    for dialect in BOTH {
        let seen = world.ask(dialect, &request(dialect, "call", TICKET)).await;
        assert_eq!(told::not_typed(dialect, &seen, 502, "reply_not_json"), [""; 0]);
        let seen = world.ask(dialect, &request(dialect, "call-two", TICKET)).await;
        assert_eq!(wrong_end(Valid, dialect, &seen), [""; 0]);
        // Where tools are offered, calling one is an answer.
        let mut body = request(dialect, "call", TICKET);
        body["tools"] = crate::pairs::tools(dialect);
        let seen = world.ask(dialect, &body).await;
        let told = told::plain(dialect, &seen.json());
        assert_eq!((seen.status, told.calls.len()), (200, 1), "{}", seen.text());
    }
    world.stop().await;
}
