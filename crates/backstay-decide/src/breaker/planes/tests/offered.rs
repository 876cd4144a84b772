//! What planes tell of themselves, and what offers, force and time do to each of them.

use super::*;

/// Closes one plane at 0 by calls that end in `fault`, and lets one call test it at 30.
fn being_tested(fault: Fault, schema: Option<u64>) -> (Planes, Passes) {
    let mut planes = Planes::new(1);
    calls(&mut planes, 20, fault, schema);
    let passes = planes.admit(&ask(at(30)), schema, &Rules::DEFAULT).passes.unwrap();
    assert!(passes.is_probe());
    (planes, passes)
}

#[test]
fn calls_that_are_offered_make_the_next_test_due_in_every_plane() {
    for (fault, schema) in
        [(Fault::ServerError, None), (Fault::RateLimited, None), (Fault::SchemaError, SCHEMA)]
    {
        let (mut planes, _first) = being_tested(fault, schema);
        let look = |planes: &Planes| planes.look(&ask(at(31)), schema, &Rules::DEFAULT).is_ok();
        assert!(!look(&planes), "{fault:?}: the next is due in ten seconds");
        for _ in 0..40 {
            planes.offer(at(31), schema, &Rules::DEFAULT);
        }
        assert!(look(&planes), "{fault:?}: or after so many calls");
    }
}

#[test]
fn calls_with_another_schema_make_no_test_of_this_one_due() {
    let (mut planes, _first) = being_tested(Fault::SchemaError, SCHEMA);
    for _ in 0..40 {
        planes.offer(at(31), Some(8), &Rules::DEFAULT);
    }
    assert!(planes.look(&ask(at(31)), SCHEMA, &Rules::DEFAULT).is_err());
}

#[test]
fn a_forced_call_takes_a_key_that_may_be_tested_before_one_that_rests() {
    let rules = Rules::DEFAULT;
    let mut planes = Planes::new(2);
    for (key, second) in [(1, 0), (0, 20)] {
        let breaker = planes.keys.throttling_mut(key).unwrap();
        for _ in 0..20 {
            let pass = breaker.admit(&ask(at(second)), &rules.throttling).pass.unwrap();
            let dice = &mut Scripted(Vec::new());
            breaker.note(pass, Verdict::Failure, at(second), &rules.throttling, dice);
        }
    }
    // At 40 the second key's breaker has one test in flight, the first one's is open.
    let _test = planes.admit(&ask(at(40)), None, &rules).passes.unwrap();
    assert!(planes.look(&ask(at(41)), None, &rules).is_err());
    let forced = planes.force(&ask(at(41)), None, &rules).passes.unwrap();
    assert_eq!(forced.key, 1);
}

#[test]
fn time_that_ends_a_rest_is_told_for_keys_and_schemas_too() {
    for (fault, schema, plane) in [
        (Fault::ServerError, None, Plane::Availability),
        (Fault::RateLimited, None, Plane::Throttling { key: 0 }),
        (Fault::SchemaError, SCHEMA, Plane::Quality { schema: 7 }),
    ] {
        let mut planes = Planes::new(1);
        calls(&mut planes, 20, fault, schema);
        let admitted = planes.admit(&ask(at(30)), schema, &Rules::DEFAULT);
        let told: Vec<Plane> = admitted.changes.iter().map(|turn| turn.plane).collect();
        assert_eq!(told, [plane]);
    }
}

#[test]
fn as_one_a_key_keeps_no_count_of_its_own() {
    let rules = Rules { separation: Separation::Combined, ..Rules::DEFAULT };
    let mut planes = Planes::new(1);
    for _ in 0..30 {
        call(&mut planes, at(0), (None, seen(Some(Fault::RateLimited))), &rules);
    }
    assert_eq!(planes.keys().throttling(0).map(Breaker::is_untroubled), Some(true));
    assert_eq!(
        planes.keys().throttling(0).map(|b| b.tally(at(0), &rules.throttling).calls),
        Some(0)
    );
}

#[test]
fn planes_tell_how_many_of_a_kind_are_shut_and_when_nothing_is_wrong() {
    let rules = Rules::DEFAULT;
    let shut = |planes: &Planes| {
        ["availability", "throttling", "quality"].map(|name| planes.shut(name, at(1), &rules))
    };
    let mut planes = Planes::new(2);
    assert_eq!(shut(&planes), [0, 0, 0]);
    assert!(planes.is_untroubled(&rules));
    let passes = planes.admit(&ask(at(0)), None, &rules).passes.unwrap();
    assert!(!passes.is_probe(), "a healthy target is not tested");
    planes.release(passes);
    calls(&mut planes, 10, Fault::SchemaError, SCHEMA);
    calls(&mut planes, 10, Fault::SchemaError, Some(8));
    assert_eq!(shut(&planes), [0, 0, 2]);
    calls(&mut planes, 5, Fault::ServerError, None);
    assert_eq!(shut(&planes), [1, 0, 2]);
}

#[test]
fn a_target_whose_rates_are_used_up_says_so_until_they_are_not() {
    let mut planes = Planes::new(1);
    planes.pace_key(0, Some(at(5)));
    assert_eq!(refused(&planes, None), Some((Plane::Throttling { key: 0 }, Denial::Paced)));
    planes.pace_key(0, None);
    assert_eq!(refused(&planes, None), None);
}

#[test]
fn a_refusal_says_its_plane_and_whether_a_call_may_pass_over_it() {
    let quality = Plane::Quality { schema: 7 };
    for (plane, why, yields) in [
        (Plane::Availability, Denial::Open, false),
        (Plane::Availability, Denial::Share { thousandths: 50, calls: Some(3) }, true),
        (Plane::Throttling { key: 0 }, Denial::Testing { tests: 3, most: 3 }, false),
        (quality, Denial::Open, true),
    ] {
        let refused = Refused { plane, denied: Denied { until: None, why } };
        assert_eq!(refused.yields(), yields, "{refused}");
    }
    let refused = Refused { plane: quality, denied: Denied { until: None, why: Denial::Open } };
    assert_eq!(refused.to_string(), "quality of schema 000000000007: its breaker is open");
}
