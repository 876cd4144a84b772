//! Callers who leave, in every mode and dialect: the provider is cancelled, or read to its end where a
//! route says so.

use std::time::Duration;

use backstay::policy::StreamMode;
use backstay::record::Row;
use backstay_mock::End;
use backstay_wire::Dialect;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::OPENAI;
use super::streams::{WAYS, Way};
use crate::client::Line;
use crate::hang_up::{SOON, arrived, noticed};
use crate::world::{BOTH, HELLO, Setup, World, provider, request, short, start, streamed};

const ROUTE: &str = "deadline = \"20s\"\nmax_output_tokens = 900\n\
    timeouts = { first_token = \"15s\", gap = \"15s\", total = \"18s\" }";

/// Every way and caller, each with a name of its own.
fn everyone() -> impl Iterator<Item = (Way, Dialect, String)> {
    let named = |way: Way, caller| {
        let word = match way {
            Way::Mode(mode) => mode.name(),
            Way::Folded => "whole",
        };
        (way, caller, format!("{word}-{}", short(caller)))
    };
    WAYS.into_iter().flat_map(move |way| BOTH.map(move |caller| named(way, caller)))
}

/// Whether content is seen in this way before the reply is whole.
fn is_seen_early(way: Way) -> bool {
    matches!(way, Way::Mode(StreamMode::Passthrough | StreamMode::Gate))
}

/// Case B219: nobody listened for a disconnect before the first chunk.
///
/// Case B220: nor while a plain reply was awaited; it is the caller who left, not the provider that failed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_leaves_cancels_the_provider_in_every_mode_before_and_after_its_first_content() {
    for (behaviour, is_running) in [("silence", false), ("healthy+n=200+gap=40ms", true)] {
        let mut setup = Setup::new();
        for (way, caller, name) in everyone() {
            let more = format!("{ROUTE}\n{}", way.line());
            setup = setup.alone(&name, provider(caller), &[behaviour], &more);
        }
        let world = setup.start().await;
        for (way, caller, name) in everyone() {
            let body = way.asks(caller, request(caller, &name, HELLO)).to_string();
            let mut line = Line::open(world.address()).await;
            line.ask(start(caller), &[], body.as_bytes()).await.expect("sent");
            let model = format!("{name}-1");
            arrived(&world, &model, 1).await;
            if is_running && is_seen_early(way) {
                line.read_until("data:").await;
            }
            drop(line);
            let after = noticed(&world, &model).await;
            assert!(after < SOON, "{name} {behaviour}: noticed after {after:?}");
            assert_eq!(world.log(&model).len(), 1, "{name} {behaviour}: asked again for nobody");
            let metrics = world.get("/metrics").await.text();
            let counted = format!(
                "backstay_calls_total{{route=\"{name}\",outcome=\"abandoned\",code=\"\"}} 1"
            );
            assert!(metrics.contains(&counted), "{name} {behaviour}: {metrics}");
        }
        world.stop().await;
    }
}

/// Case B221 in every mode: what its caller left is read to its end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn in_every_mode_a_route_may_read_to_the_end_what_its_caller_left() {
    let mut setup = Setup::new();
    for (way, caller, name) in everyone() {
        let more = format!("{FINISH}\n{}", way.line());
        setup = setup.alone(&name, provider(caller), &["healthy+n=20+gap=20ms"], &more);
    }
    let world = setup.start().await;
    for (way, caller, name) in everyone() {
        let body = way.asks(caller, request(caller, &name, HELLO));
        let mark = if is_seen_early(way) { "data:" } else { "" };
        let (end, row) = left_to_itself(&world, (caller, &name), &body, mark).await;
        assert_eq!((end, row.outcome.as_ref()), (End::Complete, "abandoned"), "{name}: {row:?}");
        assert_eq!((row.attempts, row.finish.as_ref()), (1, "complete"), "{name}: {row:?}");
    }
    world.stop().await;
}

/// How the last request for `model` ended, once it has; and how the call that made it is logged.
async fn left_to_itself(
    world: &World,
    (caller, name): (Dialect, &str),
    body: &Value,
    mark: &str,
) -> (End, Row) {
    let model = format!("{name}-1");
    let mut line = Line::open(world.address()).await;
    line.ask(start(caller), &[], body.to_string().as_bytes()).await.expect("sent");
    let end = Instant::now() + Duration::from_secs(3);
    while world.log(&model).is_empty() {
        assert!(Instant::now() < end, "{name}: no request came");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    if !mark.is_empty() {
        line.read_until(mark).await;
    }
    drop(line);
    let end = Instant::now() + Duration::from_secs(5);
    loop {
        let log = world.log(&model);
        assert_eq!(log.len(), 1, "{name}: asked again for nobody");
        let row = world.engine().call_log().find("").expect("a log");
        let row = row.filter(|row| row.route == name);
        match (log[0].end, row) {
            (end, Some(row)) if end != End::Pending => return (end, row),
            _ => assert!(Instant::now() < end, "{name}: it never ended"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

const FINISH: &str = "deadline = \"20s\"\non_disconnect = \"finish\"";

/// Case B221: a cancel passed on takes down a backend that bears none, and the others' calls with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_route_may_read_to_the_end_what_its_caller_left() {
    let world = Setup::new()
        .alone("plain", "openai", &["slow-headers+wait=400ms"], FINISH)
        .alone("live", "openai", &["healthy+n=20+gap=30ms"], FINISH)
        .alone("crossed", "anthropic", &["healthy+n=20+gap=30ms"], FINISH)
        .alone("gate", "openai", &["slow-first+wait=400ms"], FINISH)
        .alone(
            "folded",
            "openai",
            &["healthy+n=20+gap=30ms"],
            &format!("{FINISH}\nupstream = \"stream\""),
        )
        .start()
        .await;
    for (name, streams, mark) in [
        ("plain", false, ""),
        ("live", true, "data:"),
        ("crossed", true, "data:"),
        ("gate", true, ""),
        ("folded", false, ""),
    ] {
        let mut body = request(OPENAI, name, HELLO);
        if streams {
            body = streamed(body);
        }
        let (end, row) = left_to_itself(&world, (OPENAI, name), &body, mark).await;
        assert_eq!((end, row.outcome.as_ref()), (End::Complete, "abandoned"), "{name}: {row:?}");
        assert!(row.output_tokens > 0 && !row.at_least, "{name}: {row:?}");
        assert_eq!((row.attempts, row.finish.as_ref()), (1, "complete"), "{name}: {row:?}");
    }
    let metrics = world.get("/metrics").await.text();
    assert!(metrics.contains("backstay_calls_in_flight 0"), "{metrics}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_its_caller_is_bounded_and_asks_nothing_more() {
    let soon = format!("{FINISH}\nfinish_within = \"200ms\"");
    let world = Setup::new()
        .alone("slow", "openai", &["healthy+n=100+gap=40ms"], &soon)
        .alone("large", "openai", &["healthy+size=4000000+n=800+gap=5ms"], FINISH)
        .alone("failing", "openai", &["status-503+delay=300ms", "healthy"], FINISH)
        .start()
        .await;
    for (name, streams, seen) in [
        ("slow", true, End::ClientGone),
        ("large", true, End::ClientGone),
        ("failing", false, End::Complete),
    ] {
        let mut body = request(OPENAI, name, HELLO);
        body["max_tokens"] = json!(4_000_000);
        let mut mark = "";
        if streams {
            (body, mark) = (streamed(body), "data:");
        }
        let (end, row) = left_to_itself(&world, (OPENAI, name), &body, mark).await;
        assert_eq!((end, row.outcome.as_ref()), (seen, "abandoned"), "{name}: {row:?}");
    }
    world.stop().await;
}
