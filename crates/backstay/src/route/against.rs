//! Why a call does not go to a target, in words that show the sum.

use backstay_decide::Moment;
use backstay_decide::breaker::{Denial, Elsewhere, Refused, Transition, Unfit};
use backstay_decide::tiers::{Candidate, Proof};
use backstay_decide::time::Secs;

use super::Stop;
use super::next::{candidate_of, wish};
use super::standing::Stand;
use crate::call::Call;

/// Says once of each target before the one at `index` why the call does not go there.
pub(super) fn pass_over(call: &mut Call, index: usize, candidates: &[Candidate], now: Moment) {
    for (before, candidate) in candidates.iter().enumerate().take(index) {
        let is_news = |stop: &&Stop| !stop.passed_over && stop.tries == 0 && !stop.left;
        let Some(stop) = call.stops.get(before).filter(is_news) else { continue };
        let stand = stop.health.stand(&wish(call, stop, now, Elsewhere::Live));
        let alone = || {
            (candidate.proof == Proof::UnderTest).then(|| Denial::Unfit(Unfit::Alone).to_string())
        };
        if let Some(why) = reason(stop, &stand, now).or_else(alone) {
            call.rests(before, why);
        }
    }
}

/// What a call waits for until `until`: its target, and what speaks against that.
pub(super) fn awaited(call: &Call, until: Moment, now: Moment) -> String {
    let rests = |stop: &Stop| {
        let stand = stop.health.stand(&wish(call, stop, now, Elsewhere::Live));
        let is_it = !stop.left && candidate_of(stop, &stand, now).resting_until == Some(until);
        let why = reason(stop, &stand, now).filter(|_| is_it)?;
        Some(format!("{}: {why}", stop.target.id))
    };
    let why = call.stops.iter().find_map(rests);
    why.unwrap_or_else(|| "until a target may be called again".to_owned())
}

/// What speaks against a target that stands so. `None`: nothing.
pub(super) fn reason(stop: &Stop, stand: &Stand, now: Moment) -> Option<String> {
    if let Some(why) = &stop.turned_away {
        return Some(why.clone());
    }
    let is_paced = stand.paced.is_some();
    let refused = stand.refused.filter(|refused| !is_paced || refused.denied.why != Denial::Paced);
    if let Some(refused) = refused {
        return Some(with_history(stop, refused, rest(refused, now)));
    }
    let paced = || stand.paced.map(|wait| format!("{}: {wait}", wait.name()));
    let full = || stand.full.map(|full| format!("{}: {full}", full.name()));
    let crowded = || stand.crowded.map(|crowded| format!("{}: {crowded}", crowded.name()));
    paced().or_else(full).or_else(crowded)
}

/// The breaker's word, and until when it holds.
fn rest(refused: Refused, now: Moment) -> String {
    let left = refused.denied.until.map(|until| until.since(now));
    match (refused.denied.why, left) {
        (Denial::Share { .. }, Some(left)) if !left.is_zero() => {
            format!("{refused} or within {}", Secs(left))
        }
        (Denial::Share { .. } | Denial::Unfit(_), _) | (_, None) => refused.to_string(),
        (_, Some(left)) => format!("{refused}, for {} more", Secs(left)),
    }
}

/// With what the breaker did last, and by which numbers.
fn with_history(stop: &Stop, refused: Refused, why: String) -> String {
    match stop.health.last_change(refused.plane) {
        Some(change @ Transition::HalfOpened { .. }) => format!("{why}; it became {change}"),
        Some(change) => format!("{why}; it {change}"),
        None => why,
    }
}
