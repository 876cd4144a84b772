//! The rests of a provider's keys that hold for all its targets: a key that is spent or refused is so
//! whatever model it is used for.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use backstay_decide::Moment;
use backstay_decide::breaker::{KeyRest, Planes};
use parking_lot::Mutex;

use crate::policy::{KeyDigest, Provider, Target};

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

/// Most rests kept; keys change with the config, which may be read anew for months.
const MAX_KNOWN: usize = 1000;

/// The rests of one provider's keys.
#[derive(Debug, Default)]
pub(super) struct Rests {
    /// Counts changes: a look at it costs less than a lock.
    changes: AtomicU64,
    /// At most one a key, and [`MAX_KNOWN`].
    known: Mutex<HashMap<Option<KeyDigest>, (Moment, KeyRest)>>,
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
    pub(super) fn note(&self, key: Option<KeyDigest>, until: Moment, why: KeyRest) {
        let mut known = self.known.lock();
        if known.len() >= MAX_KNOWN {
            known.clear();
        }
        known.insert(key, (until, why));
        drop(known);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Tells `planes`, those of `target`, what changed since `seen`, which is brought up to date.
    pub(super) fn tell(&self, seen: &mut u64, target: &Target, planes: &mut Planes) {
        let changes = self.changes.load(Ordering::Acquire);
        if *seen == changes {
            return;
        }
        *seen = changes;
        let known = self.known.lock();
        for (place, key) in target.key_digests().enumerate() {
            if let Some((until, why)) = known.get(&key) {
                planes.rest_key(place, *until, *why);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::guard::tests::target;
    use super::super::standing::Standing;
    use super::*;
    use crate::clock::Clock;
    use crate::policy::{CredentialSource, Secret};

    fn with_keys(keys: &[&str]) -> Arc<Target> {
        let mut target = target(9);
        let own = keys.iter().map(|key| Secret::new((*key).to_owned())).collect();
        let credentials = CredentialSource::Own(own);
        target.provider = Arc::new(Provider { credentials, ..(*target.provider).clone() });
        Arc::new(target)
    }

    fn resting(standing: &Standing, now: Moment) -> Vec<usize> {
        let keys = standing.planes.keys();
        (0..keys.count()).filter(|key| keys.rests(*key, now).is_some()).collect()
    }

    #[test]
    fn a_rest_is_a_keys_and_not_its_places() {
        let clock = Clock::start();
        let now = clock.now();
        let until = now.plus(Duration::from_mins(9));
        let before = with_keys(&["a", "b", "c"]);
        let mut standing = Standing::new(&before, None, now);
        standing.rest_key(before.key_digest(0), until, KeyRest::Rejected);
        standing.rest_key(before.key_digest(1), until, KeyRest::Throttled);
        assert_eq!(resting(&standing, now), [0, 1]);
        // The same keys, read anew.
        standing.fit(&with_keys(&["a", "b", "c"]), &clock);
        assert_eq!(resting(&standing, now), [0, 1]);
        // One is replaced, and two change their places.
        let after = with_keys(&["d", "c", "b"]);
        standing.fit(&after, &clock);
        assert_eq!(resting(&standing, now), [2]);
        // A call that went out with the old key ends now: that is nothing to the new one.
        standing.rest_key(before.key_digest(0), until, KeyRest::Rejected);
        assert_eq!(resting(&standing, now), [2]);
    }

    #[test]
    fn other_targets_hear_of_a_key_wherever_it_stands() {
        let clock = Clock::start();
        let now = clock.now();
        let until = now.plus(Duration::from_mins(9));
        let (one, other) = (with_keys(&["a", "b"]), with_keys(&["c", "b", "a"]));
        let rests = Rests::default();
        rests.note(one.key_digest(0), until, KeyRest::Quota);
        let mut standing = Standing::new(&with_keys(&["c", "d"]), None, now);
        standing.hear(&rests);
        assert!(resting(&standing, now).is_empty());
        standing.fit(&other, &clock);
        standing.hear(&rests);
        assert_eq!(resting(&standing, now), [2]);
        for key in 0..3000_u32 {
            let key = Secret::new(key.to_string());
            rests.note(Some(key.digest()), until, KeyRest::Quota);
        }
        assert!(rests.known.lock().len() <= MAX_KNOWN);
    }
}
