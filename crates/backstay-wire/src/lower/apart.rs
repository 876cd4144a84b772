//! Sees to it that the branches of a union can be told apart in a reply.

use serde_json::Value;

use super::change::Rule;
use super::fault::CannotLower;
use super::finish::{is_noise, subschemas_mut};
use super::kinds::{self, Types};
use super::subset::Objects;
use super::walk::{Pass, Stop, size};
use super::{MAP, MARK, OPTIONAL, TUPLE};

impl Pass<'_> {
    /// Fails where two branches are sent as one and undone in two ways, and tells where a reply may
    /// be of two, as an empty list may be a map.
    pub(super) fn tell_apart(&mut self, union: &[Value], at: &str) -> Result<(), Stop> {
        // A subset with open objects changes nothing that has to be undone.
        if self.rules.objects == Objects::Open || !self.tells {
            return Ok(());
        }
        let mut branches = Vec::new();
        for branch in union {
            let branch = self.resolved(branch);
            self.spend(size(&branch).saturating_mul(2))?;
            branches.push(Branch::of(&branch));
        }
        for (index, one) in branches.iter().enumerate() {
            for other in branches.iter().skip(index + 1) {
                self.spend(one.size.min(other.size))?;
                let is_one = one.plain == other.plain;
                if is_one && one.marked != other.marked {
                    return Err(Stop::Cannot(CannotLower::Ambiguous(at.to_owned())));
                }
                if is_one && one.optional != other.optional {
                    let what = "a `null` may stand for a missing property or not: it stays";
                    self.note(Rule::Ambiguous, at, "anyOf", what);
                }
                if (one.is_map && other.is_list) || (one.is_list && other.is_map) {
                    let what = "an empty list, or one of entries that fits both a list and a map, \
                                stays a list";
                    self.note(Rule::Ambiguous, at, "anyOf", what);
                }
            }
        }
        Ok(())
    }

    /// A branch with the definition it names in its place, lowered for this once.
    fn resolved(&mut self, branch: &Value) -> Value {
        let Some(reference) = branch.get("$ref").and_then(Value::as_str) else {
            return branch.clone();
        };
        if let Some(body) = self.bodies.get(reference) {
            return body.clone();
        }
        let Some(source) = self.source_of(reference).cloned() else { return branch.clone() };
        let (changes, tally) = (self.changes.len(), self.tally);
        self.tells = false;
        let lowered = self.schema(&source, "", 1);
        self.tells = true;
        self.changes.truncate(changes);
        self.tally = tally;
        let body = match lowered {
            Ok(lowered) => Value::Object(lowered),
            // It fails again where it is lowered to stay.
            Err(_) => branch.clone(),
        };
        self.bodies.insert(reference.to_owned(), body.clone());
        body
    }
}

/// A branch as it is compared: without what only says something, with no mark, with those of
/// optional properties, and with those of everything else that is undone.
struct Branch {
    plain: Value,
    optional: Value,
    marked: Value,
    is_map: bool,
    is_list: bool,
    size: usize,
}

impl Branch {
    fn of(branch: &Value) -> Self {
        let is_map = branch.get(MAP).is_some();
        let types = branch.as_object().and_then(kinds::of);
        Self {
            plain: shape(branch, |_| false),
            optional: shape(branch, |mark| mark == OPTIONAL),
            marked: shape(branch, |mark| mark != OPTIONAL && mark != TUPLE),
            is_map,
            is_list: !is_map && types.is_some_and(|types| types.has(Types::ARRAY)),
            size: size(branch),
        }
    }
}

/// A lowered schema with the marks that `keeps` wants and without annotations.
fn shape(schema: &Value, keeps: fn(&str) -> bool) -> Value {
    let mut schema = schema.clone();
    trim(&mut schema, keeps);
    schema
}

fn trim(schema: &mut Value, keeps: fn(&str) -> bool) {
    let Value::Object(map) = schema else { return };
    let stays = |key: &str| if key.starts_with(MARK) { keeps(key) } else { !is_noise(key) };
    map.retain(|key, _| stays(key));
    subschemas_mut(map, &mut |inner| trim(inner, keeps));
}
