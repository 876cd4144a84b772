//! Keeps compiled schemas, so that a schema that comes with every request is compiled once.
//!
//! Bounded in number and in what the entries may take up; the one not used for longest goes first.
//! A schema that cannot be compiled is remembered too: a caller that repeats it costs a look-up.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::Schema;
use super::documents::Documents;
use super::fault::SchemaFault;
use super::format::Formats;
use super::source::{self, Measured};

/// The most schemas kept. 512: more than the routes of a large service and its callers' own.
const MAX_ENTRIES: usize = 512;

/// The most memory kept, by estimate: compiled size is not to be had.
const MAX_WEIGHT: usize = 128 * 1024 * 1024;

/// Compiled schemas by the digest of their canonical JSON.
#[derive(Debug, Default)]
pub struct SchemaCache {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    entries: HashMap<[u8; 32], Entry>,
    weight: usize,
    /// Counts look-ups: an entry's age without a clock.
    turn: u64,
}

#[derive(Debug)]
struct Entry {
    schema: Result<Arc<Schema>, SchemaFault>,
    weight: usize,
    used: u64,
}

impl SchemaCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self::default()
    }

    /// The compiled schema, from memory or compiled now. Two callers that ask for a new schema at
    /// once may both compile it: the lock is not held meanwhile.
    ///
    /// # Errors
    ///
    /// What [`Schema::compile`] says of it.
    pub fn get(&self, schema: &Value) -> Result<Arc<Schema>, SchemaFault> {
        let none = Documents::new();
        let measured = source::measure(schema, &none)?;
        if let Some(known) = self.kept.lock().find(&measured.digest) {
            return known;
        }
        let compiled = Schema::compile_measured(schema, &none, &measured, Formats::Checked);
        let compiled = compiled.map(Arc::new);
        // Not for good: there may have been no thread to compile on.
        if !matches!(compiled, Err(SchemaFault::Failed)) {
            self.kept.lock().add(&measured, compiled.clone());
        }
        compiled
    }

    /// How many schemas are kept, failures included.
    pub fn len(&self) -> usize {
        self.kept.lock().entries.len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Kept {
    fn find(&mut self, digest: &[u8; 32]) -> Option<Result<Arc<Schema>, SchemaFault>> {
        self.turn += 1;
        let entry = self.entries.get_mut(digest)?;
        entry.used = self.turn;
        Some(entry.schema.clone())
    }

    fn add(&mut self, measured: &Measured, schema: Result<Arc<Schema>, SchemaFault>) {
        let weight = weight(measured);
        self.turn += 1;
        let entry = Entry { schema, weight, used: self.turn };
        if let Some(before) = self.entries.insert(measured.digest, entry) {
            self.weight -= before.weight;
        }
        self.weight += weight;
        while self.entries.len() > MAX_ENTRIES || self.weight > MAX_WEIGHT {
            let oldest = self.entries.iter().min_by_key(|(_, entry)| entry.used);
            let Some(digest) = oldest.map(|(digest, _)| *digest) else { break };
            if let Some(gone) = self.entries.remove(&digest) {
                self.weight -= gone.weight;
            }
        }
    }
}

/// What a compiled schema may take up: 48 bytes a byte of source (37 to 46 were measured, source
/// included), and 64 KiB a pattern: 13 KiB before its first use, more with the caches it grows.
fn weight(measured: &Measured) -> usize {
    measured.bytes * 48 + measured.patterns * 64 * 1024
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_same_schema_is_compiled_once_whatever_the_order_of_its_keys() {
        let cache = SchemaCache::new();
        let one = cache.get(&json!({"type": "object", "title": "x"})).unwrap();
        let two = cache.get(&json!({"title": "x", "type": "object"})).unwrap();
        assert!(Arc::ptr_eq(&one, &two));
        assert_eq!(cache.len(), 1);
    }

    #[test]
    fn a_schema_that_cannot_be_used_is_remembered() {
        let cache = SchemaCache::new();
        let schema = json!({"type": "strin"});
        let first = cache.get(&schema).unwrap_err();
        assert_eq!((cache.get(&schema).unwrap_err(), cache.len()), (first, 1));
    }

    #[test]
    fn the_schema_not_used_for_longest_goes_first() {
        let mut kept = Kept::default();
        let measured = |n: usize| {
            let mut digest = [0; 32];
            digest[..8].copy_from_slice(&n.to_le_bytes());
            Measured { digest, bytes: 100, patterns: 0 }
        };
        for n in 0..MAX_ENTRIES {
            kept.add(&measured(n), Err(SchemaFault::TooEntangled));
        }
        assert!(kept.find(&measured(0).digest).is_some());
        kept.add(&measured(MAX_ENTRIES), Err(SchemaFault::TooEntangled));
        assert_eq!(kept.entries.len(), MAX_ENTRIES);
        assert!(kept.find(&measured(0).digest).is_some(), "just used");
        assert!(kept.find(&measured(1).digest).is_none(), "the oldest");
    }

    #[test]
    fn large_schemas_push_others_out_before_memory_runs_out() {
        let mut kept = Kept::default();
        for n in 0..100_u8 {
            let large = Measured { digest: [n; 32], bytes: 200 * 1024, patterns: 64 };
            kept.add(&large, Err(SchemaFault::TooEntangled));
            assert!(kept.weight <= MAX_WEIGHT);
        }
        assert!(kept.entries.len() < 20, "{}", kept.entries.len());
        assert_eq!(kept.weight, kept.entries.values().map(|entry| entry.weight).sum::<usize>());
    }
}
