//! What operators are told of by itself, as a webhook hears it.

use std::time::Duration;

use backstay::clock::Clock;
use backstay::policy::StreamMode;
use backstay_wire::Dialect;
use serde_json::Value;

use crate::fixed::Fixed;
use crate::world::{HELLO, Setup, TICKET, World, request, streamed};

const OPENAI: Dialect = Dialect::OpenaiChat;
const ROUTE: &str = "deadline = \"3s\"\nmax_attempts = 2\nmax_output_tokens = 300";

/// A webhook that says yes.
async fn hook() -> Fixed {
    Fixed::start("{}").await
}

fn told_at(hook: &Fixed) -> String {
    format!("[alerts]\nwebhook = \"{}\"\nheaders = {{ x-token = \"t0p\" }}", hook.url())
}

/// The alerts that came, once there are `count`; waits up to four seconds.
async fn came(hook: &Fixed, count: usize) -> Vec<Value> {
    for _ in 0..400 {
        if hook.requests().await.len() >= count {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let of = |request: &String| {
        let (head, body) = request.split_once("\r\n\r\n").expect("a whole request");
        assert!(head.starts_with("POST /hook?to=on-call HTTP/1.1"), "{head}");
        assert!(head.contains("x-token: t0p"), "{head}");
        serde_json::from_str(body).expect("JSON")
    };
    hook.requests().await.iter().map(of).collect()
}

/// Kind and subject of each.
fn named(alerts: &[Value]) -> Vec<(&str, &str)> {
    let word = |alert: &'_ Value, name: &str| alert[name].as_str().map(str::to_owned);
    assert!(alerts.iter().all(|alert| word(alert, "message").is_some_and(|m| m.len() > 10)));
    let named = alerts.iter().map(|alert| {
        (alert["kind"].as_str().unwrap_or_default(), alert["subject"].as_str().unwrap_or_default())
    });
    let mut named: Vec<_> = named.collect();
    named.sort_unstable();
    named
}

async fn ask(world: &World, route: &str, text: &str) -> u16 {
    world.ask(OPENAI, &request(OPENAI, route, text)).await.status
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_trouble_is_posted_once_however_often_it_comes() {
    let hook = hook().await;
    let world = Setup::new()
        .tables(&told_at(&hook))
        .backed("odd", "openai", &["unknown-finish"], ROUTE)
        .backed("gone", "openai", &["model-gone"], ROUTE)
        .backed("spent", "openai", &["quota-429"], ROUTE)
        .backed("down", "openai", &["status-500"], ROUTE)
        .start()
        .await;
    for route in ["odd", "gone", "spent", "down"] {
        for _ in 0..6 {
            assert_eq!(ask(&world, route, HELLO).await, 200, "{route}");
        }
    }
    let alerts = came(&hook, 4).await;
    let expected = [
        ("breaker_opened", "down-1 availability"),
        ("model_gone", "gone-1"),
        ("quota_exhausted", "spent-1 key 0"),
        ("unknown_finish", "odd-1"),
    ];
    assert_eq!(named(&alerts), expected);
    let opened = alerts.iter().find(|alert| alert["kind"] == "breaker_opened").expect("told");
    let message = opened["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("opened: 5 failures in a row; rests for"), "{message}");
    assert!(opened["at_ms"].as_u64().is_some_and(|at| at > 1_700_000_000_000));
    tokio::time::sleep(Duration::from_millis(100)).await;
    let metrics = world.get("/metrics").await.text();
    for line in [
        "backstay_alerts_total{kind=\"unknown_finish\",fate=\"told\"} 1",
        "backstay_alerts_total{kind=\"unknown_finish\",fate=\"kept_back\"} 5",
        "backstay_alerts_total{kind=\"unknown_finish\",fate=\"delivered\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_finish_nobody_knows_is_posted_once_from_a_stream_in_every_mode() {
    let mut setup = Setup::new();
    let hook = hook().await;
    for mode in StreamMode::ALL {
        let more = format!("{ROUTE}\nstream = \"{}\"", mode.name());
        setup = setup.backed(mode.name(), "openai", &["unknown-finish"], &more);
    }
    let world = setup.tables(&told_at(&hook)).start().await;
    for mode in StreamMode::ALL {
        world.ask(OPENAI, &streamed(request(OPENAI, mode.name(), HELLO))).await;
    }
    let alerts = came(&hook, 4).await;
    let expected = [
        ("unknown_finish", "buffered-1"),
        ("unknown_finish", "gate-1"),
        ("unknown_finish", "passthrough-1"),
        ("unknown_finish", "windowed-1"),
    ];
    assert_eq!(named(&alerts), expected);
    let metrics = world.get("/metrics").await.text();
    let told = "backstay_alerts_total{kind=\"unknown_finish\",fate=\"told\"} 4";
    assert!(metrics.contains(told) && !metrics.contains("kept_back"), "{metrics}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_no_time_between_every_one_is_posted_and_the_closing_too() {
    let hook = hook().await;
    let mut steps = vec!["status-500"; 6];
    steps.push("healthy");
    let world = Setup::new()
        .tables(&format!("{}\nevery = \"0s\"", told_at(&hook)))
        .alone("only", "openai", &steps, "deadline = \"3s\"\nmax_attempts = 1")
        .and("[breaker]\nplanes = \"combined\"")
        .start()
        .await;
    for _ in 0..6 {
        assert_eq!(ask(&world, "only", HELLO).await, 502);
    }
    // Forced calls are as good as tests; five bring it back.
    for _ in 0..6 {
        assert_eq!(ask(&world, "only", HELLO).await, 200);
    }
    let alerts = came(&hook, 2).await;
    let expected = [("breaker_closed", "only-1 combined"), ("breaker_opened", "only-1 combined")];
    assert_eq!(named(&alerts), expected);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_webhook_that_is_not_there_delays_nobody_and_what_is_lost_is_counted() {
    let world = Setup::new()
        .tables(&format!("[alerts]\nwebhook = \"http://{}/\"", backstay_mock::refused_address()))
        .backed("odd", "openai", &["unknown-finish"], ROUTE)
        .start()
        .await;
    let began = tokio::time::Instant::now();
    assert_eq!(ask(&world, "odd", HELLO).await, 200);
    assert!(began.elapsed() < Duration::from_millis(900), "{:?}", began.elapsed());
    let line = "backstay_alerts_total{kind=\"unknown_finish\",fate=\"dropped\"} 1";
    let mut lost = false;
    for _ in 0..300 {
        lost = world.get("/metrics").await.text().contains(line);
        if lost {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(lost, "two tries, a second apart, then it is dropped");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_model_near_its_end_is_told_of_at_the_start() {
    let hook = hook().await;
    let day = |days: i64| {
        let span = jiff::Span::new().days(days);
        Clock::start().today().checked_add(span).expect("a day").to_string()
    };
    let retires = |days| format!("retires = \"{}\"", day(days));
    let world = Setup::new()
        .tables(&told_at(&hook))
        .target("soon", "openai", &["healthy"])
        .and(&retires(30))
        .target("later", "openai", &["healthy"])
        .and(&retires(31))
        .target("past", "openai", &["healthy"])
        .and(&retires(-3))
        .route("all", &["soon", "later", "past"], ROUTE)
        .start()
        .await;
    let alerts = came(&hook, 2).await;
    assert_eq!(named(&alerts), [("model_retires", "past"), ("model_retires", "soon")]);
    let message = |subject: &str| {
        let found = alerts.iter().find(|alert| alert["subject"] == subject).expect("told");
        found["message"].as_str().unwrap_or_default().to_owned()
    };
    assert_eq!(message("soon"), format!("the model retires on {}, in 30 days", day(30)));
    assert_eq!(message("past"), format!("the model was to be retired on {}", day(-3)));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replies_that_break_their_schema_more_often_than_before_are_told_of() {
    let hook = hook().await;
    let mut steps = vec!["healthy"; 300];
    steps.push("wrong-schema");
    let world = Setup::new()
        .tables(&told_at(&hook))
        .target("weak", "openai", &steps)
        .and("breaker = { mode = \"forced_closed\" }")
        .route(
            "tickets",
            &["weak"],
            "deadline = \"5s\"\nmax_attempts = 1\nreasks = 0\nmax_output_tokens = 300\n\
             schema = \"triage.schema.json\"",
        )
        .start()
        .await;
    for turn in 0..400 {
        let status = ask(&world, "tickets", TICKET).await;
        assert_eq!(status, if turn < 300 { 200 } else { 502 }, "call {turn}");
    }
    let alerts = came(&hook, 1).await;
    assert_eq!(named(&alerts), [("schema_shift", "tickets at weak")]);
    let message = alerts[0]["message"].as_str().unwrap_or_default();
    let words = "100 of the last 100 replies were bad = 100.0 %, 0 of 300 before = 0.0 %";
    assert!(message.starts_with(words), "{message}");
    world.stop().await;
}
