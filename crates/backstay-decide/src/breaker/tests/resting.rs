//! How long an open circuit rests.

use super::*;

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

#[test]
fn a_delay_as_long_as_the_own_rest_adds_nothing_to_it() {
    let mut bench = Bench::new(limits());
    let passes: Vec<Pass> = (0..3).map(|_| bench.admit(ask(at(0))).unwrap()).collect();
    bench.breaker.rest_until(at(35));
    let mut opened =
        passes.into_iter().filter_map(|pass| bench.note(pass, Verdict::Failure, at(5)));
    let Some(Transition::Opened { until, rest, .. }) = opened.next() else { panic!("not opened") };
    assert_eq!((until, rest.thrown, rest.asked), (at(35), secs(30), None));
}
