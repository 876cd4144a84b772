//! The queue in front of the gateway's seats: who goes first, who leaves, and what they are told.

use std::time::Duration;

use backstay_wire::Dialect;
use serde_json::Value;
use tokio::time::Instant;

use crate::client::{Line, PATIENCE, Seen};
use crate::world::{HELLO, Setup, World, request, start, streamed};

const DIALECT: Dialect = Dialect::OpenaiChat;
const PRIORITY: &str = "x-backstay-priority";
const NAME: &str = "x-client-request-id";

/// One seat, a route that keeps it for as long as its caller stays, and one that answers.
pub(crate) fn one_seat(queue: &str) -> Setup {
    let keep = "deadline = \"20s\"\ntimeouts = { first_token = \"15s\", total = \"18s\" }";
    Setup::new()
        .tables(&format!("[queue]\nseats = 1\n{queue}"))
        .alone("keep", "openai", &["silence"], keep)
        .alone("quick", "openai", &["healthy"], "deadline = \"10s\"")
}

/// Asks without reading the answer.
pub(crate) async fn asked(world: &World, class: &str, body: &Value) -> Line {
    asked_as(world, "", class, body).await
}

/// The same, with a name that goes on to the provider.
async fn asked_as(world: &World, name: &str, class: &str, body: &Value) -> Line {
    let mut line = Line::open(world.address()).await;
    let headers = [(PRIORITY, class), (NAME, name)];
    line.ask(start(DIALECT), &headers, body.to_string().as_bytes()).await.expect("sent");
    line
}

/// Waits until so many calls wait and run.
pub(crate) async fn stands(world: &World, waiting: usize, running: u32) -> Duration {
    let began = Instant::now();
    loop {
        let report = world.engine().line().report();
        if (report.count[0], report.running) == (waiting, running) {
            return began.elapsed();
        }
        assert!(began.elapsed() < Duration::from_secs(3), "stands at {report:?}");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Takes the one seat, as a batch.
pub(crate) async fn keeps(world: &World) -> Line {
    let line = asked(world, "batch", &request(DIALECT, "keep", HELLO)).await;
    stands(world, 0, 1).await;
    line
}

pub(crate) fn quick(text: &str) -> Value {
    request(DIALECT, "quick", text)
}

pub(crate) async fn read(mut line: Line) -> Seen {
    line.read(PATIENCE).await
}

fn row(world: &World, seen: &Seen) -> backstay::record::Row {
    let id = seen.header("x-backstay-call-id");
    world.engine().call_log().find(id).expect("a log that can be read").expect("a row")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_go_before_batches_that_came_first_and_both_are_answered() {
    let world = one_seat("").start().await;
    let keeper = keeps(&world).await;
    let mut lines = Vec::new();
    for (count, class) in ["batch", "batch", "interactive", "interactive"].iter().enumerate() {
        lines.push(asked_as(&world, &count.to_string(), class, &quick(HELLO)).await);
        stands(&world, count + 1, 1).await;
    }
    drop(keeper);
    let mut waited = Vec::new();
    for line in lines {
        let seen = read(line).await;
        assert_eq!(seen.status, 200, "{}", seen.text());
        let trail = format!("{:?}", row(&world, &seen).trail);
        assert!(trail.contains("for a seat as"), "{trail}");
        waited.push(trail);
    }
    assert!(
        waited[0].contains("for a seat as batch: 0 waiting, cost 0 before it"),
        "{}",
        waited[0]
    );
    let log = world.log("quick-1");
    let order: Vec<&str> = log.iter().map(|entry| entry.headers[NAME].as_str()).collect();
    assert_eq!(order, ["2", "3", "0", "1"]);
    assert!(log.iter().all(|entry| !entry.headers.contains_key(PRIORITY)));
    let metrics = world.get("/metrics").await.text();
    for line in [
        "backstay_queue_waiting{class=\"batch\"} 0",
        "backstay_queue_wait_seconds_count{class=\"interactive\"} 2",
        "backstay_seats_taken 0",
    ] {
        assert!(metrics.contains(line), "{line} in {metrics}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_sheds_the_lowest_class_which_is_told_where_it_stood() {
    let world = one_seat("count = 2").start().await;
    let keeper = keeps(&world).await;
    let first = asked(&world, "batch", &quick("first")).await;
    stands(&world, 1, 1).await;
    let second = asked(&world, "batch", &quick("second")).await;
    stands(&world, 2, 1).await;
    let refused = read(asked(&world, "batch", &quick("third")).await).await;
    assert_eq!((refused.status, refused.header("x-backstay-code")), (503, "gateway_busy"));
    assert_eq!((refused.header("retry-after"), refused.header("x-should-retry")), ("1", ""));
    let told = "all 1 seats are taken; the queue is full for batch: 2 of 2 calls";
    assert!(refused.text().contains(told), "{}", refused.text());
    assert!(refused.took < Duration::from_millis(500), "{:?}", refused.took);
    let person = asked(&world, "interactive", &quick("person")).await;
    let shed = read(second).await;
    assert_eq!((shed.status, shed.header("retry-after")), (503, "1"), "{}", shed.text());
    assert!(shed.text().contains("the queue was full and a call of interactive came"));
    assert_eq!(row(&world, &shed).code, "gateway_busy");
    drop(keeper);
    for line in [first, person] {
        assert_eq!(read(line).await.status, 200);
    }
    let metrics = world.get("/metrics").await.text();
    for why in ["queue_full", "queue_shed"] {
        let line = format!("backstay_queue_left_total{{class=\"batch\",why=\"{why}\"}} 1");
        assert!(metrics.contains(&line), "{line} in {metrics}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_a_seat_gets_its_routes_last_resort_at_once() {
    let more = "deadline = \"10s\"\nlast_resort = { text = \"We will write to you.\" }";
    let world = one_seat("count = 0").alone("kind", "openai", &["healthy"], more).start().await;
    let keeper = keeps(&world).await;
    for body in [request(DIALECT, "kind", HELLO), streamed(request(DIALECT, "kind", HELLO))] {
        let seen = world.ask(DIALECT, &body).await;
        assert_eq!((seen.status, seen.header("x-backstay-outcome")), (200, "last_resort"));
        assert!(seen.text().contains("We will write to you."), "{}", seen.text());
        assert!(seen.took < Duration::from_millis(500), "{:?}", seen.took);
    }
    assert_eq!(world.log("kind-1").len(), 0);
    drop(keeper);
    stands(&world, 0, 0).await;
    let seen = world.ask(DIALECT, &request(DIALECT, "kind", HELLO)).await;
    assert_eq!(seen.header("x-backstay-outcome"), "answered");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_who_hangs_up_in_the_queue_frees_its_place_within_a_tenth_of_a_second() {
    let world = one_seat("").start().await;
    let keeper = keeps(&world).await;
    for body in [quick("plain"), streamed(quick("streamed"))] {
        let waiting = asked(&world, "interactive", &body).await;
        stands(&world, 1, 1).await;
        drop(waiting);
        let after = stands(&world, 0, 1).await;
        // 100 ms, and 50 for a machine that does other things beside.
        assert!(after < Duration::from_millis(150), "{after:?}");
        let row = world.engine().call_log().find("").unwrap().expect("a row");
        assert_eq!((row.outcome.as_ref(), row.attempts), ("abandoned", 0));
    }
    drop(keeper);
    stands(&world, 0, 0).await;
    assert_eq!(world.log("quick-1").len(), 0);
    let metrics = world.get("/metrics").await.text();
    let line = "backstay_queue_left_total{class=\"interactive\",why=\"queue_gave_up\"} 2";
    assert!(metrics.contains(line), "{metrics}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_whose_deadline_ends_in_the_queue_is_told_so_in_time() {
    let world = one_seat("").start().await;
    let _keeper = keeps(&world).await;
    let headers = [("x-backstay-deadline", "1.5s")];
    for body in [quick("plain"), streamed(quick("streamed"))] {
        let seen = world.ask_with(DIALECT, &headers, &body).await;
        assert_eq!((seen.status, seen.header("x-backstay-code")), (504, "deadline_exceeded"));
        assert!(seen.text().contains("no seat came free: interactive #"), "{}", seen.text());
        assert!(seen.took < Duration::from_millis(1500), "{:?}", seen.took);
    }
    assert_eq!(world.log("quick-1").len(), 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_promotes_himself_without_leave() {
    let keys = "[keys.app]\ntoken = \"app-token-0123456789\"\n\
        [keys.job]\ntoken = \"job-token-0123456789\"\nclasses = [\"batch\"]";
    let world = one_seat("").tables(keys).start().await;
    let job = ("x-api-key", "job-token-0123456789");
    let app = ("x-api-key", "app-token-0123456789");
    let promoted = world.ask_with(DIALECT, &[job, (PRIORITY, "interactive")], &quick("job")).await;
    assert_eq!((promoted.status, promoted.header("x-backstay-code")), (403, "forbidden"));
    assert_eq!(promoted.header("x-should-retry"), "false");
    assert!(promoted.text().contains("it may use `batch`"), "{}", promoted.text());
    let unknown = world.ask_with(DIALECT, &[app, (PRIORITY, "urgent")], &quick("app")).await;
    assert_eq!((unknown.status, unknown.header("x-backstay-code")), (400, "invalid_request"));
    assert!(unknown.text().contains("the classes are `interactive`, `batch`"));
    // Without a header the key says which class it is.
    let mut keeper = Line::open(world.address()).await;
    let body = request(DIALECT, "keep", HELLO).to_string();
    keeper.ask(start(DIALECT), &[app], body.as_bytes()).await.expect("sent");
    stands(&world, 0, 1).await;
    let mut waiting = Line::open(world.address()).await;
    waiting.ask(start(DIALECT), &[job], quick("job").to_string().as_bytes()).await.expect("sent");
    stands(&world, 1, 1).await;
    let classes = world.engine().line().report().classes;
    let counts: Vec<_> = classes.iter().map(|class| (&*class.name, class.count)).collect();
    assert_eq!(counts, [("interactive", 0), ("batch", 1)]);
    world.stop().await;
}
