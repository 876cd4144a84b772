//! The guards: a loop is cut off at the provider at once, rerouted where nothing of it is out, and told
//! where something is; what is not sure is told only.

use backstay_mock::End;
use backstay_wire::Dialect;
use serde_json::json;

use crate::client::Seen;
use crate::streams::{ROUTE, not_broken, not_whole};
use crate::told;
use crate::world::{HELLO, Setup, World, request, streamed};

const OPENAI: Dialect = Dialect::OpenaiChat;

/// 4,000 chunks, of which a guard needs the first few dozen.
const LOOP: &str = "loop+n=4000+gap=2ms";

fn patient() -> String {
    ROUTE.replace("\"6s\"", "\"20s\"").replace("\"3s\"", "\"15s\"").replace("= 600", "= 60000")
}

async fn ask(world: &World, route: &str, headers: &[(&str, &str)], text: &str) -> Seen {
    world.ask_with(OPENAI, headers, &streamed(request(OPENAI, route, text))).await
}

/// Whether the provider of a target noticed that its caller hung up, long before its end.
async fn was_hung_up(world: &World, model: &str) -> bool {
    let log = world.settled_log(model).await;
    let last = log.last().expect("a request");
    last.end == End::ClientGone && last.events_sent < 1_000
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_is_cut_off_at_once_and_rescued_where_nothing_of_it_is_out() {
    let mut setup = Setup::new();
    for mode in ["passthrough", "gate", "windowed", "buffered"] {
        let route = format!("{}\nstream = \"{mode}\"", patient());
        setup = setup.backed(mode, "openai", &[LOOP], &route);
    }
    let world = setup.start().await;
    for (mode, rescued) in
        [("passthrough", false), ("gate", false), ("windowed", true), ("buffered", true)]
    {
        let seen = ask(&world, mode, &[], HELLO).await;
        let told = told::stream(OPENAI, &seen);
        if rescued {
            assert_eq!(not_whole(&seen, &told), [""; 0], "{mode}");
            assert_eq!(seen.header("x-backstay-tier"), "2", "{mode}");
        } else {
            assert_eq!(not_broken(OPENAI, &seen, &told, "reply_looping"), [""; 0], "{mode}");
        }
        assert!(was_hung_up(&world, &format!("{mode}-1")).await, "{mode}");
        let metrics = world.get("/metrics").await.text();
        let found = format!(
            "backstay_guard_signals_total{{target=\"{mode}-1\",kind=\"loop\",level=\"hard\"}} 1"
        );
        assert!(metrics.contains(&found), "{mode}: {metrics}");
        let outcome = if rescued { "answered" } else { "failed" };
        let ended = format!("backstay_streams_total{{mode=\"{mode}\",outcome=\"{outcome}\"}} 1");
        assert!(metrics.contains(&ended), "{mode}: {metrics}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_loop_in_one_piece_or_folded_goes_to_the_next_tier() {
    let folded = format!("{}\nupstream = \"stream\"", patient());
    let plain = format!("{}\nupstream = \"as_asked\"", patient());
    let world = Setup::new()
        .backed("folded", "openai", &[LOOP], &folded)
        .backed("plain", "openai", &["loop+n=400"], &plain)
        .start()
        .await;
    for route in ["folded", "plain"] {
        let seen = world.ask(OPENAI, &request(OPENAI, route, HELLO)).await;
        assert_eq!((seen.status, seen.header("x-backstay-tier")), (200, "2"), "{route}");
        assert_eq!(world.settled_log(&format!("{route}-1")).await.len(), 1, "{route}");
    }
    assert!(was_hung_up(&world, "folded-1").await);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_wants_repetition_gets_it() {
    let tag = format!("{}\nguards = {{ repetition = \"tag\" }}", patient());
    let world = Setup::new()
        .alone("cut", "openai", &["loop+n=60"], &patient())
        .alone("tag", "openai", &["loop+n=60"], &tag)
        .start()
        .await;
    let off: &[_] = &[("x-backstay-guards", "off")];
    let asks = "Repeat the same sentence 60 times.";
    let rows = [("cut", off, HELLO), ("tag", &[][..], HELLO), ("cut", &[][..], asks)];
    for (route, headers, text) in rows {
        let seen = ask(&world, route, headers, text).await;
        assert_eq!(not_whole(&seen, &told::stream(OPENAI, &seen)), [""; 0], "{route} {text}");
    }
    let seen = ask(&world, "cut", &[], HELLO).await;
    assert_eq!(told::stream(OPENAI, &seen).errors.len(), 1, "else this test shows nothing");
    let seen = ask(&world, "cut", &[("x-backstay-guards", "on")], HELLO).await;
    assert_eq!(seen.status, 400, "{}", seen.text());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quiet_refusal_is_told_and_goes_on_only_where_the_route_says_so() {
    let next = format!("{ROUTE}\non_quiet_refusal = \"next_tier\"");
    let world = Setup::new()
        .backed("told", "openai", &["quiet-refusal"], ROUTE)
        .backed("next", "openai", &["quiet-refusal"], &next)
        .alone("alone", "openai", &["quiet-refusal"], &next)
        .start()
        .await;
    for (route, tier) in [("told", "1"), ("next", "2"), ("alone", "1")] {
        for mode in [None, Some("buffered"), Some("windowed")] {
            let mut body = request(OPENAI, route, HELLO);
            let headers: Vec<_> =
                mode.map(|mode| ("x-backstay-stream", mode)).into_iter().collect();
            body["stream"] = json!(mode.is_some());
            let seen = world.ask_with(OPENAI, &headers, &body).await;
            assert_eq!(
                (seen.status, seen.header("x-backstay-tier")),
                (200, tier),
                "{route} {mode:?}"
            );
            let notes = seen.header("x-backstay-notes");
            assert!(notes.contains("guard refusal"), "{route} {mode:?}: {notes}");
        }
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_without_end_is_cut_off_at_its_most_tokens() {
    let most = format!("{}\nguards = {{ most_tokens = 100 }}", patient());
    let world = Setup::new()
        .alone("long", "openai", &["healthy+n=2000+size=8000+gap=2ms"], &most)
        .start()
        .await;
    let seen = ask(&world, "long", &[], HELLO).await;
    let told = told::stream(OPENAI, &seen);
    assert_eq!(not_broken(OPENAI, &seen, &told, "reply_looping"), [""; 0]);
    assert!(was_hung_up(&world, "long-1").await);
    world.stop().await;
}
