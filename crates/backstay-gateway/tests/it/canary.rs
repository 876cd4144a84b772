//! Which calls test a target that comes back, as callers and the log see it.

use std::time::Duration;

use backstay::record::Step;
use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::world::{HELLO, Setup, World, request};

const OPENAI: Dialect = Dialect::OpenaiChat;

const ROUTE: &str = "deadline = \"3s\"\nmax_attempts = 2";

/// Two failures open it for a quarter of a second, and five tests must pass.
const BREAKER: &str = "breaker = { failures_in_a_row = 2, shortest_rest = \"250ms\", \
                       longest_rest = \"250ms\", canary = { share = 1.0 } }";

/// The longest such a rest may be, the dice included.
const REST: Duration = Duration::from_millis(310);

/// A target that failed twice and is well again, behind it a healthy one.
async fn rested() -> World {
    let steps = ["status-500", "status-500", "healthy"];
    let world = Setup::new().target("sick-1", "openai", &steps).and(BREAKER);
    let world = world.target("sick-2", "openai", &["healthy"]);
    let world =
        world.route("sick", &["sick-1", "sick-2"], ROUTE).route("alone", &["sick-1"], ROUTE);
    let world = world.start().await;
    for _ in 0..2 {
        ask(&world, "sick", &json!({"max_tokens": 4_000})).await;
    }
    world
}

/// The tier that answers a request with these fields, and why the first one was passed over.
async fn ask(world: &World, route: &str, fields: &Value) -> (String, String) {
    let mut body = request(OPENAI, route, HELLO);
    for (key, value) in fields.as_object().into_iter().flatten() {
        body[key] = value.clone();
    }
    let seen = world.ask(OPENAI, &body).await;
    assert_eq!(seen.status, 200, "{}", seen.text());
    let row = world.engine().call_log().find(seen.header("x-backstay-call-id"));
    let notes = row.expect("a log").expect("a row").trail.notes;
    let skipped = notes.into_iter().find_map(|note| match note.step {
        Step::Skipped { why, .. } => Some(why),
        _ => None,
    });
    (seen.header("x-backstay-tier").to_owned(), skipped.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_with_effects_tests_nothing_and_its_fallback_answers() {
    let world = rested().await;
    tokio::time::sleep(REST).await;
    let (tier, why) = ask(&world, "sick", &json!({"store": true, "max_tokens": 50})).await;
    assert_eq!(tier, "2");
    let told = "availability: it is being tested, and not by this call: `store` has effects at the \
                provider; it opened: 2 failures in a row; rests for ";
    assert!(why.starts_with(told), "{why}");
    // Where nobody else is, such a call is answered all the same, and passes for a test.
    assert_eq!(ask(&world, "alone", &json!({"store": true})).await.0, "1");
    assert_eq!(ask(&world, "sick", &json!({"max_tokens": 50})).await.0, "1");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_short_calls_come_a_long_one_tests_nothing() {
    let world = rested().await;
    // It comes while the target rests, so that short ones are known to come.
    assert_eq!(ask(&world, "sick", &json!({"max_tokens": 50})).await.0, "2");
    tokio::time::sleep(REST).await;
    let (tier, why) = ask(&world, "sick", &json!({"max_tokens": 4_000})).await;
    assert_eq!(tier, "2");
    assert!(why.contains("its cap is 4000 tokens, and calls of at most 1000 come"), "{why}");
    assert_eq!(ask(&world, "sick", &json!({"max_tokens": 50})).await.0, "1");
    world.stop().await;
    // Where none come, long ones are the tests.
    let world = rested().await;
    tokio::time::sleep(REST).await;
    assert_eq!(ask(&world, "sick", &json!({"max_tokens": 4_000})).await.0, "1");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_an_untried_fallback_is_no_test_of_its_first_choice() {
    let steps = ["status-500", "status-500", "healthy"];
    let world = Setup::new().target("sick-1", "openai", &steps).and(BREAKER);
    // The second fails the first call of its own, and answers when asked again.
    let second = ["healthy", "healthy", "status-500", "healthy"];
    let world = world.target("sick-2", "openai", &second);
    let route = "deadline = \"3s\"\nmax_attempts = 3";
    let world = world.route("sick", &["sick-1", "sick-2"], route);
    let world = world.route("other", &["sick-2", "sick-1"], route).start().await;
    for _ in 0..2 {
        assert_eq!(ask(&world, "sick", &json!({"max_tokens": 50})).await.0, "2");
    }
    tokio::time::sleep(REST).await;
    let (tier, _) = ask(&world, "other", &json!({"max_tokens": 50})).await;
    assert_eq!(tier, "1", "it is asked again where it failed");
    assert_eq!(world.log("sick-1").len(), 2);
    assert_eq!(ask(&world, "sick", &json!({"max_tokens": 50})).await.0, "1", "this one has one");
    world.stop().await;
}
