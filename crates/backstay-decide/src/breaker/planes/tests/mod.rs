//! Tests of the planes: each thing that is wrong closes what it is about, and nothing else.

mod offered;

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::breaker::{Cut, Denial, Elsewhere, Mode, Paced, Seen, Shape, State, Suits, Verdict};
use crate::dice::{Scripted, Seeded};
use crate::fault::Fault;

const SCHEMA: Option<u64> = Some(7);

const fn at(seconds: u64) -> Moment {
    Moment::at(Duration::from_secs(seconds))
}

fn ask(now: Moment) -> Ask {
    let lease = Duration::from_mins(1);
    Ask { now, lease, elsewhere: Elsewhere::Live, suits: Suits::Test }
}

fn seen(fault: Option<Fault>) -> Report {
    Report::of(Seen { fault, shape: Shape::Structured, ..Seen::default() })
}

/// A call that begins and ends at `now`.
fn call(
    planes: &mut Planes,
    now: Moment,
    (schema, report): (Option<u64>, Report),
    rules: &Rules,
) -> Vec<Turn> {
    planes.offer(now, schema, rules);
    let admitted = planes.admit(&ask(now), schema, rules);
    let mut changes = admitted.changes;
    if let Ok(passes) = admitted.passes {
        changes.extend(planes.note(passes, report, now, (rules, &mut Scripted(Vec::new()))));
    }
    changes
}

fn calls(planes: &mut Planes, count: u32, fault: Fault, schema: Option<u64>) -> Vec<Turn> {
    let outcome = (schema, seen(Some(fault)));
    (0..count).flat_map(|_| call(planes, at(0), outcome, &Rules::DEFAULT)).collect()
}

fn refused(planes: &Planes, schema: Option<u64>) -> Option<(Plane, Denial)> {
    let refused = planes.look(&ask(at(0)), schema, &Rules::DEFAULT).err()?;
    Some((refused.plane, refused.denied.why))
}

#[test]
fn a_target_that_is_down_is_down_for_everyone() {
    let mut planes = Planes::new(2);
    let changes = calls(&mut planes, 5, Fault::ServerError, SCHEMA);
    assert!(matches!(changes[..], [Turn { plane: Plane::Availability, .. }]), "{changes:?}");
    for schema in [None, SCHEMA, Some(8)] {
        assert_eq!(refused(&planes, schema), Some((Plane::Availability, Denial::Open)));
    }
    assert_eq!(planes.keys().throttling(0).map(Breaker::is_untroubled), Some(true));
    assert!(!planes.is_untroubled(&Rules::DEFAULT));
}

#[test]
fn a_schema_that_a_model_cannot_meet_closes_it_for_that_schema_only() {
    let mut planes = Planes::new(1);
    let changes = calls(&mut planes, 10, Fault::SchemaError, SCHEMA);
    let words: Vec<String> = changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "quality of schema 000000000007 opened: 10 failures in a row; rests for 30.0 s: half of the 0.0 s since it first opened is 30.0 s within its limits, 30.0 s by the dice"
        ]
    );
    assert_eq!(refused(&planes, SCHEMA), Some((Plane::Quality { schema: 7 }, Denial::Open)));
    assert_eq!(refused(&planes, Some(8)), None);
    assert_eq!(refused(&planes, None), None);
    // It came with answers: it is up.
    assert!(planes.first.is_untroubled());
    let down = planes.look(&ask(at(29)), SCHEMA, &Rules::DEFAULT).unwrap_err();
    assert_eq!(down.denied.until, Some(at(30)));
}

#[test]
fn a_throttled_key_rests_and_the_others_go_on() {
    let mut planes = Planes::new(2);
    // One key is throttled, the other is not: a 429 is news each time.
    let (rules, mut used) = (Rules::DEFAULT, [0, 0]);
    let mut changes = Vec::new();
    for _ in 0..60 {
        let passes = planes.admit(&ask(at(0)), None, &rules).passes.unwrap();
        used[passes.key] += 1;
        let fault = (passes.key == 0).then_some(Fault::RateLimited);
        let dice = &mut Scripted(Vec::new());
        changes.extend(planes.note(passes, seen(fault), at(0), (&rules, dice)));
    }
    assert!(
        matches!(changes[..], [Turn { plane: Plane::Throttling { key: 0 }, .. }]),
        "{changes:?}"
    );
    assert_eq!(used, [20, 40]);
    // The other one rests too, by the provider's word: the target rests until the first is back.
    planes.rest_key(1, at(300), KeyRest::Quota);
    let refused = planes.look(&ask(at(1)), None, &rules).unwrap_err();
    assert_eq!(refused.plane, Plane::Throttling { key: 0 });
    assert_eq!(refused.denied, Denied { until: Some(at(30)), why: Denial::Keys });
    let back = planes.admit(&ask(at(30)), None, &rules);
    assert!(back.passes.is_ok_and(|passes| passes.key == 0 && passes.is_probe()));
}

#[test]
fn a_429_that_we_asked_for_and_a_wait_that_the_caller_cut_say_nothing() {
    let rules = Rules::DEFAULT;
    let ours = Seen { fault: Some(Fault::RateLimited), paced: Paced::WasFull, ..Seen::default() };
    let theirs = Seen { fault: Some(Fault::NoFirstToken), cut: Cut::Caller, ..Seen::default() };
    let mut planes = Planes::new(1);
    for report in [Report::of(ours), Report::of(theirs), Report::NEUTRAL] {
        for _ in 0..40 {
            assert_eq!(call(&mut planes, at(0), (None, report), &rules), []);
        }
    }
    assert!(
        planes.all(&rules).all(|(_, breaker)| breaker.tally(at(0), &rules.throttling).calls == 0)
    );
}

#[test]
fn combined_is_one_breaker_for_all_three() {
    let rules = Rules { separation: Separation::Combined, ..Rules::DEFAULT };
    // 5 % of each: none alone is over 15 %, together they are.
    let kinds = [Some(Fault::ServerError), Some(Fault::RateLimited), Some(Fault::NotJson)];
    let mut planes = Planes::new(1);
    let mut apart = Planes::new(1);
    let mut changes = Vec::new();
    for n in 0..60 {
        let fault = if n < 48 { None } else { kinds[n % 3] };
        changes.extend(call(&mut planes, at(0), (SCHEMA, seen(fault)), &rules));
        assert_eq!(call(&mut apart, at(0), (SCHEMA, seen(fault)), &Rules::DEFAULT), []);
    }
    let [Turn { plane: Plane::Combined, change }] = changes[..] else { panic!("{changes:?}") };
    assert_eq!(
        change.to_string(),
        "opened: 9 of 57 calls failed in 60.0 s = 15.8 %, 15.0 % allowed; rests for 30.0 s: half of the 0.0 s since it first opened is 30.0 s within its limits, 30.0 s by the dice"
    );
    let refused = planes.look(&ask(at(1)), Some(99), &rules).unwrap_err();
    assert_eq!((refused.plane, refused.denied.until), (Plane::Combined, Some(at(30))));
    // A test by way of the half-open state, and the keys still rest by the provider's word.
    planes.offer(at(30), None, &rules);
    let passes = planes.admit(&ask(at(30)), None, &rules).passes.unwrap();
    assert!(passes.is_probe());
    planes.offer(at(30), None, &rules);
    assert!(planes.admit(&ask(at(30)), None, &rules).passes.is_err());
    planes.release(passes);
    planes.rest_key(0, at(50), KeyRest::Throttled);
    let refused = planes.look(&ask(at(31)), None, &rules).unwrap_err();
    assert_eq!(refused.denied, Denied { until: Some(at(50)), why: Denial::Keys });
}

#[test]
fn what_one_plane_refuses_takes_nothing_of_the_others() {
    let mut planes = Planes::new(1);
    let _ = calls(&mut planes, 10, Fault::SchemaError, SCHEMA);
    let _ = calls(&mut planes, 5, Fault::ServerError, None);
    // Availability is back first: its only test in ten seconds is not spent on a call that quality
    // turns away.
    planes.quality_of(7).rest_until(at(100));
    let before = planes.clone();
    let admitted = planes.admit(&ask(at(40)), SCHEMA, &Rules::DEFAULT);
    let refused = admitted.passes.unwrap_err();
    assert_eq!(
        (refused.plane, refused.denied.until),
        (Plane::Quality { schema: 7 }, Some(at(100)))
    );
    assert_eq!(admitted.changes.len(), 2, "time went on in both");
    assert!(before.look(&ask(at(40)), None, &Rules::DEFAULT).is_ok());
    let passes = planes.admit(&ask(at(40)), None, &Rules::DEFAULT).passes.unwrap();
    assert!(passes.is_probe());
    let state = planes.first.state(at(40), &Rules::DEFAULT.availability);
    assert_eq!(state, State::HalfOpen { started: 0, finished: 0, in_flight: 1 });
    planes.release(passes);
    let state = planes.first.state(at(40), &Rules::DEFAULT.availability);
    assert_eq!(state, State::HalfOpen { started: 0, finished: 0, in_flight: 0 });
}

#[test]
fn a_test_of_one_schema_that_is_given_back_frees_the_place_of_that_schema() {
    let (rules, mut planes) = (Rules::DEFAULT, Planes::new(1));
    for schema in [7, 8] {
        let _ = calls(&mut planes, 10, Fault::SchemaError, Some(schema));
    }
    let tests =
        |planes: &Planes| [7, 8].map(|schema| planes.of_schema(schema).unwrap().in_flight(at(40)));
    let of_seven = planes.admit(&ask(at(40)), Some(7), &rules).passes.unwrap();
    let of_eight = planes.admit(&ask(at(40)), Some(8), &rules).passes.unwrap();
    assert_eq!(tests(&planes), [1, 1]);
    planes.release(of_eight);
    assert_eq!(tests(&planes), [1, 0]);
    planes.release(of_seven);
    assert_eq!(tests(&planes), [0, 0]);
}

#[test]
fn a_call_meets_the_trouble_of_the_target_of_its_keys_and_of_its_schema_only() {
    let meets_none =
        |planes: &Planes| [None, SCHEMA, Some(8)].map(|it| planes.is_untroubled_for(it));
    assert_eq!(meets_none(&Planes::new(2)), [true; 3]);
    for (fault, count, untroubled) in [
        (Fault::ServerError, 5, [false; 3]),
        (Fault::RateLimited, 40, [false; 3]),
        (Fault::SchemaError, 10, [true, false, true]),
    ] {
        let mut planes = Planes::new(2);
        let _ = calls(&mut planes, count, fault, SCHEMA);
        assert_eq!(meets_none(&planes), untroubled, "{fault:?}");
    }
}

#[test]
fn each_plane_has_its_own_limits() {
    let of = |plane| *Rules::DEFAULT.limits(plane);
    assert_eq!(of(Plane::Availability), Limits::AVAILABILITY);
    assert_eq!(of(Plane::Throttling { key: 3 }), Limits::THROTTLING);
    assert_eq!(of(Plane::Quality { schema: 7 }), Limits::QUALITY);
    assert_eq!(of(Plane::Combined), Limits::COMBINED);
}

#[test]
fn two_refusals_last_until_both_are_over_and_a_hard_one_is_named() {
    let refused = |until: Option<u64>, why| Refused {
        plane: Plane::Availability,
        denied: Denied { until: until.map(at), why },
    };
    let (open, share, forced) = (
        refused(Some(9), Denial::Open),
        refused(Some(20), Denial::Share { thousandths: 50, calls: Some(3) }),
        refused(None, Denial::Forced),
    );
    assert_eq!(worse(open, share), refused(Some(20), Denial::Open));
    assert_eq!(worse(share, open), refused(Some(20), Denial::Open));
    assert_eq!(worse(open, forced), refused(None, Denial::Open));
    assert_eq!(worse(share, share), share);
}

#[test]
fn first_content_passes_a_test_of_all_but_quality() {
    let (rules, mut planes) = (Rules::DEFAULT, Planes::new(1));
    for _ in 0..20 {
        let _ = call(&mut planes, at(0), (None, seen(Some(Fault::RateLimited))), &rules);
    }
    let _ = calls(&mut planes, 5, Fault::ServerError, None);
    let mut changes = Vec::new();
    for second in 40..45 {
        let alone = Ask { elsewhere: Elsewhere::Nobody, ..ask(at(second)) };
        let passes = planes.admit(&alone, None, &rules).passes.unwrap();
        changes.extend(planes.started(&passes, at(second), &rules));
        if second == 40 {
            let dice = &mut Scripted(Vec::new());
            changes.extend(planes.note(passes, seen(None), at(second), (&rules, dice)));
        }
        // Lost, but it brought content.
        if second >= 42 {
            planes.first.slots.clear();
            planes.keys.breakers().for_each(|breaker| breaker.slots.clear());
        }
    }
    let closed: Vec<Plane> = changes.iter().map(|turn| turn.plane).collect();
    assert_eq!(closed, [Plane::Throttling { key: 0 }]);
}

#[test]
fn where_all_rest_one_call_is_forced_through_on_the_key_that_is_back_first() {
    let (rules, mut planes) = (Rules::DEFAULT, Planes::new(3));
    for (key, until) in [(0, 300), (1, 100), (2, 200)] {
        planes.rest_key(key, at(until), KeyRest::Quota);
    }
    assert!(planes.admit(&ask(at(0)), SCHEMA, &rules).passes.is_err());
    let passes = planes.force(&ask(at(0)), SCHEMA, &rules).passes.unwrap();
    assert_eq!(passes.key, 1);
    planes.release(passes);
    // With one that does not rest, that one.
    let mut planes = Planes::new(2);
    planes.rest_key(0, at(300), KeyRest::Rejected);
    let _ = calls(&mut planes, 5, Fault::ServerError, None);
    let passes = planes.force(&ask(at(0)), None, &rules).passes.unwrap();
    assert_eq!((passes.key, passes.is_probe()), (1, true));
    let changes = planes.note(passes, seen(None), at(1), (&rules, &mut Scripted(Vec::new())));
    assert!(matches!(
        changes[..],
        [Turn { plane: Plane::Availability, change: Transition::HalfOpened { .. } }]
    ));
}

#[test]
fn an_operator_s_mode_holds_for_every_plane() {
    let mut planes = Planes::new(1);
    let _ = calls(&mut planes, 10, Fault::SchemaError, SCHEMA);
    let out = Rules::DEFAULT.in_mode(Mode::ForcedOpen);
    let refused = planes.look(&ask(at(0)), None, &out).unwrap_err();
    assert_eq!(refused.denied, Denied { until: None, why: Denial::Forced });
    let held_in = Rules::DEFAULT.in_mode(Mode::ForcedClosed);
    let passes = planes.admit(&ask(at(0)), SCHEMA, &held_in).passes.unwrap();
    planes.release(passes);
    let combined = Rules { separation: Separation::Combined, ..out };
    assert!(planes.look(&ask(at(0)), None, &combined).is_err());
}

#[test]
fn the_schemas_kept_count_of_are_bounded_and_a_troubled_one_stays_longest() {
    let mut planes = Planes::new(1);
    let _ = calls(&mut planes, 10, Fault::SchemaError, Some(0));
    for schema in 1..1000 {
        let _ = call(&mut planes, at(0), (Some(schema), seen(None)), &Rules::DEFAULT);
    }
    assert_eq!(planes.quality.len(), MAX_SCHEMAS);
    assert_eq!(refused(&planes, Some(0)), Some((Plane::Quality { schema: 0 }, Denial::Open)));
    assert!(planes.breaker(Plane::Quality { schema: 999 }).is_some());
    assert!(planes.breaker(Plane::Quality { schema: 1 }).is_none());
    // All troubled: the one not asked for the longest goes.
    for schema in 0..100 {
        let _ = calls(&mut planes, 1, Fault::NotJson, Some(schema));
    }
    assert_eq!(planes.quality.len(), MAX_SCHEMAS);
    assert!(planes.breaker(Plane::Quality { schema: 35 }).is_none());
    assert!(planes.breaker(Plane::Quality { schema: 36 }).is_some());
}

#[test]
fn what_is_told_of_a_breaker_that_is_gone_is_nothing_to_the_next_in_its_place() {
    let rules = Rules::DEFAULT;
    let mut planes = Planes::new(1);
    let old = planes.admit(&ask(at(0)), SCHEMA, &rules).passes.unwrap();
    for schema in 100..100 + MAX_SCHEMAS as u64 {
        let _ = call(&mut planes, at(0), (Some(schema), seen(None)), &rules);
    }
    assert!(planes.breaker(Plane::Quality { schema: 7 }).is_none());
    // The schema comes again, and its key was replaced by another.
    planes.set_keys(&[None]);
    let _ = call(&mut planes, at(0), (SCHEMA, seen(None)), &rules);
    let before = planes.clone();
    let failure = Verdict::Failure;
    let report = Report { throttling: failure, quality: failure, ..Report::NEUTRAL };
    let turns = planes.note(old, report, at(1), (&rules, &mut Scripted(Vec::new())));
    assert!(turns.is_empty());
    assert_eq!(planes, before);
}

#[test]
fn a_key_takes_its_rest_along_and_a_new_one_has_none() {
    let mut planes = Planes::new(2);
    planes.rest_key(0, at(60), KeyRest::Rejected);
    let rests = |planes: &Planes| {
        (0..planes.keys().count()).map(|key| planes.keys().rests(key, at(0)).is_some()).collect()
    };
    let all: Vec<bool> = rests(&planes);
    assert_eq!(all, [true, false]);
    planes.set_keys(&[None, Some(0), Some(1), Some(9)]);
    let all: Vec<bool> = rests(&planes);
    assert_eq!(all, [false, true, false, false]);
}

#[test]
fn the_planes_can_be_listed_and_the_keys_changed() {
    let mut planes = Planes::new(2);
    let _ = calls(&mut planes, 1, Fault::NotJson, SCHEMA);
    let listed = |planes: &Planes| -> Vec<String> {
        planes.all(&Rules::DEFAULT).map(|(plane, _)| plane.to_string()).collect()
    };
    let schema = "quality of schema 000000000007";
    assert_eq!(
        listed(&planes),
        ["availability", "throttling of key 0", "throttling of key 1", schema]
    );
    planes.set_keys(&[Some(0)]);
    assert_eq!(listed(&planes), ["availability", "throttling of key 0", schema]);
    assert_eq!(Plane::Combined.to_string(), "combined");
    assert!(planes.breaker(Plane::Combined).is_some_and(Breaker::is_untroubled));
    assert!(planes.breaker(Plane::Throttling { key: 1 }).is_none());
    planes.rest_until(at(50));
    let refused = planes.look(&ask(at(0)), None, &Rules::DEFAULT).unwrap_err();
    assert_eq!(refused.denied, Denied { until: Some(at(50)), why: Denial::Asked });
}

/// What may happen to a target, at the next moment.
#[derive(Clone, Copy, Debug)]
enum Event {
    Wait(u64),
    Admit(Option<u64>, Elsewhere),
    Force(Option<u64>),
    RestKey(usize, u64),
    Started(usize),
    Note(usize, Option<Fault>),
    Release(usize),
}

fn event() -> impl Strategy<Value = Event> {
    let schema = || prop::sample::select(vec![None, Some(1), Some(2)]);
    let elsewhere = prop::sample::select(vec![Elsewhere::Live, Elsewhere::Nobody]);
    let faults: Vec<_> = [None; 8].into_iter().chain(Fault::ALL.map(Some)).collect();
    prop_oneof![
        3 => (0_u64..40).prop_map(Event::Wait),
        9 => (schema(), elsewhere).prop_map(|(schema, elsewhere)| Event::Admit(schema, elsewhere)),
        1 => schema().prop_map(Event::Force),
        1 => (0_usize..3, 0_u64..100).prop_map(|(key, seconds)| Event::RestKey(key, seconds)),
        1 => (0_usize..8).prop_map(Event::Started),
        8 => (0_usize..8, prop::sample::select(faults)).prop_map(|(ix, fault)| Event::Note(ix, fault)),
        1 => (0_usize..8).prop_map(Event::Release),
    ]
}

/// Limits under which a short history says much.
fn brief(separation: Separation) -> Rules {
    let shorten = |limits: Limits| {
        let mut limits = Limits { min_calls: 3, ..limits };
        limits.canary.passes = 2;
        limits
    };
    let Rules { availability, throttling, quality, combined, .. } = Rules::DEFAULT;
    Rules {
        separation,
        availability: shorten(availability),
        throttling: shorten(throttling),
        quality: shorten(quality),
        combined,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn any_history_of_a_target_keeps_the_rules(
        separation in prop::sample::select(vec![Separation::Separate, Separation::Combined]),
        events in prop::collection::vec(event(), 0..120),
        seed: u64,
    ) {
        let rules = brief(separation);
        let (mut planes, mut held, mut now) = (Planes::new(2), Vec::<Passes>::new(), at(50));
        let mut dice = Seeded::new(seed);
        for event in events {
            match event {
                Event::Wait(seconds) => now = now.plus(Duration::from_secs(seconds)),
                Event::RestKey(key, seconds) => {
                    planes.rest_key(key, now.plus(Duration::from_secs(seconds)), KeyRest::Quota);
                }
                Event::Admit(schema, elsewhere) => {
                    planes.offer(now, schema, &rules);
                    let ask = Ask { elsewhere, ..ask(now) };
                    let looked = planes.look(&ask, schema, &rules);
                    let passes = planes.admit(&ask, schema, &rules).passes;
                    prop_assert_eq!(looked, passes.as_ref().map(|passes| passes.key).map_err(|r| *r));
                    if let Ok(passes) = passes {
                        prop_assert!(planes.keys().rests(passes.key, now).is_none());
                        held.push(passes);
                    }
                }
                Event::Force(schema) => held.extend(planes.force(&ask(now), schema, &rules).passes),
                Event::Started(ix) if ix < held.len() => {
                    let _ = planes.started(&held[ix], now, &rules);
                }
                Event::Note(ix, fault) if ix < held.len() => {
                    let (before, passes) = (planes.clone(), held.swap_remove(ix));
                    let (key, schema) = (passes.key, passes.quality.as_ref().map(|(schema, _)| *schema));
                    let report = seen(fault);
                    let changes = planes.note(passes, report, now, (&rules, &mut dice));
                    // A bad answer says nothing against availability, a failure nothing of quality,
                    // and no key is blamed for another.
                    for Turn { plane, .. } in &changes {
                        let verdict = match plane {
                            Plane::Availability => report.availability,
                            Plane::Throttling { key: turned } => {
                                prop_assert_eq!(*turned, key);
                                report.throttling
                            }
                            Plane::Quality { schema: turned } => {
                                prop_assert_eq!(Some(*turned), schema);
                                report.quality
                            }
                            Plane::Combined => report.combined,
                        };
                        prop_assert!(verdict != Verdict::Neutral);
                    }
                    if report == Report::NEUTRAL {
                        prop_assert!(changes.is_empty());
                        prop_assert_eq!(planes.is_untroubled(&rules), before.is_untroubled(&rules));
                    }
                }
                Event::Release(ix) if ix < held.len() => planes.release(held.swap_remove(ix)),
                Event::Started(_) | Event::Note(..) | Event::Release(_) => {}
            }
            prop_assert!(planes.quality.len() <= MAX_SCHEMAS);
        }
        for passes in held {
            planes.release(passes);
        }
        prop_assert!(planes.all(&rules).all(|(_, breaker)| breaker.slots.is_empty()));
    }
}
