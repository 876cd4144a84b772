//! Stopping while calls are carried on whose callers left: they are waited for, up to the drain time.

use std::time::Duration;

use backstay::record::Row;
use backstay_gateway::Drained;
use backstay_mock::End;
use backstay_wire::Dialect;
use tokio::time::Instant;

use crate::client::Line;
use crate::world::{HELLO, Setup, World, request, start, streamed};

const DIALECT: Dialect = Dialect::OpenaiChat;

const FINISH: &str = "deadline = \"20s\"\non_disconnect = \"finish\"";

/// A world whose one call has lost its caller while its stream of `steps` runs.
async fn left_alone(steps: &str) -> World {
    let world = Setup::new().alone("left", "openai", &[steps], FINISH).start().await;
    let body = streamed(request(DIALECT, "left", HELLO)).to_string();
    let mut line = Line::open(world.address()).await;
    line.ask(start(DIALECT), &[], body.as_bytes()).await.expect("sent");
    line.read_until("data:").await;
    drop(line);
    // Long enough for the gateway to notice, which then goes on reading.
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(world.log("left-1")[0].end, End::Pending, "it is carried on");
    world
}

/// Stops the gateway; how, after how long, and the row of its one call.
async fn stops(world: World) -> (Drained, Duration, Row, End) {
    let (engine, began) = (world.engine().clone(), Instant::now());
    let drained = world.running.stop().await;
    let took = began.elapsed();
    let row = engine.call_log().find("").expect("a log").expect("a row");
    // The provider hears of it a moment later.
    let mut end = world.mock.log()[0].end;
    for _ in 0..200 {
        if end != End::Pending {
            break;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
        end = world.mock.log()[0].end;
    }
    world.mock.stop().await;
    (drained, took, row, end)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_waits_for_a_call_that_is_carried_on() {
    let world = left_alone("healthy+n=25+gap=40ms").await;
    let (drained, took, row, end) = stops(world).await;
    assert_eq!((drained, end), (Drained::Whole, End::Complete));
    assert!((300..1900).contains(&took.as_millis()), "as long as it took: {took:?}");
    assert_eq!((row.outcome.as_ref(), row.finish.as_ref()), ("abandoned", "complete"));
    assert!(row.output_tokens > 0 && !row.at_least, "its usage is booked: {row:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_carried_on_past_the_drain_time_is_ended_and_counted() {
    let world = left_alone("healthy+n=300+gap=40ms").await;
    let (drained, took, row, end) = stops(world).await;
    assert_eq!(drained, Drained::Cut);
    assert!((2000..3500).contains(&took.as_millis()), "two seconds and no more: {took:?}");
    assert_eq!(end, End::ClientGone, "its provider was told");
    assert_eq!((row.outcome.as_ref(), row.route.as_str(), row.attempts), ("abandoned", "left", 1));
    assert!(row.at_least, "what it took is not known whole: {row:?}");
}
