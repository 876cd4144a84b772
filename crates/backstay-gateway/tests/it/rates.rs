//! Rates of providers: kept by config, learned from headers and 429s, and how calls wait for them.

use std::time::Duration;

use backstay::record::Step;
use backstay_wire::Dialect;
use tokio::time::Instant;

use crate::client::Seen;
use crate::fixed::Fixed;
use crate::metered::{Allows, Metered};
use crate::world::{HELLO, Setup, World, request};

const OPENAI: Dialect = Dialect::OpenaiChat;

/// The reply of a provider that says nothing else.
const REPLY: &str = r#"{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25}}"#;

const ROUTE: &str = "deadline = \"8s\"\nmax_attempts = 2\nmax_output_tokens = 300";

async fn ask(world: &World, name: &str) -> Seen {
    world.ask(OPENAI, &request(OPENAI, name, HELLO)).await
}

fn trail(world: &World, seen: &Seen) -> Vec<Step> {
    let row = world.engine().call_log().find(seen.header("x-backstay-call-id"));
    row.expect("a log").expect("a row").trail.notes.into_iter().map(|note| note.step).collect()
}

fn waits(world: &World, seen: &Seen) -> Vec<String> {
    let step = |step| match step {
        Step::Waited { why, .. } => Some(why.into_owned()),
        _ => None,
    };
    trail(world, seen).into_iter().filter_map(step).collect()
}

/// A reply with these headers.
fn with_headers(headers: &str) -> Vec<String> {
    let length = REPLY.len();
    vec![format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{headers}content-length: \
         {length}\r\n\r\n{REPLY}"
    )]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_calls_at_once_keep_to_a_published_rate_without_a_429() {
    // A tenth of a minute, and a tenth of the limit.
    let allows =
        Allows { requests: 60, window: Duration::from_secs(6), takes: Duration::from_millis(20) };
    let metered = Metered::start(allows).await;
    let world = Setup::new()
        .tables(&metered.provider("metered", "auth = \"none\""))
        .target("paced", "metered", &[])
        .and("rates = { requests_per_minute = 600, burst = 0.02 }")
        .route("paced", &["paced"], ROUTE)
        .start()
        .await;
    let began = Instant::now();
    let asked = (0..40).map(|_| ask(&world, "paced"));
    let seen = futures_util::future::join_all(asked).await;
    assert!(seen.iter().all(|seen| seen.status == 200 && seen.attempts() == 1));
    assert_eq!(metered.counts(), (40, 0));
    // 12 at once, 28 more at 8 a second.
    let took = began.elapsed().as_secs_f64();
    assert!((3.0..6.0).contains(&took), "{took:.2} s");
    let waited = seen.iter().flat_map(|seen| waits(&world, seen));
    let slowest = waited.filter(|why| why.contains("pace_rate")).max().expect("somebody waited");
    let start = "paced: pace_rate (1 asked of requests a minute, 12 of 12 taken, draining at 480 \
        (limit 600): wait 0.";
    assert!(slowest.starts_with(start), "{slowest}");
    let metrics = world.get("/metrics").await.text();
    for name in [
        "backstay_pace_filled{target=\"paced\",rate=\"requests_per_minute\"} ",
        "backstay_limit_wait_seconds_total{target=\"paced\",why=\"pace_rate\"} ",
    ] {
        assert!(metrics.contains(name), "{name} in {metrics}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_that_is_used_up_sends_calls_on_and_ends_those_that_have_nowhere_to_go() {
    let narrow = "rates = { requests_per_minute = 1 }";
    let world = Setup::new()
        .target("first", "openai", &["healthy"])
        .and(narrow)
        .target("second", "openai", &["healthy"])
        .target("only", "openai", &["healthy"])
        .and(narrow)
        .target("large", "openai", &["healthy"])
        .and("rates = { tokens_per_minute = 50 }")
        .route("both", &["first", "second"], ROUTE)
        .route("only", &["only"], ROUTE)
        .route("large", &["large"], ROUTE)
        .start()
        .await;
    assert_eq!(ask(&world, "both").await.header("x-backstay-tier"), "1");
    let seen = ask(&world, "both").await;
    assert_eq!((seen.status, seen.header("x-backstay-tier")), (200, "2"), "without a wait");
    let skipped = trail(&world, &seen).into_iter().find_map(|step| match step {
        Step::Skipped { why, .. } => Some(why),
        _ => None,
    });
    let why = skipped.expect("it says why");
    assert!(why.starts_with("pace_rate: 1 asked of requests a minute, 1 of 1 taken"), "{why}");
    assert_eq!(ask(&world, "only").await.status, 200);
    let began = Instant::now();
    let seen = ask(&world, "only").await;
    assert_eq!(seen.status, 503, "a rate is never forced: {}", seen.text());
    assert!(began.elapsed() < Duration::from_secs(2), "it cannot go within its deadline");
    let after: u64 = seen.header("retry-after").parse().expect("seconds");
    assert!((50..=60).contains(&after), "{after}");
    assert_eq!(world.log("only").len(), 1);
    let seen = ask(&world, "large").await;
    assert!(seen.text().contains("over the 50 that fit at all"), "{}", seen.text());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_call_did_not_use_comes_back() {
    let world = Setup::new()
        .target("saved", "openai", &["healthy+prompt_tokens=20+completion_tokens=5"])
        .and("rates = { tokens_per_minute = 5000 }")
        .route("saved", &["saved"], ROUTE)
        .start()
        .await;
    // Each reserves its cap of 300 and more, and takes 25: the burst is 1000.
    for call in 0..10 {
        let seen = ask(&world, "saved").await;
        assert_eq!((seen.status, waits(&world, &seen).len()), (200, 0), "call {call}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_teach_a_limit_and_the_next_call_waits_for_it() {
    let headers = "x-ratelimit-limit-requests: 60\r\nx-ratelimit-remaining-requests: 0\r\n\
        x-ratelimit-reset-requests: 60s\r\n";
    let fixed = Fixed::raw(with_headers(headers)).await;
    let world = Setup::new()
        .tables(&fixed.provider("fixed"))
        .target("learned", "fixed", &[])
        .route("learned", &["learned"], ROUTE)
        .start()
        .await;
    assert_eq!(waits(&world, &ask(&world, "learned").await), [""; 0]);
    let standing = world.engine().standings().into_iter().find(|it| it.target == "learned");
    let levels: Vec<String> =
        standing.expect("a standing").rates.iter().map(|(_, level)| level.to_string()).collect();
    assert_eq!(levels.len(), 1, "{levels:?}");
    assert!(levels[0].starts_with("requests a minute, 12 of 12 taken, draining at 48 (limit 60)"));
    let seen = ask(&world, "learned").await;
    let waits = waits(&world, &seen);
    assert_eq!((seen.status, waits.len()), (200, 1), "{waits:?}");
    assert!(waits[0].contains("12 of 12 taken, draining at 48 (limit 60): wait 1."), "{waits:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_429_slows_a_target_that_nothing_is_known_of_and_says_so() {
    let world = Setup::new()
        .target("slowed", "openai", &["status-429+times=1"])
        .route("slowed", &["slowed"], ROUTE)
        .start()
        .await;
    let seen = ask(&world, "slowed").await;
    assert_eq!((seen.status, seen.attempts()), (200, 2));
    let told = trail(&world, &seen).into_iter().find_map(|step| match step {
        Step::Turned { change, .. } if change.starts_with("429: ") => Some(change),
        _ => None,
    });
    assert_eq!(told.as_deref(), Some("429: requests a minute slowed from 48 to 33"));
    let metrics = world.get("/metrics").await.text();
    let line = "backstay_pace_slowed_total{target=\"slowed\",rate=\"requests_per_minute\"} 1";
    assert!(metrics.contains(line), "{metrics}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_wait_for_a_rate_in_the_order_they_came_and_the_higher_class_goes_before() {
    let allows =
        Allows { requests: 60, window: Duration::from_secs(6), takes: Duration::from_millis(1) };
    let metered = Metered::start(allows).await;
    let world = Setup::new()
        .tables(&metered.provider("metered", "auth = \"none\""))
        .target("lined", "metered", &[])
        .and("rates = { requests_per_minute = 600, burst = 0 }")
        .route("lined", &["lined"], "deadline = \"20s\"\nmax_output_tokens = 300")
        .start()
        .await;
    let began = Instant::now();
    let body = request(OPENAI, "lined", HELLO);
    let call = |after: u64, class: &'static str| {
        let (world, body) = (&world, &body);
        async move {
            tokio::time::sleep(Duration::from_millis(after)).await;
            let headers = [("x-backstay-priority", class)];
            let seen = world.ask_with(OPENAI, &headers, body).await;
            assert_eq!(seen.status, 200, "{}", seen.text());
            (began.elapsed(), seen)
        }
    };
    let batch = (0..24).map(|call_no| call(call_no * 10, "batch"));
    let (batch, person) =
        tokio::join!(futures_util::future::join_all(batch), call(500, "interactive"));
    // As the gateway saw them: a busy machine reads one connection before another.
    let came = |seen: &Seen| {
        let row = world.engine().call_log().find(seen.header("x-backstay-call-id"));
        row.expect("a log").expect("a row").at_ms
    };
    let mut ends: Vec<(u64, Duration)> = batch.iter().map(|(end, it)| (came(it), *end)).collect();
    ends.sort_unstable();
    for (place, (arrival, end)) in ends.iter().enumerate() {
        let mut later = ends[place..].iter().filter(|(other, _)| *other > arrival + 5);
        // Turns are 125 ms apart.
        let overtakes = later.find(|(_, other)| *other + Duration::from_millis(60) < *end);
        assert_eq!(overtakes, None, "{arrival} came before: {ends:?}");
    }
    let ends: Vec<Duration> = ends.into_iter().map(|(_, end)| end).collect();
    assert!(ends[23] > Duration::from_millis(1500), "10 at once, then 8 a second: {ends:?}");
    assert!(person.0 < Duration::from_millis(1100), "after one or two of them: {:?}", person.0);
    assert_eq!(metered.counts(), (25, 0));
    let told = waits(&world, &batch[20].1);
    assert!(told.iter().any(|why| why.starts_with("lined: in its line: ")), "{told:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_leaves_the_line_holds_nobody_up() {
    let world = Setup::new()
        .target("left", "openai", &["healthy"])
        .and("rates = { requests_per_minute = 600, burst = 0 }")
        .route("left", &["left"], "deadline = \"20s\"\nmax_output_tokens = 300")
        .start()
        .await;
    let body = request(OPENAI, "left", HELLO);
    let short = Duration::from_millis(300);
    let impatient = (0..40).map(|_| tokio::time::timeout(short, world.ask(OPENAI, &body)));
    let gone = futures_util::future::join_all(impatient).await;
    assert!(gone.iter().filter(|seen| seen.is_err()).count() > 20);
    let began = Instant::now();
    assert_eq!(world.ask(OPENAI, &body).await.status, 200);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    assert_eq!(world.engine().standings()[0].in_flight, 0);
    world.stop().await;
}
