//! Replies in the lowered form, taken back to the form of the source schema.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use backstay_wire::lower::{Lowering, RepeatedKey, Subset, lower};
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
