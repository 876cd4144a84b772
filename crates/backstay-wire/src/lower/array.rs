//! Lowers arrays and tuples.

use serde_json::{Map, Value, json};

use super::TUPLE;
use super::change::Rule;
use super::fault::CannotLower;
use super::kinds::Types;
use super::node::Draft;
use super::refs::step;
use super::subset::Fate;
use super::walk::{Pass, Stop};
use super::words;

impl Pass<'_> {
    /// What an array holds.
    pub(super) fn array(
        &mut self,
        map: &Map<String, Value>,
        at: &str,
        depth: usize,
        draft: &mut Draft,
    ) -> Result<(), Stop> {
        let (prefix, rest) = match (map.get("prefixItems"), map.get("items")) {
            (Some(Value::Array(prefix)), rest) => (prefix.as_slice(), rest),
            (_, Some(Value::Array(prefix))) => (prefix.as_slice(), map.get("additionalItems")),
            (_, rest) => (&[][..], rest),
        };
        if let Some(value) = map.get("unevaluatedItems") {
            let words = words::constraint("unevaluatedItems", value);
            draft.said.push(self.loose(Rule::Dropped, at, "unevaluatedItems", words));
        }
        if !prefix.is_empty() {
            return self.tuple(map, (prefix, rest), (at, depth), draft);
        }
        let here = step(at, "items");
        let lowered = match rest {
            None if self.rules.typed => {
                return Err(Stop::Cannot(CannotLower::AnyValue(here)));
            }
            None => return Ok(()),
            Some(Value::Bool(true)) if !self.rules.typed => Ok(None),
            Some(rest) => self.schema(rest, &here, depth + 1).map(Some),
        };
        match lowered {
            Ok(Some(items)) => {
                draft.out.insert("items".into(), Value::Object(items));
            }
            Ok(None) => {
                draft.out.insert("items".into(), Value::Bool(true));
            }
            Err(Stop::Cut(reason)) => {
                if map.get("minItems").and_then(Value::as_u64).unwrap_or(0) > 0 {
                    return Err(Stop::Cut(reason));
                }
                self.note(Rule::Unrolled, &here, "$ref", "array left empty: nesting ends here");
                draft.said.push("always empty".into());
                draft.out.insert("items".into(), json!({ "type": Types::STRING.word() }));
                let none = json!(0);
                if self.rules.fate("maxItems", &none, map) == Fate::Keep {
                    draft.out.insert("maxItems".into(), none);
                }
            }
            Err(stop) => return Err(stop),
        }
        Ok(())
    }

    fn tuple(
        &mut self,
        map: &Map<String, Value>,
        (prefix, rest): (&[Value], Option<&Value>),
        (at, depth): (&str, usize),
        draft: &mut Draft,
    ) -> Result<(), Stop> {
        let mut items = Vec::new();
        for (index, schema) in prefix.iter().enumerate() {
            let at = format!("{at}/prefixItems/{index}");
            items.push(Value::Object(self.schema(schema, &at, depth + 1)?));
        }
        let rest = match rest {
            Some(Value::Object(_)) => {
                let rest = rest.unwrap_or(&Value::Null);
                Some(Value::Object(self.schema(rest, &step(at, "items"), depth + 1)?))
            }
            other => other.filter(|rest| rest.is_boolean()).cloned(),
        };
        if self.rules.tuples {
            draft.out.insert("prefixItems".into(), Value::Array(items));
            draft.out.extend(rest.map(|rest| ("items".to_owned(), rest)));
            return Ok(());
        }
        let words = words::constraint("prefixItems", &Value::Array(prefix.to_vec()));
        draft.said.push(self.loose(Rule::Tuple, at, "prefixItems", words));
        let is_closed = rest == Some(Value::Bool(false));
        let count = items.len();
        items.extend(rest.filter(Value::is_object));
        let each = items.clone();
        // They are told apart by their places.
        let told = std::mem::replace(&mut self.tells, false);
        let items = self.either(items, at);
        self.tells = told;
        let items = items?;
        draft.out.insert(TUPLE.into(), places(&each, count, &items));
        draft.out.insert("items".into(), items);
        if is_closed && !map.contains_key("maxItems") {
            self.constraint(("maxItems", &json!(prefix.len())), map, at, draft);
        }
        Ok(())
    }
}

/// Which branch of the union `items` each place of a tuple of `count` is, for the undo, and behind
/// them what further items are. `null`: the whole of `items`.
fn places(each: &[Value], count: usize, items: &Value) -> Value {
    let union = items.get("anyOf").and_then(Value::as_array);
    let place = |schema: &Value| union?.iter().position(|branch| branch == schema);
    let mut places: Vec<Value> = each.iter().map(|schema| json!(place(schema))).collect();
    if places.len() == count {
        // Further items that the source says nothing of have no form.
        places.push(Value::Bool(false));
    }
    Value::Array(places)
}
