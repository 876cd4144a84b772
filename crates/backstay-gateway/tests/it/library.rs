//! The library without the gateway: the same promises to a program in the same process.

use std::pin::Pin;
use std::time::Duration;

use backstay::call::{self, Body};
use backstay::contract::Ask;
use backstay_wire::Dialect;
use bytes::Bytes;
use http_body_util::BodyExt;
use serde_json::Value;

use crate::world::{BOTH, HELLO, Setup, TICKET, TRIAGE, World, request, short, streamed, triaged};

const OPENAI: Dialect = Dialect::OpenaiChat;

const ROUTE: &str = "deadline = \"5s\"\nmax_output_tokens = 600\n\
    timeouts = { first_token = \"2s\", gap = \"2s\", total = \"4s\" }";

fn ask(world: &World, dialect: Dialect, body: &Value) -> Ask {
    Ask::new(dialect, body.to_string(), world.engine().now())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_gets_a_checked_answer_or_a_typed_failure() {
    let world = Setup::new()
        .backed("triage", "openai", &["enum-miss"], &format!("{ROUTE}\n{TRIAGE}"))
        .alone("miss", "anthropic", &["enum-miss"], &format!("{ROUTE}\n{TRIAGE}"))
        .start()
        .await;
    for dialect in BOTH {
        let body = request(dialect, "triage", TICKET);
        let answer =
            call::answer(world.engine(), ask(&world, dialect, &body)).await.expect("valid");
        let Body::Whole(bytes) = answer.body else { panic!("not whole: {answer:?}") };
        let told = crate::told::plain(dialect, &serde_json::from_slice(&bytes).unwrap());
        assert_eq!(serde_json::from_str::<Value>(&told.text).unwrap(), triaged());
        assert_eq!((answer.receipt.attempts, answer.receipt.tier), (4, Some(2)));
        let body = request(dialect, "miss", TICKET);
        let error = call::answer(world.engine(), ask(&world, dialect, &body)).await.unwrap_err();
        assert_eq!(error.code(), "reply_schema_error");
        let receipt = error.receipt().expect("a receipt");
        assert_eq!(receipt.attempts, 3);
        let row = world.engine().call_log().find(&receipt.call_id).unwrap();
        assert_eq!(row.map(|row| row.code), Some("reply_schema_error".into()));
    }
    let error = call::answer(world.engine(), Ask::new(OPENAI, "{", world.engine().now())).await;
    assert_eq!(error.unwrap_err().code(), "invalid_request");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_reads_a_stream_as_a_body() {
    let world = Setup::new()
        .alone("s-o", "openai", &["healthy+size=300"], ROUTE)
        .alone("s-a", "anthropic", &["healthy+size=300"], ROUTE)
        .start()
        .await;
    for dialect in BOTH {
        let body = streamed(request(dialect, &format!("s-{}", short(dialect)), HELLO));
        let answer =
            call::answer(world.engine(), ask(&world, dialect, &body)).await.expect("a stream");
        let Body::Live(live) = answer.body else { panic!("not live: {answer:?}") };
        let bytes: Bytes = live.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        let end = if dialect == OPENAI { "[DONE]" } else { "message_stop" };
        assert!(text.trim_end().ends_with(end) || text.contains(end), "{text}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_dropped_at_any_point_gives_back_all_it_holds() {
    let route = format!("{ROUTE}\nmax_attempts = 4");
    let world = Setup::new()
        .target(
            "d-1",
            "openai",
            &["healthy+delay=8ms", "status-500+delay=4ms", "reset", "enum-miss+delay=3ms"],
        )
        .and("max_concurrency = 1")
        .target("d-2", "anthropic", &["healthy+n=30+gap=2ms"])
        .and("max_concurrency = 1")
        .route("d", &["d-1", "d-2"], &route)
        .start()
        .await;
    let engine = world.engine();
    let (mut ended, mut dropped) = (0, 0);
    for turn in 0..120_u64 {
        // Odd steps, so that the cuts fall everywhere between the request and the last byte.
        let wait = Duration::from_micros(137 * (turn % 60) * (1 + turn % 3));
        let plain = request(OPENAI, "d", HELLO);
        let body = if turn % 2 == 0 { streamed(plain) } else { plain };
        let call: Pin<Box<dyn Future<Output = _> + Send>> =
            Box::pin(call::answer(engine, ask(&world, OPENAI, &body)));
        match tokio::time::timeout(wait, call).await {
            // Streams are dropped with some or none of their pieces read.
            Ok(Ok(answer)) => {
                ended += 1;
                if let Body::Live(mut live) = answer.body {
                    for _ in 0..turn % 5 {
                        if live.frame().await.is_none() {
                            break;
                        }
                    }
                }
            }
            Ok(Err(error)) => panic!("turn {turn}: {error}"),
            Err(_) => dropped += 1,
        }
    }
    assert!(dropped > 20, "{dropped} dropped, {ended} ended");
    let body = request(OPENAI, "d", HELLO);
    for _ in 0..3 {
        let answer = tokio::time::timeout(
            Duration::from_secs(3),
            call::answer(engine, ask(&world, OPENAI, &body)),
        );
        answer.await.expect("no place is free").expect("an answer");
    }
    assert!(engine.metrics_text().contains("backstay_calls_in_flight 0"));
    for model in ["d-1", "d-2"] {
        let log = world.settled_log(model).await;
        let pending = log.iter().filter(|e| e.end == backstay_mock::End::Pending).count();
        assert_eq!(pending, 0, "{model}: requests nobody waits for");
    }
    world.stop().await;
}
