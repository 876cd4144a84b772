//! The budget of extra attempts: its arithmetic, and the bound on amplification.

use std::time::Duration;

use proptest::prelude::*;

use super::*;

const fn at(millis: u64) -> Moment {
    Moment::at(Duration::from_millis(millis))
}

const USUAL: Limits = Limits {
    earned: 100,
    floor: Duration::from_secs(10),
    start: 3,
    cap: 10,
    at_once: 2,
    at_once_share: 200,
};

/// No floor, no start, and room for any number at once: only what is earned.
const EARNED: Limits =
    Limits { floor: Duration::ZERO, start: 0, cap: 100, at_once: u32::MAX, ..USUAL };

/// A call that comes and earns nothing.
fn stay(budget: &mut Budget, limits: &Limits, millis: u64) -> Visit {
    budget.arrive(Arrival::First, &Limits { earned: 0, ..*limits }, at(millis))
}

/// A budget with a second call under way, so that nobody is alone.
fn busy(limits: &Limits) -> (Budget, Visit) {
    let mut budget = Budget::new(limits, at(0));
    let other = stay(&mut budget, limits, 0);
    (budget, other)
}

#[test]
fn the_defaults_are_those_of_the_reference() {
    assert_eq!(Limits::default(), USUAL);
}

#[test]
fn a_start_of_three_gives_three_retries_and_then_tells_when_the_next_comes() {
    let (mut budget, _other) = busy(&USUAL);
    let visit = stay(&mut budget, &USUAL, 0);
    for _ in 0..3 {
        let grant = budget.ask(Kind::Retry, &visit, &USUAL, at(0)).unwrap();
        budget.end(grant, Made::Sent, &USUAL);
    }
    let refusal = budget.ask(Kind::Retry, &visit, &USUAL, at(4000)).unwrap_err();
    assert_eq!(
        (refusal.name(), refusal.to_string().as_str()),
        (
            "extra_spent",
            "no retry: it takes 1 of the target's budget, which holds 0.4; a call earns 0.1, the \
             floor fills it in 6 s"
        )
    );
    assert!(budget.ask(Kind::Retry, &visit, &USUAL, at(9_999)).is_err());
    assert!(budget.ask(Kind::Retry, &visit, &USUAL, at(10_000)).is_ok());
}

/// Case B162: 0.6 must not act as 1.
#[test]
fn six_in_ten_earned_is_six_retries_for_ten_calls() {
    for (earned, calls, retries) in
        [(600, 10, 6), (999, 10, 9), (1, 999, 0), (1, 1000, 1), (0, 50, 0)]
    {
        let limits = Limits { earned, ..EARNED };
        let (mut budget, _other) = busy(&limits);
        let visits: Vec<Visit> =
            (0..calls).map(|_| budget.arrive(Arrival::First, &limits, at(0))).collect();
        let given = (0..2 * calls)
            .filter(|_| budget.ask(Kind::Retry, &visits[0], &limits, at(0)).is_ok())
            .count();
        assert_eq!(given, retries, "{earned} thousandths of {calls}");
    }
}

#[test]
fn a_hedge_takes_two_and_is_never_free() {
    let mut budget = Budget::new(&USUAL, at(0));
    let lone = stay(&mut budget, &USUAL, 0);
    let grant = budget.ask(Kind::Hedge, &lone, &USUAL, at(0)).unwrap();
    budget.end(grant, Made::Sent, &USUAL);
    assert_eq!(budget.balance(&USUAL, at(0)), Thousandths(1000));
    let refusal = budget.ask(Kind::Hedge, &lone, &USUAL, at(0)).unwrap_err();
    assert!(refusal.to_string().starts_with("no hedge: it takes 2 of"), "{refusal}");
}

#[test]
fn an_attempt_that_never_left_is_paid_back() {
    let (mut budget, _other) = busy(&USUAL);
    let visit = stay(&mut budget, &USUAL, 0);
    let grant = budget.ask(Kind::Retry, &visit, &USUAL, at(0)).unwrap();
    let paid = Level { balance: Thousandths(2000), cap: 10, in_flight: 1, allowed: 2 };
    assert_eq!(budget.level(&USUAL, at(0)), paid);
    budget.end(grant, Made::NotSent, &USUAL);
    let back = Level { balance: Thousandths(3000), in_flight: 0, ..paid };
    assert_eq!(budget.level(&USUAL, at(0)), back);
}

#[test]
fn one_call_at_a_time_is_never_starved() {
    let mut budget = Budget::new(&USUAL, at(0));
    // A thousand calls in a row, 300 ms each, every one with three retries.
    for call in 0..1000 {
        let now = at(call * 300);
        let visit = budget.arrive(Arrival::First, &USUAL, now);
        for _ in 0..3 {
            let grant = budget.ask(Kind::Retry, &visit, &USUAL, now).expect("it is alone");
            budget.end(grant, Made::Sent, &USUAL);
        }
        budget.leave(visit, now);
    }
}

#[test]
fn a_second_call_ends_the_right_of_the_lone_one_for_ten_seconds() {
    let limits = Limits { start: 0, floor: Duration::ZERO, ..USUAL };
    let mut budget = Budget::new(&limits, at(0));
    let first = budget.arrive(Arrival::First, &limits, at(0));
    let second = budget.arrive(Arrival::First, &limits, at(0));
    assert!(budget.ask(Kind::Retry, &first, &limits, at(0)).is_err());
    budget.leave(second, at(500));
    assert!(budget.ask(Kind::Retry, &first, &limits, at(10_499)).is_err());
    budget.leave(first, at(10_499));
    let third = budget.arrive(Arrival::First, &limits, at(10_499));
    assert!(budget.ask(Kind::Retry, &third, &limits, at(10_499)).is_err());
    assert!(budget.ask(Kind::Retry, &third, &limits, at(10_500)).is_ok());
}

#[test]
fn a_call_that_its_caller_repeats_pays_on_arrival_and_gets_no_retry() {
    let (mut budget, _other) = busy(&USUAL);
    let visit = budget.arrive(Arrival::Repeated(2), &USUAL, at(0));
    assert_eq!(budget.balance(&USUAL, at(0)), Thousandths(2000));
    let refusal = budget.ask(Kind::Retry, &visit, &USUAL, at(0)).unwrap_err();
    assert_eq!(refusal.name(), "extra_caller_repeats");
    assert_eq!(
        refusal.to_string(),
        "no retry here: the caller repeats this call itself, 2 times by now"
    );
    for _ in 0..5 {
        let _stays = budget.arrive(Arrival::Repeated(1), &USUAL, at(0));
    }
    assert_eq!(budget.balance(&USUAL, at(0)), Thousandths(0));
}

#[test]
fn extra_attempts_in_flight_are_two_or_a_fifth_of_the_calls() {
    let limits = Limits { start: 10, ..USUAL };
    let (mut budget, _other) = busy(&limits);
    let visit = stay(&mut budget, &limits, 0);
    let first = budget.ask(Kind::Retry, &visit, &limits, at(0)).unwrap();
    let _second = budget.ask(Kind::Retry, &visit, &limits, at(0)).unwrap();
    assert_eq!(
        budget.ask(Kind::Retry, &visit, &limits, at(0)).unwrap_err().to_string(),
        "no retry: 2 extra attempts in flight, 2 allowed with 2 calls under way"
    );
    budget.end(first, Made::Sent, &limits);
    assert!(budget.ask(Kind::Retry, &visit, &limits, at(0)).is_ok());
    for _ in 0..13 {
        let _stays = stay(&mut budget, &limits, 0);
    }
    assert!(budget.ask(Kind::Retry, &visit, &limits, at(0)).is_ok(), "a fifth of 15 is 3");
    assert!(budget.ask(Kind::Retry, &visit, &limits, at(0)).is_err());
}

#[test]
fn a_cap_of_zero_turns_extra_attempts_off() {
    let limits = Limits { cap: 0, ..USUAL };
    let mut budget = Budget::new(&limits, at(0));
    let visit = budget.arrive(Arrival::First, &limits, at(0));
    assert_eq!(budget.ask(Kind::Retry, &visit, &limits, at(90_000)), Err(Refusal::Off));
    assert_eq!(Refusal::Off.name(), "extra_off");
}

#[test]
fn what_calls_earn_counts_towards_the_floor() {
    let limits = Limits { start: 0, ..USUAL };
    let mut budget = Budget::new(&limits, at(0));
    // Twenty calls in ten seconds earn 2; the floor of 1 is met by that.
    for call in 0..20 {
        let visit = budget.arrive(Arrival::First, &limits, at(call * 500));
        budget.leave(visit, at(call * 500));
    }
    assert_eq!(budget.balance(&limits, at(9_500)), Thousandths(2000));
    // Quiet again: after what the last call paid for, the floor goes on.
    assert_eq!(budget.balance(&limits, at(10_500)), Thousandths(2000));
    assert_eq!(budget.balance(&limits, at(15_500)), Thousandths(2500));
    assert_eq!(budget.balance(&limits, at(10_000_000)), Thousandths(10_000));
}

#[test]
fn a_floor_paid_in_small_steps_loses_no_fraction() {
    let limits = Limits { start: 0, floor: Duration::from_secs(7), ..USUAL };
    let mut budget = Budget::new(&limits, at(0));
    for step in 1..=7000 {
        let visit = stay(&mut budget, &limits, step);
        budget.leave(visit, at(step));
    }
    assert_eq!(budget.balance(&limits, at(7000)), Thousandths(1000));
}

/// S2: three layers of three attempts are up to 27 calls. With a budget of a tenth, a thousand calls
/// into a dead target are at most 1.1 thousand attempts and what was saved.
#[test]
fn a_total_outage_is_not_multiplied() {
    let mut budget = Budget::new(&USUAL, at(0));
    let mut attempts = 0;
    let mut visits = Vec::new();
    for call in 0..1000_u64 {
        let now = at(call * 5);
        let visit = budget.arrive(Arrival::First, &USUAL, now);
        attempts += 1;
        for _ in 0..5 {
            if let Ok(grant) = budget.ask(Kind::Retry, &visit, &USUAL, now) {
                attempts += 1;
                budget.end(grant, Made::Sent, &USUAL);
            }
        }
        visits.push(visit);
        if visits.len() > 20 {
            budget.leave(visits.remove(0), now);
        }
    }
    assert!((1100..=1110).contains(&attempts), "{attempts}");
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Arrive(Arrival),
    Leave,
    Ask(Kind),
    End(Made),
    Sleep(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Arrive(Arrival::First)),
        1 => (1_u32..4).prop_map(|n| Step::Arrive(Arrival::Repeated(n))),
        2 => Just(Step::Leave),
        6 => Just(Step::Ask(Kind::Retry)),
        1 => Just(Step::Ask(Kind::Hedge)),
        4 => Just(Step::End(Made::Sent)),
        1 => Just(Step::End(Made::NotSent)),
        3 => (0_u64..5_000).prop_map(Step::Sleep),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Invariants 5, 6 and 16: grants are conserved, and what is paid for in any stretch of time is
    /// at most what was saved, what calls earned and what the floor gave.
    #[test]
    fn paid_extra_attempts_are_bounded_in_every_window(
        steps in prop::collection::vec(step(), 0..250),
        earned in 0_u32..=1000, floor in 0_u64..20_000, start in 0_u32..12, cap in 1_u32..12,
    ) {
        let limits = Limits {
            earned, floor: Duration::from_millis(floor), start, cap, at_once: 3, at_once_share: 500,
        };
        let mut now = 0_u64;
        let mut budget = Budget::new(&limits, at(0));
        let (mut visits, mut grants) = (Vec::new(), Vec::new());
        // (when, thousandths earned, thousandths paid)
        let mut history: Vec<(u64, u64, u64)> = Vec::new();
        let mut together: Option<u64> = None;
        for step in steps {
            if visits.len() > 1 { together = Some(now); }
            match step {
                Step::Sleep(millis) => now += millis,
                Step::Arrive(arrival) => {
                    visits.push(budget.arrive(arrival, &limits, at(now)));
                    if arrival == Arrival::First {
                        history.push((now, u64::from(earned), 0));
                    }
                }
                Step::Leave => if let Some(visit) = visits.pop() { budget.leave(visit, at(now)); },
                Step::Ask(kind) => if let Some(visit) = visits.last() {
                    let met = together.is_some_and(|last| now - last < 10_000);
                    let lone = visits.len() == 1 && kind == Kind::Retry && !met;
                    let Ok(grant) = budget.ask(kind, visit, &limits, at(now)) else { continue };
                    prop_assert_eq!(grant.paid == 0, lone);
                    prop_assert!(!matches!(visit.arrival, Arrival::Repeated(_)));
                    history.push((now, 0, grant.paid));
                    grants.push(grant);
                    prop_assert!(grants.len() <= 3.max(visits.len() / 2));
                }
                Step::End(made) => if let Some(grant) = grants.pop() {
                    if made == Made::NotSent { history.push((now, grant.paid, 0)); }
                    budget.end(grant, made, &limits);
                }
            }
            prop_assert!(budget.balance(&limits, at(now)).0 <= limits.cap());
            prop_assert_eq!(budget.extra as usize, grants.len());
            prop_assert_eq!(budget.calls as usize, visits.len());
        }
        for from in 0..history.len() {
            let (mut income, mut paid) = (0, 0);
            for &(when, earned, price) in &history[from..] {
                income += earned;
                paid += price;
                let long = when - history[from].0;
                let trickle = (long * 1000).checked_div(floor).map_or(0, |whole| whole + 1);
                prop_assert!(paid <= limits.cap() + income + trickle, "window of {long} ms");
            }
        }
    }

    /// Invariant 18: the same events give the same state.
    #[test]
    fn the_balance_never_falls_by_looking(millis in 0_u64..1_000_000, later in 0_u64..100_000) {
        let budget = Budget::new(&USUAL, at(0));
        let (first, second) = (budget.balance(&USUAL, at(millis)), budget.balance(&USUAL, at(millis + later)));
        prop_assert!(first <= second && second <= Thousandths(10_000));
        prop_assert_eq!(budget.balance(&USUAL, at(millis)), first);
    }
}

/// A call that comes back from another target earned on its first visit, and no second time.
#[test]
fn a_call_that_comes_back_does_not_earn_again() {
    let limits = Limits { floor: Duration::ZERO, ..Limits::default() };
    let now = Moment::ORIGIN;
    let mut budget = Budget::new(&limits, now);
    let first = budget.arrive(Arrival::First, &limits, now);
    let earned = budget.balance(&limits, now);
    assert_eq!(earned, Thousandths(3100));
    budget.leave(first, now);
    let back = budget.arrive(Arrival::Back, &limits, now);
    assert_eq!(budget.balance(&limits, now), earned);
    assert!(budget.ask(Kind::Retry, &back, &limits, now).is_ok());
    budget.leave(back, now);
}

#[test]
fn thousandths_are_looked_at_as_wholes() {
    let wholes = [0, 250, 3000].map(|number| Thousandths(number).wholes().to_string());
    assert_eq!(wholes, ["0", "0.25", "3"]);
}
