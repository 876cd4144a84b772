//! Our own annotations never reach a provider.

use backstay_wire::lower::{Subset, cut_own, instruction, lower, without_own};
use serde_json::{Value, json};

/// Annotations wherever a schema stands, and their name wherever none does.
fn annotated() -> Value {
    json!({
        "x-backstay-note": 1,
        "type": "object",
        "properties": {
            "x-backstay-fallback": {"type": "string", "x-backstay-fallback": "a"},
            "state": {"enum": ["on", "off"], "x-backstay-fallback": "off"},
            "kept": {"const": {"x-backstay-a": 1}, "default": {"x-backstay-a": 1},
                     "examples": [{"x-backstay-a": 1}], "enum": [{"x-backstay-a": 1}]},
            "list": {"type": "array", "prefixItems": [{"type": "string", "x-backstay-a": {}}],
                     "items": {"anyOf": [{"x-backstay-b": 1, "type": "null"}]}}
        },
        "required": ["x-backstay-fallback"],
        "$defs": {"x-backstay-d": {"allOf": [{"not": {"x-backstay-c": []}}]}},
        "dependentSchemas": {"state": {"if": {"x-backstay-c": 0}, "x-backstay-z": 0}}
    })
}

#[test]
fn our_annotations_are_taken_out_where_a_schema_stands_and_nowhere_else() {
    let stripped = without_own(&annotated()).unwrap();
    let wanted = json!({
        "type": "object",
        "properties": {
            "x-backstay-fallback": {"type": "string"},
            "state": {"enum": ["on", "off"]},
            "kept": {"const": {"x-backstay-a": 1}, "default": {"x-backstay-a": 1},
                     "examples": [{"x-backstay-a": 1}], "enum": [{"x-backstay-a": 1}]},
            "list": {"type": "array", "prefixItems": [{"type": "string"}],
                     "items": {"anyOf": [{"type": "null"}]}}
        },
        "required": ["x-backstay-fallback"],
        "$defs": {"x-backstay-d": {"allOf": [{"not": {}}]}},
        "dependentSchemas": {"state": {"if": {}}}
    });
    assert_eq!(stripped, wanted);
    assert_eq!(without_own(&wanted), None);
    let cut = cut_own(&annotated().to_string(), &[]).unwrap();
    assert_eq!(cut, wanted.to_string());
}

#[test]
fn only_the_annotation_is_cut_out_of_the_bytes() {
    let cut = |text: &str| cut_own(text, &["*", "function", "parameters"]);
    for (before, after) in [
        (r#"{ "x-backstay-a" : 1 , "b":1.50 }"#, r#"{ "b":1.50 }"#),
        (r#"{"b": 1.50 ,"x-backstay-a":[{"q":"}"}] }"#, r#"{"b": 1.50 }"#),
        (r#"{"b":1,  "x-backstay-a":1, "x-backstay-c":2 ,"d":2}"#, r#"{"b":1,  "d":2}"#),
        (r#"{"b":1, "x-backstay-a":1, "x-backstay-c":2}"#, r#"{"b":1}"#),
        (r#"{ "x-backstay-a":1, "x-backstay-c":2 }"#, r"{  }"),
        (r#"{"\u0078-backstay-a":"\"", "b":"\u00e4"}"#, r#"{"b":"\u00e4"}"#),
        (r#"{"x-backstay-a":{"not":{"x-backstay-a":1}},"b":1e0}"#, r#"{"b":1e0}"#),
    ] {
        let around = |schema: &str| {
            format!(r#"[ {{"x-backstay-k":1, "function":{{"parameters" : {schema} }}}},{{}}]"#)
        };
        assert_eq!(cut(&around(before)), Some(around(after)), "{before}");
        assert_eq!(cut(&around(after)), None, "{after}");
    }
    // What is no JSON, or nests too deep, is left alone.
    for odd in [
        r#"[{"x-backstay-a""#,
        "",
        "x-backstay-a",
        r#"[{"function":{"parameters":{"x-backstay-a":}}}]"#,
    ] {
        assert_eq!(cut(odd), None, "{odd}");
    }
    assert_eq!(cut(&format!("{}x-backstay-", "[".repeat(5_000))), None);
}

#[test]
fn an_annotation_leaves_no_trace_in_any_subset_and_is_no_change() {
    let schema = json!({
        "type": "object",
        "properties": {"s": {"type": "string", "enum": ["a", "b"], "x-backstay-fallback": "b"},
                       "u": {"anyOf": [{"type": "string"}, {"type": "integer"}],
                             "x-backstay-fallback": 1}},
        "required": ["s", "u"],
        "additionalProperties": false
    });
    for subset in Subset::ALL {
        let lowered = lower(&schema, subset).unwrap();
        assert!(!lowered.schema.to_string().contains("x-backstay"), "{}", subset.name());
        let told = lowered.lowering.changes().iter().any(|change| change.what.contains("backstay"));
        assert!(!told, "{}", subset.name());
    }
    assert!(lower(&schema, Subset::OpenaiStrict).unwrap().lowering.is_empty());
    assert!(!instruction(&schema).contains("x-backstay"));
}
