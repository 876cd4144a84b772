//! Whether the fallbacks that a schema declares can stand where it declares them.

use backstay_wire::lower::own_values;
use serde_json::{Map, Value, json};

use super::super::outline::FALLBACK;
use super::SchemaFault;
use super::misfit::{around, reference};

/// The name of a fallback in a sentence about it.
const NAME: &str = "fallback";

/// Fallbacks that one compilation looks at: each is a reference, and those may not lead too far.
const AT_ONCE: usize = 64;

/// The most fallbacks that are looked at, so that a schema costs eight more compilations at most.
const MAX_LOOKED_AT: usize = 8 * AT_ONCE;

/// The first fallback of `source` that does not fit the schema it stands in, as a fault of the
/// schema. `None`: all fit, or the schema cannot be looked at in parts.
pub(super) fn misplaced(source: &Value) -> Option<SchemaFault> {
    let mut declared = own_values(source, FALLBACK);
    declared.truncate(MAX_LOOKED_AT);
    let (at, value) = declared.chunks(AT_ONCE).find_map(|some| first_wrong(source, some))?;
    // Once more, under a name for the sentence.
    let unfit = around(source, &Map::from_iter([member(NAME.to_owned(), at)]))?;
    let unfit = unfit.check(&json!({ NAME: value })).err()?;
    let problem = unfit.errors.into_iter().next()?;
    Some(SchemaFault::Fallback { pointer: at.clone(), problem })
}

fn first_wrong<'d, 's>(
    source: &Value,
    declared: &'d [(String, &'s Value)],
) -> Option<&'d (String, &'s Value)> {
    let members = declared.iter().enumerate().map(|(index, (at, _))| member(index.to_string(), at));
    let compiled = around(source, &members.collect())?;
    let mut each = declared.iter().enumerate();
    let is_wrong = |(index, (_, value)): &(usize, &(String, &Value))| {
        compiled.check(&json!({ index.to_string(): value })).is_err()
    };
    each.find(is_wrong).map(|(_, wrong)| wrong)
}

/// A member that must fit this part of the whole schema.
fn member(name: String, part: &str) -> (String, Value) {
    (name, json!({ "$ref": reference(part) }))
}

#[cfg(test)]
mod tests {
    use super::super::Schema;
    use super::*;

    fn fault(schema: &Value) -> Option<String> {
        let schema = Schema::compile(schema).unwrap();
        let fault = schema.fallbacks().err().map(|fault| fault.to_string());
        assert_eq!(schema.fallbacks().err().map(|fault| fault.to_string()), fault);
        fault
    }

    #[test]
    fn a_fallback_must_fit_the_schema_it_stands_in_wherever_that_is() {
        let good = json!({"enum": ["a", "b"], "x-backstay-fallback": "b"});
        let bad = json!({"enum": ["a", "b"], "x-backstay-fallback": "c"});
        for (schema, pointer) in [
            (good.clone(), None),
            (bad.clone(), Some("")),
            (json!({"properties": {"s": good, "x-backstay-fallback": {"type": "null"}}}), None),
            (json!({"properties": {"s": bad}}), Some("/properties/s")),
            (
                json!({"$defs": {"a/b": bad}, "items": {"$ref": "#/$defs/a~1b"}}),
                Some("/$defs/a~1b"),
            ),
            (json!({"anyOf": [{"type": "null"}, {"items": bad}]}), Some("/anyOf/1/items")),
            // What only looks like one.
            (json!({"const": bad, "default": bad, "x-backstay-fallback": bad}), None),
            (
                json!({"properties": {"s": {"type": "object", "required": ["a"],
                "x-backstay-fallback": {"b": 1}}}}),
                Some("/properties/s"),
            ),
            (
                json!({"$defs": {"n": {"type": "integer", "maximum": 5}}, "properties": {"n":
                {"$ref": "#/$defs/n", "x-backstay-fallback": 6}}}),
                Some("/properties/n"),
            ),
            // Under this draft nothing beside a reference counts but where it leads does.
            (
                json!({"$schema": "http://json-schema.org/draft-07/schema#",
                "definitions": {"n": {"type": "integer"}}, "properties": {"n":
                {"$ref": "#/definitions/n", "maximum": 5, "x-backstay-fallback": 6}}}),
                None,
            ),
        ] {
            let told = fault(&schema);
            match pointer {
                None => assert_eq!(told, None, "{schema}"),
                Some(pointer) => {
                    let told = told.unwrap_or_else(|| panic!("{schema}"));
                    let begin =
                        format!("the x-backstay-fallback at '{pointer}' does not fit there: ");
                    assert!(told.starts_with(&begin), "{told}");
                }
            }
        }
    }

    #[test]
    fn many_fallbacks_are_looked_at_together() {
        let one =
            |n: usize| (format!("k{n}"), json!({"type": "integer", "x-backstay-fallback": n}));
        let mut members: Map<String, Value> = (0..300).map(one).collect();
        assert_eq!(fault(&json!({"properties": members})), None);
        members["k299"]["x-backstay-fallback"] = json!("x");
        assert!(fault(&json!({"properties": members})).unwrap().contains("'/properties/k299'"));
    }
}
