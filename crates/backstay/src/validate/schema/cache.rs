//! Keeps compiled schemas, so that a schema that comes with every request is compiled once.
//!
//! Bounded in number and in what the entries may take up; the one not used for longest goes first.
//! A schema that cannot be compiled is remembered too: a caller that repeats it costs a look-up.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;

use super::Schema;
use super::documents::Documents;
use super::fault::SchemaFault;
use super::format::Formats;
use super::source::{self, Measured};
use crate::kept::{Bounds, Kept};

/// The most schemas kept. 512: more than the routes of a large service and its callers' own.
const MAX_ENTRIES: usize = 512;

/// The most memory kept, by estimate: compiled size is not to be had.
const MAX_WEIGHT: usize = 128 * 1024 * 1024;

type Compiled = Result<Arc<Schema>, SchemaFault>;

/// Compiled schemas by the digest of their canonical JSON.
#[derive(Debug)]
pub struct SchemaCache {
    kept: Mutex<Kept<[u8; 32], Compiled>>,
}

impl Default for SchemaCache {
    fn default() -> Self {
        Self::new()
    }
}

impl SchemaCache {
    /// An empty cache.
    pub fn new() -> Self {
        let bounds = Bounds { entries: MAX_ENTRIES, weight: MAX_WEIGHT };
        Self { kept: Mutex::new(Kept::new(bounds)) }
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
            self.kept.lock().add(measured.digest, compiled.clone(), weight(&measured));
        }
        compiled
    }

    /// How many schemas are kept, failures included.
    pub fn len(&self) -> usize {
        self.kept.lock().len()
    }

    /// Whether nothing is kept.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
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
    fn the_largest_schema_that_may_be_compiled_may_be_kept() {
        let largest = Measured { digest: [0; 32], bytes: 256 * 1024, patterns: 0 };
        assert!(weight(&largest) <= MAX_WEIGHT / 8);
        let patterns = Measured { digest: [0; 32], bytes: 64 * 1024, patterns: 64 };
        assert!(weight(&patterns) <= MAX_WEIGHT / 8);
    }
}
