//! Visits every subschema that describes a part of the reply, once for each way it is used.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};

use backstay_wire::pointer;
use serde_json::Value;

/// The deepest nesting that is looked at; what compiles is less deep.
const MAX_DEPTH: usize = 128;

/// The most places of one schema that are looked at.
const MAX_PLACES: usize = 20_000;

/// Every place of a schema.
pub(super) struct Schemas<'s> {
    places: Vec<Found<'s>>,
}

/// One subschema, and how the reply comes to it.
#[derive(Clone)]
pub(super) struct Found<'s> {
    /// Where it stands, as a JSON pointer into the schema.
    pub(super) pointer: String,
    /// What is said there.
    pub(super) schema: &'s Value,
    /// The key of the value it describes. `None`: an element, or the whole reply.
    pub(super) key: Option<&'s str>,
    /// Whether the reply can say "none of these" beside it: by null, or by leaving it out.
    pub(super) has_way_out: bool,
    /// Whether it is one of several that hold together (`allOf`), so none need be closed.
    pub(super) is_part: bool,
}

impl Found<'_> {
    /// What the value is called in a sentence.
    pub(super) fn name(&self) -> String {
        match self.key {
            Some(key) => format!("`{}`", super::clipped(key)),
            None if self.pointer.is_empty() => "the reply".to_owned(),
            None => format!("the value at {}", super::clipped(&self.pointer)),
        }
    }
}

impl<'s> Schemas<'s> {
    pub(super) fn of(root: &'s Value) -> Self {
        let mut walk =
            Walk { root, seen: HashSet::new(), known: HashMap::new(), places: Vec::new() };
        let found = Found {
            pointer: String::new(),
            schema: root,
            key: None,
            has_way_out: false,
            is_part: false,
        };
        walk.visit(&found, 0);
        Self { places: walk.places }
    }

    /// In the order of the schema; a definition where it is first used.
    pub(super) fn places(&self) -> impl Iterator<Item = &Found<'s>> {
        self.places.iter()
    }
}

struct Walk<'s> {
    root: &'s Value,
    /// Places that were visited, with whether there was a way out and whether it was a part.
    seen: HashSet<(String, bool, bool)>,
    /// Where in the list the place of a pointer is.
    known: HashMap<String, usize>,
    places: Vec<Found<'s>>,
}

impl<'s> Walk<'s> {
    fn visit(&mut self, found: &Found<'s>, depth: usize) {
        let mark = (found.pointer.clone(), found.has_way_out, found.is_part);
        let is_full = depth > MAX_DEPTH || self.places.len() >= MAX_PLACES;
        if is_full || !found.schema.is_object() || !self.seen.insert(mark) {
            return;
        }
        match self.known.entry(found.pointer.clone()) {
            Entry::Vacant(free) => {
                free.insert(self.places.len());
                self.places.push(found.clone());
            }
            // What is used in two ways must do for the stricter one.
            Entry::Occupied(taken) => {
                if let Some(place) = self.places.get_mut(*taken.get()) {
                    place.has_way_out &= found.has_way_out;
                    place.is_part &= found.is_part;
                }
            }
        }
        if let Some((pointer, schema)) = target(self.root, found.schema) {
            self.visit(&Found { pointer, schema, ..found.clone() }, depth + 1);
        }
        self.members(found, depth);
        self.elements(found, depth);
        self.alternatives(found, depth);
    }

    fn members(&mut self, found: &Found<'s>, depth: usize) {
        let required = found.schema.get("required").and_then(Value::as_array);
        for (key, schema) in
            found.schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            let is_required = required.is_some_and(|keys| keys.iter().any(|named| named == key));
            let pointer = format!("{}/properties/{}", found.pointer, pointer::escape(key));
            let member = Found {
                pointer,
                schema,
                key: Some(key),
                has_way_out: !is_required,
                is_part: false,
            };
            self.visit(&member, depth + 1);
        }
        for (key, schema) in
            found.schema.get("patternProperties").and_then(Value::as_object).into_iter().flatten()
        {
            let pointer = format!("{}/patternProperties/{}", found.pointer, pointer::escape(key));
            self.visit(&loose(pointer, schema), depth + 1);
        }
        if let Some(schema) = found.schema.get("additionalProperties") {
            let pointer = format!("{}/additionalProperties", found.pointer);
            self.visit(&loose(pointer, schema), depth + 1);
        }
    }

    fn elements(&mut self, found: &Found<'s>, depth: usize) {
        // An empty list says "none of these".
        let may_be_empty = found.schema.get("minItems").and_then(Value::as_u64).unwrap_or(0) == 0;
        if let Some(schema) = found.schema.get("items") {
            let pointer = format!("{}/items", found.pointer);
            let has_way_out = may_be_empty;
            self.visit(&Found { has_way_out, ..loose(pointer, schema) }, depth + 1);
        }
        for (index, schema) in list(found.schema, "prefixItems").iter().enumerate() {
            let pointer = format!("{}/prefixItems/{index}", found.pointer);
            self.visit(&Found { has_way_out: false, ..loose(pointer, schema) }, depth + 1);
        }
    }

    fn alternatives(&mut self, found: &Found<'s>, depth: usize) {
        for keyword in ["anyOf", "oneOf", "allOf"] {
            let branches = list(found.schema, keyword);
            let is_part = keyword == "allOf";
            let offers = |index: usize| {
                let others = branches.iter().enumerate().filter(|(other, _)| *other != index);
                let offers = others.map(|(_, branch)| branch).any(super::escape::offers_way_out);
                !is_part && offers
            };
            for (index, schema) in branches.iter().enumerate() {
                let pointer = format!("{}/{keyword}/{index}", found.pointer);
                let has_way_out = found.has_way_out || offers(index);
                let branch = Found { pointer, schema, has_way_out, is_part, ..found.clone() };
                self.visit(&branch, depth + 1);
            }
        }
    }
}

/// A value without a key of its own, which may be left out.
fn loose(pointer: String, schema: &Value) -> Found<'_> {
    Found { pointer, schema, key: None, has_way_out: true, is_part: false }
}

/// Where a reference of `schema` inside the document leads, and what is there.
pub(super) fn target<'s>(root: &'s Value, schema: &Value) -> Option<(String, &'s Value)> {
    let fragment = schema.get("$ref")?.as_str()?.strip_prefix('#')?;
    let target = root.pointer(fragment)?;
    Some((fragment.to_owned(), target))
}

/// The schemas in a list under `keyword`.
pub(super) fn list<'s>(schema: &'s Value, keyword: &str) -> &'s [Value] {
    schema.get(keyword).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// Whether the schema is about an object.
pub(super) fn is_object(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::String(name)) => name == "object",
        Some(Value::Array(names)) => names.iter().any(|name| name == "object"),
        _ => schema.get("properties").is_some(),
    }
}
