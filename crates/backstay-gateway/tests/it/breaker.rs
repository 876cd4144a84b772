//! The breaker and the connection pool, as callers feel them.

use std::time::Duration;

use backstay::record::Step;
use backstay_wire::Dialect;

use crate::fixed::Fixed;
use crate::told;
use crate::world::{HELLO, Setup, World, request};

const OPENAI: Dialect = Dialect::OpenaiChat;

const REPLY: &str = r#"{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}"#;

/// Two attempts: one for each tier, so that each call is one failure of the first.
const ROUTE: &str = "deadline = \"3s\"\nmax_attempts = 2\nmax_output_tokens = 300";

async fn ask(world: &World, name: &str) -> (u16, usize, String) {
    let seen = world.ask(OPENAI, &request(OPENAI, name, HELLO)).await;
    (seen.status, seen.attempts(), seen.header("x-backstay-tier").to_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_failures_in_a_row_send_the_next_call_to_the_second_tier_at_once() {
    let world = Setup::new().backed("sick", "openai", &["status-500"], ROUTE).start().await;
    for turn in 1..=5 {
        assert_eq!(ask(&world, "sick").await, (200, 2, "2".into()), "call {turn}");
    }
    assert_eq!(world.log("sick-1").len(), 5);
    for _ in 0..3 {
        assert_eq!(ask(&world, "sick").await, (200, 1, "2".into()));
    }
    assert_eq!(world.log("sick-1").len(), 5, "a resting target is not touched");
    let metrics = world.get("/metrics").await.text();
    let open = metrics
        .lines()
        .any(|l| l.contains("target=\"sick-1\"") && l.contains("open") && l.ends_with(" 1"));
    assert!(open, "{metrics}");
    // A reload keeps what is known of a target.
    world.engine().reload(world.settings.policy.clone()).expect("the same policy");
    assert_eq!(ask(&world, "sick").await, (200, 1, "2".into()));
    assert_eq!(world.log("sick-1").len(), 5);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_nobody_else_is_a_resting_target_is_still_tried() {
    let alone = "deadline = \"3s\"\nmax_attempts = 1\nmax_output_tokens = 300";
    let mut steps = vec!["status-500"; 6];
    steps.push("healthy");
    let world = Setup::new().alone("only", "openai", &steps, alone).start().await;
    for turn in 1..=6 {
        let seen = world.ask(OPENAI, &request(OPENAI, "only", HELLO)).await;
        assert_eq!(told::not_typed(OPENAI, &seen, 502, "provider_error"), [""; 0], "call {turn}");
    }
    assert_eq!(ask(&world, "only").await, (200, 1, "1".into()), "no blackout");
    assert_eq!(ask(&world, "only").await, (200, 1, "1".into()), "the probe closed it");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_the_targets_fault_opens_nothing() {
    let world = Setup::new()
        .backed("auth", "openai", &["status-401"], ROUTE)
        .backed("gone", "openai", &["model-gone"], ROUTE)
        .backed("odd", "openai", &["unknown-finish"], ROUTE)
        .backed(
            "mixed",
            "openai",
            &[
                "status-500",
                "status-500",
                "status-500",
                "status-500",
                "healthy",
                "status-500",
                "status-500",
                "status-500",
                "status-500",
                "healthy",
            ],
            ROUTE,
        )
        .start()
        .await;
    for name in ["auth", "gone", "odd"] {
        for _ in 0..7 {
            assert_eq!(ask(&world, name).await, (200, 2, "2".into()), "{name}");
        }
        assert_eq!(world.log(&format!("{name}-1")).len(), 7);
    }
    for _ in 0..10 {
        assert_eq!(ask(&world, "mixed").await.0, 200);
    }
    assert_eq!(world.log("mixed-1").len(), 10, "four in a row are not five");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reload_changes_routes_for_new_calls_only() {
    let world =
        Setup::new().alone("old", "openai", &["slow-headers+wait=500ms"], ROUTE).start().await;
    let mut policy = world.settings.policy.clone();
    policy.routes.clear();
    policy.targets.clear();
    let (during, ()) = tokio::join!(ask(&world, "old"), async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        world.engine().reload(policy).expect("a policy");
    });
    assert_eq!(during, (200, 1, "1".into()));
    assert_eq!(ask(&world, "old").await.0, 404);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_whose_deadline_is_near_the_connect_limit_still_share_a_connection() {
    let fixed = Fixed::start(REPLY).await;
    let world = Setup::new()
        .tables(&fixed.provider("counted"))
        .alone(
            "short",
            "counted",
            &["healthy"],
            "deadline = \"9s\"\ntimeouts = { connect = \"5s\" }\nmax_output_tokens = 100",
        )
        .start()
        .await;
    for _ in 0..20 {
        let body = request(OPENAI, "short", HELLO);
        let seen = world.ask_with(OPENAI, &[("x-backstay-deadline", "2s")], &body).await;
        assert_eq!(seen.status, 200, "{}", seen.text());
    }
    let made = fixed.connections();
    assert!(made <= 2, "20 calls one after another took {made} connections");
    world.stop().await;
}

const TICKETS: &str = "deadline = \"5s\"\nmax_attempts = 2\nreasks = 0\nmax_output_tokens = 300\nschema = \"triage.schema.json\"";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_schema_that_a_model_cannot_meet_goes_elsewhere_and_the_model_stays_for_the_rest() {
    let world = Setup::new()
        .target("weak", "openai", &["wrong-schema"])
        .target("strong", "openai", &["healthy"])
        .route("tickets", &["weak", "strong"], TICKETS)
        .route("prose", &["weak", "strong"], ROUTE)
        .route("alone", &["weak"], TICKETS)
        .start()
        .await;
    for turn in 1..=10 {
        assert_eq!(ask(&world, "tickets").await, (200, 2, "2".into()), "call {turn}");
    }
    assert_eq!(ask(&world, "tickets").await, (200, 1, "2".into()), "the weak one is passed over");
    assert_eq!(ask(&world, "prose").await.2, "1", "prose is none of the schema's business");
    // Where nobody else is, a wait makes no answer better: it is asked all the same, and at once.
    let began = tokio::time::Instant::now();
    let seen = world.ask(OPENAI, &request(OPENAI, "alone", HELLO)).await;
    assert_eq!(told::not_typed(OPENAI, &seen, 502, "reply_schema_error"), [""; 0]);
    assert!(began.elapsed() < Duration::from_secs(2));
    let metrics = world.get("/metrics").await.text();
    for line in [
        "backstay_breaker_open{target=\"weak\",plane=\"quality\"} 1",
        "backstay_breaker_changes_total{target=\"weak\",plane=\"quality\",from=\"closed\",to=\"open\",cause=\"row\"} 1",
    ] {
        assert!(metrics.contains(line), "{metrics}");
    }
    assert!(!metrics.contains("open{target=\"weak\",plane=\"availability\""), "{metrics}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spent_key_rests_and_the_other_serves_every_call_after() {
    let world = Setup::new()
        .tables(
            "[providers.pool]\ndialect = \"openai_chat\"\nbase_url = \"OPENAI_BASE\"\n\
             api_keys = [\"sk-first-0001\", \"sk-second-0002\"]",
        )
        .target("pool-1", "pool", &["quota-429", "healthy"])
        .target("pool-2", "pool", &["healthy"])
        .route("pool", &["pool-1", "pool-2"], "deadline = \"3s\"\nmax_output_tokens = 300")
        .route("other", &["pool-2"], ROUTE)
        .start()
        .await;
    assert_eq!(ask(&world, "pool").await, (200, 2, "1".into()), "with the other key, at once");
    for _ in 0..6 {
        assert_eq!(ask(&world, "pool").await, (200, 1, "1".into()));
    }
    let keys: Vec<String> =
        world.log("pool-1").iter().map(|entry| entry.headers["authorization"].clone()).collect();
    assert_eq!(keys.len(), 8);
    assert!(keys[1..].iter().all(|key| *key == keys[1] && *key != keys[0]), "{keys:?}");
    // A spent key is spent for every model of the provider.
    for _ in 0..4 {
        assert_eq!(ask(&world, "other").await, (200, 1, "1".into()));
    }
    let log = world.log("pool-2");
    assert!(log.iter().all(|entry| entry.headers["authorization"] == keys[1]), "{keys:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_has_the_arithmetic_of_an_opening_and_of_a_target_passed_over() {
    let world = Setup::new().backed("sick", "openai", &["status-500"], ROUTE).start().await;
    let mut ids = Vec::new();
    for _ in 0..6 {
        let seen = world.ask(OPENAI, &request(OPENAI, "sick", HELLO)).await;
        ids.push(seen.header("x-backstay-call-id").to_owned());
    }
    let log = world.engine().call_log();
    let trail = |id: &str| -> Vec<Step> {
        let row = log.find(id).unwrap().expect("a row");
        row.trail.notes.into_iter().map(|note| note.step).collect()
    };
    let turned = trail(&ids[4]).into_iter().find_map(|step| match step {
        Step::Turned { target, change } => Some((target, change)),
        _ => None,
    });
    let (target, change) = turned.expect("the fifth call tells of it");
    assert_eq!(target, "sick-1");
    assert!(change.starts_with("availability opened: 5 failures in a row; rests for "), "{change}");
    let skipped = trail(&ids[5]).into_iter().find_map(|step| match step {
        Step::Skipped { why, .. } => Some(why),
        _ => None,
    });
    let why = skipped.expect("the sixth tells why it goes elsewhere");
    assert!(why.starts_with("availability: its breaker is open, for "), "{why}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_config_may_take_a_target_out_hold_it_in_or_only_watch_it() {
    let two = "deadline = \"3s\"\nmax_attempts = 2\nmax_output_tokens = 300";
    let mut setup = Setup::new().tables("[breaker]\nfailures_in_a_row = 2");
    for (name, line) in [
        ("usual", ""),
        ("out", "breaker = { mode = \"forced_open\" }"),
        ("in", "breaker = { mode = \"forced_closed\" }"),
        ("watched", "breaker = { mode = \"metrics_only\" }"),
    ] {
        let (first, second) = (format!("{name}-1"), format!("{name}-2"));
        setup = setup.target(&first, "openai", &["status-500"]).and(line);
        setup = setup.target(&second, "openai", &["healthy"]).route(name, &[&first, &second], two);
    }
    let world =
        setup.target("gone", "openai", &["healthy"]).and("breaker = { mode = \"forced_open\" }");
    let world = world.route("nobody", &["gone"], two).start().await;
    for (name, asked) in [("usual", 2), ("out", 0), ("in", 5), ("watched", 5)] {
        for _ in 0..5 {
            let (status, _, tier) = ask(&world, name).await;
            assert_eq!((status, tier.as_str()), (200, "2"), "{name}");
        }
        assert_eq!(world.log(&format!("{name}-1")).len(), asked, "{name}");
    }
    let metrics = world.get("/metrics").await.text();
    let opened = |name: &str| {
        let line =
            format!("target=\"{name}-1\",plane=\"availability\",from=\"closed\",to=\"open\"");
        metrics.contains(&line)
    };
    assert_eq!(["usual", "out", "in", "watched"].map(opened), [true, false, false, true]);
    // What an operator took out is not forced even where nobody else is.
    let seen = world.ask(OPENAI, &request(OPENAI, "nobody", HELLO)).await;
    assert_eq!(seen.status, 503, "{}", seen.text());
    assert_eq!(world.log("gone").len(), 0);
    world.stop().await;
}
