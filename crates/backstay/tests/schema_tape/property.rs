//! The tape and the `Value` get the same verdict in the same words; and what only the tape can tell.

use backstay::validate::{Schema, Unfit};
use jsonmend::{DupKeys, Mender, Policy, Status};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::checked;

fn scalar() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-40_i32..40).prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        (-99_i32..99).prop_map(|tenths| Value::from(f64::from(tenths) / 10.0)),
        prop::sample::select(vec!["", "a", "b", "abc", "é\n\"\\", "😀😀"]).prop_map(Value::from),
    ]
}

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "a/b~c", "é\"", "a long key of more than 16 bytes"])
        .prop_map(str::to_owned)
}

fn value() -> impl Strategy<Value = Value> {
    scalar().prop_recursive(4, 40, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..5)
                .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
        ]
    })
}

/// One keyword with its value; schemas inside come from `inner`.
fn keyword(inner: BoxedStrategy<Value>) -> BoxedStrategy<(&'static str, Value)> {
    let types = ["null", "boolean", "integer", "number", "string", "array", "object"];
    let one_type = prop::sample::select(types.to_vec());
    let several = prop::sample::subsequence(types.to_vec(), 1..4);
    let size = (0_u8..4).prop_map(Value::from);
    let bound = (-24_i32..24).prop_map(|eighths| Value::from(f64::from(eighths) / 8.0));
    let step = prop::sample::select(vec![json!(1), json!(2), json!(0.1), json!(0.25), json!(1e3)]);
    let sizes = prop::sample::select(vec![
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minProperties",
        "maxProperties",
    ]);
    let bounds =
        prop::sample::select(vec!["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]);
    let nested = prop::sample::select(vec![
        "items",
        "contains",
        "additionalProperties",
        "propertyNames",
        "unevaluatedProperties",
        "unevaluatedItems",
        "not",
        "if",
        "then",
        "else",
    ]);
    let lists = prop::sample::select(vec!["allOf", "anyOf", "oneOf", "prefixItems"]);
    let members = prop::collection::vec((key(), inner.clone()), 0..4)
        .prop_map(|members| Value::from(members.into_iter().collect::<Map<_, _>>()));
    let names = prop::collection::hash_set(key(), 0..3)
        .prop_map(|names| Value::from(names.into_iter().collect::<Vec<_>>()));
    let pattern = prop::sample::select(vec!["^a", "b$", "^a|b|c$", "[0-9]", "^.{2}$"]);
    let by_pattern = (pattern.clone(), inner.clone()).prop_map(|(name, one)| json!({name: one}));
    prop_oneof![
        one_type.prop_map(|name| ("type", name.into())),
        several.prop_map(|names| ("type", names.into())),
        (sizes, size),
        (bounds, bound),
        step.prop_map(|step| ("multipleOf", step)),
        prop::collection::vec(value(), 1..4).prop_map(|values| ("enum", values.into())),
        value().prop_map(|value| ("const", value)),
        any::<bool>().prop_map(|unique| ("uniqueItems", unique.into())),
        pattern.prop_map(|pattern| ("pattern", pattern.into())),
        by_pattern.prop_map(|schema| ("patternProperties", schema)),
        members.prop_map(|members| ("properties", members)),
        names.prop_map(|names| ("required", names)),
        (nested, inner.clone()),
        (lists, prop::collection::vec(inner, 1..4).prop_map(Value::from)),
        Just(("$ref", json!("#/$defs/d"))),
    ]
    .boxed()
}

fn schema() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![4 => Just(json!({})), 1 => Just(json!(true)), 1 => Just(json!(false))];
    let tree = leaf.prop_recursive(3, 24, 4, |inner| {
        prop::collection::vec(keyword(inner.boxed()), 0..4).prop_map(|keywords| {
            let members = keywords.into_iter().map(|(key, value)| (key.to_owned(), value));
            Value::from(members.collect::<Map<_, _>>())
        })
    });
    (tree.clone(), tree)
        .prop_map(|(root, inner)| json!({"$defs": {"d": inner}, "allOf": [root]}))
        .boxed()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn a_tape_and_a_value_get_the_same_verdict_in_the_same_words(
        schema in schema(),
        value in value(),
        pretty in any::<bool>(),
    ) {
        let Ok(compiled) = Schema::compile(&schema) else { return Ok(()) };
        let text = if pretty { format!("{value:#}") } else { value.to_string() };
        prop_assert_eq!(compiled.check(&value), checked(&compiled, &text), "{}", schema);
    }

    #[test]
    fn a_value_equals_itself_in_any_notation(value in value()) {
        let schema = Schema::compile(&json!({"const": value, "enum": [value]})).unwrap();
        prop_assert_eq!(checked(&schema, &value.to_string()), Ok(()));
        let twice = Schema::compile(&json!({"uniqueItems": true})).unwrap();
        let text = format!("[{value}, {value:#}]");
        prop_assert!(checked(&twice, &text).is_err(), "{}", text);
    }
}

fn errors(schema: &Value, text: &str) -> Vec<String> {
    let unfit = checked(&Schema::compile(schema).unwrap(), text).err();
    unfit.map(|unfit: Unfit| unfit.errors).unwrap_or_default()
}

#[test]
fn a_number_counts_with_every_digit_it_was_written_with() {
    let integer = json!({"type": "integer"});
    let unique = json!({"uniqueItems": true});
    let none = [""; 0];
    assert_eq!(errors(&integer, "147573952589676412927"), none);
    assert_eq!(errors(&integer, "1.0"), none);
    assert_eq!(errors(&integer, "1e400"), none);
    assert_eq!(errors(&integer, "147573952589676412927.5"), ["top level should be int"]);
    assert_eq!(errors(&unique, "[147573952589676412927, 147573952589676412928]"), none);
    assert_eq!(errors(&unique, "[1, 1.0]"), ["top level has the same item twice"]);
    assert_eq!(errors(&unique, r#"[{"a":1,"b":2},{"b":2e0,"a":1.0}]"#).len(), 1);
    assert_eq!(errors(&json!({"enum": [1]}), "1.0"), none);
    assert_eq!(errors(&json!({"const": {"a": 1, "b": [2]}}), r#"{"b":[2.0],"a":1}"#), none);
    let told = errors(&json!({"enum": [1]}), "147573952589676412927");
    assert_eq!(told, ["top level 147573952589676412927 not in enum"]);
    let told = errors(&json!({"maximum": u64::MAX}), "18446744073709551616");
    assert_eq!(told, ["top level above 18446744073709551615"]);
}

#[test]
fn decimals_are_multiples_by_what_is_written() {
    let cents = json!({"multipleOf": 0.01});
    for whole in ["0.07", "19.99", "1070468.14", "4.35", "1e2"] {
        assert_eq!(errors(&cents, whole), [""; 0], "{whole}");
    }
    assert_eq!(errors(&cents, "4.355"), ["top level is not a multiple of 0.01"]);
    let seven = json!({"multipleOf": 7});
    assert_eq!(errors(&seven, "147573952589676412929"), ["top level is not a multiple of 7"]);
    assert_eq!(errors(&seven, "147573952589676412926"), [""; 0]);
}

#[test]
fn a_violation_says_where_it_is_and_which_rule_was_broken() {
    let schema = json!({
        "properties": {"items": {"items": {"$ref": "#/$defs/item"}}},
        "$defs": {"item": {
            "properties": {"a/b": {"enum": ["x"]}, "n": {"type": "integer"}},
            "required": ["n"],
            "additionalProperties": false
        }}
    });
    let schema = Schema::compile(&schema).unwrap();
    let text = r#"{"items": [{"n": 1}, {"a/b": "y", "z": 1}]}"#;
    let unfit = checked(&schema, text).unwrap_err();
    let told: Vec<_> = unfit
        .violations
        .iter()
        .map(|one| {
            let (pointer, key) = (one.pointer.as_deref().unwrap(), one.key.as_deref());
            (pointer, key, one.schema_path.as_str(), one.keyword.as_str())
        })
        .collect();
    assert_eq!(
        told,
        [
            ("/items/1", Some("n"), "/$defs/item/required", "required"),
            ("/items/1", Some("z"), "/$defs/item/additionalProperties", "additionalProperties"),
            ("/items/1/a~1b", None, "/$defs/item/properties/a~1b/enum", "enum"),
        ]
    );
    let messages: Vec<_> = unfit.violations.iter().map(|one| one.message.clone()).collect();
    assert_eq!(messages, unfit.errors);
}

#[test]
fn a_key_that_stood_twice_is_checked_as_it_is_used() {
    let schema = json!({"properties": {"a": {"type": "integer"}}, "maxProperties": 1});
    let schema = Schema::compile(&schema).unwrap();
    let text = r#"{"a": "no", "a": 1}"#;
    let policy = Policy { dup_keys: DupKeys::Last, ..Policy::lenient() };
    let outcome = Mender::new(policy).mend(text, Status::Stopped);
    let document = outcome.document().unwrap();
    let root = document.root(text).unwrap();
    assert_eq!(root.to_value(), json!({"a": 1}));
    assert_eq!(schema.check_node(root), Ok(()));
}

#[test]
fn long_keys_above_many_errors_cost_a_short_answer_and_not_the_memory() {
    let schema = json!({"additionalProperties": {"items": {"type": "string"}}});
    let long = "k".repeat(1_000_000);
    let items = vec!["1"; 30_000].join(",");
    let told = errors(&schema, &format!("{{\"{long}\": [{items}]}}"));
    assert_eq!(told.len(), 2, "{told:?}");
    assert_eq!(told[1], "does not fit the schema in too many places to list");
}

#[test]
fn a_text_has_as_many_characters_as_it_stands_for() {
    let limits = |least: u32, most: u32| json!({"minLength": least, "maxLength": most});
    let pair = r#""\ud83d\ude00""#;
    for (text, length) in [
        (r#""""#, 0),
        (r#""a""#, 1),
        (r#""\n""#, 1),
        (r#""\u00e9""#, 1),
        ("\"é😀\"", 2),
        (pair, 1),
        (r#""\ud83d\ude00a\ud83d\ude00""#, 3),
        (r#""\ud83d\ude00\ud83d\ude00\ud83d\ude00""#, 3),
    ] {
        assert_eq!(errors(&limits(length, length), text), [""; 0], "{text}");
        assert_eq!(errors(&limits(0, 20), text), [""; 0], "{text}");
        assert_eq!(errors(&json!({"minLength": length + 1}), text).len(), 1, "{text}");
        let short = json!({"maxLength": length.saturating_sub(1)});
        assert_eq!(errors(&short, text).is_empty(), length == 0, "{text}");
    }
}
