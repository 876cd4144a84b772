//! The sums in the story of a call: every wait, refusal and skip with the numbers that led to it.

use std::time::Duration;

use backstay::record::Step;
use backstay_wire::Dialect;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::client::Seen;
use crate::queue::{asked, keeps, one_seat, quick, read, stands};
use crate::spend::{keys, spends};
use crate::world::{HELLO, Setup, TICKET, TRIAGE, World, request};

const OPENAI: Dialect = Dialect::OpenaiChat;

const ROUTE: &str = "deadline = \"10s\"\nmax_attempts = 3\nmax_output_tokens = 300";

async fn ask(world: &World, name: &str) -> Seen {
    world.ask(OPENAI, &request(OPENAI, name, HELLO)).await
}

/// Every wait, skip and decision of a call, in order: `waited: …`, `TARGET: …`, `DECISION: …`.
fn story(world: &World, seen: &Seen) -> Vec<String> {
    let row = world.engine().call_log().find(seen.header("x-backstay-call-id"));
    let notes = row.expect("a log").expect("a row").trail.notes;
    let told = notes.into_iter().filter_map(|note| match note.step {
        Step::Waited { why, .. } => Some(format!("waited: {why}")),
        Step::Skipped { target, why } => Some(format!("{target}: {why}")),
        Step::Decided { next, why } => Some(format!("{next}: {why}")),
        _ => None,
    });
    told.collect()
}

/// The numbers of a `line` that reads as `form`, where each `~` stands for one. `None`: it does not.
fn read_as(line: &str, form: &str) -> Option<Vec<f64>> {
    let (mut rest, mut numbers) = (line, Vec::new());
    for (at, words) in form.split('~').enumerate() {
        if at > 0 {
            let after = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            numbers.push(rest.strip_suffix(after)?.parse().ok()?);
            rest = after;
        }
        rest = rest.strip_prefix(words)?;
    }
    rest.is_empty().then_some(numbers)
}

/// The numbers of the first line of the stories of `calls` that reads as `form`.
fn told<const N: usize>(world: &World, calls: &[Seen], form: &str) -> [f64; N] {
    let stories: Vec<Vec<String>> = calls.iter().map(|seen| story(world, seen)).collect();
    let numbers = stories.iter().flatten().find_map(|line| read_as(line, form));
    let numbers = numbers.unwrap_or_else(|| panic!("no `{form}` in {stories:#?}"));
    numbers.try_into().unwrap_or_else(|_| panic!("{form}: other numbers"))
}

fn is_near(one: f64, other: f64) -> bool {
    (one - other).abs() < 0.011
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_before_a_retry_is_the_larger_of_the_dice_and_what_was_asked() {
    let world = Setup::new()
        .alone("asked", "openai", &["status-429+after=ms:1300+times=1"], ROUTE)
        .alone("thrown", "openai", &["status-500+times=1"], ROUTE)
        .start()
        .await;
    let form = "again: wait ~ s = max(jitter ~ s of up to ~ s, server ~ s), ~ % of ~ s left";
    for (name, most, server) in [("asked", 1.0, 1.3), ("thrown", 0.5, 0.0)] {
        let seen = [ask(&world, name).await];
        let [wait, jitter, bound, asked, percent, left] = told(&world, &seen, form);
        assert!(is_near(bound, most) && is_near(asked, server), "{name}: {bound} {asked}");
        assert!(jitter <= bound && is_near(wait, jitter.max(asked)), "{name}: {wait} {jitter}");
        assert!((wait / left * 100.0 - percent).abs() < 1.1, "{name}: {wait} of {left}");
        assert!((8.0..=10.0).contains(&left), "{name}: {left} of its ten seconds");
    }
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_rate_refuses_and_what_waits_for_it_is_told_by_the_rate() {
    let world = Setup::new()
        .target("narrow", "openai", &["healthy"])
        .and("rates = { requests_per_minute = 1 }")
        .target("second", "openai", &["healthy"])
        .route("both", &["narrow", "second"], ROUTE)
        .target("lined", "openai", &["healthy"])
        .and("rates = { requests_per_minute = 300, burst = 0 }")
        .route("lined", &["lined"], ROUTE)
        .start()
        .await;
    assert_eq!(ask(&world, "both").await.header("x-backstay-tier"), "1");
    let form = "narrow: pace_rate: 1 asked of requests a minute, ~ of ~ taken, draining at ~ \
                (limit ~): wait ~ s";
    let [taken, most, _, limit, wait] = told(&world, &[ask(&world, "both").await], form);
    assert_eq!((taken, most, limit), (1.0, 1.0, 1.0));
    assert!((50.0..=75.0).contains(&wait), "one a minute, nine tenths of it: {wait}");
    let calls = join_all((0..14).map(|_| ask(&world, "lined"))).await;
    assert!(calls.iter().all(|seen| seen.status == 200));
    let form = "waited: lined: in its line: ~ waiting, cost ~ before it";
    let with_drain = format!("{form}, ~ of it leave in a second: ~ s");
    let lines = calls.iter().flat_map(|seen| story(&world, seen));
    let behind: Vec<Vec<f64>> = lines
        .filter_map(|line| read_as(&line, form).or_else(|| read_as(&line, &with_drain)))
        .collect();
    assert!(!behind.is_empty() && behind.iter().all(|sum| sum[0] >= 1.0), "{behind:?}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_queue_turns_away_is_told_by_its_room_and_its_time() {
    let world = one_seat("count = 1").start().await;
    let keeper = keeps(&world).await;
    let first = asked(&world, "batch", &quick("first")).await;
    stands(&world, 1, 1).await;
    let refused = [read(asked(&world, "batch", &quick("second")).await).await];
    let form = "end: all ~ seats are taken; the queue is full for batch: ~ of ~ calls, ~ of ~ \
                bytes, and no lower class over its share";
    let [seats, count, most, bytes, most_bytes] = told(&world, &refused, form);
    assert_eq!((seats, count, most), (1.0, 1.0, 1.0));
    assert!(bytes > 50.0 && bytes < most_bytes);
    let person = asked(&world, "interactive", &quick("person")).await;
    let form = "end: no seat came free: batch #~ left after ~ s: the queue was full and a call of \
                interactive came: ~ of ~ calls, ~ of ~ bytes";
    let [_, waited, count, most, ..] = told::<6>(&world, &[read(first).await], form);
    assert!(waited < 10.0 && (count, most) == (1.0, 1.0), "{count} of {most}");
    drop(keeper);
    assert_eq!(read(person).await.status, 200);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_late_in_the_queue_is_told_what_was_left_and_what_it_takes() {
    let world = one_seat("").start().await;
    let _keeper = keeps(&world).await;
    let headers = [("x-backstay-deadline", "1s")];
    let late = world.ask_with(OPENAI, &headers, &quick("late")).await;
    let late = [late];
    let form = "end: no seat came free: interactive #~ left after ~ s: ~ s left, it takes ~ s";
    let [_, waited, left, takes] = told(&world, &late, form);
    assert!(waited < 1.0 && left <= takes, "{waited}, {left} of {takes}");
    let [waiting, before] =
        told(&world, &late, "waited: for a seat as interactive: ~ waiting, cost ~ before it");
    assert_eq!((waiting, before), (0.0, 0.0));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spent_day_is_told_by_what_was_spent_and_what_the_call_may_take() {
    let world = keys("tokens_per_day = 1200").start().await;
    let (_, refused) = spends(&world, "paid").await;
    let refused = [refused];
    let form = "paid-1: too dear: in tokens, ~ spent + up to ~ for this call is over the ~ a day";
    let [spent, most, limit] = told(&world, &refused, form);
    assert!(spent + most > limit && spent <= limit && is_near(limit, 1200.0), "{spent} + {most}");
    let form = "end: the key `app`: in tokens, ~ spent + up to ~ for this call is over the ~ a \
                day; the limit begins anew at 00:00 UTC, in ~ s";
    let [_, _, _, left] = told(&world, &refused, form);
    assert!(left <= 86_400.0);
    world.stop().await;
}

/// A limit of two failures in a row, a short rest, and tests one at a time.
const QUICK: &str = "breaker = { failures_in_a_row = 2, shortest_rest = \"400ms\", \
                     longest_rest = \"400ms\", canary = { at_once = 1 } }";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_target_that_rests_is_told_by_what_opened_it_and_for_how_long() {
    let world = Setup::new()
        .backed("row", "openai", &["status-500"], "deadline = \"5s\"\nmax_attempts = 2")
        .target("rate-1", "openai", &["status-500"])
        .and("breaker = { failures_in_a_row = 0, min_calls = 6 }")
        .target("rate-2", "openai", &["healthy"])
        .route("rate", &["rate-1", "rate-2"], "deadline = \"5s\"\nmax_attempts = 2")
        .start()
        .await;
    for _ in 0..6 {
        ask(&world, "row").await;
        ask(&world, "rate").await;
    }
    let rest = "rests for ~ s: half of the ~ s since it first opened is ~ s within its limits, ~ s \
                by the dice";
    let form = format!(
        "row-1: availability: its breaker is open, for ~ s more; it opened: ~ failures in a row; \
         {rest}"
    );
    let [more, failures, rests, _, base, thrown] = told(&world, &[ask(&world, "row").await], &form);
    assert!(is_near(failures, 5.0) && is_near(base, 30.0), "{failures} {base}");
    assert!(more <= rests + 0.1 && is_near(rests, thrown), "{more} of {rests}");
    let form = format!(
        "rate-1: availability: its breaker is open, for ~ s more; it opened: ~ of ~ calls failed \
         in ~ s = ~ %, surely over ~ % (Wilson, z ~), ~ % allowed; {rest}"
    );
    let [_, failed, calls, _, share, bound, _, allowed, ..] =
        told::<12>(&world, &[ask(&world, "rate").await], &form);
    assert!(is_near(failed / calls * 100.0, share), "{failed} of {calls} is {share}");
    assert!(share > bound && bound > allowed, "{share} {bound} {allowed}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_no_test_is_told_the_share_and_the_next_one() {
    let steps = ["status-500", "status-500", "healthy+delay=600ms"];
    let world = Setup::new().target("sick-1", "openai", &steps).and(QUICK);
    let world = world.target("sick-2", "openai", &["healthy"]);
    let route = "deadline = \"8s\"\nmax_attempts = 2\nmax_output_tokens = 50";
    let world = world.route("sick", &["sick-1", "sick-2"], route).start().await;
    for _ in 0..2 {
        ask(&world, "sick").await;
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    let later = async {
        tokio::time::sleep(Duration::from_millis(150)).await;
        ask(&world, "sick").await
    };
    let (test, meanwhile) = tokio::join!(ask(&world, "sick"), later);
    assert_eq!(test.header("x-backstay-tier"), "1");
    let became = "it became half-open ~ s after it first opened: the rest is over";
    let form = format!(
        "sick-1: availability: it is being tested by other calls: ~ of ~ at once, for ~ s more; \
         {became}"
    );
    let [tests, most, ..] = told::<4>(&world, &[meanwhile], &form);
    assert_eq!((tests, most), (1.0, 1.0));
    let form = format!(
        "sick-1: availability: ~ % of the calls go there until it has proved itself, the next \
         after ~ more or within ~ s; {became}"
    );
    let [share, calls, within, _] = told(&world, &[ask(&world, "sick").await], &form);
    // A twentieth; two came since the test.
    assert!(is_near(share, 5.0) && (17.0..=19.0).contains(&calls), "{share} % in {calls}");
    assert!((8.0..10.0).contains(&within), "ten seconds after the last: {within}");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_target_is_told_by_its_places_and_those_kept_from_fallbacks() {
    let world = Setup::new()
        .target("down", "openai", &["status-500"])
        .and("breaker = { mode = \"forced_open\" }")
        .target("mirror", "openai", &["healthy+delay=400ms"])
        .and("max_concurrency = 4\nplaces = { kept = 0.25 }")
        .target("small", "openai", &["healthy+delay=400ms"])
        .and("max_concurrency = 1")
        .target("large", "openai", &["healthy"])
        .route("falls", &["down", "mirror"], ROUTE)
        .route("small", &["small", "large"], ROUTE)
        .route("alone", &["small"], ROUTE)
        .start()
        .await;
    let calls = join_all((0..5).map(|_| ask(&world, "falls"))).await;
    let form = "waited: mirror: headroom_places (no room for a fallback: ~ of ~ places taken, ~ of \
                the ~ that fallbacks may hold)";
    let [taken, places, held, open] = told(&world, &calls, form);
    assert_eq!((taken, places, held, open), (3.0, 4.0, 3.0, 3.0));
    let told_down: [f64; 0] = told(&world, &calls, "down: availability: an operator took it out");
    assert!(told_down.is_empty());
    // Whichever comes first: a second of its kind finds the place taken.
    let calls = ["small", "small", "alone", "alone"];
    let calls = join_all(calls.map(|name| ask(&world, name))).await;
    let [taken, allowed] =
        told(&world, &calls, "small: full_places: ~ calls in flight, ~ allowed now");
    assert_eq!((taken, allowed), (1.0, 1.0));
    let form = "waited: small: full_places (~ calls in flight, ~ allowed now)";
    assert!(told::<2>(&world, &calls, form).iter().all(|number| is_near(*number, 1.0)));
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_that_the_budget_refuses_is_told_by_its_price_and_the_balance() {
    let world = Setup::new()
        .tables("[retries]\nfloor = \"20s\"\nat_once = 40")
        .target("down", "openai", &["status-500+delay=150ms"])
        .and("breaker = { mode = \"forced_closed\" }")
        .route("down", &["down"], ROUTE)
        .start()
        .await;
    let calls = join_all((0..12).map(|_| ask(&world, "down"))).await;
    let form = "fail: no retry: it takes ~ of the target's budget, which holds ~; a call earns ~, \
                the floor fills it in ~ s";
    let [price, balance, earned, floor] = told(&world, &calls, form);
    assert!(is_near(price, 1.0) && balance < price, "{balance} of {price}");
    assert!(is_near(earned, 0.1) && floor <= 20.0, "{earned} a call, {floor} s");
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_retry_too_many_at_once_waits_its_turn_where_the_call_would_end() {
    let throttled = "status-429+delay=300ms";
    let steps = [throttled, throttled, throttled, "healthy+delay=100ms"];
    let world = Setup::new()
        .tables("[retries]\nat_once = 1")
        .target("busy", "openai", &steps)
        .route("busy", &["busy"], ROUTE)
        .start()
        .await;
    let calls = join_all((0..3).map(|_| ask(&world, "busy"))).await;
    assert!(calls.iter().all(|seen| seen.status == 200), "{calls:#?}");
    let form = "again: no retry: ~ extra attempts in flight, ~ allowed with ~ calls under way; asked \
                again after ~ s";
    let [extra, allowed, calls, _] = told(&world, &calls, form);
    assert!((extra, allowed) == (1.0, 1.0) && calls >= 2.0, "{extra} of {allowed}, {calls} calls");
    assert_eq!(world.log("busy").len(), 6);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_attempt_that_would_be_late_is_told_by_what_is_left_and_what_it_takes() {
    let late = "deadline = \"2400ms\"\nmax_attempts = 3\nmax_output_tokens = 50";
    let world = Setup::new()
        .alone("short", "openai", &["status-500+delay=1100ms"], "deadline = \"1200ms\"")
        .target("gone", "openai", &["status-404+delay=1300ms"])
        .target("slow", "openai", &["healthy+delay=1500ms"])
        .route("slow", &["slow"], "deadline = \"20s\"\nmax_output_tokens = 50")
        .route("late", &["gone", "slow"], late)
        .start()
        .await;
    let form = "fail: next wait ~ s + ~ s for an attempt is over the ~ s left";
    let [wait, needed, left] = told(&world, &[ask(&world, "short").await], form);
    assert!(is_near(needed, 0.12) && wait + needed > left, "{wait} + {needed}, {left} left");
    // Once enough is known of it.
    let usual = join_all((0..55).map(|_| ask(&world, "slow"))).await;
    assert!(usual.iter().all(|seen| seen.status == 200));
    let seen = [ask(&world, "late").await];
    let form = "slow: deadline_slow: no attempt: ~ s left, the target usually takes ~ s";
    let [left, takes] = told(&world, &seen, form);
    assert!(left < takes && (1.4..2.5).contains(&takes), "{left} left, {takes}");
    assert_eq!(world.log("slow").len(), 55);
    world.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_spent_budget_of_re_asks_is_told_by_what_was_asked_and_allowed() {
    let route = |more: &str| format!("deadline = \"6s\"\nmax_attempts = 6\n{more}\n{TRIAGE}");
    let costly = "enum-miss+prompt_tokens=600+completion_tokens=40";
    let world = Setup::new()
        .alone("count", "openai", &["enum-miss"], &route("reasks = 1"))
        .alone("tokens", "openai", &[costly], &route("reasks = 5\nreask_tokens = 1000"))
        .start()
        .await;
    let ask = async |name: &str| -> [Seen; 1] {
        let body: Value = json!({"model": name, "messages": [{"role": "user", "content": TICKET}]});
        [world.ask(OPENAI, &body).await]
    };
    let [made, allowed] = told(&world, &ask("count").await, "fail: ~ of ~ re-asks made here");
    assert_eq!((made, allowed), (1.0, 1.0));
    let form = "fail: no re-ask: ~ tokens spent on re-asks + about ~ for the next is over the ~ \
                allowed";
    let [spent, next, allowed] = told(&world, &ask("tokens").await, form);
    assert!(is_near(spent, 640.0) && spent + next > allowed, "{spent} + {next} of {allowed}");
    world.stop().await;
}
