//! A caller who leaves: the provider is cancelled at once, and nothing stays taken.

use std::time::Duration;

use backstay_mock::End;
use backstay_wire::Dialect;
use tokio::time::Instant;

use crate::client::Line;
use crate::world::{HELLO, Setup, World, request, start, streamed};

const DIALECT: Dialect = Dialect::OpenaiChat;

const ROUTE: &str = "deadline = \"20s\"\n\
    timeouts = { first_token = \"15s\", gap = \"15s\", total = \"18s\" }\nmax_output_tokens = 900";

/// 100 ms, and 50 for a machine that does other things beside.
pub(crate) const SOON: Duration = Duration::from_millis(150);

/// Waits until the provider has seen `count` requests for `model`.
pub(crate) async fn arrived(world: &World, model: &str, count: usize) {
    let end = Instant::now() + Duration::from_secs(3);
    while world.log(model).len() < count {
        assert!(Instant::now() < end, "request {count} for {model} never came");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// How long until the provider noticed that the last request for `model` is given up.
pub(crate) async fn noticed(world: &World, model: &str) -> Duration {
    let began = Instant::now();
    loop {
        let last = world.log(model).pop().expect("a request");
        match last.end {
            End::ClientGone => return began.elapsed(),
            End::Pending => {}
            other => panic!("ended as {other:?}"),
        }
        assert!(began.elapsed() < Duration::from_secs(3), "never noticed");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_who_hangs_up_cancels_the_provider_within_a_tenth_of_a_second() {
    let world = Setup::new()
        .alone("plain", "openai", &["silence"], ROUTE)
        .alone("gate", "openai", &["silence"], ROUTE)
        .alone("pings", "anthropic", &["keepalive-forever"], ROUTE)
        .alone("running", "openai", &["healthy+n=200+gap=40ms"], ROUTE)
        .alone("stalled", "openai", &["stream-stall"], ROUTE)
        .alone("crossed", "anthropic", &["healthy+n=200+gap=40ms"], ROUTE)
        .alone(
            "folded",
            "openai",
            &["healthy+n=200+gap=40ms"],
            &format!("{ROUTE}\nupstream = \"stream\""),
        )
        .start()
        .await;
    for (name, streams, mark) in [
        ("plain", false, ""),
        ("gate", true, ""),
        ("pings", true, ""),
        ("running", true, "data:"),
        ("stalled", true, "data:"),
        ("crossed", true, "data:"),
        ("folded", false, ""),
    ] {
        let mut body = request(DIALECT, name, HELLO);
        if streams {
            body = streamed(body);
        }
        let mut line = Line::open(world.address()).await;
        line.ask(start(DIALECT), &[], body.to_string().as_bytes()).await.expect("sent");
        let model = format!("{name}-1");
        arrived(&world, &model, 1).await;
        if !mark.is_empty() {
            line.read_until(mark).await;
        }
        drop(line);
        let after = noticed(&world, &model).await;
        assert!(after < SOON, "{name}: noticed after {after:?}");
        assert_eq!(world.log(&model).len(), 1, "{name}: asked again for nobody");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_hang_ups_leave_no_place_taken_and_no_breaker_open() {
    let mut steps = vec!["silence"; 50];
    steps.push("healthy");
    let mut runs = vec!["healthy+n=100+gap=30ms"; 20];
    runs.push("healthy");
    let world = Setup::new()
        .target("plain-1", "openai", &steps)
        .and("max_concurrency = 1")
        .route("plain", &["plain-1"], ROUTE)
        .target("gate-1", "openai", &steps)
        .and("max_concurrency = 1")
        .route("gate", &["gate-1"], ROUTE)
        .target("stream-1", "openai", &runs)
        .and("max_concurrency = 1")
        .route("stream", &["stream-1"], ROUTE)
        .start()
        .await;
    for (name, times, streams) in [("plain", 50, false), ("gate", 50, true), ("stream", 20, true)] {
        let mut body = request(DIALECT, name, HELLO);
        if streams {
            body = streamed(body);
        }
        let model = format!("{name}-1");
        for turn in 1..=times {
            let mut line = Line::open(world.address()).await;
            line.ask(start(DIALECT), &[], body.to_string().as_bytes()).await.expect("sent");
            arrived(&world, &model, turn).await;
            if name == "stream" {
                line.read_until("data:").await;
            }
        }
        let seen = world.ask(DIALECT, &request(DIALECT, name, HELLO)).await;
        assert_eq!(seen.status, 200, "{name}: {}", seen.text());
        assert!(seen.took < Duration::from_secs(1), "{name}: took {:?}", seen.took);
        let log = world.settled_log(&model).await;
        let gone = log.iter().filter(|entry| entry.end == End::ClientGone).count();
        assert_eq!((log.len(), gone), (times + 1, times), "{name}");
    }
    let metrics = world.get("/metrics").await.text();
    assert!(metrics.contains("outcome=\"abandoned\""), "{metrics}");
    assert!(metrics.contains("backstay_calls_in_flight 0"), "{metrics}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_given_up_is_counted_and_its_tokens_are_told_as_at_least() {
    let world = Setup::new().alone("left", "openai", &["silence"], ROUTE).start().await;
    let body = request(DIALECT, "left", HELLO).to_string();
    let mut line = Line::open(world.address()).await;
    line.ask(start(DIALECT), &[], body.as_bytes()).await.expect("sent");
    arrived(&world, "left-1", 1).await;
    drop(line);
    noticed(&world, "left-1").await;
    // The empty id is the beginning of every id.
    let row = world.engine().call_log().find("").unwrap().expect("a row");
    assert_eq!((row.outcome.as_ref(), row.attempts, row.at_least), ("abandoned", 1, true));
    assert_eq!((&*row.target, row.tier), ("left-1", 1));
    let metrics = world.get("/metrics").await.text();
    let counted = "backstay_attempts_total{target=\"left-1\",fault=\"abandoned\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_is_not_taken_for_a_silent_provider() {
    let quick = ROUTE.replace("gap = \"15s\"", "gap = \"300ms\"");
    let world =
        Setup::new().alone("fast", "openai", &["healthy+size=3000000"], &quick).start().await;
    let body = streamed(request(DIALECT, "fast", HELLO));
    let mut body = body;
    body["max_tokens"] = serde_json::json!(1_000_000);
    let mut line = Line::open(world.address()).await;
    line.ask(start(DIALECT), &[], body.to_string().as_bytes()).await.expect("sent");
    line.read_until("data:").await;
    // Longer than the gap, with megabytes still to come and every buffer between full.
    tokio::time::sleep(Duration::from_millis(900)).await;
    let seen = line.read(Duration::from_secs(5)).await;
    crate::streams::whole(&world, DIALECT, &seen);
    world.stop().await;
}
