//! All that is kept of one target, under one lock: breakers, places, first tokens.

use std::sync::Arc;
use std::time::Duration;

use backstay_decide::aimd::{Full, Met, Place, Places};
use backstay_decide::breaker::{
    Admitted, Ask, KeyRest, Order, Passes, Planes, Refused, Report, Rules, Turn, in_force,
};
use backstay_decide::usual::FirstTokens;
use backstay_decide::{Dice, Fault, Moment};

use crate::clock::ThreadDice;
use crate::policy::Target;

/// Taken for the usual time to a first token where none is known: a second strain within it is the
/// same one.
const USUAL: Duration = Duration::from_secs(1);

/// What is kept of one target.
#[derive(Debug)]
pub(super) struct Standing {
    /// As the policy in force has it.
    target: Arc<Target>,
    pub(super) planes: Planes,
    pub(super) places: Places,
    /// An operator's word over the policy's.
    pub(super) order: Option<Order>,
    first_tokens: FirstTokens,
}

/// What is asked of a target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    /// The call, as its breakers see it.
    pub ask: Ask,
    /// The schema of its reply.
    pub schema: Option<u64>,
    /// The size of its body.
    pub bytes: u64,
}

/// How a target stands at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stand {
    /// Why it may not be called; `None`: it may.
    pub refused: Option<Refused>,
    /// Calls it carries.
    pub in_flight: u32,
    /// Why it has no place for the call; `None`: it has.
    pub full: Option<Full>,
}

/// What an attempt holds of its target.
#[derive(Debug)]
pub(crate) struct Parts {
    passes: Passes,
    place: Place,
    /// The size of the caller's body.
    bytes: u64,
}

impl Parts {
    /// Which of the provider's keys to use.
    pub(super) fn key(&self) -> usize {
        self.passes.key
    }
}

/// How an attempt ended, for everything that keeps count of its target.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// What its breakers hear.
    pub report: Report,
    /// What it came to.
    pub brought: Brought,
}

/// What came of an attempt, as far as it speaks of the load on the target.
#[derive(Clone, Copy, Debug)]
pub enum Brought {
    /// Content; after so long, where it was streamed.
    Content(Option<Duration>),
    /// A fault.
    Fault(Fault),
    /// Nothing, or nothing new.
    Nothing,
}

/// How a target stands, for an operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Its name; where it keeps the caller's word for the model, that word behind a `/`.
    pub target: String,
    /// Calls it carries.
    pub in_flight: u32,
    /// Bytes of the bodies of these.
    pub bytes: u64,
    /// Calls it may carry now; `None`: any number.
    pub places: Option<u32>,
    /// The usual time to a first token for a small prompt; `None`: too little is known.
    pub usual_first_token: Option<Duration>,
}

impl Standing {
    pub(super) fn new(target: &Arc<Target>, order: Option<Order>) -> Self {
        Self {
            planes: Planes::new(target.keys()),
            target: Arc::clone(target),
            places: Places::new(),
            order,
            first_tokens: FirstTokens::default(),
        }
    }

    /// Takes over what may have changed of the target, as after a reload.
    pub(super) fn fit(&mut self, target: &Arc<Target>) {
        if !Arc::ptr_eq(&self.target, target) {
            self.planes.set_keys(target.keys());
            self.target = Arc::clone(target);
        }
    }

    /// Whether nothing is known against it.
    pub(super) fn is_untroubled(&self) -> bool {
        self.planes.is_untroubled(&self.target.breaker)
    }

    /// A call came that would go here if it could.
    pub(super) fn offer(&mut self, now: Moment, schema: Option<u64>) {
        let rules = in_force(self.order.as_ref(), &self.target.breaker, now);
        self.planes.offer(now, schema, &rules);
    }

    pub(super) fn stand(&self, wish: &Wish) -> Stand {
        let rules = in_force(self.order.as_ref(), &self.target.breaker, wish.ask.now);
        Stand {
            refused: self.planes.look(&wish.ask, wish.schema, &rules).err(),
            in_flight: self.places.in_flight(),
            full: self.places.check(wish.bytes, &self.target.limits.places).err(),
        }
    }

    /// How many of its breakers of a kind keep calls away.
    pub(super) fn shut(&self, plane: &str, now: Moment) -> usize {
        self.planes.shut(plane, now, &self.target.breaker)
    }

    pub(super) fn snapshot(&self, name: &str) -> Snapshot {
        Snapshot {
            target: name.to_owned(),
            in_flight: self.places.in_flight(),
            bytes: self.places.bytes(),
            places: self.places.limit(&self.target.limits.places),
            usual_first_token: self.first_tokens.usual(0),
        }
    }

    pub(super) fn take(&mut self, wish: &Wish) -> (Option<Parts>, Vec<Turn>) {
        self.enter(wish, Planes::admit)
    }

    /// As [`Standing::take`], whatever the breakers say.
    pub(super) fn force(&mut self, wish: &Wish) -> (Option<Parts>, Vec<Turn>) {
        self.enter(wish, Planes::force)
    }

    /// Everything that is asked before anything is taken.
    fn enter(
        &mut self,
        wish: &Wish,
        way: fn(&mut Planes, &Ask, Option<u64>, &Rules) -> Admitted,
    ) -> (Option<Parts>, Vec<Turn>) {
        let bounds = &self.target.limits.places;
        if self.places.check(wish.bytes, bounds).is_err() {
            return (None, Vec::new());
        }
        let rules = in_force(self.order.as_ref(), &self.target.breaker, wish.ask.now);
        let Admitted { passes, changes } = way(&mut self.planes, &wish.ask, wish.schema, &rules);
        let Ok(passes) = passes else { return (None, changes) };
        if let Ok(place) = self.places.take(wish.bytes, bounds) {
            return (Some(Parts { passes, place, bytes: wish.bytes }), changes);
        }
        self.planes.release(passes);
        (None, changes)
    }

    /// What is held brought something, and goes on.
    pub(super) fn started(&mut self, parts: &Parts, brought: Brought, now: Moment) -> Vec<Turn> {
        self.note(brought, parts.bytes, now);
        let rules = in_force(self.order.as_ref(), &self.target.breaker, now);
        self.planes.started(&parts.passes, now, &rules)
    }

    /// Settles what was held.
    pub(super) fn settle(&mut self, parts: Parts, ending: Ending, now: Moment) -> Vec<Turn> {
        self.note(ending.brought, parts.bytes, now);
        self.places.give(parts.place);
        let rules = in_force(self.order.as_ref(), &self.target.breaker, now);
        let by = (&*rules, &mut ThreadDice as &mut dyn Dice);
        self.planes.note(parts.passes, ending.report, now, by)
    }

    /// Gives back what was held, without a verdict.
    pub(super) fn release(&mut self, parts: Parts) {
        self.places.give(parts.place);
        self.planes.release(parts.passes);
    }

    /// Leaves the target alone until `until`, as it asked.
    pub(super) fn rest_until(&mut self, until: Moment) {
        self.planes.rest_until(until);
    }

    /// Leaves one of its keys alone until `until`.
    pub(super) fn rest_key(&mut self, key: usize, until: Moment, why: KeyRest) {
        self.planes.rest_key(key, until, why);
    }

    /// Learns how much the target bears, while the place is still held.
    fn note(&mut self, brought: Brought, bytes: u64, now: Moment) {
        let met = match brought {
            Brought::Content(Some(took)) => {
                let pace = self.first_tokens.note(bytes, took);
                Met::FirstToken { took: pace.lately, usual: pace.usual }
            }
            // How long a whole reply takes depends on its length.
            Brought::Content(None) => Met::FirstToken { took: Duration::ZERO, usual: None },
            Brought::Fault(Fault::RateLimited) => Met::ThrottledInRoom,
            Brought::Fault(Fault::Overloaded) => Met::Overloaded,
            Brought::Fault(Fault::ConnectFailed) => Met::Unreachable,
            Brought::Fault(_) | Brought::Nothing => Met::Other,
        };
        let usual = self.first_tokens.usual(bytes).unwrap_or(USUAL);
        self.places.note(met.sign(), usual, &self.target.limits.places, now);
    }
}
