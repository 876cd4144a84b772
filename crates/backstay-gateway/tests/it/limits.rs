//! Limits of targets: calls at once.

use backstay_wire::Dialect;

use crate::world::{HELLO, Setup, World, request};

const OPENAI: Dialect = Dialect::OpenaiChat;

/// One attempt: what a target does is what the caller sees.
const ONCE: &str = "deadline = \"4s\"\nmax_attempts = 1\nmax_output_tokens = 300";

/// The value of a metric of a target.
async fn metric(world: &World, name: &str, target: &str) -> Option<f64> {
    let text = world.get("/metrics").await.text();
    let start = format!("backstay_{name}{{target=\"{target}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(start.as_str())?.parse().ok())
}

async fn burst(world: &World, route: &str, calls: usize) -> Vec<u16> {
    let body = request(OPENAI, route, HELLO);
    let asked = (0..calls).map(|_| world.ask(OPENAI, &body));
    futures_util::future::join_all(asked).await.iter().map(|seen| seen.status).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_overloaded_target_carries_fewer_calls_until_it_answers_again() {
    let steps = ["status-529+delay=200ms"; 20];
    let mut steps = steps.to_vec();
    steps.push("healthy+delay=100ms");
    let world = Setup::new()
        .target("strained", "openai", &steps)
        .and("max_concurrency = 20")
        .and("breaker = { mode = \"forced_closed\" }")
        .route("strained", &["strained"], ONCE)
        .start()
        .await;
    let statuses = burst(&world, "strained", 20).await;
    assert!(statuses.iter().all(|status| *status != 200), "{statuses:?}");
    // One strain takes a fifth; on a busy machine the calls may be more than a second apart.
    let strained = metric(&world, "places", "strained").await.unwrap();
    assert!((8.0..=16.0).contains(&strained), "{strained}");
    assert_eq!(metric(&world, "places_taken", "strained").await, Some(0.0));
    let statuses = burst(&world, "strained", 100).await;
    assert!(
        statuses.iter().all(|status| *status == 200),
        "those without a place wait: {statuses:?}"
    );
    let places = metric(&world, "places", "strained").await.unwrap();
    assert!(places > strained, "clean replies bring places back: {places} after {strained}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bodies_in_flight_are_bounded_and_one_over_the_bound_goes_to_who_takes_it() {
    let world = Setup::new()
        .target("narrow", "openai", &["healthy+delay=100ms"])
        .and("places = { bytes = 150 }")
        .target("wide", "openai", &["healthy"])
        .route("alone", &["narrow"], ONCE)
        .route("both", &["narrow", "wide"], ONCE)
        .start()
        .await;
    let began = tokio::time::Instant::now();
    assert_eq!(burst(&world, "alone", 6).await, [200; 6]);
    assert!(began.elapsed().as_millis() >= 500, "two bodies are over the bound");
    let large = "lighthouse ".repeat(100);
    let seen = world.ask(OPENAI, &request(OPENAI, "both", &large)).await;
    assert_eq!((seen.status, seen.header("x-backstay-tier")), (200, "2"));
    let seen = world.ask(OPENAI, &request(OPENAI, "alone", &large)).await;
    assert_eq!(seen.status, 503, "{}", seen.text());
    assert!(seen.text().contains("is over the 150 of all calls together"), "{}", seen.text());
    world.stop().await;
}
