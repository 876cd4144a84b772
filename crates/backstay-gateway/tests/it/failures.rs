//! Failures of the transport and of the service: S2's tables, row by row, alone and with a healthy
//! second tier, in both dialects.

use std::time::Duration;

use backstay_mock::{End, Entry};
use backstay_wire::Dialect;
use futures_util::future::join_all;

use crate::client::Seen;
use crate::told;
use crate::world::{BOTH, HELLO, Setup, World, provider, request, short, streamed};

const DEADLINE: Duration = Duration::from_secs(4);

/// Timers short enough for a test, in the order of a real route's.
const TIMERS: &str = "deadline = \"4s\"\n\
    timeouts = { connect = \"500ms\", first_token = \"500ms\", gap = \"400ms\", total = \"700ms\" }\n\
    max_output_tokens = 300";

/// What one behaviour leads to.
struct Row {
    behaviour: &'static str,
    /// Status and code where nobody else is there. 0: an answer.
    alone: (u16, &'static str),
    /// Requests the provider sees then.
    tries: usize,
    /// Where a healthy tier is behind: requests to the first. The second answers, unless the
    /// failure is the request's own (then it is not asked).
    backed: usize,
}

const fn row(
    behaviour: &'static str,
    alone: (u16, &'static str),
    tries: usize,
    backed: usize,
) -> Row {
    Row { behaviour, alone, tries, backed }
}

/// A failure that the request itself brought about: no other tier is asked.
const OWN: usize = usize::MAX;

const ANSWERED: (u16, &str) = (0, "");

#[rustfmt::skip]
const ROWS: &[Row] = &[
    // behaviour             alone: status, code                     tries  first of two tiers
    row("status-400",        (400, "request_rejected"),              1, OWN),
    row("status-401",        (502, "provider_auth"),                 1, 1),
    row("status-402",        (429, "provider_quota_exhausted"),      1, 1),
    row("status-403",        (502, "provider_auth"),                 1, 1),
    row("status-404",        (404, "model_not_found"),               1, 1),
    row("model-gone",        (404, "model_not_found"),               1, 1),
    row("status-408",        (504, "provider_timeout"),              3, 2),
    row("status-409",        (502, "provider_error"),                3, 2),
    row("status-413",        (413, "request_too_large"),             1, OWN),
    row("status-422",        (422, "request_rejected"),              1, OWN),
    row("context-exceeded",  (400, "context_exceeded"),              1, 1),
    row("quota-429",         (429, "provider_quota_exhausted"),      1, 1),
    row("status-500",        (502, "provider_error"),                3, 2),
    row("status-500+times=1", ANSWERED,                              2, 2),
    row("status-502",        (502, "provider_error"),                3, 2),
    row("status-504",        (504, "provider_timeout"),              3, 2),
    row("reset",             (502, "provider_connection_lost"),      3, 2),
    row("reset+times=1",     ANSWERED,                               2, 2),
    row("silence",           (504, "provider_total_timeout"),        3, 1),
    row("slow-headers+wait=5s", (504, "provider_total_timeout"),     3, 1),
    row("slow-first+wait=5s", (504, "provider_total_timeout"),       3, 1),
    row("slow-first+wait=250ms", ANSWERED,                           1, 1),
    row("short-body",        (502, "provider_connection_lost"),      3, 2),
    row("reset-after-headers", (502, "provider_connection_lost"),    3, 2),
    row("hang-body",         (504, "provider_total_timeout"),        3, 1),
];

/// Rows whose waits begin at a second: they get a longer deadline.
#[rustfmt::skip]
const SLOW: &[Row] = &[
    row("status-429+times=1", ANSWERED,                              2, 2),
    row("status-429",        (429, "provider_rate_limited"),         3, 2),
    row("status-503",        (503, "provider_overloaded"),           3, 2),
    row("status-503-html",   (503, "provider_overloaded"),           3, 2),
    row("status-529",        (503, "provider_overloaded"),           3, 2),
];

/// Long enough for two waits of the throttled kind, at most 1 and 2 s, and for a quarter of it to
/// be longer than the first.
const SLOW_TIMERS: &str = "deadline = \"6s\"\n\
    timeouts = { connect = \"500ms\", first_token = \"500ms\", gap = \"400ms\", total = \"700ms\" }\n\
    max_output_tokens = 300";

/// Checks one call of a table, from both ends.
fn wrongs(
    row: &Row,
    dialect: Dialect,
    seen: &Seen,
    (first, second): (&[Entry], &[Entry]),
    deadline: Duration,
) -> Vec<String> {
    let mut wrongs = Vec::new();
    let backed = !second.is_empty() || seen.header("x-backstay-tier") == "2";
    let (status, code) = row.alone;
    let fails = status != 0 && !backed;
    if fails {
        wrongs.extend(told::not_typed(dialect, seen, status, code));
        if seen.header("x-backstay-outcome") != "failed" {
            wrongs.push(format!("outcome {}", seen.header("x-backstay-outcome")));
        }
    } else {
        let told = told::plain(dialect, &seen.json());
        if seen.status != 200 || told.text.is_empty() || told.finish.is_none() {
            wrongs.push(format!("no answer: {} {}", seen.status, seen.text()));
        }
    }
    let sent = first.len() + second.len();
    if seen.attempts() + seen.resent() != sent {
        wrongs.push(format!("{} attempts told, the provider saw {sent}", seen.attempts()));
    }
    wrongs.extend(after_deadline(seen, first, second, deadline));
    wrongs
}

/// Nothing is answered or sent after the deadline, and nothing goes on when the call is over.
fn after_deadline(
    seen: &Seen,
    first: &[Entry],
    second: &[Entry],
    deadline: Duration,
) -> Vec<String> {
    let mut wrongs = Vec::new();
    if seen.took > deadline + Duration::from_millis(150) {
        wrongs.push(format!("took {:?} of {deadline:?}", seen.took));
    }
    let all: Vec<&Entry> = first.iter().chain(second).collect();
    let Some(began) = all.iter().map(|entry| entry.at_ms).min_by(f64::total_cmp) else {
        return wrongs;
    };
    let limit = deadline.as_secs_f64() * 1000.0;
    for entry in all {
        if entry.at_ms - began > limit {
            wrongs.push(format!("a request was sent {:.0} ms in", entry.at_ms - began));
        }
        if entry.end == End::Pending {
            wrongs.push("a request is still under way after the call's end".into());
        }
    }
    wrongs
}

async fn play(rows: &[Row], timers: &str, deadline: Duration) {
    let mut setup = Setup::new();
    for (at, row) in rows.iter().enumerate() {
        for dialect in BOTH {
            let name = format!("r{at}-{}", short(dialect));
            let steps = [row.behaviour];
            setup = setup.alone(&name, provider(dialect), &steps, timers).backed(
                &format!("{name}-two"),
                provider(dialect),
                &steps,
                timers,
            );
        }
    }
    let world = setup.start().await;
    let calls = rows.iter().enumerate().flat_map(|(at, row)| {
        BOTH.map(|dialect| (row, dialect, format!("r{at}-{}", short(dialect))))
    });
    let found = join_all(calls.map(|call| one(&world, call, deadline))).await;
    let wrongs: Vec<String> = found.into_iter().flatten().collect();
    world.stop().await;
    assert!(wrongs.is_empty(), "\n{}", wrongs.join("\n"));
}

async fn one(
    world: &World,
    (row, dialect, name): (&Row, Dialect, String),
    deadline: Duration,
) -> Vec<String> {
    let two = format!("{name}-two");
    let (asked, asked_two) = (request(dialect, &name, HELLO), request(dialect, &two, HELLO));
    let (alone, backed) =
        futures_util::future::join(world.ask(dialect, &asked), world.ask(dialect, &asked_two))
            .await;
    let mut found = Vec::new();
    let log = world.settled_log(&format!("{name}-1")).await;
    let told = wrongs(row, dialect, &alone, (&log, &[]), deadline);
    found.extend(told.into_iter().map(|wrong| format!("{} {name} alone: {wrong}", row.behaviour)));
    if log.len() != row.tries + alone.resent() {
        found.push(format!(
            "{} {name} alone: {} tries, not {}",
            row.behaviour,
            log.len(),
            row.tries
        ));
    }
    let first = world.settled_log(&format!("{two}-1")).await;
    let second = world.settled_log(&format!("{two}-2")).await;
    let own = row.backed == OWN;
    let told = wrongs(row, dialect, &backed, (&first, &second), deadline);
    found.extend(told.into_iter().map(|wrong| format!("{} {name} backed: {wrong}", row.behaviour)));
    let want = match row.alone {
        ANSWERED => (row.tries, 0),
        _ if own => (1, 0),
        _ => (row.backed, 1),
    };
    let had = (first.len() - backed.resent(), second.len());
    if had != want {
        found.push(format!("{} {name} backed: requests {had:?}, not {want:?}", row.behaviour));
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_failure_ends_as_the_table_says_alone_and_with_a_second_tier() {
    play(ROWS, TIMERS, DEADLINE).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_provider_that_is_overloaded_for_good_is_asked_thrice_and_left_after_two() {
    play(SLOW, SLOW_TIMERS, Duration::from_secs(6)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_streamed_call_meets_the_same_failures_before_its_first_content() {
    let mut setup = Setup::new();
    let behaviours = [
        ("status-500", 502, "provider_error", 3, 2),
        ("status-400", 400, "request_rejected", 1, OWN),
        ("reset", 502, "provider_connection_lost", 3, 2),
        ("silence", 504, "provider_first_token_timeout", 3, 1),
        ("slow-first+wait=5s", 504, "provider_first_token_timeout", 3, 1),
    ];
    for (at, (behaviour, ..)) in behaviours.iter().enumerate() {
        for dialect in BOTH {
            let name = format!("s{at}-{}", short(dialect));
            setup = setup.alone(&name, provider(dialect), &[behaviour], TIMERS).backed(
                &format!("{name}-two"),
                provider(dialect),
                &[behaviour],
                TIMERS,
            );
        }
    }
    let world = setup.start().await;
    let one = async |at: usize, dialect: Dialect| {
        let (behaviour, status, code, tries, backed) = behaviours[at];
        let name = format!("s{at}-{}", short(dialect));
        let body = streamed(request(dialect, &name, HELLO));
        let two = streamed(request(dialect, &format!("{name}-two"), HELLO));
        let (alone, rescued) =
            futures_util::future::join(world.ask(dialect, &body), world.ask(dialect, &two)).await;
        let mut wrongs = told::not_typed(dialect, &alone, status, code);
        let log = world.settled_log(&format!("{name}-1")).await;
        wrongs.extend(after_deadline(&alone, &log, &[], DEADLINE));
        if log.len() != tries + alone.resent() {
            wrongs.push(format!("{} tries, not {tries}", log.len()));
        }
        let first = world.settled_log(&format!("{name}-two-1")).await.len();
        if backed == OWN {
            wrongs.extend(told::not_typed(dialect, &rescued, status, code));
        } else {
            let told = told::stream(dialect, &rescued);
            if rescued.status != 200 || told.terminals != 1 || told.text.is_empty() || told.late > 0
            {
                wrongs.push(format!("not rescued: {} {told:?}", rescued.status));
            }
            if first != backed + rescued.resent() {
                wrongs.push(format!("{first} tries before the second tier, not {backed}"));
            }
        }
        wrongs.into_iter().map(|w| format!("{behaviour} {name}: {w}")).collect::<Vec<_>>()
    };
    let calls = (0..behaviours.len()).flat_map(|at| BOTH.map(|dialect| one(at, dialect)));
    let wrongs: Vec<String> = join_all(calls).await.into_iter().flatten().collect();
    world.stop().await;
    assert!(wrongs.is_empty(), "\n{}", wrongs.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_there_is_said_so_and_a_live_tier_takes_over_at_once() {
    let mut setup = Setup::new();
    for place in ["refused", "refused_too", "nowhere", "nowhere_too"] {
        setup = setup.alone(place, place, &["healthy"], TIMERS).backed(
            &format!("{place}-two"),
            place,
            &["healthy"],
            TIMERS,
        );
    }
    let world = setup.start().await;
    let one = async |place: &str| {
        let dialect =
            if place.ends_with("_too") { Dialect::Anthropic } else { Dialect::OpenaiChat };
        let alone = world.ask(dialect, &request(dialect, place, HELLO)).await;
        let mut wrongs = told::not_typed(dialect, &alone, 502, "provider_unreachable");
        if alone.attempts() != 3 {
            wrongs.push(format!("{} attempts", alone.attempts()));
        }
        let backed = world.ask(dialect, &request(dialect, &format!("{place}-two"), HELLO)).await;
        let had = (backed.status, backed.attempts(), backed.header("x-backstay-tier").to_owned());
        if had != (200, 2, "2".into()) {
            wrongs.push(format!("backed: {had:?} {}", backed.text()));
        }
        wrongs.into_iter().map(|w| format!("{place}: {w}")).collect::<Vec<_>>()
    };
    let places = ["refused", "refused_too", "nowhere", "nowhere_too"];
    let wrongs: Vec<String> = join_all(places.map(one)).await.into_iter().flatten().collect();
    assert!(world.mock.log().iter().all(|entry| entry.model.ends_with("-two-2")));
    world.stop().await;
    assert!(wrongs.is_empty(), "\n{}", wrongs.join("\n"));
}

/// Milliseconds between the requests of a log.
fn gaps(log: &[Entry]) -> Vec<f64> {
    log.windows(2).map(|pair| pair[1].at_ms - pair[0].at_ms).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_after_is_a_floor_in_every_form_it_comes_in() {
    let forms = [
        ("ms", "status-429+after=ms:1300+times=1", 1290.0),
        ("seconds", "status-429+after=2+times=1", 1990.0),
        ("fraction", "status-503+after=1.2+times=1", 1190.0),
        // A date has whole seconds, so up to one of the three is already over.
        ("date", "status-429+after=date:3+times=1", 1900.0),
        ("garbage", "status-429+after=garbage+times=1", 0.0),
    ];
    let mut setup = Setup::new();
    for (name, behaviour, _) in forms {
        setup = setup.alone(name, "openai", &[behaviour], SLOW_TIMERS);
    }
    let world = setup.start().await;
    let one = async |(name, _, least): (&str, &str, f64)| {
        let seen = world.ask(Dialect::OpenaiChat, &request(Dialect::OpenaiChat, name, HELLO)).await;
        let log = world.settled_log(&format!("{name}-1")).await;
        assert_eq!((seen.status, log.len()), (200, 2), "{name}: {}", seen.text());
        let gap = gaps(&log)[0];
        assert!(gap >= least && gap < least + 2200.0, "{name}: asked again after {gap} ms");
    };
    join_all(forms.map(one)).await;
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_after_past_the_deadline_is_told_to_the_caller_and_not_waited_for() {
    let world = Setup::new()
        .alone("far", "openai", &["status-429+after=30"], TIMERS)
        .alone("farther", "openai", &["status-503+after=3600"], TIMERS)
        .backed("two", "openai", &["status-429+after=30"], TIMERS)
        .start()
        .await;
    let dialect = Dialect::OpenaiChat;
    for (name, status, code, after) in
        [("far", 429, "provider_rate_limited", "30"), ("farther", 503, "provider_overloaded", "60")]
    {
        let seen = world.ask(dialect, &request(dialect, name, HELLO)).await;
        assert_eq!(told::not_typed(dialect, &seen, status, code), [""; 0], "{}", seen.text());
        assert_eq!(seen.header("retry-after"), after);
        assert!(seen.took < Duration::from_millis(300), "{name} waited {:?}", seen.took);
        assert_eq!(world.settled_log(&format!("{name}-1")).await.len(), 1);
    }
    let seen = world.ask(dialect, &request(dialect, "two", HELLO)).await;
    assert_eq!((seen.status, seen.header("x-backstay-tier")), (200, "2"));
    assert!(seen.took < Duration::from_millis(300), "waited {:?}", seen.took);
    assert_eq!(world.settled_log("two-1").await.len(), 1);
    // It asked to be left alone, and other calls do so.
    let again = world.ask(dialect, &request(dialect, "two", HELLO)).await;
    assert_eq!((again.status, again.attempts()), (200, 1));
    assert_eq!(world.settled_log("two-1").await.len(), 1);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spend_limit_told_as_a_400_is_a_spent_quota_and_sends_the_call_elsewhere() {
    let world = Setup::new()
        .alone("spent", "anthropic", &["quota-400"], TIMERS)
        .backed("two", "anthropic", &["quota-400"], TIMERS)
        .start()
        .await;
    let dialect = Dialect::Anthropic;
    let seen = world.ask(dialect, &request(dialect, "spent", HELLO)).await;
    assert_eq!(told::not_typed(dialect, &seen, 429, "provider_quota_exhausted"), [""; 0]);
    assert_eq!(world.settled_log("spent-1").await.len(), 1);
    let seen = world.ask(dialect, &request(dialect, "two", HELLO)).await;
    assert_eq!((seen.status, seen.attempts()), (200, 2));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_veto_of_the_provider_ends_the_tries_there() {
    let world = Setup::new()
        .alone("vetoed", "openai", &["status-500+should_retry=false"], TIMERS)
        .backed("two", "openai", &["status-500+should_retry=false"], TIMERS)
        .start()
        .await;
    let dialect = Dialect::OpenaiChat;
    let seen = world.ask(dialect, &request(dialect, "vetoed", HELLO)).await;
    assert_eq!(told::not_typed(dialect, &seen, 502, "provider_error"), [""; 0]);
    assert_eq!(world.settled_log("vetoed-1").await.len(), 1);
    let seen = world.ask(dialect, &request(dialect, "two", HELLO)).await;
    assert_eq!((seen.status, seen.attempts()), (200, 2));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_after_the_deadline_and_the_caller_hears_before_it() {
    let quick = "deadline = \"1200ms\"\n\
        timeouts = { first_token = \"10s\", gap = \"10s\", total = \"10s\" }\nmax_attempts = 6";
    let world = Setup::new()
        .alone("silent", "openai", &["silence"], quick)
        .alone("failing", "openai", &["status-500+delay=150ms"], quick)
        .backed("both", "openai", &["silence"], quick)
        .target("mute-1", "openai", &["silence"])
        .target("mute-2", "anthropic", &["silence"])
        .route("mute", &["mute-1", "mute-2"], quick)
        .start()
        .await;
    let one = async |name: &str| {
        let dialect = Dialect::OpenaiChat;
        let seen = world.ask(dialect, &request(dialect, name, HELLO)).await;
        let mut logs = world.settled_log(&format!("{name}-1")).await;
        logs.extend(world.settled_log(&format!("{name}-2")).await);
        let wrongs = after_deadline(&seen, &logs, &[], Duration::from_millis(1200));
        assert_eq!(wrongs, [""; 0], "{name}");
        for entry in &logs {
            // Whatever was under way is cancelled, not left to itself.
            let ended = entry.ended_at_ms.unwrap_or(f64::MAX);
            assert!(ended - logs[0].at_ms < 1300.0, "{name}: {entry:?}");
        }
        (seen, logs.len())
    };
    let (silent, failing, both, mute) =
        tokio::join!(one("silent"), one("failing"), one("both"), one("mute"));
    assert_eq!(silent.0.status, 504, "{}", silent.0.text());
    // The jitter decides whether the last try still ends in time or is cut by the deadline.
    assert!([502, 504].contains(&failing.0.status), "{}", failing.0.text());
    assert_eq!((both.0.status, both.1), (200, 2), "the second tier still had its time");
    assert_eq!((mute.0.status, mute.1), (504, 2), "{}", mute.0.text());
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_does_not_take_the_request_hides_no_reply_that_broke_before() {
    // The first target, the second, and the code that is told.
    let rows = [
        ("stream-cut", "status-400", "provider_stream_cut"),
        ("empty-content", "status-404", "reply_empty"),
        ("malformed-chunk", "context-exceeded", "reply_malformed"),
        ("no-finish", "status-422", "provider_stream_cut"),
        // Nobody had taken the request before.
        ("status-500", "status-400", "request_rejected"),
        ("silence", "status-404", "model_not_found"),
        // The last is a fault of its own.
        ("stream-cut", "status-500", "provider_error"),
    ];
    let route = format!("{TIMERS}\nupstream = \"stream\"\nmax_attempts = 2");
    let mut setup = Setup::new();
    for (at, (first, second, _)) in rows.iter().enumerate() {
        let [one, two] = [format!("h{at}-1"), format!("h{at}-2")];
        setup = setup.target(&one, "openai", &[first]).target(&two, "openai", &[second]).route(
            &format!("h{at}"),
            &[&one, &two],
            &route,
        );
    }
    let world = setup.start().await;
    for (at, (first, second, code)) in rows.iter().enumerate() {
        let body = request(Dialect::OpenaiChat, &format!("h{at}"), HELLO);
        let seen = world.ask(Dialect::OpenaiChat, &body).await;
        assert_eq!(seen.header("x-backstay-code"), *code, "{first}, {second}: {}", seen.text());
        assert_eq!(seen.attempts(), 2, "{first}, {second}");
        let is_of_both = seen.text().contains(&format!("h{at}-1: "));
        let is_first = !["request_rejected", "model_not_found", "provider_error"].contains(code);
        assert_eq!(is_of_both, is_first, "{first}, {second}: {}", seen.text());
    }
    world.stop().await;
}
