//! Finds what a schema's references name, and which of them go in circles.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::fault::CannotLower;
use crate::pointer;

/// The most places that may be referred to. 500: the largest schemas of public APIs have fewer.
const MAX_TARGETS: usize = 500;

/// Keywords whose value is one schema.
pub(super) const ONE: [&str; 12] = [
    "items",
    "additionalItems",
    "additionalProperties",
    "propertyNames",
    "contains",
    "not",
    "if",
    "then",
    "else",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contentSchema",
];

/// Keywords whose value is a list of schemas; `items` was one in older drafts.
pub(super) const LIST: [&str; 5] = ["anyOf", "oneOf", "allOf", "prefixItems", "items"];

/// Keywords whose value is a map of schemas.
pub(super) const NAMED: [&str; 5] =
    ["properties", "$defs", "definitions", "patternProperties", "dependentSchemas"];

/// A schema's references.
#[derive(Debug, Default)]
pub(super) struct Refs {
    /// Names of anchors to pointers.
    anchors: HashMap<String, String>,
    /// Places that can come to stand in themselves.
    pub circular: HashSet<String>,
    /// Those that must, since no optional property is on the way.
    pub forced: HashSet<String>,
}

/// A step of a JSON Pointer, escaped.
pub(super) fn step(at: &str, key: &str) -> String {
    format!("{at}/{}", pointer::escape(key))
}

/// One reference and whether an optional property is on the way to it.
struct Edge {
    to: String,
    optional: bool,
}

impl Refs {
    /// Reads the references of `root`.
    pub(super) fn of(root: &Value) -> Result<Self, CannotLower> {
        let mut refs = Self::default();
        collect_anchors(root, String::new(), 0, &mut refs.anchors);
        let mut graph: HashMap<String, Vec<Edge>> = HashMap::new();
        let mut open = vec![String::new()];
        while let Some(at) = open.pop() {
            if graph.contains_key(&at) {
                continue;
            }
            if graph.len() > MAX_TARGETS {
                return Err(CannotLower::TooLarge);
            }
            let mut edges = Vec::new();
            if let Some(schema) = root.pointer(&at) {
                refs.edges(schema, false, 0, &mut edges);
            }
            open.extend(edges.iter().map(|edge| edge.to.clone()));
            graph.insert(at, edges);
        }
        for at in graph.keys() {
            if comes_back(&graph, at, false) {
                refs.circular.insert(at.clone());
            }
            if comes_back(&graph, at, true) {
                refs.forced.insert(at.clone());
            }
        }
        Ok(refs)
    }

    /// The pointer that a `$ref` of this document names. `None`: it leaves the document.
    pub(super) fn pointer(&self, reference: &str) -> Option<String> {
        let inside = reference.strip_prefix('#')?;
        if inside.is_empty() || inside.starts_with('/') {
            return percent_decoded(inside);
        }
        self.anchors.get(inside).cloned()
    }

    fn edges(&self, schema: &Value, optional: bool, depth: usize, out: &mut Vec<Edge>) {
        let Value::Object(map) = schema else { return };
        if depth > super::MAX_DEPTH {
            return;
        }
        if let Some(to) = map.get("$ref").and_then(Value::as_str).and_then(|r| self.pointer(r)) {
            out.push(Edge { to, optional });
        }
        let required = |name: &str| {
            map.get("required")
                .and_then(Value::as_array)
                .is_some_and(|names| names.iter().any(|n| n == name))
        };
        for (key, value) in map {
            if ONE.contains(&key.as_str()) {
                self.edges(value, optional, depth + 1, out);
            }
            match value {
                Value::Array(list) if LIST.contains(&key.as_str()) => {
                    for schema in list {
                        self.edges(schema, optional, depth + 1, out);
                    }
                }
                Value::Object(named) if key == "properties" => {
                    for (name, schema) in named {
                        self.edges(schema, optional || !required(name), depth + 1, out);
                    }
                }
                // Told as `additionalProperties` where patterns are not known, so no optional property.
                Value::Object(named) if key == "patternProperties" => {
                    named.values().for_each(|s| self.edges(s, optional, depth + 1, out));
                }
                Value::Object(named) if key == "dependentSchemas" => {
                    named.values().for_each(|s| self.edges(s, true, depth + 1, out));
                }
                _ => {}
            }
        }
    }
}

/// Whether `at` can be reached from itself, by edges without an optional property where `forced`.
fn comes_back(graph: &HashMap<String, Vec<Edge>>, at: &str, forced: bool) -> bool {
    let mut seen = HashSet::new();
    let mut open = vec![at];
    while let Some(from) = open.pop() {
        for edge in graph.get(from).into_iter().flatten() {
            if forced && edge.optional {
                continue;
            }
            if edge.to == at {
                return true;
            }
            if seen.insert(edge.to.as_str()) {
                open.push(&edge.to);
            }
        }
    }
    false
}

fn collect_anchors(
    schema: &Value,
    at: String,
    depth: usize,
    anchors: &mut HashMap<String, String>,
) {
    let Value::Object(map) = schema else { return };
    if depth > super::MAX_DEPTH {
        return;
    }
    for (key, value) in map {
        let here = step(&at, key);
        match value {
            Value::Object(named) if NAMED.contains(&key.as_str()) => {
                for (name, schema) in named {
                    collect_anchors(schema, step(&here, name), depth + 1, anchors);
                }
            }
            Value::Object(_) if ONE.contains(&key.as_str()) => {
                collect_anchors(value, here, depth + 1, anchors);
            }
            Value::Array(list) if LIST.contains(&key.as_str()) => {
                for (index, schema) in list.iter().enumerate() {
                    collect_anchors(schema, format!("{here}/{index}"), depth + 1, anchors);
                }
            }
            _ => {}
        }
    }
    if let Some(name) = map.get("$anchor").and_then(Value::as_str) {
        anchors.insert(name.to_owned(), at);
    }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let value = digit()? * 16 + digit()?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

/// A name for the definition at `at` that `taken` does not hold.
pub(super) fn name(at: &str, taken: &Map<String, Value>) -> String {
    let last = pointer::unescape(at.rsplit('/').next().unwrap_or_default());
    let kept =
        |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' };
    let mut name: String = last.chars().take(100).map(kept).collect();
    if name.is_empty() {
        name.push_str("root");
    }
    let plain = name.clone();
    let mut count = 2;
    while taken.contains_key(&name) {
        name = format!("{plain}_{count}");
        count += 1;
    }
    name
}
