//! Schemas of every kind lowered to every subset: golden tables.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::fmt::Write;

use backstay_wire::lower::{Subset, lower};
use serde_json::{Value, json};

/// What each subset makes of `schema`.
fn table(schema: &Value) -> String {
    let mut out = format!("source {schema}\n");
    for subset in Subset::ALL {
        writeln!(out, "\n== {}", subset.name()).unwrap();
        match lower(schema, subset) {
            Ok(lowered) => {
                writeln!(out, "{}", lowered.schema).unwrap();
                for change in lowered.lowering.changes() {
                    writeln!(out, "  {:<18} {change}", change.rule.name()).unwrap();
                }
            }
            Err(fault) => writeln!(out, "cannot: {fault}").unwrap(),
        }
    }
    out
}

macro_rules! golden {
    ($name:ident, $schema:expr) => {
        #[test]
        fn $name() {
            insta::assert_snapshot!(table(&$schema));
        }
    };
}

golden!(
    an_optional_property,
    json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "note": {"type": "string", "description": "a remark"},
            "maybe": {"type": ["string", "null"]},
            "kind": {"enum": ["a", "b"]},
            "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]}
        },
        "required": ["id"],
        "additionalProperties": false
    })
);

golden!(a_root_that_is_no_object, json!({"type": "array", "items": {"type": "string"}}));

golden!(
    maps,
    json!({
        "type": "object",
        "properties": {
            "scores": {"type": "object", "additionalProperties": {"type": "number"}},
            "labels": {"type": ["object", "null"], "additionalProperties": {"type": "string"},
                       "propertyNames": {"pattern": "^[a-z]+$"}, "minProperties": 1},
            "codes": {"type": "object", "patternProperties": {"^x-": {"type": "string"}},
                      "additionalProperties": false},
            "mixed": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
                      "additionalProperties": {"type": "integer"}},
            "either": {"type": ["object", "array"], "additionalProperties": {"type": "string"},
                       "items": {"type": "string"}}
        },
        "required": ["scores", "labels", "codes", "mixed", "either"],
        "additionalProperties": false
    })
);

golden!(
    unions_and_constants,
    json!({
        "type": "object",
        "properties": {
            "pay": {"oneOf": [
                {"type": "object", "properties": {"kind": {"const": "card"}, "digits": {"type": "string"}},
                 "required": ["kind", "digits"], "additionalProperties": false},
                {"type": "object", "properties": {"kind": {"const": "cash"}},
                 "required": ["kind"], "additionalProperties": false}
            ]},
            "level": {"enum": ["low", "high", null]},
            "flag": {"enum": [true, 1, "yes"]},
            "many": {"type": ["string", "integer", "null"]},
            "mixed": {"type": "object", "properties": {"a": {"type": "string"}},
                      "anyOf": [{"required": ["a"]}, {"properties": {"b": {"type": "string"}}, "required": ["b"]}]}
        },
        "required": ["pay", "level", "flag", "many", "mixed"],
        "additionalProperties": false
    })
);

golden!(
    all_of,
    json!({
        "$defs": {"Base": {"type": "object", "properties": {"id": {"type": "integer", "minimum": 1}}, "required": ["id"]}},
        "allOf": [
            {"$ref": "#/$defs/Base"},
            {"type": "object", "properties": {"name": {"type": "string"}, "id": {"maximum": 9}}, "required": ["name"]},
            {"not": {"required": ["x"]}},
            {"not": {"required": ["y"]}}
        ],
        "unevaluatedProperties": false
    })
);

golden!(
    a_recursion,
    json!({
        "$ref": "#/$defs/Node",
        "$defs": {"Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "next": {"$ref": "#/$defs/Node", "description": "the one behind"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}
            },
            "required": ["name", "children"],
            "additionalProperties": false
        }}
    })
);

golden!(
    a_recursion_without_an_end,
    json!({
        "$ref": "#/$defs/Node",
        "$defs": {"Node": {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/Node"}},
            "required": ["next"],
            "additionalProperties": false
        }}
    })
);

golden!(
    a_recursion_at_the_root,
    json!({
        "anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"$ref": "#"}}
        ]
    })
);

golden!(
    references,
    json!({
        "type": "object",
        "properties": {
            "from": {"$ref": "#/definitions/Place"},
            "to": {"$ref": "#/definitions/Place", "description": "where it goes"},
            "same": {"$ref": "#/properties/from"}
        },
        "required": ["from", "to", "same"],
        "additionalProperties": false,
        "definitions": {
            "Place": {"type": "object", "properties": {"city": {"$ref": "#/definitions/City"}},
                      "required": ["city"], "additionalProperties": false},
            "City": {"type": "string", "minLength": 2},
            "Unused": {"not": {}}
        }
    })
);

golden!(
    constraints,
    json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "multipleOf": 2},
            "x": {"type": "number", "minimum": 0.5, "maximum": 2},
            "s": {"type": "string", "minLength": 2, "maxLength": 5, "default": "ab"},
            "p": {"type": "string", "pattern": "a+", "maxLength": 5},
            "look": {"type": "string", "pattern": "^(?=a).*$"},
            "whole": {"type": "string", "pattern": "^a|b$"},
            "day": {"type": "string", "format": "date"},
            "link": {"type": "string", "format": "uri", "minLength": 9},
            "odd": {"type": "string", "format": "idn-email"},
            "list": {"type": "array", "items": {"type": "string"}, "minItems": 2, "maxItems": 4,
                     "uniqueItems": true, "contains": {"const": "a"}},
            "pair": {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}],
                     "items": false, "minItems": 2},
            "when": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"],
                     "additionalProperties": false, "minProperties": 1,
                     "if": {"required": ["a"]}, "then": {"required": ["a"]},
                     "dependentRequired": {"a": ["a"]}, "propertyNames": {"pattern": "^a$"}}
        },
        "required": ["n", "x", "s", "p", "look", "whole", "day", "link", "odd", "list", "pair", "when"],
        "additionalProperties": false
    })
);

golden!(any_value, json!({"type": "object", "properties": {"extra": {}}, "required": ["extra"]}));

golden!(
    an_open_object,
    json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})
);
