//! The meter against what it promises: no window over the limit, and no refund too large.

use proptest::prelude::*;

use super::*;

const PACE: Pace = Pace { rate: 60, burst: 10 };

const fn at(millis: u64) -> Moment {
    Moment::at(Duration::from_millis(millis))
}

/// A meter that has only just become empty.
fn empty(pace: Pace) -> Meter {
    Meter { level: 0, ..Meter::new(pace, at(0)) }
}

#[test]
fn the_burst_goes_at_once_and_the_rest_at_the_rate() {
    let mut meter = empty(PACE);
    for order in 0..10 {
        assert_eq!(meter.wait(1, 0, PACE), Duration::ZERO);
        meter.reserve(1, order);
    }
    assert_eq!(meter.wait(1, 0, PACE), Duration::from_secs(1));
    assert_eq!(meter.wait(4, 0, PACE), Duration::from_secs(4));
    meter.drain(PACE, at(999));
    assert_eq!(meter.wait(1, 0, PACE), Duration::from_millis(1));
    meter.drain(PACE, at(1000));
    assert_eq!(meter.wait(1, 0, PACE), Duration::ZERO);
    meter.drain(PACE, at(500));
    assert_eq!(
        meter.wait(2, 0, PACE),
        Duration::from_secs(1),
        "time that goes back drains nothing"
    );
}

#[test]
fn a_wait_is_rounded_up_to_the_nanosecond() {
    let pace = Pace { rate: 7, burst: 1 };
    let mut meter = empty(pace);
    meter.reserve(1, 0);
    let wait = meter.wait(1, 0, pace);
    meter.drain(pace, Moment::ORIGIN.plus(wait.saturating_sub(Duration::from_nanos(1))));
    assert!(!meter.wait(1, 0, pace).is_zero());
    meter.drain(pace, Moment::ORIGIN.plus(wait));
    assert!(meter.wait(1, 0, pace).is_zero());
}

/// Case B232: a request of 800 with room for 667 waits a bounded time.
#[test]
fn a_request_over_the_burst_needs_the_meter_to_have_been_empty() {
    let mut meter = empty(PACE);
    assert_eq!(meter.wait(40, 0, PACE), Duration::from_secs(30));
    meter.drain(PACE, at(30_000));
    assert_eq!(meter.wait(40, 0, PACE), Duration::ZERO);
    meter.reserve(40, 0);
    // The time it was empty is used up: 40 stand in it, and 30 must drain before the next.
    assert_eq!((meter.used(), meter.wait(10, 0, PACE)), (40, Duration::from_secs(40)));
    assert_eq!(Meter::new(PACE, at(0)).wait(70, 0, PACE), Duration::ZERO, "idle for a minute");
    assert_eq!(
        empty(PACE).wait(5000, 0, PACE),
        Duration::from_mins(1),
        "never longer than a minute"
    );
}

#[test]
fn nothing_drains_at_a_rate_of_zero() {
    let none = Pace { rate: 0, burst: 0 };
    let mut meter = Meter::new(none, at(0));
    meter.drain(none, at(u64::MAX));
    assert_eq!(meter.wait(0, 0, none), Duration::ZERO);
    meter.reserve(1, 0);
    assert_eq!(meter.wait(1, 0, none), Duration::MAX);
}

#[test]
fn a_new_rate_keeps_the_debt() {
    let mut meter = empty(PACE);
    meter.reserve(10, 0);
    meter.debit(20);
    assert_eq!((meter.used(), meter.wait(10, 0, PACE)), (30, Duration::from_secs(30)));
    let slower = Pace { rate: 6, burst: 10 };
    assert_eq!((meter.used(), meter.wait(10, 0, slower)), (30, Duration::from_mins(5)));
}

#[test]
fn what_was_not_used_comes_back_at_once() {
    let mut meter = empty(PACE);
    meter.reserve(10, 1);
    assert_eq!(meter.refund(9, 1), scaled(9));
    assert_eq!((meter.used(), meter.wait(9, 0, PACE)), (1, Duration::ZERO));
    assert_eq!(meter.refund(9, 0), 0, "nothing is known of that one");
}

#[test]
fn what_has_drained_does_not_come_back() {
    let mut meter = empty(PACE);
    meter.reserve(10, 1);
    meter.drain(PACE, at(8000));
    meter.reserve(5, 2);
    // Had 1 been reserved, the meter would have run dry after a second; 2 of the first are left.
    assert_eq!(meter.refund(9, 1), scaled(2));
    assert_eq!(meter.used(), 5);
}

#[test]
fn while_there_is_a_queue_a_late_refund_comes_back_whole() {
    let mut meter = empty(PACE);
    let mut order = 0;
    let mut now = 0;
    for _ in 0..10 {
        meter.reserve(1, order);
        order += 1;
    }
    let first = order;
    for _ in 0..30 {
        now += 5000;
        meter.drain(PACE, at(now));
        assert!(meter.wait(5, 0, PACE).is_zero());
        meter.reserve(5, order);
        order += 1;
    }
    assert_eq!(meter.refund(4, first), scaled(4));
}

#[test]
fn a_burst_of_hundreds_gets_nearly_all_of_its_refunds() {
    let pace = Pace { rate: 1_000_000, burst: 1_000_000 };
    let mut meter = empty(pace);
    for order in 0..900 {
        meter.reserve(1000, order);
    }
    let given: i128 = (0..900).rev().map(|order| meter.refund(900, order)).sum();
    assert!(given >= scaled(900 * 900 * 95 / 100), "{} units", units(given));
    assert!(meter.lows.len() <= MOST_LOWS);
}

#[test]
fn the_providers_word_leaves_only_the_room_it_told() {
    let mut meter = empty(PACE);
    meter.leave_room(70, None, PACE);
    assert_eq!(meter.used(), 0, "more room than the burst says nothing");
    meter.leave_room(3, None, PACE);
    assert_eq!((meter.used(), meter.wait(3, 0, PACE)), (7, Duration::ZERO));
    meter.leave_room(8, None, PACE);
    assert_eq!(meter.used(), 7, "down at once, never up");
    meter.leave_room(0, None, PACE);
    assert_eq!(meter.wait(1, 0, PACE), Duration::from_secs(1));
}

#[test]
fn a_room_as_large_as_the_burst_takes_no_leave() {
    let mut idle = Meter::new(PACE, at(0));
    idle.leave_room(10, None, PACE);
    assert_eq!(idle.wait(70, 0, PACE), Duration::ZERO);
}

#[test]
fn of_a_later_reservation_more_comes_back_than_of_one_that_has_drained() {
    let mut meter = empty(PACE);
    meter.reserve(5, 1);
    meter.drain(PACE, at(3000));
    meter.reserve(10, 2);
    meter.drain(PACE, at(7000));
    let mut other = meter.clone();
    assert_eq!((meter.refund(10, 2), other.refund(5, 1)), (scaled(8), scaled(2)));
}

#[test]
fn what_the_provider_had_not_seen_is_taken_off_the_room_it_told() {
    let mut meter = empty(PACE);
    let mark = meter.reserve(1, 0);
    meter.reserve(4, 1);
    meter.leave_room(6, Some(mark), PACE);
    assert_eq!(meter.wait(2, 0, PACE), Duration::ZERO);
    assert_eq!(meter.wait(3, 0, PACE), Duration::from_secs(1));
    meter.drain(PACE, at(3000));
    meter.leave_room(6, Some(mark), PACE);
    assert_eq!(meter.used(), 5, "three of the four have drained, at the provider too");
}

#[derive(Clone, Copy, Debug)]
struct Call {
    sleep: u64,
    cost: u64,
    /// Thousandths of the cost that are used.
    used: u64,
    /// How many calls later it is settled.
    settles: usize,
}

fn call() -> impl Strategy<Value = Call> {
    (0_u64..20_000, 1_u64..400, 0_u64..=1000, 0_usize..6).prop_map(
        |(sleep, cost, used, settles)| Call {
            sleep: if sleep < 12_000 { sleep / 40 } else { sleep },
            cost,
            used,
            settles,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Invariant 8: no window holds more than `rate * window + burst`, refunds included; one with a
    /// request over the burst in it, no more than a minute may. Counted is what was used, at the time
    /// it was reserved. Invariant 9: what comes back is never more than what was not used.
    #[test]
    fn no_window_holds_more_than_rate_and_burst(
        rate in 1_u64..600, burst in 1_u64..300, calls in prop::collection::vec(call(), 1..120),
    ) {
        let pace = Pace { rate, burst };
        let mut meter = Meter::new(pace, at(0));
        let mut now = 0;
        let mut given: Vec<(u64, u64, u64)> = Vec::new();
        let mut open: Vec<(usize, u64, u64)> = Vec::new();
        for (ix, Call { sleep, cost, used, settles }) in calls.into_iter().enumerate() {
            now += sleep;
            meter.drain(pace, at(now));
            let (due, still): (Vec<_>, Vec<_>) = open.into_iter().partition(|(when, ..)| *when <= ix);
            open = still;
            for (_, unused, order) in due {
                let before = meter.level;
                let back = meter.refund(unused, order);
                prop_assert!(back >= 0 && back <= scaled(unused) && before - back == meter.level);
            }
            if cost > pace.most() || !meter.wait(cost, 0, pace).is_zero() {
                continue;
            }
            let order = ix as u64;
            meter.reserve(cost, order);
            let taken = cost * used / 1000;
            given.push((now, taken, cost));
            open.push((ix + settles, cost - taken, order));
        }
        let rate_ms = |millis: u64| rate * millis;
        for (first, &(from, ..)) in given.iter().enumerate() {
            let (mut sum, mut large) = (0, false);
            for &(when, taken, cost) in &given[first..] {
                sum += taken;
                large |= cost > burst;
                let window = if large { (when - from).max(60_000) } else { when - from };
                prop_assert!(
                    sum * 60_000 <= rate_ms(window) + burst * 60_000 + 60_000,
                    "{sum} in {} ms at {rate} a minute and a burst of {burst}", when - from
                );
            }
        }
    }

    /// The level with late refunds is never below what it would be had each call reserved exactly
    /// what it used.
    #[test]
    fn a_refund_never_gives_back_what_has_drained(
        rate in 1_u64..600, calls in prop::collection::vec(call(), 1..150), seed: u64,
    ) {
        let pace = Pace { rate, burst: u64::MAX / 4 };
        let (mut meter, mut ideal) = (empty(pace), empty(pace));
        let mut now = 0;
        let mut open: Vec<(usize, u64, u64)> = Vec::new();
        for (ix, Call { sleep, cost, used, settles }) in calls.into_iter().enumerate() {
            now += sleep;
            meter.drain(pace, at(now));
            ideal.drain(pace, at(now));
            let taken = cost * used / 1000;
            meter.reserve(cost, ix as u64);
            ideal.reserve(taken, ix as u64);
            // Some are settled out of order.
            open.push((ix + settles + usize::from(seed >> (ix % 64) & 1 == 1), cost - taken, ix as u64));
            let (due, still): (Vec<_>, Vec<_>) = open.into_iter().partition(|(when, ..)| *when <= ix);
            open = still;
            for (_, unused, order) in due {
                meter.refund(unused, order);
            }
            prop_assert!(meter.level.max(0) >= ideal.level.max(0));
            prop_assert!(meter.lows.len() <= MOST_LOWS);
            prop_assert!(meter.lows.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{:?}", meter.lows);
            prop_assert!(meter.lows.last().is_none_or(|(_, low)| *low <= meter.level.max(0)));
        }
    }

    #[test]
    fn after_the_wait_it_fits_and_not_before(
        rate in 1_u64..6000, burst in 1_u64..3000, stands in 0_u64..9000, cost in 1_u64..9000,
    ) {
        let pace = Pace { rate, burst };
        prop_assume!(cost <= pace.most());
        let mut meter = empty(pace);
        meter.reserve(stands, 0);
        let wait = meter.wait(cost, 0, pace);
        if let Some(short) = wait.checked_sub(Duration::from_nanos(1)) {
            let mut early = meter.clone();
            early.drain(pace, Moment::at(short));
            prop_assert!(!early.wait(cost, 0, pace).is_zero());
        }
        meter.drain(pace, Moment::at(wait));
        prop_assert!(meter.wait(cost, 0, pace).is_zero());
    }

    #[test]
    fn no_number_overflows(
        rate: u64, burst: u64, costs in prop::collection::vec(any::<u64>(), 0..20), nanos in any::<[u64; 3]>(),
    ) {
        let pace = Pace { rate, burst };
        let mut meter = Meter::new(pace, at(0));
        for (order, cost) in costs.into_iter().enumerate() {
            let mark = meter.reserve(cost, order as u64);
            meter.debit(cost);
            let _ = (meter.wait(cost, 0, pace), meter.used(), meter.refund(cost, order as u64));
            meter.leave_room(cost, Some(mark), pace);
            meter.drain(pace, Moment::at(Duration::from_secs(nanos[order % 3])));
        }
    }
}
