//! How each target is doing, as seen by all calls.
//!
//! The key is provider, model and nothing else: never a host, so that one sick model does not take
//! its neighbours along. Health outlives a reload of the policy, by the target's name.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use backstay_decide::Moment;
use backstay_decide::breaker::{KeyRest, Order, Plane, Planes, Transition, Turn};
use backstay_decide::extra::{Arrival, Kind, Refusal};
use backstay_decide::latency::{Known, PromptSize};
use backstay_decide::pacing::{Dimension, Seen, Slowed};
use backstay_wire::amend::Objection;
use backstay_wire::tokens::of_bytes;
use http::Uri;

use super::ending::{Brought, Ending};
use super::front::TargetLine;
use super::guard::Held;
use super::promised::{Promised, Wanted};
use super::rests::{AllRests, Rests, is_shared};
use super::standing::{Grip, Parts, Snapshot, Stand, Standing};
use super::stay::{Stay, StayParts};
use super::wish::Wish;
use crate::clock::Clock;
use crate::policy::{KeyDigest, Target};
use crate::record::{Metrics, TargetMeter};
use crate::sync::{Mutex, RwLock};

/// Targets from which on some are forgotten. Only a caller's own model names (`model = "*"`,
/// `provider/model`) can make new ones, so the number must be bounded: by this, what the config names and
/// what calls are at.
const MAX_TARGETS: usize = if cfg!(all(test, shuttle)) { 4 } else { 10_000 };

/// What is known of targets, by their names.
type Targets = HashMap<String, Arc<TargetHealth>>;

/// The health of every target that was ever called.
#[derive(Debug, Default)]
pub struct Health {
    /// By the target's name: configured ones and `provider/model`.
    named: RwLock<Targets>,
    /// By the target's name and the caller's word, for targets that keep it (`model = "*"`). Apart,
    /// so that the two kinds of name cannot meet.
    worded: RwLock<Targets>,
    /// An operator's orders, by the target's name: for targets not called yet, and those that are
    /// forgotten or begin anew.
    orders: Mutex<HashMap<String, Order>>,
    rests: AllRests,
}

/// The health of one target.
#[derive(Debug)]
pub(crate) struct TargetHealth {
    /// The target's name.
    pub(crate) id: String,
    /// The caller's word, for targets that keep it.
    pub(crate) word: Option<String>,
    /// The provider's address it belongs to.
    base: Uri,
    clock: Clock,
    pub(super) line: TargetLine,
    /// Those of its provider's keys that all its targets share.
    rests: Arc<Rests>,
    pub(super) state: Mutex<Standing>,
    /// The target that the state was last fitted to, and holds: for a look without its lock.
    fitted: AtomicPtr<Target>,
    /// Replies that reported usage.
    reported: AtomicUsize,
    /// Thousandths of a byte that its tokens take at most, nearly always; a look at it takes no lock. 0: not known.
    most_bytes: AtomicU16,
    /// Whether there are any of the following: a look costs less than a lock.
    objects: AtomicBool,
    /// What it does not take in a request.
    objections: Mutex<Vec<Objection>>,
    /// Where its calls go, once that was put together.
    pub(crate) address: OnceLock<Uri>,
    /// Its counters, once they were looked up.
    meter: OnceLock<TargetMeter>,
}

/// What an attempt gets of its target.
#[derive(Debug)]
pub(crate) struct Taken {
    /// Passes and a place.
    pub held: Held,
    /// The call's stay, if it came just now.
    pub stay: Option<Stay>,
    /// What is known of the target's speed with such prompts.
    pub known: Known,
}

/// What an attempt got of its target, if anything; and what changed there by the time.
pub(super) type Gripped = (Option<Taken>, Vec<Turn>);

impl Health {
    /// The health of `target` when asked for `model`. A target that moved to another address after
    /// a reload begins anew; one whose places changed keeps the rest.
    pub(crate) fn of(&self, target: &Arc<Target>, model: &str, clock: &Clock) -> Arc<TargetHealth> {
        let own;
        let (targets, key) = if target.model.is_some() {
            (&self.named, target.id.as_str())
        } else {
            own = format!("{}/{model}", target.id);
            (&self.worded, own.as_str())
        };
        let known = |targets: &Targets| {
            targets
                .get(key)
                .filter(|health| health.is_fitted(target) || health.is_at(target))
                .map(Arc::clone)
        };
        let before = known(&targets.read());
        let health = before.unwrap_or_else(|| {
            let mut targets = targets.write();
            // Another call may have made it since.
            known(&targets).unwrap_or_else(|| self.make(&mut targets, key, (target, model), clock))
        });
        health.fit(target);
        health
    }

    /// Makes the health of a target that nothing is known of, and forgets others where there are too
    /// many.
    fn make(
        &self,
        targets: &mut Targets,
        key: &str,
        (target, model): (&Arc<Target>, &str),
        clock: &Clock,
    ) -> Arc<TargetHealth> {
        if targets.len() >= MAX_TARGETS {
            forget(targets);
        }
        let order = self.orders.lock().get(&target.id).copied();
        let rests = self.rests.of(&target.provider);
        let health = Arc::new(TargetHealth::new(target, model, order, rests, clock));
        targets.insert(key.to_owned(), Arc::clone(&health));
        health
    }
}

/// Where `target` is in memory.
fn address(target: &Arc<Target>) -> *mut Target {
    Arc::as_ptr(target).cast_mut()
}

/// Forgets targets that were made of callers' words, where there are too many: those that nobody uses and
/// that are well, else all that nobody uses. What the config names is never among them.
fn forget(targets: &mut Targets) {
    let is_kept =
        |health: &Arc<TargetHealth>| !health.is_of_a_caller() || Arc::strong_count(health) > 1;
    targets.retain(|_, health| is_kept(health) || health.is_troubled());
    if targets.len() >= MAX_TARGETS {
        targets.retain(|_, health| is_kept(health));
    }
}

impl Health {
    /// How every target stands that was ever called, in no order.
    pub(crate) fn snapshots(&self, now: Moment) -> Vec<Snapshot> {
        let of = |targets: &RwLock<Targets>| {
            targets
                .read()
                .iter()
                .map(|(name, health)| health.snapshot(name, now))
                .collect::<Vec<_>>()
        };
        let mut all = of(&self.named);
        all.extend(of(&self.worded));
        all
    }

    /// Puts an operator's order on the target named `id`, whatever it is asked for; `None` takes it
    /// back. It outlives what is known of the target.
    pub(crate) fn order(&self, id: &str, order: Option<Order>) {
        let mut orders = self.orders.lock();
        match order {
            Some(order) => orders.insert(id.to_owned(), order),
            None => orders.remove(id),
        };
        // Before they are put on the targets: one that is made meanwhile finds it.
        drop(orders);
        for health in self.all().iter().filter(|health| health.id == id) {
            health.state.lock().order = order;
        }
    }

    /// The order on the target named `id`.
    pub(crate) fn ordered(&self, id: &str) -> Option<Order> {
        self.orders.lock().get(id).copied()
    }

    /// Every target that is remembered.
    pub(crate) fn all(&self) -> Vec<Arc<TargetHealth>> {
        let named: Vec<_> = self.named.read().values().cloned().collect();
        named.into_iter().chain(self.worded.read().values().cloned()).collect()
    }
}

impl TargetHealth {
    /// The health of a target that is there for one call: nobody else sees it, and nothing is kept.
    pub(crate) fn of_one_call(target: &Arc<Target>, clock: &Clock) -> Arc<Self> {
        Arc::new(Self::new(target, "", None, Arc::default(), clock))
    }

    fn new(
        target: &Arc<Target>,
        model: &str,
        order: Option<Order>,
        rests: Arc<Rests>,
        clock: &Clock,
    ) -> Self {
        Self {
            id: target.id.clone(),
            word: target.model.is_none().then(|| model.to_owned()),
            base: target.provider.base_url.clone(),
            clock: *clock,
            line: TargetLine::default(),
            rests,
            state: Mutex::new(Standing::new(target, order, clock.now())),
            fitted: AtomicPtr::new(address(target)),
            reported: AtomicUsize::new(0),
            most_bytes: AtomicU16::new(0),
            objects: AtomicBool::new(false),
            objections: Mutex::default(),
            address: OnceLock::new(),
            meter: OnceLock::new(),
        }
    }

    /// Whether it is what is known of `target`, whatever that is asked for.
    pub(crate) fn is_of(&self, target: &Target) -> bool {
        self.id == target.id && self.is_at(target) && self.word.is_some() == target.model.is_none()
    }

    fn is_at(&self, target: &Target) -> bool {
        self.base == target.provider.base_url
    }

    /// Whether something is known against it: else only what was learned is forgotten.
    fn is_troubled(&self) -> bool {
        !self.state.lock().is_untroubled()
    }

    /// Takes over what may have changed of the target, as after a reload.
    fn fit(&self, target: &Arc<Target>) {
        if self.is_fitted(target) {
            return;
        }
        let mut state = self.state.lock();
        let before = state.fit(target, &self.clock);
        // The one before is kept until then: a new target at its place would pass for it.
        self.fitted.store(address(target), Ordering::Release);
        drop(state);
        drop(before);
    }

    /// Whether the state has taken over all of `target`, which is alive: so nothing else is at its
    /// address.
    fn is_fitted(&self, target: &Arc<Target>) -> bool {
        self.fitted.load(Ordering::Acquire) == address(target)
    }

    /// A call came that would go here if it could: how it stands towards that.
    pub(super) fn offer(&self, wish: &Wish<'_>) -> Stand {
        self.offered(&mut self.state.lock(), wish)
    }

    fn offered(&self, state: &mut Standing, wish: &Wish<'_>) -> Stand {
        state.offer(wish);
        state.hear(&self.rests);
        state.stand(wish)
    }

    /// How it stands towards a call.
    pub(crate) fn stand(&self, wish: &Wish<'_>) -> Stand {
        let mut state = self.state.lock();
        state.hear(&self.rests);
        state.stand(wish)
    }

    /// Whether it was made of a caller's word: a `provider/model`, or a model for `*`. Names of the config
    /// hold no slash.
    fn is_of_a_caller(&self) -> bool {
        self.word.is_some() || self.id.contains('/')
    }

    /// What a call asks of its rates and places.
    pub(super) fn wanted(&self, wish: &Wish<'_>) -> Wanted {
        self.state.lock().wanted(wish)
    }

    /// Whether it has room for a call beside what is `promised` to others.
    ///
    /// # Errors
    /// When to ask again.
    pub(super) fn has_room(
        &self,
        wanted: &Wanted,
        promised: &Promised,
        now: Moment,
    ) -> Result<(), Moment> {
        promised.leaves_room(&mut self.state.lock(), wanted, now)
    }

    /// How it stands, for an operator. `name` is what it is called.
    pub(super) fn snapshot(&self, name: &str, now: Moment) -> Snapshot {
        self.state.lock().snapshot(name, now)
    }

    /// Its counters. `id` is its name.
    pub(crate) fn meter(&self, metrics: &Metrics, id: &str) -> &TargetMeter {
        self.meter.get_or_init(|| metrics.target(id))
    }

    /// What is known of its speed with prompts of this size.
    pub(crate) fn known(&self, size: PromptSize, now: Moment) -> Known {
        self.state.lock().known(size, now)
    }

    /// What past calls say of the tokens in a body of `bytes` bytes. `None`: too little is known.
    pub(crate) fn learned(&self, bytes: u64) -> Option<u64> {
        self.state.lock().ratio.estimate(bytes)
    }

    /// What it is known not to take in a request.
    pub(crate) fn objections(&self) -> Vec<Objection> {
        if !self.objects.load(Ordering::Acquire) {
            return Vec::new();
        }
        self.objections.lock().clone()
    }

    /// Learns that it does not take something: it holds until a restart.
    pub(crate) fn learn_objection(&self, objection: Objection) {
        let mut known = self.objections.lock();
        if !known.contains(&objection) {
            known.push(objection);
            self.objects.store(true, Ordering::Release);
        }
    }

    /// Whether the next reported usage should be learned from: the first ones all, then some.
    pub(crate) fn wants_to_learn(&self) -> bool {
        let reported = self.reported.fetch_add(1, Ordering::Relaxed);
        reported < 64 || reported.is_multiple_of(16)
    }

    /// Learns that a body of `bytes` bytes took `tokens` input tokens.
    pub(crate) fn learn(&self, bytes: u64, tokens: u64) {
        let mut state = self.state.lock();
        state.ratio.note(bytes, tokens);
        self.most_bytes.store(state.ratio.high().unwrap_or(0), Ordering::Relaxed);
    }

    /// The fewest tokens that a body of `bytes` bytes has taken so far, nearly always. `None`: too little is known.
    pub(crate) fn fewest(&self, bytes: u64) -> Option<u64> {
        let most_bytes = self.most_bytes.load(Ordering::Relaxed);
        (most_bytes > 0).then(|| of_bytes(bytes, most_bytes))
    }

    /// What the breaker of a plane did last, with its numbers.
    pub(crate) fn last_change(&self, plane: Plane) -> Option<Transition> {
        self.state.lock().planes.breaker(plane)?.last_change()
    }

    /// How many of its breakers of a kind keep calls away.
    pub(crate) fn shut(&self, plane: &str, now: Moment) -> usize {
        self.state.lock().shut(plane, now)
    }

    /// As [`TargetHealth::offer`], and takes what the call needs where it `goes` to a target that
    /// stands so: one turn at the lock for a call that nothing is against. `None`: it does not go.
    pub(super) fn offer_and_take(
        self: &Arc<Self>,
        wish: &Wish<'_>,
        goes: impl FnOnce(&Stand) -> bool,
    ) -> Option<Gripped> {
        let mut state = self.state.lock();
        let stand = self.offered(&mut state, wish);
        let grip = goes(&stand).then(|| state.grip(wish, Planes::admit));
        drop(state);
        grip.map(|grip| self.gripped(grip))
    }

    /// Passes and a place, or `None` when it rests or is full; and what changed by the time.
    pub(crate) fn take(self: &Arc<Self>, wish: &Wish<'_>) -> Gripped {
        let mut state = self.state.lock();
        state.hear(&self.rests);
        let grip = state.take(wish);
        drop(state);
        self.gripped(grip)
    }

    /// Passes and a place whatever the breakers say; `None` only when it is full.
    pub(crate) fn force(self: &Arc<Self>, wish: &Wish<'_>) -> Gripped {
        let grip = self.state.lock().force(wish);
        self.gripped(grip)
    }

    fn gripped(self: &Arc<Self>, (parts, changes): Grip) -> Gripped {
        (parts.map(|(parts, known)| self.guarded(parts, known)), changes)
    }

    /// What was held brought something, and goes on.
    pub(super) fn started(&self, parts: &mut Parts, brought: Brought, now: Moment) -> Vec<Turn> {
        self.state.lock().started(parts, brought, now)
    }

    /// Settles what was held.
    pub(super) fn settle(&self, parts: Parts, ending: Ending, now: Moment) -> Vec<Turn> {
        let changes = self.state.lock().settle(parts, ending, now);
        self.line.freed();
        changes
    }

    /// Gives back what was held, without a verdict.
    pub(super) fn release(&self, parts: Parts) {
        let now = self.now();
        self.state.lock().release(parts, now);
        self.line.freed();
    }

    /// Gives back what was held and never sent.
    pub(super) fn unsent(&self, parts: Parts, now: Moment) {
        self.state.lock().unsent(parts, now);
        self.line.freed();
    }

    /// Obeys the limits that a reply to what is held stated.
    pub(super) fn observe(&self, parts: &Parts, seen: &[Seen], now: Moment) {
        self.state.lock().observe(parts, seen, now);
    }

    /// What is held met a 429.
    pub(super) fn throttled(
        &self,
        parts: &Parts,
        about: Option<Dimension>,
        now: Moment,
    ) -> Option<Slowed> {
        self.state.lock().throttled(parts, about, now)
    }

    /// A call comes to the target that holds nothing of it yet.
    pub(super) fn arrive(self: &Arc<Self>, arrival: Arrival, now: Moment) -> Stay {
        let visit = self.state.lock().arrive(arrival, now);
        Stay::new(Arc::clone(self), visit)
    }

    /// What a call took, as guards; with its stay, if it came just now.
    fn guarded(self: &Arc<Self>, mut parts: Parts, known: Known) -> Taken {
        let stay = parts.take_visit().map(|visit| Stay::new(Arc::clone(self), visit));
        Taken { held: Held::new(Arc::clone(self), parts), stay, known }
    }

    /// Now, for who gives something back.
    pub(super) fn now(&self) -> Moment {
        self.clock.now()
    }

    /// A call asks for one more attempt.
    pub(super) fn ask(&self, kind: Kind, stay: &mut StayParts, now: Moment) -> Result<(), Refusal> {
        self.state.lock().ask(kind, stay, now)
    }

    /// A call is done with the target.
    pub(super) fn leave(&self, stay: StayParts, now: Moment) {
        self.state.lock().leave(stay, now);
    }

    /// Leaves the target alone until `until`, as it asked.
    pub(super) fn rest_until(&self, until: Moment) {
        self.state.lock().rest_until(until);
    }

    /// Leaves one of its keys alone until `until`; all targets of the provider do, where it is the key
    /// itself that is spent or refused.
    pub(super) fn rest_key(&self, key: Option<KeyDigest>, until: Moment, why: KeyRest) {
        let mut state = self.state.lock();
        state.rest_key(key, until, why);
        // An only key is tried at the other models: the fault may be in what it was used for.
        if is_shared(why) && state.keys() > 1 {
            self.rests.note(key, until, why);
        }
    }
}

#[cfg(test)]
mod tests {
    #[cfg(not(shuttle))]
    use super::super::guard::tests::take;
    use super::super::guard::tests::target;
    use super::*;

    #[cfg(not(shuttle))]
    #[test]
    fn names_that_callers_make_up_push_out_no_target_of_the_config() {
        let named = |id: &str| Arc::new(Target { id: id.to_owned(), ..target(1) });
        let (all, clock) = (Health::default(), Clock::start());
        let configured = named("large");
        let known = Arc::downgrade(&all.of(&configured, "m", &clock));
        let made_up = named("p/used");
        let held = take(&all.of(&made_up, "m", &clock), clock.now());
        for number in 0..MAX_TARGETS * 2 {
            drop(all.of(&named(&format!("p/{number}")), "m", &clock));
        }
        assert!(all.named.read().len() <= MAX_TARGETS);
        assert!(
            known.upgrade().is_some_and(|it| Arc::ptr_eq(&it, &all.of(&configured, "m", &clock)))
        );
        assert!(held.is_some() && take(&all.of(&made_up, "m", &clock), clock.now()).is_none());
    }

    #[cfg(not(shuttle))]
    #[test]
    fn what_a_reload_changed_of_a_target_is_taken_over_once_and_back() {
        let (all, clock) = (Health::default(), Clock::start());
        let [before, after] = [target(1), target(2)].map(Arc::new);
        let places = |health: &TargetHealth| health.state.lock().target.limits.places.ceiling;
        let health = all.of(&before, "m", &clock);
        let held = take(&health, clock.now());
        assert!(health.is_fitted(&before) && take(&health, clock.now()).is_none());
        for (target, count) in [(&after, 2), (&before, 1), (&after, 2), (&after, 2)] {
            assert!(Arc::ptr_eq(&health, &all.of(target, "m", &clock)));
            assert!(health.is_fitted(target));
            assert_eq!(places(&health), count);
        }
        assert!(take(&health, clock.now()).is_some(), "a second place");
        drop(held);
    }

    #[cfg(shuttle)]
    #[test]
    fn shuttled_threads_get_one_health_of_a_target_and_keep_the_bound() {
        let named = |id: &str| Arc::new(Target { id: id.to_owned(), ..target(1) });
        crate::sync::tried(move || {
            let (all, clock) = (Arc::new(Health::default()), Clock::start());
            let threads = [0, 1].map(|thread| {
                let all = Arc::clone(&all);
                shuttle::thread::spawn(move || {
                    let both = all.of(&named("both"), "m", &clock);
                    for own in 0..3 {
                        drop(all.of(&named(&format!("p/{thread}-{own}")), "m", &clock));
                        assert!(all.named.read().len() <= MAX_TARGETS);
                    }
                    both
                })
            });
            let [one, other] = threads.map(|thread| thread.join().unwrap());
            assert!(Arc::ptr_eq(&one, &other), "two accounts of one target");
            assert!(Arc::ptr_eq(&one, &all.of(&named("both"), "m", &clock)), "it was forgotten");
        });
    }
}
