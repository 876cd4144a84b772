//! Says whether a schema allows `null`, where that can be known.

use serde_json::{Map, Value};

use super::kinds::{self, Types};
use super::walk::Pass;

/// The most schemas looked at for one answer. 2,000: a property's schema with all it refers to is
/// smaller; past it nothing is known.
const MAX_LOOKS: usize = 2_000;

/// Which schema the question is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Of {
    /// The source, as the full check reads it.
    Source,
    /// What the source is lowered to: constraints that no subset has are gone, and where a type must
    /// be said, the one that was meant is.
    Lowered,
}

impl Pass<'_> {
    /// Whether `schema`, of the source, allows `null`. `None`: it cannot be told.
    pub(super) fn null(&self, schema: &Value, of: Of) -> Option<bool> {
        let old = |draft: &&str| ["draft-03", "draft-04", "draft-06", "draft-07"].contains(draft);
        let said = self.root.get("$schema").and_then(Value::as_str).unwrap_or_default();
        let is_old = said.split('/').any(|part| old(&part));
        Asker { pass: self, of, is_old, looks: 0 }.schema(schema, 0)
    }
}

struct Asker<'p, 's> {
    pass: &'p Pass<'s>,
    of: Of,
    /// Up to draft 7 nothing counts beside a `$ref`.
    is_old: bool,
    looks: usize,
}

impl Asker<'_, '_> {
    fn schema(&mut self, schema: &Value, depth: usize) -> Option<bool> {
        self.looks += 1;
        if self.looks > MAX_LOOKS || depth > super::MAX_DEPTH {
            return None;
        }
        match schema {
            Value::Bool(all) => Some(*all),
            Value::Object(map) => self.map(map, depth),
            _ => None,
        }
    }

    /// All that a schema says of `null`: one refusal is enough.
    fn map(&mut self, map: &Map<String, Value>, depth: usize) -> Option<bool> {
        let referred = map.get("$ref").map(|to| self.referred(to, depth));
        if let (Some(referred), true) = (referred, self.is_old && self.of == Of::Source) {
            return referred;
        }
        let mut all = referred.unwrap_or(Some(true));
        let mut and = |one: Option<bool>| {
            all = match (all, one) {
                (Some(false), _) | (_, Some(false)) => Some(false),
                (None, _) | (_, None) => None,
                (Some(true), Some(true)) => Some(true),
            };
        };
        and(self.typed(map));
        if let Some(Value::Array(values)) = map.get("enum") {
            and(Some(values.contains(&Value::Null)));
        }
        if let Some(value) = map.get("const") {
            and(Some(value.is_null()));
        }
        for key in ["allOf", "anyOf", "oneOf"] {
            if let Some(Value::Array(schemas)) = map.get(key) {
                let each: Vec<_> = schemas.iter().map(|s| self.schema(s, depth + 1)).collect();
                and(match key {
                    "allOf" => every(&each),
                    "oneOf" if self.of == Of::Source => one(&each),
                    _ => any(&each),
                });
            }
        }
        if self.of == Of::Source {
            and(self.conditional(map, depth));
        }
        all
    }

    fn typed(&self, map: &Map<String, Value>) -> Option<bool> {
        if self.of == Of::Lowered {
            let union = ["$ref", "anyOf", "oneOf", "allOf"].iter().any(|k| map.contains_key(*k));
            let said = kinds::of(map);
            let meant = if self.pass.rules.typed && !union { kinds::meant(map) } else { None };
            return Some(said.or(meant).is_none_or(|types| types.has(Types::NULL)));
        }
        // The full check knows no `nullable`.
        let Some(declared) = map.get("type").cloned() else { return Some(true) };
        let declared = Map::from_iter([("type".to_owned(), declared)]);
        kinds::of(&declared).map(|types| types.has(Types::NULL))
    }

    /// `not`, `if` and what is not followed.
    fn conditional(&mut self, map: &Map<String, Value>, depth: usize) -> Option<bool> {
        let mut found = Some(true);
        if let Some(schema) = map.get("not") {
            found = self.schema(schema, depth + 1).map(|fits| !fits);
        }
        if let Some(schema) = map.get("if") {
            let mut branch =
                |key: &str| map.get(key).map_or(Some(true), |s| self.schema(s, depth + 1));
            let (then, other) = (branch("then"), branch("else"));
            let chosen = match self.schema(schema, depth + 1) {
                Some(true) => then,
                Some(false) => other,
                None if then == other => then,
                None => None,
            };
            found = every(&[found, chosen]);
        }
        let is_dynamic = map.contains_key("$dynamicRef") || map.contains_key("$recursiveRef");
        if is_dynamic && found == Some(true) { None } else { found }
    }

    fn referred(&mut self, to: &Value, depth: usize) -> Option<bool> {
        let at = self.pass.refs.pointer(to.as_str()?)?;
        let schema = self.pass.root.pointer(&at)?;
        self.schema(schema, depth + 1)
    }
}

fn every(each: &[Option<bool>]) -> Option<bool> {
    match each {
        _ if each.contains(&Some(false)) => Some(false),
        _ if each.contains(&None) => None,
        _ => Some(true),
    }
}

fn any(each: &[Option<bool>]) -> Option<bool> {
    match each {
        _ if each.contains(&Some(true)) => Some(true),
        _ if each.contains(&None) => None,
        _ => Some(false),
    }
}

/// Exactly one.
fn one(each: &[Option<bool>]) -> Option<bool> {
    match each.iter().filter(|fits| **fits == Some(true)).count() {
        0 | 1 if each.contains(&None) => None,
        1 => Some(true),
        _ => Some(false),
    }
}
