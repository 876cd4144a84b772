//! Which of several alternatives a value is aligned to, row by row; and when to none.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{aligned, all, parsed, scalars};
use crate::policy::{Align, Enums};
use crate::validate::Schema;
use crate::validate::align::{Asking, Wants, check, fitted, settled};

/// A value of `schema` under the key `v`, beside one that never fits as it is: so the whole breaks
/// its schema, and only what alternatives say decides about `v`.
fn beside(schema: &Value, text: &str) -> (Value, String) {
    let defs = schema.get("$defs").cloned().unwrap_or_else(|| json!({}));
    let schema = json!({"type": "object", "required": ["n", "v"], "$defs": defs,
        "properties": {"n": {"type": "integer"}, "v": schema}});
    (schema, format!(r#"{{"n": "1", "v": {text}}}"#))
}

/// What became of `text`, whether or not the whole fits then.
fn made(schema: &Value, text: &str, align: &Align) -> String {
    let (schema, whole) = beside(schema, text);
    let schema = Schema::compile(&schema).unwrap();
    let made = match fitted(parsed(&whole), &schema, Wants { align, fields: &[] }) {
        Ok(parsed) => parsed.text,
        Err(unfit) => unfit.candidate.unwrap().text,
    };
    let made = made.strip_prefix(r#"{"n": 1, "v": "#).unwrap();
    made.strip_suffix('}').unwrap().to_owned()
}

fn card() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["kind", "digits"],
        "properties": {"kind": {"const": "card"}, "digits": {"type": "string"},
            "sum": {"type": "integer"}}})
}

fn cash() -> Value {
    json!({"type": "object", "additionalProperties": false, "required": ["kind", "coins"],
        "properties": {"kind": {"enum": ["cash"]}, "coins": {"type": "integer"},
            "sum": {"type": "string"}}})
}

fn open(mut schema: Value) -> Value {
    schema.as_object_mut().unwrap().remove("additionalProperties");
    schema
}

fn untagged(mut schema: Value) -> Value {
    schema["properties"].as_object_mut().unwrap().remove("kind");
    schema["required"].as_array_mut().unwrap().remove(0);
    schema
}

/// Schema, text, and what becomes of it.
type Row<'a> = (&'a Value, &'a str, &'a str);

fn holds(rows: &[Row<'_>]) {
    for (schema, text, expected) in rows {
        assert_eq!(made(schema, text, &all()), *expected, "{schema} {text}");
    }
}

#[test]
fn a_constant_names_the_alternative_that_a_value_is_aligned_to() {
    let tagged = json!({"oneOf": [card(), cash()]});
    let wide = json!({"anyOf": [open(card()), open(cash())]});
    let versions = json!({"anyOf": [
        {"properties": {"v": {"const": 1}, "x": {"type": "integer"}}, "required": ["v"]},
        {"properties": {"v": {"const": 2}, "x": {"type": "string"}}, "required": ["v"]}]});
    let nullable = json!({"anyOf": [card(), {"type": "null"}, cash()]});
    let card_is = r#"{"kind": "card", "digits": "12", "sum": 3}"#;
    holds(&[
        (&tagged, r#"{"kind": "card", "digits": 12, "sum": "3"}"#, card_is),
        (&wide, r#"{"kind": "card", "digits": 12, "sum": "3"}"#, card_is),
        (&nullable, r#"{"kind": "card", "digits": 12, "sum": "3"}"#, card_is),
        (&nullable, "null", "null"),
        // Written otherwise, and then as it should be.
        (&tagged, r#"{"kind": "Card", "digits": 12, "sum": "3"}"#, card_is),
        (
            &tagged,
            r#"{"sum": 3, "kind": "cash", "coins": "12", "x": [1]}"#,
            r#"{"sum": "3", "kind": "cash", "coins": 12}"#,
        ),
        (&versions, r#"{"v": 2, "x": 1.50}"#, r#"{"v": 2, "x": "1.50"}"#),
        (&versions, r#"{"v": 1.0, "x": "1"}"#, r#"{"v": 1.0, "x": 1}"#),
    ]);
}

#[test]
fn a_required_key_or_a_type_that_only_one_has_names_it_too() {
    let plain = json!({"anyOf": [untagged(card()), untagged(cash())]});
    let wide = json!({"anyOf": [open(untagged(card())), open(untagged(cash()))]});
    let kinds = json!({"anyOf": [untagged(card()),
        {"type": "array", "items": {"type": "integer"}}, {"type": "string"}]});
    holds(&[
        (&plain, r#"{"digits": 12, "sum": "3"}"#, r#"{"digits": "12", "sum": 3}"#),
        (&wide, r#"{"coins": "12", "sum": 3}"#, r#"{"coins": 12, "sum": "3"}"#),
        (&kinds, r#"{"digits": 12}"#, r#"{"digits": "12"}"#),
        (&kinds, r#"[1, "2"]"#, "[1, 2]"),
        (&kinds, r#""{\"digits\": 12}""#, r#""{\"digits\": 12}""#),
        (&kinds, "5", r#""5""#),
    ]);
}

#[test]
fn what_names_no_alternative_or_two_is_left_as_it_is() {
    let tagged = json!({"anyOf": [card(), cash()]});
    let wide = json!({"anyOf": [open(card()), open(cash())]});
    let plain = json!({"anyOf": [untagged(card()), untagged(cash())]});
    let alike = json!({"anyOf": [{"properties": {"kind": {"const": "on hold"}, "x": {"type": "integer"}}},
        {"properties": {"kind": {"const": "ON_HOLD"}, "x": {"type": "string"}}}]});
    let words = json!({"anyOf": [
        {"properties": {"state": {"enum": ["a", "b"]}, "x": {"type": "integer"}}},
        {"properties": {"state": {"enum": ["c"]}, "x": {"type": "string"}}}]});
    let both = json!({"anyOf": [untagged(card()), untagged(cash())],
        "oneOf": [{"required": ["digits"]}, {"required": ["coins"]}]});
    let untouched: &[(&Value, &str)] = &[
        // The constant names one, the keys the other.
        (&tagged, r#"{"kind": "card", "coins": "12", "sum": 3}"#),
        (&wide, r#"{"kind": "card", "coins": "12", "digits": 1, "sum": "3"}"#),
        (&plain, r#"{"digits": 12, "coins": "12"}"#),
        // Neither.
        (&tagged, r#"{"kind": "cheque", "sum": "3"}"#),
        // A word of neither, whatever the keys say.
        (&tagged, r#"{"kind": "cheque", "digits": 12, "sum": "3"}"#),
        (&tagged, r#"{"kind": {"card": 1}, "digits": 12}"#),
        (&tagged, r#"{"kind": null, "sum": "3"}"#),
        (&tagged, r#"{"kind": ["card"], "sum": "3"}"#),
        (&plain, r#"{"sum": "3", "x": 1}"#),
        (&plain, "{}"),
        // A word that folds into two constants, and no constants.
        (&alike, r#"{"kind": "On-Hold", "x": "1"}"#),
        (&words, r#"{"state": "c", "x": 1}"#),
        // Two unions that hold together.
        (&both, r#"{"digits": 12}"#),
    ];
    for (schema, text) in untouched {
        assert_eq!(made(schema, text, &all()), *text, "{schema}");
    }
    let rest = format!(r#"{{"kind": "{}", "sum": "3"}}"#, "card".repeat(100));
    assert_eq!(made(&tagged, &rest, &all()), rest, "longer than a constant");
}

#[test]
fn what_fits_another_alternative_is_not_bent_into_the_one_that_its_keys_name() {
    let rest = json!({"type": "object", "properties": {"note": {"type": "string"}}});
    let digits = json!({"type": "object", "required": ["digits"],
        "properties": {"digits": {"type": "string"}}});
    let schema = json!({"anyOf": [digits, rest]});
    for text in [r#"{"digits": 12}"#, r#"{"digits": 12, "note": "x"}"#] {
        assert_eq!(made(&schema, text, &all()), text);
        let (whole, beside) = beside(&schema, text);
        assert!(aligned(&whole, &beside, &all()).is_ok(), "it fits as it is");
    }
}

#[test]
fn unions_in_unions_in_lists_and_behind_references_are_gone_into() {
    let schema = json!({
        "$defs": {
            "leaf": {"type": "object", "required": ["kind", "n"],
                "properties": {"kind": {"const": "leaf"}, "n": {"type": "integer"}}},
            "fork": {"type": "object", "required": ["kind", "in"], "properties": {
                "kind": {"const": "fork"},
                "in": {"type": "array", "items": {"$ref": "#/$defs/node"}}}},
            "node": {"oneOf": [{"$ref": "#/$defs/leaf"}, {"$ref": "#/$defs/fork"}]}
        },
        "anyOf": [{"type": "array", "items": {"$ref": "#/$defs/node"}},
            {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "integer"}]}]
    });
    let rows: &[Row<'_>] = &[
        (&schema, r#"{"kind": "leaf", "n": "1"}"#, r#"{"kind": "leaf", "n": 1}"#),
        (
            &schema,
            r#"[{"kind": "FORK", "in": [{"kind": "leaf", "n": "1"}, {"kind": "x", "n": "2"},
                {"kind": "fork", "in": [{"kind": "leaf", "n": "3"}]}]}]"#,
            r#"[{"kind": "fork", "in": [{"kind": "leaf", "n": 1}, {"kind": "x", "n": "2"},
                {"kind": "fork", "in": [{"kind": "leaf", "n": 3}]}]}]"#,
        ),
        (
            &schema,
            r#"{"kind": "leaf", "in": [{"kind": "leaf", "n": "1"}]}"#,
            r#"{"kind": "leaf", "in": [{"kind": "leaf", "n": "1"}]}"#,
        ),
    ];
    holds(rows);
}

#[test]
fn what_holds_beside_the_alternatives_holds_inside_them() {
    let schema = json!({"type": "object", "required": ["kind", "id"],
        "properties": {"kind": {"enum": ["card", "cash"]}, "id": {"type": "integer"}},
        "anyOf": [open(card()), open(cash())]});
    let text = r#"{"kind": "CARD", "id": "7", "digits": 12}"#;
    let expected = r#"{"kind": "card", "id": 7, "digits": "12"}"#;
    assert_eq!(made(&schema, text, &all()), expected);
}

#[test]
fn defaults_and_fallbacks_of_the_named_alternative_count_and_of_the_others_do_not() {
    let mut card = card();
    card["properties"]["digits"]["default"] = json!("none");
    card["properties"]["state"] = json!({"enum": ["ok", "held"], "x-backstay-fallback": "ok"});
    let mut cash = cash();
    cash["properties"]["coins"]["default"] = json!(0);
    cash["properties"]["state"] = json!({"enum": ["no", "held"], "x-backstay-fallback": "no"});
    let schema = json!({"anyOf": [card, cash]});
    let align = Align { enums: Enums::Fallback, ..all() };
    let text = r#"{"kind": "card", "state": "?"}"#;
    let expected = r#"{"kind": "card", "state": "ok", "digits": "none"}"#;
    assert_eq!(made(&schema, text, &align), expected);
    let unnamed = r#"{"kind": "cheque", "state": "?"}"#;
    assert_eq!(made(&schema, unnamed, &align), unnamed);
    // The same when the asking is spent.
    let (schema, text) = beside(&schema, r#"{"kind": "cash", "coins": 1, "state": "?"}"#);
    let schema = Schema::compile(&schema).unwrap();
    let align = Align { enums: Enums::Exact, ..all() };
    let unfit = fitted(parsed(&text), &schema, Wants { align: &align, fields: &[] }).unwrap_err();
    let settled = settled(unfit, &schema, &[], Asking::Spent).ok().unwrap();
    assert_eq!(settled.text, r#"{"n": 1, "v": {"kind": "cash", "coins": 1, "state": "no"}}"#);
}

#[test]
fn a_large_union_against_a_large_reply_ends_soon() {
    let one = |n: usize| {
        let mut properties = serde_json::Map::new();
        properties.insert("kind".to_owned(), json!({"const": format!("kind {n}")}));
        for key in 0..50 {
            properties.insert(format!("k{key}"), json!({"type": "integer"}));
        }
        let required: Vec<String> = properties.keys().cloned().collect();
        json!({"type": "object", "properties": properties, "required": required})
    };
    let all_of_them: Vec<Value> = (0..60).map(one).collect();
    let schema = json!({"type": "array", "items": {"anyOf": all_of_them}});
    let schema = Schema::compile(&schema).unwrap();
    let mut item = serde_json::Map::new();
    item.insert("kind".to_owned(), json!("Kind_59"));
    item.extend((0..50).map(|key| (format!("k{key}"), json!("1"))));
    let text = Value::from(vec![Value::from(item); 300]).to_string();
    let align = all();
    let took = super::seconds(|| {
        let unfit = fitted(parsed(&text), &schema, Wants { align: &align, fields: &[] });
        if let Err(unfit) = unfit {
            settled(unfit, &schema, &[], Asking::Spent).unwrap_err();
        }
    });
    assert!(took < 6.0, "{took} s");
}

/// Values near the alternatives of the property test.
fn near() -> impl Strategy<Value = Value> {
    let scalar = || {
        prop_oneof![
            Just(json!(null)),
            Just(json!(true)),
            (0..20).prop_map(Value::from),
            "[0-9]{1,2}|card|CASH|cash|x".prop_map(Value::from),
        ]
    };
    let key = prop::sample::select(vec!["kind", "digits", "coins", "sum", "note", "in"]);
    let object = prop::collection::vec((key, scalar()), 0..6).prop_map(|members| {
        let members = members.into_iter().map(|(key, value)| (key.to_owned(), value));
        Value::Object(members.collect())
    });
    let inner = prop_oneof![4 => object, 1 => scalar()];
    prop_oneof![
        inner.clone(),
        prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
        inner.prop_map(|inner| json!({"kind": "card", "digits": 1, "in": inner})),
    ]
}

/// Unions of every make: closed and open, tagged and not, with one that takes anything.
fn unions() -> Vec<Value> {
    let wrap = |alternatives: Value| {
        let one = json!({"anyOf": alternatives});
        json!({"anyOf": [one, {"type": "array", "items": one}]})
    };
    let mut deep = card();
    deep["properties"]["in"] = json!({"anyOf": [card(), cash()]});
    vec![
        wrap(json!([card(), cash()])),
        wrap(json!([open(card()), open(cash())])),
        wrap(json!([untagged(card()), untagged(cash())])),
        wrap(json!([open(untagged(card())), open(untagged(cash()))])),
        wrap(json!([card(), open(untagged(cash())), {"type": "null"}])),
        wrap(json!([untagged(card()), {"type": "object"}])),
        wrap(json!([open(untagged(card())), {"properties": {"note": {"type": "string"}}}])),
        wrap(json!([deep, cash()])),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever the union: a value that fits it stays byte for byte, also where something beside it
    /// makes the whole unfit; no scalar comes out that was not in it or in the schema; and what was
    /// aligned once is not aligned again.
    #[test]
    fn a_value_that_fits_a_union_is_never_changed_and_nothing_is_invented(value in near()) {
        let text = value.to_string();
        for schema in unions() {
            let after = made(&schema, &text, &all());
            let compiled = Schema::compile(&schema).unwrap();
            if check(&parsed(&text), &compiled).is_ok() {
                prop_assert_eq!(&after, &text, "{}", schema);
            }
            let (mut had, mut has) = (Vec::new(), Vec::new());
            scalars(&value, &mut had);
            scalars(&parsed(&after).root().unwrap().to_value(), &mut has);
            let known = |scalar: &String| had.contains(scalar)
                || ["card", "cash"].contains(&scalar.as_str());
            prop_assert!(has.iter().all(known), "{} {} {}", schema, text, after);
            prop_assert_eq!(made(&schema, &after, &all()), after);
        }
    }
}
