//! Routes that only watch: every byte passes as without Backstay, and the log says what it would
//! have done.

use std::time::Duration;

use backstay::record::{Row, Step};
use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::client::{self, Ended};
use crate::fixed::Fixed;
use crate::world::{BOTH, HELLO, Setup, TICKET, World, pairs, provider, request, start, streamed};

const OPENAI: Dialect = Dialect::OpenaiChat;
const ROUTE: &str = "mode = \"shadow\"\ndeadline = \"3s\"\nmax_output_tokens = 300";
const TICKETS: &str = "mode = \"shadow\"\ndeadline = \"3s\"\nmax_output_tokens = 300\n\
     schema = \"triage.schema.json\"";

/// The row of a call, once it is written; waits up to two seconds.
async fn row(world: &World, id: &str) -> Row {
    assert!(!id.is_empty(), "no call id");
    for _ in 0..200 {
        if let Some(row) = world.engine().call_log().find(id).expect("the log") {
            return row;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("no row for {id}")
}

/// Asks, and gives the status and the row.
async fn watched(world: &World, route: &str, body: &Value) -> (u16, Row) {
    let seen = world.ask(OPENAI, body).await;
    assert_eq!(seen.header("x-backstay-outcome"), "watched", "{route}: {}", seen.text());
    let row = row(world, seen.header("x-backstay-call-id")).await;
    assert_eq!((row.outcome.as_ref(), row.route.as_str()), ("watched", route));
    (seen.status, row)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_reply_is_the_provider_s_byte_for_byte_and_the_request_the_caller_s() {
    // Odd spacing, an unknown field, broken JSON in the text: nothing of it may change.
    let reply = "{ \"id\":\"x\",\"object\":\"chat.completion\", \"created\":1,\"model\":\"m\",\
        \"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":\"```json\\n{'a': 1,}\\n```\"},\
        \"finish_reason\":\"stop\"}],\"odd\":{\"kept\" :true},\
        \"usage\":{\"prompt_tokens\":1,\"completion_tokens\":1,\"total_tokens\":2}}";
    let fixed = Fixed::start(reply).await;
    let world = Setup::new()
        .tables(&fixed.provider("fixed"))
        .alone("quiet", "fixed", &["healthy"], TICKETS)
        .start()
        .await;
    let body = "{\"temperature\" : 0.5,  \"model\": \"quiet\", \"messages\":\
        [{\"role\":\"user\",\"content\":\"hi\"}], \"new_field\": [1, 2 ]}";
    let seen = client::call(world.address(), start(OPENAI), &[], body.as_bytes()).await;
    assert_eq!((seen.status, seen.text().as_str(), seen.ended), (200, reply, Ended::Clean));
    let sent = fixed.last_request().await;
    let (_, sent) = sent.split_once("\r\n\r\n").expect("a body");
    assert_eq!(sent, body.replace("\"quiet\"", "\"quiet-1\""));
    let row = row(&world, seen.header("x-backstay-call-id")).await;
    assert_eq!((row.would.as_ref(), row.attempts, row.target.as_str()), ("reasked", 1, "quiet-1"));
    assert_eq!(row.validation, "schema_error");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_have_been_done_is_in_the_log_and_in_the_metrics() {
    let two = |more: &str| format!("{ROUTE}\n{more}");
    let world = Setup::new()
        .backed("fine", "openai", &["healthy"], ROUTE)
        .backed("fenced", "openai", &["fenced"], TICKETS)
        .backed("odd", "openai", &["wrong-schema"], TICKETS)
        .backed("sick", "openai", &["status-500"], ROUTE)
        .backed("gone", "openai", &["model-gone"], ROUTE)
        .alone("wrong", "openai", &["status-400"], ROUTE)
        .alone("resort", "openai", &["model-gone"], &two("last_resort = { text = \"later\" }"))
        .start()
        .await;
    for (route, text, status, would) in [
        ("fine", HELLO, 200, "nothing"),
        ("fenced", TICKET, 200, "mended"),
        ("odd", TICKET, 200, "reasked"),
        ("sick", HELLO, 500, "retried"),
        ("gone", HELLO, 404, "rerouted"),
        ("wrong", HELLO, 400, "refused"),
        ("resort", HELLO, 404, "last_resort"),
    ] {
        let (got, row) = watched(&world, route, &request(OPENAI, route, text)).await;
        assert_eq!((got, row.would.as_ref()), (status, would), "{route}: {:?}", row.trail);
        assert_eq!(world.log(&format!("{route}-1")).len(), 1, "one request, as without us");
        assert_eq!(world.log(&format!("{route}-2")).len(), 0);
    }
    let metrics = world.get("/metrics").await.text();
    for line in [
        "backstay_shadow_total{route=\"fenced\",would=\"mended\"} 1",
        "backstay_shadow_total{route=\"gone\",would=\"rerouted\"} 1",
        "backstay_calls_in_flight 0",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_passes_as_it_comes_and_is_judged_after_its_end() {
    for dialect in BOTH {
        let world = Setup::new()
            .backed("fine", provider(dialect), &["healthy"], ROUTE)
            .backed("cut", provider(dialect), &["stream-cut"], ROUTE)
            .backed("held", provider(dialect), &["stream-cut"], TICKETS)
            .backed("bad", provider(dialect), &["wrong-schema"], TICKETS)
            .start()
            .await;
        for (route, text, would) in [
            ("fine", HELLO, "nothing"),
            ("cut", HELLO, "refused"),
            ("held", TICKET, "retried"),
            ("bad", TICKET, "reasked"),
        ] {
            let body = streamed(request(dialect, route, text));
            let seen = world.ask(dialect, &body).await;
            assert_eq!(seen.status, 200, "{route}");
            let kind = seen.header("content-type").to_owned();
            assert!(kind.starts_with("text/event-stream"), "{route} {kind}");
            assert!(!seen.text().contains("backstay"), "nothing is added: {}", seen.text());
            let row = row(&world, seen.header("x-backstay-call-id")).await;
            assert_eq!(row.would, would, "{dialect:?} {route}: {:?}", row.trail);
        }
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_model_of_the_caller_s_format_gets_it() {
    for (caller, first) in pairs() {
        let other = BOTH.into_iter().find(|dialect| *dialect != first).expect("two");
        let world = Setup::new()
            .target("one", provider(first), &["healthy"])
            .target("two", provider(other), &["healthy"])
            .route("both", &["one", "two"], ROUTE)
            .start()
            .await;
        let seen = world.ask(caller, &request(caller, "both", HELLO)).await;
        let expected = if caller == first { "one" } else { "two" };
        assert_eq!((seen.status, seen.header("x-backstay-target")), (200, expected));
        let row = row(&world, seen.header("x-backstay-call-id")).await;
        assert_eq!((row.would.as_ref(), row.target.as_str()), ("nothing", expected));
        world.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_breaker_that_opened_says_where_the_call_would_have_gone_and_turns_nobody_away() {
    let world = Setup::new().backed("sick", "openai", &["status-500"], ROUTE).start().await;
    for turn in 1..=5 {
        let (status, row) = watched(&world, "sick", &request(OPENAI, "sick", HELLO)).await;
        assert_eq!((status, row.would.as_ref()), (500, "retried"), "call {turn}");
    }
    let (status, row) = watched(&world, "sick", &request(OPENAI, "sick", HELLO)).await;
    assert_eq!((status, row.would.as_ref()), (500, "rerouted"));
    let why = row.trail.notes.iter().find_map(|note| match &note.step {
        Step::Skipped { target, why } => Some(format!("{target}: {why}")),
        _ => None,
    });
    assert!(why.is_some_and(|why| why.starts_with("sick-1: availability: its breaker is open")));
    let sent = row.trail.notes.iter().any(|note| matches!(note.step, Step::Sent { .. }));
    assert!(!sent && row.attempts == 0, "what was not sent is not told: {:?}", row.trail);
    assert_eq!(world.log("sick-1").len(), 6);
    assert_eq!(world.log("sick-2").len(), 0);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_be_refused_at_the_door_goes_through_and_is_told() {
    let world = Setup::new().alone("quiet", "openai", &["healthy"], ROUTE).start().await;
    let mut body = request(OPENAI, "quiet", HELLO);
    body["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nonsense"}}});
    let seen = world.ask(OPENAI, &body).await;
    assert_eq!((seen.status, seen.header("x-backstay-outcome")), (200, "watched"));
    let metrics = world.get("/metrics").await.text();
    assert!(
        metrics.contains("backstay_shadow_total{route=\"none\",would=\"refused\"} 1"),
        "{metrics}"
    );
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_too_long_to_keep_passes_whole_and_is_not_judged() {
    let long = "x".repeat(3 << 20);
    let reply = format!(
        "{{\"id\":\"x\",\"object\":\"chat.completion\",\"created\":1,\"model\":\"m\",\"choices\":\
         [{{\"index\":0,\"message\":{{\"role\":\"assistant\",\"content\":\"{long}\"}},\
         \"finish_reason\":\"stop\"}}]}}"
    );
    let fixed = Fixed::start(&reply).await;
    let world = Setup::new()
        .tables(&fixed.provider("fixed"))
        .alone("quiet", "fixed", &["healthy"], ROUTE)
        .start()
        .await;
    let seen = world.ask(OPENAI, &request(OPENAI, "quiet", HELLO)).await;
    assert_eq!((seen.status, seen.body.len()), (200, reply.len()));
    let row = row(&world, seen.header("x-backstay-call-id")).await;
    assert_eq!((row.would.as_ref(), row.outcome.as_ref()), ("not_judged", "watched"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn watching_opens_nothing_that_a_key_does_not() {
    let world = Setup::new()
        .tables("[keys.narrow]\ntoken = \"narrow-key\"\nroutes = [\"other\"]")
        .tables("[keys.wide]\ntoken = \"wide-key\"\nroutes = [\"quiet\"]")
        .tables(
            "[providers.secret]\ndialect = \"openai_chat\"\nbase_url = \"http://127.0.0.1:9/v1\"",
        )
        .alone("quiet", "openai", &["healthy"], ROUTE)
        .alone("other", "openai", &["healthy"], "deadline = \"3s\"")
        .start()
        .await;
    let ask = async |key: &str, body: &Value| {
        let headers = [("x-api-key", key), ("x-backstay-provider", "secret")];
        world.ask_with(OPENAI, &headers, body).await
    };
    // Also where something else is wrong with the request that would be found first.
    for body in [request(OPENAI, "quiet", HELLO), json!({"model": "quiet"})] {
        let seen = ask("narrow-key", &body).await;
        assert_eq!(seen.status, 403, "{}", seen.text());
    }
    assert!(world.log("quiet-1").is_empty(), "it reached the provider");
    let seen = ask("wide-key", &request(OPENAI, "quiet", HELLO)).await;
    assert_eq!((seen.status, seen.header("x-backstay-target")), (200, "quiet-1"));
    let sent = &world.log("quiet-1")[0].headers;
    assert!(!sent.values().any(|value| value.contains("wide-key")), "{sent:?}");
    world.stop().await;
}
