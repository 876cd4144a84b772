//! Tests of the recovery table.

use proptest::prelude::*;

use super::*;
use crate::dice::{Scripted, Seeded};
use crate::extra::Kind;

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Early in a call of 30 s: one attempt of four made, one target, no last resort.
pub(super) fn facts(fault: Fault) -> Facts {
    Facts {
        fault,
        server_delay: None,
        veto: Veto::Absent,
        left: ms(29_600),
        attempts: 1,
        max_attempts: 4,
        tries_here: 1,
        retry: Ok(()),
        other_key: OtherKey::Nobody,
        reask: reask::Budget::of(2),
        fallback: Fallback::HasNot,
        cap: Cap::Spent,
        schema: Schema::Asked,
        live_elsewhere: 0,
        on_semantic: OnSemantic::Reask,
        on_refusal: OnRefusal::LastResort,
        last_resort: LastResort::HasNot,
        backoff: Backoff { base: ms(1000), cap: ms(30_000) },
        min_attempt: ms(1000),
    }
}

#[expect(clippy::large_types_passed_by_value, reason = "a test says what it is about")]
fn next(facts: Facts) -> Next {
    decide(&facts, &mut Scripted(vec![0.25])).next
}

const TRANSIENT: [Fault; 8] = [
    Fault::RateLimited,
    Fault::Overloaded,
    Fault::ServerError,
    Fault::ProviderTimeout,
    Fault::ConnectionLost,
    Fault::StreamCut,
    Fault::MalformedReply,
    Fault::Empty,
];
const SILENT: [Fault; 4] =
    [Fault::ConnectFailed, Fault::NoFirstToken, Fault::Stalled, Fault::TotalTimeout];

#[test]
fn only_the_very_last_attempt_is_kept_for_a_live_tier() {
    let attempts = |attempts, max_attempts| {
        let facts = Facts { attempts, max_attempts, ..facts(Fault::SchemaError) };
        next(Facts { live_elsewhere: 1, ..facts })
    };
    assert_eq!(attempts(3, 5), Next::Reask);
    assert_eq!(attempts(4, 5), Next::Elsewhere);
    assert_eq!(attempts(1, 2), Next::Elsewhere);
}

#[test]
fn the_whole_table_is_as_written_down() {
    assert_eq!(markdown(), include_str!("table.md"));
}

#[test]
fn every_fault_has_its_usual_row_first() {
    let usual: Vec<Fault> = table().iter().filter(|r| r.when.is_empty()).map(|r| r.fault).collect();
    assert_eq!(usual, Fault::ALL);
}

#[test]
fn a_wait_is_the_larger_of_jitter_and_the_servers_delay() {
    for fault in TRANSIENT {
        assert_eq!(next(facts(fault)), Next::Again { after: ms(250) });
        let second = Facts { tries_here: 2, attempts: 2, ..facts(fault) };
        assert_eq!(next(second), Next::Again { after: ms(500) });
        let asked = Facts { server_delay: Some(ms(7000)), ..facts(fault) };
        assert_eq!(next(asked), Next::Again { after: ms(7000) });
        let little = Facts { server_delay: Some(ms(100)), ..facts(fault) };
        assert_eq!(next(little), Next::Again { after: ms(250) });
    }
}

#[test]
fn a_live_tier_is_preferred_to_a_long_wait_or_a_third_try() {
    for fault in TRANSIENT {
        let live = Facts { live_elsewhere: 1, left: ms(20_000), ..facts(fault) };
        assert_eq!(next(live), Next::Again { after: ms(250) });
        let quarter = Facts { server_delay: Some(ms(5000)), ..live };
        assert_eq!(next(quarter), Next::Again { after: ms(5000) });
        let over = Facts { server_delay: Some(ms(5001)), ..live };
        assert_eq!(next(over), Next::Elsewhere);
        assert_eq!(next(Facts { tries_here: 2, attempts: 2, ..live }), Next::Elsewhere);
    }
}

#[test]
fn a_retry_too_many_waits_for_those_in_flight_where_the_call_would_end() {
    let refusal =
        |allowed| extra::Refusal::AtOnce { kind: Kind::Retry, extra: 2, allowed, calls: 4 };
    for fault in TRANSIENT {
        let crowded = Facts { retry: Err(refusal(2)), ..facts(fault) };
        let decision = decide(&crowded, &mut Scripted(vec![0.25]));
        let why = Why::Crowded { refusal: refusal(2), wait: ms(250) };
        assert_eq!(decision, Decision { next: Next::Again { after: ms(250) }, why });
        assert!(why.to_string().ends_with("; asked again after 0.25 s"), "{why}");
        assert_eq!(next(Facts { live_elsewhere: 1, ..crowded }), Next::Elsewhere);
        assert_eq!(next(Facts { last_resort: LastResort::Has, ..crowded }), Next::LastResort);
        assert_eq!(next(Facts { left: ms(1249), ..crowded }), Next::Fail);
        assert_eq!(next(Facts { retry: Err(refusal(0)), ..crowded }), Next::Fail, "never any");
    }
}

#[test]
fn alone_a_wait_must_leave_room_for_an_attempt() {
    for fault in TRANSIENT.into_iter().chain(SILENT) {
        let just = Facts { left: ms(1250), ..facts(fault) };
        assert_eq!(next(just), Next::Again { after: ms(250) });
        let short = Facts { left: ms(1249), ..facts(fault) };
        let decision = decide(&short, &mut Scripted(vec![0.25]));
        let why = Why::NoRoom { wait: ms(250), needed: ms(1000), left: ms(1249) };
        assert_eq!(decision, Decision { next: Next::Fail, why });
        let none = Facts { left: ms(0), ..facts(fault) };
        let why = Why::NoRoom { wait: ms(250), needed: ms(1000), left: ms(0) };
        assert_eq!(decide(&none, &mut Scripted(vec![0.25])).why, why);
    }
}

#[test]
fn a_veto_forbids_the_same_target_only() {
    for fault in TRANSIENT {
        let vetoed = Facts { veto: Veto::Given, ..facts(fault) };
        assert_eq!(next(vetoed), Next::Fail);
        assert_eq!(next(Facts { live_elsewhere: 1, ..vetoed }), Next::Elsewhere);
        assert_eq!(next(Facts { last_resort: LastResort::Has, ..vetoed }), Next::LastResort);
    }
}

#[test]
fn a_silent_target_is_left_at_once_unless_it_is_the_only_one() {
    for fault in SILENT {
        assert_eq!(next(Facts { live_elsewhere: 1, ..facts(fault) }), Next::Elsewhere);
        assert_eq!(next(facts(fault)), Next::Again { after: ms(250) });
    }
}

#[test]
fn what_repeating_cannot_fix_goes_elsewhere_or_ends() {
    let never_here = [
        Fault::QuotaExhausted,
        Fault::Auth,
        Fault::NotFound,
        Fault::ContextExceeded,
        Fault::UnknownFinish,
    ];
    for fault in never_here {
        assert_eq!(next(facts(fault)), Next::Fail);
        assert_eq!(next(Facts { live_elsewhere: 1, ..facts(fault) }), Next::Elsewhere);
        assert_eq!(next(Facts { last_resort: LastResort::Has, ..facts(fault) }), Next::LastResort);
    }
}

#[test]
fn a_bad_request_fails_whatever_else_there_is() {
    for fault in [Fault::BadRequest, Fault::TooLarge] {
        let rich = Facts { live_elsewhere: 3, last_resort: LastResort::Has, ..facts(fault) };
        assert_eq!(next(rich), Next::Fail);
        assert_eq!(next(Facts { attempts: 4, ..rich }), Next::Fail);
    }
}

#[test]
fn a_refusal_is_never_repeated_and_goes_on_only_by_policy() {
    for fault in [Fault::ContentPolicy, Fault::Refused, Fault::ContentFiltered] {
        let live = Facts { live_elsewhere: 1, ..facts(fault) };
        assert_eq!(next(live), Next::Hand);
        assert_eq!(next(Facts { last_resort: LastResort::Has, ..live }), Next::LastResort);
        let by_policy = Facts { on_refusal: OnRefusal::NextTier, ..live };
        assert_eq!(next(by_policy), Next::Elsewhere);
        assert_eq!(next(Facts { live_elsewhere: 0, ..by_policy }), Next::Hand);
        assert_eq!(next(Facts { attempts: 4, ..by_policy }), Next::Hand);
        let has = Facts { last_resort: LastResort::Has, left: ms(0), ..by_policy };
        assert_eq!(next(has), Next::LastResort);
    }
}

#[test]
fn a_cut_reply_gets_a_higher_cap_once_or_goes_on_as_it_is() {
    let cut = facts(Fault::Truncated);
    for schema in [Schema::Asked, Schema::None] {
        assert_eq!(next(Facts { cap: Cap::Raisable, schema, ..cut }), Next::RaiseCap);
        let spent = Facts { cap: Cap::Spent, schema, ..cut };
        assert_eq!(next(spent), Next::Fail);
        assert_eq!(next(Facts { live_elsewhere: 1, ..spent }), Next::Elsewhere);
    }
    let own = Facts { cap: Cap::CallersOwn, ..cut };
    assert_eq!(next(Facts { schema: Schema::None, live_elsewhere: 1, ..own }), Next::Hand);
    assert_eq!(next(own), Next::Fail);
    assert_eq!(next(Facts { live_elsewhere: 1, ..own }), Next::Elsewhere);
}

#[test]
fn a_paused_turn_is_handed_on_even_after_the_deadline() {
    assert_eq!(next(Facts { left: ms(0), attempts: 4, ..facts(Fault::Paused) }), Next::Hand);
}

#[test]
fn a_broken_reply_is_re_asked_within_its_bound() {
    for fault in [Fault::NotJson, Fault::SchemaError, Fault::SemanticError] {
        assert_eq!(next(Facts { live_elsewhere: 1, ..facts(fault) }), Next::Reask);
        let made = |made| reask::Budget { made, ..reask::Budget::of(2) };
        let spent = Facts { reask: made(2), ..facts(fault) };
        assert_eq!(next(spent), Next::Fail);
        assert_eq!(next(Facts { live_elsewhere: 1, ..spent }), Next::Elsewhere);
        let off = Facts { reask: reask::Budget::of(0), ..facts(fault) };
        let why = Why::NoReask(reask::Refusal::Off);
        assert_eq!(decide(&off, &mut Scripted(vec![])), Decision { next: Next::Fail, why });
    }
}

#[test]
fn the_same_errors_three_times_are_three_calls_whatever_the_count_allows() {
    for allowed in 2..6 {
        let mut facts = Facts { max_attempts: 6, ..facts(Fault::SchemaError) };
        facts.reask.allowed = allowed;
        let mut calls = 1;
        while next(facts) == Next::Reask {
            calls += 1;
            (facts.reask.made, facts.reask.seen) = (facts.reask.made + 1, facts.reask.seen + 1);
            facts.attempts = calls;
        }
        assert_eq!((calls, next(facts)), (3, Next::Fail), "{allowed} re-asks allowed");
    }
}

#[test]
fn a_declared_fallback_comes_after_the_re_asks_and_before_everything_else() {
    let rich = |fault| Facts {
        fallback: Fallback::Has,
        last_resort: LastResort::Has,
        live_elsewhere: 1,
        ..facts(fault)
    };
    for fault in [Fault::NotJson, Fault::SchemaError, Fault::SemanticError] {
        assert_eq!(next(rich(fault)), Next::Reask);
        let spent = Facts { reask: reask::Budget::of(0), ..rich(fault) };
        assert_eq!(next(spent), Next::Fallback);
        assert_eq!(next(Facts { attempts: 4, live_elsewhere: 0, ..rich(fault) }), Next::Fallback);
        assert_eq!(next(Facts { left: ms(1), ..rich(fault) }), Next::Fallback);
    }
    // A re-ask that broke down: another tier may still know better, the kept reply comes next.
    assert_eq!(next(rich(Fault::NoFirstToken)), Next::Elsewhere);
    let alone = |fault| Facts { live_elsewhere: 0, attempts: 4, ..rich(fault) };
    assert_eq!(next(alone(Fault::NoFirstToken)), Next::Fallback);
    assert_eq!(next(alone(Fault::Truncated)), Next::Fallback);
    // A refusal, a verdict of the route and the caller's own mistake stand as they are.
    assert_eq!(next(alone(Fault::Refused)), Next::LastResort);
    for on_semantic in [OnSemantic::Reject, OnSemantic::Human] {
        let judged = Facts { on_semantic, ..rich(Fault::SemanticError) };
        assert_eq!(next(judged), Next::LastResort);
    }
    assert_eq!(next(alone(Fault::BadRequest)), Next::Fail);
}

#[test]
fn a_broken_rule_ends_the_call_where_the_route_says_so() {
    for on_semantic in [OnSemantic::Reject, OnSemantic::Human] {
        let broken = Facts { on_semantic, live_elsewhere: 1, ..facts(Fault::SemanticError) };
        assert_eq!(next(broken), Next::Fail);
        assert_eq!(next(Facts { last_resort: LastResort::Has, ..broken }), Next::LastResort);
    }
}

#[test]
fn the_last_attempt_is_kept_for_a_tier_that_was_not_tried() {
    let last = |fault| Facts { attempts: 3, live_elsewhere: 1, cap: Cap::Raisable, ..facts(fault) };
    for fault in [Fault::Overloaded, Fault::SchemaError, Fault::Truncated] {
        let decision = decide(&last(fault), &mut Scripted(vec![0.25]));
        let want =
            Decision { next: Next::Elsewhere, why: Why::LastAttemptKept { made: 3, allowed: 4 } };
        assert_eq!(decision, want, "{fault}");
        let silent = Facts { fault: Fault::NoFirstToken, ..last(fault) };
        let own_reason = decide(&silent, &mut Scripted(vec![])).why;
        assert!(matches!(own_reason, Why::Rule(_)), "its own reason is kept: {own_reason:?}");
        assert!(!matches!(next(Facts { live_elsewhere: 0, ..last(fault) }), Next::Elsewhere));
    }
}

#[test]
fn spent_attempts_and_a_spent_deadline_say_so() {
    let out = Facts { attempts: 4, ..facts(Fault::Overloaded) };
    let spent = Why::AttemptsSpent { made: 4, allowed: 4 };
    assert_eq!(decide(&out, &mut Scripted(vec![])), Decision { next: Next::Fail, why: spent });
    let late = Facts { left: ms(900), live_elsewhere: 1, ..facts(Fault::Auth) };
    let why = Why::Deadline { left: ms(900), needed: ms(1000) };
    assert_eq!(decide(&late, &mut Scripted(vec![])), Decision { next: Next::Fail, why });
    assert_eq!(next(Facts { left: ms(1000), ..late }), Next::Elsewhere);
    let resort = Facts { last_resort: LastResort::Has, ..late };
    assert_eq!(decide(&resort, &mut Scripted(vec![])).next, Next::LastResort);
}

#[test]
fn dice_are_thrown_only_where_a_wait_is_weighed() {
    for fault in Fault::ALL {
        let mut dice = Scripted(vec![0.25, 0.75]);
        let waits = matches!(decide(&facts(fault), &mut dice).next, Next::Again { .. });
        assert_eq!(dice.0.len(), if waits { 1 } else { 2 }, "{fault}");
    }
}

prop_compose! {
    fn counts()(
        left in 0_u64..60_000,
        server in prop::option::of(0_u64..60_000),
        attempts in 1_u32..8,
        max_attempts in 1_u32..8,
        tries_here in 1_u32..6,
        made in 0_u32..4,
        allowed in 0_u32..4,
        seen in 1_u32..4,
        took in 0_u64..60_000,
        live_elsewhere in 0_u32..4,
        base in 0_u64..4_000,
        cap in 0_u64..40_000,
        min_attempt in 0_u64..2_000,
    ) -> Facts {
        Facts {
            server_delay: server.map(ms),
            left: ms(left),
            attempts,
            max_attempts,
            tries_here,
            reask: reask::Budget { made, seen, took: ms(took), ..reask::Budget::of(allowed) },
            live_elsewhere,
            backoff: Backoff { base: ms(base), cap: ms(cap) },
            min_attempt: ms(min_attempt),
            ..facts(Fault::ServerError)
        }
    }
}

prop_compose! {
    pub(in crate::recover) fn any_facts()(
        counts in counts(),
        fault in prop::sample::select(Fault::ALL.to_vec()),
        veto in prop::sample::select(vec![Veto::Absent, Veto::Absent, Veto::Given]),
        cap in prop::sample::select(vec![Cap::CallersOwn, Cap::Raisable, Cap::Spent]),
        schema in prop::sample::select(vec![Schema::Asked, Schema::None]),
        on_semantic in prop::sample::select(vec![OnSemantic::Reask, OnSemantic::Reject, OnSemantic::Human]),
        on_refusal in prop::sample::select(vec![OnRefusal::LastResort, OnRefusal::NextTier]),
        last_resort in prop::sample::select(vec![LastResort::Has, LastResort::HasNot]),
        fallback in prop::sample::select(vec![Fallback::Has, Fallback::HasNot, Fallback::HasNot]),
    ) -> Facts {
        Facts { fault, veto, fallback, cap, schema, on_semantic, on_refusal, last_resort, ..counts }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_wait_respects_the_server_the_cap_and_the_deadline(facts in any_facts(), seed: u64) {
        let decision = decide(&facts, &mut Seeded::new(seed));
        if let Next::Again { after } = decision.next {
            let server = facts.server_delay.unwrap_or_default();
            prop_assert!(after >= server);
            prop_assert!(after <= facts.backoff.cap.max(server));
            prop_assert!(after + facts.min_attempt <= facts.left);
            prop_assert!(facts.veto == Veto::Absent);
            prop_assert!(facts.live_elsewhere == 0 || after <= facts.left / 4);
        }
    }

    #[test]
    fn nothing_is_started_without_attempts_time_or_a_place_to_go(facts in any_facts(), seed: u64) {
        let next = decide(&facts, &mut Seeded::new(seed)).next;
        if next.starts_an_attempt() {
            prop_assert!(facts.attempts < facts.max_attempts);
            prop_assert!(facts.left >= facts.min_attempt && !facts.left.is_zero());
        }
        if next == Next::Elsewhere {
            prop_assert!(facts.live_elsewhere > 0);
        } else if next.starts_an_attempt() && facts.live_elsewhere > 0 {
            prop_assert!(facts.max_attempts - facts.attempts > 1, "the last attempt was not kept");
        }
    }

    #[test]
    fn endings_are_the_ones_the_route_has(facts in any_facts(), seed: u64) {
        let next = decide(&facts, &mut Seeded::new(seed)).next;
        let callers_own = matches!(facts.fault, Fault::BadRequest | Fault::TooLarge);
        prop_assert!(next != Next::LastResort || facts.last_resort == LastResort::Has);
        prop_assert!(next != Next::Fail || callers_own || facts.last_resort == LastResort::HasNot);
        prop_assert!(facts.fault != Fault::TooSlow || matches!(next, Next::Elsewhere | Next::Hand));
        prop_assert!(next != Next::Fallback || facts.fallback == Fallback::Has);
        let stands = is_refusal(facts.fault)
            || facts.fault == Fault::SemanticError && facts.on_semantic != OnSemantic::Reask;
        prop_assert!(next != Next::Fallback || !stands);
        if next == Next::Reask {
            prop_assert!(facts.reask.check(facts.left).is_ok());
        }
        prop_assert!(!callers_own || next == Next::Fail);
        let may_be_handed = is_refusal(facts.fault)
            || matches!(facts.fault, Fault::Paused | Fault::Truncated | Fault::TooSlow);
        prop_assert!(next != Next::Hand || may_be_handed);
    }

    #[test]
    fn any_run_of_faults_ends_within_its_attempts_and_its_deadline(
        start in any_facts(),
        faults in prop::collection::vec((prop::sample::select(Fault::ALL.to_vec()), 0_u64..5_000), 1..20),
        seed: u64,
    ) {
        let mut dice = Seeded::new(seed);
        let mut facts = Facts { attempts: 1, tries_here: 1, ..start };
        facts.reask.made = 0;
        let whole = facts.left;
        let mut spent = Duration::ZERO;
        for (fault, took) in faults.iter().cycle() {
            facts.fault = *fault;
            let next = decide(&facts, &mut dice).next;
            match next {
                Next::Again { after } => spent += after,
                Next::Elsewhere => {
                    facts.live_elsewhere -= 1;
                    (facts.tries_here, facts.reask.made) = (0, 0);
                }
                Next::Reask => facts.reask.made += 1,
                Next::RaiseCap => facts.cap = Cap::Spent,
                Next::Fallback | Next::Hand | Next::LastResort | Next::Fail => break,
            }
            prop_assert!(spent + facts.min_attempt <= whole, "started with too little time left");
            spent = (spent + ms(*took)).min(whole);
            facts.left = whole.saturating_sub(spent);
            facts.attempts += 1;
            facts.tries_here += 1;
            prop_assert!(facts.attempts <= facts.max_attempts);
        }
    }
}

/// The budget of a target's retries is spent: the call goes elsewhere or ends, and says why.
#[test]
fn without_a_retry_in_the_budget_nothing_is_repeated() {
    let refusal = extra::Refusal::CallerRepeats { kind: Kind::Retry, times: 1 };
    for fault in [Fault::ServerError, Fault::RateLimited, Fault::ConnectFailed] {
        let spent = Facts { retry: Err(refusal), ..facts(fault) };
        let alone = decide(&spent, &mut Scripted(vec![0.5]));
        assert_eq!((alone.next, alone.why), (Next::Fail, Why::NoRetry(refusal)), "{fault}");
        assert_eq!(alone.why.name(), "extra_caller_repeats");
        let backed = decide(&Facts { live_elsewhere: 1, ..spent }, &mut Scripted(vec![0.5]));
        assert_eq!(backed.next, Next::Elsewhere, "{fault}");
    }
    let reask = Facts { retry: Err(refusal), ..facts(Fault::NotJson) };
    assert_eq!(decide(&reask, &mut Scripted(vec![])).next, Next::Reask, "re-asks have their own");
}

/// What is wrong with one key is not wrong with the next: no wait, and no other tier.
#[test]
fn another_key_of_the_provider_is_used_at_once() {
    for fault in [Fault::QuotaExhausted, Fault::Auth, Fault::RateLimited] {
        for live_elsewhere in [0, 1] {
            let several = Facts { other_key: OtherKey::Live, live_elsewhere, ..facts(fault) };
            let decision = decide(&several, &mut Scripted(vec![0.5]));
            assert_eq!(decision.next, Next::Again { after: Duration::ZERO }, "{fault}");
        }
        let last =
            Facts { other_key: OtherKey::Live, attempts: 3, live_elsewhere: 1, ..facts(fault) };
        let decision = decide(&Facts { max_attempts: 4, ..last }, &mut Scripted(vec![0.5]));
        assert_eq!(decision.next, Next::Elsewhere, "{fault}: the last attempt is kept");
    }
    let down =
        Facts { other_key: OtherKey::Live, live_elsewhere: 1, ..facts(Fault::ConnectFailed) };
    assert_eq!(decide(&down, &mut Scripted(vec![0.5])).next, Next::Elsewhere);
}
