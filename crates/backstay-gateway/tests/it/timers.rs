//! Timers that are derived from what a target usually takes, as callers feel them.

use std::time::Duration;

use backstay::record::Step;
use backstay_wire::Dialect;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::world::{HELLO, Setup, World, request, streamed};

const OPENAI: Dialect = Dialect::OpenaiChat;

/// Without a word on its timers but the least ones, so that a test need not wait for 5 s.
const ROUTE: &str = "deadline = \"60s\"\nmax_output_tokens = 50\n\
                     timeouts = { least_first_token = \"400ms\", least_gap = \"500ms\" }";

/// Replies that make it known, and then what else the target does.
fn steps(then: &'static str) -> Vec<&'static str> {
    let mut steps = vec!["healthy+delay=20ms+n=5"; 60];
    steps.push(then);
    steps
}

/// Sixty calls, ten at a time; then one more and how long it took.
async fn after_sixty(world: &World, body: &Value) -> (crate::client::Seen, Duration) {
    for _ in 0..6 {
        let calls = (0..10).map(|_| world.ask(OPENAI, body));
        for seen in futures_util::future::join_all(calls).await {
            assert_eq!(seen.status, 200);
            assert_eq!(seen.header("x-backstay-tier"), "1", "{}", seen.text());
        }
    }
    let began = Instant::now();
    let seen = world.ask(OPENAI, body).await;
    (seen, began.elapsed())
}

fn timers(world: &World, target: &str) -> Value {
    let views = serde_json::to_value(world.engine().targets()).expect("views are JSON");
    let views = views.as_array().expect("a list").clone();
    views.into_iter().find(|view| view["target"] == target).expect("a target")["timers"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_falls_silent_is_left_after_what_it_usually_takes() {
    let world = Setup::new()
        .backed("stream", "openai", &steps("silence"), ROUTE)
        .backed("plain", "openai", &steps("silence"), ROUTE)
        .start()
        .await;
    let cold = &timers(&world, "stream-1")[0];
    assert_eq!(
        (&cold["first_token_ms"], &cold["first_token_from"]),
        (&json!(60_000), &json!("static"))
    );
    for (name, body) in [
        ("stream", streamed(request(OPENAI, "stream", HELLO))),
        ("plain", request(OPENAI, "plain", HELLO)),
    ] {
        let (seen, took) = after_sixty(&world, &body).await;
        assert_eq!((seen.status, seen.header("x-backstay-tier")), (200, "2"), "{name}");
        assert!(took < Duration::from_secs(10), "{name}: {took:?}");
        let id = seen.header("x-backstay-call-id");
        let row = world.engine().call_log().find(id).expect("the log is read").expect("a row");
        let from = row.trail.notes.iter().find_map(|note| match &note.step {
            Step::Sent { attempt: 1, limits_from, .. } => Some(limits_from.clone()),
            _ => None,
        });
        let from = from.expect("an attempt was sent");
        assert_eq!(from[if name == "stream" { 0 } else { 2 }], "derived", "{name}: {from:?}");
    }
    let warm = &timers(&world, "stream-1")[0];
    assert_eq!((&warm["prompt"], &warm["first_token_from"]), (&json!("1k"), &json!("derived")));
    assert!(warm["first_token_ms"].as_u64() < Some(10_000), "{warm}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_somebody_set_is_never_derived() {
    let set = "deadline = \"60s\"\nmax_output_tokens = 50\n\
               timeouts = { first_token = \"2s\", gap = \"2s\", total = \"3s\" }";
    let world = Setup::new().backed("set", "openai", &steps("silence"), set).start().await;
    let (seen, took) = after_sixty(&world, &streamed(request(OPENAI, "set", HELLO))).await;
    assert_eq!((seen.status, seen.header("x-backstay-tier")), (200, "2"));
    assert!(took >= Duration::from_secs(2), "{took:?}");
    let row = &timers(&world, "set-1")[0];
    let told = ["first_token_ms", "gap_ms", "total_ms"].map(|key| row[key].as_u64());
    assert_eq!(told, [Some(2000), Some(2000), Some(3000)], "{row}");
    world.stop().await;
}
