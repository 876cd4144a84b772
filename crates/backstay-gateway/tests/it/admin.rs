//! What an operator sees and orders: over the socket, and felt by the next caller.

use std::time::Duration;

use backstay_wire::Dialect;
use serde_json::{Value, json};

use crate::client::{self, Seen};
use crate::world::{HELLO, Setup, World, request};

const OPENAI: Dialect = Dialect::OpenaiChat;
const KEY: &str = "admin-key-of-the-tests";
const ROUTE: &str = "deadline = \"3s\"\nmax_attempts = 2\nmax_output_tokens = 300";

/// Two tiers, the first of them sick, and an operator's key.
fn setup() -> Setup {
    Setup::new().server(&format!("admin_key = \"{KEY}\"")).backed(
        "sick",
        "openai",
        &["status-500"],
        ROUTE,
    )
}

async fn operate(world: &World, start: &str, body: &str) -> Seen {
    let key = format!("Bearer {KEY}");
    client::call(world.address(), start, &[("authorization", &key)], body.as_bytes()).await
}

async fn order(world: &World, target: &str, body: &Value) -> Seen {
    operate(world, &format!("POST /admin/targets/{target}"), &body.to_string()).await
}

/// What is told of a target.
async fn target(world: &World, name: &str) -> Value {
    let seen = operate(world, "GET /admin/targets", "").await;
    assert_eq!(seen.status, 200, "{}", seen.text());
    let all = seen.json()["targets"].clone();
    let all = all.as_array().expect("a list").clone();
    all.into_iter().find(|target| target["target"] == name).unwrap_or_default()
}

/// The tier that answers a call, or its status.
async fn answers(world: &World) -> String {
    let seen = world.ask(OPENAI, &request(OPENAI, "sick", HELLO)).await;
    match seen.status {
        200 => seen.header("x-backstay-tier").to_owned(),
        status => status.to_string(),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_told_without_the_admin_key_and_nothing_is_there_where_none_is_set() {
    let world = setup().tables("[keys.app]\ntoken = \"a-caller-s-token\"").start().await;
    let with = |key: &'static str| [("x-api-key", key)];
    for start in ["GET /admin/targets", "POST /admin/targets/sick-1", "GET /admin/nonsense"] {
        for key in ["", "a-caller-s-token", "admin-key-of-the-test"] {
            let seen = client::call(world.address(), start, &with(key), b"{}").await;
            assert_eq!(seen.status, 401, "{start} {key}: {}", seen.text());
            assert!(!seen.text().contains("sick"), "{}", seen.text());
        }
    }
    assert_eq!(operate(&world, "GET /admin/targets", "").await.status, 200);
    // It opens nothing else.
    let seen = operate(&world, "GET /v1/models", "").await;
    assert_eq!(seen.status, 401);
    world.stop().await;

    let world = Setup::new().backed("sick", "openai", &["healthy"], ROUTE).start().await;
    for start in ["GET /admin/targets", "GET /admin", "POST /admin/targets/sick-1"] {
        let seen = operate(&world, start, "{}").await;
        assert_eq!(seen.status, 404, "{start}");
        assert!(seen.text().contains("server.admin_key"), "{}", seen.text());
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_tells_its_state_and_the_numbers_behind_it() {
    let world = setup().start().await;
    let idle = target(&world, "sick-1").await;
    assert_eq!(
        (idle["mode"].as_str(), idle["mode_by"].as_str()),
        (Some("automatic"), Some("config"))
    );
    assert_eq!(idle["breakers"][0]["state"], "closed");
    for _ in 0..3 {
        answers(&world).await;
    }
    let shaky = target(&world, "sick-1").await;
    let breaker = &shaky["breakers"][0];
    assert_eq!(breaker["plane"], "availability");
    assert_eq!((&breaker["calls"], &breaker["failures_in_a_row"]), (&json!(3), &json!(3)));
    assert_eq!((&breaker["error_rate"], &breaker["surely_over"]), (&json!(1.0), &Value::Null));
    for _ in 0..2 {
        answers(&world).await;
    }
    let open = target(&world, "sick-1").await;
    let breaker = &open["breakers"][0];
    let change = breaker["last_change"].as_str().unwrap_or_default();
    assert!(change.starts_with("opened: 5 failures in a row; rests for"), "{change}");
    assert_eq!((&breaker["state"], &breaker["epoch"]), (&json!("open"), &json!(1)));
    let now = operate(&world, "GET /admin/targets", "").await.json()["at_ms"].as_u64().unwrap_or(0);
    let (since, until) = (breaker["since_ms"].as_u64(), breaker["until_ms"].as_u64());
    assert!(since.is_some_and(|since| since <= now && now - since < 5_000), "{breaker}");
    assert!(until.is_some_and(|until| (15_000..40_000).contains(&(until - now))), "{breaker}");
    assert_eq!(open["in_flight"], 0);
    assert_eq!(target(&world, "sick-2").await["breakers"][0]["calls"], 5);

    let metrics = world.get("/metrics").await.text();
    for line in [
        "backstay_breaker_state{target=\"sick-1\",plane=\"availability\",state=\"open\"} 1",
        "backstay_breaker_state{target=\"sick-2\",plane=\"availability\",state=\"closed\"} 1",
        "backstay_breaker_state_seconds{target=\"sick-1\",plane=\"availability\",state=\"open\"} 0",
        "backstay_target_mode{target=\"sick-1\",mode=\"automatic\"} 1",
        "backstay_breaker_changes_total{target=\"sick-1\",plane=\"availability\",from=\"closed\",to=\"open\",cause=\"row\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_holds_at_once_through_a_reload_and_until_its_time_is_up() {
    let world = Setup::new()
        .server(&format!("admin_key = \"{KEY}\""))
        .backed("sick", "openai", &["healthy"], ROUTE)
        .start()
        .await;
    assert_eq!(answers(&world).await, "1");
    let told = order(&world, "sick-1", &json!({"mode": "forced_open"})).await;
    assert_eq!(told.status, 200, "{}", told.text());
    let told = told.json()["targets"][0].clone();
    assert_eq!((&told["mode"], &told["mode_by"]), (&json!("forced_open"), &json!("operator")));
    assert_eq!(told["mode_until_ms"], Value::Null);
    assert_eq!(answers(&world).await, "2");
    world.engine().reload(world.settings.policy.clone()).expect("the same policy");
    assert_eq!(answers(&world).await, "2", "a reload takes nothing back");
    let metrics = world.get("/metrics").await.text();
    for line in [
        "backstay_target_mode{target=\"sick-1\",mode=\"forced_open\"} 1",
        "backstay_orders_total{target=\"sick-1\",mode=\"forced_open\"} 1",
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    let told = order(&world, "sick-1", &json!({"mode": "normal"})).await.json();
    assert_eq!(told["targets"][0]["mode_by"], "config");
    assert_eq!(answers(&world).await, "1");

    // For a second only, and by its percent-encoded name.
    let timed = json!({"mode": "forced_open", "for_seconds": 1});
    let told = order(&world, "sick%2D1", &timed).await.json();
    assert!(told["targets"][0]["mode_until_ms"].is_u64(), "{told}");
    assert_eq!(answers(&world).await, "2");
    tokio::time::sleep(Duration::from_millis(1_050)).await;
    assert_eq!(answers(&world).await, "1");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_order_goes_before_the_first_call_and_over_the_config() {
    let world = Setup::new()
        .server(&format!("admin_key = \"{KEY}\""))
        .tables("[models.any]\nprovider = \"openai\"\nmodel = \"*\"")
        .route("sick", &["any"], ROUTE)
        .target("out", "openai", &["healthy"])
        .and("breaker = { mode = \"forced_open\" }")
        .start()
        .await;
    world.mock.script("sick", &["healthy"]);
    world.mock.script("free", &["healthy"]);
    assert_eq!(order(&world, "any", &json!({"mode": "forced_open"})).await.status, 200);
    assert_eq!(answers(&world).await, "503", "it was never called before");
    assert_eq!(target(&world, "any").await["asked_as"], "sick");
    assert_eq!(order(&world, "any", &json!({"mode": "normal"})).await.status, 200);
    assert_eq!(answers(&world).await, "1");
    let ask = async || world.ask(OPENAI, &request(OPENAI, "out", HELLO)).await.status;
    assert_eq!(ask().await, 503);
    assert_eq!(order(&world, "out", &json!({"mode": "automatic"})).await.status, 200);
    assert_eq!(ask().await, 200);
    // A target that nobody configured can be ordered about all the same.
    let free = world.ask(OPENAI, &request(OPENAI, "openai/free", HELLO)).await;
    assert_eq!(free.status, 200);
    assert_eq!(order(&world, "openai/free", &json!({"mode": "forced_open"})).await.status, 200);
    assert_eq!(world.ask(OPENAI, &request(OPENAI, "openai/free", HELLO)).await.status, 503);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wrong_order_is_refused_with_words_and_changes_nothing() {
    let world = setup().start().await;
    for (start, body, status, words) in [
        ("POST /admin/targets/none", r#"{"mode": "normal"}"#, 404, "no target is named `none`"),
        ("POST /admin/targets/sick-1", r#"{"mode": "open"}"#, 400, "`forced_open`"),
        ("POST /admin/targets/sick-1", "", 400, "no order"),
        ("POST /admin/targets/", r#"{"mode": "normal"}"#, 404, "no target"),
        ("GET /admin/targets/sick-1", "", 405, "takes POST"),
        ("POST /admin/targets", "", 405, "takes GET"),
        ("DELETE /admin/queue", "", 405, "takes GET"),
        ("GET /admin/", "", 404, "/admin/limits"),
        ("GET /admin", "", 404, "/admin/limits"),
    ] {
        let seen = operate(&world, start, body).await;
        assert_eq!(seen.status, status, "{start} {body}: {}", seen.text());
        assert!(seen.text().contains(words), "{start} {body}: {}", seen.text());
    }
    let long = format!("{{\"mode\": \"{}\"}}", "x".repeat(5_000));
    assert_eq!(operate(&world, "POST /admin/targets/sick-1", &long).await.status, 413);
    assert_eq!(target(&world, "sick-1").await["mode_by"], "config");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_rest_are_told_by_number_and_never_by_name() {
    let world = Setup::new()
        .server(&format!("admin_key = \"{KEY}\""))
        .tables(
            "[providers.pool]\ndialect = \"openai_chat\"\nbase_url = \"OPENAI_BASE\"\n\
             api_keys = [\"sk-first-0001\", \"sk-second-0002\"]",
        )
        .backed("sick", "pool", &["quota-429", "healthy"], ROUTE)
        .start()
        .await;
    answers(&world).await;
    let told = target(&world, "sick-1").await;
    let rest = &told["resting_keys"][0];
    assert_eq!((&rest["key"], &rest["why"]), (&json!(0), &json!("quota")));
    assert!(rest["until_ms"].is_u64());
    assert!(!told.to_string().contains("sk-"), "{told}");
    let (limits, queue) = (
        operate(&world, "GET /admin/limits", "").await.json(),
        operate(&world, "GET /admin/queue", "").await.json(),
    );
    assert_eq!(limits["targets"][0]["in_flight"], 0);
    assert_eq!(queue["calls_in_flight"], 0);
    world.stop().await;
}

/// The page that tells of the admin API.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/admin.md");

/// Holds the example after the heading `title` of the page to what was answered. With
/// `BACKSTAY_UPDATE=1` the page gets it.
fn shows(title: &str, told: &Value) {
    let page = std::fs::read_to_string(PAGE).expect("the page");
    let heading = format!("## `{title}`\n");
    let (before, section) = page.split_once(heading.as_str()).expect("the section");
    let (words, block) = section.split_once("```json\n").expect("an example");
    let (block, after) = block.split_once("\n```").expect("its end");
    if std::env::var_os("BACKSTAY_UPDATE").is_some() {
        let told = laid_out(told, 0);
        let page = format!("{before}{heading}{words}```json\n{told}\n```{after}");
        return std::fs::write(PAGE, page).expect("the page is written");
    }
    let shown: Value = serde_json::from_str(block).expect("JSON");
    assert_eq!(timeless(shown), timeless(told.clone()), "{title} answers {told:#}");
}

/// JSON with what fits on a line on one.
fn laid_out(value: &Value, depth: usize) -> String {
    let line = value.to_string().replace("\":", "\": ").replace(",\"", ", \"");
    let (open, close, items): (_, _, Vec<String>) = match value {
        _ if line.len() + depth < 110 => return line,
        Value::Array(items) => {
            ('[', ']', items.iter().map(|item| laid_out(item, depth + 2)).collect())
        }
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                format!("\"{name}\": {}", laid_out(value, depth + 2))
            };
            ('{', '}', fields.iter().map(field).collect())
        }
        _ => return line,
    };
    let (inner, outer) = (" ".repeat(depth + 2), " ".repeat(depth));
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        let joins = |last: &String| {
            !last.contains('\n') && !item.contains('\n') && last.len() + item.len() + depth < 105
        };
        match lines.last_mut().filter(|last| joins(last)) {
            Some(last) => *last = format!("{last}, {item}"),
            None => lines.push(item),
        }
    }
    format!("{open}\n{inner}{}\n{outer}{close}", lines.join(&format!(",\n{inner}")))
}

/// The same with what no two runs have alike set to zero: moments and how long something lasts.
fn timeless(mut value: Value) -> Value {
    match &mut value {
        Value::Array(items) => items.iter_mut().for_each(|item| *item = timeless(item.take())),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                *field = match field.take() {
                    _ if name.ends_with("_ms") || name == "state_seconds" => json!(0),
                    // After that come what the dice threw.
                    Value::String(told) => json!(told.split("; ").next()),
                    field => timeless(field),
                };
            }
        }
        _ => {}
    }
    value
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_shows_what_is_answered() {
    let world = Setup::new()
        .server(&format!("admin_key = \"{KEY}\""))
        .tables(
            "[providers.hub]\ndialect = \"openai_chat\"\nbase_url = \"OPENAI_BASE\"\n\
             api_keys = [\"sk-first-0001\", \"sk-second-0002\"]\n\
             [retries]\nfloor = \"0s\"\n\
             [keys.app]\ntoken = \"app-token-0123456789\"\nspend_per_day = 2\ntokens_per_day = 100000",
        )
        .target("main", "hub", &["quota-429", "status-500"])
        .and("max_concurrency = 50")
        .and("rates = { requests_per_day = 10000 }\ninput_price = 5\noutput_price = 25")
        .target("mirror", "openai", &["healthy"])
        .and("input_price = 5\noutput_price = 25")
        .route("sick", &["main", "mirror"], ROUTE)
        .start()
        .await;
    let app = ("x-api-key", "app-token-0123456789");
    for _ in 0..6 {
        let seen = world.ask_with(OPENAI, &[app], &request(OPENAI, "sick", HELLO)).await;
        assert_eq!(seen.header("x-backstay-tier"), "2", "{}", seen.text());
    }
    for title in ["GET /admin/targets", "GET /admin/limits", "GET /admin/queue"] {
        shows(title, &operate(&world, title, "").await.json());
    }
    let timed = json!({"mode": "forced_open", "for_seconds": 600});
    shows("POST /admin/targets/NAME", &order(&world, "mirror", &timed).await.json());
    world.stop().await;
}
