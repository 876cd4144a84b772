//! What calls cost, as callers and the log are told, and that no restart gives a spent day back.

use std::path::PathBuf;

use backstay::record::{Row, Step};
use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::client::Seen;
use crate::fixed::Fixed;
use crate::world::{HELLO, Setup, World, request, streamed};

const OPENAI: Dialect = Dialect::OpenaiChat;
const APP: (&str, &str) = ("x-api-key", "app-token-0123456789");
/// A thousandth a token.
const PRICES: &str = "input_price = 1000\noutput_price = 1000";
const QUICK: &str = "deadline = \"5s\"\n\
    timeouts = { connect = \"400ms\", first_token = \"300ms\", gap = \"300ms\", total = \"600ms\" }";

fn row(world: &World, seen: &Seen) -> Row {
    let id = seen.header("x-backstay-call-id");
    world.engine().call_log().find(id).expect("a log").expect("a row")
}

fn capped(model: &str) -> Value {
    let mut body = request(OPENAI, model, HELLO);
    body["max_tokens"] = json!(300);
    body
}

/// What so many tokens cost at [`PRICES`].
fn priced(tokens: u64) -> String {
    let told = format!("{}.{:03}", tokens / 1000, tokens % 1000);
    told.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn key(limit: &str) -> Setup {
    Setup::new().tables(&format!("[keys.app]\ntoken = \"app-token-0123456789\"\n{limit}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_call_cost_is_told_where_there_are_prices_and_nowhere_else() {
    let world = Setup::new()
        .target("paid-1", "openai", &["healthy"])
        .and(PRICES)
        .route("paid", &["paid-1"], QUICK)
        .alone("free", "openai", &["healthy"], QUICK)
        .start()
        .await;
    let seen = world.ask(OPENAI, &capped("paid")).await;
    let used = seen.json()["usage"]["total_tokens"].as_u64().expect("a usage");
    assert_eq!(seen.header("x-backstay-cost"), priced(used));
    let row_of = row(&world, &seen);
    assert_eq!(
        (row_of.cost, row_of.cost_at_least, row_of.booked_tokens),
        (priced(used), false, used)
    );
    let seen = world.ask(OPENAI, &capped("free")).await;
    let used = seen.json()["usage"]["total_tokens"].as_u64().expect("a usage");
    assert!(seen.headers.iter().all(|(name, _)| name != "x-backstay-cost"));
    let row_of = row(&world, &seen);
    assert_eq!(
        (row_of.cost.as_str(), row_of.cost_at_least, row_of.booked_tokens),
        ("", false, used)
    );
    // The head of a stream cannot know; its row does.
    let seen = world.ask(OPENAI, &streamed(capped("paid"))).await;
    assert_eq!((seen.status, seen.header("x-backstay-cost")), (200, ""));
    let row_of = row(&world, &seen);
    let used = row_of.input_tokens + row_of.output_tokens;
    assert_eq!((row_of.cost, row_of.cost_at_least), (priced(used), false));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_have_been_done_costs_its_estimate_and_what_was_turned_away_nothing() {
    let world = Setup::new()
        .target("silent-1", "openai", &["silence"])
        .and(PRICES)
        .target("busy-1", "openai", &["status-529"])
        .and(PRICES)
        .target("good", "openai", &["healthy"])
        .and(PRICES)
        .target("unpriced", "openai", &["healthy"])
        .route("silent", &["silent-1"], &format!("{QUICK}\nmax_attempts = 1"))
        .route("busy", &["busy-1"], &format!("{QUICK}\nmax_attempts = 1"))
        .route("backed", &["silent-1", "good"], &format!("{QUICK}\nmax_attempts = 2"))
        .route("mixed", &["silent-1", "unpriced"], &format!("{QUICK}\nmax_attempts = 2"))
        .start()
        .await;
    let bytes = capped("silent").to_string().len() as u64;
    let seen = world.ask(OPENAI, &capped("silent")).await;
    let most = format!("at least {}", priced(bytes + 300));
    assert_eq!((seen.status, seen.header("x-backstay-cost")), (504, most.as_str()));
    let row_of = row(&world, &seen);
    assert_eq!((row_of.cost, row_of.cost_at_least), (priced(bytes + 300), true));
    assert_eq!(row_of.booked_tokens, bytes + 300);
    let seen = world.ask(OPENAI, &capped("busy")).await;
    assert_eq!(
        (seen.header("x-backstay-outcome"), seen.header("x-backstay-cost")),
        ("failed", "0")
    );
    assert!(!row(&world, &seen).cost_at_least);
    // The names of the routes are as long as `silent`.
    let seen = world.ask(OPENAI, &capped("backed")).await;
    let used = seen.json()["usage"]["total_tokens"].as_u64().expect("a usage");
    let told = format!("at least {}", priced(bytes + 300 + used));
    assert_eq!((seen.status, seen.header("x-backstay-cost")), (200, told.as_str()));
    let seen = world.ask(OPENAI, &capped("mixed")).await;
    assert_eq!(seen.header("x-backstay-target"), "unpriced");
    let told = format!("at least {}", priced(bytes - 1 + 300));
    assert_eq!(seen.header("x-backstay-cost"), told, "what has no price is not in it");
    world.stop().await;
}

/// Holds the provider `cached` to what a call costs with prices of its own for a cache, and without.
async fn costs(provider: &str, own: &str, (with_own, without): (&str, &str)) {
    let world = Setup::new()
        .tables(provider)
        .target("own-1", "cached", &[])
        .and(&format!("{PRICES}\n{own}"))
        .target("any-1", "cached", &[])
        .and(PRICES)
        .route("own", &["own-1"], QUICK)
        .route("any", &["any-1"], QUICK)
        .start()
        .await;
    for (model, cost) in [("own", with_own), ("any", without)] {
        let seen = world.ask(OPENAI, &capped(model)).await;
        assert_eq!((seen.status, seen.header("x-backstay-cost")), (200, cost), "{model}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn input_from_a_cache_costs_its_own_price_or_as_any_other() {
    let body = json!({"id": "x", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": "Lighthouses."}}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110,
            "prompt_tokens_details": {"cached_tokens": 80}}});
    let provider = Fixed::start(&body.to_string()).await;
    let own = "cached_input_price = 100";
    costs(&provider.provider("cached"), own, ("0.038", "0.11")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn input_into_a_cache_costs_its_own_price_or_as_any_other() {
    let body = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "m",
        "content": [{"type": "text", "text": "Lighthouses."}], "stop_reason": "end_turn",
        "stop_sequence": null, "usage": {"input_tokens": 20, "cache_creation_input_tokens": 60,
            "cache_read_input_tokens": 20, "output_tokens": 10}});
    let provider = Fixed::start(&body.to_string()).await;
    let own = "cached_input_price = 100\ncache_write_price = 1250";
    // 20 plain, 20 read at a tenth, 60 written at 1.25, and 10 of output.
    costs(&provider.provider_in("cached", Dialect::Anthropic), own, ("0.107", "0.11")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cheaper_tier_is_asked_when_too_little_is_left_for_the_first() {
    let world = key("spend_per_day = 1")
        .target("dear", "openai", &["healthy"])
        .and("input_price = 10000\noutput_price = 10000")
        .target("dearer", "openai", &["healthy"])
        .and("input_price = 20000\noutput_price = 20000")
        .target("cheap", "openai", &["healthy"])
        .and("input_price = 100\noutput_price = 100")
        .route("steps", &["dear", "dearer", "cheap"], QUICK)
        .route("only", &["dear", "dearer"], QUICK)
        .start()
        .await;
    let seen = world.ask_with(OPENAI, &[APP], &capped("steps")).await;
    assert_eq!((seen.status, seen.header("x-backstay-target")), (200, "cheap"), "{}", seen.text());
    assert_eq!(seen.header("x-backstay-attempts"), "1");
    let row_of = row(&world, &seen);
    let skipped: Vec<(&str, &str)> = row_of
        .trail
        .notes
        .iter()
        .filter_map(|note| match &note.step {
            Step::Skipped { target, why } => Some((target.as_str(), why.as_str())),
            _ => None,
        })
        .collect();
    let [("dear", first), ("dearer", second)] = skipped[..] else { panic!("{skipped:?}") };
    for why in [first, second] {
        assert!(why.starts_with("too dear: 0 spent + up to "), "{why}");
    }
    let seen = world.ask_with(OPENAI, &[APP], &capped("only")).await;
    assert_eq!((seen.status, seen.header("x-backstay-code")), (429, "spend_limit_reached"));
    assert_eq!(seen.header("x-backstay-cost"), "", "nobody was asked");
    assert!(world.log("dear").is_empty() && world.log("dearer").is_empty());
    world.stop().await;
}

/// A file that is not there yet.
fn fresh(name: &str) -> PathBuf {
    let path = std::env::temp_dir().join(format!("backstay-{}-{name}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    path
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_gives_no_spent_day_back() {
    for limit in ["spend_per_day = 2.5", "tokens_per_day = 2500"] {
        let file = fresh("cost.sqlite");
        let start = async || {
            let setup = key(limit)
                .target("paid-1", "openai", &["silence", "healthy"])
                .and(PRICES)
                .route("paid", &["paid-1"], &format!("{QUICK}\nmax_attempts = 1"));
            setup.log(&file).start().await
        };
        let world = start().await;
        // The first is booked by its estimate: also that is spent.
        let seen = world.ask_with(OPENAI, &[APP], &capped("paid")).await;
        assert_eq!(seen.status, 504);
        let refused = loop {
            let seen = world.ask_with(OPENAI, &[APP], &capped("paid")).await;
            if seen.status != 200 {
                break seen;
            }
        };
        assert_eq!(refused.header("x-backstay-code"), "spend_limit_reached");
        let sum = refused.json()["error"]["message"].as_str().map(sum_of).expect("a sum");
        world.stop().await;
        let world = start().await;
        let again = world.ask_with(OPENAI, &[APP], &capped("paid")).await;
        assert_eq!(again.header("x-backstay-code"), "spend_limit_reached", "{limit}");
        assert!(world.log("paid-1").is_empty());
        assert_eq!(again.json()["error"]["message"].as_str().map(sum_of), Some(sum));
        world.stop().await;
        let _ = std::fs::remove_file(&file);
    }
}

/// `at least 1.9 spent` of a refusal.
fn sum_of(message: &str) -> String {
    let from = message.find("at least ").expect("an estimate is in it");
    let sum: String = message.chars().skip(from).collect();
    sum.split(" spent").next().expect("a part").to_owned()
}
