//! A key's day: reserve, settle, alert, refuse, midnight.

use proptest::prelude::*;

use super::*;

const MONDAY: Day = Day(20_000);
const TUESDAY: Day = Day(20_001);

fn money(units: f64) -> Money {
    Money::of(units).unwrap()
}

fn ten() -> Money {
    money(10.0)
}

fn spend(purse: &mut Purse<Money>, units: f64, day: Day) -> Option<Alert<Money>> {
    let hold = purse.reserve(money(units), Some(ten()), day).expect("it is allowed");
    purse.settle(hold, Took::Known(money(units)), Some(ten()), day)
}

#[test]
fn the_alert_comes_once_at_eighty_percent_and_the_refusal_before_all_is_spent() {
    let mut purse = Purse::new(MONDAY);
    assert_eq!(spend(&mut purse, 7.99, MONDAY), None);
    let alert = spend(&mut purse, 0.01, MONDAY).expect("8 of 10");
    assert_eq!(alert.to_string(), "8 spent of the 10 a day");
    assert_eq!(spend(&mut purse, 1.5, MONDAY), None, "said once");
    let refused = purse.reserve(money(0.51), Some(ten()), MONDAY).unwrap_err();
    assert_eq!(refused.to_string(), "9.5 spent + up to 0.51 for this call is over the 10 a day");
    assert!(
        purse.reserve(money(0.5), Some(ten()), MONDAY).is_ok(),
        "to the limit, and not over it"
    );
}

#[test]
fn the_share_of_a_limit_is_told_of_what_was_spent() {
    let mut purse = Purse::new(MONDAY);
    spend(&mut purse, 2.5, MONDAY);
    let level = purse.level(ten(), MONDAY);
    assert_eq!(format!("{:.2}", level.share()), "0.25");
}

#[test]
fn calls_side_by_side_cannot_pass_the_limit_together() {
    let mut purse = Purse::new(MONDAY);
    let first = purse.reserve(money(6.0), Some(ten()), MONDAY).unwrap();
    let refused = purse.reserve(money(5.0), Some(ten()), MONDAY).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "0 spent + 6 reserved + up to 5 for this call is over the 10 a day"
    );
    assert_eq!(purse.settle(first, Took::Known(money(1.0)), Some(ten()), MONDAY), None);
    let _second = purse.reserve(money(5.0), Some(ten()), MONDAY).unwrap();
    let third = purse.reserve(money(4.0), Some(ten()), MONDAY).unwrap();
    assert_eq!(purse.settle(third, Took::Known(money(3.0)), Some(ten()), MONDAY), None);
    assert_eq!(purse.standing(MONDAY).to_string(), "4 spent + 5 reserved");
}

#[test]
fn a_day_goes_on_where_it_was_and_only_for_its_rest() {
    let mut purse = Purse::resumed(MONDAY, money(9.0), money(2.0), 1);
    assert!(purse.check(money(1.0), Some(ten()), MONDAY).is_ok());
    let refused = purse.check(money(1.1), Some(ten()), MONDAY).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "at least 9 spent (2 by estimate for 1 calls) + up to 1.1 for this call is over the 10 a day"
    );
    assert_eq!(purse.standing(MONDAY).held, Money::ZERO, "a look reserves nothing");
    assert!(purse.check(ten(), Some(ten()), TUESDAY).is_ok());
}

#[test]
fn a_call_that_timed_out_is_booked_at_its_estimate_and_the_sum_says_so() {
    let mut purse = Purse::new(MONDAY);
    let hold = purse.reserve(money(3.0), Some(ten()), MONDAY).unwrap();
    assert_eq!(purse.settle(hold, Took::Unknown, Some(ten()), MONDAY), None);
    spend(&mut purse, 1.0, MONDAY);
    let total = purse.standing(MONDAY);
    assert_eq!(total.to_string(), "at least 4 spent (3 by estimate for 1 calls)");
    let unsent = purse.reserve(money(2.0), Some(ten()), MONDAY).unwrap();
    assert_eq!(
        purse.standing(MONDAY).to_string(),
        "at least 4 spent (3 by estimate for 1 calls) + 2 reserved"
    );
    assert_eq!(purse.settle(unsent, Took::Nothing, Some(ten()), MONDAY), None);
    assert_eq!(purse.standing(MONDAY), total);
}

#[test]
fn midnight_begins_a_new_day_and_a_new_alert() {
    let mut purse = Purse::new(MONDAY);
    assert!(spend(&mut purse, 9.0, MONDAY).is_some());
    assert!(purse.reserve(money(2.0), Some(ten()), MONDAY).is_err());
    assert!(spend(&mut purse, 9.0, TUESDAY).is_some());
    assert_eq!(purse.standing(TUESDAY).at_least, money(9.0));
}

#[test]
fn a_call_over_midnight_is_held_in_both_days_and_paid_in_the_second() {
    let mut purse = Purse::new(MONDAY);
    let over = purse.reserve(money(6.0), Some(ten()), MONDAY).unwrap();
    assert!(purse.reserve(money(5.0), Some(ten()), TUESDAY).is_err());
    assert_eq!(purse.settle(over, Took::Known(money(5.5)), Some(ten()), TUESDAY), None);
    let total = purse.standing(TUESDAY);
    assert_eq!((total.at_least, total.held), (money(5.5), Money::ZERO));
}

#[test]
fn a_call_that_is_never_settled_does_not_choke_its_key_for_ever() {
    let mut purse = Purse::new(MONDAY);
    drop(purse.reserve(money(9.0), Some(ten()), MONDAY).unwrap());
    assert_eq!(purse.standing(TUESDAY).held, money(9.0));
    assert_eq!(purse.standing(Day(TUESDAY.0 + 1)).held, Money::ZERO);
    let lost = purse.reserve(money(9.0), Some(ten()), Day(20_002)).unwrap();
    assert_eq!(purse.standing(Day(20_004)).held, Money::ZERO, "over a day without a call too");
    // It ends after all: what it took counts, and what is not held any more is not given back.
    let other = purse.reserve(money(1.0), Some(ten()), Day(20_004)).unwrap();
    purse.settle(lost, Took::Known(money(2.0)), Some(ten()), Day(20_004));
    assert_eq!(purse.standing(Day(20_004)).to_string(), "2 spent + 1 reserved");
    drop(other);
}

#[test]
fn a_clock_set_back_does_not_give_a_spent_day_back() {
    let mut purse = Purse::new(TUESDAY);
    spend(&mut purse, 9.0, TUESDAY);
    assert!(purse.reserve(money(2.0), Some(ten()), MONDAY).is_err());
    assert_eq!(purse.standing(MONDAY).at_least, money(9.0));
}

#[test]
fn without_a_limit_it_is_only_counted_and_a_limit_of_nothing_allows_what_is_free() {
    let mut purse = Purse::new(MONDAY);
    let hold = purse.reserve(money(500_000.0), None, MONDAY).unwrap();
    assert_eq!(purse.settle(hold, Took::Known(money(1.0)), None, MONDAY), None);
    assert_eq!(purse.standing(MONDAY).at_least, money(1.0));
    let mut none = Purse::new(MONDAY);
    assert!(none.reserve(money(0.000_001), Some(Money::ZERO), MONDAY).is_err());
    let free = none.reserve(Money::ZERO, Some(Money::ZERO), MONDAY).unwrap();
    assert_eq!(none.settle(free, Took::Known(Money::ZERO), Some(Money::ZERO), MONDAY), None);
}

#[test]
fn tokens_are_bounded_like_money() {
    let mut purse = Purse::new(MONDAY);
    let hold = purse.reserve(900_u64, Some(1000), MONDAY).unwrap();
    let alert = purse.settle(hold, Took::Known(850), Some(1000), MONDAY).expect("85 %");
    assert_eq!(alert.to_string(), "850 spent of the 1000 a day");
    let refused = purse.reserve(151, Some(1000), MONDAY).unwrap_err();
    assert_eq!(refused.to_string(), "850 spent + up to 151 for this call is over the 1000 a day");
}

#[test]
fn what_is_spent_is_shown_as_a_share_of_the_limit() {
    let close = |share: f64, is: f64| (share - is).abs() < 1e-12;
    assert!(close(Amount::share_of(money(2.5), ten()), 0.25));
    assert!(close(Amount::share_of(money(2.5), Money::ZERO), 1.0), "of nothing it is all");
    assert!(close(Amount::share_of(3_u64, 12), 0.25));
    assert!(close(Amount::share_of(3_u64, 0), 1.0), "of nothing it is all");
}

#[test]
fn days_are_utc_days() {
    let noon = Duration::from_hours(20_000 * 24 + 12);
    assert_eq!((Day::of(noon), Day::left(noon)), (MONDAY, Duration::from_hours(12)));
    let midnight = Duration::from_hours(20_001 * 24);
    assert_eq!((Day::of(midnight), Day::left(midnight)), (TUESDAY, Duration::from_hours(24)));
    let last = midnight.saturating_sub(Duration::from_millis(1));
    assert_eq!((Day::of(last), Day::left(last)), (MONDAY, Duration::from_millis(1)));
    assert_eq!(
        Until(Day::left(last)).to_string(),
        "the limit begins anew at 00:00 UTC, in 0.001 s"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Invariant 9: each call is booked exactly once, at what it took or its estimate; and while no
    /// call takes more than it reserved, no day passes its limit, nor does the alert come twice.
    #[test]
    fn no_day_passes_its_limit_and_nothing_is_booked_twice(
        most in 0_u64..2000,
        steps in prop::collection::vec((0_u8..4, 0_u64..400, 0_u64..=1000, 0_u8..10), 0..150),
    ) {
        let limit = Some(most);
        let mut day = 0;
        let mut purse: Purse<u64> = Purse::new(Day(0));
        let mut open = Vec::new();
        let (mut booked, mut alerts) = (0, 0);
        for (step, estimate, used, midnight) in steps {
            if midnight == 0 && open.iter().all(|(_, _, reserved)| *reserved == day) {
                day += 1;
                (booked, alerts) = (0, 0);
            }
            match step {
                0 | 1 => match purse.reserve(estimate, limit, Day(day)) {
                    Ok(hold) => open.push((hold, estimate, day)),
                    Err(refused) => {
                        let Total { at_least, held, .. } = refused.total;
                        prop_assert!(at_least + held + estimate > most);
                        prop_assert_eq!(at_least, booked);
                    }
                },
                _ => if let Some((hold, estimate, _)) = open.pop() {
                    let (took, price) = match used % 3 {
                        0 => (Took::Unknown, estimate),
                        1 => (Took::Nothing, 0),
                        _ => (Took::Known(estimate * used / 1000), estimate * used / 1000),
                    };
                    booked += price;
                    if let Some(alert) = purse.settle(hold, took, limit, Day(day)) {
                        alerts += 1;
                        prop_assert!(alert.total.at_least >= most * 8 / 10);
                    }
                }
            }
            let total = purse.standing(Day(day));
            prop_assert_eq!(total.at_least, booked);
            prop_assert_eq!(total.held, open.iter().map(|(_, estimate, _)| estimate).sum::<u64>());
            prop_assert!(total.at_least + total.held <= most.max(total.held));
            prop_assert!(total.at_least <= most && alerts <= 1);
            prop_assert_eq!(alerts == 1, total.at_least > 0 && total.at_least >= most * 800 / 1000);
        }
    }
}
