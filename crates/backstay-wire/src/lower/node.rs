//! Lowers one schema of plain keywords, and unions.

use serde_json::{Map, Value};

use super::change::Rule;
use super::fault::CannotLower;
use super::kinds::{self, Types};
use super::merge::{self, ANNOTATIONS};
use super::refs::step;
use super::subset::Fate;
use super::walk::{Lowers, Pass, Stop, is_definitions, say, size};
use super::words;

/// Keywords that say what an object holds, lowered together.
const OF_OBJECTS: [&str; 4] =
    ["properties", "required", "additionalProperties", "unevaluatedProperties"];

/// Keywords that say what an array holds, lowered together.
const OF_ARRAYS: [&str; 4] = ["items", "prefixItems", "additionalItems", "unevaluatedItems"];

/// Keywords that constrain a value by themselves. What is no keyword of JSON Schema is an annotation.
const CONSTRAINTS: [&str; 27] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "minProperties",
    "maxProperties",
    "propertyNames",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "not",
    "if",
    "then",
    "else",
    "$dynamicRef",
    "$recursiveRef",
];

/// A lowered schema in the making.
#[derive(Debug, Default)]
pub(super) struct Draft {
    pub out: Map<String, Value>,
    /// What has to be said in words.
    pub said: Vec<String>,
}

impl Pass<'_> {
    /// Lowers a schema without references, unions or `allOf` at its top.
    pub(super) fn plain(&mut self, map: &Map<String, Value>, at: &str, depth: usize) -> Lowers {
        let declared = kinds::of(map);
        let types = match declared {
            Some(types) if types != Types::NONE => Some(types),
            _ if self.rules.typed => {
                let Some(meant) = kinds::meant(map) else {
                    return Err(Stop::Cannot(CannotLower::AnyValue(at.to_owned())));
                };
                let name = meant.word().to_string();
                self.note(Rule::TypeAdded, at, "type", format!("`type` {name} added"));
                Some(meant)
            }
            _ => None,
        };
        if let Some(types) = types
            && self.must_split(map, types)
        {
            return self.split(map, types, at, depth);
        }
        if map.get("enum").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            return Err(Stop::Cut(CannotLower::Never(at.to_owned())));
        }
        if let Some(Value::Array(values)) = map.get("enum")
            && let Some(kept) = self.without_null(map, values)
        {
            self.note(Rule::EnumSplit, at, "enum", "`null` taken out of the enum");
            let mut notes = map.clone();
            notes.retain(|key, _| ANNOTATIONS.contains(&key.as_str()));
            let mut union = Vec::new();
            for part in kept {
                union.push(Value::Object(self.plain(&part, at, depth + 1)?));
            }
            return self.joined(union, "anyOf", &notes, at);
        }
        let mut draft = Draft::default();
        if let Some(types) = types {
            self.types(types, at, &mut draft);
        }
        self.values(map, at, &mut draft)?;
        if self.entries(map, types, (at, depth), &mut draft)? {
            return self.close(map, at, draft);
        }
        let holds = |kind: Types, keys: &[&str]| match types {
            Some(types) => types.has(kind),
            None => keys.iter().any(|key| map.contains_key(*key)),
        };
        if holds(
            Types::OBJECT,
            &[&OF_OBJECTS[..], &["patternProperties", "propertyNames"]].concat(),
        ) {
            self.object(map, at, depth, &mut draft)?;
        }
        if holds(Types::ARRAY, &OF_ARRAYS) {
            self.array(map, at, depth, &mut draft)?;
        }
        self.constraints(map, at, &mut draft);
        self.close(map, at, draft)
    }

    /// Writes the types; `null` by the subset's own way.
    fn types(&mut self, types: Types, at: &str, draft: &mut Draft) {
        if self.rules.nullable && types.has(Types::NULL) {
            let others = types.without(Types::NULL);
            if others == Types::NONE {
                let words = self.loose(Rule::Weakened, at, "type", "always null".into());
                draft.said.push(words);
                draft.out.insert("type".into(), Types::STRING.word());
            } else {
                draft.out.insert("type".into(), others.word());
            }
            draft.out.insert("nullable".into(), Value::Bool(true));
            return;
        }
        draft.out.insert("type".into(), types.word());
    }

    /// Whether the subset cannot say all of `types` at one place.
    fn must_split(&self, map: &Map<String, Value>, types: Types) -> bool {
        let others = types.without(Types::NULL);
        if self.rules.nullable {
            return others.count() > 1;
        }
        // A map becomes an array, which must not be mistaken for the array that may stand there.
        types.count() > 1 && others.has(Types::OBJECT) && self.is_map(map)
    }

    /// One branch for each type, with the keywords that speak of it.
    fn split(&mut self, map: &Map<String, Value>, types: Types, at: &str, depth: usize) -> Lowers {
        self.note(Rule::TypeSplit, at, "type", "one branch for each type");
        let mut whole = map.clone();
        whole.retain(|key, _| ANNOTATIONS.contains(&key.as_str()));
        let mut union = Vec::new();
        for (name, kind) in types.each() {
            let mut branch = map.clone();
            branch.retain(|key, _| {
                let is_note = ANNOTATIONS.contains(&key.as_str()) || key == "nullable";
                !is_note
                    && kinds::speaks_of(key).is_none_or(|spoken| spoken.and(kind) != Types::NONE)
            });
            branch.insert("type".into(), name.into());
            if let Some(Value::Array(values)) = branch.get_mut("enum") {
                values.retain(|value| kind.and(Types::of_value(value)) != Types::NONE);
                if values.is_empty() {
                    continue;
                }
            }
            union.push(Value::Object(self.schema(&Value::Object(branch), at, depth + 1)?));
        }
        self.joined(union, "anyOf", &whole, at)
    }

    // --- enum and const ---

    /// The parts of an enum of which only `null` cannot stand in one: the rest, and `null`.
    fn without_null(
        &self,
        map: &Map<String, Value>,
        values: &[Value],
    ) -> Option<Vec<Map<String, Value>>> {
        let can = |value: &Value| self.rules.members.has(Types::of_value(value));
        if values.iter().all(can) || !values.iter().all(|v| can(v) || v.is_null()) {
            return None;
        }
        let null = Map::from_iter([("type".to_owned(), Value::from("null"))]);
        let kept: Vec<Value> = values.iter().filter(|v| can(v)).cloned().collect();
        if kept.is_empty() {
            return Some(vec![null]);
        }
        let mut rest = map.clone();
        rest.retain(|key, _| !ANNOTATIONS.contains(&key.as_str()) && key != "nullable");
        rest.insert("enum".into(), Value::Array(kept));
        match kinds::of(map).map(|types| types.without(Types::NULL)) {
            Some(Types::NONE) => {
                rest.shift_remove("type");
            }
            Some(types) => {
                rest.insert("type".into(), types.word());
            }
            None => {}
        }
        Some(vec![rest, null])
    }

    fn values(
        &mut self,
        map: &Map<String, Value>,
        at: &str,
        draft: &mut Draft,
    ) -> Result<(), Stop> {
        let takes = |value: &Value| self.rules.members.has(Types::of_value(value));
        if let Some(value) = map.get("const") {
            self.spend(size(value))?;
            if self.rules.constant && takes(value) {
                draft.out.insert("const".into(), value.clone());
            } else if takes(value) {
                self.note(Rule::Const, at, "const", "`const` made an enum of one");
                draft.out.insert("enum".into(), Value::Array(vec![value.clone()]));
            } else {
                let words = words::constraint("const", value);
                draft.said.push(self.loose(Rule::Dropped, at, "const", words));
            }
        }
        let Some(value @ Value::Array(values)) = map.get("enum") else { return Ok(()) };
        if draft.out.contains_key("enum") {
            return Ok(());
        }
        self.spend(size(value))?;
        let over = self.rules.limits.members.saturating_sub(self.tally.members);
        // OpenAI: an enum of over 250 strings may have 15,000 characters.
        let text: usize = values.iter().filter_map(Value::as_str).map(str::len).sum();
        let too_long = self.rules.all_required && values.len() > 250 && text > 15_000;
        if values.iter().all(takes) && values.len() <= over && !too_long {
            self.tally.members += values.len();
            draft.out.insert("enum".into(), value.clone());
            return Ok(());
        }
        let words = words::constraint("enum", value);
        draft.said.push(self.loose(Rule::EnumDropped, at, "enum", words));
        Ok(())
    }

    // --- constraints ---

    /// Every keyword that is neither structure nor annotation.
    pub(super) fn constraints(&mut self, map: &Map<String, Value>, at: &str, draft: &mut Draft) {
        for (key, value) in map {
            let is_done = matches!(key.as_str(), "type" | "nullable" | "enum" | "const")
                || OF_OBJECTS.contains(&key.as_str())
                || OF_ARRAYS.contains(&key.as_str())
                || ANNOTATIONS.contains(&key.as_str())
                || draft.out.contains_key(key);
            // `anyOf` beside other keywords is lowered by its own rule.
            if is_done || matches!(key.as_str(), "anyOf" | "oneOf" | "patternProperties") {
                continue;
            }
            self.constraint((key, value), map, at, draft);
        }
    }

    pub(super) fn constraint(
        &mut self,
        (key, value): (&str, &Value),
        map: &Map<String, Value>,
        at: &str,
        draft: &mut Draft,
    ) {
        match self.rules.fate(key, value, map) {
            Fate::Keep => {
                draft.out.insert(key.to_owned(), value.clone());
            }
            Fate::Other(value) => {
                self.note(Rule::Anchored, at, key, format!("`{key}` written as {value}"));
                draft.out.insert(key.to_owned(), value);
            }
            Fate::Weaker(weaker) => {
                let words = words::constraint(key, value);
                draft.said.push(self.loose(Rule::Weakened, at, key, words));
                draft.out.insert(key.to_owned(), weaker);
            }
            Fate::Drop if !CONSTRAINTS.contains(&key) => {
                self.note(Rule::Annotation, at, key, format!("`{key}` is not known; left out"));
            }
            Fate::Drop if is_empty(key, value) => {
                self.note(Rule::Annotation, at, key, format!("`{key}` says nothing; left out"));
            }
            Fate::Drop => {
                let words = words::constraint(key, value);
                draft.said.push(self.loose(Rule::Dropped, at, key, words));
            }
        }
    }

    /// Annotations, and the description with what has to be said.
    fn close(&mut self, map: &Map<String, Value>, at: &str, mut draft: Draft) -> Lowers {
        self.annotations(map, at, &mut draft)?;
        if draft.out.get("type").is_some_and(Value::is_array) {
            self.count_union()?;
        }
        Ok(draft.out)
    }

    fn annotations(
        &mut self,
        map: &Map<String, Value>,
        at: &str,
        draft: &mut Draft,
    ) -> Result<(), Stop> {
        for key in ANNOTATIONS {
            let Some(value) = map.get(key) else { continue };
            self.spend(if is_definitions(key) { 0 } else { size(value) })?;
            match key {
                "description" => {}
                "$defs" | "definitions" if at.is_empty() => {}
                "propertyOrdering" if self.rules.ordering => {}
                "title" => {
                    draft.out.insert(key.into(), value.clone());
                }
                _ if self.rules.annotations.contains(&key) => {
                    draft.out.insert(key.into(), value.clone());
                }
                "default" => {
                    self.note(Rule::Annotation, at, key, "`default` left out");
                    draft.said.push(words::constraint("default", value));
                }
                _ => self.note(Rule::Annotation, at, key, format!("`{key}` left out")),
            }
        }
        let text = map.get("description").and_then(Value::as_str);
        if let Some(text) = words::described(text, &draft.said) {
            draft.out.insert("description".into(), text.into());
        }
        Ok(())
    }

    pub(super) fn count_union(&mut self) -> Result<(), Stop> {
        self.tally.unions += 1;
        let most = self.rules.limits.unions;
        if self.tally.unions > most {
            return Err(Stop::Cannot(CannotLower::TooManyUnions(most)));
        }
        Ok(())
    }

    // --- unions ---

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
    fn joined(
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

/// Whether a constraint holds for every value.
fn is_empty(key: &str, value: &Value) -> bool {
    match key {
        "uniqueItems" => *value == Value::Bool(false),
        "minLength" | "minProperties" | "minContains" => value.as_u64() == Some(0),
        _ => false,
    }
}
