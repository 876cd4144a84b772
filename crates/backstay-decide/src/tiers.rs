//! Who answers next: the first live tier, within it the least busy target, and none twice before
//! every other had its turn.

use std::time::Duration;

use crate::dice::Dice;
use crate::recover::LastResort;
use crate::time::Moment;

/// One target of the route, as it stands for this call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its tier; 0 is asked first. Targets of one tier share the load.
    pub tier: usize,
    /// Attempts this call already made at it.
    pub tries: u32,
    /// Until when it may not be called; `None` or a past moment means it may.
    pub resting_until: Option<Moment>,
    /// Whether it can answer this request at all: window, tools, images, schema.
    pub able: bool,
    /// Calls it carries now, of everyone.
    pub in_flight: u32,
    /// This call will not come back to it: its fault there repeats.
    pub left_for_good: bool,
    /// It may be called, and had better not be while another may: it is being tested, or comes back
    /// from an outage in steps, or is bad at what this call asks for.
    pub held_back: bool,
    /// Whether the call would test it, if it went there.
    pub proof: Proof,
    /// Whether its rest may be cut short.
    pub rest: Rest,
}

/// Whether a target has proved itself since it last rested.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Proof {
    /// It has, or did not have to.
    #[default]
    Proven,
    /// The next call that goes there tests it.
    UnderTest,
}

/// Whether a target's rest may be cut short for want of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rest {
    /// It may: who is sick may be well again.
    #[default]
    Soft,
    /// It may not: its rates are used up, or its places taken.
    Hard,
}

impl Candidate {
    fn open_to_us(&self) -> bool {
        self.able && !self.left_for_good
    }

    /// When it may be called: now, or later.
    fn ready_at(&self, now: Moment) -> Moment {
        self.resting_until.map_or(now, |until| until.max(now))
    }

    /// Whether this call could go there at `now` and has not been yet.
    pub fn is_untried_and_live(&self, now: Moment) -> bool {
        self.open_to_us() && self.tries == 0 && self.ready_at(now) == now && !self.held_back
    }
}

/// What kind of target is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The one tried last, if it may be called; otherwise as [`Rule::Elsewhere`].
    Again,
    /// Any but the one tried last, which comes only if there is no other. Also for the first pick.
    Elsewhere,
}

/// The question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The index tried last; `None` at the first pick.
    pub after: Option<usize>,
    /// What kind of target is wanted.
    pub rule: Rule,
    /// The time.
    pub now: Moment,
    /// The deadline of the models.
    pub deadline: Moment,
    /// The shortest attempt worth starting.
    pub min_attempt: Duration,
    /// Whether the route has something to fall back on when all rest.
    pub last_resort: LastResort,
}

/// The answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// Call the target with this index.
    Target(usize),
    /// All rest; ask again at this moment, which leaves time for an attempt.
    WaitUntil(Moment),
    /// All rest past the deadline, nothing was tried and there is no last resort: call the one with
    /// this index anyway, since its rest ends first.
    Forced(usize),
    /// Nobody: none is able, all were left, or all rest for too long.
    Nothing,
}

/// Holds back every target that the call would test, unless it has somebody live and untried to fall
/// back on should the test fail.
pub fn hold_back_tests(candidates: &mut [Candidate], now: Moment) {
    let is_fallback =
        |other: &Candidate| other.proof == Proof::Proven && other.is_untried_and_live(now);
    if candidates.iter().any(is_fallback) {
        return;
    }
    for candidate in candidates.iter_mut().filter(|candidate| candidate.proof == Proof::UnderTest) {
        candidate.held_back = true;
    }
}

/// Chooses the next target. `candidates` are in the route's order; an empty slice gives
/// [`Pick::Nothing`].
pub fn pick(candidates: &[Candidate], ask: &Ask, dice: &mut dyn Dice) -> Pick {
    if let Some(ix) = least(candidates, ask, dice) {
        return Pick::Target(ix);
    }
    let Some((_, until)) = first_back(candidates, ask.now) else { return Pick::Nothing };
    if until.plus(ask.min_attempt) <= ask.deadline {
        return Pick::WaitUntil(until);
    }
    let untried = candidates.iter().all(|candidate| candidate.tries == 0);
    let has_time = ask.now.until(ask.deadline) >= ask.min_attempt;
    let forced = first(candidates, ask.now, |candidate| candidate.rest == Rest::Soft);
    match (ask.last_resort, forced) {
        (LastResort::HasNot, Some((ix, _))) if untried && has_time => Pick::Forced(ix),
        (LastResort::HasNot | LastResort::Has, _) => Pick::Nothing,
    }
}

/// Which target may be called first, and when: `now` if it does not rest. `None` if this call has
/// none to go to. Good for telling the caller when to come back after [`Pick::Nothing`].
pub fn first_back(candidates: &[Candidate], now: Moment) -> Option<(usize, Moment)> {
    first(candidates, now, |_| true)
}

fn first(
    candidates: &[Candidate],
    now: Moment,
    fits: impl Fn(&Candidate) -> bool,
) -> Option<(usize, Moment)> {
    candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| candidate.open_to_us() && fits(candidate))
        .min_by_key(|(_, candidate)| (candidate.ready_at(now), candidate.tier))
        .map(|(ix, candidate)| (ix, candidate.ready_at(now)))
}

/// The best target that may be called now: not held back, fewest tries, then tier, then load, then
/// the dice.
fn least(candidates: &[Candidate], ask: &Ask, dice: &mut dyn Dice) -> Option<usize> {
    let rank = |ix: usize, candidate: &Candidate| {
        let last = ask.after == Some(ix);
        let turn = match ask.rule {
            Rule::Again => !last,
            Rule::Elsewhere => last,
        };
        (candidate.held_back, turn, candidate.tries, candidate.tier, candidate.in_flight)
    };
    let ready = || {
        candidates
            .iter()
            .enumerate()
            .filter(|(_, candidate)| {
                candidate.open_to_us() && candidate.ready_at(ask.now) == ask.now
            })
            .map(|(ix, candidate)| (rank(ix, candidate), ix))
    };
    let best = ready().map(|(rank, _)| rank).min()?;
    let tied: Vec<usize> = ready().filter(|(rank, _)| *rank == best).map(|(_, ix)| ix).collect();
    if let [only] = tied[..] {
        return Some(only);
    }
    // A throw per tied target; the lowest wins. No throw is spent where nothing is tied.
    let thrown: Vec<(f64, usize)> = tied.into_iter().map(|ix| (dice.unit(), ix)).collect();
    thrown.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, ix)| ix)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::dice::{Scripted, Seeded};

    const fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    /// Live, able, idle and untried.
    fn live(tier: usize) -> Candidate {
        Candidate {
            tier,
            tries: 0,
            resting_until: None,
            able: true,
            in_flight: 0,
            left_for_good: false,
            held_back: false,
            proof: Proof::Proven,
            rest: Rest::Soft,
        }
    }

    fn resting(tier: usize, until: u64) -> Candidate {
        Candidate { resting_until: Some(at(until)), ..live(tier) }
    }

    /// At 10 s of a call that must end at 30 s.
    const FIRST: Ask = Ask {
        after: None,
        rule: Rule::Elsewhere,
        now: at(10),
        deadline: at(30),
        min_attempt: Duration::from_secs(1),
        last_resort: LastResort::HasNot,
    };

    fn choose(candidates: &[Candidate], ask: Ask) -> Pick {
        pick(candidates, &ask, &mut Scripted(vec![0.9, 0.1, 0.5]))
    }

    #[test]
    fn untried_and_live_is_what_is_well_and_was_not_asked() {
        let is = |candidate: Candidate| candidate.is_untried_and_live(at(10));
        assert!(is(live(0)));
        assert!(!is(Candidate { tries: 1, ..live(0) }));
        assert!(!is(resting(0, 11)));
        assert!(is(resting(0, 10)));
    }

    #[test]
    fn the_first_live_tier_answers_first() {
        assert_eq!(choose(&[live(0), live(1)], FIRST), Pick::Target(0));
        assert_eq!(choose(&[live(1), live(0)], FIRST), Pick::Target(1));
        assert_eq!(choose(&[resting(0, 20), live(1)], FIRST), Pick::Target(1));
        assert_eq!(choose(&[resting(0, 10), live(1)], FIRST), Pick::Target(0));
        let unable = Candidate { able: false, ..live(0) };
        assert_eq!(choose(&[unable, live(1)], FIRST), Pick::Target(1));
        let left = Candidate { left_for_good: true, tries: 1, ..live(0) };
        assert_eq!(choose(&[left, live(1)], FIRST), Pick::Target(1));
    }

    #[test]
    fn within_a_tier_the_least_busy_answers_and_the_dice_break_ties() {
        let busy = Candidate { in_flight: 3, ..live(0) };
        assert_eq!(choose(&[busy, live(0)], FIRST), Pick::Target(1));
        assert_eq!(choose(&[live(0), live(0), live(0)], FIRST), Pick::Target(1));
        let mut untouched = Scripted(vec![0.9]);
        assert_eq!(pick(&[busy, live(0)], &FIRST, &mut untouched), Pick::Target(1));
        assert_eq!(untouched, Scripted(vec![0.9]));
    }

    #[test]
    fn no_target_has_a_second_turn_before_every_other_had_its_first() {
        let tried = Candidate { tries: 1, ..live(0) };
        let elsewhere = Ask { after: Some(0), ..FIRST };
        let busy_twin = Candidate { in_flight: 9, ..live(0) };
        assert_eq!(choose(&[tried, busy_twin, live(1)], elsewhere), Pick::Target(1));
        assert_eq!(choose(&[tried, live(1)], elsewhere), Pick::Target(1));
        // All had a turn: not the last one, though its tier comes first.
        let both = [tried, Candidate { tries: 1, ..live(1) }];
        assert_eq!(choose(&both, elsewhere), Pick::Target(1));
        // No other may be called: then the last one after all.
        assert_eq!(choose(&[tried, resting(1, 20)], elsewhere), Pick::Target(0));
    }

    #[test]
    fn again_means_the_same_target_unless_it_rests_or_was_left() {
        let again = Ask { after: Some(0), rule: Rule::Again, ..FIRST };
        let tried = Candidate { tries: 2, ..live(0) };
        assert_eq!(choose(&[tried, live(1)], again), Pick::Target(0));
        let opened = Candidate { resting_until: Some(at(40)), ..tried };
        assert_eq!(choose(&[opened, live(1)], again), Pick::Target(1));
        assert_eq!(
            choose(&[Candidate { left_for_good: true, ..tried }, live(1)], again),
            Pick::Target(1)
        );
    }

    #[test]
    fn a_target_held_back_answers_only_where_nobody_else_may() {
        let held_back = Candidate { held_back: true, ..live(0) };
        assert_eq!(choose(&[held_back, live(1)], FIRST), Pick::Target(1));
        assert_eq!(choose(&[held_back, resting(1, 20)], FIRST), Pick::Target(0));
        assert_eq!(choose(&[resting(0, 20), held_back], FIRST), Pick::Target(1));
        assert!(!held_back.is_untried_and_live(at(10)));
        // Once tried elsewhere, that one again before it.
        let again = Ask { after: Some(1), ..FIRST };
        let tried = Candidate { tries: 1, ..live(1) };
        assert_eq!(choose(&[held_back, tried], again), Pick::Target(1));
    }

    #[test]
    fn a_test_needs_a_live_untried_target_to_fall_back_on() {
        let tested = Candidate { proof: Proof::UnderTest, ..live(0) };
        let tried = Candidate { tries: 1, ..live(1) };
        let held_back = |others: &[Candidate]| {
            let mut all = [&[tested], others].concat();
            hold_back_tests(&mut all, at(10));
            assert!(
                all[1..] == *others || others.iter().any(|other| other.proof == Proof::UnderTest)
            );
            all[0].held_back
        };
        assert!(!held_back(&[live(1)]));
        assert!(!held_back(&[resting(1, 20), live(2)]));
        assert!(held_back(&[]));
        assert!(held_back(&[tried]));
        assert!(held_back(&[resting(1, 20)]));
        assert!(held_back(&[Candidate { held_back: true, ..live(1) }]));
        assert!(held_back(&[Candidate { left_for_good: true, ..live(1) }]));
        // Two of them are no fallback of each other.
        assert!(held_back(&[Candidate { tier: 1, ..tested }]));
        assert!(!held_back(&[Candidate { tier: 1, ..tested }, live(2)]));
    }

    #[test]
    fn a_rest_is_waited_for_only_if_an_attempt_still_fits() {
        assert_eq!(choose(&[resting(0, 25), resting(1, 20)], FIRST), Pick::WaitUntil(at(20)));
        assert_eq!(choose(&[resting(0, 29)], FIRST), Pick::WaitUntil(at(29)));
        assert_eq!(choose(&[resting(0, 30)], FIRST), Pick::Forced(0));
    }

    #[test]
    fn where_all_rest_too_long_one_is_tried_anyway_but_only_one() {
        let all = [resting(0, 90), resting(1, 60)];
        assert_eq!(choose(&all, FIRST), Pick::Forced(1));
        assert_eq!(choose(&all, Ask { last_resort: LastResort::Has, ..FIRST }), Pick::Nothing);
        let tried = [resting(0, 90), Candidate { tries: 1, ..resting(1, 60) }];
        assert_eq!(choose(&tried, FIRST), Pick::Nothing);
        assert_eq!(choose(&all, Ask { now: at(29), ..FIRST }), Pick::Forced(1));
        assert_eq!(choose(&all, Ask { now: at(30), ..FIRST }), Pick::Nothing);
        assert_eq!(first_back(&all, at(10)), Some((1, at(60))));
    }

    #[test]
    fn a_rate_that_is_used_up_is_never_forced() {
        let paced = Candidate { rest: Rest::Hard, ..resting(0, 50) };
        assert_eq!(choose(&[paced], FIRST), Pick::Nothing);
        assert_eq!(choose(&[paced, resting(1, 90)], FIRST), Pick::Forced(1));
        assert_eq!(
            choose(&[Candidate { rest: Rest::Hard, ..resting(0, 20) }], FIRST),
            Pick::WaitUntil(at(20))
        );
    }

    #[test]
    fn nobody_able_is_nobody() {
        let unable = Candidate { able: false, ..live(0) };
        let left = Candidate { left_for_good: true, ..live(0) };
        assert_eq!(choose(&[], FIRST), Pick::Nothing);
        assert_eq!(choose(&[unable, left], FIRST), Pick::Nothing);
        assert_eq!(first_back(&[unable, left], at(0)), None);
    }

    prop_compose! {
        fn candidate()(
            tier in 0_usize..3, tries in 0_u32..3, until in prop::option::of(0_u64..60),
            able in prop::bool::weighted(0.8), in_flight in 0_u32..3,
            left_for_good in prop::bool::weighted(0.2), held_back in prop::bool::weighted(0.2),
            hard in prop::bool::weighted(0.2),
        ) -> Candidate {
            let resting_until = until.map(at);
            let rest = if hard { Rest::Hard } else { Rest::Soft };
            Candidate {
                tier, tries, resting_until, able, in_flight, left_for_good, held_back, rest,
                proof: Proof::Proven,
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn a_pick_may_be_called_and_no_live_untried_target_is_passed_over(
            candidates in prop::collection::vec(candidate(), 0..6), now in 0_u64..40,
            after in prop::option::of(0_usize..6), seed: u64,
        ) {
            let ask = Ask { after, now: at(now), ..FIRST };
            let untried = candidates.iter().any(|c| c.is_untried_and_live(ask.now));
            match pick(&candidates, &ask, &mut Seeded::new(seed)) {
                Pick::Target(ix) => {
                    let chosen = candidates[ix];
                    prop_assert!(chosen.open_to_us() && chosen.ready_at(ask.now) == ask.now);
                    let is_first_turn = chosen.tries == 0 || after.is_some_and(|last| {
                        candidates.get(last).is_some_and(|c| c.is_untried_and_live(ask.now))
                    });
                    prop_assert!(!untried || is_first_turn);
                }
                Pick::WaitUntil(until) => {
                    prop_assert!(!untried && until > ask.now);
                    prop_assert!(until.plus(ask.min_attempt) <= ask.deadline);
                }
                Pick::Forced(ix) => {
                    prop_assert!(!untried && candidates[ix].open_to_us() && candidates[ix].rest == Rest::Soft);
                }
                Pick::Nothing => prop_assert!(!untried),
            }
        }
    }
}
