//! The parts of a schema that speak of one place of a value, as far as that can be said beforehand.

use std::collections::BTreeSet;

use backstay_wire::pointer;
use serde_json::{Map, Value};

use super::draft::{References, Rules, Siblings};

/// The most parts that are followed for one place.
const MAX_PARTS: usize = 200;

/// JSON pointers to the parts of `schema` that the value at `pointer` must fit if it is there, `*`
/// in which stands for any element. Not all of them: what hangs on other values, on patterns of
/// keys or on one of several alternatives is left out. Empty: nothing can be said.
pub(in crate::validate) fn parts(schema: &Value, pointer: &str) -> Vec<String> {
    let Some(rules) = Rules::of(schema) else { return Vec::new() };
    let search = Search { root: schema, rules };
    let mut here = vec![String::new()];
    for step in pointer.split('/').skip(1) {
        let around = search.joined(here);
        here = around.iter().filter_map(|part| search.inside(part, step)).collect();
    }
    here
}

struct Search<'s> {
    root: &'s Value,
    rules: Rules,
}

impl<'s> Search<'s> {
    fn words(&self, part: &str) -> Option<&'s Map<String, Value>> {
        self.root.pointer(part)?.as_object()
    }

    /// The parts, and those that speak of the same value with them.
    fn joined(&self, parts: Vec<String>) -> BTreeSet<String> {
        let mut known = BTreeSet::new();
        let mut open = parts;
        while let Some(part) = open.pop() {
            let Some(words) = self.words(&part) else { continue };
            if known.len() >= MAX_PARTS || !known.insert(part.clone()) {
                continue;
            }
            let reference = words.get("$ref").and_then(Value::as_str);
            let target = reference.and_then(|reference| reference.strip_prefix('#'));
            let is_known = self.rules.references == References::Followed;
            open.extend(target.filter(|to| is_known && !to.contains('%')).map(str::to_owned));
            if reference.is_some() && self.rules.siblings == Siblings::Ignored {
                continue;
            }
            open.extend(list(words, "allOf").map(|(index, _)| format!("{part}/allOf/{index}")));
            for key in ["anyOf", "oneOf"] {
                // Beside `null` only one can be meant where something is inside.
                let mut others = list(words, key).filter(|(_, one)| one["type"] != "null");
                if let (Some((index, _)), None) = (others.next(), others.next()) {
                    open.push(format!("{part}/{key}/{index}"));
                }
            }
        }
        known
    }

    /// The part that speaks of a member or an element.
    fn inside(&self, part: &str, step: &str) -> Option<String> {
        let words = self.words(part)?;
        if self.rules.siblings == Siblings::Ignored
            && words.get("$ref").is_some_and(Value::is_string)
        {
            return None;
        }
        let key = pointer::unescape(step);
        if words.get("properties").is_some_and(|members| members.get(&*key).is_some()) {
            return Some(format!("{part}/properties/{step}"));
        }
        let is_element = step == "*" || step.parse::<usize>().is_ok();
        let first = self.rules.word(words, "prefixItems").is_some();
        if is_element && !first && words.get("items").is_some_and(|items| !items.is_array()) {
            return Some(format!("{part}/items"));
        }
        let each = words.contains_key("additionalProperties") && !is_element;
        (each && !words.contains_key("patternProperties"))
            .then(|| format!("{part}/additionalProperties"))
    }
}

fn list<'s>(words: &'s Map<String, Value>, key: &str) -> impl Iterator<Item = (usize, &'s Value)> {
    words.get(key).and_then(Value::as_array).into_iter().flatten().enumerate()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_parts_that_speak_of_a_place_are_found_through_references_and_what_is_joined() {
        let schema = json!({
            "$defs": {"o": {"properties": {"n": {"maximum": 5}, "a/b": {}}}},
            "allOf": [{"properties": {"o": {"$ref": "#/$defs/o"}}}],
            "properties": {
                "o": {"properties": {"n": {"minimum": 1}}},
                "l": {"type": "array", "items": {"anyOf": [{"$ref": "#/$defs/o"}, {"type": "null"}]}},
                "p": {"patternProperties": {"x": {}}, "additionalProperties": false},
                "m": {"additionalProperties": {"type": "string"}},
                "e": {"oneOf": [{"properties": {"x": {}}}, {"properties": {"x": {}}}]},
                "t": {"prefixItems": [{}], "items": {}}
            }
        });
        for (pointer, found) in [
            ("", vec![""]),
            ("/o/n", vec!["/$defs/o/properties/n", "/properties/o/properties/n"]),
            ("/o/a~1b", vec!["/$defs/o/properties/a~1b"]),
            ("/l/*/n", vec!["/$defs/o/properties/n"]),
            ("/l/3", vec!["/properties/l/items"]),
            ("/p/x", vec![]),
            ("/m/x", vec!["/properties/m/additionalProperties"]),
            ("/e/x", vec![]),
            ("/t/0", vec![]),
            ("/none/n", vec![]),
        ] {
            assert_eq!(parts(&schema, pointer), found, "{pointer}");
        }
        let circle = json!({"$ref": "#", "allOf": [{"$ref": "#"}]});
        assert_eq!(parts(&circle, "/a"), Vec::<String>::new());
    }
}
