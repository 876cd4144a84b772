//! The step that follows: try a target, rest, or end.

use std::time::Duration;

use backstay_decide::aimd::Full;
use backstay_decide::breaker::{Denial, Elsewhere};
use backstay_decide::extra::{self, Arrival};
use backstay_decide::latency::{Derived, Known};
use backstay_decide::pacing::Wait;
use backstay_decide::recover::OtherKey;
use backstay_decide::tiers::{self, Candidate, Pick, Rest, Rule};
use backstay_decide::timers::{Room, Timers, TooLate};
use backstay_decide::{Local, Moment};

use super::against;
use super::front::InLine;
use super::health::{Gripped, Taken};
use super::room::{cap, cut, in_time, late_after, room, size};
use super::standing::Stand;
use super::wish::Wish;
use super::{Armed, Held, Shot, Stop};
use crate::attempt::adapter::{self, Turned};
use crate::call::{Call, Plan, Purse};
use crate::clock::ThreadDice;
use crate::fault::CallError;

/// What the spine does next.
#[derive(Debug)]
pub(crate) enum Step {
    /// Make this attempt.
    Try(Shot),
    /// Wait, holding nothing but the seat and a place in a line.
    Rest(Moment),
    /// Stand in the line of a target; at its front until then, or until the target has a place.
    Line {
        /// The target's place on the call's list.
        index: usize,
        /// When to look again.
        until: Moment,
        /// The limit it waits for, with its sum.
        limit: Limit,
    },
    /// The call is over.
    End(Halt),
}

/// A limit of a target by its name, with its sum.
pub(crate) type Limit = (&'static str, String);

/// How the call is over.
#[derive(Debug)]
pub(crate) enum Halt {
    /// As the call's plan says: an answer, a last resort, a failure.
    Planned,
    /// No target can take it, or the request cannot be built.
    Failed(CallError),
}

/// Slack of a probe's lease over the attempt's total limit.
const GRACE: Duration = Duration::from_secs(5);

/// Most a call waits at a time for a busy target before it looks again.
pub(super) const BUSY_LOOK: Duration = Duration::from_millis(20);

/// Most a call waits at a time for the tests of a target to end.
const TESTS_LOOK: Duration = Duration::from_millis(100);

/// How often a call asks whether fewer retries are in flight.
const CROWD_LOOK: Duration = Duration::from_millis(50);

/// Decides the next step of `call`.
pub(crate) fn next(call: &mut Call) -> Step {
    let now = call.engine.now();
    let rule = match call.plan {
        Plan::Over => return Step::End(Halt::Planned),
        Plan::Again { until } if now < until => {
            if let Some((index, late)) = late_after(call, until.since(now), now) {
                return too_slow(call, index, &late);
            }
            call.waits("before the next try".to_owned(), until.since(now));
            return Step::Rest(until);
        }
        Plan::Again { .. } | Plan::Stay => Rule::Again,
        Plan::Start | Plan::Elsewhere => Rule::Elsewhere,
    };
    let (seen, pick) = if call.plan == Plan::Start {
        // Once a call, however often it looks while it waits.
        call.plan = Plan::Elsewhere;
        offer(call, now)
    } else {
        let seen = Looked::at(call, now);
        let pick = tiers::pick(&seen.candidates, &asked(call, rule, now), &mut ThreadDice);
        (seen, pick)
    };
    match pick {
        Pick::Target(index) => arm(call, index, seen, Admission::Ordinary),
        Pick::Forced(index) => arm(call, index, seen, Admission::Forced),
        Pick::WaitUntil(until) => {
            let wait = until.since(now);
            let Some((index, limit)) = awaited(call, until, now) else {
                let why = against::awaited(call, until, now);
                call.waits(why, wait);
                return Step::Rest(until);
            };
            // In the line it is told afterwards how long that was.
            let wait = if is_front(call, index) { wait } else { Duration::ZERO };
            call.waits_for_limit(index, &limit, wait);
            Step::Line { index, until, limit }
        }
        Pick::Nothing => nothing(call, now),
    }
}

/// As [`next`], at the target at `index` and no other.
pub(crate) fn at(call: &mut Call, index: usize) -> Step {
    let now = call.engine.now();
    if call.stops.get(index).is_none_or(|stop| stop.unable.is_some()) {
        return Step::Rest(now);
    }
    let seen = Looked::at(call, now);
    arm(call, index, seen, Admission::Ordinary)
}

/// How the targets of a call stood at one moment, by their place on its list.
struct Looked {
    candidates: Vec<Candidate>,
    now: Moment,
    /// What was taken of the first of them in the same turn.
    gripped: Option<Gripped>,
}

impl Looked {
    fn at(call: &Call, now: Moment) -> Self {
        let mut candidates: Vec<Candidate> =
            call.stops.iter().map(|stop| candidate(call, stop, now)).collect();
        tiers::hold_back_tests(&mut candidates, now);
        Self { candidates, now, gripped: None }
    }
}

#[derive(Clone, Copy)]
enum Admission {
    Ordinary,
    Forced,
}

fn asked(call: &Call, rule: Rule, now: Moment) -> tiers::Ask {
    tiers::Ask {
        after: call.current,
        rule,
        now,
        deadline: call.contract.models_until(),
        min_attempt: call.contract.min_attempt(),
        last_resort: call.last_resort(),
    }
}

/// Tells every target that a call came which would go there if it could: the shares of those that
/// are being tested are shares of such calls. And looks at them: the first one last, where what the
/// call needs is taken at once if nothing speaks against it.
fn offer(call: &Call, now: Moment) -> (Looked, Pick) {
    let mut seen = Looked { candidates: Vec::new(), now, gripped: None };
    let Some((first, others)) = call.stops.split_first() else { return (seen, Pick::Nothing) };
    let wish = |stop| wish(call, stop, now, Elsewhere::Live);
    let candidates = &mut seen.candidates;
    candidates.reserve(call.stops.len());
    candidates
        .extend(others.iter().map(|stop| candidate_of(stop, &stop.health.offer(&wish(stop)), now)));
    let ask = asked(call, Rule::Elsewhere, now);
    let mut pick = Pick::Nothing;
    seen.gripped = first.health.offer_and_take(&wish(first), |stand| {
        candidates.insert(0, candidate_of(first, stand, now));
        tiers::hold_back_tests(candidates, now);
        pick = tiers::pick(candidates, &ask, &mut ThreadDice);
        let is_held_back = candidates.first().is_some_and(|candidate| candidate.held_back);
        pick == Pick::Target(0)
            && !is_held_back
            && has_time(call, first.tier, candidates, now).is_ok()
    });
    (seen, pick)
}

pub(super) fn wish<'a>(call: &'a Call, stop: &Stop, now: Moment, elsewhere: Elsewhere) -> Wish<'a> {
    let arrival = match call.contract.prior_attempts {
        0 => Arrival::First,
        times => Arrival::Repeated(times),
    };
    let arrival = stop.stay.is_none().then_some(arrival);
    let contract = &call.contract;
    Wish {
        now,
        lease: contract.route.timeouts.total.most() + GRACE,
        elsewhere,
        left: now.until(contract.models_until()),
        min_attempt: contract.min_attempt(),
        schema: contract.quality_key(),
        bytes: size(call, stop),
        prompt: contract,
        cap: cap(call),
        whose: stop.whose(),
        arrival,
    }
}

fn candidate(call: &Call, stop: &Stop, now: Moment) -> Candidate {
    let stand = stop.health.stand(&wish(call, stop, now, Elsewhere::Live));
    candidate_of(stop, &stand, now)
}

/// What is known of a target that stands so.
pub(super) fn candidate_of(stop: &Stop, stand: &Stand, now: Moment) -> Candidate {
    let at_front = matches!(stop.line, Some(InLine::Front(..)));
    let soon = now.plus(BUSY_LOOK);
    let behind = !at_front && stop.health.line.before(stop.whose()) > 0;
    let busy = stand.full.is_some() || stand.crowded.is_some() || behind;
    let busy = busy.then_some(soon);
    let held_back = stand.refused.is_some_and(|refused| refused.yields());
    let rest = stand.refused.filter(|_| !held_back).map(|refused| refused.denied);
    let resting_until = rest.and_then(|denied| match denied.why {
        // A test may end at any moment.
        Denial::Testing { .. } => Some(now.plus(TESTS_LOOK)),
        _ => denied.until,
    });
    let is_out = rest.is_some_and(|denied| denied.why == Denial::Forced);
    let is_limit = busy.is_some() || rest.is_some_and(|denied| denied.why == Denial::Paced);
    Candidate {
        tier: stop.tier,
        tries: stop.tries,
        resting_until: resting_until.max(busy),
        able: stop.unable.is_none() && stop.turned_away.is_none() && !is_out && !too_large(stand),
        in_flight: stand.in_flight,
        left_for_good: stop.left,
        held_back,
        proof: stand.proof,
        rest: if is_limit { Rest::Hard } else { Rest::Soft },
    }
}

/// Whether the call is at the front of the line of the target at `index`.
pub(super) fn is_front(call: &Call, index: usize) -> bool {
    let stop = call.stops.get(index);
    stop.is_some_and(|stop| matches!(stop.line, Some(InLine::Front(..))))
}

/// Whether a wait makes no room for the call.
fn too_large(stand: &Stand) -> bool {
    matches!(stand.full, Some(Full::TooLarge { .. }))
        || matches!(stand.paced, Some(Wait::TooLarge { .. }))
}

/// The limit of a target that a call waits for until `until`, with its sum. `None`: something else.
fn awaited(call: &Call, until: Moment, now: Moment) -> Option<(usize, Limit)> {
    let is_soon = until.since(now) <= BUSY_LOOK;
    let of = |(index, stop): (usize, &Stop)| {
        if stop.left {
            return None;
        }
        let stand = stop.health.stand(&wish(call, stop, now, Elsewhere::Live));
        if candidate_of(stop, &stand, now).resting_until != Some(until) {
            return None;
        }
        let full = stand.full.filter(|_| is_soon);
        let full = full.map(|full| (full.name(), full.to_string()));
        let crowded = || {
            let crowded = stand.crowded.filter(|_| is_soon)?;
            Some((crowded.name(), crowded.to_string()))
        };
        let paced = || stand.paced.map(|wait| (wait.name(), wait.to_string()));
        let behind = || {
            let ahead = stop.health.line.before(stop.whose());
            (is_soon && ahead > 0).then(|| ("queue", format!("{ahead} in its line")))
        };
        Some((index, full.or_else(crowded).or_else(paced).or_else(behind)?))
    };
    call.stops.iter().enumerate().find_map(of)
}

/// Until when `stop` may not be called though nobody else may be; `None`: it may.
pub(crate) fn rests_until(call: &Call, stop: &Stop, now: Moment) -> Option<Moment> {
    stop.health.stand(&wish(call, stop, now, Elsewhere::Nobody)).refused?.denied.until
}

/// Whether the target the call is at has another key that may be used now, and was not by this call.
pub(crate) fn other_key(call: &Call, now: Moment) -> OtherKey {
    let Some(stop) = call.current.and_then(|index| call.stops.get(index)) else {
        return OtherKey::Nobody;
    };
    let has_more = usize::try_from(stop.tries).unwrap_or(usize::MAX) < stop.target.keys();
    let is_open = || {
        let stand = stop.health.stand(&wish(call, stop, now, Elsewhere::Nobody));
        stand.refused.is_none() && stand.full.is_none()
    };
    if has_more && is_open() { OtherKey::Live } else { OtherKey::Nobody }
}

/// Live, able targets this call has not tried, without the one it is at.
pub(crate) fn live_elsewhere(call: &Call, now: Moment) -> u32 {
    let all = Looked::at(call, now).candidates;
    let live = |(index, candidate): &(usize, &Candidate)| {
        Some(*index) != call.current && candidate.is_untried_and_live(now)
    };
    u32::try_from(all.iter().enumerate().filter(live).count()).unwrap_or(u32::MAX)
}

fn arm(call: &mut Call, index: usize, seen: Looked, admission: Admission) -> Step {
    let Looked { candidates, now, gripped } = seen;
    let Some(stop) = call.stops.get(index) else { return no_such_target() };
    let room = match has_time(call, stop.tier, &candidates, now) {
        Ok(room) => room,
        Err(late) => return ends_late(call, &late),
    };
    let leave = comes_back(call, index, now);
    let Some(stop) = call.stops.get_mut(index) else { return no_such_target() };
    match leave {
        Ok(()) => stop.asks_again = false,
        Err(extra::Refusal::AtOnce { .. }) if stop.asks_again => {
            return Step::Rest(now.plus(CROWD_LOOK));
        }
        Err(refusal) => {
            // It had its turn here, and the target has no second one for it.
            call.leaves(index, format!("{}: {refusal}", refusal.name()));
            return Step::Rest(now);
        }
    }
    let Some(stop) = call.stops.get(index) else { return no_such_target() };
    let held_back = candidates.get(index).is_some_and(|candidate| candidate.held_back);
    let elsewhere = if held_back { Elsewhere::Nobody } else { Elsewhere::Live };
    let (taken, changes) = gripped.unwrap_or_else(|| {
        let wish = wish(call, stop, now, elsewhere);
        match admission {
            Admission::Ordinary => stop.health.take(&wish),
            Admission::Forced => stop.health.force(&wish),
        }
    });
    call.turned(index, &changes);
    // Somebody was quicker between the look and the grip: look again.
    let Some(Taken { held, stay, known }) = taken else { return Step::Rest(now.plus(BUSY_LOOK)) };
    let limits = match cut(call, index, room, &known) {
        Ok(limits) => limits,
        Err(late) => {
            held.unsent(now);
            return too_slow(call, index, &late);
        }
    };
    if call.current != Some(index) {
        call.turn_to(index);
    }
    if let Some(stop) = call.stops.get_mut(index) {
        stop.stay = stay.or_else(|| stop.stay.take());
    }
    // Whoever goes leaves the lines; the next comes to the front.
    for stop in &mut call.stops {
        stop.line = None;
    }
    against::pass_over(call, index, &candidates, now);
    shoot(call, index, held, (limits, now))
}

fn no_such_target() -> Step {
    Step::End(Halt::Failed(CallError::local(Local::Internal, "no such target")))
}

/// A call that comes back to a target it has tried needs a retry of that target's budget, as one
/// that stays there does, and may have been told to ask again.
fn comes_back(call: &mut Call, index: usize, now: Moment) -> Result<(), extra::Refusal> {
    let is_turn = call.plan == Plan::Elsewhere;
    let needs_leave = |stop: &&mut Stop| stop.asks_again || is_turn && stop.tries > 0;
    let Some(stop) = call.stops.get_mut(index).filter(needs_leave) else { return Ok(()) };
    let repeats = call.contract.prior_attempts;
    let arrival = if repeats > 0 { Arrival::Repeated(repeats) } else { Arrival::Back };
    let health = &stop.health;
    let stay = stop.stay.get_or_insert_with(|| health.arrive(arrival, now));
    stay.ask(now)
}

/// Builds the request of the attempt that `held` is for.
fn shoot(
    call: &mut Call,
    index: usize,
    held: Held,
    ((timers, uncut), now): ((Timers, Derived), Moment),
) -> Step {
    let Some(stop) = call.stops.get(index) else { return no_such_target() };
    let objections = call.objections(index);
    let turned = Turned {
        objections: &objections,
        prefill: call.prefill(index),
        cap: call.cap,
        reask: &call.reask,
        added: stop.added,
        key: held.key(),
        address: Some(&stop.health.address),
    };
    let target = std::sync::Arc::clone(&stop.target);
    let tier = u32::try_from(stop.tier).unwrap_or(u32::MAX).saturating_add(1);
    let request = match adapter::build(call.engine.lowerings(), &call.contract, &target, turned) {
        Ok(request) => request,
        Err(error) => {
            held.unsent(now);
            return unbuilt(call, index, error, now);
        }
    };
    if call.reserve(index) == Purse::Refuses {
        held.unsent(now);
        return Step::Rest(now);
    }
    if let Some(stay) = call.stops.get_mut(index).and_then(|stop| stop.stay.as_mut()) {
        stay.sends();
    }
    call.goes_on(request.way);
    let armed = Box::new(Armed { index, target, tier, held, request, timers, uncut });
    call.sending(&armed);
    Step::Try(Shot { first: armed })
}

/// The request cannot be said in this target's dialect: others may still take it.
fn unbuilt(call: &mut Call, index: usize, error: CallError, now: Moment) -> Step {
    if let Some(stop) = call.stops.get_mut(index) {
        stop.unable = Some(error.to_string());
    }
    call.skips(index);
    call.plan = Plan::Elsewhere;
    call.unbuilt = Some(error);
    Step::Rest(now)
}

/// The call does not wait for a target, or try it, that is usually too slow for what is left.
fn too_slow(call: &mut Call, index: usize, late: &TooLate) -> Step {
    call.leaves(index, format!("{}: {late}", late.name()));
    call.plan = Plan::Elsewhere;
    Step::Rest(call.engine.now())
}

/// The room for an attempt at a target of `tier`.
///
/// # Errors
/// There is no time for any.
fn has_time(
    call: &Call,
    tier: usize,
    candidates: &[Candidate],
    now: Moment,
) -> Result<Room, TooLate> {
    let room = room(call, untried_tiers(call, tier, candidates, now), now);
    in_time(call, room, Duration::ZERO, &Known::default()).map(|()| room)
}

/// Live tiers this call has not tried, without `tier`, which is about to be.
fn untried_tiers(call: &Call, tier: usize, candidates: &[Candidate], now: Moment) -> u32 {
    let tiers = call.contract.route.tiers.len();
    let live = |other: &usize| {
        let mut there = candidates.iter().filter(|candidate| candidate.tier == *other);
        *other != tier && there.any(|candidate| candidate.is_untried_and_live(now))
    };
    u32::try_from((0..tiers).filter(live).count()).unwrap_or(u32::MAX)
}

fn ends_late(call: &mut Call, late: &TooLate) -> Step {
    call.ends_without_target(Local::DeadlineExceeded, late.to_string());
    Step::End(Halt::Planned)
}

/// No target can be called: because none is able, or because all rest for too long.
fn nothing(call: &mut Call, now: Moment) -> Step {
    let unable = |stop: &Stop| stop.unable.as_ref().map(|why| format!("{}: {why}", stop.target.id));
    let reasons: Vec<String> = call.stops.iter().filter_map(unable).collect();
    if reasons.len() == call.stops.len() {
        if let Some(error) = call.unbuilt.take().filter(|_| call.attempts == 0) {
            return Step::End(Halt::Failed(error));
        }
        let note = format!("no target takes a request of this size: {}", reasons.join("; "));
        call.ends_without_target(Local::OverBudget, note);
        return Step::End(Halt::Planned);
    }
    let resting = |stop: &Stop| {
        let stand = stop.health.stand(&wish(call, stop, now, Elsewhere::Nobody));
        Some(format!("{}: {}", stop.target.id, against::reason(stop, &stand, now)?))
    };
    let rests: Vec<String> = call.stops.iter().filter_map(resting).collect();
    let note = match rests.as_slice() {
        [] => "no target is left to ask".to_owned(),
        rests => format!("no target is left to ask: {}", rests.join("; ")),
    };
    call.ends_without_target(Local::NoTarget, note);
    Step::End(Halt::Planned)
}
