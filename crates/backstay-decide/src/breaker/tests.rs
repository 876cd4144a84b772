//! Tests of the breaker: each edge of its picture, then random histories.

use proptest::prelude::*;

use super::*;
use crate::dice::{Scripted, Seeded};

const fn at(seconds: u64) -> Moment {
    Moment::at(Duration::from_secs(seconds))
}

fn limits() -> Limits {
    Limits { failures: 3, ..Limits::default() }
}

/// The middle of the dice: a rest without jitter.
fn even() -> Scripted {
    Scripted(Vec::new())
}

/// A circuit opened at `now` by three failures.
fn opened(now: Moment) -> Breaker {
    let mut breaker = Breaker::new();
    for _ in 0..3 {
        let pass = breaker.admit(now, &limits()).unwrap();
        let _ = breaker.note(pass, Verdict::Failure, now, &limits(), &mut even());
    }
    breaker
}

#[test]
fn opens_after_the_limit_and_closes_after_a_good_probe() {
    let mut breaker = Breaker::new();
    for failures in 1..3 {
        let pass = breaker.admit(at(0), &limits()).unwrap();
        assert_eq!(breaker.note(pass, Verdict::Failure, at(0), &limits(), &mut even()), None);
        assert_eq!(breaker.state(at(0)), State::Closed { failures });
    }
    let pass = breaker.admit(at(0), &limits()).unwrap();
    let change = breaker.note(pass, Verdict::Failure, at(0), &limits(), &mut even());
    assert_eq!(change, Some(Transition::Opened { until: at(30) }));
    assert_eq!(breaker.admit(at(29), &limits()), None);
    assert_eq!(breaker.rests_until(at(29)), Some(at(30)));

    let probe = breaker.admit(at(30), &limits()).unwrap();
    assert!(probe.is_probe());
    assert_eq!(breaker.state(at(30)), State::Probing);
    assert_eq!(breaker.admit(at(31), &limits()), None, "one probe at a time");
    let change = breaker.note(probe, Verdict::Success, at(32), &limits(), &mut even());
    assert_eq!(change, Some(Transition::Closed));
    assert_eq!(breaker.state(at(32)), State::Closed { failures: 0 });
    assert!(!breaker.admit(at(32), &limits()).unwrap().is_probe());
}

#[test]
fn a_success_starts_the_count_anew_and_a_neutral_end_leaves_it() {
    let mut breaker = Breaker::new();
    let verdicts = [
        (Verdict::Failure, 1),
        (Verdict::Neutral, 1),
        (Verdict::Failure, 2),
        (Verdict::Success, 0),
        (Verdict::Failure, 1),
    ];
    for (verdict, failures) in verdicts {
        let pass = breaker.admit(at(0), &limits()).unwrap();
        assert_eq!(breaker.note(pass, verdict, at(0), &limits(), &mut even()), None);
        assert_eq!(breaker.state(at(0)), State::Closed { failures });
    }
}

#[test]
fn a_call_from_before_the_opening_changes_nothing_when_it_ends_late() {
    let mut breaker = Breaker::new();
    let slow = breaker.admit(at(0), &limits()).unwrap();
    for _ in 0..3 {
        let pass = breaker.admit(at(1), &limits()).unwrap();
        let _ = breaker.note(pass, Verdict::Failure, at(1), &limits(), &mut even());
    }
    let before = breaker;
    for verdict in [Verdict::Success, Verdict::Failure, Verdict::Neutral] {
        assert_eq!(breaker.note(slow, verdict, at(2), &limits(), &mut even()), None);
        assert_eq!(breaker, before);
    }
    // Nor while a probe is out.
    let probe = breaker.admit(at(60), &limits()).unwrap();
    assert_eq!(breaker.note(slow, Verdict::Failure, at(61), &limits(), &mut even()), None);
    assert_eq!(breaker.note(slow, Verdict::Success, at(61), &limits(), &mut even()), None);
    assert_eq!(breaker.state(at(61)), State::Probing);
    // Nor after it closed the circuit.
    let _ = breaker.note(probe, Verdict::Success, at(62), &limits(), &mut even());
    assert_eq!(breaker.note(slow, Verdict::Failure, at(63), &limits(), &mut even()), None);
    assert_eq!(breaker.state(at(63)), State::Closed { failures: 0 });
}

#[test]
fn a_probe_that_never_reports_makes_way_for_the_next() {
    let mut breaker = opened(at(0));
    let lost = breaker.admit(at(30), &limits()).unwrap();
    assert_eq!(breaker.rests_until(at(31)), Some(at(90)));
    assert_eq!(breaker.admit(at(89), &limits()), None);
    assert_eq!(breaker.state(at(90)), State::Open { until: at(90) });
    let next = breaker.admit(at(90), &limits()).unwrap();
    assert!(next.is_probe());
    // The lost one reports after all: too late to count.
    assert_eq!(breaker.note(lost, Verdict::Failure, at(91), &limits(), &mut even()), None);
    let change = breaker.note(next, Verdict::Success, at(92), &limits(), &mut even());
    assert_eq!(change, Some(Transition::Closed));
}

#[test]
fn a_dropped_or_neutral_probe_lets_the_next_call_probe_at_once() {
    for is_dropped in [true, false] {
        let mut breaker = opened(at(0));
        let probe = breaker.admit(at(40), &limits()).unwrap();
        if is_dropped {
            breaker.release(probe);
        } else {
            let change = breaker.note(probe, Verdict::Neutral, at(41), &limits(), &mut even());
            assert_eq!(change, None);
        }
        assert!(matches!(breaker.state(at(41)), State::Open { .. }));
        assert!(breaker.admit(at(41), &limits()).unwrap().is_probe());
    }
}

#[test]
fn a_released_call_of_a_closed_circuit_changes_nothing() {
    let mut breaker = Breaker::new();
    let pass = breaker.admit(at(0), &limits()).unwrap();
    let before = breaker;
    breaker.release(pass);
    assert_eq!(breaker, before);
}

#[test]
fn the_rest_grows_with_the_outage_and_stays_within_its_limits() {
    let mut breaker = opened(at(0));
    let mut rests = Vec::new();
    let mut now = at(30);
    for _ in 0..12 {
        let probe = breaker.admit(now, &limits()).unwrap();
        match breaker.note(probe, Verdict::Failure, now, &limits(), &mut even()) {
            Some(Transition::Reopened { until }) => {
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
    for (unit, seconds) in [(0.0, 24), (0.5, 30), (1.0, 36)] {
        let rest = cool_off(Duration::ZERO, &limits(), &mut Scripted(vec![unit]));
        assert_eq!(rest, Duration::from_secs(seconds));
    }
    let upside_down = Limits { longest_rest: Duration::from_secs(1), ..limits() };
    assert_eq!(cool_off(Duration::MAX, &upside_down, &mut even()), Duration::from_secs(30));
}

#[test]
fn a_rest_that_was_asked_for_holds_whatever_the_circuit_says() {
    let mut breaker = Breaker::new();
    breaker.rest_until(at(7));
    breaker.rest_until(at(5));
    assert_eq!(breaker.rests_until(at(0)), Some(at(7)));
    assert_eq!(breaker.admit(at(6), &limits()), None);
    assert_eq!(breaker.state(at(6)), State::Closed { failures: 0 });
    assert!(breaker.admit(at(7), &limits()).is_some());
    // A server's delay is a minimum for the circuit's own rest too.
    let mut breaker = opened(at(0));
    breaker.rest_until(at(100));
    assert_eq!(breaker.admit(at(99), &limits()), None);
    assert!(breaker.admit(at(100), &limits()).unwrap().is_probe());
}

#[test]
fn a_forced_call_probes_early_and_may_close_the_circuit() {
    let mut breaker = opened(at(0));
    let forced = breaker.force(at(5), &limits());
    assert!(forced.is_probe());
    let beside = breaker.force(at(6), &limits());
    assert!(beside.is_probe());
    let change = breaker.note(beside, Verdict::Success, at(7), &limits(), &mut even());
    assert_eq!(change, Some(Transition::Closed));
    assert_eq!(breaker.note(forced, Verdict::Failure, at(8), &limits(), &mut even()), None);
    assert!(!Breaker::new().force(at(0), &limits()).is_probe());

    // Once the first probe's lease is over, a forced call is a new probe and voids it.
    let mut breaker = opened(at(0));
    let lost = breaker.force(at(5), &limits());
    let _next = breaker.force(at(65), &limits());
    assert_eq!(breaker.note(lost, Verdict::Success, at(66), &limits(), &mut even()), None);
}

#[test]
fn a_limit_of_zero_failures_counts_as_one() {
    let strict = Limits { failures: 0, ..limits() };
    let mut breaker = Breaker::new();
    let pass = breaker.admit(at(0), &strict).unwrap();
    let change = breaker.note(pass, Verdict::Failure, at(0), &strict, &mut even());
    assert!(matches!(change, Some(Transition::Opened { .. })));
}

/// What may happen to a breaker, at the next moment.
#[derive(Clone, Copy, Debug)]
enum Event {
    Pass(u64),
    Admit,
    Force,
    Rest(u64),
    Note(usize, Verdict),
    Release(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let verdict = prop::sample::select(vec![
        Verdict::Success,
        Verdict::Failure,
        Verdict::Failure,
        Verdict::Failure,
        Verdict::Neutral,
    ]);
    prop_oneof![
        3 => (0_u64..40).prop_map(Event::Pass),
        6 => Just(Event::Admit),
        1 => Just(Event::Force),
        1 => (0_u64..60).prop_map(Event::Rest),
        6 => (0_usize..50, verdict).prop_map(|(ix, verdict)| Event::Note(ix, verdict)),
        1 => (0_usize..50).prop_map(Event::Release),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Outcomes may be late, lost or reported twice: the passes are never taken off the list.
    #[test]
    fn any_history_keeps_the_rules(events in prop::collection::vec(event(), 0..120), seed: u64) {
        let (mut breaker, mut dice, mut now) = (Breaker::new(), Seeded::new(seed), at(0));
        let mut passes: Vec<Pass> = Vec::new();
        for event in events {
            let before = breaker;
            match event {
                Event::Pass(seconds) => now = now.plus(Duration::from_secs(seconds)),
                Event::Admit => {
                    let pass = breaker.admit(now, &limits());
                    prop_assert_eq!(pass.is_some(), before.rests_until(now).is_none());
                    let is_closed = matches!(before.state(now), State::Closed { .. });
                    prop_assert!(pass.is_none_or(|pass| pass.is_probe() != is_closed));
                    passes.extend(pass);
                }
                Event::Force => passes.push(breaker.force(now, &limits())),
                Event::Rest(seconds) => breaker.rest_until(now.plus(Duration::from_secs(seconds))),
                Event::Note(ix, verdict) => {
                    let Some(pass) = passes.get(ix).copied() else { continue };
                    let change = breaker.note(pass, verdict, now, &limits(), &mut dice);
                    prop_assert!(pass.epoch == before.epoch || breaker == before, "a stale report counted");
                    prop_assert_eq!(change.is_some(), breaker.epoch != before.epoch);
                    prop_assert!(verdict != Verdict::Neutral || change.is_none());
                }
                Event::Release(ix) => {
                    let Some(pass) = passes.get(ix).copied() else { continue };
                    breaker.release(pass);
                    prop_assert!(pass.epoch == before.epoch || breaker == before, "a stale release counted");
                }
            }
            prop_assert!(breaker.epoch >= before.epoch);
            // Never shut for longer than a rest with its jitter, a lease, or what was asked for.
            let longest = now.plus(limits().longest_rest * 6 / 5).max(breaker.rest);
            prop_assert!(breaker.rests_until(now).is_none_or(|until| until <= longest));
        }
    }
}
