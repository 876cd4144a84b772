//! Lowers unions.

use serde_json::{Map, Value};

use super::change::Rule;
use super::fault::CannotLower;
use super::merge::{self, ANNOTATIONS};
use super::node::Draft;
use super::refs::step;
use super::walk::{Lowers, Pass, Stop, say, size};

impl Pass<'_> {
    pub(super) fn count_union(&mut self) -> Result<(), Stop> {
        self.tally.unions += 1;
        let most = self.rules.limits.unions;
        if self.tally.unions > most {
            return Err(Stop::Cannot(CannotLower::TooManyUnions(most)));
        }
        Ok(())
    }
    /// Lowers a schema with `anyOf` or `oneOf` at its top.
    pub(super) fn union(&mut self, map: &Map<String, Value>, at: &str, depth: usize) -> Lowers {
        let key = if map.contains_key("anyOf") { "anyOf" } else { "oneOf" };
        let Some(Value::Array(branches)) = map.get(key).filter(|v| **v != Value::Array(vec![]))
        else {
            return Err(Stop::Cannot(CannotLower::NotASchema(step(at, key))));
        };
        let mut base = map.clone();
        base.shift_remove(key);
        if base.shift_remove("nullable") == Some(Value::Bool(true)) {
            return self.nullable_union(base, (key, branches), at, depth);
        }
        let stands_beside = |key: &String| !ANNOTATIONS.contains(&key.as_str());
        if base.keys().any(stands_beside) {
            if self.rules.mixed_unions
                && let Some(mixed) = self.mixed(&base, (key, branches), at, depth)?
            {
                return Ok(mixed);
            }
            return self.spread(&base, (key, branches), at, depth);
        }
        let union = self.branches(branches, &step(at, key), depth)?;
        self.joined(union, key, &base, at)
    }

    /// A union beside `nullable`, the `OpenAPI` way: `null` is one more branch, or stays that way.
    fn nullable_union(
        &mut self,
        mut map: Map<String, Value>,
        (key, branches): (&str, &[Value]),
        at: &str,
        depth: usize,
    ) -> Lowers {
        let mut branches = branches.to_vec();
        if !self.rules.nullable {
            self.note(Rule::TypeSplit, at, "nullable", "`nullable` made a branch of `null`");
            branches.push(serde_json::json!({ "type": "null" }));
        }
        map.insert(key.to_owned(), Value::Array(branches));
        let mut lowered = self.union(&map, at, depth + 1)?;
        if self.rules.nullable {
            lowered.insert("nullable".into(), Value::Bool(true));
        }
        Ok(lowered)
    }

    /// A union beside other keywords, as it is. `None`: they need a union of their own.
    fn mixed(
        &mut self,
        base: &Map<String, Value>,
        (key, branches): (&str, &[Value]),
        at: &str,
        depth: usize,
    ) -> Result<Option<Map<String, Value>>, Stop> {
        if base.contains_key("oneOf") {
            return Ok(None);
        }
        let before = self.changes.len();
        let mut out = self.plain(base, at, depth + 1)?;
        if out.contains_key("anyOf") || out.contains_key("oneOf") {
            self.changes.truncate(before);
            return Ok(None);
        }
        let union = self.branches(branches, &step(at, key), depth)?;
        if out.keys().all(|key| ANNOTATIONS.contains(&key.as_str())) {
            return self.joined(union, key, &out, at).map(Some);
        }
        out.insert(self.union_word(key, at).into(), Value::Array(union));
        Ok(Some(out))
    }

    /// Any of these lowered schemas.
    pub(super) fn either(&mut self, schemas: Vec<Value>, at: &str) -> Result<Value, Stop> {
        let mut union: Vec<Value> = Vec::new();
        for schema in schemas {
            if !union.contains(&schema) {
                union.push(schema);
            }
        }
        self.joined(union, "anyOf", &Map::new(), at).map(Value::Object)
    }

    /// A union of lowered branches with the annotations of `map`.
    pub(super) fn joined(
        &mut self,
        mut union: Vec<Value>,
        key: &str,
        map: &Map<String, Value>,
        at: &str,
    ) -> Lowers {
        if union.is_empty() {
            return Err(Stop::Cut(CannotLower::Never(at.to_owned())));
        }
        let mut draft = Draft::default();
        if self.rules.nullable {
            self.nullable(&mut union, at, &mut draft);
        }
        let is_described = map.get("description").is_some_and(|text| *text != "");
        if let [Value::Object(only)] = union.as_mut_slice()
            && !(is_described && only.contains_key("$ref"))
        {
            let mut out = std::mem::take(only);
            out.extend(draft.out);
            if let Some(Value::String(text)) = map.get("description").filter(|text| **text != "") {
                say(&mut out, text.clone());
            }
            return Ok(out);
        }
        self.count_union()?;
        self.tell_apart(&union, at)?;
        draft.out.insert(self.union_word(key, at).into(), Value::Array(union));
        self.annotations(map, at, &mut draft)?;
        Ok(draft.out)
    }

    fn union_word(&mut self, key: &str, at: &str) -> &'static str {
        match key {
            "oneOf" if self.rules.one_of => "oneOf",
            "oneOf" => {
                self.note(Rule::OneOf, at, key, "`oneOf` made `anyOf`");
                "anyOf"
            }
            _ => "anyOf",
        }
    }

    fn branches(&mut self, branches: &[Value], at: &str, depth: usize) -> Result<Vec<Value>, Stop> {
        let mut lowered = Vec::new();
        let mut cut = None;
        for (index, branch) in branches.iter().enumerate() {
            let at = format!("{at}/{index}");
            match self.schema(branch, &at, depth + 1) {
                Ok(branch) => lowered.push(Value::Object(branch)),
                Err(Stop::Cut(reason)) => {
                    self.note(Rule::Unrolled, &at, "$ref", "branch left out: nesting ends here");
                    cut = Some(reason);
                }
                Err(stop) => return Err(stop),
            }
        }
        match cut {
            Some(reason) if lowered.is_empty() => Err(Stop::Cut(reason)),
            _ => Ok(lowered),
        }
    }

    /// A branch of `null` becomes `nullable` of the union.
    fn nullable(&mut self, union: &mut Vec<Value>, at: &str, draft: &mut Draft) {
        let before = union.len();
        let is_null = |branch: &Value| {
            branch.get("nullable") == Some(&Value::Bool(true))
                && branch.get("description").is_some_and(|text| text == "always null")
        };
        if union.iter().all(is_null) {
            union.truncate(1);
        } else {
            union.retain(|branch| !is_null(branch));
        }
        if union.len() < before {
            self.note(Rule::TypeSplit, at, "anyOf", "a branch of `null` made `nullable`");
            draft.out.insert("nullable".into(), Value::Bool(true));
        }
    }

    /// Puts what stands beside a union into each of its branches.
    fn spread(
        &mut self,
        base: &Map<String, Value>,
        (key, branches): (&str, &[Value]),
        at: &str,
        depth: usize,
    ) -> Lowers {
        let (notes, rest): (Vec<_>, Vec<_>) =
            base.iter().partition(|(key, _)| ANNOTATIONS.contains(&key.as_str()));
        let rest: Map<String, Value> =
            rest.into_iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        let has_shape = rest.keys().any(|key| key != "type" && key != "oneOf");
        self.spend(branches.len().saturating_mul(rest.values().map(size).sum()))?;
        let mut spread = Vec::new();
        for branch in branches {
            let whole = match branch {
                Value::Object(branch) if !branch.contains_key("$ref") => merge::both(branch, &rest),
                _ => None,
            };
            // References, and what cannot be merged at once, are merged when they are come to.
            let whole = whole.map_or_else(
                || serde_json::json!({ "allOf": [branch, Value::Object(rest.clone())] }),
                Value::Object,
            );
            spread.push(whole);
        }
        if has_shape {
            self.note(
                Rule::UnionSpread,
                at,
                key,
                "what stands beside the union put in each branch",
            );
        }
        let mut whole: Map<String, Value> =
            notes.into_iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        whole.insert(key.to_owned(), Value::Array(spread));
        self.union(&whole, at, depth + 1)
    }
}
