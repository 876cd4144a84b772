//! Keys, elements and parts: what stands inside a value.

use backstay_wire::pointer;
use serde_json::{Map, Value};

use super::{Breaks, ChangeKind, Compare, Side, Spot};
use crate::contract::lint::{clipped, walk};

/// What holds of keys that are not described.
#[derive(Clone, Copy, PartialEq)]
enum Rest<'s> {
    Forbidden,
    Anything,
    Described(&'s Value),
}

impl<'s> Compare<'s> {
    pub(super) fn object(&mut self, old: &Spot<'s>, new: &Spot<'s>, depth: usize) {
        let none = Map::new();
        let members = |spot: &Spot<'s>| spot.get("properties").and_then(Value::as_object);
        let (was, is) = (members(old).unwrap_or(&none), members(new).unwrap_or(&none));
        let (was_rest, is_rest) = (rest(old), rest(new));
        let mut renamed = Vec::new();
        for (key, schema) in was {
            match is.get(key) {
                Some(_) => {}
                None => match twin(schema, was, is, &renamed) {
                    Some(other) => {
                        renamed.push(other);
                        self.renamed(key, other, new);
                    }
                    None => self.removed(key, old, is_rest),
                },
            }
        }
        for key in is.keys().filter(|key| !was.contains_key(*key)) {
            if !renamed.contains(&key.as_str()) {
                self.added(key, new, was_rest);
            }
        }
        self.required(old, new, was, is);
        for (key, was) in members(old).into_iter().flatten() {
            let Some(is) = members(new).and_then(|members| members.get(key)) else { continue };
            let keyword = format!("properties/{}", pointer::escape(key));
            self.spots(&old.under(&keyword, was), &new.under(&keyword, is), depth + 1);
        }
        self.rest(old, new, (was_rest, is_rest), depth);
        if old.get("patternProperties") != new.get("patternProperties") {
            let message = "`patternProperties` changed, for better or worse".to_owned();
            self.note(ChangeKind::RuleChanged, Breaks::Both, (Side::New, &new.at), message);
        }
    }

    fn renamed(&mut self, key: &str, other: &str, new: &Spot<'s>) {
        let at = format!("{}/properties/{}", new.at, pointer::escape(other));
        let message = format!("`{}` seems to be called `{}` now", clipped(key), clipped(other));
        self.note(ChangeKind::PropertyRenamed, Breaks::Both, (Side::New, &at), message);
    }

    fn removed(&mut self, key: &str, old: &Spot<'s>, is_rest: Rest<'s>) {
        let at = format!("{}/properties/{}", old.at, pointer::escape(key));
        let breaks = match (is_required(old, key), is_rest == Rest::Forbidden) {
            (true, true) => Breaks::Both,
            (true, false) => Breaks::Readers,
            (false, true) => Breaks::Stored,
            (false, false) => Breaks::Nobody,
        };
        let message = format!("`{}` is gone", clipped(key));
        self.note(ChangeKind::PropertyRemoved, breaks, (Side::Old, &at), message);
    }

    fn added(&mut self, key: &str, new: &Spot<'s>, was_rest: Rest<'s>) {
        let at = format!("{}/properties/{}", new.at, pointer::escape(key));
        let name = clipped(key);
        let (message, breaks) = match (is_required(new, key), was_rest == Rest::Forbidden) {
            (true, _) => (format!("`{name}` is new and must be there"), Breaks::Stored),
            (false, true) => (format!("`{name}` is new and may be missing"), Breaks::Nobody),
            // An old reply may have had the key, with anything as its value.
            (false, false) => {
                (format!("`{name}` is described now; any value was let through"), Breaks::Stored)
            }
        };
        self.note(ChangeKind::PropertyAdded, breaks, (Side::New, &at), message);
    }

    /// Keys of both versions that must be there in one of them only.
    fn required(
        &mut self,
        old: &Spot<'s>,
        new: &Spot<'s>,
        was: &Map<String, Value>,
        is: &Map<String, Value>,
    ) {
        let both = |key: &&str| was.contains_key(*key) == is.contains_key(*key);
        for key in required(new).filter(both).filter(|key| !is_required(old, key)) {
            let message = format!("`{}` must be there now", clipped(key));
            let at = member(new, key);
            self.note(ChangeKind::RequiredAdded, Breaks::Stored, (Side::New, &at), message);
        }
        for key in required(old).filter(both).filter(|key| !is_required(new, key)) {
            let message = format!("`{}` may be missing now", clipped(key));
            let at = member(new, key);
            self.note(ChangeKind::RequiredDropped, Breaks::Readers, (Side::New, &at), message);
        }
    }

    /// Keys that are not described.
    fn rest(&mut self, old: &Spot<'s>, new: &Spot<'s>, rests: (Rest<'s>, Rest<'s>), depth: usize) {
        match rests {
            (Rest::Described(was), Rest::Described(is)) => {
                let keyword = "additionalProperties";
                self.spots(&old.under(keyword, was), &new.under(keyword, is), depth + 1);
            }
            (was, is) if was == is => {}
            (_, Rest::Forbidden) => {
                let message = "keys that are not described are ruled out now".to_owned();
                self.note(ChangeKind::ObjectClosed, Breaks::Stored, (Side::New, &new.at), message);
            }
            (Rest::Forbidden, Rest::Anything | Rest::Described(_)) => {
                let message = "keys that are not described are let through now".to_owned();
                self.note(ChangeKind::ObjectOpened, Breaks::Nobody, (Side::New, &new.at), message);
            }
            (Rest::Anything, Rest::Described(_)) => {
                self.tightened(new, "other keys may not have any value now".into());
            }
            (Rest::Described(_), Rest::Anything) => {
                self.loosened(new, "other keys may have any value now".into());
            }
            (Rest::Anything, Rest::Anything) => {}
        }
    }

    pub(super) fn array(&mut self, old: &Spot<'s>, new: &Spot<'s>, depth: usize) {
        let (was, is) =
            (walk::list(old.schema, "prefixItems"), walk::list(new.schema, "prefixItems"));
        for (index, (was, is)) in was.iter().zip(is).enumerate() {
            let keyword = format!("prefixItems/{index}");
            self.spots(&old.under(&keyword, was), &new.under(&keyword, is), depth + 1);
        }
        if was.len() != is.len() {
            let message = format!("`prefixItems` had {} entries, now {}", was.len(), is.len());
            self.note(ChangeKind::RuleChanged, Breaks::Both, (Side::New, &new.at), message);
        }
        match (old.get("items"), new.get("items")) {
            (None, None) => {}
            (Some(was), Some(is)) => {
                self.spots(&old.under("items", was), &new.under("items", is), depth + 1);
            }
            (None, Some(_)) => self.tightened(new, "elements may not be anything now".into()),
            (Some(_), None) => self.loosened(new, "elements may be anything now".into()),
        }
    }

    /// Subschemas that hold together, and alternatives beside other keywords.
    pub(super) fn parts(&mut self, old: &Spot<'s>, new: &Spot<'s>, depth: usize) {
        let (was, is) = (walk::list(old.schema, "allOf"), walk::list(new.schema, "allOf"));
        for (index, (was, is)) in was.iter().zip(is).enumerate() {
            let keyword = format!("allOf/{index}");
            self.spots(&old.under(&keyword, was), &new.under(&keyword, is), depth + 1);
        }
        if is.len() > was.len() {
            self.tightened(new, "`allOf` has more parts".into());
        } else if is.len() < was.len() {
            self.loosened(new, "`allOf` has fewer parts".into());
        }
        for keyword in ["anyOf", "oneOf"] {
            let spots = |spot: &Spot<'s>| -> Vec<Spot<'s>> {
                let branches = walk::list(spot.schema, keyword).iter().enumerate();
                branches
                    .map(|(index, branch)| spot.under(&format!("{keyword}/{index}"), branch))
                    .collect()
            };
            match (spots(old), spots(new)) {
                (was, is) if was.is_empty() && is.is_empty() => {}
                (was, is) if was.is_empty() && !is.is_empty() => {
                    self.tightened(new, format!("`{keyword}` is new"));
                }
                (_, is) if is.is_empty() => self.loosened(new, format!("`{keyword}` is gone")),
                (was, is) => self.alternatives(&new.at, was, is, depth),
            }
        }
    }
}

/// A key of the new version that is not in the old one and is described in the same words.
fn twin<'n>(
    schema: &Value,
    was: &Map<String, Value>,
    is: &'n Map<String, Value>,
    taken: &[&str],
) -> Option<&'n str> {
    let is_told = schema.as_object().is_some_and(|said| said.contains_key("description"));
    let same = |one: &Value, other: &Value| one == other;
    let mut twins = is.iter().filter(|(key, other)| {
        !was.contains_key(*key) && !taken.contains(&key.as_str()) && same(schema, other)
    });
    let first = twins.next().map(|(key, _)| key.as_str());
    // Two strings without a word about them are no sign of a new name, unless there is no other.
    if is_told || twins.next().is_none() { first } else { None }
}

fn rest<'s>(spot: &Spot<'s>) -> Rest<'s> {
    if spot.get("unevaluatedProperties") == Some(&Value::Bool(false)) {
        return Rest::Forbidden;
    }
    match spot.get("additionalProperties") {
        Some(Value::Bool(false)) => Rest::Forbidden,
        Some(said @ Value::Object(members)) if !members.is_empty() => Rest::Described(said),
        _ => Rest::Anything,
    }
}

fn required<'s>(spot: &Spot<'s>) -> impl Iterator<Item = &'s str> + use<'s> {
    spot.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn is_required(spot: &Spot<'_>, key: &str) -> bool {
    required(spot).any(|named| named == key)
}

/// Where a key is described; where it is not, the object.
fn member(spot: &Spot<'_>, key: &str) -> String {
    let described = spot.get("properties").is_some_and(|members| members.get(key).is_some());
    if described {
        format!("{}/properties/{}", spot.at, pointer::escape(key))
    } else {
        spot.at.clone()
    }
}
