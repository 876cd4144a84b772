//! How often a model is asked again: the bounds of a re-ask, each with its numbers in the log, what
//! it is told, and what all of it took.

use backstay::record::{Row, Step};
use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::client::Seen;
use crate::fixed::Fixed;
use crate::world::{BOTH, Setup, TICKET, TRIAGE, World, pairs, provider, request, short};

const OPENAI: Dialect = Dialect::OpenaiChat;

/// Six attempts and five re-asks: what ends the call is the bound under test.
fn route(more: &str) -> String {
    format!("deadline = \"6s\"\nmax_attempts = 6\nreasks = 5\n{more}\n{TRIAGE}")
}

fn row(world: &World, seen: &Seen) -> Row {
    let id = seen.header("x-backstay-call-id");
    world.engine().call_log().find(id).expect("a log").expect("a row")
}

/// Why each decision was made.
fn whys(row: &Row) -> Vec<String> {
    let told = row.trail.notes.iter().filter_map(|note| match &note.step {
        Step::Decided { next, why } => Some(format!("{next}: {why}")),
        _ => None,
    });
    told.collect()
}

async fn ask(world: &World, name: &str) -> (Row, usize) {
    let seen = world.ask(OPENAI, &request(OPENAI, name, TICKET)).await;
    let calls = world.settled_log(&format!("{name}-1")).await.len();
    (row(world, &seen), calls)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_bound_of_a_re_ask_ends_the_asking_and_is_told_with_its_numbers() {
    let costly = "enum-miss+prompt_tokens=600+completion_tokens=40";
    let price = "input_price = 10\noutput_price = 50";
    let world = Setup::new()
        .alone("tokens-0", "openai", &[costly], &route("reask_tokens = 640"))
        .alone("tokens-1", "openai", &[costly], &route("reask_tokens = 1000"))
        // One takes 600 x 10 + 40 x 50 millionths, and about as much again for what it adds.
        .target("cost-1", "openai", &[costly])
        .and(price)
        .route("cost", &["cost-1"], &route("reask_cost = 0.012"))
        .alone("unpriced", "openai", &[costly], &route("reask_cost = 1000"))
        .alone("slow", "openai", &["enum-miss+delay=700ms"], &route("").replace("6s", "1500ms"))
        .alone("same", "openai", &["enum-miss"], &route(""))
        .alone("off", "openai", &["enum-miss"], &route("").replace("reasks = 5", "reasks = 0"))
        .start()
        .await;
    let rows = [
        ("tokens-0", 1, "fail: no re-ask: 0 tokens spent on re-asks + about "),
        ("tokens-1", 2, "fail: no re-ask: 640 tokens spent on re-asks + about "),
        ("cost", 2, "fail: no re-ask: 0.008 spent on re-asks + about 0.00"),
        ("unpriced", 1, "fail: no re-ask: their cost is bounded and this model has no price"),
        ("slow", 1, "fail: no re-ask: 0."),
        ("same", 3, "fail: no re-ask: the same errors came 3 times from here"),
        ("off", 1, "fail: the route allows no re-ask"),
    ];
    for (name, calls, told) in rows {
        let (row, made) = ask(&world, name).await;
        let whys = whys(&row);
        assert_eq!((made, row.code.as_ref()), (calls, "reply_schema_error"), "{name} {whys:?}");
        assert!(whys.last().unwrap().starts_with(told), "{name}: {whys:?}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_that_makes_other_errors_is_asked_on_and_a_second_tier_starts_afresh() {
    let world = Setup::new()
        .alone(
            "moves",
            "openai",
            &["enum-miss", "wrong-type", "enum-miss", "extra-key", "healthy"],
            &route(""),
        )
        .target("stuck-1", "openai", &["enum-miss"])
        .target("stuck-2", "anthropic", &["enum-miss", "enum-miss", "healthy"])
        .route("stuck", &["stuck-1", "stuck-2"], &route(""))
        .start()
        .await;
    let (row, calls) = ask(&world, "moves").await;
    assert_eq!((calls, row.outcome.as_ref()), (5, "answered"), "{:?}", whys(&row));
    let (row, calls) = ask(&world, "stuck").await;
    assert_eq!((calls, row.outcome.as_ref()), (3, "answered"), "{:?}", whys(&row));
    assert_eq!(world.log("stuck-2").len(), 3);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_routes_template_words_the_re_ask_for_every_dialect() {
    let template = "reask_template = { inline = \"No. {{ number }}: {% for e in errors %}\
                    {{ e.message }}{% endfor %} | {{ request }} | {{ reply }}\" }";
    let mut setup = Setup::new();
    for (caller, target) in pairs() {
        let name = format!("t-{}{}", short(caller), short(target));
        setup = setup.alone(&name, provider(target), &["enum-miss", "healthy"], &route(template));
    }
    let world = setup.start().await;
    for (caller, target) in pairs() {
        let name = format!("t-{}{}", short(caller), short(target));
        let seen = world.ask(caller, &request(caller, &name, TICKET)).await;
        assert_eq!((seen.status, seen.attempts()), (200, 2), "{}", seen.text());
        let log = world.settled_log(&format!("{name}-1")).await;
        let sent: Value = serde_json::from_str(log[1].body.as_deref().unwrap()).unwrap();
        let last = &sent["messages"][2]["content"];
        let text = last.as_str().or_else(|| last[0]["text"].as_str()).unwrap();
        assert!(text.starts_with("No. 1: category "), "{text}");
        assert!(text.contains(&format!(" not in enum | {TICKET} | {{")), "{text}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_a_long_reply_only_the_wrong_part_goes_back() {
    let filler = "lorem ipsum ".repeat(1_000);
    let reply = json!({"a": {"before": filler, "kind": 7, "after": filler}}).to_string();
    let body = json!({"id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": reply}}],
        "usage": {"prompt_tokens": 5, "completion_tokens": 6_000, "total_tokens": 6_005}});
    let fixed = Fixed::start(&body.to_string()).await;
    let world = Setup::new()
        .tables(&fixed.provider("fixed"))
        .alone("long", "fixed", &["healthy"], "deadline = \"6s\"\nreasks = 1")
        .start()
        .await;
    let mut body = request(OPENAI, "long", "Say it.");
    let kind = json!({"type": "object", "properties": {"kind": {"type": "string"}}});
    let schema = json!({"type": "object", "properties": {"a": kind}});
    body["response_format"] = json!({"type": "json_schema",
        "json_schema": {"name": "kind", "schema": schema}});
    let seen = world.ask(OPENAI, &body).await;
    assert_eq!(seen.attempts(), 2, "{}", seen.text());
    let sent = fixed.last_request().await;
    assert!(sent.len() < 2_000, "{} bytes went out", sent.len());
    assert!(sent.contains("bytes left out") && sent.contains("\\\"kind\\\":7"), "{sent}");
    assert!(sent.contains("give the whole answer"), "{sent}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_all_asks_took_is_summed_for_both_forms() {
    let said = "enum-miss+prompt_tokens=100+completion_tokens=30";
    let good = "healthy+prompt_tokens=170+completion_tokens=20";
    let mut setup = Setup::new();
    for dialect in BOTH {
        for form in ["as_asked", "stream"] {
            let name = format!("sum-{}-{form}", short(dialect));
            let route = route(&format!("upstream = \"{form}\""));
            setup = setup.alone(&name, provider(dialect), &[said, said, good], &route);
        }
    }
    let world = setup.start().await;
    for dialect in BOTH {
        for form in ["as_asked", "stream"] {
            let name = format!("sum-{}-{form}", short(dialect));
            let seen = world.ask(OPENAI, &request(OPENAI, &name, TICKET)).await;
            assert_eq!((seen.status, seen.attempts()), (200, 3), "{name} {}", seen.text());
            let row = row(&world, &seen);
            let summed = (row.input_tokens, row.output_tokens, row.at_least);
            assert_eq!(summed, (370, 80, false), "{name}");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cached_tokens_are_part_of_the_input_and_a_silent_provider_makes_it_at_least() {
    let reply = |usage: Value| {
        json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": "{\"kind\":7}"}], "stop_reason": "end_turn",
            "stop_sequence": null, "usage": usage})
        .to_string()
    };
    let cached = json!({"input_tokens": 10, "cache_read_input_tokens": 70,
        "cache_creation_input_tokens": 20, "output_tokens": 5});
    let cached = Fixed::start(&reply(cached)).await;
    let silent = Fixed::start(&reply(json!({}))).await;
    let table =
        |name: &str, fixed: &Fixed| fixed.provider(name).replace("openai_chat", "anthropic");
    let more = "deadline = \"6s\"\nreasks = 1";
    let world = Setup::new()
        .tables(&table("cached", &cached))
        .tables(&table("silent", &silent))
        .alone("with", "cached", &["healthy"], more)
        .alone("without", "silent", &["healthy"], more)
        .start()
        .await;
    let schema = json!({"type": "object", "properties": {"kind": {"type": "string"}}});
    for (name, sum) in [("with", (200, 10, false)), ("without", (0, 0, true))] {
        let mut body = request(OPENAI, name, "Say it.");
        body["response_format"] = json!({"type": "json_schema",
            "json_schema": {"name": "kind", "schema": schema}});
        let seen = world.ask(OPENAI, &body).await;
        assert_eq!(seen.attempts(), 2, "{}", seen.text());
        let row = row(&world, &seen);
        assert_eq!((row.input_tokens, row.output_tokens, row.at_least), sum, "{name}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_best_reply_is_kept_for_the_declared_fallback_whatever_came_after_it() {
    let more = "fields = [{ at = \"/category\", fallback = \"other\" }]";
    let two = route(more).replace("reasks = 5", "reasks = 2");
    let short = two.replace("6s", "1500ms");
    let world = Setup::new()
        .backed("worse", "openai", &["enum-miss", "wrong-schema", "two-objects"], &two)
        .alone("silent", "openai", &["enum-miss", "silence"], &short)
        .alone("refused", "anthropic", &["enum-miss", "refusal"], &two)
        .alone("hopeless", "openai", &["wrong-schema"], &two)
        .start()
        .await;
    for dialect in BOTH {
        world.mock.reset();
        let seen = world.ask(dialect, &request(dialect, "worse", TICKET)).await;
        let told = crate::told::plain(dialect, &seen.json());
        let value: Value = serde_json::from_str(&told.text).unwrap();
        assert_eq!(value["category"], "other", "{}", seen.text());
        assert_eq!(seen.header("x-backstay-outcome"), "fallback");
        assert_eq!((seen.attempts(), seen.header("x-backstay-tier")), (3, "1"));
        let whys = whys(&row(&world, &seen));
        assert_eq!(whys.last().unwrap(), "fallback: 2 of 2 re-asks made here");
        let seen = world.ask(dialect, &request(dialect, "silent", TICKET)).await;
        assert_eq!(seen.header("x-backstay-outcome"), "fallback", "{}", seen.text());
        // A refusal is a decision: what came before it is no answer any more.
        let seen = world.ask(dialect, &request(dialect, "refused", TICKET)).await;
        assert_eq!(seen.header("x-backstay-outcome"), "refused", "{}", seen.text());
        assert_eq!(seen.attempts(), 2);
        let seen = world.ask(dialect, &request(dialect, "hopeless", TICKET)).await;
        assert_eq!(seen.header("x-backstay-outcome"), "failed", "{}", seen.text());
    }
    world.stop().await;
}
