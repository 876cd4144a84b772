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
        self.open_to_us() && self.tries == 0 && self.ready_at(now) == now
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

/// Chooses the next target. `candidates` are in the route's order; an empty slice gives
/// [`Pick::Nothing`].
pub fn pick(candidates: &[Candidate], ask: &Ask, dice: &mut dyn Dice) -> Pick {
    if let Some(ix) = least(candidates, ask, dice) {
        return Pick::Target(ix);
    }
    let earliest = candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| candidate.open_to_us())
        .min_by_key(|(_, candidate)| (candidate.ready_at(ask.now), candidate.tier));
    let Some((ix, candidate)) = earliest else { return Pick::Nothing };
    let until = candidate.ready_at(ask.now);
    if until.plus(ask.min_attempt) <= ask.deadline {
        return Pick::WaitUntil(until);
    }
    let untried = candidates.iter().all(|candidate| candidate.tries == 0);
    match ask.last_resort {
        LastResort::HasNot if untried && ask.now.until(ask.deadline) >= ask.min_attempt => {
            Pick::Forced(ix)
        }
        LastResort::HasNot | LastResort::Has => Pick::Nothing,
    }
}

/// The best target that may be called now: fewest tries, then tier, then load, then the dice.
fn least(candidates: &[Candidate], ask: &Ask, dice: &mut dyn Dice) -> Option<usize> {
    let rank = |ix: usize, candidate: &Candidate| {
        let last = ask.after == Some(ix);
        let turn = match ask.rule {
            Rule::Again => !last,
            Rule::Elsewhere => last,
        };
        (turn, candidate.tries, candidate.tier, candidate.in_flight)
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
