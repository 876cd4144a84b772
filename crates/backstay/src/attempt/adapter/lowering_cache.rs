//! Keeps lowered schemas, so that one that comes with every request is lowered once for a target's subset.
//!
//! Lowering takes 0.1 to 5 ms, finding what is kept a few microseconds. Two schemas that differ in the
//! order of their keys are two, since a model writes in the order of what it is shown. A schema that
//! cannot be lowered is kept too.

use std::sync::Arc;

use backstay_wire::lower::{self, CannotLower, Change, Lowered, Lowering, Subset, Tally};
use parking_lot::Mutex;
use serde_json::Value;

use crate::contract::shape::Print;
use crate::kept::{Bounds, Kept};

/// How much is kept. 512 entries: more than the schemas and strict tools of a large service.
const BOUNDS: Bounds = Bounds { entries: 512, weight: 64 << 20 };

/// Bytes kept for a byte of schema text, by estimate: a value with its names and places takes some
/// ten times its text, and the lowering as much again.
const WEIGHT: usize = 24;

/// Lowered schemas by their text, subset and what the request's other schemas had used by then.
#[derive(Debug)]
pub struct LoweringCache {
    kept: Mutex<Kept<Key, Made>>,
}

/// What tells one lowering from another.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Key {
    schema: Print,
    subset: Subset,
    before: Tally,
}

type Made = Result<Arc<Known>, CannotLower>;

/// A schema as it can be sent.
#[derive(Debug)]
pub(super) struct Known {
    /// The schema of the subset.
    pub schema: Arc<Value>,
    /// Bytes of it as compact JSON.
    pub bytes: usize,
    /// What was changed.
    pub lowering: Arc<Lowering>,
    /// What the request has used with it.
    pub tally: Tally,
    /// The changes in few words.
    pub told: Vec<String>,
}

impl Default for LoweringCache {
    fn default() -> Self {
        Self { kept: Mutex::new(Kept::new(BOUNDS)) }
    }
}

impl LoweringCache {
    /// `schema` for `subset`, from memory or lowered now, for a request whose other schemas have
    /// used `before`. Two callers that ask at once may both lower it: the lock is not held meanwhile.
    ///
    /// # Errors
    /// What [`lower::lower_after`] says of it.
    pub(super) fn get(
        &self,
        schema: &Value,
        print: Print,
        (subset, before): (Subset, Tally),
    ) -> Made {
        let key = Key { schema: print, subset, before };
        if let Some(known) = self.kept.lock().find(&key) {
            return known;
        }
        let made = lower::lower_after(schema, subset, before).map(|l| Arc::new(Known::of(l)));
        let bytes = made.as_ref().map_or(0, |known| known.bytes);
        self.kept.lock().add(key, made.clone(), (print.bytes + bytes) * WEIGHT);
        made
    }

    /// How many lowerings are kept, failures included.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.kept.lock().len()
    }
}

impl Known {
    fn of(lowered: Lowered) -> Self {
        let Lowered { schema, lowering, tally } = lowered;
        let told = lowering.changes().iter().map(Change::brief).collect();
        let bytes = schema.to_string().len();
        Self { schema: Arc::new(schema), bytes, lowering: Arc::new(lowering), tally, told }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn get(cache: &LoweringCache, schema: &Value, subset: Subset, before: Tally) -> Made {
        cache.get(schema, Print::of(schema), (subset, before))
    }

    #[test]
    fn a_repeated_schema_is_lowered_once_for_each_subset_and_each_state_of_the_request() {
        let cache = LoweringCache::default();
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let none = Tally::default();
        let first = get(&cache, &schema, Subset::OpenaiStrict, none).unwrap();
        let again = get(&cache, &schema, Subset::OpenaiStrict, none).unwrap();
        assert!(Arc::ptr_eq(&first, &again));
        assert_eq!(cache.len(), 1);
        let other = get(&cache, &schema, Subset::Anthropic, none).unwrap();
        assert_ne!(first.schema, other.schema);
        let full = Tally { optional: 24, ..none };
        let late = get(&cache, &schema, Subset::Anthropic, full).unwrap();
        assert_ne!(late.schema, other.schema, "no optional property is left");
        assert_eq!(cache.len(), 3);
        let nothing = json!({"type": "object", "properties": {"a": true}});
        let fault = get(&cache, &nothing, Subset::OpenaiStrict, none).unwrap_err();
        assert_eq!(get(&cache, &nothing, Subset::OpenaiStrict, none).unwrap_err(), fault);
        assert_eq!(cache.len(), 4, "what cannot be lowered is kept too");
    }

    /// The words of what is printed, sorted: a hash map prints its keys in any order.
    fn words(lowering: &Lowering) -> Vec<String> {
        let text = format!("{lowering:?}");
        let mut words: Vec<String> =
            text.split(' ').map(|word| word.replace(['{', '}', ',', ']'], "")).collect();
        words.sort_unstable();
        words
    }

    fn schemas() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!({"type": "string", "minLength": 1})),
            Just(json!({"type": ["integer", "null"], "minimum": 0})),
            Just(json!({"enum": ["a", "b"], "x-backstay-fallback": "b"})),
            Just(json!({"type": "object", "additionalProperties": {"type": "number"}})),
            Just(json!(true)),
        ];
        leaf.prop_recursive(3, 12, 3, |inner| {
            prop_oneof![
                inner.clone().prop_map(|items| json!({"type": "array", "items": items})),
                prop::collection::vec(inner.clone(), 1..3).prop_map(|of| json!({"anyOf": of})),
                (prop::collection::vec(("[abc]", inner), 0..4), any::<bool>()).prop_map(
                    |(properties, closed)| {
                        let properties: serde_json::Map<_, _> = properties.into_iter().collect();
                        let required: Vec<_> = properties.keys().take(1).cloned().collect();
                        json!({"type": "object", "properties": properties, "required": required,
                            "additionalProperties": !closed})
                    }
                ),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_is_kept_is_what_would_be_made_anew(
            schemas in prop::collection::vec(schemas(), 1..4),
            asked in prop::collection::vec((any::<prop::sample::Index>(), 0..8_usize, 0..3_usize), 1..24),
        ) {
            let cache = LoweringCache::default();
            for (at, subset, used) in asked {
                let (schema, subset) = (at.get(&schemas), Subset::ALL[subset]);
                let before = Tally { optional: used * 12, unions: used * 8, ..Tally::default() };
                let kept = get(&cache, schema, subset, before);
                match (kept, lower::lower_after(schema, subset, before)) {
                    (Ok(kept), Ok(fresh)) => {
                        // As text: the order of keys counts.
                        prop_assert_eq!(kept.schema.to_string(), fresh.schema.to_string());
                        prop_assert_eq!(kept.bytes, fresh.schema.to_string().len());
                        prop_assert_eq!(words(&kept.lowering), words(&fresh.lowering));
                        prop_assert_eq!(kept.tally, fresh.tally);
                    }
                    (kept, fresh) => prop_assert_eq!(kept.err(), fresh.err()),
                }
            }
        }
    }
}
