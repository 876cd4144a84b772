//! What to do about a fault: again, elsewhere, re-ask, raise the cap, hand on, or end. One table.
//!
//! [`decide`] first asks what the fault itself calls for, then lets four gates speak, in this order:
//!
//! 1. nothing is started once the attempts are used up;
//! 2. the last attempt is kept for a live tier that was not tried;
//! 3. nothing is started when less than the shortest attempt is left;
//! 4. what cannot go on ends: for a refusal at the route's last resort, else at the caller; for
//!    anything else at the best reply with its declared fallbacks, else at the last resort, else as
//!    a failure.
//!
//! [`table()`] runs the function over every fault, so the printed table cannot drift from the code.
#![warn(clippy::wildcard_enum_match_arm)]

pub mod reask;
pub mod rescue;
mod table;
mod why;

use std::time::Duration;

use crate::backoff::Backoff;
use crate::dice::Dice;
use crate::extra;
use crate::fault::Fault;
pub use crate::retry_after::Veto;
pub use table::{Row, markdown, table};
pub use why::Why;

/// Whose output cap it is, where a reply was cut at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cap {
    /// The caller set it: it is what the caller wants.
    CallersOwn,
    /// The route set it, below its ceiling, and it was not raised yet.
    Raisable,
    /// It was raised once, or stands at the ceiling.
    Spent,
}

/// Whether the reply has to fit a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schema {
    /// It has to.
    Asked,
    /// Free text.
    None,
}

/// The route's rule for replies that break its semantic rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnSemantic {
    /// Ask the same target again, with the errors.
    Reask,
    /// End the call.
    Reject,
    /// End the call at the last resort, where a person looks at it.
    Human,
}

/// The route's rule for refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnRefusal {
    /// The last resort if there is one, else the caller with the provider's reason.
    LastResort,
    /// A live tier that was not tried; then as [`OnRefusal::LastResort`].
    NextTier,
}

/// Whether the route has an answer that needs no model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastResort {
    /// A cache, rules, a static reply, or a human queue.
    Has,
    /// Nothing.
    HasNot,
}

/// Whether the best reply of the call so far is an answer once the fallbacks that its schema
/// declares stand in for what is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// It is, and passes every check.
    Has,
    /// It is not, or no reply was kept.
    HasNot,
}

/// Whether the target has another key that may be used now, and that this call has not used there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OtherKey {
    /// It has.
    Live,
    /// It has not.
    Nobody,
}

/// All that a decision depends on. Counts include the attempt that just failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// What went wrong.
    pub fault: Fault,
    /// The delay the server asked for.
    pub server_delay: Option<Duration>,
    /// Whether the provider said not to repeat the request.
    pub veto: Veto,
    /// Until the deadline of the models.
    pub left: Duration,
    /// Attempts made in this call, prior ones that were charged to it included.
    pub attempts: u32,
    /// Attempts the route allows.
    pub max_attempts: u32,
    /// Attempts made at this target, at least 1.
    pub tries_here: u32,
    /// Whether the target's budget has a retry for it now.
    pub retry: Result<(), extra::Refusal>,
    /// Whether another of the target's keys may be used now.
    pub other_key: OtherKey,
    /// What is left of its re-asks at this target.
    pub reask: reask::Budget,
    /// Whether declared fallbacks would make an answer of the best reply.
    pub fallback: Fallback,
    /// Whose cap a cut reply was cut at.
    pub cap: Cap,
    /// Whether the reply has to fit a schema.
    pub schema: Schema,
    /// Targets that are live, able and untried by this call.
    pub live_elsewhere: u32,
    /// The route's rule for broken rules.
    pub on_semantic: OnSemantic,
    /// The route's rule for refusals.
    pub on_refusal: OnRefusal,
    /// Whether the route has a last resort.
    pub last_resort: LastResort,
    /// How waits grow.
    pub backoff: Backoff,
    /// The shortest attempt worth starting; see [`crate::timers::min_attempt`].
    pub min_attempt: Duration,
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Try the same target after a wait. For [`Why::Crowded`] its budget is asked again first.
    Again {
        /// How long to wait first.
        after: Duration,
    },
    /// Try another target now.
    Elsewhere,
    /// Ask the same target again now, with its reply and the errors in it.
    Reask,
    /// Ask the same target again now, with the higher output cap.
    RaiseCap,
    /// Answer with the best reply and its declared fallbacks.
    Fallback,
    /// Give the caller what the provider sent.
    Hand,
    /// Answer without a model.
    LastResort,
    /// End with a typed failure.
    Fail,
}

impl Next {
    /// Whether this starts another attempt.
    pub const fn starts_an_attempt(self) -> bool {
        match self {
            Self::Again { .. } | Self::Elsewhere | Self::Reask | Self::RaiseCap => true,
            Self::Fallback | Self::Hand | Self::LastResort | Self::Fail => false,
        }
    }
}

/// What to do, and the reason in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub next: Next,
    /// Why.
    pub why: Why,
}

/// How often a target is tried before its faults send the call to a live tier.
const TRIES_BEFORE_ELSEWHERE: u32 = 2;

/// Decides what follows a fault. Draws one number from `dice` when a wait is weighed, else none.
pub fn decide(facts: &Facts, dice: &mut dyn Dice) -> Decision {
    let wish = wish(facts, dice);
    if !wish.next.starts_an_attempt() {
        return wish;
    }
    let (made, allowed) = (facts.attempts, facts.max_attempts);
    if made >= allowed {
        return end(facts, Why::AttemptsSpent { made, allowed });
    }
    let is_last = allowed - made == 1;
    let stays = wish.next != Next::Elsewhere;
    let kept = is_last && stays && facts.live_elsewhere > 0;
    let why = Why::LastAttemptKept { made, allowed };
    let wish = if kept { Decision { next: Next::Elsewhere, why } } else { wish };
    if facts.left < facts.min_attempt || facts.left.is_zero() {
        return end(facts, Why::Deadline { left: facts.left, needed: facts.min_attempt });
    }
    wish
}

/// What the fault calls for, were there attempts and time enough.
fn wish(facts: &Facts, dice: &mut dyn Dice) -> Decision {
    match facts.fault {
        Fault::RateLimited
        | Fault::Overloaded
        | Fault::ServerError
        | Fault::ProviderTimeout
        | Fault::ConnectionLost
        | Fault::StreamCut
        | Fault::MalformedReply
        | Fault::Empty => transient(facts, dice),
        Fault::ConnectFailed | Fault::NoFirstToken | Fault::Stalled | Fault::TotalTimeout => {
            leave_or_repeat(facts, "a silent target is left at once while another is live", dice)
        }
        Fault::Looping => {
            leave_or_repeat(facts, "a looping target is left at once while another is live", dice)
        }
        Fault::TooSlow => elsewhere_or_end(facts, "a slow stream is left for a live target only"),
        Fault::QuotaExhausted => other_key(facts).unwrap_or_else(|| {
            elsewhere_or_end(facts, "a spent quota does not come back by waiting")
        }),
        Fault::Auth => other_key(facts).unwrap_or_else(|| {
            elsewhere_or_end(facts, "the key sent is refused; repeating cannot change that")
        }),
        Fault::NotFound => elsewhere_or_end(facts, "this provider does not have the model"),
        Fault::ContextExceeded => {
            elsewhere_or_end(facts, "the request does not fit this model's window")
        }
        Fault::UnknownFinish => {
            elsewhere_or_end(facts, "an unknown finish is never taken for success")
        }
        Fault::BadRequest => fail("the request itself was rejected"),
        Fault::TooLarge => fail("the request has too many bytes"),
        Fault::ContentPolicy | Fault::Refused | Fault::ContentFiltered => refused(facts),
        Fault::Truncated => truncated(facts),
        Fault::Paused => hand("a paused turn is the caller's to continue"),
        Fault::NotJson | Fault::SchemaError => reask(facts),
        Fault::SemanticError => match facts.on_semantic {
            OnSemantic::Reask => reask(facts),
            OnSemantic::Reject => judged(facts, "the route rejects replies that break its rules"),
            OnSemantic::Human => {
                judged(facts, "the route sends replies that break its rules to a person")
            }
        },
    }
}

/// Faults that pass by themselves: wait here, unless waiting costs more than going elsewhere.
fn transient(facts: &Facts, dice: &mut dyn Dice) -> Decision {
    if facts.veto == Veto::Given {
        return elsewhere_or(facts, Why::Vetoed);
    }
    let crowd = match facts.retry {
        Ok(()) => None,
        Err(refusal) if waits_for_a_crowd(facts, &refusal) => Some(refusal),
        Err(refusal) => return elsewhere_or(facts, Why::NoRetry(refusal)),
    };
    if facts.fault == Fault::RateLimited
        && let Some(decision) = other_key(facts)
    {
        return decision;
    }
    if facts.live_elsewhere > 0 && facts.tries_here >= TRIES_BEFORE_ELSEWHERE {
        let why = Why::TriedEnough { tries: facts.tries_here };
        return Decision { next: Next::Elsewhere, why };
    }
    let failures = facts.tries_here.saturating_sub(1);
    let (bound, jitter) = (facts.backoff.bound(failures), facts.backoff.wait(failures, dice));
    let wait = jitter.max(facts.server_delay.unwrap_or_default());
    let left = facts.left;
    if facts.live_elsewhere > 0 && wait > left / 4 {
        return Decision { next: Next::Elsewhere, why: Why::WaitTooLong { wait, left } };
    }
    let needed = facts.min_attempt;
    if wait.saturating_add(needed) > left {
        let why = Why::NoRoom { wait, needed, left };
        // Elsewhere needs no wait, so a shorter time may still do there.
        return elsewhere_or(facts, why);
    }
    let why = match crowd {
        Some(refusal) => Why::Crowded { refusal, wait },
        None => Why::Wait { wait, jitter, bound, server: facts.server_delay, left },
    };
    Decision { next: Next::Again { after: wait }, why }
}

/// Whether a retry that is one too many at the moment is waited for. It is where the call would end
/// else: those in flight will be over.
fn waits_for_a_crowd(facts: &Facts, refusal: &extra::Refusal) -> bool {
    let passes = matches!(refusal, extra::Refusal::AtOnce { allowed: 1.., .. });
    passes && facts.live_elsewhere == 0 && facts.last_resort == LastResort::HasNot
}

/// What is wrong with a key is not wrong with the next: the same target, at once.
fn other_key(facts: &Facts) -> Option<Decision> {
    let next = Next::Again { after: Duration::ZERO };
    let why = Why::Rule("another key of this provider may be used");
    (facts.other_key == OtherKey::Live).then_some(Decision { next, why })
}

/// Nobody there, silence, or a loop: a live tier takes over at once; alone, it is a fault that may
/// pass.
fn leave_or_repeat(facts: &Facts, rule: &'static str, dice: &mut dyn Dice) -> Decision {
    if facts.live_elsewhere > 0 {
        return Decision { next: Next::Elsewhere, why: Why::Rule(rule) };
    }
    transient(facts, dice)
}

/// Repairs by asking again, as far as the budget goes; then the best reply with its declared
/// fallbacks, then another tier.
fn reask(facts: &Facts) -> Decision {
    match facts.reask.check(facts.left) {
        Ok(()) => {
            let (made, allowed) = (facts.reask.made, facts.reask.allowed);
            Decision { next: Next::Reask, why: Why::Reask { made, allowed } }
        }
        Err(refusal) if facts.fallback == Fallback::Has => {
            Decision { next: Next::Fallback, why: Why::NoReask(refusal) }
        }
        Err(refusal) => elsewhere_or(facts, Why::NoReask(refusal)),
    }
}

/// What the route has decided about broken rules: no fallback stands in for that.
fn judged(facts: &Facts, rule: &'static str) -> Decision {
    end(&Facts { fallback: Fallback::HasNot, ..*facts }, Why::Rule(rule))
}

/// A refusal is a decision, not a breakdown: it is not repeated, and no laxer model is sought unless
/// the route says so.
fn refused(facts: &Facts) -> Decision {
    match facts.on_refusal {
        OnRefusal::NextTier => {
            elsewhere_or(facts, Why::Rule("the route takes a refusal to the next tier"))
        }
        OnRefusal::LastResort => end(facts, Why::Rule("a refusal is handed on, not repeated")),
    }
}

/// A reply cut at its cap is cut again if asked again: only a higher cap helps.
fn truncated(facts: &Facts) -> Decision {
    match (facts.cap, facts.schema) {
        (Cap::Raisable, Schema::Asked | Schema::None) => {
            Decision { next: Next::RaiseCap, why: Why::Rule("the route's cap is raised once") }
        }
        (Cap::CallersOwn, Schema::None) => hand("the caller set this cap"),
        (Cap::CallersOwn, Schema::Asked) | (Cap::Spent, Schema::Asked | Schema::None) => {
            elsewhere_or_end(facts, "the same cap would cut the reply again")
        }
    }
}

fn elsewhere_or_end(facts: &Facts, rule: &'static str) -> Decision {
    elsewhere_or(facts, Why::Rule(rule))
}

/// Another live tier if there is one, else the end.
fn elsewhere_or(facts: &Facts, why: Why) -> Decision {
    if facts.live_elsewhere > 0 {
        return Decision { next: Next::Elsewhere, why };
    }
    end(facts, why)
}

/// Where a call ends that cannot go on.
fn end(facts: &Facts, why: Why) -> Decision {
    if facts.fault == Fault::TooSlow {
        // Its stream is there, and no substitute is better than the model's own slow words.
        return Decision { next: Next::Hand, why };
    }
    let next = match (facts.fallback, facts.last_resort, is_refusal(facts.fault)) {
        (Fallback::Has, _, false) => Next::Fallback,
        (_, LastResort::Has, _) => Next::LastResort,
        (_, LastResort::HasNot, true) => Next::Hand,
        (_, LastResort::HasNot, false) => Next::Fail,
    };
    Decision { next, why }
}

/// Whether the fault carries the provider's reason, which the caller should see as it is.
fn is_refusal(fault: Fault) -> bool {
    matches!(fault, Fault::ContentPolicy | Fault::Refused | Fault::ContentFiltered)
}

/// The caller's own mistake fails even where a last resort exists.
fn fail(rule: &'static str) -> Decision {
    Decision { next: Next::Fail, why: Why::Rule(rule) }
}

fn hand(rule: &'static str) -> Decision {
    Decision { next: Next::Hand, why: Why::Rule(rule) }
}

#[cfg(test)]
mod tests;
