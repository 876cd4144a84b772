//! Makes one schema of several that must all hold, where one can say it.

use serde_json::{Map, Value, json};

use super::kinds::{self, Types};

/// Keywords of which the larger value holds both, and the smaller.
const LARGER: [&str; 5] = ["minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"];
const SMALLER: [&str; 5] =
    ["maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"];

/// Keywords that say something about a schema and constrain nothing.
pub(super) const ANNOTATIONS: [&str; 15] = [
    "title",
    "description",
    "default",
    "examples",
    "$comment",
    "$schema",
    "$id",
    "$anchor",
    "$defs",
    "definitions",
    "readOnly",
    "writeOnly",
    "deprecated",
    "propertyOrdering",
    "$vocabulary",
];

/// The one schema that says what both say; annotations of `one` win. `None`: no schema of plain
/// keywords says it.
pub(super) fn both(
    one: &Map<String, Value>,
    two: &Map<String, Value>,
) -> Option<Map<String, Value>> {
    let (one, two) = (narrowed(one, two)?, narrowed(two, one)?);
    let mut out = one.clone();
    for (key, theirs) in two {
        let Some(ours) = one.get(&key) else {
            out.insert(key, theirs);
            continue;
        };
        if *ours == theirs || ANNOTATIONS.contains(&key.as_str()) {
            continue;
        }
        let merged = keyword(&key, ours, &theirs)?;
        out.insert(key, merged);
    }
    typed(&one, &mut out)?;
    Some(out)
}

/// Fails where the types of both leave none.
fn typed(one: &Map<String, Value>, out: &mut Map<String, Value>) -> Option<()> {
    let (Some(before), Some(after)) = (kinds::of(one), kinds::of(out)) else { return Some(()) };
    let nothing_left = after == Types::NONE && before != Types::NONE;
    (!nothing_left).then_some(())
}

fn keyword(key: &str, ours: &Value, theirs: &Value) -> Option<Value> {
    match key {
        "type" => {
            let of = |value: &Value| {
                kinds::of(json!({ "type": value }).as_object().unwrap_or(&Map::new()))
            };
            let both = of(ours)?.and(of(theirs)?);
            (both != Types::NONE).then(|| both.word())
        }
        "properties" => named(ours, theirs),
        "required" => {
            let mut names = ours.as_array()?.clone();
            for name in theirs.as_array()? {
                if !names.contains(name) {
                    names.push(name.clone());
                }
            }
            Some(Value::Array(names))
        }
        "enum" => {
            let theirs = theirs.as_array()?;
            let kept: Vec<Value> =
                ours.as_array()?.iter().filter(|v| theirs.contains(v)).cloned().collect();
            (!kept.is_empty()).then_some(Value::Array(kept))
        }
        "items" | "propertyNames" | "additionalProperties" => all(ours, theirs),
        "uniqueItems" => Some(Value::Bool(ours == &json!(true) || theirs == &json!(true))),
        _ if LARGER.contains(&key) => {
            let larger = ours.as_f64()? >= theirs.as_f64()?;
            Some(if larger { ours.clone() } else { theirs.clone() })
        }
        _ if SMALLER.contains(&key) => {
            let smaller = ours.as_f64()? <= theirs.as_f64()?;
            Some(if smaller { ours.clone() } else { theirs.clone() })
        }
        _ => None,
    }
}

/// Both schemas as an `allOf`, to be merged when it is come to.
fn all(ours: &Value, theirs: &Value) -> Option<Value> {
    match (ours, theirs) {
        (Value::Bool(true), other) | (other, Value::Bool(true)) => Some(other.clone()),
        (Value::Bool(false), _) | (_, Value::Bool(false)) => Some(Value::Bool(false)),
        (Value::Object(_), Value::Object(_)) => Some(json!({ "allOf": [ours, theirs] })),
        _ => None,
    }
}

fn named(ours: &Value, theirs: &Value) -> Option<Value> {
    let mut out = ours.as_object()?.clone();
    for (name, theirs) in theirs.as_object()? {
        let merged = match out.get(name) {
            None => theirs.clone(),
            Some(ours) if ours == theirs => continue,
            Some(ours) => all(ours, theirs)?,
        };
        out.insert(name.clone(), merged);
    }
    Some(Value::Object(out))
}

/// `schema` with what `other` says of further properties put on its own: after the merge they are
/// no further ones.
fn narrowed(schema: &Map<String, Value>, other: &Map<String, Value>) -> Option<Map<String, Value>> {
    let (Some(rest), Some(Value::Object(own))) =
        (other.get("additionalProperties"), schema.get("properties"))
    else {
        return Some(schema.clone());
    };
    if *rest == Value::Bool(true) {
        return Some(schema.clone());
    }
    let has_patterns = other.contains_key("patternProperties");
    let named = other.get("properties").and_then(Value::as_object);
    let mut properties = Map::new();
    for (name, property) in own {
        if named.is_some_and(|named| named.contains_key(name)) {
            properties.insert(name.clone(), property.clone());
            continue;
        }
        // What a pattern says of this name is not looked into.
        if has_patterns {
            return None;
        }
        properties.insert(name.clone(), all(property, rest)?);
    }
    let mut schema = schema.clone();
    schema.insert("properties".into(), Value::Object(properties));
    Some(schema)
}
