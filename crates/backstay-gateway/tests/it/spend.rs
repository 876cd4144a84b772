//! What a caller's key may spend and use.

use std::time::Duration;

use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::client::{self, Line, Seen};
use crate::world::{HELLO, Setup, World, request, start, streamed};

const DIALECT: Dialect = Dialect::OpenaiChat;
const APP: (&str, &str) = ("x-api-key", "app-token-0123456789");
const JOB: (&str, &str) = ("x-api-key", "job-token-0123456789");

/// A key with limits and one without, and a target with prices.
pub(crate) fn keys(app: &str) -> Setup {
    let keys = format!(
        "[alerts]\n[keys.app]\ntoken = \"app-token-0123456789\"\n{app}\n\
         [keys.job]\ntoken = \"job-token-0123456789\""
    );
    Setup::new()
        .tables(&keys)
        .target("paid-1", "openai", &["healthy"])
        .and("input_price = 1000.0\noutput_price = 1000.0")
        .route("paid", &["paid-1"], "deadline = \"10s\"")
}

/// A request that takes at most 400 tokens or so, and far less in the end.
fn short(model: &str) -> Value {
    let mut body = request(DIALECT, model, HELLO);
    body["max_tokens"] = json!(300);
    body
}

/// Calls until one is refused; how many were answered.
pub(crate) async fn spends(world: &World, model: &str) -> (usize, Seen) {
    for count in 0..200 {
        let seen = world.ask_with(DIALECT, &[APP], &short(model)).await;
        if seen.header("x-backstay-outcome") != "answered" {
            return (count, seen);
        }
    }
    panic!("200 calls, and no end of it");
}

async fn metric(world: &World, name: &str) -> f64 {
    let metrics = world.get("/metrics").await.text();
    let line = metrics.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or(0.0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_has_spent_its_day_is_refused_with_the_sum_and_told_of_once_before() {
    for (limit, told) in [
        ("tokens_per_day = 2500", "in tokens, "),
        // A thousand for a million tokens: the same, in money.
        ("spend_per_day = 2.5", "spent + up to 0."),
    ] {
        let world = keys(limit).start().await;
        let (answered, seen) = spends(&world, "paid").await;
        assert!(answered >= 3, "{limit}: {answered} calls");
        assert_eq!(world.log("paid-1").len(), answered, "{limit}: the refused one was not sent");
        assert_eq!((seen.status, seen.header("x-backstay-code")), (429, "spend_limit_reached"));
        assert_eq!(seen.header("x-should-retry"), "false");
        assert!((1..=60).contains(&seen.header("retry-after").parse().unwrap_or(0)));
        let text = seen.text();
        assert!(text.contains("the key `app`: ") && text.contains(told), "{text}");
        assert!(text.contains("a day; the limit begins anew at 00:00 UTC, in "), "{text}");
        let share = metric(&world, "backstay_spend_ratio{key=\"app\"}").await;
        assert!((0.8..=1.0).contains(&share), "{limit}: {share}");
        let alerts = "backstay_alerts_total{kind=\"spend\",fate=\"told\"}";
        assert!((metric(&world, alerts).await - 1.0).abs() < 0.01);
        let other = world.ask_with(DIALECT, &[JOB], &short("paid")).await;
        assert_eq!(other.status, 200, "another key has its own");
        // The account outlives a reload.
        world.engine().reload(world.settings.policy.clone()).expect("the policy compiles");
        let again = world.ask_with(DIALECT, &[APP], &short("paid")).await;
        assert_eq!(again.header("x-backstay-code"), "spend_limit_reached");
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_pay_too_and_a_last_resort_answers_for_an_empty_purse() {
    let more = "deadline = \"10s\"\nlast_resort = { text = \"Tomorrow.\" }";
    let world =
        keys("tokens_per_day = 1200").alone("kind", "openai", &["healthy"], more).start().await;
    let seen = world.ask_with(DIALECT, &[APP], &streamed(short("kind"))).await;
    assert_eq!(seen.status, 200);
    let share = metric(&world, "backstay_spend_ratio{key=\"app\"}").await;
    assert!(share > 0.0, "a stream that is over is paid");
    let (_, seen) = spends(&world, "kind").await;
    assert_eq!((seen.status, seen.header("x-backstay-outcome")), (200, "last_resort"));
    assert!(seen.text().contains("Tomorrow."));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_given_up_is_booked_as_reserved_and_what_was_turned_away_is_not() {
    let world = keys("tokens_per_day = 100000")
        .alone("silent", "openai", &["silence"], "deadline = \"10s\"")
        .alone("full", "openai", &["status-429"], "deadline = \"2s\"\nmax_attempts = 1")
        .start()
        .await;
    let ratio = "backstay_spend_ratio{key=\"app\"}";
    let refused = world.ask_with(DIALECT, &[APP], &short("full")).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(metric(&world, ratio).await.abs() < 1e-9);
    let mut line = Line::open(world.address()).await;
    let body = short("silent").to_string();
    line.ask(start(DIALECT), &[APP], body.as_bytes()).await.expect("sent");
    while world.log("silent-1").is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    assert!(metric(&world, ratio).await.abs() < 1e-9, "reserved, and not spent");
    drop(line);
    let mut share = 0.0;
    for _ in 0..100 {
        share = metric(&world, ratio).await;
        if share > 0.0 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // 300 of output, and a token a byte.
    assert!((0.003..0.005).contains(&share), "{share}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_uses_its_routes_and_nothing_beside_them() {
    let world = keys("routes = [\"paid\"]")
        .alone("other", "openai", &["healthy"], "deadline = \"10s\"")
        .start()
        .await;
    assert_eq!(world.ask_with(DIALECT, &[APP], &short("paid")).await.status, 200);
    for model in ["other", "paid-1", "openai/paid-1"] {
        let seen = world.ask_with(DIALECT, &[APP], &short(model)).await;
        assert_eq!((seen.status, seen.header("x-backstay-code")), (403, "forbidden"), "{model}");
        assert!(seen.text().contains("it may use `paid`"), "{}", seen.text());
        assert_eq!(world.ask_with(DIALECT, &[JOB], &short(model)).await.status, 200, "{model}");
    }
    let bypass = ("x-backstay-bypass", "1");
    let seen = world.ask_with(DIALECT, &[APP, bypass], &short("paid")).await;
    assert_eq!((seen.status, seen.header("x-backstay-code")), (403, "forbidden"));
    let body = json!({"model": "paid-1", "input": "x"}).to_string();
    let seen = client::call(world.address(), "POST /v1/embeddings", &[APP], body.as_bytes()).await;
    assert_eq!(seen.status, 403, "{}", seen.text());
    world.stop().await;
}
