//! Chooses who answers next, and takes what that target lends: a pass of its breaker, a place
//! among its calls.
//!
//! The choice is `backstay_decide::tiers::pick`, a pure function; this stage lays out the
//! candidates for it and arms the one it picks. Nothing of a target is held while the call waits.

mod against;
mod direct;
mod ending;
mod front;
mod guard;
mod health;
mod next;
mod paces;
mod promised;
mod rests;
mod room;
mod speed;
mod standing;
mod stay;
pub(crate) mod view;
mod wish;

use std::sync::Arc;

use backstay_decide::latency::Derived;
use backstay_decide::timers::Timers;

use crate::attempt::adapter::{self, Outgoing};
use crate::attempt::stream::StreamTimers;
use crate::contract::{Added, Contract};
use crate::engine::Engine;
use crate::policy::Target;

pub(crate) use direct::{DIRECT, Directs, target};
pub use ending::{Brought, Ending};
pub(crate) use front::{InLine, stand};
pub use guard::Held;
pub use health::Health;
pub(crate) use health::TargetHealth;
pub(crate) use next::{Halt, Limit, Step, at, live_elsewhere, next, other_key, rests_until};
pub(crate) use paces::Prompt;
pub use speed::{Going, Timed};
pub use standing::Snapshot;
pub(crate) use stay::Stay;
use wish::Whose;

/// One target on a call's list.
#[derive(Debug)]
pub(crate) struct Stop {
    /// The target.
    pub target: Arc<Target>,
    /// Its tier, from 0.
    pub tier: usize,
    /// Its state, shared with all calls.
    pub health: Arc<TargetHealth>,
    /// Why it cannot serve this call at all; `None`: it can.
    pub unable: Option<String>,
    /// The token budget check: prompt, output cap, allowed. `None`: its window is not known.
    pub fits: Option<[u64; 3]>,
    /// What the request has for it beside the caller's bytes; nothing where its window is not known.
    pub added: Added,
    /// Attempts this call made at it.
    pub tries: u32,
    /// Re-asks this call made at it.
    pub reasks: u32,
    /// Whether this call will not come back to it.
    pub left: bool,
    /// The call's place in the line there, while it waits for its rates or places.
    pub line: Option<InLine>,
    /// Why that line does not take the call.
    pub turned_away: Option<String>,
    /// The call's stay there, while it is there.
    pub stay: Option<Stay>,
    /// Whether its budget had no retry for the call yet, and is asked again before the next try.
    pub asks_again: bool,
    /// Whether it was said why the call passed it over.
    pub passed_over: bool,
}

impl Stop {
    /// Whose a call is that comes here.
    pub(crate) fn whose(&self) -> Whose {
        if self.tier == 0 { Whose::Own } else { Whose::Fallback }
    }
}

/// One attempt, ready to go. A second, hedged one joins it in a later version.
#[derive(Debug)]
pub(crate) struct Shot {
    /// The first, and so far only, request.
    pub first: Box<Armed>,
}

/// A target with everything needed to call it. Dropping it settles all it holds.
#[derive(Debug)]
pub(crate) struct Armed {
    /// Its place on the call's list.
    pub index: usize,
    /// The target.
    pub target: Arc<Target>,
    /// Its tier, from 1.
    pub tier: u32,
    /// The breaker's pass and the concurrency lease.
    pub held: Held,
    /// The request.
    pub request: Outgoing,
    /// The limits, cut to the deadline. `sent` is set when the request goes out.
    pub timers: Timers,
    /// The same before they were cut, and where they come from.
    pub uncut: Derived,
}

impl Armed {
    /// The timers of a stream whose request goes out now.
    pub(crate) fn stream_timers(&self) -> StreamTimers {
        StreamTimers {
            sent: tokio::time::Instant::now(),
            first_token: self.timers.first_token,
            gap: self.timers.gap,
            total: self.timers.total,
        }
    }
}

/// The call's list: every target of its route, tier by tier, with what speaks against it. A fault that
/// the caller asked for stands alone in the first tier.
pub(crate) fn list(engine: &Engine, contract: &Contract) -> Vec<Stop> {
    let simulated = contract.simulated.as_ref().map(|simulated| {
        let health = TargetHealth::of_one_call(&simulated.target, engine.clock());
        stop(engine, contract, (0, &simulated.target), health)
    });
    let replaced = usize::from(simulated.is_some());
    let tiers = contract.route.tiers.iter().enumerate().skip(replaced);
    let real = tiers
        .flat_map(|(tier, targets)| targets.iter().map(move |target| (tier, target)))
        .map(|(tier, target)| {
            let health = engine.health().of(target, &contract.model, engine.clock());
            stop(engine, contract, (tier, target), health)
        });
    simulated.into_iter().chain(real).collect()
}

/// A target of a tier as a stop of the call.
fn stop(
    engine: &Engine,
    contract: &Contract,
    (tier, target): (usize, &Arc<Target>),
    health: Arc<TargetHealth>,
) -> Stop {
    let sized = target.context_tokens.is_some();
    let added = sized.then(|| adapter::added(engine.lowerings(), contract, target));
    let added = added.unwrap_or_default();
    let (unable, fits) = able(contract, target, &health, added);
    Stop {
        health,
        unable,
        fits,
        added,
        target: Arc::clone(target),
        tier,
        tries: 0,
        reasks: 0,
        left: false,
        line: None,
        turned_away: None,
        stay: None,
        asks_again: false,
        passed_over: false,
    }
}

/// Why `target` cannot serve this contract (its window, its byte limit), and the sum that shows
/// that it fits the window.
fn able(
    contract: &Contract,
    target: &Target,
    health: &TargetHealth,
    added: Added,
) -> (Option<String>, Option<[u64; 3]>) {
    let (bytes, most) = (contract.ask.body.len() as u64, target.max_request_bytes);
    if most > 0 && bytes > most {
        return (Some(format!("{bytes} bytes are more than the {most} it takes")), None);
    }
    let Some(window) = target.context_tokens else { return (None, None) };
    match contract.fits(window, added, || health.learned(bytes + added.bytes)) {
        Ok(sum) => (None, Some([sum.prompt, sum.cap, sum.allowed])),
        Err(over) => (Some(format!("{over} (window {window} less a tenth)")), None),
    }
}
