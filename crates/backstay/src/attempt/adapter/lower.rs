//! Fits a schema to what a provider accepts. The full schema is always checked here afterwards,
//! so leaving a keyword out costs likelihood, never truth.

use backstay_wire::Dialect;
use serde_json::Value;

/// Keywords that Anthropic's structured output refuses with status 400 (docs, 2026-11).
const REFUSED_BY_ANTHROPIC: [&str; 11] = [
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
];

/// `schema` without the keywords that `dialect`'s providers refuse.
pub(super) fn for_dialect(dialect: Dialect, schema: Value) -> Value {
    match dialect {
        Dialect::OpenaiChat => schema,
        Dialect::Anthropic => without(schema, 0),
    }
}

/// Takes the keywords out of every subschema; a property that happens to have such a name stays.
fn without(schema: Value, depth: usize) -> Value {
    let Value::Object(mut members) = schema else { return schema };
    // Schemas deeper than this were refused at the door.
    if depth > 64 {
        return Value::Object(members);
    }
    members.retain(|key, _| !REFUSED_BY_ANTHROPIC.contains(&key.as_str()));
    // It takes 0 and 1 only.
    if members.get("minItems").and_then(Value::as_u64).is_some_and(|least| least > 1) {
        members.insert("minItems".into(), Value::from(1));
    }
    for (key, value) in &mut members {
        let inner = std::mem::take(value);
        *value = match key.as_str() {
            "properties" | "$defs" | "definitions" | "patternProperties" => named(inner, depth),
            "items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains" => {
                without(inner, depth + 1)
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => each(inner, depth),
            _ => inner,
        };
    }
    Value::Object(members)
}

fn named(value: Value, depth: usize) -> Value {
    let Value::Object(mut members) = value else { return value };
    for (_, schema) in &mut members {
        *schema = without(std::mem::take(schema), depth + 1);
    }
    Value::Object(members)
}

fn each(value: Value, depth: usize) -> Value {
    let Value::Array(schemas) = value else { return value };
    Value::Array(schemas.into_iter().map(|schema| without(schema, depth + 1)).collect())
}

/// A schema's name from a route's: letters, digits, `_` and `-`, at most 64 (OpenAI's rule).
pub(super) fn name(route: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    let name: String = route.chars().take(64).map(kept).collect();
    if name.is_empty() { "reply".into() } else { name }
}

#[cfg(test)]
mod tests {
    use backstay_wire::Dialect;
    use serde_json::json;

    use super::{for_dialect, name};

    #[test]
    fn refused_keywords_go_and_properties_of_the_same_name_stay() {
        let schema = json!({
            "type": "object",
            "properties": {
                "minimum": {"type": "integer", "minimum": 1, "maximum": 4},
                "tags": {"type": "array", "minItems": 3, "items": {"type": "string", "maxLength": 9}}
            },
            "required": ["minimum"]
        });
        let lowered = for_dialect(Dialect::Anthropic, schema.clone());
        assert_eq!(
            lowered,
            json!({
                "type": "object",
                "properties": {
                    "minimum": {"type": "integer"},
                    "tags": {"type": "array", "minItems": 1, "items": {"type": "string"}}
                },
                "required": ["minimum"]
            })
        );
        assert_eq!(for_dialect(Dialect::OpenaiChat, schema.clone()), schema);
    }

    #[test]
    fn a_name_keeps_to_the_letters_a_provider_takes() {
        assert_eq!(name("triage/de *"), "triage_de__");
        assert_eq!(name(""), "reply");
    }
}
