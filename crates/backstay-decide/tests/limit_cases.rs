//! Reports of limits that went wrong elsewhere, played over the values together.

use std::time::Duration;

use backstay_decide::Moment;
use backstay_decide::aimd::{Bounds, Place, Places};
use backstay_decide::extra::{Arrival, Budget, Kind, Limits, Made};
use backstay_decide::pacing::{Cost, Dimension, Pacer, Per, Rate, Reservation, Share, Unit};

const REQUESTS: Dimension = Dimension { unit: Unit::Requests, per: Per::Minute };
const TOKENS: Dimension = Dimension { unit: Unit::Total, per: Per::Minute };

const fn at(seconds: u64) -> Moment {
    Moment::at(Duration::from_secs(seconds))
}

/// All limits of a target are asked before any is taken.
fn admit(
    places: &mut Places,
    bounds: &Bounds,
    pacer: &mut Pacer,
    now: Moment,
) -> Result<(Place, Reservation), String> {
    places.check(0, bounds).map_err(|full| full.to_string())?;
    let reservation = pacer.reserve(Cost::request(10, 10), now).map_err(|wait| wait.to_string())?;
    let place = places.take(0, bounds).map_err(|full| full.to_string())?;
    Ok((place, reservation))
}

/// Case B229: a call refused for want of a place used up a request of the rate.
#[test]
fn a_call_without_a_place_takes_nothing_of_the_rate() {
    let bounds = Bounds { floor: 1, ceiling: 1, bytes: 0 };
    let (mut places, rate) = (Places::new(), Rate { dimension: REQUESTS, limit: 2 });
    let mut pacer = Pacer::new(&[rate], Share::default().burst(1000), at(0));
    let (place, reservation) = admit(&mut places, &bounds, &mut pacer, at(0)).unwrap();
    let refused = admit(&mut places, &bounds, &mut pacer, at(0)).unwrap_err();
    assert_eq!(refused, "1 calls in flight, 1 allowed now");
    pacer.settle(reservation, Cost::request(10, 10), at(1));
    places.give(place);
    assert!(admit(&mut places, &bounds, &mut pacer, at(1)).is_ok());
    let waits = pacer.check(Cost::request(1, 1), at(1)).unwrap_err();
    assert!(waits.to_string().contains("2 of 2 taken"), "{waits}");
}

/// Case B223: what is refused before it is sent gives its place and its rate back.
#[test]
fn a_malformed_request_leaves_no_slot_taken() {
    let bounds = Bounds { floor: 1, ceiling: 1, bytes: 0 };
    let (mut places, mut pacer) = (Places::new(), Pacer::new(&[], Share::default(), at(0)));
    let (place, reservation) = admit(&mut places, &bounds, &mut pacer, at(0)).unwrap();
    pacer.settle(reservation, Cost::NOTHING, at(0));
    places.give(place);
    assert!(admit(&mut places, &bounds, &mut pacer, at(0)).is_ok());
}

/// Case B234: N processes with one limit each. What this library promises is a limit a process; with
/// the share divided they keep the whole.
#[test]
fn four_processes_with_a_quarter_of_the_share_keep_the_limit_together() {
    let rate = Rate { dimension: TOKENS, limit: 10_000 };
    let mut all: Vec<Pacer> =
        (0..4).map(|_| Pacer::new(&[rate], Share::per_mille(200).burst(50), at(0))).collect();
    let mut sent = 0;
    for second in 0..60 {
        for pacer in &mut all {
            while let Ok(_kept) = pacer.reserve(Cost::request(100, 0), at(second)) {
                sent += 100;
            }
        }
    }
    assert!((9_000..=10_000).contains(&sent), "{sent}");
}

/// Case B161: layers that retry each by themselves. A caller that repeats gets no retry here, and
/// what it repeats is paid from the budget that others retry from.
#[test]
fn a_caller_that_retries_itself_is_not_multiplied() {
    let limits = Limits::default();
    let mut budget = Budget::new(&limits, at(0));
    let mut sent = 0;
    for times in 0..4 {
        let arrival = if times == 0 { Arrival::First } else { Arrival::Repeated(times) };
        let visit = budget.arrive(arrival, &limits, at(0));
        sent += 1;
        for _ in 0..2 {
            if let Ok(grant) = budget.ask(Kind::Retry, &visit, &limits, at(0)) {
                sent += 1;
                budget.end(grant, Made::Sent, &limits);
            }
        }
        budget.leave(visit, at(0));
    }
    assert_eq!(sent, 6, "2 retries of ours for the first, then the caller's own 3: not 12");
}

/// Fifty models behind one host, one call at a time: each has a budget of its own, and none starves.
#[test]
fn fifty_models_one_at_a_time_get_their_retries() {
    let limits = Limits::default();
    let mut budgets: Vec<Budget> = (0..50).map(|_| Budget::new(&limits, at(0))).collect();
    // The first model is in a storm of its own and spends everything.
    let storm: Vec<_> =
        (0..20).map(|_| budgets[0].arrive(Arrival::First, &limits, at(0))).collect();
    while let Ok(grant) = budgets[0].ask(Kind::Retry, &storm[0], &limits, at(0)) {
        budgets[0].end(grant, Made::Sent, &limits);
    }
    for round in 0..100 {
        for budget in &mut budgets[1..] {
            let now = at(round);
            let visit = budget.arrive(Arrival::First, &limits, now);
            for _ in 0..2 {
                let grant = budget.ask(Kind::Retry, &visit, &limits, now).unwrap();
                budget.end(grant, Made::Sent, &limits);
            }
            budget.leave(visit, now);
        }
    }
}
