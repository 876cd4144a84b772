//! Budgets of retries over all calls of a target, and the room a target keeps from fallbacks.

use backstay::record::Step;
use backstay_wire::Dialect;

use crate::client::Seen;
use crate::world::{HELLO, Setup, World, request};

const OPENAI: Dialect = Dialect::OpenaiChat;

const ROUTE: &str = "deadline = \"20s\"\nmax_attempts = 3\nmax_output_tokens = 300";

/// Breakers would end the trouble before a budget does.
const HELD_IN: &str = "breaker = { mode = \"forced_closed\" }";

async fn ask(world: &World, name: &str, headers: &[(&str, &str)]) -> Seen {
    world.ask_with(OPENAI, headers, &request(OPENAI, name, HELLO)).await
}

fn decisions(world: &World, seen: &Seen) -> Vec<String> {
    let row = world.engine().call_log().find(seen.header("x-backstay-call-id"));
    let step = |step| match step {
        Step::Decided { why, .. } => Some(why),
        _ => None,
    };
    let trail = row.expect("a log").expect("a row").trail;
    trail.notes.into_iter().filter_map(|note| step(note.step)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_calls_at_a_target_that_fails_share_its_few_retries() {
    let world = Setup::new()
        .tables("[retries]\nfloor = \"0s\"\nat_once = 40")
        .target("down", "openai", &["status-500+delay=150ms"])
        .and(HELD_IN)
        .route("down", &["down"], ROUTE)
        .start()
        .await;
    let asked = (0..40).map(|_| ask(&world, "down", &[]));
    let seen = futures_util::future::join_all(asked).await;
    assert!(seen.iter().all(|seen| seen.status == 502));
    assert!(seen.iter().all(|seen| seen.header("x-should-retry") == "false"));
    // 40 calls, the 3 it began with, and a tenth of 40.
    let sent = world.log("down").len();
    assert!((45..=47).contains(&sent), "{sent} requests for 40 calls");
    let refused = "no retry: it takes 1 of the target's budget, which holds 0";
    let told = seen.iter().flat_map(|seen| decisions(&world, seen));
    assert!(told.filter(|why| why.starts_with(refused)).count() >= 33);
    let metrics = world.get("/metrics").await.text();
    let line = "backstay_retries_refused_total{target=\"down\",why=\"extra_spent\"} ";
    assert!(metrics.contains(line), "{metrics}");
    assert!(metrics.contains("backstay_retry_balance{target=\"down\"} 0"), "{metrics}");
    world.stop().await;
}

/// One request at a time, one host: fifty models, and each call gets its retries.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_models_of_one_host_asked_one_at_a_time_get_their_retries() {
    let mut setup = Setup::new();
    for model in 0..50 {
        let name = format!("m{model}");
        setup = setup.target(&name, "openai", &["status-500", "status-500", "healthy"]);
        setup = setup.route(&format!("r{model}"), &[&name], ROUTE);
    }
    let world = setup.tables("[breaker]\nfailures_in_a_row = 0").start().await;
    let asked = (0..50).map(|model| {
        let world = &world;
        async move { ask(world, &format!("r{model}"), &[]).await }
    });
    for seen in futures_util::future::join_all(asked).await {
        assert_eq!((seen.status, seen.attempts()), (200, 3), "{}", seen.text());
    }
    world.stop().await;
}

/// Case B161: layers that retry each by themselves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_its_caller_repeats_gets_no_retry_here_and_still_goes_elsewhere() {
    let world = Setup::new()
        .alone("alone", "openai", &["status-500"], ROUTE)
        .backed("backed", "openai", &["status-500"], ROUTE)
        .start()
        .await;
    let repeated = [("x-stainless-retry-count", "1")];
    let seen = ask(&world, "alone", &repeated).await;
    assert_eq!((seen.status, world.log("alone-1").len()), (502, 1));
    let why = decisions(&world, &seen);
    assert_eq!(why, ["no retry here: the caller repeats this call itself, 1 times by now"]);
    let seen = ask(&world, "backed", &repeated).await;
    assert_eq!((seen.status, seen.header("x-backstay-tier")), (200, "2"));
    assert_eq!(world.log("backed-1").len(), 1);
    let envoy = ask(&world, "alone", &[("x-envoy-attempt-count", "2")]).await;
    assert_eq!((envoy.status, world.log("alone-1").len()), (502, 2));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fallbacks_leave_a_part_of_the_places_to_the_target_s_own_calls() {
    let world = Setup::new()
        .target("down", "openai", &["status-500"])
        .and("breaker = { mode = \"forced_open\" }")
        .target("mirror", "openai", &["healthy+delay=500ms"])
        .and("max_concurrency = 4\nplaces = { kept = 0.25 }")
        .route("falls", &["down", "mirror"], ROUTE)
        .route("own", &["mirror"], ROUTE)
        .start()
        .await;
    let falls = async {
        let asked = (0..6).map(|_| ask(&world, "falls", &[]));
        futures_util::future::join_all(asked).await
    };
    let own = async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        let began = tokio::time::Instant::now();
        let seen = ask(&world, "own", &[]).await;
        (seen.status, began.elapsed().as_millis())
    };
    let (falls, (status, took)) = tokio::join!(falls, own);
    assert!(falls.iter().all(|seen| seen.status == 200));
    assert_eq!(status, 200);
    assert!(took < 900, "its own call found the place that is kept: {took} ms");
    let waits = falls.iter().flat_map(|seen| {
        let row = world.engine().call_log().find(seen.header("x-backstay-call-id"));
        row.expect("a log").expect("a row").trail.notes
    });
    let named = waits.into_iter().any(|note| match note.step {
        Step::Waited { why, .. } => {
            why.starts_with("mirror: headroom_places (no room for a fallback: 3 of 4")
        }
        _ => false,
    });
    assert!(named, "it says what the fallbacks wait for");
    world.stop().await;
}
