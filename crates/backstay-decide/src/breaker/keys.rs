//! The keys of one target: used in turn, each with its own rests and its own breaker for throttling.
//!
//! A provider limits keys, not models: a key that is spent or throttled rests by itself while the
//! others go on. The target rests only when all of them do, until the first is back.

use super::{Ask, Breaker, Denial, Denied, Elsewhere, Limits};
use crate::time::Moment;

/// Most keys kept count of.
const MAX_KEYS: usize = 1000;

/// Why a key rests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyRest {
    /// Too many requests: it is good again soon.
    Throttled,
    /// Its quota or credit is spent: it is good again after the reset, or when somebody pays.
    Quota,
    /// The provider does not take it (401, 403).
    Rejected,
}

/// The keys of one target, by number.
#[derive(Clone, Debug, PartialEq)]
pub struct Keys {
    /// Never empty: a target without a key has one that is nobody's.
    all: Vec<Key>,
    /// Whose turn it is, counted round and round.
    turn: usize,
    /// Keys that ever were.
    made: u32,
}

#[derive(Clone, Debug, PartialEq)]
struct Key {
    rest: Option<(Moment, KeyRest)>,
    /// Until when its rates leave no room for the call that looks now.
    paced: Option<Moment>,
    throttling: Breaker,
}

impl Key {
    fn new(number: u32) -> Self {
        Self { rest: None, paced: None, throttling: Breaker::numbered(number) }
    }
}

impl Keys {
    /// `count` fresh keys; 0 counts as 1.
    pub fn new(count: usize) -> Self {
        let mut keys = Self { all: Vec::new(), turn: 0, made: 0 };
        keys.set(&vec![None; count.min(MAX_KEYS)]);
        keys
    }

    /// How many there are; at least 1.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Makes it these keys, each by its place so far; `None`: a new one. What is known of a key goes with
    /// it. None at all are one new key.
    pub fn set(&mut self, places: &[Option<usize>]) {
        let mut known: Vec<Option<Key>> = self.all.drain(..).map(Some).collect();
        let count = places.len().clamp(1, MAX_KEYS);
        for place in places.iter().copied().chain([None]).take(count) {
            let key = place.and_then(|place| known.get_mut(place)?.take());
            self.made = self.made.wrapping_add(u32::from(key.is_none()));
            self.all.push(key.unwrap_or_else(|| Key::new(self.made)));
        }
    }

    /// Lets a key rest until `until`; never less long than before. An unknown key is none.
    pub fn rest(&mut self, key: usize, until: Moment, why: KeyRest) {
        let Some(key) = self.all.get_mut(key) else { return };
        if key.rest.is_none_or(|(before, _)| before < until) {
            key.rest = Some((until, why));
        }
    }

    /// Says until when the rates of a key leave no room for the call that looks next; `None`: they do.
    pub fn pace(&mut self, key: usize, until: Option<Moment>) {
        if let Some(key) = self.all.get_mut(key) {
            key.paced = until;
        }
    }

    /// Until when a key rests, and why; `None`: it does not.
    pub fn rests(&self, key: usize, now: Moment) -> Option<(Moment, KeyRest)> {
        self.all.get(key)?.rest.filter(|(until, _)| *until > now)
    }

    /// Whether no key's breaker has anything against it.
    pub(super) fn are_untroubled(&self) -> bool {
        self.all.iter().all(|key| key.throttling.is_untroubled())
    }

    /// The breaker of a key.
    pub fn throttling(&self, key: usize) -> Option<&Breaker> {
        self.all.get(key).map(|key| &key.throttling)
    }

    pub(super) fn throttling_mut(&mut self, key: usize) -> Option<&mut Breaker> {
        self.all.get_mut(key).map(|key| &mut key.throttling)
    }

    /// The breakers of all keys, in order.
    pub(super) fn breakers(&mut self) -> impl Iterator<Item = &mut Breaker> {
        self.all.iter_mut().map(|key| &mut key.throttling)
    }

    /// The key whose turn it is among those that may be used. With `limits` their breakers have a
    /// say; without, only their rests.
    ///
    /// # Errors
    /// [`Denied`]: none may be used, and when the first may.
    pub fn look(&self, ask: &Ask, limits: Option<&Limits>) -> Result<usize, Denied> {
        let count = self.all.len();
        let turns = || (0..count).map(|step| (self.turn + step) % count);
        // Another key is as good as another target.
        let others = Ask { elsewhere: Elsewhere::Live, ..*ask };
        let first = turns().find(|key| self.may(*key, &others, limits).is_ok());
        if let Some(key) = first {
            return Ok(key);
        }
        let mut denials = Vec::with_capacity(count);
        for key in turns() {
            match self.may(key, ask, limits) {
                Ok(()) => return Ok(key),
                Err(denied) => denials.push(denied),
            }
        }
        let until = denials.iter().filter_map(|denied| denied.until).min();
        let why = match denials.as_slice() {
            [only] => only.why,
            several => {
                let whys = || several.iter().map(|denied| denied.why);
                let spares = whys().find(|why| why.spares());
                let paced = || whys().find(|why| *why == Denial::Paced);
                spares.or_else(paced).unwrap_or(Denial::Keys)
            }
        };
        Err(Denied { until, why })
    }

    fn may(&self, key: usize, ask: &Ask, limits: Option<&Limits>) -> Result<(), Denied> {
        if let Some((until, _)) = self.rests(key, ask.now) {
            return Err(Denied { until: Some(until), why: Denial::Keys });
        }
        if let (Some(limits), Some(breaker)) = (limits, self.throttling(key)) {
            breaker.look(ask, limits)?;
        }
        match self.all.get(key).and_then(|key| key.paced).filter(|until| *until > ask.now) {
            Some(until) => Err(Denied { until: Some(until), why: Denial::Paced }),
            None => Ok(()),
        }
    }

    /// The key that is back first.
    pub(super) fn first_back(&self) -> usize {
        let until = |key: &usize| self.all.get(*key).and_then(|key| key.rest).map(|rest| rest.0);
        (0..self.all.len()).min_by_key(until).unwrap_or(0)
    }

    /// The key was used: it is the next one's turn.
    pub(super) fn used(&mut self, key: usize) {
        self.turn = key + 1;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::breaker::{Suits, Unfit, Verdict};
    use crate::dice::Scripted;

    const UNFIT: Suits = Suits::HealthyOnly(Unfit::Effect { field: "store" });

    const fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    fn ask(seconds: u64) -> Ask {
        let lease = Duration::from_mins(1);
        Ask { now: at(seconds), lease, elsewhere: Elsewhere::Live, suits: Suits::Test }
    }

    fn use_next(keys: &mut Keys, seconds: u64) -> Result<usize, Denied> {
        let key = keys.look(&ask(seconds), Some(&Limits::THROTTLING))?;
        keys.used(key);
        Ok(key)
    }

    #[test]
    fn keys_take_turns_and_a_resting_one_is_passed_over_until_its_reset() {
        let mut keys = Keys::new(3);
        let turns: Vec<_> = (0..4).map(|_| use_next(&mut keys, 0).unwrap()).collect();
        assert_eq!(turns, [0, 1, 2, 0]);
        keys.rest(1, at(100), KeyRest::Quota);
        let turns: Vec<_> = (0..4).map(|_| use_next(&mut keys, 50).unwrap()).collect();
        assert_eq!(turns, [2, 0, 2, 0]);
        assert_eq!(keys.rests(1, at(99)), Some((at(100), KeyRest::Quota)));
        assert_eq!(keys.rests(1, at(100)), None);
        let turns: Vec<_> = (0..3).map(|_| use_next(&mut keys, 100).unwrap()).collect();
        assert_eq!(turns, [1, 2, 0]);
    }

    #[test]
    fn when_all_rest_the_first_one_back_says_until_when() {
        let mut keys = Keys::new(2);
        keys.rest(0, at(100), KeyRest::Quota);
        keys.rest(1, at(60), KeyRest::Throttled);
        assert_eq!(use_next(&mut keys, 0), Err(Denied { until: Some(at(60)), why: Denial::Keys }));
        assert_eq!(use_next(&mut keys, 60), Ok(1));
    }

    #[test]
    fn a_key_whose_rates_are_used_up_is_passed_over_and_all_of_them_say_so() {
        let mut keys = Keys::new(2);
        keys.pace(0, Some(at(5)));
        let turns: Vec<_> = (0..2).map(|_| use_next(&mut keys, 0).unwrap()).collect();
        assert_eq!(turns, [1, 1]);
        keys.rest(1, at(9), KeyRest::Quota);
        assert_eq!(use_next(&mut keys, 0), Err(Denied { until: Some(at(5)), why: Denial::Paced }));
        assert_eq!(use_next(&mut keys, 5), Ok(0));
        keys.pace(0, None);
        assert_eq!(use_next(&mut keys, 0), Ok(0));
        keys.pace(7, Some(at(5)));
    }

    #[test]
    fn a_rest_is_never_shortened_and_an_unknown_key_has_none() {
        let mut keys = Keys::new(0);
        assert_eq!(keys.count(), 1);
        keys.rest(0, at(100), KeyRest::Quota);
        keys.rest(0, at(50), KeyRest::Throttled);
        assert_eq!(keys.rests(0, at(0)), Some((at(100), KeyRest::Quota)));
        keys.rest(0, at(200), KeyRest::Rejected);
        assert_eq!(keys.rests(0, at(0)), Some((at(200), KeyRest::Rejected)));
        keys.rest(0, at(200), KeyRest::Quota);
        assert_eq!(
            keys.rests(0, at(0)),
            Some((at(200), KeyRest::Rejected)),
            "the first word stays"
        );
        keys.rest(7, at(100), KeyRest::Quota);
        assert_eq!(keys.rests(7, at(0)), None);
        assert!(keys.throttling(7).is_none());
    }

    #[test]
    fn the_key_that_is_back_first_is_the_one_to_force() {
        for (rests, first) in [([100, 60, 80], 1), ([100, 80, 60], 2), ([60, 80, 100], 0)] {
            let mut keys = Keys::new(3);
            for (key, seconds) in rests.into_iter().enumerate() {
                keys.rest(key, at(seconds), KeyRest::Quota);
            }
            assert_eq!(keys.first_back(), first);
        }
    }

    /// Keys whose breakers opened at 0 and are ready to be tested from 40 s on.
    fn opened(count: usize) -> (Keys, Limits) {
        let mut keys = Keys::new(count);
        let limits = Limits { failures: 3, ..Limits::AVAILABILITY };
        for breaker in keys.breakers() {
            for _ in 0..3 {
                let pass = breaker.admit(&ask(0), &limits).pass.unwrap();
                breaker.note(pass, Verdict::Failure, at(0), &limits, &mut Scripted(Vec::new()));
            }
        }
        (keys, limits)
    }

    #[test]
    fn why_no_key_may_be_used_is_the_reason_of_the_one_or_the_best_of_several() {
        let why = |keys: &Keys, ask: &Ask, limits: &Limits| {
            keys.look(ask, Some(limits)).map_err(|denied| denied.why)
        };
        let unsuited = Ask { suits: UNFIT, ..ask(40) };
        let (one, limits) = opened(1);
        assert_eq!(why(&one, &ask(0), &limits), Err(Denial::Open));
        let (two, _) = opened(2);
        assert_eq!(why(&two, &ask(0), &limits), Err(Denial::Keys));
        let unfit = Denial::Unfit(Unfit::Effect { field: "store" });
        assert_eq!(why(&two, &unsuited, &limits), Err(unfit));
    }

    #[test]
    fn a_key_that_is_well_goes_before_one_to_be_tested_by_force() {
        let (mut keys, limits) = opened(1);
        keys.set(&[Some(0), None]);
        let last_one = Ask { suits: UNFIT, elsewhere: Elsewhere::Nobody, ..ask(40) };
        assert_eq!(keys.look(&last_one, Some(&limits)), Ok(1));
        keys.rest(1, at(100), KeyRest::Quota);
        assert_eq!(keys.look(&last_one, Some(&limits)), Ok(0));
    }

    #[test]
    fn more_or_fewer_keys_keep_what_is_known_and_the_turn_stays_in_range() {
        let mut keys = Keys::new(3);
        keys.rest(0, at(100), KeyRest::Quota);
        assert_eq!(use_next(&mut keys, 0), Ok(1));
        keys.set(&[Some(0), Some(1)]);
        assert_eq!(use_next(&mut keys, 0), Ok(1));
        assert_eq!(use_next(&mut keys, 0), Ok(1));
        keys.set(&[Some(0)]);
        assert!(use_next(&mut keys, 0).is_err());
        keys.set(&vec![Some(0); 2 * MAX_KEYS]);
        assert_eq!(keys.count(), MAX_KEYS);
    }
}
