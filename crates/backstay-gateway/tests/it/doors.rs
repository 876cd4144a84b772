//! Everything beside generating: keys, lists of models, health, metrics, raw paths, bypass, drain,
//! and the caller's own headers.

use std::time::Duration;

use backstay_gateway::server::Drained;
use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::client::{self, Line};
use crate::told;
use crate::world::{BOTH, HELLO, Setup, TICKET, TRIAGE, request, short, start};

const ROUTE: &str = "deadline = \"4s\"\nmax_output_tokens = 300\n\
    timeouts = { first_token = \"2s\", total = \"2s\" }";

const OPENAI: Dialect = Dialect::OpenaiChat;

const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_runtime_for_all_cores_answers_as_one_a_core_does() {
    for runtime in ["shared", "per_core"] {
        let world = Setup::new()
            .server(&format!("runtime = \"{runtime}\""))
            .alone("bare", "openai", &["healthy"], ROUTE)
            .start()
            .await;
        let seen = world.ask(OPENAI, &request(OPENAI, "bare", HELLO)).await;
        assert_eq!(seen.status, 200, "{runtime}");
        assert_eq!(world.mock.log().len(), 1, "{runtime}");
        assert_eq!(world.running.stop().await, Drained::Whole, "{runtime}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_let_callers_in_by_both_schemes_and_never_go_upstream() {
    let world = Setup::new()
        .tables("[keys.app]\ntoken = \"caller-s3cret\"\ntenant = \"support\"")
        .tables(
            "[providers.keyed]\ndialect = \"openai_chat\"\nbase_url = \"OPENAI_BASE\"\n\
             api_keys = [\"sk-provider-0001\"]\n\
             [providers.asked]\ndialect = \"openai_chat\"\nbase_url = \"OPENAI_BASE\"\n\
             auth = \"caller\"",
        )
        .alone("bare", "openai", &["healthy"], ROUTE)
        .alone("bare-a", "anthropic", &["healthy"], ROUTE)
        .alone("keyed", "keyed", &["healthy"], ROUTE)
        .alone("asked", "asked", &["healthy"], ROUTE)
        .start()
        .await;
    for dialect in BOTH {
        let body = request(dialect, "bare", HELLO);
        for headers in [
            &[][..],
            &[("authorization", "Bearer wrong")],
            &[("x-api-key", "wrong")],
            &[("authorization", "Basic caller-s3cret")],
            &[("authorization", "")],
        ] {
            let seen = world.ask_with(dialect, headers, &body).await;
            assert_eq!(
                told::not_typed(dialect, &seen, 401, "unauthorized"),
                [""; 0],
                "{headers:?}"
            );
        }
        for path in ["GET /v1/models", "POST /v1/embeddings"] {
            let seen = client::call(world.address(), path, &[], b"{}").await;
            assert_eq!(seen.status, 401, "{path}");
        }
    }
    assert!(world.mock.log().is_empty(), "a stranger reached a provider");
    for headers in [[("authorization", "Bearer caller-s3cret")], [("x-api-key", "caller-s3cret")]] {
        for (name, dialect) in
            [("bare", OPENAI), ("bare-a", Dialect::Anthropic), ("bare", Dialect::Anthropic)]
        {
            let seen = world.ask_with(dialect, &headers, &request(dialect, name, HELLO)).await;
            assert_eq!(seen.status, 200, "{}", seen.text());
        }
        let seen = world.ask_with(OPENAI, &headers, &request(OPENAI, "keyed", HELLO)).await;
        assert_eq!(seen.status, 200);
        let start = "POST /v1/embeddings";
        let body = json!({"model": "bare", "input": "x"}).to_string();
        let seen = client::call(world.address(), start, &headers, body.as_bytes()).await;
        assert_eq!(seen.status, 200, "{}", seen.text());
    }
    for entry in world.mock.log() {
        let sent = entry.header("authorization").unwrap_or("nothing");
        let want = if entry.model == "keyed-1" { "present (23 chars)" } else { "nothing" };
        assert!(sent.starts_with(want), "{}: {sent}", entry.model);
        assert_eq!(entry.header("x-api-key"), None, "{}", entry.model);
    }
    // Also where the config asks for the caller's own key: this one is the gateway's.
    let headers = [("authorization", "Bearer caller-s3cret")];
    world.ask_with(OPENAI, &headers, &request(OPENAI, "asked", HELLO)).await;
    assert_eq!(world.settled_log("asked-1").await[0].header("authorization"), None);
    let bypass = [headers[0], ("x-backstay-bypass", "1")];
    world.ask_with(OPENAI, &bypass, &request(OPENAI, "asked", HELLO)).await;
    let body = json!({"model": "asked", "input": "x"}).to_string();
    client::call(world.address(), "POST /v1/embeddings", &headers, body.as_bytes()).await;
    let log = world.settled_log("asked-1").await;
    assert_eq!(log.len(), 3);
    assert!(log.iter().all(|entry| entry.header("authorization").is_none()), "handed through");
    let row = world.engine().call_log().find("").unwrap().expect("a row");
    assert_eq!((&*row.caller, &*row.tenant), ("app", "support"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_keys_a_callers_own_key_is_sent_on_where_the_config_says_so() {
    let world = Setup::new()
        .tables(
            "[providers.asked]\ndialect = \"openai_chat\"\nbase_url = \"OPENAI_BASE\"\n\
             auth = \"caller\"",
        )
        .alone("asked", "asked", &["healthy"], ROUTE)
        .start()
        .await;
    let headers = [("authorization", "Bearer caller-s3cret")];
    world.ask_with(OPENAI, &headers, &request(OPENAI, "asked", HELLO)).await;
    let log = world.settled_log("asked-1").await;
    assert!(log[0].header("authorization").unwrap().starts_with("present (20 chars)"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn models_are_listed_in_both_forms() {
    let world = Setup::new()
        .alone("triage", "openai", &["healthy"], ROUTE)
        .tables("[routes.\"gpt-*\"]\ntiers = [\"triage-1\"]")
        .start()
        .await;
    let openai = world.get("/v1/models").await.json();
    assert_eq!(openai["object"], "list");
    let ids: Vec<&str> =
        openai["data"].as_array().unwrap().iter().filter_map(|m| m["id"].as_str()).collect();
    assert!(ids.contains(&"triage") && ids.contains(&"triage-1"), "{ids:?}");
    assert!(!ids.iter().any(|id| id.contains('*')), "a pattern is no name: {ids:?}");
    assert!(openai["data"].as_array().unwrap().iter().all(|m| m["object"] == "model"));
    let seen = client::call(world.address(), "GET /v1/models?limit=20", &[VERSION], b"").await;
    let anthropic = seen.json();
    assert_eq!(anthropic["has_more"], false);
    assert_eq!(anthropic["first_id"], anthropic["data"][0]["id"]);
    assert!(anthropic["data"].as_array().unwrap().iter().all(|m| m["type"] == "model"));
    assert_eq!(world.get("/v1/models/triage").await.json()["id"], "triage");
    assert_eq!(world.get("/v1/models/gpt-5").await.status, 200);
    let seen = world.get("/v1/models/nobody").await;
    assert_eq!(told::not_typed(OPENAI, &seen, 404, "unknown_route"), [""; 0]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_ready_while_every_provider_is_down_and_counts_what_happens() {
    let world = Setup::new()
        .alone("down", "refused", &["healthy"], &format!("{ROUTE}\nmax_attempts = 1"))
        .alone("up", "openai", &["healthy"], ROUTE)
        .start()
        .await;
    for _ in 0..6 {
        let seen = world.ask(OPENAI, &request(OPENAI, "down", HELLO)).await;
        assert_eq!(told::not_typed(OPENAI, &seen, 502, "provider_unreachable"), [""; 0]);
    }
    world.ask(OPENAI, &request(OPENAI, "up", HELLO)).await;
    for path in ["/health/live", "/health/ready"] {
        let seen = world.get(path).await;
        assert_eq!(seen.status, 200, "{path}");
    }
    let seen = world.get("/metrics").await;
    assert!(seen.header("content-type").contains("openmetrics"));
    let text = seen.text();
    for line in [
        "backstay_calls_total{route=\"down\",outcome=\"failed\",code=\"provider_unreachable\"} 6",
        "backstay_calls_total{route=\"up\",outcome=\"answered\",code=\"\"} 1",
        "backstay_attempts_total{target=\"down-1\",fault=\"provider_unreachable\"} 6",
        "backstay_attempts_total{target=\"up-1\",fault=\"\"} 1",
        "backstay_verdicts_total{route=\"up\",target=\"up-1\",status=\"ok\"} 1",
        "backstay_calls_in_flight 0",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert!(text.trim_end().ends_with("# EOF"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_paths_of_a_provider_pass_through_with_their_queries() {
    let world = Setup::new()
        .alone("embed", "openai", &["healthy"], ROUTE)
        .alone("count", "anthropic", &["healthy"], ROUTE)
        .start()
        .await;
    let body = json!({"model": "embed", "input": ["a", "b"], "made_up": 1}).to_string();
    let path = "POST /v1/embeddings?api-version=2026-01&x=%20y";
    let seen = client::call(world.address(), path, &[], body.as_bytes()).await;
    assert_eq!(seen.status, 200, "{}", seen.text());
    assert_eq!(seen.json()["data"].as_array().map(Vec::len), Some(2));
    assert_eq!(seen.header("x-backstay-outcome"), "bypassed");
    let log = world.settled_log("embed-1").await;
    assert_eq!(log[0].path, "/v1/embeddings?api-version=2026-01&x=%20y");
    assert!(log[0].body.as_deref().unwrap().contains("made_up"));
    let body = request(Dialect::Anthropic, "count", HELLO).to_string();
    let path = "POST /v1/messages/count_tokens?beta=true";
    let headers = [VERSION, ("anthropic-beta", "token-counting")];
    let seen = client::call(world.address(), path, &headers, body.as_bytes()).await;
    assert!(seen.json()["input_tokens"].as_u64().is_some_and(|n| n > 0), "{}", seen.text());
    let log = world.settled_log("count-1").await;
    assert_eq!(log[0].path, "/v1/messages/count_tokens?beta=true");
    assert_eq!(log[0].header("anthropic-beta"), Some("token-counting"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_spelling_of_a_generating_path_goes_round_the_checks() {
    let world = Setup::new()
        .alone("o", "openai", &["healthy"], "max_output_tokens = 300")
        .alone("a", "anthropic", &["healthy"], "max_output_tokens = 300")
        .start()
        .await;
    let body = request(OPENAI, "o", HELLO).to_string();
    for path in ["/v1/chat/completions/", "/chat/completions", "/v1/%63hat/completions"] {
        let seen =
            client::call(world.address(), &format!("POST {path}"), &[], body.as_bytes()).await;
        assert_eq!((seen.status, seen.header("x-backstay-outcome")), (200, "answered"), "{path}");
    }
    let calls = world.mock.log().len();
    for path in [
        "/v1//chat/completions",
        "/v1/../v1/chat/completions",
        "/v1/x/%2e%2E/chat/completions",
        "/v1/x%2f..%2fchat/completions",
        "/v1/./embeddings",
        "/v1/x%5cy",
        "/v1/x\\y",
    ] {
        for headers in [&[][..], &[("x-backstay-bypass", "1")][..]] {
            let start = format!("POST {path}");
            let seen = client::call(world.address(), &start, headers, body.as_bytes()).await;
            let wrongs = told::not_typed(OPENAI, &seen, 400, "invalid_request");
            assert_eq!(wrongs, [""; 0], "{path}");
            assert!(seen.text().contains("the path holds"), "{}", seen.text());
        }
    }
    assert_eq!(world.mock.log().len(), calls, "nothing of them reached a provider");
    // A bypass goes to the path that the provider has, however the caller wrote it.
    let body = request(Dialect::Anthropic, "a", HELLO).to_string();
    let bypass = [("x-backstay-bypass", "1")];
    for path in ["POST /messages", "POST /v1/messages/"] {
        let seen = client::call(world.address(), path, &bypass, body.as_bytes()).await;
        assert_eq!((seen.status, seen.header("x-backstay-outcome")), (200, "bypassed"), "{path}");
    }
    assert!(world.log("a-1").iter().all(|entry| entry.path == "/v1/messages"));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bypass_goes_round_every_check_and_every_retry() {
    let route = format!("{ROUTE}\n{TRIAGE}");
    let mut setup = Setup::new();
    for (name, behaviour) in
        [("fenced", "fenced"), ("miss", "enum-miss"), ("down", "status-503+after=7")]
    {
        setup = setup.alone(&format!("{name}-o"), "openai", &[behaviour], &route).alone(
            &format!("{name}-a"),
            "anthropic",
            &[behaviour],
            &route,
        );
    }
    let world = setup.start().await;
    for dialect in BOTH {
        let ask = async |name: &str| {
            let name = format!("{name}-{}", short(dialect));
            let body = request(dialect, &name, TICKET);
            let seen = world.ask_with(dialect, &[("x-backstay-bypass", "1")], &body).await;
            assert_eq!(world.settled_log(&format!("{name}-1")).await.len(), 1);
            assert_eq!(seen.header("x-backstay-outcome"), "bypassed");
            seen
        };
        let seen = ask("fenced").await;
        assert!(told::plain(dialect, &seen.json()).text.starts_with("```"), "{}", seen.text());
        assert_eq!(ask("miss").await.status, 200);
        let seen = ask("down").await;
        assert_eq!((seen.status, seen.header("retry-after")), (503, "7"));
        assert!(seen.text().contains("overloaded"), "the provider's own body: {}", seen.text());
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_callers_deadline_shortens_the_routes_and_never_lengthens_it() {
    let rows = [
        ("x-backstay-deadline", "700ms", 400, 800),
        ("x-request-timeout", "0.6", 300, 700),
        ("x-stainless-timeout", "1", 600, 1100),
        ("grpc-timeout", "900m", 500, 1000),
        ("x-backstay-deadline", "90s", 3000, 4100),
        ("x-backstay-deadline", "soon", 3000, 4100),
    ];
    let mut setup = Setup::new();
    for at in 0..rows.len() {
        setup = setup.alone(&format!("mute{at}"), "openai", &["silence"], ROUTE);
    }
    let world = setup.start().await;
    let one = async |at: usize| {
        let (name, value, least, most) = rows[at];
        let body = request(OPENAI, &format!("mute{at}"), HELLO);
        let seen = world.ask_with(OPENAI, &[(name, value)], &body).await;
        assert_eq!(seen.status, 504, "{name}: {value}: {}", seen.text());
        let took = seen.took.as_millis();
        assert!((least..most).contains(&took), "{name}: {value}: took {took} ms");
    };
    futures_util::future::join_all((0..rows.len()).map(one)).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn retries_of_layers_above_are_charged_but_never_the_first_try_of_a_tier() {
    let world = Setup::new()
        .alone("sick", "openai", &["status-500"], ROUTE)
        .backed("two", "openai", &["status-500"], ROUTE)
        .start()
        .await;
    let body = request(OPENAI, "sick", HELLO);
    for (count, attempts) in [("0", 3), ("1", 2), ("9", 1)] {
        world.mock.reset();
        let seen = world.ask_with(OPENAI, &[("x-stainless-retry-count", count)], &body).await;
        assert_eq!(told::not_typed(OPENAI, &seen, 502, "provider_error"), [""; 0]);
        // The breaker opens after five; what was sent is what is told.
        assert!(seen.attempts() <= attempts, "{count}: {}", seen.attempts());
        assert_eq!(seen.attempts(), world.settled_log("sick-1").await.len());
    }
    let body = request(OPENAI, "two", HELLO);
    let seen = world.ask_with(OPENAI, &[("x-stainless-retry-count", "9")], &body).await;
    assert_eq!((seen.status, seen.attempts()), (200, 2));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_lets_calls_end_and_refuses_new_ones() {
    let world = Setup::new()
        .alone("slow", "openai", &["slow-headers+wait=700ms"], ROUTE)
        .alone("long", "openai", &["healthy+n=20+gap=40ms"], ROUTE)
        .start()
        .await;
    let address = world.address();
    let mut slow = Line::open(address).await;
    let mut long = Line::open(address).await;
    let mut idle = Line::open(address).await;
    let body = request(OPENAI, "slow", HELLO).to_string();
    slow.ask(start(OPENAI), &[], body.as_bytes()).await.expect("sent");
    let body = crate::world::streamed(request(OPENAI, "long", HELLO)).to_string();
    long.ask(start(OPENAI), &[], body.as_bytes()).await.expect("sent");
    long.read_until("data:").await;
    idle.ask("GET /health/ready", &[], b"").await.expect("sent");
    assert_eq!(idle.read(client::PATIENCE).await.status, 200);
    let mock = world.mock;
    let stopping = world.running.stop();
    let calls = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        // The listener is closed, and an idle connection takes no new call.
        let refused = tokio::net::TcpStream::connect(address).await;
        if let Ok(socket) = refused {
            drop(socket);
            let mut late = Line::open(address).await;
            let asked = late.ask("GET /health/ready", &[], b"").await;
            let seen = late.read(Duration::from_secs(1)).await;
            assert!(asked.is_err() || seen.status == 0 || seen.status == 503, "{seen:?}");
        }
        let _ = idle.ask(start(OPENAI), &[], body.as_bytes()).await;
        let seen = idle.read(Duration::from_secs(1)).await;
        assert!(seen.status == 0 || seen.status == 503, "{seen:?}");
        let slow = slow.read(client::PATIENCE).await;
        assert_eq!(slow.status, 200, "{}", slow.text());
        long.read(client::PATIENCE).await
    };
    let (drained, streamed) = tokio::join!(stopping, calls);
    assert_eq!(drained, Drained::Whole);
    let told = told::stream(OPENAI, &streamed);
    assert_eq!((told.terminals, told.errors.len()), (1, 0), "{}", streamed.text());
    mock.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_that_takes_too_long_cuts_what_is_left_and_cancels_it_upstream() {
    let world =
        Setup::new().alone("mute", "openai", &["silence"], "deadline = \"60s\"").start().await;
    let mut line = Line::open(world.address()).await;
    let body = request(OPENAI, "mute", HELLO).to_string();
    line.ask(start(OPENAI), &[], body.as_bytes()).await.expect("sent");
    while world.log("mute-1").is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mock = world.mock;
    // The setup's drain is two seconds.
    assert_eq!(world.running.stop().await, Drained::Cut);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(mock.log().iter().all(|entry| entry.end == backstay_mock::End::ClientGone));
    mock.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_glob_keeps_the_callers_name_and_a_provider_can_be_named_directly() {
    let world = Setup::new()
        .tables(
            "[models.any]\nprovider = \"openai\"\nmodel = \"*\"\n[routes.\"*\"]\ntiers = [\"any\"]",
        )
        .start()
        .await;
    let seen = world.ask(OPENAI, &request(OPENAI, "healthy+size=50", HELLO)).await;
    assert_eq!((seen.status, seen.header("x-backstay-target")), (200, "any"));
    assert_eq!(world.log("healthy+size=50").len(), 1);
    world.stop().await;
    let world = Setup::new().alone("one", "openai", &["healthy"], ROUTE).start().await;
    for name in ["openai/healthy+size=60", "anthropic/healthy+size=60"] {
        let seen = world.ask(OPENAI, &request(OPENAI, name, HELLO)).await;
        let text = told::plain(OPENAI, &seen.json()).text;
        assert!(seen.status == 200 && !text.is_empty(), "{name}: {}", seen.text());
    }
    let body: Value = request(OPENAI, "openai/", HELLO);
    let seen = world.ask(OPENAI, &body).await;
    assert_eq!(told::not_typed(OPENAI, &seen, 404, "unknown_route"), [""; 0]);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bypassed_stream_ends_as_the_provider_ends_it() {
    let world = Setup::new()
        .alone("cut", "openai", &["stream-cut"], ROUTE)
        .alone("whole", "openai", &["healthy"], ROUTE)
        .alone("nobody", "refused", &["healthy"], ROUTE)
        .alone("mute", "openai", &["stream-stall"], ROUTE)
        .start()
        .await;
    let bypass = [("x-backstay-bypass", "1")];
    let ask = async |name: &str| {
        let body = crate::world::streamed(request(OPENAI, name, HELLO));
        world.ask_with(OPENAI, &bypass, &body).await
    };
    let seen = ask("whole").await;
    assert_eq!(told::stream(OPENAI, &seen).terminals, 1, "{}", seen.text());
    let seen = ask("cut").await;
    assert_eq!(told::stream(OPENAI, &seen).terminals, 0);
    assert_ne!(seen.ended, client::Ended::Clean, "half a body looks like a whole one");
    let seen = ask("nobody").await;
    assert_eq!((seen.status, &seen.json()["error"]["code"]), (502, &json!("provider_unreachable")));
    assert_eq!(seen.header("x-should-retry"), "", "nothing was tried again here: an SDK may");
    // Who leaves a bypassed call cancels it too.
    let body = crate::world::streamed(request(OPENAI, "mute", HELLO)).to_string();
    let mut line = Line::open(world.address()).await;
    line.ask(start(OPENAI), &bypass, body.as_bytes()).await.expect("sent");
    line.read_until("data:").await;
    drop(line);
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert_eq!(world.log("mute-1")[0].end, backstay_mock::End::ClientGone);
    world.stop().await;
}

#[test]
fn every_behaviour_of_the_mock_is_asked_for_by_some_promise() {
    let promises = [
        include_str!("bad_input.rs"),
        include_str!("breaker.rs"),
        include_str!("failures.rs"),
        include_str!("hang_up.rs"),
        include_str!("pairs.rs"),
        include_str!("patience.rs"),
        include_str!("rescue.rs"),
        include_str!("streams.rs"),
        include_str!("structure.rs"),
        include_str!("doors.rs"),
    ];
    let asked = |name: &str| {
        [format!("\"{name}\""), format!("\"{name}+")]
            .iter()
            .any(|word| promises.iter().any(|text| text.contains(word)))
    };
    let missing: Vec<&str> =
        backstay_mock::behaviours().iter().map(|b| b.name).filter(|name| !asked(name)).collect();
    assert!(missing.is_empty(), "no promise asks for {missing:?}");
}
