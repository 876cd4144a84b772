//! Whether a value that is written down beforehand can ever stand at its place in a reply.

use std::fmt::Write as _;

use backstay_wire::pointer;
use serde_json::{Map, Value, json};

use super::super::outline::{Outline, parts};
use super::{Documents, Schema};

/// Where a schema is put while parts of it are checked; no schema refers to it by itself.
const WHOLE: &str = "urn:backstay:whole";

/// Why a value can never stand at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// No value that fits the schema has this place; the pointer to the first step that it lacks.
    Nowhere(String),
    /// The value does not fit what the schema says of it: the first error.
    Value(String),
}

/// Why `value` can never stand at `pointer` in what fits `schema`. `*` in the pointer stands for
/// any element. `None`: nothing speaks against it, as far as that can be said beforehand.
pub fn misfit(schema: &Value, pointer: &str, value: &Value) -> Option<Misfit> {
    let outline = Outline::of(schema);
    if let Some(lacking) = outline.lacking(pointer) {
        return Some(Misfit::Nowhere(lacking));
    }
    let parts = parts(schema, pointer);
    let each: Vec<Value> = parts.iter().map(|part| json!({ "$ref": reference(part) })).collect();
    let name = pointer.rsplit('/').next().filter(|name| !matches!(*name, "" | "*"));
    let name = pointer::unescape(name.unwrap_or("value"));
    if each.is_empty() {
        return None;
    }
    // Under its name, for the sentence.
    let member = (name.to_string(), json!({ "allOf": each }));
    let compiled = around(schema, &Map::from_iter([member]))?;
    let unfit = compiled.check(&json!({ name: value })).err()?;
    unfit.errors.into_iter().next().map(Misfit::Value)
}

/// A schema of an object with these members, which may refer to parts of `source`, under its draft.
/// `None`: it does not compile.
pub(super) fn around(source: &Value, members: &Map<String, Value>) -> Option<Schema> {
    let mut around = json!({ "properties": members });
    if let Some(draft) = source.get("$schema") {
        around["$schema"] = draft.clone();
    }
    let mut documents = Documents::new();
    documents.add(WHOLE, source.clone());
    Schema::compile_with(&around, &documents).ok()
}

/// A reference to a part of the whole schema.
pub(super) fn reference(part: &str) -> String {
    let mut reference = format!("{WHOLE}#");
    for byte in part.bytes() {
        if byte.is_ascii_alphanumeric() || b"/_-.~$".contains(&byte) {
            reference.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            let _ = write!(reference, "%{byte:02X}");
        }
    }
    reference
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_can_never_fit_is_told_from_one_that_may() {
        let schema = json!({
            "type": "object", "additionalProperties": false,
            "$defs": {"n": {"type": "integer", "maximum": 5}},
            "properties": {
                "a": {"$ref": "#/$defs/n"},
                "b é": {"allOf": [{"type": "string"}, {"pattern": "^y"}]},
                "l": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/n"}, {"type": "null"}]}},
                "when": {"type": "string", "format": "date"},
                "s": {"type": "string"},
                "any": {}
            }
        });
        let at = |pointer: &str, value: Value| match misfit(&schema, pointer, &value) {
            None => String::new(),
            Some(Misfit::Nowhere(place)) => format!("nowhere: {place}"),
            Some(Misfit::Value(error)) => error,
        };
        assert_eq!(at("/a", json!(5)), "");
        assert_eq!(at("/a", json!(500)), "a above 5");
        assert_eq!(at("/b é", json!("yes")), "");
        assert_eq!(at("/b é", json!("nox")), "b é does not match the pattern ^y");
        assert_eq!(at("/l/*", json!(null)), "");
        assert_eq!(at("/l/*", json!(6)), "value above 5");
        assert!(!at("/l", json!([6])).is_empty());
        assert_eq!(at("/when", json!("2026-02-28")), "");
        assert_eq!(at("/when", json!("2026-02-30")), "when is not a date such as 2026-11-30");
        assert_eq!(at("/nosuch/field", json!(1)), "nowhere: /nosuch");
        assert_eq!(at("/s/inner", json!(1)), "nowhere: /s/inner");
        assert_eq!(at("/any/inner/0", json!(1)), "");
        let older = json!({"$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"n": {"maximum": 5}},
            "properties": {"a": {"$ref": "#/definitions/n", "minimum": 3}}});
        assert_eq!(misfit(&older, "/a", &json!(1)), None, "beside a reference nothing counts");
        assert!(misfit(&older, "/a", &json!(6)).is_some());
    }
}
