//! A table of two versions and what is told of them, and the promise behind it.

use serde_json::{Value, json};

use super::Breaks::{self, Both, Nobody, Readers, Stored};
use super::{ChangeKind, Side, against};

fn object(properties: &Value, required: &Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required,
        "additionalProperties": false})
}

/// Kind, pointer and whom it breaks, of every change.
fn changes(old: &Value, new: &Value) -> Vec<(&'static str, String, Breaks)> {
    let told = against(old, new).into_iter();
    told.map(|change| (change.kind.name(), change.pointer, change.breaks)).collect()
}

fn one(kind: ChangeKind, pointer: &str, breaks: Breaks) -> Vec<(&'static str, String, Breaks)> {
    vec![(kind.name(), pointer.to_owned(), breaks)]
}

#[test]
fn equal_schemas_and_other_words_for_people_are_no_change() {
    let old =
        object(&json!({"a": {"type": "string", "title": "A"}, "b": {"$ref": "#"}}), &json!(["a"]));
    assert_eq!(changes(&old, &old), []);
    let mut new = old.clone();
    new["properties"]["a"]["description"] = json!("more");
    new["title"] = json!("T");
    assert_eq!(changes(&old, &new), []);
    let named = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
    let turned = json!({"anyOf": [{"type": "null"}, {"type": "string"}]});
    assert_eq!(changes(&named, &turned), []);
    assert_eq!(changes(&json!({"type": "string"}), &json!({"anyOf": [{"type": "string"}]})), []);
}

#[test]
fn keys_that_come_go_and_change_their_name() {
    let (s, n) = (json!({"type": "string"}), json!({"type": "integer"}));
    let old = object(&json!({"a": s, "b": n}), &json!(["a"]));
    let with = |properties: Value, required: Value| changes(&old, &object(&properties, &required));
    assert_eq!(
        with(json!({"b": n}), json!([])),
        one(ChangeKind::PropertyRemoved, "/properties/a", Both)
    );
    assert_eq!(
        with(json!({"a": s}), json!(["a"])),
        one(ChangeKind::PropertyRemoved, "/properties/b", Stored)
    );
    assert_eq!(
        with(json!({"x": s, "b": n}), json!(["x"])),
        one(ChangeKind::PropertyRenamed, "/properties/x", Both)
    );
    assert_eq!(
        with(json!({"a": s, "b": n, "c": {}}), json!(["a"])),
        one(ChangeKind::PropertyAdded, "/properties/c", Nobody)
    );
    assert_eq!(
        with(json!({"a": s, "b": n, "c": {}}), json!(["a", "c"])),
        one(ChangeKind::PropertyAdded, "/properties/c", Stored)
    );
    assert_eq!(
        with(json!({"a": s, "b": n}), json!(["a", "b"])),
        one(ChangeKind::RequiredAdded, "/properties/b", Stored)
    );
    assert_eq!(
        with(json!({"a": s, "b": n}), json!([])),
        one(ChangeKind::RequiredDropped, "/properties/a", Readers)
    );
    let open = json!({"properties": {"a": s}, "required": ["a"]});
    assert_eq!(
        changes(&open, &json!({"properties": {}})),
        one(ChangeKind::PropertyRemoved, "/properties/a", Readers)
    );
    assert_eq!(
        changes(&json!({"properties": {}}), &json!({"properties": {"a": s}})),
        one(ChangeKind::PropertyAdded, "/properties/a", Stored)
    );
    let told = against(&old, &object(&json!({"b": n}), &json!([])));
    assert_eq!((told[0].side, told[0].message.as_str()), (Side::Old, "`a` is gone"));
}

#[test]
fn types_enums_objects_and_limits() {
    let pattern = |text: &str| json!({"type": "string", "pattern": text});
    for (old, new, kind, breaks) in [
        (json!({"type": "string"}), json!({"type": "integer"}), ChangeKind::TypeChanged, Both),
        (json!({"type": "integer"}), json!({"type": "number"}), ChangeKind::TypeWidened, Readers),
        (json!({"type": "number"}), json!({"type": "integer"}), ChangeKind::TypeNarrowed, Stored),
        (
            json!({"type": "string"}),
            json!({"type": ["string", "null"]}),
            ChangeKind::TypeWidened,
            Readers,
        ),
        (
            json!({"type": ["string", "null"]}),
            json!({"type": "string"}),
            ChangeKind::TypeNarrowed,
            Stored,
        ),
        (json!({}), json!({"type": "string"}), ChangeKind::TypeNarrowed, Stored),
        (json!({"type": "string"}), json!(true), ChangeKind::TypeWidened, Readers),
        (json!({"enum": ["a", "b"]}), json!({"enum": ["a"]}), ChangeKind::MemberRemoved, Stored),
        (json!({"enum": ["a"]}), json!({"enum": ["a", "b"]}), ChangeKind::MemberAdded, Readers),
        (json!({"const": "a"}), json!({"enum": ["a", "b"]}), ChangeKind::MemberAdded, Readers),
        (
            json!({"type": "string"}),
            json!({"type": "string", "enum": ["a"]}),
            ChangeKind::EnumAdded,
            Stored,
        ),
        (
            json!({"type": "string", "enum": ["a"]}),
            json!({"type": "string"}),
            ChangeKind::EnumDropped,
            Readers,
        ),
        (
            json!({"type": "object"}),
            json!({"type": "object", "additionalProperties": false}),
            ChangeKind::ObjectClosed,
            Stored,
        ),
        (
            json!({"type": "object", "additionalProperties": false}),
            json!({"type": "object"}),
            ChangeKind::ObjectOpened,
            Nobody,
        ),
        (json!({"maxLength": 9}), json!({"maxLength": 8}), ChangeKind::Tightened, Stored),
        (json!({"maxLength": 9}), json!({"maxLength": 10}), ChangeKind::Loosened, Readers),
        (json!({"minimum": 1}), json!({"minimum": 2}), ChangeKind::Tightened, Stored),
        (json!({"minimum": 1}), json!({}), ChangeKind::Loosened, Readers),
        (json!({}), json!({"maxItems": 3}), ChangeKind::Tightened, Stored),
        (json!({}), json!({"uniqueItems": true}), ChangeKind::Tightened, Stored),
        (pattern("a"), pattern("b"), ChangeKind::RuleChanged, Both),
        (pattern("a"), json!({"type": "string"}), ChangeKind::Loosened, Readers),
        (json!({"format": "date"}), json!({"format": "date-time"}), ChangeKind::Loosened, Readers),
        (json!({"not": {"const": 1}}), json!({}), ChangeKind::RuleChanged, Both),
        (json!({"allOf": [{}]}), json!({"allOf": [{}, {}]}), ChangeKind::Tightened, Stored),
        (json!({"items": {"type": "string"}}), json!({}), ChangeKind::Loosened, Readers),
    ] {
        assert_eq!(changes(&old, &new), one(kind, "", breaks), "{old} -> {new}");
    }
}

#[test]
fn alternatives_are_paired_before_they_are_compared() {
    let card =
        object(&json!({"kind": {"const": "card"}, "n": {"type": "string"}}), &json!(["kind", "n"]));
    let cash = object(&json!({"kind": {"const": "cash"}}), &json!(["kind"]));
    let mut longer = card.clone();
    longer["properties"]["n"]["maxLength"] = json!(19);
    let old = json!({"anyOf": [card, cash]});
    assert_eq!(
        changes(&old, &json!({"anyOf": [cash, longer]})),
        one(ChangeKind::Tightened, "/anyOf/1/properties/n", Stored)
    );
    assert_eq!(
        changes(&old, &json!({"anyOf": [card]})),
        one(ChangeKind::AlternativeRemoved, "/anyOf/1", Stored)
    );
    assert_eq!(
        changes(&json!({"anyOf": [card]}), &old),
        one(ChangeKind::AlternativeAdded, "/anyOf/1", Readers)
    );
    assert_eq!(
        changes(&card, &json!({"anyOf": [card, {"type": "null"}]})),
        one(ChangeKind::TypeWidened, "/anyOf/1", Readers)
    );
}

#[test]
fn references_are_followed_and_circles_end() {
    let list = |most: u64| {
        json!({"$ref": "#/$defs/node", "$defs": {"node": {"type": "object", "properties": {
            "name": {"type": "string", "maxLength": most},
            "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}}}}})
    };
    assert_eq!(
        changes(&list(5), &list(6)),
        one(ChangeKind::Loosened, "/$defs/node/properties/name", Readers)
    );
    // Inlined, nothing changed.
    let plain = json!({"properties": {"a": {"type": "string"}}});
    let named =
        json!({"properties": {"a": {"$ref": "#/$defs/s"}}, "$defs": {"s": {"type": "string"}}});
    assert_eq!(changes(&plain, &named), []);
    let circle = json!({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}});
    assert_eq!(changes(&circle, &circle), []);
}

#[test]
fn any_two_values_can_be_compared_and_changes_are_bounded() {
    let many = |prefix: &str| {
        let keys = (0..500)
            .map(|at| (format!("{prefix}{at}"), json!({"type": "string", "maxLength": at})));
        json!({"type": "object", "properties": keys.collect::<serde_json::Map<_, _>>()})
    };
    assert_eq!(against(&many("a"), &json!({"type": "object"})).len(), super::MAX_CHANGES);
    for odd in [json!(1), json!([]), json!({"type": 3, "enum": 4, "properties": [], "anyOf": 1})] {
        against(&odd, &many("a"));
        against(&many("a"), &odd);
    }
}
