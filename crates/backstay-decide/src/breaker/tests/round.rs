//! A circuit goes all the way round, and counts its epochs.

use super::*;

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
    assert_eq!(bench.breaker.last_change(), Some(opened));
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
    assert_eq!(
        closed,
        Transition::Closed { started: 5, finished: 5, probation: MINUTE, after: secs(34) }
    );
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

#[test]
fn the_view_tells_since_when_a_state_holds_though_nobody_came_to_see() {
    let mut bench = Bench::opened(at(5));
    let since = |bench: &Bench, seconds| {
        let view = bench.breaker.view(at(seconds), &bench.limits);
        (view.state.name(), view.since, view.epoch)
    };
    assert_eq!(since(&bench, 10), ("open", at(5), 1));
    assert_eq!(since(&bench, 50), ("half_open", at(35), 1));
    let test = bench.admit(ask(at(50))).unwrap();
    assert_eq!(since(&bench, 51), ("half_open", at(35), 2));
    assert_eq!(bench.breaker.view(at(51), &bench.limits).tests, 1);
    bench.note(test, Verdict::Neutral, at(51));
    bench.close(at(61));
    assert_eq!(since(&bench, 61), ("probation", at(61), 3));
    assert_eq!(since(&bench, 500), ("closed", at(121), 3));
    bench.call(at(500), Verdict::Success);
    assert_eq!(since(&bench, 501), ("closed", at(121), 3));
}

#[test]
fn the_view_has_the_rate_it_is_judged_by_only_where_there_are_calls_enough() {
    let mut bench = Bench::new(Limits { failures: 0, min_calls: 4, ..limits() });
    for verdict in [Verdict::Success, Verdict::Success, Verdict::Failure] {
        bench.call(at(1), verdict);
    }
    let few = bench.breaker.view(at(1), &bench.limits);
    assert_eq!((few.seen.calls, few.seen.failures, few.row), (3, 1, 1));
    assert_eq!((few.judged, few.bound), (None, None));
    bench.call(at(1), Verdict::Success);
    let enough = bench.breaker.view(at(1), &bench.limits);
    assert_eq!(enough.judged, Some(enough.seen));
    assert_eq!(enough.bound, Some(lower_bound(1, 4, bench.limits.z)));
    // A minute later they count only as the last ones before the window.
    let later = bench.breaker.view(at(100), &bench.limits);
    assert_eq!((later.seen.calls, later.judged.map(|seen| seen.calls)), (0, Some(4)));
}

#[test]
fn a_change_names_the_states_it_leads_from_and_to_and_its_cause() {
    let rest = Rest { since_first: secs(0), base: secs(30), thrown: secs(30), asked: None };
    let reopened = |why| Transition::Reopened { until: at(9), why, rest };
    let half_opened = |by| Transition::HalfOpened { after: secs(9), by };
    let closed =
        |probation| Transition::Closed { started: 5, finished: 5, probation, after: secs(9) };
    let seen = Tally { calls: 1, failures: 0, span: secs(60) };
    let opened = Transition::Opened { until: at(9), why: Why::Row { failures: 3 }, rest };
    let failed = Why::Canary { started: 1, passes: 5 };
    for (change, from, to, cause) in [
        (opened, "closed", "open", "row"),
        (reopened(failed), "half_open", "open", "test_failed"),
        (reopened(Why::Late), "probation", "open", "test_ended_badly"),
        (reopened(Why::Leftover), "probation", "open", "late_test_failed"),
        (half_opened(Ending::Time), "open", "half_open", "time"),
        (half_opened(Ending::ForcedCall), "open", "half_open", "forced_call"),
        (closed(secs(0)), "half_open", "closed", "tests_passed"),
        (closed(MINUTE), "half_open", "probation", "tests_passed"),
        (Transition::Restored { seen }, "probation", "closed", "time"),
    ] {
        assert_eq!((change.ends(), change.cause()), ((from, to), cause), "{change:?}");
    }
}
