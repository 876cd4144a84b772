//! How far limits are used up, as `/admin/limits` and the metrics tell while calls are under way.

use std::time::Duration;

use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::client::{self, Seen};
use crate::world::{HELLO, Setup, World, request};

const OPENAI: Dialect = Dialect::OpenaiChat;
const ADMIN: (&str, &str) = ("x-api-key", "admin-key-of-the-tests");
const APP: (&str, &str) = ("x-api-key", "app-token-0123456789");
const ROUTE: &str = "deadline = \"20s\"\nmax_attempts = 3\nmax_output_tokens = 300";

fn setup() -> Setup {
    Setup::new().server("admin_key = \"admin-key-of-the-tests\"")
}

async fn limits(world: &World) -> Value {
    let seen = client::call(world.address(), "GET /admin/limits", &[ADMIN], b"").await;
    assert_eq!(seen.status, 200, "{}", seen.text());
    seen.json()
}

async fn target(world: &World, name: &str) -> Value {
    let all = limits(world).await["targets"].clone();
    let found = all.as_array().and_then(|all| all.iter().find(|it| it["target"] == name));
    found.cloned().unwrap_or_default()
}

/// What is told of a target once so many of its `what` are in flight.
async fn once(world: &World, name: &str, what: &str, in_flight: u32) -> Value {
    for _ in 0..500 {
        let told = target(world, name).await;
        if told[what]["in_flight"] == in_flight {
            return told;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("never {in_flight} {what} at {name}: {}", limits(world).await);
}

async fn metrics_have(world: &World, lines: &[&str]) {
    let metrics = world.get("/metrics").await.text();
    for line in lines {
        assert!(metrics.lines().any(|told| told == *line), "{line}\n{metrics}");
    }
}

async fn two(world: &World, route: &str) -> [Seen; 2] {
    let body = request(OPENAI, route, HELLO);
    tokio::join!(world.ask(OPENAI, &body), world.ask(OPENAI, &body)).into()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_budget_tells_its_balance_and_the_retries_that_are_under_way() {
    let late = "status-500+delay=200ms";
    let world = setup()
        .tables("[retries]\nfloor = \"0s\"")
        .target("shaky", "openai", &[late, late, "healthy+delay=1s"])
        .route("shaky", &["shaky"], ROUTE)
        .start()
        .await;
    let calls = two(&world, "shaky");
    let look = async {
        let told = once(&world, "shaky", "retries", 2).await;
        // The 3 it begins with and a tenth for each call, less the two that are paid.
        assert_eq!(
            told["retries"],
            json!({"balance": 1.2, "cap": 10, "in_flight": 2, "may_be_in_flight": 2})
        );
        metrics_have(
            &world,
            &[
                "backstay_retry_balance{target=\"shaky\"} 1.2",
                "backstay_retry_cap{target=\"shaky\"} 10",
                "backstay_retries_taken{target=\"shaky\"} 2",
                "backstay_retries_allowed{target=\"shaky\"} 2",
            ],
        )
        .await;
    };
    let (seen, ()) = tokio::join!(calls, look);
    assert_eq!(seen.map(|seen| (seen.status, seen.attempts())), [(200, 2); 2]);
    let after = target(&world, "shaky").await["retries"].clone();
    assert_eq!((&after["balance"], &after["in_flight"]), (&json!(1.2), &json!(0)));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_receiver_tells_what_fell_back_on_it_and_what_is_open_to_more() {
    let world = setup()
        .target("down", "openai", &["status-500"])
        .and("breaker = { mode = \"forced_open\" }")
        .target("mirror", "openai", &["healthy+delay=1s"])
        .and("max_concurrency = 3\nplaces = { kept = 0.4 }\nrates = { requests_per_day = 10 }")
        .target("other", "openai", &["healthy"])
        .route("falls", &["down", "mirror"], ROUTE)
        .route("other", &["other"], ROUTE)
        .start()
        .await;
    let calls = two(&world, "falls");
    let look = async {
        let mut told = once(&world, "mirror", "fallbacks", 2).await;
        assert_eq!((&told["in_flight"], &told["places"]), (&json!(2), &json!(3)));
        // Two of the eight requests that may go at once; a day's rate hardly drains meanwhile.
        let filled = told["fallbacks"]["rate_filled"].take().as_f64().expect("a share");
        assert!((0.24..=0.25).contains(&filled), "{filled}");
        let rest = json!({"in_flight": 2, "may_be_in_flight": 2, "rate_filled": null,
            "rate_may_be_filled": 0.6, "refused": "headroom_places"});
        assert_eq!(told["fallbacks"], rest);
        metrics_have(
            &world,
            &[
                "backstay_fallback_places{target=\"mirror\"} 2",
                "backstay_fallback_places_taken{target=\"mirror\"} 2",
                "backstay_fallback_rate{target=\"mirror\"} 0.6",
            ],
        )
        .await;
    };
    let (seen, ()) = tokio::join!(calls, look);
    assert!(seen.iter().all(|seen| (seen.status, seen.header("x-backstay-tier")) == (200, "2")));
    let after = target(&world, "mirror").await["fallbacks"].clone();
    assert_eq!((&after["in_flight"], &after["refused"]), (&json!(0), &Value::Null));
    // Where no limit is known, there is room.
    world.ask(OPENAI, &request(OPENAI, "other", HELLO)).await;
    let room = json!({"in_flight": 0, "may_be_in_flight": null, "rate_filled": 0.0,
        "rate_may_be_filled": 0.9, "refused": null});
    assert_eq!(target(&world, "other").await["fallbacks"], room);
    world.stop().await;
}

/// A key's rows, without those of others.
fn rows(told: &Value, key: &str) -> Vec<Value> {
    let all = told["spend"].as_array().cloned().unwrap_or_default();
    all.into_iter().filter(|row| row["key"] == key).collect()
}

/// The row in money of the key `app`, once a call of it is under way.
async fn reserved(world: &World) -> Value {
    for _ in 0..90 {
        let told = rows(&limits(world).await, "app").first().cloned().unwrap_or_default();
        if told["reserved"] != 0.0 {
            return told;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nothing was reserved");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_with_a_limit_tell_what_they_spent_reserved_and_estimated() {
    let mut quick = request(OPENAI, "quick", HELLO);
    quick["max_tokens"] = json!(300);
    // A token a byte and the output cap: what a call of which nobody knows more is booked at.
    let most = quick.to_string().len() as u64 + 300;
    let keys = format!(
        "[keys.app]\ntoken = \"{}\"\nspend_per_day = 10\ntokens_per_day = {}\n\
         [keys.free]\ntoken = \"free-token-0123456789\"\n\
         [keys.idle]\ntoken = \"idle-token-0123456789\"\ntokens_per_day = 5",
        APP.1,
        most + most / 5
    );
    let world = setup()
        .tables(&keys)
        .target("paid", "openai", &["healthy+delay=1s", "silence"])
        .and("input_price = 1000\noutput_price = 2000")
        .route(
            "quick",
            &["paid"],
            "deadline = \"5s\"\nmax_attempts = 1\ntimeouts = { total = \"2s\" }",
        )
        .start()
        .await;
    let call = async || world.ask_with(OPENAI, &[APP], &quick).await;
    let (seen, under_way) = tokio::join!(call(), reserved(&world));
    assert_eq!((&under_way["used"], &under_way["unit"]), (&json!(0.0), &json!("money")));
    let usage = seen.json()["usage"].clone();
    let count = |name: &str| usage[name].as_u64().and_then(|count| u32::try_from(count).ok());
    let [input, output] = ["prompt_tokens", "completion_tokens"].map(|name| count(name).unwrap());
    let (used, paid) = (u64::from(input + output), f64::from(input + 2 * output) / 1000.0);
    let told = limits(&world).await;
    let [money, tokens] = &rows(&told, "app")[..] else { panic!("{told}") };
    assert_eq!(
        (&money["used"], &money["limit"], &money["share"]),
        (&json!(paid), &json!(10.0), &json!(paid / 10.0))
    );
    assert_eq!((&money["reserved"], &money["at_least"]), (&json!(0.0), &json!(false)));
    assert_eq!((&tokens["unit"], &tokens["used"]), (&json!("tokens"), &json!(used)));
    assert_eq!((&tokens["limit"], &tokens["alert_told"]), (&json!(most + most / 5), &json!(false)));

    assert_eq!(call().await.status, 504);
    let told = limits(&world).await;
    let [money, tokens] = &rows(&told, "app")[..] else { panic!("{told}") };
    let estimated = tokens["estimated"].as_u64().unwrap_or(0);
    assert!((300..=most).contains(&estimated), "{told}");
    assert_eq!(tokens["used"], used + estimated);
    assert_eq!((&tokens["at_least"], &money["at_least"]), (&json!(true), &json!(true)));
    assert!(tokens["share"].as_f64().is_some_and(|share| (0.8..=1.0).contains(&share)), "{told}");
    assert_eq!((&tokens["alert_told"], &money["alert_told"]), (&json!(true), &json!(false)));
    assert!(rows(&told, "free").is_empty(), "nothing bounds it");
    let [idle] = &rows(&told, "idle")[..] else { panic!("{told}") };
    assert_eq!((&idle["used"], &idle["share"]), (&json!(0), &json!(0.0)), "it never called");
    let (at, ends) = (told["at_ms"].as_u64(), told["day_ends_ms"].as_u64());
    assert!(ends > at && ends.is_some_and(|ends| ends % 86_400_000 == 0), "{told}");
    let line = |name: &str, unit: &str, value: &Value| {
        (format!("backstay_spend_{name}{{key=\"app\",unit=\"{unit}\"}}"), value.as_f64())
    };
    let lines = [
        line("used", "tokens", &tokens["used"]),
        line("limit", "tokens", &tokens["limit"]),
        line("estimated", "tokens", &tokens["estimated"]),
        line("limit", "money", &json!(10)),
        line("reserved", "money", &json!(0)),
    ];
    let metrics = world.get("/metrics").await.text();
    for (name, value) in lines {
        let told = metrics.lines().find_map(|told| told.strip_prefix(name.as_str()));
        assert_eq!(told.and_then(|told| told.trim().parse().ok()), value, "{name}\n{metrics}");
    }
    world.stop().await;
}
