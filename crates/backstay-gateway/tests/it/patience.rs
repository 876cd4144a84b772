//! Calls that take long: busy targets, and streams whose answer is sought for more than ten seconds.

use std::time::Duration;

use backstay::record::Step;
use backstay_mock::End;
use backstay_wire::Dialect;

use crate::client::Line;
use crate::told;
use crate::world::{HELLO, Setup, World, request, start, streamed};

const OPENAI: Dialect = Dialect::OpenaiChat;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_for_a_busy_target_is_one_line_of_the_story() {
    let world = Setup::new()
        .target("one-1", "openai", &["healthy+delay=1500ms", "healthy"])
        .and("max_concurrency = 1")
        .route("one", &["one-1"], "deadline = \"6s\"\nmax_output_tokens = 300")
        .start()
        .await;
    let body = request(OPENAI, "one", HELLO);
    let later = async {
        tokio::time::sleep(Duration::from_millis(50)).await;
        world.ask(OPENAI, &body).await
    };
    let (first, second) = tokio::join!(world.ask(OPENAI, &body), later);
    assert_eq!((first.status, second.status), (200, 200), "{}", second.text());
    let log = world.settled_log("one-1").await;
    assert!(log[1].at_ms >= log[0].ended_at_ms.unwrap() - 1.0, "two at a time");
    assert!(log[1].at_ms - log[0].ended_at_ms.unwrap() < 150.0, "a free place was not noticed");
    let row = world.engine().call_log().find(second.header("x-backstay-call-id"));
    let trail = row.unwrap().expect("a row").trail;
    let waits: Vec<(f64, &str)> = trail
        .notes
        .iter()
        .filter_map(|note| match &note.step {
            Step::Waited { ms, why } => Some((*ms, &**why)),
            _ => None,
        })
        .collect();
    assert_eq!(waits.len(), 1, "{waits:?}");
    // The waits as planned: a busy machine sleeps longer.
    assert!(waits[0].0 > 400.0, "{waits:?}");
    assert_eq!(waits[0].1, "one-1: full_places (1 calls in flight, 1 allowed now)");
    world.stop().await;
}

async fn held(world: &World, dialect: Dialect, name: &str) -> (Line, String) {
    let body = streamed(request(dialect, name, HELLO)).to_string();
    let mut line = Line::open(world.address()).await;
    line.ask(start(dialect), &[], body.as_bytes()).await.expect("sent");
    line.read_until(": still working").await;
    let head = line.so_far();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("pending"), "{head}");
    (line, head)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reader_that_bears_a_second_of_silence_hears_of_us_in_half_of_it() {
    let world =
        Setup::new().alone("mute", "openai", &["silence"], "deadline = \"9s\"").start().await;
    let body = streamed(request(Dialect::OpenaiChat, "mute", HELLO)).to_string();
    let mut line = Line::open(world.address()).await;
    let began = tokio::time::Instant::now();
    let bears = [("x-stainless-read-timeout", "1")];
    line.ask(start(Dialect::OpenaiChat), &bears, body.as_bytes()).await.expect("sent");
    let comment = "11\r\n: still working\n\n\r\n";
    line.read_until(&comment.repeat(3)).await;
    assert!(began.elapsed() < Duration::from_secs(8), "{:?}", began.elapsed());
    drop(line);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_ten_seconds_the_head_leaves_and_what_follows_is_in_the_stream() {
    let route = "deadline = \"13s\"\nmax_attempts = 1\nmax_output_tokens = 300\n\
        timeouts = { first_token = \"13s\", gap = \"5s\", total = \"13s\" }";
    let world = Setup::new()
        .alone("late", "openai", &["slow-first+wait=10500ms"], route)
        .alone("crossed", "anthropic", &["slow-first+wait=10500ms"], route)
        .alone("never", "anthropic", &["status-400+delay=10500ms"], route)
        .alone("left", "openai", &["silence"], route)
        .alone("broken", "openai", &["stream-cut+delay=10500ms"], route)
        .alone("capped", "openai", &["truncated+delay=10500ms"], route)
        .start()
        .await;
    let finish = async |dialect: Dialect, name: &str| {
        let (mut line, _) = held(&world, dialect, name).await;
        let seen = line.read(crate::client::PATIENCE).await;
        (told::stream(dialect, &seen), seen.text())
    };
    let leave = async {
        let (line, _) = held(&world, OPENAI, "left").await;
        drop(line);
        tokio::time::sleep(Duration::from_millis(150)).await;
        world.log("left-1")[0].end
    };
    let (late, crossed, never, failed, left, broken, capped) = tokio::join!(
        finish(OPENAI, "late"),
        finish(OPENAI, "crossed"),
        finish(Dialect::Anthropic, "never"),
        finish(OPENAI, "never"),
        leave,
        finish(OPENAI, "broken"),
        finish(OPENAI, "capped")
    );
    // The last comment says how the stream ended, not how it began.
    let (told, text) = &broken;
    assert_eq!((told.terminals, told.errors.len()), (0, 1), "{text}");
    assert!(!told.text.is_empty() && text.contains("outcome=failed"), "{text}");
    assert!(capped.1.contains("outcome=truncated"), "{}", capped.1);
    for (told, text) in [&late, &crossed] {
        assert_eq!((told.terminals, told.late, told.errors.len()), (1, 0, 0), "{text}");
        assert!(!told.text.is_empty() && text.contains("backstay call-id="), "{text}");
    }
    for (dialect, (told, text)) in [(Dialect::Anthropic, &never), (OPENAI, &failed)] {
        assert_eq!((told.terminals, told.late, told.errors.len()), (0, 0, 1), "{text}");
        let wrongs = told::not_an_error(dialect, &told.errors[0], "request_rejected");
        assert_eq!(wrongs, [""; 0]);
        assert!(text.contains("outcome=failed"), "{text}");
    }
    assert_eq!(left, End::ClientGone);
    world.stop().await;
}
