//! Lowers one schema of plain keywords.

use serde_json::{Map, Value};

use super::change::Rule;
use super::fault::CannotLower;
use super::kinds::{self, Types};
use super::merge::ANNOTATIONS;
use super::subset::Fate;
use super::walk::{Lowers, Pass, Stop, is_definitions, size};
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

    pub(super) fn annotations(
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
}

/// Whether a constraint holds for every value.
fn is_empty(key: &str, value: &Value) -> bool {
    match key {
        "uniqueItems" => *value == Value::Bool(false),
        "minLength" | "minProperties" | "minContains" => value.as_u64() == Some(0),
        _ => false,
    }
}
