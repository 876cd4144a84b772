//! All that is kept of one target, under one lock: breakers, places, rates, habits.

use std::sync::Arc;
use std::time::Duration;

use backstay_decide::aimd::{Full, Met, Place, Places};
use backstay_decide::breaker::{
    Admitted, Ask, KeyRest, Order, Passes, Planes, Refused, Rules, Separation, Suits, Turn,
    in_force,
};
use backstay_decide::extra::headroom::{self, Receiver};
use backstay_decide::extra::{self, Arrival, Budget, Kind, Made, Visit};
use backstay_decide::latency::{Circuit, Known, Latency, Present, PromptSize, Slow};
use backstay_decide::pacing::{Cost, Dimension, Level, Seen, Slowed, Wait};
use backstay_decide::tiers::Proof;
use backstay_decide::usual::FirstTokens;
use backstay_decide::{Dice, Fault, Moment};
use backstay_wire::tokens::Ratio;

use super::ending::{Brought, Ending};
use super::paces::{self, Paced, Paces};
use super::promised::Wanted;
use super::rests::Rests;
use super::speed::{Course, Going};
use super::stay::{Stay, StayParts};
use super::wish::{Whose, Wish};
use crate::clock::{Clock, ThreadDice};
use crate::policy::{KeyDigest, Target};

/// Taken for the usual time to a first token where none is known: a second strain within it is the
/// same one.
const USUAL: Duration = Duration::from_secs(1);

/// What is kept of one target.
#[derive(Debug)]
pub(super) struct Standing {
    /// As the policy in force has it.
    pub(super) target: Arc<Target>,
    pub(super) planes: Planes,
    pub(super) places: Places,
    /// Of the calls it carries, those that fell back on it.
    fallbacks: u32,
    /// What it can bear of retries.
    budget: Budget,
    pub(super) paces: Paces,
    /// An operator's word over the policy's.
    pub(super) order: Option<Order>,
    /// Changes of the shared rests it has heard of.
    heard: u64,
    first_tokens: FirstTokens,
    latency: Latency,
    /// When the last call came, while something was against it, that could test it and was short.
    short_came: Option<Moment>,
    /// Bytes a token takes, learned from reported usage.
    pub(super) ratio: Ratio,
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
    /// Whether the call would test it.
    pub proof: Proof,
    /// Why its rates have no room for the call; `None`: they have, at some key.
    pub paced: Option<Wait>,
    /// Why it takes no more calls that fall back on it; `None`: it does, or the call is its own.
    pub crowded: Option<headroom::Refusal>,
}

/// What an attempt holds of its target.
#[derive(Debug)]
pub(crate) struct Parts {
    passes: Passes,
    place: Place,
    paced: Option<Paced>,
    whose: Whose,
    /// What the call is to the target's budget, where it came just now.
    visit: Option<Visit>,
    /// What it tells of the target's speed.
    course: Course,
}

impl Parts {
    /// The attempt goes out, or goes on in another way.
    pub(super) fn goes(&mut self, going: Going) {
        self.course.going = Some(going);
    }

    /// Which of the provider's keys to use.
    pub(super) fn key(&self) -> usize {
        self.passes.key
    }

    /// What the call is to the target's budget, once.
    pub(super) fn take_visit(&mut self) -> Option<Visit> {
        self.visit.take()
    }

    /// Whether the rates had room for it.
    pub(super) fn had_room(&self) -> bool {
        self.paced.as_ref().is_none_or(|paced| paced.had_room)
    }
}

/// What a call took, with what is known of the speed it goes at; and what changed by the time.
pub(super) type Grip = (Option<(Parts, Known)>, Vec<Turn>);

/// How the breakers let a call through.
pub(super) type Way = fn(&mut Planes, &Ask, Option<u64>, &Rules) -> Admitted;

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
    /// What it can take of the load that falls back on it.
    pub headroom: Receiver,
    /// How its budget of retries stands.
    pub retries: extra::Level,
    /// Every rate that is known, with the key it is of.
    pub rates: Vec<(usize, Level)>,
}

impl Standing {
    pub(super) fn new(target: &Arc<Target>, order: Option<Order>, now: Moment) -> Self {
        Self {
            planes: Planes::new(target.keys()),
            target: Arc::clone(target),
            places: Places::new(),
            order,
            fallbacks: 0,
            budget: Budget::new(&target.limits.retries, now),
            paces: Paces::new(target.keys(), &target.limits, now),
            heard: 0,
            first_tokens: FirstTokens::default(),
            latency: Latency::default(),
            short_came: None,
            ratio: Ratio::default(),
        }
    }

    /// Takes over what may have changed of the target, as after a reload. Returns what it held before.
    pub(super) fn fit(&mut self, target: &Arc<Target>, clock: &Clock) -> Arc<Target> {
        let now = clock.now();
        if self.target.limits != target.limits {
            self.paces.rerate(&target.limits, now);
        }
        if let Some(places) = target.moved_keys(&self.target) {
            self.planes.set_keys(&places);
            self.paces.set_keys(&places, &target.limits, now);
            // What others found of a key that is new here was not heard.
            self.heard = 0;
        }
        std::mem::replace(&mut self.target, Arc::clone(target))
    }

    /// Whether nothing is known against it.
    pub(super) fn is_untroubled(&self) -> bool {
        self.planes.is_untroubled(&self.target.breaker)
    }

    /// How many keys its provider has.
    pub(super) fn keys(&self) -> usize {
        self.target.keys()
    }

    /// Hears of keys that other targets of the provider found spent or refused.
    pub(super) fn hear(&mut self, rests: &Rests) {
        rests.tell(&mut self.heard, &self.target, &mut self.planes);
    }

    /// A call came that would go here if it could.
    pub(super) fn offer(&mut self, wish: &Wish<'_>) {
        let rules = in_force(self.order.as_ref(), &self.target.breaker, wish.now);
        self.planes.offer(wish.now, wish.schema, &rules);
        if self.planes.is_untroubled_for(wish.schema) {
            return;
        }
        let (prospect, canary) =
            (wish.prospect(&self.first_tokens, self.short_came), rules.canary());
        if prospect.is_short(canary) && prospect.suits(canary) == Suits::Test {
            self.short_came = Some(wish.now);
        }
    }

    /// The call, as the breakers see it.
    fn seen(&self, wish: &Wish<'_>, rules: &Rules) -> Ask {
        let Wish { now, lease, elsewhere, .. } = *wish;
        // Combined, any call is a test: seed S1's rule. And where nothing is tested, none is.
        let any =
            rules.separation == Separation::Combined || self.planes.is_untroubled_for(wish.schema);
        let prospect = || wish.prospect(&self.first_tokens, self.short_came);
        let suits = if any { Suits::Test } else { prospect().suits(rules.canary()) };
        Ask { now, lease, elsewhere, suits }
    }

    pub(super) fn stand(&mut self, wish: &Wish<'_>) -> Stand {
        let paced = self.look_at_rates(wish);
        let crowded = self.headroom(wish.whose, wish.now).err();
        let rules = in_force(self.order.as_ref(), &self.target.breaker, wish.now);
        Stand {
            paced,
            crowded,
            proof: self.planes.proof(wish.now, wish.schema, &rules),
            refused: self.planes.look(&self.seen(wish, &rules), wish.schema, &rules).err(),
            in_flight: self.places.in_flight(),
            full: self.places.check(wish.bytes, &self.target.limits.places).err(),
        }
    }

    /// Whether there is room for a call that falls back on it.
    pub(super) fn headroom(&mut self, whose: Whose, now: Moment) -> Result<(), headroom::Refusal> {
        self.headroom_beside(0, whose, now)
    }

    /// As [`Standing::headroom`], beside so many others that fall back on it and are about to come.
    pub(super) fn headroom_beside(
        &mut self,
        others: u32,
        whose: Whose,
        now: Moment,
    ) -> Result<(), headroom::Refusal> {
        if whose == Whose::Own {
            return Ok(());
        }
        let receiver = self.receiver(now);
        Receiver { fallbacks: receiver.fallbacks.saturating_add(others), ..receiver }.take()
    }

    fn receiver(&mut self, now: Moment) -> Receiver {
        let limits = &self.target.limits;
        Receiver {
            places: self.places.limit(&limits.places).unwrap_or(0),
            in_flight: self.places.in_flight(),
            fallbacks: self.fallbacks,
            filled: self.paces.filled(now),
            kept: limits.kept,
        }
    }

    pub(super) fn wanted(&self, wish: &Wish<'_>) -> Wanted {
        let by = (self.target.limits.counting, &self.ratio);
        let cost = self.paces.cost(&wish.asked(), by);
        Wanted { cost, bytes: wish.bytes, whose: wish.whose }
    }

    /// Tells the breakers which keys have no room for the call.
    fn look_at_rates(&mut self, wish: &Wish<'_>) -> Option<Wait> {
        let by = (self.target.limits.counting, &self.ratio);
        self.paces.tell(&wish.asked(), by, &mut self.planes)
    }

    /// How many of its breakers of a kind keep calls away.
    pub(super) fn shut(&self, plane: &str, now: Moment) -> usize {
        self.planes.shut(plane, now, &self.target.breaker)
    }

    pub(super) fn snapshot(&mut self, name: &str, now: Moment) -> Snapshot {
        Snapshot {
            rates: self.paces.levels(now),
            retries: self.budget.level(&self.target.limits.retries, now),
            headroom: self.receiver(now),
            target: name.to_owned(),
            in_flight: self.places.in_flight(),
            bytes: self.places.bytes(),
            places: self.places.limit(&self.target.limits.places),
            usual_first_token: self.first_tokens.usual(PromptSize::default()),
        }
    }

    pub(super) fn take(&mut self, wish: &Wish<'_>) -> Grip {
        self.enter(wish, Planes::admit)
    }

    /// As [`Standing::take`], whatever the breakers say.
    pub(super) fn force(&mut self, wish: &Wish<'_>) -> Grip {
        self.enter(wish, Planes::force)
    }

    /// Everything that is asked before anything is taken.
    fn enter(&mut self, wish: &Wish<'_>, way: Way) -> Grip {
        if self.headroom(wish.whose, wish.now).is_err() {
            return (None, Vec::new());
        }
        self.look_at_rates(wish);
        self.grip(wish, way)
    }

    /// Takes what a call needs to which it was just looked how the target stands.
    pub(super) fn grip(&mut self, wish: &Wish<'_>, way: Way) -> Grip {
        let Ok(place) = self.places.take(wish.bytes, &self.target.limits.places) else {
            return (None, Vec::new());
        };
        let limits = &self.target.limits;
        let rules = in_force(self.order.as_ref(), &self.target.breaker, wish.now);
        let ask = self.seen(wish, &rules);
        let Admitted { passes, changes } = way(&mut self.planes, &ask, wish.schema, &rules);
        let Ok(passes) = passes else {
            self.places.give(place);
            return (None, changes);
        };
        let by = (limits.counting, &self.ratio);
        let paced = self.paces.book(passes.key, &wish.asked(), by);
        let (whose, now) = (wish.whose, wish.now);
        self.fallbacks += u32::from(whose == Whose::Fallback);
        let arrives = |arrival| self.budget.arrive(arrival, &limits.retries, wish.now);
        let visit = wish.arrival.map(arrives);
        let size = PromptSize::of(wish.bytes);
        let (mut present, slow) = self.speed(now);
        let known = present.known(size);
        let course = Course::new(size, slow.threshold(&known), now);
        (Some((Parts { passes, place, paced, whose, visit, course }, known)), changes)
    }

    /// Its speed as of `now`, and when a first content is slow. While the breaker that every call meets
    /// is not closed, nothing of it changes.
    fn speed(&mut self, now: Moment) -> (Present<'_>, Slow) {
        let rules = in_force(self.order.as_ref(), &self.target.breaker, now);
        let first = self.planes.all(&rules).next().map(|(plane, first)| {
            let limits = rules.limits(plane);
            (first.is_whole(now, limits), limits.slow)
        });
        let (is_whole, slow) = first.unwrap_or((true, Slow::DEFAULT));
        let circuit = if is_whole { Circuit::Closed } else { Circuit::Troubled };
        (self.latency.at(now, circuit), slow)
    }

    /// What is known of its speed with prompts of this size.
    pub(super) fn known(&mut self, size: PromptSize, now: Moment) -> Known {
        self.speed(now).0.known(size)
    }

    /// What is known of its speed, by the sizes of prompts that were seen.
    pub(super) fn all_known(&mut self, now: Moment) -> Vec<(PromptSize, Known)> {
        let sizes: Vec<PromptSize> = self.latency.sizes().collect();
        sizes.into_iter().map(|size| (size, self.known(size, now))).collect()
    }

    /// What is held brought something, and goes on.
    pub(super) fn started(
        &mut self,
        parts: &mut Parts,
        brought: Brought,
        now: Moment,
    ) -> Vec<Turn> {
        self.note(brought, parts, now);
        if let Brought::Content(Some(first)) = brought {
            parts.course.started(first, &mut self.speed(now).0);
        }
        if parts.course.is_late() {
            // A test that begins late has not passed, and its end will say so.
            return Vec::new();
        }
        let rules = in_force(self.order.as_ref(), &self.target.breaker, now);
        self.planes.started(&parts.passes, now, &rules)
    }

    /// Settles what was held.
    pub(super) fn settle(&mut self, parts: Parts, ending: Ending, now: Moment) -> Vec<Turn> {
        self.note(ending.brought, &parts, now);
        let report = parts.course.ended(&ending, &mut self.speed(now).0);
        self.give(parts.place, parts.whose);
        if let Some(stay) = ending.leaves.and_then(Stay::into_parts) {
            self.leave(stay, now);
        }
        if let Some(paced) = parts.paced {
            let counting = self.target.limits.counting;
            let told = paces::used(counting, ending.usage);
            let used = ending.brought.known_cost().or(told);
            self.paces.settle(parts.passes.key, paced, used, now);
            self.paces.took(ending.usage.output);
        }
        let rules = in_force(self.order.as_ref(), &self.target.breaker, now);
        let by = (&*rules, &mut ThreadDice as &mut dyn Dice);
        self.planes.note(parts.passes, report, now, by)
    }

    /// Gives back what was held, without a verdict. What was reserved of the rates stays booked: the
    /// provider may have done the work.
    pub(super) fn release(&mut self, parts: Parts, now: Moment) {
        parts.course.given_up(now, &mut self.speed(now).0);
        self.give(parts.place, parts.whose);
        self.planes.release(parts.passes);
    }

    fn give(&mut self, place: Place, whose: Whose) {
        self.places.give(place);
        self.fallbacks = self.fallbacks.saturating_sub(u32::from(whose == Whose::Fallback));
    }

    /// A call comes to the target.
    pub(super) fn arrive(&mut self, arrival: Arrival, now: Moment) -> Visit {
        self.budget.arrive(arrival, &self.target.limits.retries, now)
    }

    /// A call asks for one more attempt. One that was granted before and made is over.
    ///
    /// # Errors
    /// The budget has none.
    pub(super) fn ask(
        &mut self,
        kind: Kind,
        stay: &mut StayParts,
        now: Moment,
    ) -> Result<(), extra::Refusal> {
        let limits = &self.target.limits.retries;
        match stay.grant.take() {
            Some((grant, Made::Sent)) => self.budget.end(grant, Made::Sent, limits),
            Some(unused) => {
                stay.grant = Some(unused);
                return Ok(());
            }
            None => {}
        }
        let grant = self.budget.ask(kind, &stay.visit, limits, now)?;
        stay.grant = Some((grant, Made::NotSent));
        Ok(())
    }

    /// A call is done with the target.
    pub(super) fn leave(&mut self, stay: StayParts, now: Moment) {
        if let Some((grant, made)) = stay.grant {
            self.budget.end(grant, made, &self.target.limits.retries);
        }
        self.budget.leave(stay.visit, now);
    }

    /// As [`Standing::release`], for what was never sent.
    pub(super) fn unsent(&mut self, mut parts: Parts, now: Moment) {
        if let Some(paced) = parts.paced.take() {
            self.paces.settle(parts.passes.key, paced, Some(Cost::NOTHING), now);
        }
        parts.course.going = None;
        self.release(parts, now);
    }

    /// Obeys the limits that a reply to what is held stated.
    pub(super) fn observe(&mut self, parts: &Parts, seen: &[Seen], now: Moment) {
        if let Some(paced) = &parts.paced {
            self.paces.observe(parts.passes.key, paced, seen, now);
        }
    }

    /// What is held met a 429. `about`: the limit that it named.
    pub(super) fn throttled(
        &mut self,
        parts: &Parts,
        about: Option<Dimension>,
        now: Moment,
    ) -> Option<Slowed> {
        self.paces.throttled(parts.passes.key, parts.paced.as_ref()?, about, now)
    }

    /// Leaves the target alone until `until`, as it asked.
    pub(super) fn rest_until(&mut self, until: Moment) {
        self.planes.rest_until(until);
    }

    /// Leaves one of its keys alone until `until`; one that it has no more is none.
    pub(super) fn rest_key(&mut self, key: Option<KeyDigest>, until: Moment, why: KeyRest) {
        if let Some(place) = self.target.key_digests().position(|known| known == key) {
            self.planes.rest_key(place, until, why);
        }
    }

    /// Learns how much the target bears, while the place is still held.
    fn note(&mut self, brought: Brought, parts: &Parts, now: Moment) {
        let size = parts.course.size;
        let met = match brought {
            Brought::Content(Some(took)) => {
                let pace = self.first_tokens.note(size, took);
                Met::FirstToken { took: pace.lately, usual: pace.usual }
            }
            // How long a whole reply takes depends on its length.
            Brought::Content(None) => Met::FirstToken { took: Duration::ZERO, usual: None },
            Brought::Fault(Fault::RateLimited) if parts.had_room() => Met::ThrottledInRoom,
            Brought::Fault(Fault::Overloaded) => Met::Overloaded,
            Brought::Fault(Fault::ConnectFailed) => Met::Unreachable,
            Brought::Fault(_) | Brought::Nothing => Met::Other,
        };
        let usual = self.first_tokens.usual(size).unwrap_or(USUAL);
        self.places.note(met.sign(), usual, &self.target.limits.places, now);
    }
}
