//! The four ways in which a stream is handed on: what each rescues, what each tells, and that none
//! ever ends something cut like something whole.

use std::time::Duration;

use backstay::policy::StreamMode;
use backstay_wire::Dialect;
use futures_util::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use crate::client::{Line, Seen};
use crate::hang_up::{SOON, arrived, noticed};
use crate::streams::{ROUTE, not_broken, not_whole};
use crate::told;
use crate::world::{
    HELLO, Setup, TICKET, TRIAGE, World, pairs, provider, request, short, start, streamed,
};

const OPENAI: Dialect = Dialect::OpenaiChat;

/// What stands before the text in an event that has any.
const TEXT: &str = "\"content\":\"";

/// What a mode makes of a failure.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Does {
    /// Rerouted: the caller never knows.
    Saves,
    /// Told in the stream, once.
    Tells,
}

use Does::{Saves, Tells};

/// Failures, and what `passthrough`, `gate`, `windowed` and `buffered` make of each. The texts are
/// shorter than a window.
#[rustfmt::skip]
const FAILURES: &[(&str, [Does; 4])] = &[
    ("stream-cut",            [Tells, Tells, Saves, Saves]),
    ("short-body",            [Tells, Tells, Saves, Saves]),
    ("stream-end-early",      [Tells, Tells, Saves, Saves]),
    ("no-finish",             [Tells, Tells, Saves, Saves]),
    ("null-finish",           [Tells, Tells, Saves, Saves]),
    ("stream-stall",          [Tells, Tells, Saves, Saves]),
    ("malformed-chunk",       [Tells, Tells, Saves, Saves]),
    ("unknown-finish",        [Tells, Tells, Saves, Saves]),
    ("error-event",           [Tells, Tells, Saves, Saves]),
    ("stream-cut+at=0",       [Tells, Saves, Saves, Saves]),
    ("stream-stall+at=0",     [Tells, Saves, Saves, Saves]),
    ("malformed-chunk+at=0",  [Tells, Saves, Saves, Saves]),
    ("error-event+at=0",      [Tells, Saves, Saves, Saves]),
    ("empty-content",         [Tells, Saves, Saves, Saves]),
    ("keepalive-forever",     [Tells, Saves, Saves, Saves]),
    ("status-500",            [Saves, Saves, Saves, Saves]),
    ("silence",               [Saves, Saves, Saves, Saves]),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_failure_is_rescued_or_told_once_as_its_mode_promises() {
    let route = ROUTE.replace("\"6s\"", "\"9s\"");
    let name = |at: usize, mode: StreamMode| format!("m{at}-{}", mode.name());
    let pair = |at: usize, mode: StreamMode| pairs().nth((at + mode as usize) % 4).unwrap();
    let mut setup = Setup::new();
    let rows = || {
        (0..FAILURES.len()).flat_map(|at| StreamMode::ALL.into_iter().map(move |mode| (at, mode)))
    };
    for (at, mode) in rows() {
        let first = match FAILURES[at].0 {
            plain if plain.contains('+') => plain.to_owned(),
            plain => format!("{plain}+size=400"),
        };
        let more = format!("{route}\nstream = \"{}\"", mode.name());
        setup = setup.backed(&name(at, mode), provider(pair(at, mode).1), &[&first], &more);
    }
    let world = setup.start().await;
    let one = async |at: usize, mode: StreamMode| {
        let (behaviour, does) = FAILURES[at];
        let (caller, _) = pair(at, mode);
        let seen = world.ask(caller, &streamed(request(caller, &name(at, mode), HELLO))).await;
        let told = told::stream(caller, &seen);
        let mut wrongs = match does[mode as usize] {
            Saves => not_whole(&seen, &told),
            Tells => {
                let code = told.errors.first().and_then(|error| error["error"]["code"].as_str());
                not_broken(caller, &seen, &told, code.unwrap_or_default())
            }
        };
        let tier = if does[mode as usize] == Saves { "2" } else { "1" };
        if seen.header("x-backstay-tier") != tier {
            wrongs.push(format!("not of tier {tier}: {:?}", seen.headers));
        }
        let mode = mode.name();
        wrongs.into_iter().map(|wrong| format!("{behaviour} {mode}: {wrong}")).collect::<Vec<_>>()
    };
    let found = join_all(rows().map(|(at, mode)| one(at, mode))).await;
    let wrongs: Vec<String> = found.into_iter().flatten().collect();
    world.stop().await;
    assert!(wrongs.is_empty(), "\n{}", wrongs.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_good_stream_is_whole_in_every_mode_and_pair() {
    let behaviours =
        ["healthy+size=4000", "healthy+size=40", "no-done+size=4000", "crlf", "double-terminal"];
    let mut setup = Setup::new();
    for (at, behaviour) in behaviours.iter().enumerate() {
        for (_, target) in pairs().take(2) {
            let name = format!("w{at}-{}", short(target));
            setup = setup.alone(&name, provider(target), &[behaviour], ROUTE);
        }
    }
    let world = setup.start().await;
    for at in 0..behaviours.len() {
        for (caller, target) in pairs() {
            let name = format!("w{at}-{}", short(target));
            let mut texts = Vec::new();
            for mode in StreamMode::ALL {
                let seen = ask_in(&world, caller, mode.name(), &name, HELLO).await;
                let told = told::stream(caller, &seen);
                assert_eq!(not_whole(&seen, &told), [""; 0], "{} {name}", mode.name());
                texts.push(told.text);
            }
            texts.dedup();
            assert_eq!(texts.len(), 1, "{name}: the modes tell different texts");
        }
    }
    world.stop().await;
}

async fn ask_in(world: &World, caller: Dialect, mode: &str, route: &str, text: &str) -> Seen {
    let body = streamed(request(caller, route, text));
    world.ask_with(caller, &[("x-backstay-stream", mode)], &body).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_window_never_shows_the_last_of_what_a_broken_stream_said() {
    let route = format!("{ROUTE}\nwindow = {{ tokens = 100 }}");
    let rows = [
        "stream-cut+size=4000",
        "malformed-chunk+size=4000",
        "error-event+size=4000",
        "stream-stall+size=4000",
        "stream-end-early+size=4000",
    ];
    let mut setup = Setup::new();
    for (at, behaviour) in rows.iter().enumerate() {
        setup = setup.alone(&format!("v{at}"), "openai", &[behaviour], &route);
    }
    let world = setup.start().await;
    for (at, behaviour) in rows.iter().enumerate() {
        let [all, less] = ["passthrough", "windowed"].map(|mode| {
            let world = &world;
            async move {
                let seen = ask_in(world, OPENAI, mode, &format!("v{at}"), HELLO).await;
                let told = told::stream(OPENAI, &seen);
                assert_eq!(
                    (told.errors.len(), told.terminals, told.late),
                    (1, 0, 0),
                    "{behaviour}"
                );
                told.text
            }
        });
        let (all, less) = (all.await, less.await);
        assert!(!less.is_empty() && all.starts_with(&less), "{behaviour}: {less}");
        assert!(all.len() - less.len() >= 400, "{behaviour}: {} of {}", less.len(), all.len());
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_head_and_the_text_come_when_the_mode_lets_them() {
    let slow = "healthy+n=30+gap=50ms+size=300";
    let window = format!("{ROUTE}\nwindow = {{ tokens = 25 }}");
    let timed = format!("{ROUTE}\nwindow = {{ tokens = 9000, time = \"300ms\" }}");
    let route = ROUTE.replace("\"600ms\"", "\"3s\"");
    let world = Setup::new()
        .alone("late", "openai", &["slow-first+wait=900ms"], &route)
        .alone("steady", "openai", &[slow], &window)
        .alone("timed", "openai", &[slow], &timed)
        .start()
        .await;
    // What is waited for, and from when to when it must come: the text takes 1.5 s.
    let rows = [
        ("late", "passthrough", "HTTP/1.1 200", 0, 800),
        ("late", "gate", "HTTP/1.1 200", 900, 2_500),
        ("steady", "gate", TEXT, 0, 450),
        ("steady", "windowed", TEXT, 450, 1_300),
        ("timed", "windowed", TEXT, 300, 700),
        ("steady", "buffered", TEXT, 1_400, 4_000),
    ];
    for (route, mode, mark, least, most) in rows {
        let body = streamed(request(OPENAI, route, HELLO)).to_string();
        let mut line = Line::open(world.address()).await;
        let began = Instant::now();
        let header = [("x-backstay-stream", mode)];
        line.ask(start(OPENAI), &header, body.as_bytes()).await.expect("sent");
        line.read_until(mark).await;
        let took = began.elapsed();
        let (least, most) = (Duration::from_millis(least), Duration::from_millis(most));
        assert!(took >= least && took <= most, "{route} {mode}: {took:?}");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_below_its_pace_goes_elsewhere_and_alone_it_is_shown_with_a_note() {
    // 10 bytes every 60 ms are some 40 tokens a second.
    let slow = "healthy+n=40+gap=60ms+size=400";
    let gate =
        |floor: u32| format!("{ROUTE}\ngate = {{ tokens = 20, min_tokens_per_second = {floor} }}");
    let world = Setup::new()
        .backed("slow", "openai", &[slow], &gate(400))
        .alone("only", "openai", &[slow], &gate(400))
        .backed("good", "openai", &[slow], &gate(5))
        .start()
        .await;
    let rows = [("slow", "2", false), ("only", "1", true), ("good", "1", false)];
    for (route, tier, noted) in rows {
        let seen = world.ask(OPENAI, &streamed(request(OPENAI, route, HELLO))).await;
        assert_eq!(not_whole(&seen, &told::stream(OPENAI, &seen)), [""; 0], "{route}");
        assert_eq!(seen.header("x-backstay-tier"), tier, "{route}");
        let note = seen.header("x-backstay-notes");
        assert_eq!(note.contains("20 tokens within"), noted, "{route}: {note}");
    }
    let first = world.settled_log("slow-1").await;
    assert_eq!(first.len(), 1, "a slow target is left at once");
    let metrics = world.get("/metrics").await.text();
    let counted = "backstay_attempts_total{target=\"slow-1\",fault=\"provider_too_slow\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_callers_word_is_obeyed_unless_it_would_show_what_is_to_be_checked() {
    let world = Setup::new()
        .alone("text", "openai", &["healthy"], ROUTE)
        .alone("checked", "openai", &["healthy"], &format!("{ROUTE}\n{TRIAGE}"))
        .alone("let", "openai", &["healthy"], &format!("{ROUTE}\n{TRIAGE}\nstream = \"windowed\""))
        .start()
        .await;
    let rows = [
        ("text", "Windowed", 200, ""),
        ("text", "fast", 400, "`passthrough`, `gate`, `windowed`, `buffered`"),
        ("checked", "buffered", 200, ""),
        ("checked", "gate", 400, "it may be `buffered`"),
        ("let", "windowed", 200, ""),
        ("let", "passthrough", 400, "it may be `windowed`, `buffered`"),
    ];
    for (route, mode, status, words) in rows {
        let seen = ask_in(&world, OPENAI, mode, route, TICKET).await;
        assert_eq!(seen.status, status, "{route} {mode}: {}", seen.text());
        let message = seen.json()["error"]["message"].as_str().unwrap_or_default().to_owned();
        assert!(message.contains(words), "{route} {mode}: {message}");
        if status == 400 {
            assert_eq!(seen.header("x-backstay-code"), "invalid_request");
        }
    }
    // A call in one piece has no mode.
    let body = request(OPENAI, "text", HELLO);
    let seen = world.ask_with(OPENAI, &[("x-backstay-stream", "fast")], &body).await;
    assert_eq!(seen.status, 200);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tool_calls_go_at_once_in_passthrough_and_are_judged_in_the_other_modes() {
    let world =
        Setup::new().backed("bad", "openai", &["tool-args-invalid"; 8], ROUTE).start().await;
    for (mode, tier) in [("passthrough", "1"), ("gate", "2"), ("windowed", "2"), ("buffered", "2")]
    {
        let mut body = streamed(request(OPENAI, "bad", HELLO));
        body["tools"] = crate::pairs::tools(OPENAI);
        let seen = world.ask_with(OPENAI, &[("x-backstay-stream", mode)], &body).await;
        let told = told::stream(OPENAI, &seen);
        assert_eq!((told.terminals, told.errors.len()), (1, 0), "{mode}: {}", seen.text());
        assert_eq!(seen.header("x-backstay-tier"), tier, "{mode}: {}", seen.text());
        // The second tier answers in words.
        assert_eq!(told.calls.is_empty(), tier == "2", "{mode}: {:?}", told.calls);
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_caller_who_leaves_frees_the_provider_at_once_in_every_mode() {
    let long = ROUTE.replace("\"6s\"", "\"20s\"").replace("\"3s\"", "\"15s\"");
    let mut setup = Setup::new();
    for mode in StreamMode::ALL {
        let more = format!("{long}\nwindow = {{ tokens = 20 }}\nstream = \"{}\"", mode.name());
        let first = format!("{}-1", mode.name());
        setup = setup
            .target(&first, "openai", &["healthy+n=200+gap=40ms"])
            .and("max_concurrency = 1")
            .route(mode.name(), &[&first], &more);
    }
    let world = setup.start().await;
    for mode in StreamMode::ALL {
        let (name, model) = (mode.name(), format!("{}-1", mode.name()));
        for turn in 1..=2 {
            let body = streamed(request(OPENAI, name, HELLO)).to_string();
            let mut line = Line::open(world.address()).await;
            line.ask(start(OPENAI), &[], body.as_bytes()).await.expect("sent");
            // The second call has the only place: the first has given it back.
            arrived(&world, &model, turn).await;
            if mode != StreamMode::Buffered {
                line.read_until("data:").await;
            }
            drop(line);
            let after = noticed(&world, &model).await;
            assert!(after < SOON, "{name}: noticed after {after:?}");
        }
    }
    let metrics = world.get("/metrics").await.text();
    assert!(metrics.contains("backstay_calls_in_flight 0"), "{metrics}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_answers_are_whole_in_every_mode() {
    let world =
        Setup::new().alone("several", "openai", &["healthy+size=2000"], ROUTE).start().await;
    for mode in StreamMode::ALL {
        let mut body = streamed(request(OPENAI, "several", HELLO));
        body["n"] = json!(2);
        let seen = world.ask_with(OPENAI, &[("x-backstay-stream", mode.name())], &body).await;
        let told = told::stream(OPENAI, &seen);
        assert_eq!(
            (seen.status, told.terminals, told.errors.len()),
            (200, 1, 0),
            "{}",
            mode.name()
        );
    }
    world.stop().await;
}
