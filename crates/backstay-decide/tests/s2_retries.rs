//! The five retry scenarios of the second seed text, replayed over `recover::decide` on a fake
//! clock: the printed lines have to be the seed's own.
#![expect(clippy::expect_used, clippy::panic, reason = "a test may stop")]

#[path = "../../../tests/shared.rs"]
mod shared;

use std::time::Duration;

use backstay_decide::recover::reask::Budget;
use backstay_decide::recover::{
    Cap, Facts, Fallback, LastResort, Next, OnRefusal, OnSemantic, OtherKey, Schema, Veto, Why,
    decide,
};
use backstay_decide::timers::{Room, Start, Timers};
use backstay_decide::{Backoff, Fault, Scripted};
use shared::shared;

/// What the seed prints.
const PRINTED: &str = "\
two 503s then success
  attempt 1: 503 at t=0.4s retryable=True
  attempt 2: 503 at t=1.0s retryable=True
  attempt 3: 200 at t=4.1s
429 with Retry-After: 7
  attempt 1: 429 at t=0.2s retryable=True
  attempt 2: 200 at t=9.2s
400 invalid request
  attempt 1: 400 at t=0.2s retryable=False
429 that is a spend cap
  attempt 1: 429 (quota) at t=0.2s retryable=False
timeouts until the deadline
  attempt 1: timeout at t=10.0s retryable=True
  attempt 2: timeout at t=20.2s retryable=True
  attempt 3: timeout at t=30.0s retryable=True
  next wait 1.5s leaves no room before the 30s deadline; stop
";

const DEADLINE: Duration = Duration::from_secs(30);
const MIN_ATTEMPT: Duration = Duration::from_secs(1);
const MAX_ATTEMPTS: u32 = 4;
/// Each attempt may take ten seconds in all; only the total counts here.
const TIMERS: Timers = {
    let ten = Duration::from_secs(10);
    Timers { connect: ten, first_token: ten, gap: ten, total: ten }
};

/// How the scripted provider answers one attempt.
#[derive(Clone, Copy)]
enum Reply {
    Answer(Duration),
    Fault { label: &'static str, fault: Fault, after: Duration, server_delay: Option<Duration> },
    Silence,
}

fn fault(label: &'static str, fault: Fault, millis: u64) -> Reply {
    Reply::Fault { label, fault, after: Duration::from_millis(millis), server_delay: None }
}

fn facts(fault: Fault, server_delay: Option<Duration>, left: Duration, attempts: u32) -> Facts {
    Facts {
        fault,
        server_delay,
        veto: Veto::Absent,
        left,
        attempts,
        max_attempts: MAX_ATTEMPTS,
        tries_here: attempts,
        retry: Ok(()),
        other_key: OtherKey::Nobody,
        reask: Budget::of(2),
        fallback: Fallback::HasNot,
        cap: Cap::Spent,
        schema: Schema::Asked,
        live_elsewhere: 0,
        on_semantic: OnSemantic::Reask,
        on_refusal: OnRefusal::LastResort,
        last_resort: LastResort::HasNot,
        backoff: Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(30) },
        min_attempt: MIN_ATTEMPT,
    }
}

/// One call against a script; the last reply of the script repeats.
fn replay(name: &str, script: &[Reply], out: &mut Vec<String>) {
    out.push(name.to_owned());
    let mut dice = Scripted(vec![0.23796, 0.54423, 0.36996]);
    let mut now = Duration::ZERO;
    for attempt in 1..=MAX_ATTEMPTS {
        let left = DEADLINE.saturating_sub(now);
        let start = Start::Cold;
        let room = Room { left, deadline: DEADLINE, untried: 0, start, min_attempt: MIN_ATTEMPT };
        let limit = TIMERS.cut(room).expect("the table starts nothing too late").total;
        let reply = script[(attempt as usize - 1).min(script.len() - 1)];
        let (label, fault, server_delay) = match reply {
            Reply::Answer(after) => {
                assert!(after <= limit);
                let t = (now + after).as_secs_f64();
                out.push(format!("  attempt {attempt}: 200 at t={t:.1}s"));
                return;
            }
            Reply::Fault { label, fault, after, server_delay } => {
                now += after;
                (label, fault, server_delay)
            }
            Reply::Silence => {
                now += limit;
                ("timeout", Fault::TotalTimeout, None)
            }
        };
        let decision =
            decide(&facts(fault, server_delay, DEADLINE.saturating_sub(now), attempt), &mut dice);
        let no_room = matches!(decision.why, Why::NoRoom { .. });
        let retryable = if no_room || decision.next.starts_an_attempt() { "True" } else { "False" };
        let t = now.as_secs_f64();
        out.push(format!("  attempt {attempt}: {label} at t={t:.1}s retryable={retryable}"));
        match (decision.next, decision.why) {
            (Next::Again { after }, _) => now += after,
            (Next::Fail, Why::NoRoom { wait, .. }) => {
                let (wait, deadline) = (wait.as_secs_f64(), DEADLINE.as_secs());
                out.push(format!(
                    "  next wait {wait:.1}s leaves no room before the {deadline}s deadline; stop"
                ));
                return;
            }
            (Next::Fail, _) => return,
            (next, _) => panic!("nothing else can follow here: {next:?}"),
        }
    }
}

fn all_scenarios() -> String {
    let two_seconds = Reply::Answer(Duration::from_secs(2));
    let busy = fault("503", Fault::Overloaded, 400);
    let throttled = Reply::Fault {
        label: "429",
        fault: Fault::RateLimited,
        after: Duration::from_millis(200),
        server_delay: Some(Duration::from_secs(7)),
    };
    let mut out = Vec::new();
    replay("two 503s then success", &[busy, busy, two_seconds], &mut out);
    replay("429 with Retry-After: 7", &[throttled, two_seconds], &mut out);
    replay("400 invalid request", &[fault("400", Fault::BadRequest, 200)], &mut out);
    replay(
        "429 that is a spend cap",
        &[fault("429 (quota)", Fault::QuotaExhausted, 200)],
        &mut out,
    );
    replay("timeouts until the deadline", &[Reply::Silence], &mut out);
    out.join("\n") + "\n"
}

#[test]
fn the_five_retry_scenarios_print_what_the_seed_prints() {
    let printed = all_scenarios();
    print!("{printed}");
    assert_eq!(printed, PRINTED);
}

#[test]
fn the_lines_expected_here_stand_in_the_seed() {
    let Some(seeds) = shared("seeds") else { return };
    let names = std::fs::read_dir(seeds).unwrap().map(|entry| entry.unwrap().path());
    let seed = names
        .filter(|path| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("004")));
    let text: String = seed.map(|path| std::fs::read_to_string(path).unwrap()).collect();
    assert!(text.contains(PRINTED), "the seed prints something else");
}
