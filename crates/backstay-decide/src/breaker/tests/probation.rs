//! How a circuit comes back in steps.

use super::*;

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
    assert_eq!(bench.denied(ask(at(31))), (Some(at(31)), share(250, 4)));
}

#[test]
fn on_probation_a_rate_of_its_own_may_hold() {
    let mut bench = Bench::on_probation(at(30));
    bench.limits.z = 0.0;
    bench.limits.probation.rate = 0.05;
    let view = |bench: &Bench, now| bench.breaker.view(now, &bench.limits).allowed;
    assert!((view(&bench, at(40)) - 0.05).abs() < f64::EPSILON);
    assert!((view(&bench, at(90)) - 0.15).abs() < f64::EPSILON);
    for _ in 0..9 {
        assert_eq!(bench.call(at(40), Verdict::Success), None);
    }
    let opened = bench.call(at(40), Verdict::Failure).unwrap();
    let Transition::Reopened { why: Why::Rate { limit, .. }, .. } = opened else {
        panic!("{opened}");
    };
    assert!((limit - 0.05).abs() < f64::EPSILON);
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
