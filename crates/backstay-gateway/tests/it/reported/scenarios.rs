//! Cases that are told in words, and where those are that other tests hold.

use std::path::Path;
use std::time::Duration;

use backstay_mock::End;
use backstay_wire::Dialect;
use serde_json::{Value, json};

use super::played::Played;
use super::{OPENAI, cases, is_call, streams};
use crate::client::Line;
use crate::world::{HELLO, Setup, World, request, start, streamed};

/// The case, the file below `crates/` and the test that holds it.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    (
        "B122",
        "backstay-gateway/tests/it/streams.rs",
        "a_failure_before_the_first_content_is_rerouted_unseen",
    ),
    (
        "B162",
        "backstay-decide/src/extra/tests.rs",
        "six_in_ten_earned_is_six_retries_for_ten_calls",
    ),
    ("B163", "backstay/src/route/stay.rs", "eight_threads_lose_no_update_of_a_budget"),
    ("B164", "backstay-decide/src/backoff.rs", "no_attempt_is_too_many_for_the_bound"),
    (
        "B186",
        "backstay-decide/src/breaker/tests/testing.rs",
        "a_dropped_or_neutral_test_lets_the_next_call_test_at_once",
    ),
    (
        "B187",
        "backstay-decide/src/breaker/tests/testing.rs",
        "a_test_that_never_reports_makes_way_for_the_next",
    ),
    (
        "B188",
        "backstay-decide/src/breaker/tests/testing.rs",
        "a_dropped_or_neutral_test_lets_the_next_call_test_at_once",
    ),
    (
        "B190",
        "backstay-decide/src/breaker/tests/opening.rs",
        "a_failure_is_counted_once_and_only_as_a_failure",
    ),
    ("B193", "backstay-decide/src/tiers.rs", "a_rest_is_waited_for_only_if_an_attempt_still_fits"),
    (
        "B228",
        "backstay/src/record/store/sqlite/tests.rs",
        "who_waits_for_a_full_queue_does_not_stop_a_call_from_handing_its_row_over",
    ),
    ("B229", "backstay-decide/src/pacing/tests.rs", "a_refused_request_takes_nothing_anywhere"),
    ("B230", "backstay-decide/src/pacing/counting.rs", "cached_input_counts_as_the_provider_says"),
    ("B232", "backstay-decide/src/pacing/tests.rs", "a_request_that_can_never_fit_is_told_so"),
    (
        "B233",
        "backstay-decide/src/pacing/tests.rs",
        "a_steady_load_within_the_limit_never_waits_at_a_window_edge",
    ),
    (
        "B234",
        "backstay-decide/tests/limit_cases.rs",
        "four_processes_with_a_quarter_of_the_share_keep_the_limit_together",
    ),
];

#[test]
fn every_reported_case_of_a_call_is_played_or_has_a_test_that_is_there() {
    let Some(cases) = cases() else { return };
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let here =
        [include_str!("scenarios.rs"), include_str!("leaving.rs"), include_str!("beside.rs")];
    let mut missing = Vec::new();
    for case in &cases {
        let id = case["id"].as_str().expect("an id");
        if !is_call(case)
            || super::is_played(case)
            || streams::is_played(case)
            || here.iter().any(|text| text.contains(&format!("/// Case {id}")))
        {
            continue;
        }
        let Some((_, file, test)) = ELSEWHERE.iter().find(|(known, ..)| *known == id) else {
            missing.push(format!("{id}: no test"));
            continue;
        };
        let text = std::fs::read_to_string(crates.join(file)).unwrap_or_default();
        if !text.contains(&format!("fn {test}(")) {
            missing.push(format!("{id}: no test {test} in {file}"));
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

/// Case B173: fallbacks that name each other were walked for ever, and the log with them. Tiers are a
/// list, so there is no circle; a failure that is the request's own is not even carried to the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_request_is_asked_once_whatever_the_number_of_tiers() {
    let world = Setup::new()
        .target("a", "openai", &["status-400"])
        .target("b", "openai", &["status-400"])
        .target("c", "openai", &["status-400"])
        .route("ring", &["a", "b", "c"], "")
        .start()
        .await;
    let seen = world.ask(OPENAI, &request(OPENAI, "ring", HELLO)).await;
    assert_eq!((seen.status, seen.attempts(), world.mock.log().len()), (400, 1, 1));
    let id = seen.header("x-backstay-call-id");
    world.engine().call_log().flush();
    let row = world.engine().call_log().find(id).expect("a log").expect("a row");
    let story = serde_json::to_string(&row.trail).expect("a trail");
    assert!(story.len() < 20_000, "{} bytes", story.len());
    world.stop().await;
}

/// Case B223: a request that was refused before it was sent kept its slot.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broken_request_leaves_the_only_place_free() {
    let world = Setup::new()
        .target("one", "openai", &["healthy"])
        .and("max_concurrency = 1")
        .route("narrow", &["one"], "deadline = \"2s\"")
        .start()
        .await;
    for _ in 0..3 {
        let mut broken = request(OPENAI, "narrow", HELLO);
        broken["messages"][0]["role"] = "nobody".into();
        let seen = world.ask(OPENAI, &broken).await;
        assert_ne!(seen.status, 503, "{}", seen.text());
    }
    let seen = world.ask(OPENAI, &request(OPENAI, "narrow", HELLO)).await;
    assert_eq!(seen.status, 200, "{}", seen.text());
    world.stop().await;
}

/// Case B224: a slot came back when the stream began, not when it ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_holds_its_place_to_its_end() {
    let world = Setup::new()
        .target("one", "openai", &["healthy+n=100+gap=20ms", "healthy"])
        .and("max_concurrency = 1")
        .route("narrow", &["one"], "deadline = \"5s\"")
        .start()
        .await;
    let body = streamed(request(OPENAI, "narrow", HELLO)).to_string();
    let mut first = Line::open(world.address()).await;
    first.ask(start(OPENAI), &[], body.as_bytes()).await.expect("sent");
    first.read_until("data:").await;
    let plain = request(OPENAI, "narrow", HELLO);
    let second = world.ask(OPENAI, &plain);
    let early = tokio::time::timeout(Duration::from_millis(500), second).await;
    assert!(early.is_err(), "the second call did not wait: {early:?}");
    assert_eq!(world.log("one").len(), 1, "it was not sent");
    drop(first);
    let seen = world.ask(OPENAI, &plain).await;
    assert_eq!(seen.status, 200, "the place is back: {}", seen.text());
    let ends: Vec<End> =
        world.settled_log("one").await.into_iter().map(|entry| entry.end).collect();
    assert_eq!(ends.first(), Some(&End::ClientGone));
    world.stop().await;
}

/// A provider of `dialect` that says `error` to the first request, and is well after that.
async fn objecting(dialect: Dialect, error: Value) -> (World, Played) {
    let refusal = json!({"status": 400, "headers": {}, "body": error});
    let played = Played::start(vec![refusal, healthy(dialect)]).await;
    let world = Setup::new()
        .tables(&played.provider_in("strict", dialect))
        .target("p2", "strict", &[])
        .route("route", &["p2"], "deadline = \"5s\"")
        .start()
        .await;
    (world, played)
}

fn healthy(dialect: Dialect) -> Value {
    let body = match dialect {
        Dialect::OpenaiChat => json!({"id": "x", "object": "chat.completion", "model": "m",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"},
                "finish_reason": "stop"}]}),
        Dialect::Anthropic => {
            json!({"id": "x", "type": "message", "role": "assistant", "model": "m",
            "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 1, "output_tokens": 1}})
        }
    };
    json!({"status": 200, "headers": {"content-type": "application/json"}, "body": body})
}

/// Case B178: a fallback was sent what only the first model takes. What a target objects to is left
/// out, told, and left out of the next call's first request too.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_field_that_a_target_does_not_take_is_left_out_and_remembered() {
    let error = json!({"error": {"message": "Unrecognized request argument supplied: top_k"}});
    let (world, played) = objecting(OPENAI, error).await;
    let mut body = request(OPENAI, "route", HELLO);
    body["top_k"] = json!(40);
    for (attempts, seen) in
        [(2, world.ask(OPENAI, &body).await), (1, world.ask(OPENAI, &body).await)]
    {
        assert_eq!((seen.status, seen.attempts()), (200, attempts), "{}", seen.text());
        assert!(seen.header("x-backstay-notes").contains("/top_k"), "{:?}", seen.headers);
    }
    world.stop().await;
    let sent: Vec<bool> =
        played.heard().iter().map(|heard| heard.body.get("top_k").is_some()).collect();
    assert_eq!(sent, [true, false, false]);
}

/// Case B179: reasoning that one provider signed is refused by the next.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reasoning_signed_by_another_provider_is_left_out_when_it_is_refused() {
    let message = "messages.1.content.0: Invalid `signature` in `thinking` block";
    let error = json!({"type": "error",
        "error": {"type": "invalid_request_error", "message": message}});
    let (world, played) = objecting(Dialect::Anthropic, error).await;
    let mut body = request(Dialect::Anthropic, "route", HELLO);
    body["messages"] = json!([
        {"role": "user", "content": HELLO},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": "of another"},
            {"type": "text", "text": "They stand on rocks."}]},
        {"role": "user", "content": "Why?"}]);
    let seen = world.ask(Dialect::Anthropic, &body).await;
    world.stop().await;
    assert_eq!((seen.status, seen.attempts()), (200, 2), "{}", seen.text());
    let sent = played.heard().pop().expect("a request").body;
    let content = sent["messages"][1]["content"].as_array().expect("blocks");
    assert_eq!(content.len(), 1, "{sent}");
}

/// Case B180: an id of 94 characters where a provider takes 64.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_id_of_a_tool_call_gets_one_short_form_throughout() {
    let error = json!({"error": {"code": "string_above_max_length",
        "param": "messages[1].tool_calls[0].id", "message": "Invalid id: string too long."}});
    let (world, played) = objecting(OPENAI, error).await;
    let long = "c".repeat(94);
    let mut body = request(OPENAI, "route", HELLO);
    body["messages"] = json!([
        {"role": "user", "content": HELLO},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": long, "type": "function", "function": {"name": "look", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": long, "content": "it is dark"}]);
    let seen = world.ask(OPENAI, &body).await;
    world.stop().await;
    assert_eq!(seen.status, 200, "{}", seen.text());
    let sent = played.heard().pop().expect("a request").body;
    let id = sent["messages"][1]["tool_calls"][0]["id"].as_str().expect("an id");
    assert!(id.len() <= 64 && sent["messages"][2]["tool_call_id"] == id, "{sent}");
}

/// An objection that stays is a failure like any other, and no loop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_objects_to_the_same_thing_twice_is_not_asked_a_third_time() {
    let error = json!({"error": {"message": "Unrecognized request argument supplied: top_k"}});
    let refusal = json!({"status": 400, "headers": {}, "body": error});
    let played = Played::start(vec![refusal]).await;
    let world = Setup::new()
        .tables(&played.provider_in("strict", OPENAI))
        .target("p2", "strict", &[])
        .route("route", &["p2"], "deadline = \"5s\"")
        .start()
        .await;
    let mut body = request(OPENAI, "route", HELLO);
    body["top_k"] = json!(40);
    let seen = world.ask(OPENAI, &body).await;
    world.stop().await;
    assert_eq!((seen.status, played.heard().len()), (400, 2), "{}", seen.text());
}
