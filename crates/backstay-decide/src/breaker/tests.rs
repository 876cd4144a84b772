//! Tests of the breaker: each edge of its picture, then random histories against a plain account.

use proptest::prelude::*;

use super::*;
use crate::dice::{Scripted, Seeded};

const LEASE: Duration = Duration::from_mins(1);

const fn at(seconds: u64) -> Moment {
    Moment::at(Duration::from_secs(seconds))
}

const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn limits() -> Limits {
    Limits { failures: 3, ..Limits::default() }
}

/// The middle of the dice: a rest without jitter.
fn even() -> Scripted {
    Scripted(Vec::new())
}

const fn ask(now: Moment) -> Ask {
    Ask { now, lease: LEASE, elsewhere: Elsewhere::Live, suits: Suits::Test }
}

const fn alone(now: Moment) -> Ask {
    Ask { elsewhere: Elsewhere::Nobody, ..ask(now) }
}

/// A breaker under one set of limits, with even dice.
#[derive(Clone, Debug, PartialEq)]
struct Bench {
    breaker: Breaker,
    limits: Limits,
}

impl Bench {
    fn new(limits: Limits) -> Self {
        Self { breaker: Breaker::new(), limits }
    }

    /// Opened by three failures at `now`.
    fn opened(now: Moment) -> Self {
        let mut bench = Self::new(limits());
        for _ in 0..3 {
            bench.call(now, Verdict::Failure);
        }
        assert!(matches!(bench.state(now), State::Open { .. }));
        bench
    }

    /// Closed again by five tests at `now`, which is after its rest: on probation.
    fn on_probation(now: Moment) -> Self {
        let mut bench = Self::opened(at(0));
        bench.close(now);
        assert!(matches!(bench.state(now), State::Probation { .. }));
        bench
    }

    fn close(&mut self, now: Moment) -> Transition {
        for _ in 0..4 {
            let pass = self.admit(alone(now)).unwrap();
            assert_eq!(self.note(pass, Verdict::Success, now), None);
        }
        let pass = self.admit(alone(now)).unwrap();
        self.note(pass, Verdict::Success, now).unwrap()
    }

    fn state(&self, now: Moment) -> State {
        self.breaker.state(now, &self.limits)
    }

    fn admit(&mut self, ask: Ask) -> Result<Pass, Denied> {
        let looked = self.breaker.look(&ask, &self.limits);
        let pass = self.breaker.admit(&ask, &self.limits).pass;
        assert_eq!(
            looked.err(),
            pass.as_ref().err().copied(),
            "a look says what an admission does"
        );
        pass
    }

    /// As [`Self::admit`], and counts as offered.
    fn offer(&mut self, ask: Ask) -> Result<Pass, Denied> {
        self.breaker.offer(ask.now, &self.limits);
        self.admit(ask)
    }

    fn note(&mut self, pass: Pass, verdict: Verdict, now: Moment) -> Option<Transition> {
        self.breaker.note(pass, verdict, now, &self.limits, &mut even())
    }

    /// A call that begins and ends at `now`.
    fn call(&mut self, now: Moment, verdict: Verdict) -> Option<Transition> {
        let pass = self.admit(alone(now)).unwrap();
        self.note(pass, verdict, now)
    }

    fn denied(&mut self, ask: Ask) -> (Option<Moment>, Denial) {
        let denied = self.admit(ask).unwrap_err();
        (denied.until, denied.why)
    }
}

/// The same pass once more: what a caller cannot do, and a broken one might.
fn copy(pass: &Pass) -> Pass {
    Pass { epoch: pass.epoch, kind: pass.kind }
}

// --- the way round ---

#[test]
fn it_opens_is_tested_and_comes_back_in_steps() {
    let mut bench = Bench::new(limits());
    for failures in 1..3 {
        assert_eq!(bench.call(at(0), Verdict::Failure), None);
        assert_eq!(bench.state(at(0)), State::Closed { failures });
    }
    let opened = bench.call(at(0), Verdict::Failure).unwrap();
    let rest = Rest { since_first: secs(0), base: secs(30), thrown: secs(30), asked: None };
    assert_eq!(opened, Transition::Opened { until: at(30), why: Why::Row { failures: 3 }, rest });
    assert_eq!(bench.state(at(0)), State::Open { until: at(30) });
    assert_eq!(bench.denied(alone(at(29))), (Some(at(30)), Denial::Open));

    let test = bench.breaker.admit(&ask(at(30)), &bench.limits);
    let change = Transition::HalfOpened { after: secs(30), by: Ending::Time };
    assert_eq!(test.change, Some(change));
    let test = test.pass.unwrap();
    assert!(test.is_probe());
    assert_eq!(bench.state(at(31)), State::HalfOpen { started: 0, finished: 0, in_flight: 1 });
    assert_eq!(bench.note(test, Verdict::Success, at(32)), None);
    for _ in 0..3 {
        assert_eq!(bench.call(at(33), Verdict::Success), None);
    }
    let closed = bench.call(at(34), Verdict::Success).unwrap();
    assert_eq!(closed, Transition::Closed { started: 5, finished: 5, after: secs(34) });
    assert_eq!(bench.state(at(34)), State::Probation { share: 0.25, until: at(94) });
    assert_eq!(bench.state(at(54)), State::Probation { share: 0.5, until: at(94) });
    let pass = bench.admit(ask(at(80))).unwrap();
    assert!(!pass.is_probe());
    assert_eq!(bench.note(pass, Verdict::Success, at(80)), None);
    assert_eq!(bench.state(at(94)), State::Closed { failures: 0 });
    let whole = bench.breaker.admit(&ask(at(94)), &bench.limits);
    let seen = Tally { calls: 1, failures: 0, span: secs(60) };
    assert_eq!(whole.change, Some(Transition::Restored { seen }));
    assert!(bench.breaker.is_untroubled());
}

#[test]
fn every_change_begins_an_epoch_but_the_end_of_probation() {
    let mut bench = Bench::opened(at(0));
    assert_eq!(bench.breaker.epoch(), 1);
    let test = bench.admit(ask(at(30))).unwrap();
    assert_eq!(bench.breaker.epoch(), 2);
    bench.note(test, Verdict::Failure, at(30));
    assert_eq!(bench.breaker.epoch(), 3);
    bench.admit(ask(at(60))).map(|pass| bench.breaker.release(pass)).unwrap();
    bench.close(at(61));
    assert_eq!(bench.breaker.epoch(), 5);
    bench.call(at(200), Verdict::Success);
    assert_eq!((bench.breaker.epoch(), bench.state(at(200))), (5, State::Closed { failures: 0 }));
}

// --- opening ---

#[test]
fn a_success_starts_the_row_anew_and_soft_and_neutral_ends_leave_it() {
    let mut bench = Bench::new(limits());
    let verdicts = [
        (Verdict::Failure, 1),
        (Verdict::Neutral, 1),
        (Verdict::Failure, 2),
        (Verdict::Soft, 2),
        (Verdict::Success, 0),
        (Verdict::Failure, 1),
    ];
    for (verdict, failures) in verdicts {
        assert_eq!(bench.call(at(0), verdict), None);
        assert_eq!(bench.state(at(0)), State::Closed { failures });
    }
    assert!(!bench.breaker.is_untroubled());
    assert_eq!(bench.breaker.tally(at(0), &bench.limits).calls, 5, "the neutral one is no call");
}

/// Successes and failures in turn: never two in a row.
fn rated(limits: Limits, successes: u32, failures: u32) -> (Bench, Option<Transition>) {
    let mut bench = Bench::new(limits);
    let mut last = None;
    for _ in 0..successes {
        last = bench.call(at(0), Verdict::Success);
    }
    for _ in 0..failures {
        assert_eq!(last, None, "opened early");
        last = bench.call(at(0), Verdict::Soft);
    }
    (bench, last)
}

#[test]
fn a_rate_opens_only_when_it_is_surely_above_the_limit() {
    let limits = Limits::default();
    // 5 of 20 are 25 %, surely over 14.8 %: not enough. 6 of 21 are surely over 17.9 %.
    assert_eq!(rated(limits, 15, 5).1, None);
    let (_, opened) = rated(limits, 15, 6);
    let Some(Transition::Opened { why: Why::Rate { seen, bound, z, limit }, .. }) = opened else {
        panic!("{opened:?}")
    };
    assert_eq!((seen.calls, seen.failures, seen.span), (21, 6, secs(60)));
    assert_eq!((format!("{bound:.4}").as_str(), z, limit), ("0.1787", 1.28, 0.15));
    // 19 calls are too few, whatever they say: soft failures are no row.
    assert_eq!(rated(limits, 0, 19).1, None);
    assert!(rated(limits, 0, 20).1.is_some());
}

#[test]
fn the_combined_rule_is_the_seed_s_to_the_letter() {
    // More than 15 %: 15 of 100 is not, 16 of 101 is. No least count.
    assert_eq!(rated(Limits::COMBINED, 85, 15).1, None);
    assert!(rated(Limits::COMBINED, 85, 16).1.is_some());
    assert!(rated(Limits::COMBINED, 0, 1).1.is_some());
    let (mut bench, opened) = rated(Limits::COMBINED, 5, 1);
    assert!(matches!(opened, Some(Transition::Opened { until, .. }) if until == at(30)));
    assert_eq!(bench.denied(ask(at(29))), (Some(at(30)), Denial::Open));
    // 5 % of the calls, however long it takes.
    let tests: Vec<Pass> = (0..100)
        .filter_map(|n| bench.offer(Ask { lease: secs(500), ..ask(at(30 + n)) }).ok())
        .collect();
    assert_eq!(tests.len(), 5);
    let mut failed = bench.clone();
    let last = tests.into_iter().map(|test| {
        failed.note(copy(&test), Verdict::Failure, at(130));
        bench.note(test, Verdict::Success, at(130))
    });
    assert!(matches!(last.last().flatten(), Some(Transition::Closed { .. })));
    assert_eq!(bench.state(at(130)), State::Closed { failures: 0 }, "whole at once");
    // One failed test starts the timer again, at the same length.
    assert_eq!(failed.state(at(130)), State::Open { until: at(160) });
}

#[test]
fn with_little_traffic_the_rate_is_of_the_last_twenty_calls() {
    let mut bench = Bench::new(Limits::default());
    for n in 0..19 {
        let verdict = if n % 2 == 0 { Verdict::Success } else { Verdict::Failure };
        assert_eq!(bench.call(at(n * 30), verdict), None);
    }
    let opened = bench.call(at(570), Verdict::Failure);
    let Some(Transition::Opened { why: Why::Rate { seen, .. }, .. }) = opened else {
        panic!("{opened:?}")
    };
    assert_eq!((seen.calls, seen.failures, seen.span), (20, 10, secs(570)));
}

#[test]
fn no_row_opens_where_the_limit_is_zero() {
    let limits = Limits { failures: 0, ..Limits::default() };
    let mut bench = Bench::new(limits);
    for _ in 0..19 {
        assert_eq!(bench.call(at(0), Verdict::Failure), None);
    }
}

// --- resting ---

#[test]
fn the_rest_grows_with_the_outage_and_stays_within_its_limits() {
    let mut bench = Bench::opened(at(0));
    let mut rests = Vec::new();
    let mut now = at(30);
    for _ in 0..12 {
        match bench.call(now, Verdict::Failure) {
            Some(Transition::Reopened { until, why, rest }) => {
                assert_eq!(why, Why::Canary { started: 0, passes: 5 });
                assert_eq!(rest.length(), until.since(now));
                rests.push(until.since(now).as_secs());
                now = until;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(rests, [30, 30, 45, 67, 101, 151, 227, 300, 300, 300, 300, 300]);
}

#[test]
fn the_dice_move_the_rest_by_a_fifth_at_most() {
    let thrown =
        |unit, limits: &Limits, first| cool_off(first, limits, &mut Scripted(vec![unit])).length();
    for (unit, seconds) in [(0.0, 24), (0.5, 30), (1.0, 36)] {
        assert_eq!(thrown(unit, &limits(), Duration::ZERO), secs(seconds));
    }
    let odd = |jitter| Limits { jitter, ..limits() };
    for (jitter, seconds) in [(0.0, 30), (f64::NAN, 30), (-1.0, 30), (1.0, 60), (9.0, 60)] {
        assert_eq!(thrown(1.0, &odd(jitter), Duration::ZERO), secs(seconds), "{jitter}");
    }
    let upside_down = Limits { longest_rest: secs(1), ..limits() };
    assert_eq!(thrown(0.5, &upside_down, Duration::MAX), secs(30));
    let endless = Limits { shortest_rest: Duration::MAX, jitter: 1.0, ..limits() };
    assert_eq!(thrown(0.0, &endless, secs(1)), Duration::ZERO);
}

#[test]
fn a_rest_that_was_asked_for_holds_whatever_the_circuit_says() {
    let mut bench = Bench::new(limits());
    bench.breaker.rest_until(at(7));
    bench.breaker.rest_until(at(5));
    assert_eq!(bench.breaker.asked_until(), at(7));
    assert_eq!(bench.denied(alone(at(6))), (Some(at(7)), Denial::Asked));
    assert_eq!(bench.state(at(6)), State::Closed { failures: 0 });
    assert!(bench.admit(ask(at(7))).is_ok());
    // It is a minimum for the circuit's own rest, asked for before it opened or after.
    let mut bench = Bench::opened(at(0));
    bench.breaker.rest_until(at(100));
    assert_eq!(bench.denied(alone(at(10))), (Some(at(100)), Denial::Open));
    assert_eq!(bench.denied(alone(at(99))), (Some(at(100)), Denial::Asked));
    assert!(bench.admit(ask(at(100))).unwrap().is_probe());
    let mut bench = Bench::new(limits());
    let passes: Vec<Pass> = (0..3).map(|_| bench.admit(ask(at(0))).unwrap()).collect();
    bench.breaker.rest_until(at(45));
    let opened = passes.into_iter().filter_map(|pass| bench.note(pass, Verdict::Failure, at(5)));
    let rest =
        Rest { since_first: secs(0), base: secs(30), thrown: secs(30), asked: Some(secs(40)) };
    let why = Why::Row { failures: 3 };
    assert_eq!(opened.last(), Some(Transition::Opened { until: at(45), why, rest }));
}

#[test]
fn a_call_from_before_the_opening_changes_nothing_when_it_ends_late() {
    let mut bench = Bench::new(limits());
    let slow = bench.admit(ask(at(0))).unwrap();
    for _ in 0..3 {
        bench.call(at(1), Verdict::Failure);
    }
    let try_all = |bench: &mut Bench, now| {
        for verdict in [Verdict::Success, Verdict::Failure, Verdict::Soft, Verdict::Neutral] {
            let before = bench.clone();
            assert_eq!(bench.note(copy(&slow), verdict, now), None);
            assert_eq!(*bench, before);
        }
    };
    try_all(&mut bench, at(2));
    let test = bench.admit(ask(at(60))).unwrap();
    try_all(&mut bench, at(61));
    bench.note(test, Verdict::Success, at(61));
    bench.admit(alone(at(61))).map(|pass| bench.note(pass, Verdict::Success, at(61))).unwrap();
    try_all(&mut bench, at(62));
    bench.breaker.release(slow);
    assert_eq!(bench.state(at(62)), State::HalfOpen { started: 2, finished: 2, in_flight: 0 });
}

// --- testing ---

#[test]
fn the_tests_are_a_share_of_the_calls_and_few_at_once() {
    let mut bench = Bench::opened(at(0));
    // 100 calls a second: 5 % would be five a second, three may be in flight.
    let mut held = Vec::new();
    for n in 0..100 {
        let now = at(30).plus(Duration::from_millis(10) * n);
        held.extend(bench.offer(ask(now)));
    }
    assert_eq!(held.len(), 3);
    assert_eq!(bench.denied(ask(at(31))), (Some(at(90)), Denial::Testing));
    assert_eq!(bench.denied(alone(at(31))), (Some(at(90)), Denial::Testing));
    // Two come back: two more in the next 40 calls.
    for pass in held.drain(..2) {
        assert_eq!(bench.note(pass, Verdict::Success, at(31)), None);
    }
    let more: Vec<usize> = (0..40).filter(|_| bench.offer(ask(at(31))).is_ok()).collect();
    assert_eq!(more.len(), 2);
    assert_eq!(bench.state(at(31)), State::HalfOpen { started: 2, finished: 2, in_flight: 3 });
}

#[test]
fn a_call_outside_the_share_is_told_when_the_next_is_due() {
    let mut bench = Bench::opened(at(0));
    let _first = bench.offer(ask(at(40))).unwrap();
    assert_eq!(
        bench.offer(ask(at(41))).unwrap_err(),
        Denied { until: Some(at(50)), why: Denial::Share }
    );
    assert!(bench.offer(ask(at(50))).is_ok(), "one is due after ten seconds");
    assert!(bench.offer(ask(at(60))).is_err(), "but not two calls in a row");
    assert_eq!(bench.denied(ask(at(70))), (Some(at(70)), Denial::Share));
    assert!(bench.offer(ask(at(70))).is_ok());
    // Where nobody else is, no share turns calls away.
    let mut bench = Bench::opened(at(0));
    assert!((0..3).all(|_| bench.offer(alone(at(40))).is_ok()));
}

#[test]
fn a_call_that_does_not_suit_is_no_test_unless_nobody_else_is() {
    let mut bench = Bench::opened(at(0));
    let unsuited = Ask { suits: Suits::HealthyOnly, ..ask(at(30)) };
    assert_eq!(bench.admit(unsuited).unwrap_err().why, Denial::Share);
    assert!(bench.admit(Ask { elsewhere: Elsewhere::Nobody, ..unsuited }).is_ok());
    assert!(Bench::on_probation(at(30)).admit(unsuited).is_ok());
}

#[test]
fn a_test_passes_at_its_first_content_and_one_must_end_well() {
    let mut bench = Bench::opened(at(0));
    bench.limits.canary.at_once = 9;
    let tests: Vec<Pass> = (0..6).map(|_| bench.admit(alone(at(30))).unwrap()).collect();
    for test in &tests[..5] {
        assert_eq!(bench.breaker.started(test, at(31), &bench.limits), None);
        assert_eq!(bench.breaker.started(test, at(31), &bench.limits), None, "once each");
    }
    assert_eq!(bench.state(at(31)), State::HalfOpen { started: 5, finished: 0, in_flight: 6 });
    let mut tests = tests.into_iter();
    let closed = bench.note(tests.next().unwrap(), Verdict::Success, at(40));
    assert_eq!(closed, Some(Transition::Closed { started: 5, finished: 1, after: secs(40) }));
    // The others are carried over: one that ends badly after all opens it again.
    let mut calm = bench.clone();
    let late = tests.next().unwrap();
    assert_eq!(calm.note(copy(&late), Verdict::Success, at(50)), None);
    assert_eq!(calm.breaker.tally(at(50), &calm.limits).calls, 1);
    let reopened = bench.note(late, Verdict::Soft, at(50));
    let why = Why::Canary { started: 5, passes: 5 };
    let rest = Rest { since_first: secs(50), base: secs(30), thrown: secs(30), asked: None };
    assert_eq!(reopened, Some(Transition::Reopened { until: at(80), why, rest }));
    // And then the last one is void.
    let before = bench.clone();
    assert_eq!(bench.note(tests.next().unwrap(), Verdict::Success, at(50)), None);
    assert_eq!(bench, before);
}

#[test]
fn the_first_content_may_be_what_closes_it() {
    let mut bench = Bench::opened(at(0));
    bench.limits.canary.passes = 2;
    let tests: Vec<Pass> = (0..2).map(|_| bench.admit(alone(at(30))).unwrap()).collect();
    let mut tests = tests.into_iter();
    assert_eq!(bench.note(tests.next().unwrap(), Verdict::Success, at(30)), None);
    let test = tests.next().unwrap();
    let closed = bench.breaker.started(&test, at(31), &bench.limits);
    assert_eq!(closed, Some(Transition::Closed { started: 2, finished: 1, after: secs(31) }));
    // Started counts once, and after the closing it counts for nothing.
    assert_eq!(bench.breaker.started(&test, at(31), &bench.limits), None);
    let ordinary = bench.admit(ask(at(31))).unwrap();
    assert_eq!(bench.breaker.started(&ordinary, at(31), &bench.limits), None);
}

#[test]
fn content_of_a_test_carried_over_says_nothing_yet() {
    let mut bench = Bench::opened(at(0));
    bench.limits.canary.passes = 1;
    let tests: Vec<Pass> = (0..2).map(|_| bench.admit(alone(at(30))).unwrap()).collect();
    let mut tests = tests.into_iter();
    assert!(bench.note(tests.next().unwrap(), Verdict::Success, at(30)).is_some());
    let late = tests.next().unwrap();
    let state = bench.state(at(31));
    assert_eq!(bench.breaker.started(&late, at(31), &bench.limits), None);
    assert_eq!(bench.state(at(31)), state);
    // Past probation its end is one of many.
    assert_eq!(
        bench.note(copy(&late), Verdict::Failure, at(89)).map(|c| c.to_string().contains("a test")),
        Some(true)
    );
}

#[test]
fn a_test_that_outlives_probation_is_a_call_like_any_other() {
    let mut bench = Bench::opened(at(0));
    bench.limits.canary.passes = 1;
    let long = Ask { lease: secs(500), ..alone(at(30)) };
    let tests: Vec<Pass> = (0..2).map(|_| bench.admit(long).unwrap()).collect();
    let mut tests = tests.into_iter();
    assert!(bench.note(tests.next().unwrap(), Verdict::Success, at(30)).is_some());
    assert_eq!(bench.note(tests.next().unwrap(), Verdict::Failure, at(90)), None);
    assert_eq!(bench.state(at(90)), State::Closed { failures: 1 });
}

#[test]
fn a_failed_test_opens_it_again_and_voids_the_others() {
    for verdict in [Verdict::Failure, Verdict::Soft] {
        let mut bench = Bench::opened(at(0));
        let first = bench.admit(alone(at(30))).unwrap();
        let second = bench.admit(alone(at(30))).unwrap();
        let change = bench.note(first, verdict, at(31));
        assert!(matches!(change, Some(Transition::Reopened { .. })));
        let before = bench.clone();
        assert_eq!(bench.breaker.started(&second, at(31), &bench.limits), None);
        assert_eq!(bench.note(second, Verdict::Success, at(31)), None);
        assert_eq!(bench, before);
    }
}

#[test]
fn a_test_that_never_reports_makes_way_for_the_next() {
    let mut bench = Bench::opened(at(0));
    bench.limits.canary.at_once = 0;
    let lost = bench.admit(alone(at(30))).unwrap();
    assert_eq!(bench.denied(alone(at(89))), (Some(at(90)), Denial::Testing));
    assert_eq!(bench.state(at(89)), State::HalfOpen { started: 0, finished: 0, in_flight: 1 });
    assert_eq!(bench.state(at(90)), State::HalfOpen { started: 0, finished: 0, in_flight: 0 });
    // It reports after all: too late to count, before the next was made and after.
    let mut early = bench.clone();
    assert_eq!(early.breaker.started(&lost, at(90), &early.limits), None);
    assert_eq!(early.note(copy(&lost), Verdict::Failure, at(90)), None);
    assert_eq!(early.state(at(90)), State::HalfOpen { started: 0, finished: 0, in_flight: 0 });
    let next = bench.admit(alone(at(90))).unwrap();
    assert_eq!(bench.note(lost, Verdict::Failure, at(91)), None);
    assert_eq!(bench.note(next, Verdict::Success, at(92)), None);
    assert_eq!(bench.state(at(92)), State::HalfOpen { started: 1, finished: 1, in_flight: 0 });
}

#[test]
fn a_dropped_or_neutral_test_lets_the_next_call_test_at_once() {
    for is_dropped in [true, false] {
        let mut bench = Bench::opened(at(0));
        let test = bench.offer(ask(at(40))).unwrap();
        if is_dropped {
            bench.breaker.release(test);
        } else {
            assert_eq!(bench.note(test, Verdict::Neutral, at(41)), None);
        }
        assert_eq!(bench.state(at(41)), State::HalfOpen { started: 0, finished: 0, in_flight: 0 });
        let next = bench.offer(ask(at(41))).unwrap();
        assert!(next.is_probe());
        // Given back twice, it counts once.
        let test = copy(&next);
        bench.breaker.release(next);
        let _third = bench.offer(ask(at(41))).unwrap();
        bench.breaker.release(test);
        assert!(bench.offer(ask(at(41))).is_err());
    }
}

#[test]
fn with_next_to_no_traffic_one_good_test_is_enough_after_a_while() {
    let mut bench = Bench::opened(at(0));
    assert_eq!(bench.call(at(30), Verdict::Success), None);
    assert!(matches!(bench.state(at(329)), State::HalfOpen { .. }));
    assert!(matches!(bench.state(at(330)), State::Probation { .. }));
    let mut late = bench.clone();
    let closed = bench.breaker.admit(&ask(at(330)), &bench.limits);
    let change = Transition::Closed { started: 1, finished: 1, after: secs(330) };
    assert_eq!(closed.change, Some(change));
    assert!(closed.pass.is_ok_and(|pass| !pass.is_probe()));
    // A test under way at that moment still is one.
    let test = late.admit(alone(at(320))).unwrap();
    let reopened = late.note(test, Verdict::Failure, at(331));
    assert!(matches!(reopened, Some(Transition::Reopened { .. })));
    // None that ended well, no end; and no patience, no end.
    let mut bench = Bench::opened(at(0));
    let test = bench.admit(alone(at(30))).unwrap();
    bench.breaker.started(&test, at(30), &bench.limits);
    assert!(matches!(bench.state(at(3000)), State::HalfOpen { .. }));
    let mut bench = Bench::opened(at(0));
    bench.limits.canary.patience = Duration::ZERO;
    bench.call(at(30), Verdict::Success);
    assert!(matches!(bench.state(at(3000)), State::HalfOpen { .. }));
}

#[test]
fn zero_tests_count_as_one() {
    let mut bench = Bench::opened(at(0));
    bench.limits.canary.passes = 0;
    assert!(matches!(bench.call(at(30), Verdict::Success), Some(Transition::Closed { .. })));
}

// --- coming back ---

#[test]
fn on_probation_a_quarter_then_a_half_then_all_go_through() {
    let mut bench = Bench::on_probation(at(30));
    let mut through = |second| {
        let passes = (0..100).filter(|_| bench.offer(ask(at(second))).is_ok()).count();
        (second, passes)
    };
    assert_eq!(
        [30, 49, 50, 69, 70, 89].map(&mut through),
        [(30, 25), (49, 25), (50, 50), (69, 50), (70, 100), (89, 100)]
    );
    let mut bench = Bench::on_probation(at(30));
    assert!((0..100).all(|_| bench.offer(alone(at(31))).is_ok()));
    assert_eq!(bench.denied(ask(at(31))), (Some(at(31)), Denial::Share));
}

#[test]
fn on_probation_less_is_forgiven() {
    let mut bench = Bench::on_probation(at(30));
    bench.limits.failures = 5;
    let changes: Vec<_> = (0..3).filter_map(|_| bench.call(at(40), Verdict::Failure)).collect();
    let [Transition::Reopened { why: Why::Row { failures: 3 }, rest, until }] = changes[..] else {
        panic!("{changes:?}")
    };
    assert_eq!((rest.since_first, until), (secs(40), at(70)), "still the same outage");
    // Ten calls are enough for a rate: 3 of 10 are surely over 15.4 %.
    let mut bench = Bench::on_probation(at(30));
    for _ in 0..7 {
        assert_eq!(bench.call(at(40), Verdict::Success), None);
    }
    assert_eq!(bench.call(at(40), Verdict::Soft), None);
    assert_eq!(bench.call(at(40), Verdict::Soft), None);
    assert!(matches!(bench.call(at(40), Verdict::Soft), Some(Transition::Reopened { .. })));
    // Once it is over, the usual rule holds, and a new outage begins from nothing.
    let mut bench = Bench::on_probation(at(30));
    bench.limits.failures = 5;
    let passes: Vec<Pass> = (0..5).map(|_| bench.admit(ask(at(80))).unwrap()).collect();
    let changes: Vec<_> =
        passes.into_iter().filter_map(|pass| bench.note(pass, Verdict::Failure, at(90))).collect();
    assert!(matches!(
        changes[..],
        [Transition::Opened { rest: Rest { since_first: Duration::ZERO, .. }, .. }]
    ));
}

#[test]
fn what_was_counted_before_the_opening_is_not_held_against_it_after() {
    let mut bench = Bench::on_probation(at(31));
    assert_eq!(bench.breaker.tally(at(31), &bench.limits).calls, 0);
    assert_eq!(bench.call(at(31), Verdict::Failure), None);
    assert_eq!(bench.call(at(31), Verdict::Failure), None);
}

// --- forced ---

#[test]
fn a_forced_call_ends_the_rest_early_if_it_succeeds_and_else_changes_nothing() {
    let mut bench = Bench::opened(at(0));
    let force = |bench: &mut Bench, now| {
        let admission = bench.breaker.force(&alone(now), &bench.limits);
        assert_eq!(admission.change, None);
        admission.pass.unwrap()
    };
    let [good, bad, late] = [5, 6, 7].map(|second| force(&mut bench, at(second)));
    assert!(good.is_probe());
    assert_eq!(bench.note(bad, Verdict::Failure, at(8)), None);
    assert_eq!(bench.state(at(8)), State::Open { until: at(30) }, "the rest is no longer for it");
    let change = bench.note(good, Verdict::Success, at(9));
    assert_eq!(change, Some(Transition::HalfOpened { after: secs(9), by: Ending::ForcedCall }));
    assert_eq!(bench.state(at(9)), State::HalfOpen { started: 1, finished: 1, in_flight: 0 });
    assert_eq!(bench.note(late, Verdict::Success, at(9)), None, "of another epoch");
    // While it is tested, a forced call is one more test; closed, a call like any other.
    let held: Vec<Pass> = (0..4).map(|_| force(&mut bench, at(10))).collect();
    assert!(held.iter().all(Pass::is_probe));
    assert_eq!(bench.state(at(10)), State::HalfOpen { started: 1, finished: 1, in_flight: 4 });
    assert!(!force(&mut Bench::new(limits()), at(0)).is_probe());
    assert!(!force(&mut Bench::on_probation(at(30)), at(31)).is_probe());
    // Where one test is enough, it closes the circuit.
    let mut bench = Bench::opened(at(0));
    bench.limits.canary.passes = 1;
    let pass = force(&mut bench, at(5));
    let change = bench.note(pass, Verdict::Success, at(6));
    assert_eq!(change, Some(Transition::Closed { started: 1, finished: 1, after: secs(6) }));
}

#[test]
fn a_forced_call_after_the_rest_is_a_test() {
    let mut bench = Bench::opened(at(0));
    let admission = bench.breaker.force(&alone(at(30)), &bench.limits);
    assert!(matches!(admission.change, Some(Transition::HalfOpened { .. })));
    assert_eq!(bench.state(at(30)), State::HalfOpen { started: 0, finished: 0, in_flight: 1 });
}

#[test]
fn more_forced_tests_than_are_kept_count_of_go_through_and_count_for_nothing() {
    let mut bench = Bench::opened(at(0));
    let passes: Vec<Pass> = (0..=MAX_CANARIES)
        .map(|_| bench.breaker.force(&alone(at(30)), &bench.limits).pass.unwrap())
        .collect();
    assert_eq!(passes.iter().filter(|pass| pass.is_probe()).count(), MAX_CANARIES);
    let over = passes.into_iter().next_back().unwrap();
    let before = bench.clone();
    assert_eq!(bench.note(over, Verdict::Failure, at(30)), None);
    assert_eq!(bench, before);
}

#[test]
fn an_operator_may_take_a_target_out_or_hold_it_in() {
    let mut bench = Bench::opened(at(0));
    let ordinary = Bench::new(limits()).admit(ask(at(0))).unwrap();
    bench.limits.mode = Mode::ForcedClosed;
    for now in [at(1), at(31)] {
        let pass = bench.breaker.admit(&ask(now), &bench.limits);
        assert_eq!(pass.change, None);
        let pass = pass.pass.unwrap();
        assert!(!pass.is_probe());
        assert_eq!(bench.note(pass, Verdict::Failure, now), None);
        let forced = bench.breaker.force(&ask(now), &bench.limits).pass.unwrap();
        assert!(!forced.is_probe());
    }
    assert_eq!(bench.breaker, Bench::opened(at(0)).breaker, "nothing counted");
    bench.breaker.rest_until(at(50));
    assert_eq!(
        bench.denied(ask(at(40))),
        (Some(at(50)), Denial::Asked),
        "the provider's word holds"
    );

    let mut bench = Bench::new(Limits { mode: Mode::ForcedOpen, ..limits() });
    assert_eq!(bench.denied(alone(at(0))), (None, Denial::Forced));
    let before = bench.clone();
    for _ in 0..5 {
        assert_eq!(bench.note(copy(&ordinary), Verdict::Failure, at(0)), None);
    }
    assert_eq!(bench, before);
    // A test under way when the mode came gives its place back.
    let mut bench = Bench::opened(at(0));
    let test = bench.admit(ask(at(30))).unwrap();
    bench.limits.mode = Mode::ForcedOpen;
    assert_eq!(bench.note(test, Verdict::Failure, at(31)), None);
    bench.limits.mode = Mode::Automatic;
    assert_eq!(bench.state(at(31)), State::HalfOpen { started: 0, finished: 0, in_flight: 0 });
}

#[test]
fn metrics_only_says_what_it_would_do_and_lets_every_call_through() {
    let mut bench = Bench::new(Limits { mode: Mode::MetricsOnly, ..limits() });
    let changes: Vec<_> = (0..3).filter_map(|_| bench.call(at(0), Verdict::Failure)).collect();
    assert!(matches!(changes[..], [Transition::Opened { .. }]));
    let pass = bench.admit(ask(at(1))).unwrap();
    let before = bench.clone();
    assert_eq!(bench.note(pass, Verdict::Success, at(1)), None);
    assert_eq!(bench, before, "an acting breaker would not have seen this call");
    let tests: Vec<Pass> = (0..10).map(|_| bench.offer(ask(at(30))).unwrap()).collect();
    assert_eq!(tests.iter().filter(|pass| pass.is_probe()).count(), 1);
    assert!(bench.breaker.force(&ask(at(30)), &bench.limits).pass.unwrap().is_probe());
    assert!(tests.into_iter().any(|test| bench.note(test, Verdict::Failure, at(31)).is_some()));
}

// --- any history ---

/// What may happen to a breaker, at the next moment.
#[derive(Clone, Copy, Debug)]
enum Event {
    Wait(u64),
    Offer(Elsewhere, Suits),
    Force,
    Asked(u64),
    Started(usize),
    Note(usize, Verdict),
    Release(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let verdict = prop::sample::select(vec![
        Verdict::Success,
        Verdict::Success,
        Verdict::Failure,
        Verdict::Failure,
        Verdict::Soft,
        Verdict::Neutral,
    ]);
    let elsewhere = prop::sample::select(vec![Elsewhere::Live, Elsewhere::Nobody]);
    let suits = prop::sample::select(vec![Suits::Test, Suits::Test, Suits::HealthyOnly]);
    prop_oneof![
        3 => (0_u64..40).prop_map(Event::Wait),
        8 => (elsewhere, suits).prop_map(|(elsewhere, suits)| Event::Offer(elsewhere, suits)),
        1 => Just(Event::Force),
        1 => (0_u64..60).prop_map(Event::Asked),
        2 => (0_usize..12).prop_map(Event::Started),
        9 => (0_usize..12, verdict).prop_map(|(ix, verdict)| Event::Note(ix, verdict)),
        1 => (0_usize..12).prop_map(Event::Release),
    ]
}

fn some_limits() -> impl Strategy<Value = Limits> {
    let brief = Limits {
        min_calls: 4,
        failures: 0,
        canary: Canary { passes: 2, at_once: 2, patience: secs(50), ..Limits::default().canary },
        probation: Probation { min_calls: 2, lasts: secs(30), ..Limits::default().probation },
        ..Limits::default()
    };
    prop::sample::select(vec![
        limits(),
        brief,
        Limits { stretch: Duration::ZERO, ..brief },
        Limits { mode: Mode::MetricsOnly, ..brief },
        Limits::QUALITY,
        Limits::THROTTLING,
        Limits::COMBINED,
    ])
}

/// A plain account of what a breaker should know: every outcome since its circuit last changed.
#[derive(Default)]
struct Account {
    counted: Vec<(Moment, bool)>,
    row: u32,
}

impl Account {
    fn note(&mut self, verdict: Verdict, now: Moment) {
        match verdict {
            Verdict::Neutral => return,
            Verdict::Success => self.row = 0,
            Verdict::Failure => self.row += 1,
            Verdict::Soft => {}
        }
        self.counted.push((now, verdict != Verdict::Success));
    }

    /// Whether a failure at `now` opens, by the rule as the documentation words it.
    fn opens(&self, now: Moment, limits: &Limits, (row, least): (u32, u32)) -> bool {
        if row > 0 && self.row >= row {
            return true;
        }
        let slice = |at: Moment| at.since_origin().as_nanos() / (limits.window.as_nanos() / 12);
        let inside = |at: Moment| slice(at) + 12 > slice(now);
        let mut seen: Vec<_> = self.counted.iter().filter(|(at, _)| inside(*at)).collect();
        if seen.len() < least as usize {
            let kept = limits.min_calls.max(limits.probation.min_calls).min(least) as usize;
            let young = self.counted.iter().filter(|(at, _)| now.since(*at) <= limits.stretch);
            seen = young.rev().take(kept).collect();
        }
        if seen.len() < least as usize {
            return false;
        }
        #[expect(clippy::cast_precision_loss, reason = "a few hundred calls")]
        let (n, bad) = (seen.len() as f64, seen.iter().filter(|(_, bad)| *bad).count() as f64);
        // Wilson's bound is above the limit exactly if the rate is further above it than `z`
        // standard deviations of the limit.
        let over = bad / n - limits.rate;
        over > limits.z * (limits.rate * (1.0 - limits.rate) / n).sqrt()
    }
}

/// The passes of a run, never taken off the list: reports may be late, lost, or made twice.
struct Run {
    bench: Bench,
    account: Account,
    passes: Vec<(Pass, Moment)>,
    dice: Seeded,
    now: Moment,
    forced: usize,
    trace: Vec<String>,
}

impl Run {
    fn new(limits: Limits, seed: u64) -> Self {
        let (bench, account) = (Bench::new(limits), Account::default());
        let (passes, dice, trace) = (Vec::new(), Seeded::new(seed), Vec::new());
        Self { bench, account, passes, dice, now: at(100), forced: 0, trace }
    }

    /// Of the twelve youngest passes, the one with this number.
    fn pass(&self, ix: usize) -> Option<(Pass, Moment)> {
        let (pass, until) = self.passes.iter().rev().nth(ix)?;
        Some((copy(pass), *until))
    }

    /// Whether the breaker still waits for this pass.
    fn is_awaited(&self, (pass, until): &(Pass, Moment)) -> bool {
        let breaker = &self.bench.breaker;
        match pass.kind {
            Kind::Bystander => false,
            Kind::Canary(number) => {
                self.now < *until && breaker.slots.iter().any(|slot| slot.number == number)
            }
            Kind::Ordinary | Kind::Forced => pass.epoch == breaker.epoch,
        }
    }

    fn step(&mut self, event: Event) -> Result<(), TestCaseError> {
        let before = self.bench.clone();
        match event {
            Event::Wait(seconds) => self.now = self.now.plus(secs(seconds)),
            Event::Asked(seconds) => self.bench.breaker.rest_until(self.now.plus(secs(seconds))),
            Event::Offer(elsewhere, suits) => {
                self.offer(Ask { elsewhere, suits, ..ask(self.now) })?;
            }
            Event::Force => {
                let admission = self.bench.breaker.force(&alone(self.now), &self.bench.limits);
                self.changed(&before, admission.change)?;
                let pass =
                    admission.pass.map_err(|_| TestCaseError::fail("a forced call was denied"))?;
                self.forced += usize::from(pass.is_probe());
                self.passes.push((pass, self.now.plus(LEASE)));
            }
            Event::Started(ix) => {
                let Some(held) = self.pass(ix) else { return Ok(()) };
                let is_awaited = self.is_awaited(&held);
                let change = self.bench.breaker.started(&held.0, self.now, &self.bench.limits);
                prop_assert!(is_awaited || self.bench == before, "a stale pass counted");
                self.changed(&before, change)?;
            }
            Event::Note(ix, verdict) => self.note(ix, verdict)?,
            Event::Release(ix) => {
                let Some(held) = self.pass(ix) else { return Ok(()) };
                let state = before.state(self.now);
                let is_awaited = self.is_awaited(&held);
                self.bench.breaker.release(held.0);
                prop_assert!(is_awaited || self.bench.state(self.now) == state);
                self.changed(&before, None)?;
            }
        }
        self.always()
    }

    fn offer(&mut self, ask: Ask) -> Result<(), TestCaseError> {
        self.bench.breaker.offer(self.now, &self.bench.limits);
        let before = self.bench.clone();
        let looked = before.breaker.look(&ask, &before.limits);
        let admission = self.bench.breaker.admit(&ask, &self.bench.limits);
        prop_assert_eq!(looked.err(), admission.pass.as_ref().err().copied());
        self.changed(&before, admission.change)?;
        let is_acting = before.limits.mode == Mode::Automatic;
        if admission.pass.is_ok() {
            let is_open = matches!(self.bench.state(self.now), State::Open { .. });
            prop_assert!(!(is_open && is_acting), "a call went to an open target");
            prop_assert!(self.now >= self.bench.breaker.asked, "it had asked to be left alone");
        }
        if let Err(denied) = &admission.pass {
            prop_assert!(denied.until.is_some_and(|until| until >= self.now));
        }
        self.passes.extend(admission.pass.ok().map(|pass| (pass, self.now.plus(LEASE))));
        Ok(())
    }

    fn note(&mut self, ix: usize, verdict: Verdict) -> Result<(), TestCaseError> {
        let Some(held) = self.pass(ix) else { return Ok(()) };
        let before = self.bench.clone();
        let is_awaited = self.is_awaited(&held);
        let kind = held.0.kind;
        let Bench { breaker, limits } = &mut self.bench;
        let change = breaker.note(held.0, verdict, self.now, limits, &mut self.dice);
        if !is_awaited {
            prop_assert_eq!(change, None);
            prop_assert_eq!(self.bench.state(self.now), before.state(self.now));
            prop_assert_eq!(&self.bench.breaker.window, &before.breaker.window);
            return Ok(());
        }
        if verdict == Verdict::Neutral {
            prop_assert_eq!(change, None);
            prop_assert_eq!(&self.bench.breaker.window, &before.breaker.window);
            prop_assert_eq!(self.bench.breaker.row, before.breaker.row);
        }
        if kind == Kind::Ordinary {
            let whole = before.breaker.is_whole(self.now, &before.limits);
            let Limits { failures, min_calls, probation, .. } = before.limits;
            let rule = if whole {
                (failures, min_calls)
            } else {
                (probation.failures, probation.min_calls)
            };
            self.account.note(verdict, self.now);
            let opens = matches!(verdict, Verdict::Failure | Verdict::Soft)
                && self.account.opens(self.now, &before.limits, rule);
            prop_assert_eq!(change.is_some(), opens, "by the account: {:?}", self.account.counted);
            let is_first = matches!(change, Some(Transition::Opened { .. }));
            prop_assert!(change.is_none() || is_first == whole);
        } else if before.state(self.now) == self.bench.state(self.now) {
            // A test that was carried past its probation counts like any other call.
            if self.bench.breaker.window != before.breaker.window {
                self.account.note(verdict, self.now);
            }
        } else if self.bench.breaker.window != before.breaker.window {
            self.account.note(verdict, self.now);
        }
        self.changed(&before, change)
    }

    /// One cause, one change, one new epoch; and the numbers of a rest add up.
    fn changed(&mut self, before: &Bench, change: Option<Transition>) -> Result<(), TestCaseError> {
        let epochs = self.bench.breaker.epoch - before.breaker.epoch;
        let Some(change) = change else {
            prop_assert_eq!(epochs, 0);
            return Ok(());
        };
        self.trace.push(format!("{:?} {change}", self.now));
        match change {
            Transition::Restored { .. } => prop_assert_eq!(epochs, 0),
            Transition::Opened { until, rest, .. } | Transition::Reopened { until, rest, .. } => {
                prop_assert_eq!(epochs, 1);
                prop_assert_eq!(until, self.now.plus(rest.length()));
                prop_assert!(until >= self.bench.breaker.asked);
                let limits = &self.bench.limits;
                let half = (rest.since_first / 2).clamp(limits.shortest_rest, limits.longest_rest);
                let spread = half.mul_f64(limits.jitter);
                prop_assert!(
                    half.saturating_sub(spread) <= rest.thrown && rest.thrown <= half + spread
                );
                self.account = Account::default();
            }
            Transition::Closed { started, finished, .. } => {
                let canary = self.bench.limits.canary;
                prop_assert!(finished > 0 && started >= finished);
                prop_assert!(started >= canary.passes || !canary.patience.is_zero());
                prop_assert!(epochs >= 1);
                self.account = Account::default();
            }
            Transition::HalfOpened { .. } => prop_assert_eq!(epochs, 1),
        }
        Ok(())
    }

    /// What holds at every moment.
    fn always(&self) -> Result<(), TestCaseError> {
        let Bench { breaker, limits } = &self.bench;
        // Tests in flight: never more than may be, but for those that were forced in.
        prop_assert!(
            breaker.in_flight(self.now) as usize <= limits.canary.at_once as usize + self.forced
        );
        // Permits are conserved: each slot is one pass that did not come back.
        for slot in &breaker.slots {
            let owners =
                self.passes.iter().filter(|(pass, _)| pass.kind == Kind::Canary(slot.number));
            prop_assert_eq!(owners.count(), 1);
        }
        // Half-open always ends: once the leases are over, a call that has no other target is let in.
        let later = self.now.plus(LEASE).plus(limits.longest_rest * 6 / 5).max(breaker.asked);
        prop_assert_eq!(breaker.look(&alone(later), limits), Ok(()));
        prop_assert!(breaker.slots.len() <= MAX_CANARIES);
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn any_history_keeps_the_rules(
        limits in some_limits(),
        events in prop::collection::vec(event(), 0..150),
        seed: u64,
    ) {
        let (mut run, mut again) = (Run::new(limits, seed), Run::new(limits, seed));
        for event in events {
            run.step(event)?;
            again.step(event)?;
        }
        prop_assert_eq!(run.trace, again.trace, "the same seed, another story");
        // At quiescence nothing is held.
        for (pass, _) in run.passes {
            run.bench.breaker.release(pass);
        }
        prop_assert_eq!(run.bench.breaker.slots, []);
    }

    /// The clock may jump: nothing panics, and the target is never lost.
    #[test]
    fn no_jump_of_the_clock_shuts_a_target_for_good(
        limits in some_limits(),
        steps in prop::collection::vec((any::<u32>(), 0..3_usize), 0..80),
        seed: u64,
    ) {
        let mut run = Run::new(limits, seed);
        for (moment, what) in steps {
            run.now = at(u64::from(moment));
            let ask = alone(run.now);
            let admission = match what {
                0 => run.bench.breaker.admit(&ask, &limits),
                _ => run.bench.breaker.force(&ask, &limits),
            };
            if let Ok(pass) = admission.pass {
                let verdict = if what == 2 { Verdict::Success } else { Verdict::Failure };
                let _ = run.bench.breaker.note(pass, verdict, run.now, &limits, &mut run.dice);
            }
        }
        run.now = at(u64::from(u32::MAX));
        run.always()?;
    }
}
