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
