//! What an outline says, schema by schema.

use serde_json::json;

use super::*;

fn at<'o>(outline: &'o Outline, pointer: &str) -> &'o Spot {
    outline.at(pointer)
}

#[test]
fn types_members_and_enums_are_read_through_references_and_the_one_alternative_beside_null() {
    let outline = Outline::of(&json!({
        "$defs": {
            "state": {"enum": ["on", "off"], "x-backstay-fallback": "off"},
            "node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}, "n": {"type": "integer"}}}
        },
        "type": "object",
        "properties": {
            "s": {"$ref": "#/$defs/state"},
            "maybe": {"anyOf": [{"$ref": "#/$defs/state"}, {"type": "null"}]},
            "either": {"oneOf": [{"type": "string"}, {"type": "object", "properties": {"x": {"type": "string"}}}]},
            "list": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}},
            "node": {"$ref": "#/$defs/node"}
        },
        "required": ["s"],
        "additionalProperties": false
    }));
    assert_eq!(at(&outline, "").kinds, Kinds::OBJECT);
    assert_eq!(at(&outline, "/s").listed, Some(vec![json!("on"), json!("off")]));
    assert_eq!(at(&outline, "/s").fallback, Some(json!("off")));
    assert_eq!(at(&outline, "/maybe").kinds, Kinds::STRING.or(Kinds::NULL));
    assert_eq!(at(&outline, "/maybe").listed, Some(vec![json!("on"), json!("off"), Value::Null]));
    assert_eq!(at(&outline, "/either").kinds, Kinds::STRING.or(Kinds::OBJECT));
    assert_eq!(at(&outline, "/either/x").kinds, Kinds::ANY, "only one alternative says so");
    assert_eq!(at(&outline, "/list/0").kinds, Kinds::STRING);
    assert_eq!(at(&outline, "/list/7").kinds, Kinds::INTEGER);
    assert_eq!(at(&outline, "/node/next/next/n").kinds, Kinds::INTEGER);
    assert_eq!(outline.member(outline.root(), "t"), Member::Forbidden);
    assert_eq!(outline.required(outline.root()), ["s"]);
}

#[test]
fn what_applies_together_is_joined() {
    let outline = Outline::of(&json!({
        "allOf": [
            {"properties": {"a": {"type": ["integer", "string"]}}, "required": ["a"]},
            {"properties": {"a": {"type": "integer"}, "b": {"const": 1}}, "required": ["b", "a"]}
        ],
        "type": "object"
    }));
    assert_eq!(at(&outline, "/a").kinds, Kinds::INTEGER);
    assert_eq!(at(&outline, "/b").listed, Some(vec![json!(1)]));
    assert_eq!(outline.required(outline.root()), ["a", "b"]);
    assert_eq!(outline.member(outline.root(), "z"), Member::Open);
}

#[test]
fn schemas_that_turn_in_circles_or_fan_out_have_an_outline_all_the_same() {
    let circle = json!({"$ref": "#", "allOf": [{"$ref": "#"}, {"$ref": "#"}]});
    assert_eq!(at(&Outline::of(&circle), "").kinds, Kinds::ANY);
    let twice = json!({"$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}},
        "$ref": "#/$defs/a"});
    assert_eq!(at(&Outline::of(&twice), "").kinds, Kinds::ANY);
    assert_eq!(at(&Outline::of(&json!(false)), "").kinds, Kinds::NONE);
    assert_eq!(at(&Outline::of(&json!({"$ref": "#/nowhere"})), "/x/0").kinds, Kinds::ANY);
}
