//! Replies in the lowered form, taken back to the form of the source schema.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use backstay_wire::lower::{CannotLower, Lowering, RepeatedKey, Rule, Subset, lower};
use jsonmend::{Mender, Policy, Status};
use serde_json::{Value, json};

fn lowering(schema: &Value, subset: Subset) -> Lowering {
    lower(schema, subset).unwrap().lowering
}

/// The text and the events, or the fault; `None` where nothing is undone.
fn undone(lowering: &Lowering, reply: &str) -> Result<Option<(String, Vec<String>)>, RepeatedKey> {
    let outcome = Mender::new(Policy::strict()).mend(reply, Status::Stopped);
    let document = outcome.document().unwrap();
    let undone = lowering.undo(document.root(reply).unwrap())?;
    let event =
        |event: &backstay_wire::lower::Event| format!("{} {}", event.kind.name(), event.pointer);
    Ok(undone.map(|undone| (undone.text, undone.events.iter().map(event).collect())))
}

fn told(lowering: &Lowering, reply: &str) -> (String, String) {
    let (text, events) = undone(lowering, reply).unwrap().unwrap();
    (text, events.join("; "))
}

#[test]
fn a_null_that_stands_for_nothing_is_dropped_and_one_that_is_meant_stays() {
    let schema = json!({
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "note": {"type": "string"},
            "maybe": {"type": ["string", "null"]},
            "inner": {"type": "object", "properties": {"x": {"type": "number"}}}
        },
        "required": ["id"],
        "additionalProperties": false
    });
    let lowering = lowering(&schema, Subset::OpenaiStrict);
    let reply =
        r#"{ "id": 12345678901234567890123, "note": null, "maybe": null, "inner": {"x": null} }"#;
    assert_eq!(
        told(&lowering, reply),
        (
            r#"{"id":12345678901234567890123,"maybe":null,"inner":{}}"#.to_owned(),
            "lowered_null_dropped /note; lowered_null_dropped /inner/x".to_owned()
        )
    );
    let whole = r#"{"id":1,"note":"a","maybe":null,"inner":null}"#;
    assert_eq!(told(&lowering, whole).1, "lowered_null_dropped /inner");
    // Nothing to undo: the reply's own bytes stand.
    assert_eq!(undone(&lowering, r#"{"id": 1, "note": "a"}"#), Ok(None));
}

#[test]
fn a_wrapped_root_is_unwrapped_with_its_digits() {
    let lowering =
        lowering(&json!({"type": "array", "items": {"type": "number"}}), Subset::Anthropic);
    assert_eq!(
        told(&lowering, r#"{"value": [1.10, 2e2, -0]}"#),
        ("[1.10,2e2,-0]".to_owned(), "lowered_value_unwrapped ".to_owned())
    );
    // A provider that did not hold to the wrapping.
    assert_eq!(undone(&lowering, "[1]"), Ok(None));
    assert_eq!(undone(&lowering, r#"{"value": [1], "more": 2}"#), Ok(None));
}

#[test]
fn entries_are_a_map_again_and_a_repeated_key_is_an_error_with_its_pointer() {
    let schema = json!({
        "type": "object",
        "properties": {"by/lang": {"type": "object", "additionalProperties": {
            "type": "object", "additionalProperties": {"type": "integer"}
        }}},
        "required": ["by/lang"],
        "additionalProperties": false
    });
    let lowering = lowering(&schema, Subset::OpenaiStrict);
    let reply = r#"{"by/lang": [{"key": "de", "value": [{"value": 007e1, "key": "a\u00e4"}]}, {"key": "fr", "value": []}]}"#
        .replace("007e1", "7e1");
    assert_eq!(
        told(&lowering, &reply),
        (
            r#"{"by/lang":{"de":{"a\u00e4":7e1},"fr":{}}}"#.to_owned(),
            "lowered_map_rebuilt /by~1lang; lowered_map_rebuilt /by~1lang/de; \
             lowered_map_rebuilt /by~1lang/fr"
                .to_owned()
        )
    );
    let twice = r#"{"by/lang": [{"key": "de", "value": [{"key": "a", "value": 1}, {"key": "\u0061", "value": 2}]}]}"#;
    let fault = undone(&lowering, twice).unwrap_err();
    assert_eq!(fault.to_string(), "/by~1lang/de: key 'a' comes twice");
    // Entries that are none are left for the full check.
    assert_eq!(undone(&lowering, r#"{"by/lang": [{"key": 1, "value": []}]}"#), Ok(None));
    assert_eq!(undone(&lowering, r#"{"by/lang": {"de": {"a": 1}}}"#), Ok(None));
}

#[test]
fn further_keys_are_put_back_beside_the_named_ones() {
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}, "additional_properties": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": {"type": "integer"}
    });
    let lowering = lowering(&schema, Subset::OpenaiStrict);
    let reply = r#"{"a":"x","additional_properties":null,"additional_properties_":[{"key":"b","value":1}]}"#;
    assert_eq!(
        told(&lowering, reply),
        (
            r#"{"a":"x","b":1}"#.to_owned(),
            "lowered_null_dropped /additional_properties; lowered_map_rebuilt ".to_owned()
        )
    );
    let twice = r#"{"additional_properties_":[{"key":"a","value":1}],"a":"x"}"#;
    assert_eq!(undone(&lowering, twice).unwrap_err().key, "a");
}

#[test]
fn the_branch_of_a_union_is_told_by_what_the_reply_holds() {
    let schema = json!({"anyOf": [
        {"type": "object", "properties": {"kind": {"const": "map"},
            "of": {"type": "object", "additionalProperties": {"type": "string"}}},
         "required": ["kind", "of"], "additionalProperties": false},
        {"type": "object", "properties": {"kind": {"const": "list"},
            "of": {"type": "array", "items": {"type": "object",
                "properties": {"key": {"type": "string"}, "value": {"type": "string"}},
                "required": ["key", "value"], "additionalProperties": false}}},
         "required": ["kind", "of"], "additionalProperties": false}
    ]});
    let lowering = lowering(&schema, Subset::Anthropic);
    let of =
        |kind: &str| format!(r#"{{"value":{{"kind":"{kind}","of":[{{"key":"a","value":"b"}}]}}}}"#);
    assert_eq!(told(&lowering, &of("map")).0, r#"{"kind":"map","of":{"a":"b"}}"#);
    assert_eq!(told(&lowering, &of("list")).0, r#"{"kind":"list","of":[{"key":"a","value":"b"}]}"#);
}

#[test]
fn a_recursive_schema_is_undone_at_every_depth() {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string"}, "next": {"$ref": "#"}},
        "required": ["name"],
        "additionalProperties": false
    });
    let lowering = lowering(&schema, Subset::OpenaiStrict);
    let reply = r#"{"name":"a","next":{"name":"b","next":{"name":"c","next":null}}}"#;
    assert_eq!(
        told(&lowering, reply),
        (
            r#"{"name":"a","next":{"name":"b","next":{"name":"c"}}}"#.to_owned(),
            "lowered_null_dropped /next/next/next".to_owned()
        )
    );
}

#[test]
fn a_schema_that_fits_leaves_every_reply_alone() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}},
                        "required": ["a"], "additionalProperties": false});
    for subset in Subset::ALL {
        let lowering = lowering(&schema, subset);
        assert!(!lowering.acts(), "{}", subset.name());
        assert_eq!(undone(&lowering, r#"{"a":null,"value":1}"#), Ok(None));
    }
}

/// What becomes of `{"p": null}` where `p` is optional and the definitions are `defs`.
fn null_of(p: &Value, defs: &Value, draft: &str) -> String {
    let schema = json!({"$schema": draft, "type": "object", "properties": {"p": p},
                        "additionalProperties": false, "$defs": defs});
    let lowered = lower(&schema, Subset::OpenaiStrict).unwrap();
    let kept = lowered.lowering.changes().iter().any(|change| change.rule == Rule::NullKept);
    let text = match undone(&lowered.lowering, r#"{"p":null}"#).unwrap() {
        Some((text, _)) => text,
        None => r#"{"p":null}"#.to_owned(),
    };
    assert_eq!(kept, text != "{}", "a kept `null` is told: {p}");
    let sent = &lowered.schema["properties"]["p"];
    assert!(!sent.to_string().contains("[]"), "{sent}");
    text
}

#[test]
fn a_null_is_dropped_only_where_the_source_surely_refuses_it() {
    let defs = json!({
        "chain": {"$ref": "#/$defs/b"}, "b": {"type": ["string", "null"]},
        "all": {"allOf": [{"type": ["string", "null"]}]},
        "text": {"type": "string"}, "to_text": {"$ref": "#/$defs/text"},
        "loop": {"anyOf": [{"$ref": "#/$defs/loop"}, {"type": "string"}]}
    });
    let new = "https://json-schema.org/draft/2020-12/schema";
    let old = "http://json-schema.org/draft-07/schema#";
    let of = |name: &str| json!({"$ref": format!("#/$defs/{name}")});
    let maybe = json!(["string", "null"]);
    for p in [
        of("chain"),
        of("all"),
        json!({"minLength": 2}),
        json!({"properties": {"z": {"type": "string"}}, "additionalProperties": false}),
        json!({"oneOf": [{"type": "string"}, {"type": "null"}]}),
        json!({"allOf": [{"type": maybe}, {"enum": ["a", null]}]}),
        json!({"type": maybe, "if": {"type": "string"}, "then": {"minLength": 3}}),
        json!({"type": maybe, "not": {"const": "a"}}),
        json!({"anyOf": [{"type": "string"}, of("chain")]}),
        json!({"$ref": "#/$defs/chain", "description": "x"}),
    ] {
        assert_eq!(null_of(&p, &defs, new), r#"{"p":null}"#, "{p}");
    }
    for p in [
        of("text"),
        of("to_text"),
        json!({"type": maybe, "not": {"type": "null"}}),
        json!({"type": maybe, "if": {"type": "null"}, "then": false}),
        json!({"oneOf": [{"type": maybe}, {"type": ["integer", "null"]}]}),
        json!({"type": maybe, "enum": ["a", "b"]}),
        json!({"$ref": "#/$defs/chain", "type": "string"}),
        json!({"allOf": [{"type": maybe}, {"minLength": 1, "type": "string"}]}),
        json!({"const": "a"}),
    ] {
        assert_eq!(null_of(&p, &defs, new), "{}", "{p}");
    }
    // Up to draft 7 nothing counts beside a reference. Where it cannot be told, the `null` stays.
    let beside = json!({"$ref": "#/$defs/chain", "type": "string"});
    assert_eq!(null_of(&beside, &defs, old), r#"{"p":null}"#);
    assert_eq!(null_of(&of("loop"), &defs, new), r#"{"p":null}"#);
}

#[test]
fn a_tuple_is_undone_place_by_place() {
    let one = json!({"type": "object", "properties": {"o": {"type": "string"}},
                     "additionalProperties": false});
    let two = json!({"type": "object", "properties": {"o": {"type": ["string", "null"]}},
                     "additionalProperties": false});
    let map = json!({"type": "object", "additionalProperties": {"type": "integer"}});
    let list = json!({"type": "array", "items": {"type": "object",
        "properties": {"key": {"type": "string"}, "value": {"type": "integer"}},
        "required": ["key", "value"], "additionalProperties": false}});
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["t", "u"],
    "properties": {
        "t": {"type": "array", "prefixItems": [one, two], "items": one},
        "u": {"type": "array", "prefixItems": [list, map, {}, list], "items": false}
    }});
    let mut schema = schema;
    // A tuple in a tuple.
    schema["properties"]["u"]["prefixItems"][2] =
        json!({"type": "array", "prefixItems": [map, list], "items": false});
    let lowering = lowering(&schema, Subset::OpenaiStrict);
    let (o, e) = (r#"{"o":null}"#, r#"[{"key":"a","value":1}]"#);
    let reply = format!(r#"{{"t":[{o},{o},{o},{o}],"u":[{e},{e},[{e},{e}],{e}]}}"#);
    let wanted = format!(r#"{{"t":[{{}},{o},{{}},{{}}],"u":[{e},{{"a":1}},[{{"a":1}},{e}],{e}]}}"#);
    assert_eq!(told(&lowering, &reply).0, wanted);
}

#[test]
fn a_map_beside_a_list_of_its_entries_is_not_sent_as_a_list_of_both() {
    let entry = |value: &Value| {
        json!({"type": "object", "description": "e", "properties": {"key": {"type": "string"}, "value": value},
               "required": ["key", "value"], "additionalProperties": false})
    };
    let integer = json!({"type": "integer"});
    let map = json!({"type": "object", "additionalProperties": integer});
    let list = |items: &Value| json!({"type": "array", "items": items});
    let in_member = |inner: &Value| {
        json!({"type": "object", "properties": {"m": inner}, "required": ["m"],
               "additionalProperties": false})
    };
    let of = |one: &Value, two: &Value| in_member(&json!({"anyOf": [one, two]}));
    let by_name = json!({"type": "object", "properties": {"m": {"anyOf": [{"$ref": "#/$defs/m"}, {"$ref": "#/$defs/l"}]}},
        "required": ["m"], "additionalProperties": false,
        "$defs": {"m": map, "l": list(&entry(&integer))}});
    for schema in [
        of(&map, &list(&entry(&integer))),
        of(&in_member(&map), &in_member(&list(&entry(&integer)))),
        by_name,
    ] {
        for subset in [Subset::OpenaiStrict, Subset::Anthropic, Subset::GeminiResponseSchema] {
            let fault = lower(&schema, subset).map(|lowered| lowered.schema);
            assert!(matches!(fault, Err(CannotLower::Ambiguous(_))), "{fault:?}");
        }
        assert!(lower(&schema, Subset::Xgrammar).is_ok());
    }
    // What can be told apart but for an empty list is sent, and the empty list is named.
    let schema = of(&map, &list(&json!({"type": "string"})));
    let lowering = lowering(&schema, Subset::OpenaiStrict);
    assert!(lowering.changes().iter().any(|change| change.rule == Rule::Ambiguous));
    assert_eq!(undone(&lowering, r#"{"m":[]}"#), Ok(None));
    assert_eq!(told(&lowering, r#"{"m":[{"key":"a","value":1}]}"#).0, r#"{"m":{"a":1}}"#);
    assert_eq!(undone(&lowering, r#"{"m":["a"]}"#), Ok(None));
}
