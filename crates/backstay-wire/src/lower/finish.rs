//! Puts the lowered pieces together, takes the marks out, and holds the whole to the limits.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::change::Rule;
use super::fault::CannotLower;
use super::refs::NAMED;
use super::subset::Rules;
use super::walk::Pass;
use super::{MARK, WRAPPED, is_plain_object};

/// The whole schema, marks included: the root, wrapped if it must be, and the definitions.
pub(super) fn assemble(pass: &mut Pass<'_>, root: Map<String, Value>) -> Value {
    let mut defs = std::mem::take(&mut pass.defs);
    keep_used(&root, &mut defs);
    let mut root = root;
    if pass.rules.root_object && !is_plain_object(&root) {
        pass.note(Rule::RootWrapped, "", "type", "root wrapped in `value`");
        let mut value = Value::Object(root);
        let refers = has_root_reference(&value) || defs.values().any(has_root_reference);
        if refers {
            let mut name = "root".to_owned();
            while defs.contains_key(&name) {
                name.push('_');
            }
            let to = format!("#/$defs/{name}");
            point(&mut value, &to);
            defs.values_mut().for_each(|schema| point(schema, &to));
            defs.insert(name, value);
            value = json!({ "$ref": to });
        }
        root = Map::new();
        root.insert("type".into(), "object".into());
        root.insert("properties".into(), json!({ "value": value }));
        root.insert("required".into(), json!(["value"]));
        root.insert("additionalProperties".into(), Value::Bool(false));
        root.insert(WRAPPED.into(), Value::Bool(true));
    }
    if !defs.is_empty() {
        root.insert("$defs".into(), Value::Object(defs));
    }
    Value::Object(root)
}

/// Calls `each` with every direct subschema.
pub(super) fn subschemas<'v>(schema: &'v Map<String, Value>, each: &mut dyn FnMut(&'v Value)) {
    for (key, value) in schema {
        match value {
            Value::Object(named) if NAMED.contains(&key.as_str()) => {
                named.values().for_each(&mut *each);
            }
            Value::Object(_) if is_place(key) => each(value),
            Value::Array(list) if is_list(key) => list.iter().for_each(&mut *each),
            _ => {}
        }
    }
}

/// As [`subschemas`], to be changed.
pub(super) fn subschemas_mut(schema: &mut Map<String, Value>, each: &mut dyn FnMut(&mut Value)) {
    for (key, value) in schema {
        match value {
            Value::Object(named) if NAMED.contains(&key.as_str()) => {
                named.values_mut().for_each(&mut *each);
            }
            Value::Object(_) if is_place(key) => each(value),
            Value::Array(list) if is_list(key) => list.iter_mut().for_each(&mut *each),
            _ => {}
        }
    }
}

/// Whether a keyword of a lowered schema only says something.
pub(super) fn is_noise(key: &str) -> bool {
    matches!(key, "title" | "description" | "default" | "examples" | "$comment")
}

fn is_place(key: &str) -> bool {
    matches!(key, "items" | "additionalProperties" | "propertyNames")
}

fn is_list(key: &str) -> bool {
    matches!(key, "anyOf" | "oneOf" | "prefixItems")
}

/// Leaves out the definitions that nothing refers to any more.
fn keep_used(root: &Map<String, Value>, defs: &mut Map<String, Value>) {
    let mut used = HashSet::new();
    subschemas(root, &mut |schema| references(schema, &mut used));
    used.extend(root.get("$ref").and_then(Value::as_str).map(str::to_owned));
    let mut open: Vec<String> = used.iter().cloned().collect();
    while let Some(reference) = open.pop() {
        let name = reference.strip_prefix("#/$defs/").unwrap_or_default();
        let mut found = HashSet::new();
        if let Some(schema) = defs.get(name) {
            references(schema, &mut found);
        }
        open.extend(found.into_iter().filter(|found| used.insert(found.clone())));
    }
    defs.retain(|name, _| used.contains(&format!("#/$defs/{name}")));
}

fn references(schema: &Value, found: &mut HashSet<String>) {
    let Value::Object(map) = schema else { return };
    found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
    subschemas(map, &mut |inner| references(inner, found));
}

fn has_root_reference(schema: &Value) -> bool {
    let Value::Object(map) = schema else { return false };
    let mut found = map.get("$ref").is_some_and(|to| to == "#");
    subschemas(map, &mut |inner| found |= has_root_reference(inner));
    found
}

/// Points references to the root to where it is now.
fn point(schema: &mut Value, to: &str) {
    let Value::Object(map) = schema else { return };
    if map.get("$ref").is_some_and(|old| old == "#") {
        map.insert("$ref".into(), to.into());
    }
    subschemas_mut(map, &mut |inner| point(inner, to));
}

/// The schema without marks, its types in the letters of the subset.
pub(super) fn clean(mut schema: Value, rules: &Rules) -> Value {
    scrub(&mut schema, rules.nullable);
    schema
}

fn scrub(schema: &mut Value, shouts: bool) {
    let Value::Object(map) = schema else { return };
    map.retain(|key, _| !key.starts_with(MARK));
    // The OpenAPI dialect writes its types in capitals.
    if shouts && let Some(Value::String(name)) = map.get_mut("type") {
        *name = name.to_ascii_uppercase();
    }
    subschemas_mut(map, &mut |inner| scrub(inner, shouts));
}

/// What a whole schema holds of what providers limit.
#[derive(Default)]
struct Count {
    properties: usize,
    text: usize,
    levels: usize,
}

/// Holds the whole schema to the limits.
pub(super) fn measure(schema: &Value, rules: &Rules) -> Result<(), CannotLower> {
    let mut count = Count::default();
    count.add(schema, 1);
    if count.properties > rules.limits.properties {
        return Err(CannotLower::TooManyProperties(count.properties));
    }
    if count.levels > rules.limits.levels {
        return Err(CannotLower::TooDeep(rules.limits.levels));
    }
    if count.text > rules.limits.text {
        return Err(CannotLower::TooMuchText(count.text));
    }
    Ok(())
}

impl Count {
    fn add(&mut self, schema: &Value, level: usize) {
        let Value::Object(map) = schema else { return };
        let holds = map.contains_key("properties") || map.contains_key("items");
        if holds {
            self.levels = self.levels.max(level);
        }
        if let Some(Value::Object(named)) = map.get("properties") {
            self.properties += named.len();
            self.text += named.keys().map(String::len).sum::<usize>();
        }
        if let Some(Value::Object(defs)) = map.get("$defs") {
            self.text += defs.keys().map(String::len).sum::<usize>();
            defs.values().for_each(|schema| self.add(schema, 1));
        }
        for value in map.get("const").into_iter().chain(array(map.get("enum"))) {
            self.text += value.as_str().map_or_else(|| value.to_string().len(), str::len);
        }
        for (key, value) in map {
            match value {
                Value::Object(named) if key == "properties" => {
                    named.values().for_each(|schema| self.add(schema, level + 1));
                }
                Value::Object(_) if is_place(key) => self.add(value, level + 1),
                Value::Array(list) if is_list(key) => {
                    for schema in list {
                        self.add(schema, level);
                    }
                }
                _ => {}
            }
        }
    }
}

fn array(value: Option<&Value>) -> &[Value] {
    value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}
