//! That no expectation of a reported case is passed over in silence: each is held by a test, or stands
//! here with its reason.

use super::{cases, is_call, is_played, streams};

/// Fields that no test asserts, and why.
const UNASSERTED: &[(&str, &str)] = &[
    ("semantic_status", "a failure has the status of its code; that of an event is not invented"),
    ("next", "in words; what follows is said by `outcome` and the number of requests"),
    (
        "cooldown_ms_after_second",
        "no time set by hand: a 429 that names none rests its target by the breaker",
    ),
    (
        "if_deadline_ms",
        "a target that rests past the deadline is asked once all the same: no blackout",
    ),
    ("route_ordered_last", "tiers stand in the order of the route, whatever their health"),
    ("rss_growth", "of a day; the soak watches memory, and the bound of the queue is tested"),
    ("tokens_committed_after_stream", "tests of rates and spend settle what streams used"),
    ("or", "the other branch of `waits_ms_max`, which is the one taken"),
];

/// Fields of the cases that are told in words, and which their tests hold.
const HELD: &[(&str, &[&str])] = &[
    ("B122", &["defined_action_for_each_phase"]),
    ("B162", &["max_withdrawals"]),
    ("B163", &["balance_invariant", "lost_updates"]),
    ("B164", &["every_wait_between_ms", "non_decreasing_before_jitter"]),
    ("B173", &["attempts_per_route_max", "total_attempts_max", "log_bytes_max"]),
    ("B178", &["p2_request_lacks"]),
    ("B179", &["second_request_lacks", "final"]),
    ("B180", &["id_mapped", "mapping_consistent_in_request"]),
    ("B186", &["state_after", "probe_slots_free"]),
    ("B187", &["state_after_probe_timeout", "next_probe_allowed"]),
    ("B188", &["probe_slots_free"]),
    ("B190", &["recorded", "state"]),
    ("B193", &["action"]),
    ("B219", &["upstream_sees_close_within_ms"]),
    ("B220", &["upstream_sees_close_within_ms", "recorded_as"]),
    ("B221", &["option"]),
    ("B223", &["second"]),
    ("B224", &["second"]),
    ("B225", &["added_latency_ms_max", "status", "readiness"]),
    ("B228", &["dropped_events_counted"]),
    ("B229", &["C"]),
    ("B230", &["charged"]),
    ("B232", &["waits_ms_max"]),
    ("B233", &["false_429"]),
    ("B234", &["documented_scope", "overshoot_when_shared"]),
];

/// Whether `field` is one that is knowingly left out.
pub(super) fn is_left_out(field: &str) -> bool {
    UNASSERTED.iter().any(|(known, _)| *known == field)
}

/// What a case that is played expects is asked for field by field where it is played, and an unknown
/// field fails there.
#[test]
fn every_field_of_a_case_in_words_is_held_or_has_a_reason() {
    let Some(cases) = cases() else { return };
    let mut missing = Vec::new();
    for case in cases.iter().filter(|case| is_call(case)) {
        let id = case["id"].as_str().expect("an id");
        if is_played(case) || streams::is_played(case) {
            continue;
        }
        let held = HELD.iter().find(|(known, _)| *known == id).map_or(&[][..], |(_, held)| held);
        let fields = case["expected"].as_object().expect("expectations").keys();
        let unheld = fields.filter(|field| !held.contains(&field.as_str()) && !is_left_out(field));
        missing.extend(unheld.map(|field| format!("{id} {field}")));
    }
    assert!(missing.is_empty(), "{missing:?}");
}
