//! How each target is doing, as seen by all calls.
//!
//! The key is provider, model and nothing else: never a host, so that one sick model does not take
//! its neighbours along. Health outlives a reload of the policy, by the target's name.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use backstay_decide::breaker::{Ask, KeyRest, Passes, Planes, Refused, Report, Rules, Turn};
use backstay_decide::lease::{Concurrency, Lease};
use backstay_decide::timers::Start;
use backstay_decide::{Moment, Verdict};
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
    /// Where its calls go, once that was put together.
    pub(crate) address: OnceLock<Uri>,
    /// Its counters, once they were looked up.
    meter: OnceLock<TargetMeter>,
}

#[derive(Debug)]
struct Standing {
    planes: Planes,
    places: Concurrency,
}

/// What is asked of a target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    /// The call, as its breakers see it.
    pub ask: Ask,
    /// The schema of its reply.
    pub schema: Option<u64>,
    /// What its breakers go by.
    pub rules: &'a Rules,
}

/// How a target stands at one moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stand {
    /// Why it may not be called; `None`: it may.
    pub refused: Option<Refused>,
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
            health.fit(target);
            return health;
        }
        let mut targets = targets.write();
        if targets.len() >= MAX_TARGETS {
            targets.retain(|_, health| Arc::strong_count(health) > 1 || health.is_troubled());
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
                planes: Planes::new(target.keys()),
                places: Concurrency::new(target.max_concurrency),
            }),
            answered: AtomicBool::new(false),
            ratio: Mutex::new(Ratio::default()),
            reported: AtomicUsize::new(0),
            address: OnceLock::new(),
            meter: OnceLock::new(),
        }
    }

    fn is_at(&self, target: &Target) -> bool {
        self.base == target.provider.base_url
    }

    /// Takes over the places and keys of a target that may have changed.
    fn fit(&self, target: &Target) {
        let mut state = self.state.lock();
        state.places.limit = target.max_concurrency;
        state.planes.set_keys(target.keys());
    }

    /// Whether something is known against it: else only what was learned is forgotten.
    fn is_troubled(&self) -> bool {
        !self.state.lock().planes.is_untroubled(&Rules::DEFAULT)
    }

    /// A call came that would go here if it could.
    pub(crate) fn offer(&self, now: Moment, schema: Option<u64>, rules: &Rules) {
        self.state.lock().planes.offer(now, schema, rules);
    }

    /// How it stands towards a call.
    pub(crate) fn stand(&self, wish: &Wish<'_>) -> Stand {
        let state = self.state.lock();
        Stand {
            refused: state.planes.look(&wish.ask, wish.schema, wish.rules).err(),
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

    /// How many of its breakers of a kind keep calls away.
    pub(crate) fn shut(&self, plane: &str, now: Moment, rules: &Rules) -> usize {
        self.state.lock().planes.shut(plane, now, rules)
    }

    /// Passes and a place, or `None` when it rests or is full; and what changed by the time.
    pub(crate) fn take(self: &Arc<Self>, wish: &Wish<'_>) -> (Option<Held>, Vec<Turn>) {
        let mut state = self.state.lock();
        let Some(place) = state.places.take() else { return (None, Vec::new()) };
        let admitted = state.planes.admit(&wish.ask, wish.schema, wish.rules);
        let Ok(passes) = admitted.passes else {
            state.places.give(place);
            return (None, admitted.changes);
        };
        drop(state);
        (Some(Held::new(Arc::clone(self), passes, place)), admitted.changes)
    }

    /// Passes and a place whatever the breakers say; `None` only when it is full.
    pub(crate) fn force(self: &Arc<Self>, wish: &Wish<'_>) -> (Option<Held>, Vec<Turn>) {
        let mut state = self.state.lock();
        let Some(place) = state.places.take() else { return (None, Vec::new()) };
        let admitted = state.planes.force(&wish.ask, wish.schema, wish.rules);
        drop(state);
        let held = admitted.passes.ok().map(|passes| Held::new(Arc::clone(self), passes, place));
        (held, admitted.changes)
    }

    /// What was held brought its first content.
    pub(crate) fn started(&self, passes: &Passes, now: Moment, rules: &Rules) -> Vec<Turn> {
        self.state.lock().planes.started(passes, now, rules)
    }

    /// Settles what was held.
    pub(crate) fn settle(
        &self,
        (passes, place): (Passes, Lease),
        report: Report,
        now: Moment,
        rules: &Rules,
    ) -> Vec<Turn> {
        if matches!(report.availability, Verdict::Success | Verdict::Soft) {
            self.answered.store(true, Ordering::Relaxed);
        }
        let mut state = self.state.lock();
        state.places.give(place);
        state.planes.note(passes, report, now, (rules, &mut ThreadDice))
    }

    /// Gives back what was held, without a verdict.
    pub(crate) fn release(&self, (passes, place): (Passes, Lease)) {
        let mut state = self.state.lock();
        state.places.give(place);
        state.planes.release(passes);
    }

    /// Leaves the target alone until `until`, as it asked.
    pub(crate) fn rest_until(&self, until: Moment) {
        self.state.lock().planes.rest_until(until);
    }

    /// Leaves one of its keys alone until `until`.
    pub(crate) fn rest_key(&self, key: usize, until: Moment, why: KeyRest) {
        self.state.lock().planes.rest_key(key, until, why);
    }
}
