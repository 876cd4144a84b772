//! Forced calls, and the modes an operator sets.

use super::*;

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
    assert_eq!(
        change,
        Some(Transition::Closed { started: 1, finished: 1, probation: MINUTE, after: secs(6) })
    );
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
fn a_forced_test_makes_way_at_the_moment_its_lease_ends() {
    let mut bench = Bench::opened(at(0));
    let mut force = |now| bench.breaker.force(&alone(now), &bench.limits).pass.unwrap();
    let held: Vec<Pass> = (0..MAX_CANARIES).map(|_| force(at(30))).collect();
    assert!(held.iter().all(Pass::is_probe));
    assert!(!force(at(30).plus(LEASE.saturating_sub(Duration::from_nanos(1)))).is_probe());
    assert!(force(at(30).plus(LEASE)).is_probe());
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

#[test]
fn why_a_call_is_kept_away_is_told_in_words() {
    assert_eq!(Denial::Keys.to_string(), "all its keys rest");
    assert_eq!(Denial::Forced.to_string(), "an operator took it out");
    assert_eq!(
        Denial::Share { thousandths: 125, calls: Some(7) }.to_string(),
        "12.5 % of the calls go there until it has proved itself, the next after 7 more"
    );
    assert_eq!(
        Denial::Share { thousandths: 0, calls: None }.to_string(),
        "0.0 % of the calls go there until it has proved itself"
    );
    assert_eq!(
        Denial::Testing { tests: 2, most: 3 }.to_string(),
        "it is being tested by other calls: 2 of 3 at once"
    );
}
