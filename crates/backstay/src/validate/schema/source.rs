//! Measures a schema before it is compiled: its size, its depth, its paths, its hash.
//!
//! A schema may come with a request, so it is as hostile as one. What the compiler would do with a
//! bad one is bounded here: it goes down once a level of every target a reference leads to, keeps a
//! program a pattern, and with `unevaluated…` walks every path through the references, whose number
//! doubles with each pair of references to the same place.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::documents::Documents;
use super::fault::SchemaFault;

/// The most bytes of a schema as compact JSON. Providers take 120,000 characters of names at most.
const MAX_BYTES: usize = 256 * 1024;

/// The deepest nesting. Providers take 10 levels of objects, which is 30 of JSON.
pub(super) const MAX_DEPTH: usize = 64;

/// The deepest nesting with every reference followed once. A hundred definitions of ten levels make
/// 1,000; ten thousand would use up a thread's stack.
const MAX_LINKED_DEPTH: usize = 2_000;

/// The most patterns: each is a program of up to 256 KiB.
const MAX_PATTERNS: usize = 64;

/// The most steps along references and alternatives under `unevaluated…`. A step costs the
/// compiler about 0.05 ms.
const MAX_STEPS: usize = 4_000;

/// What was measured of a schema that may be compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Measured {
    /// SHA-256 of the canonical JSON: compact, keys sorted.
    pub(super) digest: [u8; 32],
    /// Bytes of the canonical JSON.
    pub(super) bytes: usize,
    /// How many patterns it holds.
    pub(super) patterns: usize,
}

impl Measured {
    /// The first 12 hex digits of the digest: the schema's name in logs and fingerprints.
    pub(super) fn hash(&self) -> String {
        let mut hash = String::with_capacity(12);
        for byte in self.digest.iter().take(6) {
            // Writing to a `String` cannot fail.
            let _ = write!(hash, "{byte:02x}");
        }
        hash
    }
}

/// Measures `schema` together with the documents it may refer to.
///
/// # Errors
///
/// [`SchemaFault::TooLarge`], [`SchemaFault::TooDeep`], [`SchemaFault::TooManyPatterns`],
/// [`SchemaFault::TooEntangled`].
pub(super) fn measure(schema: &Value, documents: &Documents) -> Result<Measured, SchemaFault> {
    let survey = Survey::of(schema, documents)?;
    let mut text = Vec::new();
    canonical(schema, &mut text);
    for (uri, document) in documents.each() {
        text.extend_from_slice(Value::from(uri).to_string().as_bytes());
        canonical(document, &mut text);
    }
    if text.len() > MAX_BYTES {
        return Err(SchemaFault::TooLarge { bytes: text.len(), most: MAX_BYTES });
    }
    if survey.patterns > MAX_PATTERNS {
        return Err(SchemaFault::TooManyPatterns { count: survey.patterns, most: MAX_PATTERNS });
    }
    if survey.linked_depth() > MAX_LINKED_DEPTH || survey.steps() > MAX_STEPS {
        return Err(SchemaFault::TooEntangled);
    }
    Ok(Measured {
        digest: Sha256::digest(&text).into(),
        bytes: text.len(),
        patterns: survey.patterns,
    })
}

/// Writes `value` compactly with sorted keys. The depth is bounded by then.
fn canonical(value: &Value, text: &mut Vec<u8>) {
    match value {
        Value::Array(items) => {
            text.push(b'[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                canonical(item, text);
            }
            text.push(b']');
        }
        Value::Object(members) => {
            let mut members: Vec<(&String, &Value)> = members.iter().collect();
            members.sort_unstable_by_key(|(key, _)| *key);
            text.push(b'{');
            for (index, (key, member)) in members.into_iter().enumerate() {
                if index > 0 {
                    text.push(b',');
                }
                text.extend_from_slice(Value::from(key.as_str()).to_string().as_bytes());
                text.push(b':');
                canonical(member, text);
            }
            text.push(b'}');
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.extend_from_slice(value.to_string().as_bytes());
        }
    }
}

/// What one walk over a schema finds. Objects that only look like schemas (members of `const`, say)
/// count too: the bounds err on the safe side.
struct Survey<'a> {
    root: &'a Value,
    depth: usize,
    patterns: usize,
    references: HashSet<&'a str>,
    /// Where references may lead that do not go by a pointer from the root.
    marked: Vec<Mark<'a>>,
    /// The schemas with `unevaluatedProperties` or `unevaluatedItems`.
    unevaluated: Vec<&'a Value>,
}

impl<'a> Survey<'a> {
    fn of(root: &'a Value, documents: &'a Documents) -> Result<Self, SchemaFault> {
        let mut survey = Self {
            root,
            depth: 0,
            patterns: 0,
            references: HashSet::new(),
            marked: Vec::new(),
            unevaluated: Vec::new(),
        };
        let documents = documents.each().map(|(uri, schema)| Mark { uri: Some(uri), schema });
        survey.marked.extend(documents);
        let mut open: Vec<_> = survey.marked.iter().map(|mark| (mark.schema, 1)).collect();
        open.push((root, 1));
        while let Some((value, depth)) = open.pop() {
            if depth > MAX_DEPTH {
                return Err(SchemaFault::TooDeep { most: MAX_DEPTH });
            }
            survey.depth = survey.depth.max(depth);
            match value {
                Value::Array(items) => open.extend(items.iter().map(|item| (item, depth + 1))),
                Value::Object(members) => {
                    survey.note(value, members);
                    open.extend(members.values().map(|member| (member, depth + 1)));
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        Ok(survey)
    }

    fn note(&mut self, whole: &'a Value, members: &'a Map<String, Value>) {
        self.patterns += usize::from(members.get("pattern").is_some_and(Value::is_string));
        let named = members.get("patternProperties").and_then(Value::as_object);
        self.patterns += named.map_or(0, Map::len);
        self.references.extend(references(members));
        let marks = ["$id", "id", "$anchor", "$dynamicAnchor"];
        if marks.iter().any(|mark| members.get(*mark).is_some_and(Value::is_string)) {
            self.marked.push(Mark { uri: None, schema: whole });
        }
        if ["unevaluatedProperties", "unevaluatedItems"]
            .iter()
            .any(|key| members.contains_key(*key))
        {
            self.unevaluated.push(whole);
        }
    }

    /// How deep the compiler may go: the schema's own depth, and that of every target once. Stops
    /// adding past [`MAX_LINKED_DEPTH`].
    fn linked_depth(&self) -> usize {
        let mut depth = self.depth;
        for reference in &self.references {
            depth += self.pointed(reference).map_or(self.depth, depth_of);
            if depth > MAX_LINKED_DEPTH {
                break;
            }
        }
        depth
    }

    /// Steps the compiler may take under `unevaluated…`; stops counting past [`MAX_STEPS`].
    fn steps(&self) -> usize {
        let mut steps = 0;
        let mut above = Vec::new();
        for schema in &self.unevaluated {
            self.walk(schema, &mut above, &mut steps);
        }
        steps
    }

    /// Walks every path that stays at one place of the instance. A path ends where it would meet
    /// itself.
    fn walk(&self, schema: &'a Value, above: &mut Vec<&'a Value>, steps: &mut usize) {
        let Value::Object(members) = schema else { return };
        *steps += 1;
        if *steps > MAX_STEPS || above.iter().any(|seen| std::ptr::eq(*seen, schema)) {
            return;
        }
        above.push(schema);
        for next in in_place(members) {
            self.walk(next, above, steps);
        }
        for reference in references(members) {
            for target in self.targets(reference) {
                self.walk(target, above, steps);
            }
        }
        above.pop();
    }

    /// Everything a reference may lead to; more than it does where several schemas have an id.
    fn targets(&self, reference: &str) -> Vec<&'a Value> {
        let (address, inside) = reference.split_once('#').unwrap_or((reference, ""));
        let inside = unescaped(inside);
        let marked = self.marked.iter();
        if !inside.starts_with('/') && !inside.is_empty() {
            return marked.map(|mark| mark.schema).filter(|one| is_named(one, &inside)).collect();
        }
        let root = Mark { uri: None, schema: self.root };
        let roots = std::iter::once(&root).chain(marked).filter(|mark| mark.may_be_at(address));
        roots.filter_map(|mark| mark.schema.pointer(&inside)).collect()
    }

    /// The target of a pointer from the root.
    fn pointed(&self, reference: &str) -> Option<&'a Value> {
        self.root.pointer(&unescaped(reference.strip_prefix('#')?))
    }
}

/// Whether a schema can be what a fragment that is no pointer names.
fn is_named(schema: &Value, name: &str) -> bool {
    let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
    // Drafts 4 to 7 write the name into the id.
    let in_id = |key| text(key).split_once('#').is_some_and(|(_, fragment)| fragment == name);
    text("$anchor") == name || text("$dynamicAnchor") == name || in_id("$id") || in_id("id")
}

/// A schema that a reference may lead to by its URI or by its name.
#[derive(Clone, Copy)]
struct Mark<'a> {
    /// Where it was given, beside what it says itself.
    uri: Option<&'a str>,
    schema: &'a Value,
}

impl Mark<'_> {
    /// Whether a reference to `address` can lead here: the last parts of both are the same, as far
    /// as they can be told apart without resolving them.
    fn may_be_at(&self, address: &str) -> bool {
        let last = |uri: &str| {
            let path = uri.split('#').next().unwrap_or_default();
            path.rsplit('/').next().unwrap_or_default().to_ascii_lowercase()
        };
        let is_vague = |part: &str| matches!(part, "" | "." | "..") || part.contains('%');
        let wanted = last(address);
        let own = ["$id", "id"].iter().filter_map(|key| self.schema.get(*key)?.as_str());
        let mut names = own.chain(self.uri).map(last).peekable();
        is_vague(&wanted)
            || names.peek().is_none()
            || names.any(|name| name == wanted || is_vague(&name))
    }
}

fn references(members: &Map<String, Value>) -> impl Iterator<Item = &str> {
    const KEYS: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];
    KEYS.iter().filter_map(|key| members.get(*key)?.as_str())
}

/// The subschemas that speak of the same value as their parent.
fn in_place(members: &Map<String, Value>) -> Vec<&Value> {
    let lists = ["allOf", "anyOf", "oneOf"].iter().filter_map(|key| members.get(*key)?.as_array());
    let single = ["if", "then", "else", "not"].iter().filter_map(|key| members.get(*key));
    let named = ["dependentSchemas", "dependencies"];
    let named = named.iter().filter_map(|key| members.get(*key)?.as_object());
    lists.flatten().chain(single).chain(named.flat_map(Map::values)).collect()
}

/// A URI fragment with its percent signs resolved, as far as they stand for ASCII.
fn unescaped(fragment: &str) -> String {
    let mut parts = fragment.split('%');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..2).and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let Some(code) = code.filter(u8::is_ascii) else {
            plain.push('%');
            plain.push_str(part);
            continue;
        };
        plain.push(char::from(code));
        plain.push_str(part.get(2..).unwrap_or_default());
    }
    plain
}

/// Levels of nesting. The depth is bounded by then.
fn depth_of(value: &Value) -> usize {
    let deepest = match value {
        Value::Array(items) => items.iter().map(depth_of).max(),
        Value::Object(members) => members.values().map(depth_of).max(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    };
    deepest.unwrap_or(0) + 1
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn measured(schema: &Value) -> Result<Measured, SchemaFault> {
        measure(schema, &Documents::new())
    }

    fn fault(schema: &Value) -> SchemaFault {
        measured(schema).unwrap_err()
    }

    #[test]
    fn the_hash_is_of_the_content_and_not_of_the_order_of_keys() {
        let hash = |text: &str| measured(&serde_json::from_str(text).unwrap()).unwrap().hash();
        let one = hash(r#"{"type": "object", "required": ["a", "b"]}"#);
        assert_eq!(one, hash(r#"{"required":["a","b"],"type":"object"}"#));
        assert_ne!(one, hash(r#"{"required":["b","a"],"type":"object"}"#));
        // printf '{"required":["a","b"],"type":"object"}' | sha256sum
        assert_eq!(one, "f2465c753ed9");
    }

    #[test]
    fn size_and_depth_are_bounded() {
        let nested = |depth| (1..depth).fold(json!({}), |inner, _| json!({ "not": inner }));
        assert!(measured(&nested(MAX_DEPTH)).is_ok());
        assert_eq!(fault(&nested(MAX_DEPTH + 1)), SchemaFault::TooDeep { most: MAX_DEPTH });
        assert_eq!(fault(&nested(500)), SchemaFault::TooDeep { most: MAX_DEPTH });
        let large = json!({ "description": "x".repeat(MAX_BYTES) });
        assert!(matches!(fault(&large), SchemaFault::TooLarge { .. }));
        let long = json!({ "enum": vec![1; MAX_BYTES] });
        assert!(matches!(fault(&long), SchemaFault::TooLarge { .. }));
    }

    /// Definitions that each refer `fan` times to the next.
    fn fan(count: usize, fan: usize, unevaluated: &str) -> Value {
        let mut defs = Map::new();
        for n in 0..count {
            let next = vec![json!({ "$ref": format!("#/%24defs/d{}", n + 1) }); fan];
            defs.insert(format!("d{n}"), json!({ "allOf": next }));
        }
        defs.insert(format!("d{count}"), json!({}));
        json!({ "$defs": defs, "$ref": "#/$defs/d0", unevaluated: false })
    }

    #[test]
    fn paths_are_counted_only_where_the_compiler_would_walk_them() {
        assert!(measured(&fan(40, 2, "title")).is_ok());
        for keyword in ["unevaluatedProperties", "unevaluatedItems"] {
            assert!(measured(&fan(5, 2, keyword)).is_ok());
            assert_eq!(fault(&fan(40, 2, keyword)), SchemaFault::TooEntangled);
        }
        // Every definition refers to every other: the paths are as many as their orders.
        let all: Vec<Value> = (0..10).map(|n| json!({ "$ref": format!("#d{n}") })).collect();
        let defs: Map<String, Value> = (0..10)
            .map(|n| (format!("d{n}"), json!({ "$anchor": format!("d{n}"), "anyOf": all })))
            .collect();
        let orders = json!({ "$defs": defs, "anyOf": all, "unevaluatedItems": false });
        assert_eq!(fault(&orders), SchemaFault::TooEntangled);
    }

    #[test]
    fn a_chain_of_references_is_as_deep_as_all_its_targets() {
        assert!(measured(&fan(300, 1, "title")).is_ok());
        assert_eq!(fault(&fan(3_000, 1, "title")), SchemaFault::TooEntangled);
    }

    #[test]
    fn percent_signs_in_a_pointer_are_resolved() {
        let rows = [
            ("a%25b", "a%b"),
            ("%24defs", "$defs"),
            ("%", "%"),
            ("%zz", "%zz"),
            ("%é", "%é"),
            ("%C3%A9", "%C3%A9"),
        ];
        for (written, meant) in rows {
            assert_eq!(unescaped(written), meant);
        }
    }
}
