//! What is told of values that do not fit, and what a hostile schema may cost.

use serde_json::{Map, json};

use super::super::MAX_ERRORS;
use super::*;

fn errors(schema: &Value, value: &Value) -> Vec<String> {
    let schema = Schema::compile(schema).unwrap();
    schema.check(value).err().map(|unfit| unfit.errors).unwrap_or_default()
}

fn fault(schema: &Value) -> SchemaFault {
    Schema::compile(schema).unwrap_err()
}

/// Definitions that each refer twice to the next, under `keyword`: 2^`count` paths.
fn doubling(keyword: &str, count: usize, last: &Value) -> Value {
    let mut defs = Map::new();
    for n in 0..count {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        defs.insert(format!("d{n}"), json!({ keyword: [next.clone(), next] }));
    }
    defs.insert(format!("d{count}"), last.clone());
    json!({ "$defs": defs, "$ref": "#/$defs/d0" })
}

fn nested(depth: usize) -> Value {
    (0..depth).fold(json!({"z": 1}), |inner, _| json!({ "a": inner }))
}

#[test]
fn every_kind_of_error_has_its_sentence() {
    let rows = [
        (json!({"required": ["a"]}), json!({}), "missing 'a'"),
        (
            json!({"additionalProperties": false}),
            json!({"b": 1}),
            "top level has keys, none are allowed",
        ),
        (
            json!({"properties": {"a": {}}, "additionalProperties": false}),
            json!({"b": 1}),
            "unexpected 'b'",
        ),
        (json!({"unevaluatedProperties": false}), json!({"b": 1}), "unexpected 'b'"),
        (json!({"type": "object"}), json!([1]), "top level is not an object"),
        (json!({"type": "array"}), json!(1), "top level should be array"),
        (json!({"minimum": 3}), json!(1), "top level below 3"),
    ];
    for (schema, value, expected) in rows {
        assert_eq!(errors(&schema, &value), [expected], "{schema}");
    }
    let of_a = [
        (json!({"type": "integer"}), json!("2"), "'a' should be int"),
        (json!({"type": "integer"}), json!(true), "'a' should be int"),
        (json!({"type": "integer"}), json!(2.5), "'a' should be int"),
        (json!({"type": "number"}), json!("2"), "'a' should be number"),
        (json!({"type": "string"}), json!(2), "'a' should be str"),
        (json!({"type": "boolean"}), json!("true"), "'a' should be bool"),
        (json!({"type": "object"}), json!([]), "'a' should be object"),
        (json!({"type": ["string", "null"]}), json!(1), "'a' should be null or str"),
        (json!({"enum": ["x", 2]}), json!("payments"), "a 'payments' not in enum"),
        (json!({"enum": ["x", 2]}), json!(3), "a 3 not in enum"),
        (json!({"const": "x"}), json!("y"), "a should be 'x'"),
        (json!({"minimum": 1, "maximum": 4}), json!(0), "a outside 1..4"),
        (json!({"minimum": 1, "maximum": 4}), json!(5), "a outside 1..4"),
        (json!({"maximum": 4}), json!(5), "a above 4"),
        (json!({"minimum": 1.5}), json!(1), "a below 1.5"),
        (json!({"exclusiveMinimum": 0}), json!(0), "a not above 0"),
        (json!({"exclusiveMaximum": 9}), json!(9), "a not below 9"),
        (json!({"multipleOf": 5}), json!(7), "a is not a multiple of 5"),
        (json!({"maxLength": 3}), json!("éééé"), "a longer than 3 chars"),
        (json!({"minLength": 1}), json!(""), "a shorter than 1 chars"),
        (json!({"pattern": "^x"}), json!("y"), "a does not match the pattern ^x"),
        (json!({"minItems": 2}), json!([1]), "a has fewer than 2 items"),
        (json!({"maxItems": 1}), json!([1, 2]), "a has more than 1 items"),
        (json!({"uniqueItems": true}), json!([1, 1.0]), "a has the same item twice"),
        (json!({"minProperties": 1}), json!({}), "a has fewer than 1 keys"),
        (json!({"not": {"type": "null"}}), json!(null), "a is of a form that is ruled out"),
        (json!(false), json!(1), "a is not allowed"),
        (
            json!({"propertyNames": {"maxLength": 1}}),
            json!({"bb": 1}),
            "a has a key that is not allowed: 'bb'",
        ),
    ];
    for (schema, value, expected) in of_a {
        let schema = json!({ "properties": { "a": schema } });
        assert_eq!(errors(&schema, &json!({ "a": value })), [expected], "{schema}");
    }
}

#[test]
fn a_whole_number_written_with_a_point_is_an_integer() {
    let schema = json!({"properties": {"a": {"type": "integer"}}});
    assert_eq!(errors(&schema, &json!({"a": 2.0})), [""; 0]);
}

#[test]
fn the_formats_that_providers_enforce_are_checked_in_every_draft_and_others_are_not() {
    for draft in ["draft/2020-12/schema", "draft-07/schema#"] {
        let draft = format!(
            "http{}://json-schema.org/{draft}",
            if draft.ends_with('#') { "" } else { "s" }
        );
        let wrong = |format: &str, value: &str| {
            let schema = json!({"$schema": draft, "properties": {"b": {"format": format}}});
            errors(&schema, &json!({ "b": value })).concat()
        };
        assert_eq!(wrong("date", "2026-02-28"), "");
        assert_eq!(wrong("date", "28.2.2026"), "b is not a date such as 2026-11-30");
        assert_eq!(
            wrong("date-time", "today"),
            "b is not a date-time such as 2026-11-30T12:00:00Z"
        );
        assert_eq!(wrong("time", "noon"), "b is not a time such as 12:00:00Z");
        assert_eq!(wrong("email", "no address"), "b is not an email address");
        assert_eq!(wrong("hostname", "-"), "b is not a hostname");
        assert_eq!(wrong("ipv4", "1.2.3"), "b is not an IPv4 address");
        assert_eq!(wrong("ipv6", "1.2.3.4"), "b is not an IPv6 address");
        assert_eq!(wrong("uri", "/there"), "b is not a URI");
        assert_eq!(wrong("uuid", "2eb8aa08-aa98-11ea-b4aa-73b441d16380"), "");
        assert_eq!(wrong("uuid", "2eb8aa08aa98-11ea-b4aa-73b441d163800"), "b is not a UUID");
        for (format, value) in [("regex", "("), ("uri-reference", "\\"), ("int32", "x")] {
            assert_eq!(wrong(format, value), "", "{format}");
        }
    }
    let wrong = |format: &str| errors(&json!({ "format": format }), &json!("x")).concat();
    assert_eq!(wrong("duration"), "top level is not a duration such as P3DT12H");
    // Of a value that is no text a format says nothing.
    assert_eq!(errors(&json!({"format": "date"}), &json!(7)), [""; 0]);
    let noted =
        Schema::compile_under(&json!({"format": "date"}), &Documents::new(), Formats::Noted);
    assert!(noted.unwrap().check(&json!("x")).is_ok());
}

#[test]
fn a_deeper_value_gets_its_pointer_in_front() {
    let item = json!({
        "type": "object",
        "properties": {"sku": {}, "qty": {"type": "integer", "minimum": 1, "maximum": 9}},
        "required": ["sku"],
        "additionalProperties": false
    });
    let schema = json!({
        "properties": {"items": {"items": {"$ref": "#/$defs/item"}}, "a/b": {"type": "string"}},
        "$defs": {"item": item}
    });
    let value = json!({
        "items": [{"qty": "1"}, {"sku": 1, "qty": 10, "x": 1}, 7],
        "a/b": 1
    });
    assert_eq!(
        errors(&schema, &value),
        [
            "/items/0/qty: 'qty' should be int",
            "/items/0: missing 'sku'",
            "/items/2: item 2 should be object",
            "'a/b' should be str",
            "/items/1: unexpected 'x'",
            "/items/1/qty: qty outside 1..9",
        ]
    );
}

#[test]
fn alternatives_tell_the_one_that_was_meant() {
    let one = |n: &str, key: &str| json!({"properties": {"t": {"const": n}, key: {"type": "integer"}}, "required": ["t", key]});
    let stated = |tag: Value| json!({"properties": {"t": tag, "state": {"enum": ["on", "off"]}}});
    let nullable = json!({"anyOf": [{"type": "integer"}, {"type": "null"}]});
    let rows = [
        (nullable, json!("x"), vec!["'a' should be int or null"]),
        (
            json!({"anyOf": [one("x", "p"), {"type": "null"}]}),
            json!({"t": "x"}),
            vec!["/a: missing 'p'"],
        ),
        (
            json!({"oneOf": [one("x", "p"), one("y", "q")]}),
            json!({"t": "y", "q": "1"}),
            vec!["/a/q: 'q' should be int"],
        ),
        (
            json!({"oneOf": [stated(json!({"const": "x"})), stated(json!({"enum": ["y"]}))]}),
            json!({"t": "y", "state": "?"}),
            vec!["/a/state: state '?' not in enum"],
        ),
        (
            json!({"anyOf": [{"required": ["p"]}, {"required": ["q", "r"]}]}),
            json!({}),
            vec!["a fits none of 2 alternatives; nearest: /a: missing 'p'"],
        ),
        (
            json!({"oneOf": [{"minimum": 1}, {"maximum": 9}]}),
            json!(5),
            vec!["a fits more than one alternative, must fit one"],
        ),
    ];
    for (schema, value, expected) in rows {
        let schema = json!({ "properties": { "a": schema } });
        assert_eq!(errors(&schema, &json!({ "a": value })), expected, "{schema}");
    }
}

#[test]
fn the_same_errors_come_in_the_same_order_every_time() {
    let keys: Vec<String> = (0..12).map(|n| format!("k{}", n * 7 % 12)).collect();
    let schema = json!({
        "properties": keys.iter().map(|k| (k.clone(), json!({"type": "integer"}))).collect::<Map<_, _>>(),
        "required": ["z", "y", "x"],
    });
    let value: Value =
        keys.iter().rev().map(|k| (k.clone(), json!("no"))).collect::<Map<_, _>>().into();
    let first = errors(&schema, &value);
    assert_eq!(first.len(), 15);
    for _ in 0..20 {
        assert_eq!(errors(&schema, &value), first);
    }
}

#[test]
fn a_thousand_errors_are_told_as_twenty_and_a_count() {
    let told = errors(&json!({"items": {"type": "string"}}), &json!(vec![1; 1_500]));
    assert_eq!(told.len(), MAX_ERRORS);
    assert_eq!(told[MAX_ERRORS - 1], "and 1481 more errors");
    let closed = json!({"properties": {"a": {}}, "additionalProperties": false});
    let one = errors(&closed, &json!({"k".repeat(100_000): 1}));
    assert!(one[0].len() <= 300 && one[0].ends_with("…'"), "{one:?}");
}

#[test]
fn a_reference_that_leaves_the_document_is_named_and_not_followed() {
    for reference in ["http://127.0.0.1:9/x", "file:///etc/passwd", "other.json", "urn:x:y"] {
        let told = fault(&json!({"properties": {"a": {"$ref": reference}}}));
        let SchemaFault::ForeignReference { reference: told } = told else { panic!("{told}") };
        assert!(told.contains(reference), "{told}");
    }
    assert!(matches!(fault(&json!({"$ref": "#/$defs/x"})), SchemaFault::BrokenReference { .. }));
    assert!(matches!(fault(&json!({"$schema": "http://x/y"})), SchemaFault::UnknownDraft { .. }));
    assert!(
        Schema::compile(&json!({"$ref": "https://json-schema.org/draft/2020-12/schema"})).is_ok()
    );
}

#[test]
fn a_schema_that_is_none_is_refused_with_the_place() {
    let told = fault(&json!({"properties": {"a": {"minimum": "x"}}}));
    assert!(
        matches!(&told, SchemaFault::Invalid { pointer, .. } if pointer == "/properties/a/minimum")
    );
    for schema in [json!(1), json!("x"), json!(null), json!([]), json!({"type": "strin"})] {
        assert!(matches!(fault(&schema), SchemaFault::Invalid { .. }), "{schema}");
    }
}

#[test]
fn patterns_run_in_linear_time_or_not_at_all() {
    let long = json!("a".repeat(200_000) + "!");
    assert_eq!(errors(&json!({"pattern": "(a+)+$"}), &long).len(), 1);
    for pattern in ["(?=a)b", "(a)\\1", "((a{1,100}){1,100}){1,100}", "("] {
        let told = fault(&json!({ "pattern": pattern }));
        assert!(matches!(told, SchemaFault::Invalid { .. }), "{pattern}: {told}");
    }
    let many: Map<String, Value> = (0..65).map(|n| (format!("^a{n}"), json!(true))).collect();
    let told = fault(&json!({ "patternProperties": many }));
    assert!(matches!(told, SchemaFault::TooManyPatterns { count: 65, .. }));
}

#[test]
fn references_in_a_circle_end() {
    for schema in [
        json!({"$ref": "#"}),
        json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
        json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
        json!({"$dynamicAnchor": "x", "allOf": [{"$dynamicRef": "#x"}, {"$dynamicRef": "#x"}]}),
    ] {
        errors(&schema, &json!({"a": 1}));
    }
    let tree = json!({"properties": {"a": {"$ref": "#"}, "z": {"type": "string"}}});
    assert_eq!(errors(&tree, &nested(100)).len(), 1);
}

#[test]
fn a_check_that_doubles_with_every_step_is_cut_off() {
    let costly = ["too costly to check against its schema"];
    let last = json!({"type": "integer"});
    for keyword in ["allOf", "anyOf", "oneOf"] {
        assert!(!errors(&doubling(keyword, 60, &last), &json!("x")).is_empty(), "{keyword}");
    }
    assert_eq!(errors(&doubling("allOf", 60, &last), &json!(1)), costly);
    assert_eq!(errors(&doubling("allOf", 60, &json!(true)), &json!({"a": 1})), costly);
    let twice = json!([
        {"properties": {"a": {"$ref": "#"}, "z": {"type": "string"}}},
        {"properties": {"a": {"$ref": "#"}, "z": {"type": "string"}}, "minProperties": 1}
    ]);
    for keyword in ["allOf", "anyOf"] {
        let told = errors(&json!({ keyword: twice }), &nested(100));
        let last = told.last().map(String::as_str);
        assert_eq!(last, Some("does not fit the schema in too many places to list"), "{keyword}");
    }
    // After a check was cut off the next one is whole again.
    assert_eq!(errors(&json!({"required": ["a"]}), &json!({})), ["missing 'a'"]);
}

#[test]
fn a_check_that_goes_too_deep_is_cut_off_before_the_stack_ends() {
    // Two hundred references for each level of the value.
    let mut defs = Map::new();
    for n in 0..200 {
        let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
        defs.insert(format!("d{n}"), json!({ "allOf": [next] }));
    }
    defs.insert("d200".to_owned(), json!({ "properties": { "a": { "$ref": "#/$defs/d0" } } }));
    let schema = json!({ "$defs": defs, "$ref": "#/$defs/d0" });
    assert_eq!(errors(&schema, &nested(3)), [""; 0]);
    assert_eq!(errors(&schema, &nested(120)), ["too costly to check against its schema"]);
    let mut defs = Map::new();
    for n in 0..450 {
        defs.insert(
            format!("d{n}"),
            json!({ "allOf": [{ "$ref": format!("#/$defs/d{}", n + 1) }] }),
        );
    }
    defs.insert("d450".to_owned(), json!({"type": "integer"}));
    let chain = json!({ "$defs": defs, "$ref": "#/$defs/d0" });
    assert_eq!(errors(&chain, &json!("x")), ["top level should be int"]);
}

#[test]
fn a_large_list_is_checked_whole_and_told_short() {
    let schema = json!({"items": {"type": "integer"}, "uniqueItems": true});
    let value: Value = (0..100_000).collect::<Vec<u32>>().into();
    assert_eq!(errors(&schema, &value), [""; 0]);
    let told = errors(&json!({"items": {"type": "string"}}), &value);
    assert_eq!(
        told,
        ["/0: item 0 should be str", "does not fit the schema in too many places to list"]
    );
}
