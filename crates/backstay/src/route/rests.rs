//! The rests of a provider's keys that hold for all its targets: a key that is spent or refused is so
//! whatever model it is used for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backstay_decide::Moment;
use backstay_decide::breaker::{KeyRest, Planes};
use parking_lot::Mutex;

use crate::policy::Provider;

/// The rests of every provider's keys, by its name and address: names come from config, so they are
/// few.
#[derive(Debug, Default)]
pub(super) struct AllRests(Mutex<HashMap<(String, http::Uri), Arc<Rests>>>);

impl AllRests {
    /// Those of `provider`.
    pub(super) fn of(&self, provider: &Provider) -> Arc<Rests> {
        let name = (provider.name.clone(), provider.base_url.clone());
        Arc::clone(self.0.lock().entry(name).or_default())
    }
}

/// The rests of one provider's keys.
#[derive(Debug, Default)]
pub(super) struct Rests {
    /// Counts changes: a look at it costs less than a lock.
    changes: AtomicU64,
    /// At most one a key.
    known: Mutex<HashMap<usize, (Moment, KeyRest)>>,
}

/// Whether a rest holds for all targets of the provider.
pub(super) fn is_shared(why: KeyRest) -> bool {
    match why {
        KeyRest::Quota | KeyRest::Rejected => true,
        KeyRest::Throttled => false,
    }
}

impl Rests {
    /// A key rests until `until`.
    pub(super) fn note(&self, key: usize, until: Moment, why: KeyRest) {
        self.known.lock().insert(key, (until, why));
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Tells `planes` what changed since `seen`, which is brought up to date.
    pub(super) fn tell(&self, seen: &mut u64, planes: &mut Planes) {
        let changes = self.changes.load(Ordering::Acquire);
        if *seen == changes {
            return;
        }
        *seen = changes;
        for (key, (until, why)) in self.known.lock().iter() {
            planes.rest_key(*key, *until, *why);
        }
    }
}
