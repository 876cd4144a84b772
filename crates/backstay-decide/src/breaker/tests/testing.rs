//! Which calls test an open circuit, and what their ends mean.

use super::*;

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
    let all = Denial::Testing { tests: 3, most: 3 };
    assert_eq!(bench.denied(ask(at(31))), (Some(at(90)), all));
    assert_eq!(bench.denied(alone(at(31))), (Some(at(90)), all));
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
        Denied { until: Some(at(50)), why: share(50, 19) }
    );
    assert!(bench.offer(ask(at(50))).is_ok(), "one is due after ten seconds");
    assert!(bench.offer(ask(at(60))).is_err(), "but not two calls in a row");
    assert_eq!(bench.denied(ask(at(70))), (Some(at(70)), share(50, 19)));
    assert!(bench.offer(ask(at(70))).is_ok());
    // Where nobody else is, no share turns calls away.
    let mut bench = Bench::opened(at(0));
    assert!((0..3).all(|_| bench.offer(alone(at(40))).is_ok()));
}

#[test]
fn a_call_that_does_not_suit_is_no_test_unless_nobody_else_is() {
    let mut bench = Bench::opened(at(0));
    let unsuited = Ask { suits: unfit(), ..ask(at(30)) };
    let why = Denial::Unfit(Unfit::Effect { field: "store" });
    assert_eq!(bench.admit(unsuited).unwrap_err().why, why);
    assert!(bench.admit(Ask { elsewhere: Elsewhere::Nobody, ..unsuited }).is_ok());
    assert!(Bench::on_probation(at(30)).admit(unsuited).is_ok());
    // Out of the share, that is the reason.
    let denied = bench.admit(Ask { now: at(31), ..unsuited }).unwrap_err();
    assert_eq!(denied.why, share(50, 20));
}

#[test]
fn where_no_call_suits_for_minutes_any_may_be_a_test() {
    let mut bench = Bench::opened(at(0));
    let unsuited = |now| Ask { suits: unfit(), ..ask(now) };
    for second in 30..330 {
        assert!(bench.offer(unsuited(at(second))).is_err(), "at {second} s");
    }
    let test = bench.offer(unsuited(at(330))).unwrap();
    assert!(test.is_probe());
    assert!(bench.offer(unsuited(at(331))).is_err());
    let mut never = Bench::opened(at(0));
    never.limits.canary.patience = Duration::ZERO;
    assert!(never.offer(unsuited(at(30))).is_err());
    assert!(never.offer(unsuited(at(9_000))).is_err());
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
    let unstarted = copy(&tests[5]);
    let mut tests = tests.into_iter();
    let closed = bench.note(tests.next().unwrap(), Verdict::Success, at(40));
    assert_eq!(
        closed,
        Some(Transition::Closed { started: 5, finished: 1, probation: MINUTE, after: secs(40) })
    );
    // The others are carried over: one that ends badly after all opens it again.
    let mut calm = bench.clone();
    let late = tests.next().unwrap();
    assert_eq!(calm.note(copy(&late), Verdict::Success, at(50)), None);
    assert_eq!(calm.breaker.tally(at(50), &calm.limits).calls, 1);
    let reopened = bench.note(late, Verdict::Soft, at(50));
    let why = Why::Late;
    let rest = Rest { since_first: secs(50), base: secs(30), thrown: secs(30), asked: None };
    assert_eq!(reopened, Some(Transition::Reopened { until: at(80), why, rest }));
    // Of one without content so far nobody says that it had brought some.
    let mut bare = calm.clone();
    let reopened = bare.note(unstarted, Verdict::Failure, at(50));
    let why = Why::Leftover;
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
    assert_eq!(
        closed,
        Some(Transition::Closed { started: 2, finished: 1, probation: MINUTE, after: secs(31) })
    );
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
    assert_eq!(bench.denied(alone(at(89))), (Some(at(90)), Denial::Testing { tests: 1, most: 1 }));
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
    let change =
        Transition::Closed { started: 1, finished: 1, probation: MINUTE, after: secs(330) };
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
