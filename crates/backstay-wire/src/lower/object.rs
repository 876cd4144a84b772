//! Lowers objects and maps.

use serde_json::{Map, Value, json};

use super::change::Rule;
use super::fault::CannotLower;
use super::kinds::Types;
use super::node::Draft;
use super::null::Of;
use super::refs::step;
use super::subset::Objects;
use super::walk::{Pass, Stop};
use super::words;
use super::{EXTRA, MAP, OPTIONAL};
use crate::pointer;

impl Pass<'_> {
    // --- objects ---

    /// The schemas that further keys of an object may have. `None`: the object says nothing of them,
    /// or lets anything in.
    fn further(map: &Map<String, Value>) -> Vec<(String, &Value)> {
        let mut found = Vec::new();
        if let Some(Value::Object(patterns)) = map.get("patternProperties") {
            for (pattern, schema) in patterns.iter().filter(|(_, s)| **s != Value::Bool(false)) {
                found.push((step("/patternProperties", pattern), schema));
            }
        }
        if let Some(schema @ Value::Object(rest)) = map.get("additionalProperties")
            && !rest.is_empty()
        {
            found.push(("/additionalProperties".into(), schema));
        }
        found
    }

    fn has_properties(map: &Map<String, Value>) -> bool {
        map.get("properties").and_then(Value::as_object).is_some_and(|named| !named.is_empty())
    }

    /// Whether the object is a map of keys not known, where the subset has no maps.
    pub(super) fn is_map(&self, map: &Map<String, Value>) -> bool {
        self.rules.objects != Objects::Open
            && !Self::has_properties(map)
            && !Self::further(map).is_empty()
    }

    /// Makes a map an array of its entries. `false`: it is none.
    pub(super) fn entries(
        &mut self,
        map: &Map<String, Value>,
        types: Option<Types>,
        (at, depth): (&str, usize),
        draft: &mut Draft,
    ) -> Result<bool, Stop> {
        if !types.is_some_and(|types| types.has(Types::OBJECT)) || !self.is_map(map) {
            return Ok(false);
        }
        self.note(Rule::MapToEntries, at, "additionalProperties", "map made an array of entries");
        let entries = self.entry_list(map, at, depth)?;
        for (key, value) in entries {
            draft.out.insert(key, value);
        }
        let mut others = map.clone();
        others.retain(|key, _| !matches!(key.as_str(), "propertyNames" | "patternProperties"));
        for (key, of_items) in [("minProperties", "minItems"), ("maxProperties", "maxItems")] {
            if let Some(value) = others.shift_remove(key) {
                self.constraint((of_items, &value), map, at, draft);
            }
        }
        self.constraints(&others, at, draft);
        draft.out.insert(MAP.into(), Value::Bool(true));
        if types.is_some_and(|types| types.has(Types::NULL)) && !self.rules.nullable {
            draft.out.insert("type".into(), json!(["array", "null"]));
        }
        Ok(true)
    }

    /// The array of entries of a map's further keys.
    fn entry_list(
        &mut self,
        map: &Map<String, Value>,
        at: &str,
        depth: usize,
    ) -> Result<Map<String, Value>, Stop> {
        let further = Self::further(map);
        let mut values = Vec::new();
        for (path, schema) in &further {
            values.push(Value::Object(self.schema(schema, &format!("{at}{path}"), depth + 1)?));
        }
        let value = self.either(values, at)?;
        let mut names = match map.get("propertyNames") {
            Some(Value::Object(names)) => names.clone(),
            _ => Map::new(),
        };
        names.insert("type".into(), "string".into());
        if let [(path, _)] = further.as_slice()
            && let Some(pattern) = path.strip_prefix("/patternProperties/")
        {
            let pattern = pointer::unescape(pattern);
            names.entry("pattern").or_insert_with(|| pattern.into());
        }
        let key = self.schema(&Value::Object(names), &step(at, "propertyNames"), depth + 1)?;
        let mut entry = json!({
            "type": "object",
            "properties": { "key": key, "value": value },
            "required": ["key", "value"],
        });
        if self.rules.objects == Objects::Closed
            && let Some(entry) = entry.as_object_mut()
        {
            entry.insert("additionalProperties".into(), Value::Bool(false));
        }
        if self.rules.ordering
            && let Some(entry) = entry.as_object_mut()
        {
            entry.insert("propertyOrdering".into(), json!(["key", "value"]));
        }
        let mut list = Map::new();
        list.insert("type".into(), "array".into());
        list.insert("items".into(), entry);
        Ok(list)
    }

    /// What an object holds.
    pub(super) fn object(
        &mut self,
        map: &Map<String, Value>,
        at: &str,
        depth: usize,
        draft: &mut Draft,
    ) -> Result<(), Stop> {
        let open = self.rules.objects == Objects::Open;
        let required = names(map.get("required"));
        let empty = Map::new();
        let named = map.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        if !open {
            Self::refuse_any(map, named, &required, at)?;
        }
        let mut held = Held::default();
        for (name, schema) in named {
            self.property((name, schema), (at, depth), &required, &mut held)?;
        }
        if !open && !Self::further(map).is_empty() {
            let mut name = "additional_properties".to_owned();
            while named.contains_key(&name) {
                name.push('_');
            }
            let what = format!("further keys put in `{name}`, an array of entries");
            self.note(Rule::ExtraEntries, at, "additionalProperties", what);
            let entries = self.entry_list(map, at, depth)?;
            held.properties.insert(name.clone(), Value::Object(entries));
            held.required.push(name.clone());
            draft.out.insert(EXTRA.into(), name.into());
        }
        if open {
            let beyond = required.iter().filter(|name| !named.contains_key(**name));
            held.required.extend(beyond.map(|name| (*name).to_owned()));
        }
        if !held.optional.is_empty() {
            draft.out.insert(OPTIONAL.into(), Value::Array(held.optional));
        }
        self.order(map, &held.properties, at, draft);
        if map.contains_key("properties") || !held.properties.is_empty() || !open {
            draft.out.insert("properties".into(), Value::Object(held.properties));
        }
        if !held.required.is_empty() || map.contains_key("required") || self.rules.all_required {
            draft.out.insert("required".into(), held.required.into());
        }
        self.beside(map, at, depth, draft)
    }

    /// Fails where the object may hold anything under some name.
    fn refuse_any(
        map: &Map<String, Value>,
        named: &Map<String, Value>,
        required: &[&str],
        at: &str,
    ) -> Result<(), Stop> {
        let rest = map.get("additionalProperties").or(map.get("unevaluatedProperties"));
        let is_free = rest.is_none_or(|rest| *rest != Value::Bool(false));
        let says_nothing = !map.contains_key("properties")
            || (named.is_empty() && rest.is_some_and(|rest| *rest != Value::Bool(false)));
        if is_free && says_nothing && Self::further(map).is_empty() {
            return Err(Stop::Cannot(CannotLower::AnyValue(at.to_owned())));
        }
        match required.iter().find(|name| !named.contains_key(**name)) {
            Some(name) => Err(Stop::Cannot(CannotLower::AnyValue(step(at, name)))),
            None => Ok(()),
        }
    }

    fn property(
        &mut self,
        (name, schema): (&str, &Value),
        (at, depth): (&str, usize),
        required: &[&str],
        held: &mut Held,
    ) -> Result<(), Stop> {
        let must = required.contains(&name);
        let at = step(&step(at, "properties"), name);
        let mut lowered = match self.schema(schema, &at, depth + 1) {
            Ok(lowered) => lowered,
            Err(Stop::Cut(_)) if !must => {
                let what = format!("optional `{name}` left out: nothing may stand there");
                self.note(Rule::Unrolled, &at, name, what);
                return Ok(());
            }
            Err(stop) => return Err(stop),
        };
        let is_required = must || self.demands();
        if is_required {
            held.required.push(name.to_owned());
        }
        if is_required && !must {
            lowered = self.optional((name, schema), &at, lowered, held)?;
        }
        held.properties.insert(name.to_owned(), Value::Object(lowered));
        Ok(())
    }

    /// Whether one more optional property has to be made a required one.
    fn demands(&mut self) -> bool {
        if self.rules.all_required || self.tally.optional >= self.rules.limits.optional {
            return true;
        }
        self.tally.optional += 1;
        false
    }

    /// An optional property that is made a required one: a `null` stands for none. It is dropped from
    /// the reply only where the source surely refuses it.
    fn optional(
        &mut self,
        (name, schema): (&str, &Value),
        at: &str,
        mut lowered: Map<String, Value>,
        held: &mut Held,
    ) -> Result<Map<String, Value>, Stop> {
        if self.null(schema, Of::Source) == Some(false) {
            held.optional.push(name.into());
        } else {
            let what = format!("a missing `{name}` and a `null` cannot be told apart: it stays");
            self.note(Rule::NullKept, at, name, what);
        }
        let what = if self.allows_null(&lowered, 0) {
            format!("optional `{name}`, nullable already, made required")
        } else {
            lowered = self.or_null(lowered)?;
            format!("optional `{name}` made nullable")
        };
        self.note(Rule::OptionalNullable, at, name, what);
        Ok(lowered)
    }

    /// Whether a lowered schema allows `null`, as far as it says so itself.
    fn allows_null(&self, lowered: &Map<String, Value>, depth: usize) -> bool {
        if depth > 8 {
            return false;
        }
        let inside = |value: &Value| {
            value.as_object().is_some_and(|schema| self.allows_null(schema, depth + 1))
        };
        if let Some(reference) = lowered.get("$ref").and_then(Value::as_str) {
            // It may not be lowered yet; what becomes of it is told from the source.
            let source = self.source_of(reference);
            return source.is_some_and(|source| self.null(source, Of::Lowered) == Some(true));
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(Value::Array(branches)) = lowered.get(key) {
                return branches.iter().any(inside);
            }
        }
        if let Some(Value::Array(values)) = lowered.get("enum") {
            return values.contains(&Value::Null);
        }
        if let Some(value) = lowered.get("const") {
            return value.is_null();
        }
        super::kinds::of(lowered).is_some_and(|types| types.has(Types::NULL))
    }

    /// The lowered schema, or `null`.
    fn or_null(&mut self, mut lowered: Map<String, Value>) -> Result<Map<String, Value>, Stop> {
        let nothing = json!({ "type": "null" });
        if let Some(Value::Array(branches)) = lowered.get_mut("anyOf") {
            branches.push(nothing);
            return Ok(lowered);
        }
        self.count_union()?;
        let mut out = Map::new();
        out.insert("anyOf".into(), json!([lowered, nothing]));
        Ok(out)
    }

    fn order(
        &mut self,
        map: &Map<String, Value>,
        properties: &Map<String, Value>,
        at: &str,
        draft: &mut Draft,
    ) {
        if !self.rules.ordering || properties.is_empty() {
            return;
        }
        let order: Value = properties.keys().map(String::as_str).collect();
        if map.get("propertyOrdering") != Some(&order) {
            self.note(Rule::Ordering, at, "propertyOrdering", "the order of the properties said");
        }
        draft.out.insert("propertyOrdering".into(), order);
    }

    /// What may stand beside the named properties.
    fn beside(
        &mut self,
        map: &Map<String, Value>,
        at: &str,
        depth: usize,
        draft: &mut Draft,
    ) -> Result<(), Stop> {
        let said = map.get("additionalProperties");
        let unevaluated = map.get("unevaluatedProperties");
        match self.rules.objects {
            Objects::Closed => {
                let rest = said.or(unevaluated);
                if said != Some(&Value::Bool(false)) && Self::further(map).is_empty() {
                    let what = match rest {
                        None | Some(Value::Bool(false)) => "object closed",
                        Some(_) => "object closed: further keys cannot be sent",
                    };
                    self.note(Rule::Closed, at, "additionalProperties", what);
                }
                draft.out.insert("additionalProperties".into(), Value::Bool(false));
                Ok(())
            }
            Objects::Bare => {
                if said.or(unevaluated).is_some() && Self::further(map).is_empty() {
                    let what = "`additionalProperties` left out: the provider refuses it";
                    self.note(Rule::Annotation, at, "additionalProperties", what);
                }
                Ok(())
            }
            Objects::Open => self.open(map, at, depth, draft),
        }
    }

    fn open(
        &mut self,
        map: &Map<String, Value>,
        at: &str,
        depth: usize,
        draft: &mut Draft,
    ) -> Result<(), Stop> {
        // xgrammar: names by a schema, or properties by name or pattern.
        if let Some(names @ Value::Object(_)) = map.get("propertyNames")
            && self.rules.knows("propertyNames")
            && !map.contains_key("properties")
            && !map.contains_key("patternProperties")
        {
            let names = self.schema(names, &step(at, "propertyNames"), depth + 1)?;
            draft.out.insert("propertyNames".into(), Value::Object(names));
        }
        let mut rest = map.get("additionalProperties");
        if let Some(unevaluated) = map.get("unevaluatedProperties") {
            if rest.is_none() && *unevaluated == Value::Bool(false) {
                rest = Some(unevaluated);
                let what = "`unevaluatedProperties` made `additionalProperties`";
                self.note(Rule::Closed, at, "unevaluatedProperties", what);
            } else {
                let words = words::constraint("unevaluatedProperties", unevaluated);
                draft.said.push(self.loose(Rule::Dropped, at, "unevaluatedProperties", words));
            }
        }
        let Some(Value::Object(patterns)) = map.get("patternProperties") else {
            return self.rest(rest, at, depth, draft);
        };
        let is_alone = patterns.len() == 1
            && !["properties", "additionalProperties", "propertyNames", "unevaluatedProperties"]
                .iter()
                .any(|key| map.contains_key(*key));
        if is_alone && self.rules.knows("patternProperties") {
            let mut lowered = Map::new();
            for (pattern, schema) in patterns {
                let at = step(&step(at, "patternProperties"), pattern);
                let schema = self.schema(schema, &at, depth + 1)?;
                lowered.insert(pattern.clone(), Value::Object(schema));
            }
            draft.out.insert("patternProperties".into(), Value::Object(lowered));
            return Ok(());
        }
        let said = words::constraint("patternProperties", &Value::Object(patterns.clone()));
        draft.said.push(self.loose(Rule::Dropped, at, "patternProperties", said));
        if rest.is_none_or(|rest| *rest == Value::Bool(true)) {
            return Ok(());
        }
        let mut values = Vec::new();
        for (path, schema) in Self::further(map) {
            let at = format!("{at}{path}");
            match self.schema(schema, &at, depth + 1) {
                Ok(schema) => values.push(Value::Object(schema)),
                Err(Stop::Cut(_)) => {
                    let what = "keys of this pattern left out: nesting ends here";
                    self.note(Rule::Unrolled, &at, "patternProperties", what);
                }
                Err(stop) => return Err(stop),
            }
        }
        let rest = if values.is_empty() { Value::Bool(false) } else { self.either(values, at)? };
        draft.out.insert("additionalProperties".into(), rest);
        Ok(())
    }

    fn rest(
        &mut self,
        rest: Option<&Value>,
        at: &str,
        depth: usize,
        draft: &mut Draft,
    ) -> Result<(), Stop> {
        let lowered = match rest {
            None => return Ok(()),
            Some(Value::Object(_)) => {
                let here = step(at, "additionalProperties");
                match self.schema(rest.unwrap_or(&Value::Null), &here, depth + 1) {
                    Ok(lowered) => Value::Object(lowered),
                    Err(Stop::Cut(_)) => {
                        self.note(
                            Rule::Unrolled,
                            &here,
                            "$ref",
                            "map left empty: nesting ends here",
                        );
                        Value::Bool(false)
                    }
                    Err(stop) => return Err(stop),
                }
            }
            Some(Value::Bool(rest)) => Value::Bool(*rest),
            Some(_) => {
                return Err(Stop::Cannot(CannotLower::NotASchema(at.to_owned())));
            }
        };
        draft.out.insert("additionalProperties".into(), lowered);
        Ok(())
    }
}

/// The properties of an object so far.
#[derive(Debug, Default)]
struct Held {
    properties: Map<String, Value>,
    required: Vec<String>,
    /// Those whose `null` stands for none.
    optional: Vec<Value>,
}

fn names(value: Option<&Value>) -> Vec<&str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}
