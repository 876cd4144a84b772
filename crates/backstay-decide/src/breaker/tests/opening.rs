//! What opens a circuit, and what does not.

use super::*;

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

/// Case B190: an error that is counted as a success too can never be more than half of all.
#[test]
fn a_failure_is_counted_once_and_only_as_a_failure() {
    let limits = Limits { rate: 0.6, min_calls: 4, z: 0.0, ..Limits::default() };
    assert!(rated(limits, 0, 4).1.is_some(), "four of four are more than 60 %");
    let (bench, _) = rated(limits, 0, 3);
    let seen = bench.breaker.tally(at(0), &bench.limits);
    assert_eq!((seen.calls, seen.failures), (3, 3));
}
