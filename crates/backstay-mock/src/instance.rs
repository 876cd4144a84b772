//! Makes a valid instance of a JSON Schema, chosen by dice.
//!
//! Understood: type (also lists of types), enum, const, properties, required, items, prefixItems,
//! minItems, maxItems, string lengths, numeric bounds, multipleOf, format, anyOf, oneOf, allOf and
//! local `$ref`. `pattern` is not: such a string may be wrong.

use serde_json::{Map, Number, Value, json};

use crate::dice::Dice;
use crate::prose::{self, Words};

/// Deeper than any schema a provider accepts; stops recursion through `$ref`.
const MAX_DEPTH: usize = 24;
/// From here on, optional properties and items are left out, and null is taken where it may be.
const LEAN_DEPTH: usize = 6;
/// Longest array made, whatever minItems says.
const MAX_ITEMS: u64 = 1_000;
/// Longest string made, whatever minLength says.
const MAX_LENGTH: usize = 10_000;

/// What an instance is made of.
pub(crate) struct Maker<'a> {
    root: &'a Value,
    dice: Dice,
    /// Quotes are cut from this text.
    source: &'a str,
    words: Words,
}

impl<'a> Maker<'a> {
    pub(crate) fn new(root: &'a Value, dice: Dice, source: &'a str, words: Words) -> Self {
        Self { root, dice, source, words }
    }

    /// An instance of the whole schema.
    pub(crate) fn make(mut self) -> Value {
        let root = self.root;
        self.value(root, "", 0)
    }

    fn value(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        if depth > MAX_DEPTH {
            return Value::Null;
        }
        let schema = self.resolve(schema);
        if let Some(fixed) = schema.get("const") {
            return fixed.clone();
        }
        if let Some(Value::Array(choices)) = schema.get("enum") {
            return self.choose(choices);
        }
        if depth >= LEAN_DEPTH && allows_null(schema) {
            return Value::Null;
        }
        if let Some(branch) = self.branch(schema) {
            return self.value(&merged(schema, &branch), name, depth + 1);
        }
        if let Some(Value::Array(all)) = schema.get("allOf") {
            let mut whole = schema.clone();
            if let Some(map) = whole.as_object_mut() {
                map.remove("allOf");
            }
            for part in all {
                whole = merged(&whole, self.resolve(part));
            }
            return self.value(&whole, name, depth + 1);
        }
        match kind(schema) {
            "object" => self.object(schema, depth),
            "array" => self.array(schema, name, depth),
            "integer" => self.integer(schema),
            "number" => self.number(schema),
            "boolean" => Value::Bool(self.dice.below(2) == 1),
            "null" => Value::Null,
            _ => Value::String(self.string(schema, name)),
        }
    }

    /// Follows local references; an unknown one is a schema that allows anything.
    fn resolve<'s>(&self, mut schema: &'s Value) -> &'s Value
    where
        'a: 's,
    {
        for _ in 0..MAX_DEPTH {
            let Some(pointer) = schema.get("$ref").and_then(Value::as_str) else { return schema };
            match pointer.strip_prefix('#').and_then(|p| self.root.pointer(p)) {
                Some(found) => schema = found,
                None => return &Value::Null,
            }
        }
        &Value::Null
    }

    /// One of the choices, not null where there is another.
    fn choose(&mut self, choices: &[Value]) -> Value {
        let solid: Vec<&Value> = choices.iter().filter(|c| !c.is_null()).collect();
        self.dice.pick(&solid).map_or(Value::Null, |v| (*v).clone())
    }

    /// One branch of anyOf or oneOf, not the null one where there is another.
    fn branch(&mut self, schema: &Value) -> Option<Value> {
        let list = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
        let resolved: Vec<&Value> = list.iter().map(|s| self.resolve(s)).collect();
        let solid: Vec<&Value> = resolved.iter().copied().filter(|s| kind(s) != "null").collect();
        let from = if solid.is_empty() { resolved } else { solid };
        self.dice.pick(&from).map(|s| (*s).clone())
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .map(|list| list.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let mut map = Map::new();
        for (name, property) in properties {
            if depth < LEAN_DEPTH || required.contains(&name.as_str()) {
                map.insert(name.clone(), self.value(property, name, depth + 1));
            }
        }
        for name in required {
            if !map.contains_key(name) {
                map.insert(name.to_owned(), Value::String(self.string(&Value::Null, name)));
            }
        }
        review_the_urgent(&mut map);
        Value::Object(map)
    }

    fn array(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        let bound = |key: &str| schema.get(key).and_then(Value::as_u64);
        let least = bound("minItems").unwrap_or(0).min(MAX_ITEMS);
        let most = bound("maxItems").unwrap_or(least.max(3)).min(MAX_ITEMS).max(least);
        let spread = usize::try_from(most.min(least + 3) - least).unwrap_or(0);
        let extra = if depth < LEAN_DEPTH { self.dice.below(spread + 1) } else { 0 };
        let mut count = usize::try_from(least).unwrap_or(0) + extra;
        let fixed = schema.get("prefixItems").and_then(Value::as_array);
        count = count.max(fixed.map_or(0, Vec::len));
        if count == 0 && most > 0 && depth < LEAN_DEPTH {
            count = 1;
        }
        let any = json!({"type": "string"});
        let items = schema.get("items").unwrap_or(&any);
        let unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let mut list: Vec<Value> = Vec::new();
        for at in 0..count {
            let item = fixed.and_then(|f| f.get(at)).unwrap_or(items);
            let mut made = self.value(item, name, depth + 1);
            // 8 throws find a new value in any set a schema is likely to allow.
            for _ in 0..8 {
                if !unique || !list.contains(&made) {
                    break;
                }
                made = self.value(item, name, depth + 1);
            }
            if !(unique && list.contains(&made)) {
                list.push(made);
            }
        }
        Value::Array(list)
    }

    fn integer(&mut self, schema: &Value) -> Value {
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        let least = [
            bound("minimum").map(|v| whole(v.ceil())),
            bound("exclusiveMinimum").map(|v| whole(v.floor()).saturating_add(1)),
        ];
        let most = [
            bound("maximum").map(|v| whole(v.floor())),
            bound("exclusiveMaximum").map(|v| whole(v.ceil()).saturating_sub(1)),
        ];
        let step = bound("multipleOf").filter(|s| *s >= 1.0).map_or(1, whole);
        let low = least.into_iter().flatten().max();
        let (low, high) = match (low, most.into_iter().flatten().min()) {
            (Some(low), Some(high)) => (low, high.max(low)),
            (Some(low), None) => (low, low.saturating_add(99)),
            (None, Some(high)) => (high.saturating_sub(99).min(1.min(high)), high),
            (None, None) => (1, 100),
        };
        let first = low.div_euclid(step) + i64::from(low.rem_euclid(step) != 0);
        let steps = high.div_euclid(step).saturating_sub(first).max(0);
        let pick = i64::try_from(self.dice.below(usize::try_from(steps).unwrap_or(0) + 1));
        Value::from(first.saturating_add(pick.unwrap_or(0)).saturating_mul(step))
    }

    fn number(&mut self, schema: &Value) -> Value {
        let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
        if bound("multipleOf").is_some() {
            return self.integer(schema);
        }
        let low = bound("minimum").or(bound("exclusiveMinimum"));
        let high = bound("maximum").or(bound("exclusiveMaximum"));
        let (low, high) = match (low, high) {
            (Some(low), Some(high)) => (low, high.max(low)),
            (Some(low), None) => (low, low + 1.0),
            (None, Some(high)) => (high - 1.0, high),
            (None, None) => (0.0, 1.0),
        };
        // Hundredths strictly between the bounds, so that exclusive ones hold too.
        let share = (u32::try_from(self.dice.below(99)).map_or(1.0, f64::from) + 1.0) / 100.0;
        Number::from_f64(low + (high - low) * share).map_or(json!(0), Value::Number)
    }

    fn string(&mut self, schema: &Value, name: &str) -> String {
        if let Some(made) = schema.get("format").and_then(Value::as_str).and_then(formatted) {
            return made.to_owned();
        }
        let length = |key: &str| {
            let value = schema.get(key).and_then(Value::as_u64)?;
            Some(usize::try_from(value).unwrap_or(usize::MAX).min(MAX_LENGTH))
        };
        let least = length("minLength").unwrap_or(0);
        let most = length("maxLength").unwrap_or(MAX_LENGTH).max(least);
        if hints_a_quote(name) && self.source.chars().count() >= least.max(1) {
            return self.quote(least, most);
        }
        let count = 3 + self.dice.below(5);
        let mut text = prose::line(&mut self.dice, count, self.words);
        while text.chars().count() < least {
            text.push(' ');
            text.push_str(&prose::line(&mut self.dice, 8, self.words));
        }
        let cut: String = text.chars().take(most).collect();
        // A cut may leave a blank at the end; trim it unless the text would be too short.
        let trimmed = cut.trim_end();
        if trimmed.chars().count() >= least { trimmed.to_owned() } else { cut }
    }

    /// A run of whole words of the source, verbatim.
    fn quote(&mut self, least: usize, most: usize) -> String {
        quote(&mut self.dice, self.source, least, most)
    }
}

/// A run of words of `source`, verbatim and within one line where it can be; `least` to `most`
/// characters long.
pub(crate) fn quote(dice: &mut Dice, source: &str, least: usize, most: usize) -> String {
    let line = source.lines().max_by_key(|l| l.trim().len()).unwrap_or("").trim();
    let line = if line.chars().count() < least { source } else { line };
    let starts: Vec<usize> = line
        .char_indices()
        .filter(|(at, c)| {
            let after_gap = line.get(..*at).is_none_or(|b| b.is_empty() || b.ends_with(' '));
            after_gap && !c.is_whitespace()
        })
        .map(|(at, _)| at)
        .collect();
    let first = dice.below(starts.len().saturating_sub(4).max(1));
    let words = 4 + dice.below(6);
    let from = starts.get(first).copied().unwrap_or(0);
    let to = starts.get(first + words).copied().unwrap_or(line.len());
    let run = line.get(from..to).unwrap_or(line).trim_end();
    let run: String = run.chars().take(most).collect();
    let run = run.trim_end();
    if run.chars().count() >= least && !run.is_empty() {
        return run.to_owned();
    }
    source.chars().take(most.min(least.max(60))).collect()
}

/// S2's rule: an urgent ticket needs a person.
fn review_the_urgent(map: &mut Map<String, Value>) {
    let urgent = map.get("priority") == Some(&json!(1));
    if let Some(review) = map.get_mut("needs_human")
        && urgent
    {
        *review = Value::Bool(true);
    }
}

/// Whether null is among the types or branches of a schema.
fn allows_null(schema: &Value) -> bool {
    let null = |value: &Value| value == "null" || value.get("type").is_some_and(|t| t == "null");
    ["type", "anyOf", "oneOf"]
        .iter()
        .filter_map(|key| schema.get(key)?.as_array())
        .any(|list| list.iter().any(null))
}

/// Whether a property of this name holds words of the input.
pub(crate) fn hints_a_quote(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["evidence", "quote", "excerpt", "citation"].iter().any(|hint| name.contains(hint))
}

/// The type of a schema: the first that is not null, or what its keywords suggest.
pub(crate) fn kind(schema: &Value) -> &str {
    match schema.get("type") {
        Some(Value::String(name)) => name,
        Some(Value::Array(names)) => {
            let mut names = names.iter().filter_map(Value::as_str);
            names.find(|n| *n != "null").unwrap_or("null")
        }
        _ if schema.get("properties").is_some() => "object",
        _ if schema.get("items").is_some() || schema.get("prefixItems").is_some() => "array",
        _ => "string",
    }
}

/// `over` laid on `base`: properties and required are joined, other keywords replaced.
fn merged(base: &Value, over: &Value) -> Value {
    let (Some(base), Some(over)) = (base.as_object(), over.as_object()) else {
        return over.clone();
    };
    let mut all = base.clone();
    all.shift_remove("anyOf");
    all.shift_remove("oneOf");
    for (key, value) in over {
        match (key.as_str(), all.get_mut(key), value) {
            ("properties", Some(Value::Object(mine)), Value::Object(theirs)) => {
                mine.extend(theirs.clone());
            }
            ("required", Some(Value::Array(mine)), Value::Array(theirs)) => {
                mine.extend(theirs.iter().cloned());
            }
            _ => {
                all.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Object(all)
}

fn formatted(format: &str) -> Option<&'static str> {
    Some(match format {
        "date-time" => "2026-11-29T12:00:00Z",
        "date" => "2026-11-29",
        "time" => "12:00:00Z",
        "duration" => "PT5M",
        "email" => "someone@example.com",
        "hostname" => "host.example.com",
        "uri" | "uri-reference" => "https://example.com/page",
        "ipv4" => "192.0.2.7",
        "ipv6" => "2001:db8::7",
        "uuid" => "0190c8f2-5b7a-7c3e-9d41-2f6a8b0c1d2e",
        _ => return None,
    })
}

#[expect(clippy::cast_possible_truncation, reason = "`as` saturates, which is what is wanted")]
fn whole(number: f64) -> i64 {
    number as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "I was charged twice for order 1182 and want one payment back, please.";

    fn make(seed: u64, schema: &Value) -> Value {
        Maker::new(schema, Dice::of(seed, &[]), SOURCE, Words::Plain).make()
    }

    fn triage() -> Value {
        json!({"type": "object", "additionalProperties": false,
            "required": ["category", "priority", "summary", "evidence", "needs_human"],
            "properties": {
                "category": {"type": "string", "enum": ["billing", "shipping", "technical", "other"]},
                "priority": {"type": "integer", "minimum": 1, "maximum": 4},
                "summary": {"type": "string", "minLength": 1, "maxLength": 30},
                "evidence": {"type": "string", "maxLength": 40},
                "needs_human": {"type": "boolean"}}})
    }

    #[test]
    fn instances_of_many_schemas_are_valid() {
        let schemas = [
            triage(),
            json!({"$defs": {"p": {"type": "object", "properties": {"x": {"type": "number",
                "exclusiveMinimum": 0, "maximum": 0.5}, "next": {"anyOf": [{"$ref": "#/$defs/p"},
                {"type": "null"}]}}, "required": ["x", "next"]}}, "$ref": "#/$defs/p"}),
            json!({"type": "array", "minItems": 2, "maxItems": 4, "uniqueItems": true,
                "items": {"type": ["integer", "null"], "exclusiveMinimum": 3, "maximum": 9}}),
            json!({"allOf": [{"type": "object", "properties": {"a": {"type": "string",
                "minLength": 90}}, "required": ["a"]}, {"properties": {"b": {"const": 7}},
                "required": ["b"]}]}),
            json!({"oneOf": [{"type": "integer", "maximum": -5}, {"type": "null"}]}),
            json!({"type": "object", "required": ["when", "free", "n"], "properties": {
                "when": {"type": "string", "format": "date-time"},
                "n": {"type": "integer", "multipleOf": 5, "minimum": 11, "maximum": 24}}}),
            json!({"type": "array", "prefixItems": [{"type": "boolean"}, {"enum": ["z"]}],
                "items": {"type": "string"}, "maxItems": 2}),
            json!(true),
        ];
        for schema in schemas {
            let check = jsonschema::validator_for(&schema).expect("a schema");
            for seed in 0..60 {
                let made = make(seed, &schema);
                let errors: Vec<String> = check.iter_errors(&made).map(|e| e.to_string()).collect();
                assert!(errors.is_empty(), "{made} against {schema}: {errors:?}");
            }
        }
    }

    #[test]
    fn quotes_are_verbatim_and_the_urgent_are_reviewed() {
        let mut categories = std::collections::BTreeSet::new();
        for seed in 0..80 {
            let made = make(seed, &triage());
            let evidence = made["evidence"].as_str().expect("a string");
            assert!(!evidence.is_empty() && SOURCE.contains(evidence), "{evidence:?}");
            assert!(made["priority"] != 1 || made["needs_human"] == true, "{made}");
            categories.insert(made["category"].to_string());
        }
        assert_eq!(categories.len(), 4, "the choice varies with the seed");
    }

    #[test]
    fn a_quote_of_an_empty_or_odd_source_does_not_fail() {
        for source in ["", " ", "\n\n", "é", "東京 東京", "one\ntwo three"] {
            for seed in 0..20 {
                let made = quote(&mut Dice::of(seed, &[]), source, 0, 5);
                assert!(source.contains(&made), "{made:?} of {source:?}");
            }
        }
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let schema = json!({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"});
        make(1, &schema);
        let schema = json!({"type": "array", "minItems": 1, "items": {"$ref": "#"}});
        make(1, &schema);
    }
}
