//! Types, enums and alternatives: which kinds of value a place allows.

use serde_json::Value;

use super::{Breaks, ChangeKind, Compare, Same, Side, Spot};
use crate::contract::lint::{clipped, walk};

/// Types by name, as bits.
const TYPES: [(&str, u8); 7] = [
    ("null", 1),
    ("boolean", 2),
    ("integer", 4),
    ("number", 4 | 8),
    ("string", 16),
    ("array", 32),
    ("object", 64),
];

/// Every type.
const ANY: u8 = 0x7f;

/// Keywords that say nothing about which values are allowed.
const ANNOTATIONS: [&str; 9] = [
    "title",
    "description",
    "$comment",
    "examples",
    "default",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$schema",
];

/// The subschemas of which a value must fit one; the place itself where it has no alternatives.
pub(super) fn alternatives<'s>(spot: &Spot<'s>) -> Vec<Spot<'s>> {
    let Some(members) = spot.schema.as_object() else { return vec![spot.clone()] };
    let telling: Vec<&str> = members
        .keys()
        .map(String::as_str)
        .filter(|key| !ANNOTATIONS.contains(key) && *key != "$defs" && *key != "definitions")
        .collect();
    let [keyword @ ("anyOf" | "oneOf")] = telling.as_slice() else { return vec![spot.clone()] };
    let branches = walk::list(spot.schema, keyword).iter().enumerate();
    branches
        .flat_map(|(index, branch)| {
            alternatives(&spot.under(&format!("{keyword}/{index}"), branch))
        })
        .collect()
}

/// The types that a place names. `None`: none, so all.
pub(super) fn types(spot: &Spot<'_>) -> Option<u8> {
    let bit = |name: &Value| {
        let known = TYPES.iter().find(|(known, _)| name == known);
        known.map_or(0, |(_, bits)| *bits)
    };
    match spot.get("type") {
        Some(Value::Array(names)) => Some(names.iter().map(bit).fold(0, |all, one| all | one)),
        Some(name) => Some(bit(name)),
        None => match (spot.get("enum").and_then(Value::as_array), spot.get("const")) {
            (Some(members), _) => Some(members.iter().map(of_value).fold(0, |all, one| all | one)),
            (None, Some(constant)) => Some(of_value(constant)),
            (None, None) => None,
        },
    }
}

fn of_value(value: &Value) -> u8 {
    match value {
        Value::Null => 1,
        Value::Bool(_) => 2,
        Value::Number(number) if number.is_f64() => 8,
        Value::Number(_) => 4,
        Value::String(_) => 16,
        Value::Array(_) => 32,
        Value::Object(_) => 64,
    }
}

/// Whether nothing is said but the type.
pub(super) fn is_plain(spot: &Spot<'_>) -> bool {
    let members = spot.schema.as_object();
    members.is_some_and(|members| {
        members.keys().all(|key| key == "type" || ANNOTATIONS.contains(&key.as_str()))
    })
}

/// The constants of an alternative's members, by which it is told from the others.
pub(super) fn tag<'s>(spot: &Spot<'s>) -> Option<Vec<(&'s str, &'s Value)>> {
    let members = spot.get("properties")?.as_object()?;
    let constants: Vec<(&str, &Value)> = members
        .iter()
        .filter_map(|(key, schema)| {
            let only = schema.get("enum").and_then(Value::as_array).filter(|all| all.len() == 1);
            let constant = schema.get("const").or_else(|| only.and_then(|all| all.first()))?;
            Some((key.as_str(), constant))
        })
        .collect();
    (!constants.is_empty()).then_some(constants)
}

/// Types in words: `string or null`.
pub(super) fn words(bits: u8) -> String {
    let named = TYPES.iter().rev().filter(|(name, own)| {
        let is_inside_number = *name == "integer" && bits & 8 != 0;
        bits & own == *own && !is_inside_number
    });
    let names: Vec<&str> = named.map(|(name, _)| *name).collect();
    match names.as_slice() {
        [] if bits & 8 != 0 => "a number that is not whole".to_owned(),
        [] => "nothing".to_owned(),
        names => names.join(" or "),
    }
}

impl<'s> Compare<'s> {
    pub(super) fn types(&mut self, old: &Spot<'s>, new: &Spot<'s>) -> Same {
        let closed = |spot: &Spot<'_>| *spot.schema == Value::Bool(false);
        let (was, is) = (types(old).unwrap_or(ANY), types(new).unwrap_or(ANY));
        let (was, is) = (if closed(old) { 0 } else { was }, if closed(new) { 0 } else { is });
        let (gone, added) = (was & !is, is & !was);
        if was & is == 0 && was != is {
            let message = format!("the type was {}, now it is {}", words(was), words(is));
            self.note(ChangeKind::TypeChanged, Breaks::Both, (Side::New, &new.at), message);
            return Same::No;
        }
        if gone != 0 {
            let message = format!("{} is not allowed any more", words(gone));
            self.note(ChangeKind::TypeNarrowed, Breaks::Stored, (Side::New, &new.at), message);
        }
        if added != 0 {
            let message = format!("{} is allowed now", words(added));
            self.note(ChangeKind::TypeWidened, Breaks::Readers, (Side::New, &new.at), message);
        }
        Same::Yes
    }

    /// Compares the closed sets.
    pub(super) fn members(&mut self, old: &Spot<'s>, new: &Spot<'s>) {
        let told = |value: &Value| clipped(&value.to_string());
        match (set(old), set(new)) {
            (None, None) => {}
            (None, Some(_)) => {
                let message = "any value was allowed, now a closed set is".to_owned();
                self.note(ChangeKind::EnumAdded, Breaks::Stored, (Side::New, &new.at), message);
            }
            (Some(_), None) => {
                let message = "a closed set was allowed, now any value is".to_owned();
                self.note(ChangeKind::EnumDropped, Breaks::Readers, (Side::New, &new.at), message);
            }
            (Some(was), Some(is)) => {
                for gone in was.iter().filter(|value| !is.contains(value)) {
                    let message = format!("{} is not a member any more", told(gone));
                    self.note(
                        ChangeKind::MemberRemoved,
                        Breaks::Stored,
                        (Side::New, &new.at),
                        message,
                    );
                }
                for added in is.iter().filter(|value| !was.contains(value)) {
                    let message = format!("{} is a member now", told(added));
                    self.note(
                        ChangeKind::MemberAdded,
                        Breaks::Readers,
                        (Side::New, &new.at),
                        message,
                    );
                }
            }
        }
    }
}

/// The only values a place allows.
fn set<'s>(spot: &Spot<'s>) -> Option<Vec<&'s Value>> {
    let listed = spot.get("enum").and_then(Value::as_array);
    listed
        .map(|members| members.iter().collect())
        .or_else(|| spot.get("const").map(|constant| vec![constant]))
}
