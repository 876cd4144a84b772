//! Keeps what is dear to make, bounded in number and weight; what was not used for longest goes first.

use std::collections::HashMap;
use std::hash::Hash;

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// The most entries.
    pub(crate) entries: usize,
    /// The most weight of all together, in bytes by estimate.
    pub(crate) weight: usize,
}

/// What is kept, by its key.
#[derive(Debug)]
pub(crate) struct Kept<K, V> {
    bounds: Bounds,
    entries: HashMap<K, Entry<V>>,
    weight: usize,
    /// Counts look-ups: an entry's age without a clock.
    turn: u64,
}

#[derive(Debug)]
struct Entry<V> {
    value: V,
    weight: usize,
    used: u64,
}

impl<K: Clone + Eq + Hash, V: Clone> Kept<K, V> {
    /// Nothing yet.
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { bounds, entries: HashMap::new(), weight: 0, turn: 0 }
    }

    /// What is kept under `key`, which counts as a use.
    pub(crate) fn find(&mut self, key: &K) -> Option<V> {
        self.turn += 1;
        let entry = self.entries.get_mut(key)?;
        entry.used = self.turn;
        Some(entry.value.clone())
    }

    /// Keeps `value` in the place of what was there, and lets go of what is too much. What would
    /// push out more than an eighth of all is not kept: one large thing must not empty the rest.
    pub(crate) fn add(&mut self, key: K, value: V, weight: usize) {
        if weight > self.bounds.weight / 8 {
            return;
        }
        self.turn += 1;
        let entry = Entry { value, weight, used: self.turn };
        if let Some(before) = self.entries.insert(key, entry) {
            self.weight -= before.weight;
        }
        self.weight += weight;
        while self.entries.len() > self.bounds.entries || self.weight > self.bounds.weight {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(key) = oldest.map(|(key, _)| key.clone()) else { break };
            if let Some(gone) = self.entries.remove(&key) {
                self.weight -= gone.weight;
            }
        }
    }

    /// How many entries there are.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{Bounds, Kept};

    fn kept() -> Kept<usize, usize> {
        Kept::new(Bounds { entries: 10, weight: 800 })
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let mut kept = kept();
        for n in 0..10 {
            kept.add(n, n, 1);
        }
        assert_eq!(kept.find(&0), Some(0));
        kept.add(10, 10, 1);
        assert_eq!((kept.len(), kept.find(&0), kept.find(&1)), (10, Some(0), None));
    }

    #[test]
    fn heavy_entries_push_others_out_and_too_heavy_ones_nothing() {
        let mut kept = kept();
        for n in 0..100 {
            kept.add(n, n, 100);
            let weighed: usize = kept.entries.values().map(|entry| entry.weight).sum();
            assert_eq!(kept.weight, weighed);
            assert!(weighed <= 800);
        }
        assert_eq!(kept.len(), 8);
        kept.add(100, 100, 101);
        assert_eq!((kept.len(), kept.find(&100)), (8, None));
        // The same again takes its own place.
        kept.add(99, 7, 50);
        assert_eq!((kept.len(), kept.weight, kept.find(&99)), (8, 750, Some(7)));
    }
}
