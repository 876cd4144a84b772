//! How each target is doing, as seen by all calls.
//!
//! The key is provider, model and nothing else: never a host, so that one sick model does not take
//! its neighbours along. Health outlives a reload of the policy, by the target's name.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backstay_decide::breaker::{Limits, Pass, State, Transition};
use backstay_decide::lease::{Concurrency, Lease};
use backstay_decide::timers::Start;
use backstay_decide::{Breaker, Moment, Verdict};
use backstay_wire::tokens::Ratio;
use http::Uri;
use parking_lot::{Mutex, RwLock};

use super::guard::Held;
use crate::clock::ThreadDice;
use crate::policy::Target;
use crate::record::{Metrics, TargetMeter};

/// Most targets remembered. Only a caller's own model names (`model = "*"`, `provider/model`) can
/// make new ones, so the number must be bounded.
const MAX_TARGETS: usize = 10_000;

/// The health of every target that was ever called.
#[derive(Debug, Default)]
pub struct Health {
    /// By the target's name: configured ones and `provider/model`.
    named: RwLock<HashMap<String, Arc<TargetHealth>>>,
    /// By the target's name and the caller's word, for targets that keep it (`model = "*"`). Apart,
    /// so that the two kinds of name cannot meet.
    worded: RwLock<HashMap<String, Arc<TargetHealth>>>,
}

/// The health of one target.
#[derive(Debug)]
pub(crate) struct TargetHealth {
    /// The provider's address it belongs to.
    base: Uri,
    state: Mutex<Standing>,
    answered: AtomicBool,
    /// Bytes a token takes, learned from reported usage.
    ratio: Mutex<Ratio>,
    /// Replies that reported usage.
    reported: AtomicUsize,
    keys: AtomicUsize,
    /// Where its calls go, once that was put together.
    pub(crate) address: OnceLock<Uri>,
    /// Its counters, once they were looked up.
    meter: OnceLock<TargetMeter>,
}

#[derive(Debug)]
struct Standing {
    breaker: Breaker,
    places: Concurrency,
}

/// How a target stands at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stand {
    /// Until when it may not be called; `None`: it may.
    pub resting_until: Option<Moment>,
    /// Calls it carries.
    pub in_flight: u32,
    /// Whether it has a free place.
    pub has_room: bool,
}

impl Health {
    /// The health of `target` when asked for `model`. A target that moved to another address after
    /// a reload begins anew; one whose places changed keeps the rest.
    pub(crate) fn of(&self, target: &Target, model: &str) -> Arc<TargetHealth> {
        let own;
        let (targets, key) = if target.model.is_some() {
            (&self.named, target.id.as_str())
        } else {
            own = format!("{}/{model}", target.id);
            (&self.worded, own.as_str())
        };
        let known = targets.read().get(key).filter(|health| health.is_at(target)).cloned();
        if let Some(health) = known {
            health.set_places(target.max_concurrency);
            return health;
        }
        let mut targets = targets.write();
        if targets.len() >= MAX_TARGETS {
            targets.retain(|_, health| Arc::strong_count(health) > 1 || !health.is_closed());
            if targets.len() >= MAX_TARGETS {
                targets.clear();
            }
        }
        let health = Arc::new(TargetHealth::new(target));
        targets.insert(key.to_owned(), Arc::clone(&health));
        health
    }
}

impl TargetHealth {
    fn new(target: &Target) -> Self {
        Self {
            base: target.provider.base_url.clone(),
            state: Mutex::new(Standing {
                breaker: Breaker::new(),
                places: Concurrency::new(target.max_concurrency),
            }),
            answered: AtomicBool::new(false),
            ratio: Mutex::new(Ratio::default()),
            reported: AtomicUsize::new(0),
            keys: AtomicUsize::new(0),
            address: OnceLock::new(),
            meter: OnceLock::new(),
        }
    }

    fn is_at(&self, target: &Target) -> bool {
        self.base == target.provider.base_url
    }

    fn set_places(&self, most: u32) {
        let mut state = self.state.lock();
        if state.places.limit != most {
            state.places.limit = most;
        }
    }

    /// Whether its circuit is closed without a failure: then only what was learned is forgotten.
    fn is_closed(&self) -> bool {
        self.state.lock().breaker.state(Moment::ORIGIN) == (State::Closed { failures: 0 })
    }

    /// How it stands at `now`.
    pub(crate) fn stand(&self, now: Moment) -> Stand {
        let state = self.state.lock();
        Stand {
            resting_until: state.breaker.rests_until(now),
            in_flight: state.places.in_flight,
            has_room: state.places.has_room(),
        }
    }

    /// Its counters. `id` is its name.
    pub(crate) fn meter(&self, metrics: &Metrics, id: &str) -> &TargetMeter {
        self.meter.get_or_init(|| metrics.target(id))
    }

    /// What is known of its speed.
    pub(crate) fn start(&self) -> Start {
        if self.answered.load(Ordering::Relaxed) { Start::Warm } else { Start::Cold }
    }

    /// What past calls say of the tokens in a body of `bytes` bytes. `None`: too little is known.
    pub(crate) fn learned(&self, bytes: u64) -> Option<u64> {
        self.ratio.lock().estimate(bytes)
    }

    /// Whether the next reported usage should be learned from: the first ones all, then some.
    pub(crate) fn wants_to_learn(&self) -> bool {
        let reported = self.reported.fetch_add(1, Ordering::Relaxed);
        reported < 64 || reported.is_multiple_of(16)
    }

    /// Learns that a body of `bytes` bytes took `tokens` input tokens.
    pub(crate) fn learn(&self, bytes: u64, tokens: u64) {
        self.ratio.lock().note(bytes, tokens);
    }

    /// The next of the provider's keys, in turn.
    pub(crate) fn next_key(&self) -> usize {
        self.keys.fetch_add(1, Ordering::Relaxed)
    }

    /// A pass and a place, or `None` when it rests or is full.
    pub(crate) fn take(self: &Arc<Self>, now: Moment, lease: Duration) -> Option<Held> {
        let mut state = self.state.lock();
        let place = state.places.take()?;
        let Some(pass) = state.breaker.admit(now, &limits(lease)) else {
            state.places.give(place);
            return None;
        };
        drop(state);
        Some(Held::new(Arc::clone(self), pass, place, lease))
    }

    /// A pass and a place whatever the breaker says; `None` only when it is full.
    pub(crate) fn force(self: &Arc<Self>, now: Moment, lease: Duration) -> Option<Held> {
        let mut state = self.state.lock();
        let place = state.places.take()?;
        let pass = state.breaker.force(now, &limits(lease));
        drop(state);
        Some(Held::new(Arc::clone(self), pass, place, lease))
    }

    /// Settles what was held.
    pub(crate) fn settle(
        &self,
        (pass, place): (Pass, Lease),
        verdict: Verdict,
        now: Moment,
        lease: Duration,
    ) -> Option<Transition> {
        if verdict == Verdict::Success {
            self.answered.store(true, Ordering::Relaxed);
        }
        let mut state = self.state.lock();
        state.places.give(place);
        state.breaker.note(pass, verdict, now, &limits(lease), &mut ThreadDice)
    }

    /// Gives back what was held, without a verdict.
    pub(crate) fn release(&self, (pass, place): (Pass, Lease)) {
        let mut state = self.state.lock();
        state.places.give(place);
        state.breaker.release(pass);
    }

    /// Leaves the target alone until `until`, as it asked.
    pub(crate) fn rest_until(&self, until: Moment) {
        self.state.lock().breaker.rest_until(until);
    }
}

/// The breaker's limits, for attempts that may take `lease`.
fn limits(lease: Duration) -> Limits {
    Limits { probe_lease: lease, ..Limits::default() }
}
