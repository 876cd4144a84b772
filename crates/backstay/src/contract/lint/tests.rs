//! Tables of schemas and what is found in them.

use backstay_wire::lower::Subset;
use serde_json::{Value, json};

use super::{Finding, Lacks, Lint, Longest, Usage, lint, longest};

/// Lints and places, but for those about the input.
fn found(schema: &Value) -> Vec<(&'static str, String)> {
    let findings = lint(schema, &Usage::default()).into_iter();
    findings
        .filter(|finding| finding.lint != Lint::Unchecked)
        .map(|finding| (finding.lint.name(), finding.pointer))
        .collect()
}

fn closed(properties: &Value) -> Value {
    let keys: Vec<&String> = properties.as_object().unwrap().keys().collect();
    json!({"type": "object", "properties": properties, "required": keys,
        "additionalProperties": false})
}

#[test]
fn a_closed_set_needs_a_member_for_none_of_these() {
    let at = |pointer: &str| vec![("schema-no-escape", pointer.to_owned())];
    let set = |members: Value| closed(&json!({"a": {"enum": members}}));
    for (schema, expected) in [
        (set(json!(["red", "green"])), at("/properties/a")),
        (set(json!(["red", "other"])), vec![]),
        (set(json!(["red", "Other reason"])), vec![]),
        (set(json!(["red", "not-applicable", "x"])), vec![]),
        (set(json!(["mother", "another"])), at("/properties/a")),
        (set(json!(["red", "green", null])), vec![]),
        (set(json!(["red"])), vec![]),
        (set(json!([1, 2, 3])), vec![]),
        (closed(&json!({"a": {"enum": ["x", "y"], "x-backstay-fallback": "y"}})), vec![]),
        (closed(&json!({"a": {"anyOf": [{"enum": ["x", "y"]}, {"type": "null"}]}})), vec![]),
        (closed(&json!({"a": {"anyOf": [{"enum": ["x", "y"]}, {"type": "string"}]}})), vec![]),
        (
            closed(&json!({"a": {"anyOf": [{"enum": ["x", "y"]}, {"type": "integer"}]}})),
            at("/properties/a/anyOf/0"),
        ),
        (closed(&json!({"a": {"oneOf": [{"const": "x"}, {"const": "y"}]}})), at("/properties/a")),
        (closed(&json!({"a": {"oneOf": [{"const": "x"}, {"const": "none"}]}})), vec![]),
        // An empty list says it too.
        (closed(&json!({"a": {"type": "array", "items": {"enum": ["x", "y"]}}})), vec![]),
        (
            closed(&json!({"a": {"type": "array", "minItems": 1, "items": {"enum": ["x", "y"]}}})),
            at("/properties/a/items"),
        ),
    ] {
        assert_eq!(found(&schema), expected, "{schema}");
    }
}

#[test]
fn a_definition_is_told_of_once_and_for_its_strictest_use() {
    let mut schema = closed(&json!({
        "a": {"anyOf": [{"$ref": "#/$defs/c"}, {"type": "null"}]},
        "b": {"$ref": "#/$defs/c"},
        "again": {"$ref": "#"}
    }));
    schema["$defs"] = json!({"c": {"enum": ["x", "y"]}, "unused": {"enum": ["x", "y"]}});
    assert_eq!(found(&schema), [("schema-no-escape", "/$defs/c".to_owned())]);
    schema["properties"].as_object_mut().unwrap().remove("b");
    schema["required"] = json!(["a", "again"]);
    assert_eq!(found(&schema), []);
}

#[test]
fn a_key_that_may_be_missing_is_told_of_unless_it_has_a_default() {
    let schema = json!({"type": "object", "additionalProperties": false, "required": ["a"],
        "properties": {"a": {"type": "string"}, "b/c": {"type": "string"}, "d": {"type": "null"},
            "e": {"default": 1}, "f": false}});
    assert_eq!(found(&schema), [("schema-optional-key", "/properties/b~1c".to_owned())]);
    let message = &lint(&schema, &Usage::default())[0].message;
    assert_eq!(message, "`b/c`, `d` may be missing in the reply");
}

#[test]
fn an_object_must_rule_out_other_keys_unless_it_is_a_map() {
    let open = |pointer: &str| vec![("schema-open-object", pointer.to_owned())];
    for (schema, expected) in [
        (json!({"type": "object"}), open("")),
        (json!({"properties": {}}), open("")),
        (json!({"type": ["object", "null"], "additionalProperties": true}), open("")),
        (json!({"type": "object", "additionalProperties": {}}), open("")),
        (json!({"type": "object", "additionalProperties": {"type": "string"}}), vec![]),
        (json!({"type": "object", "unevaluatedProperties": false}), vec![]),
        (
            json!({"type": "object", "unevaluatedProperties": false,
                "allOf": [{"type": "object"}, {"properties": {}}]}),
            vec![],
        ),
        (json!({"type": "array", "items": {"type": "object"}}), open("/items")),
        (json!({"anyOf": [{"type": "object"}, {"type": "null"}]}), open("/anyOf/0")),
        (json!({"type": "string"}), vec![]),
    ] {
        assert_eq!(found(&schema), expected, "{schema}");
    }
}

#[test]
fn nothing_held_against_the_input_is_told_of() {
    let unchecked = |schema: &Value, rules: Option<&[&str]>| {
        let findings = lint(schema, &Usage { rules, ..Usage::default() });
        findings.into_iter().find(|finding| finding.lint == Lint::Unchecked)
    };
    let bare = closed(&json!({"label": {"type": "string"}}));
    let quoting = closed(&json!({"evidence": {"type": "string"}}));
    for key in ["evidence", "ticketId", "source_quotes", "id"] {
        let schema = closed(&json!({key: {"type": "string"}}));
        assert_eq!(unchecked(&schema, None), None, "{key}");
    }
    for key in ["validity", "identity", "quotient"] {
        assert!(unchecked(&closed(&json!({key: {"type": "string"}})), None).is_some(), "{key}");
    }
    assert_eq!(unchecked(&bare, Some(&["input.contains(reply.label)"])), None);
    let told = unchecked(&bare, Some(&[])).unwrap();
    assert_eq!(told.message, "no field of the reply can be compared with the input");
    let told = unchecked(&quoting, Some(&["size(reply.evidence) > 3"])).unwrap();
    assert_eq!(told.pointer, "/properties/evidence");
    assert_eq!(told.message, "no rule compares `evidence` with the input");
}

#[test]
fn the_longest_reply_is_measured_from_the_bounds() {
    for (schema, chars) in [
        (json!({"type": "boolean"}), 5),
        (json!({"type": ["null", "string"], "maxLength": 10}), 12),
        (json!({"enum": ["a", "long", null]}), 6),
        (json!({"const": {"a": [1, 2]}}), 11),
        (json!({"type": "integer", "minimum": -100, "maximum": 20}), 4),
        (json!({"type": "integer"}), 24),
        (json!({"type": "number", "minimum": 0, "maximum": 1}), 19),
        (json!({"type": "string", "format": "date"}), 12),
        (json!({"type": "array", "maxItems": 3, "items": {"type": "boolean"}}), 20),
        (json!({"type": "array", "maxItems": 0}), 2),
        (json!({"type": "array", "uniqueItems": true, "items": {"enum": [1, 2]}}), 6),
        (json!({"type": "array", "prefixItems": [{"const": 1}, {"const": 22}], "items": false}), 7),
        (json!({"type": "object", "properties": {"ab": {"const": 1}, "c": {"const": 2}}}), 15),
        (
            json!({"type": "object", "maxProperties": 2, "propertyNames": {"maxLength": 3},
            "additionalProperties": {"const": 1}}),
            18,
        ),
        (json!({"anyOf": [{"const": 1}, {"const": 333}]}), 3),
        (json!({"$ref": "#/$defs/a", "$defs": {"a": {"const": 4444}}}), 4),
        (json!({"allOf": [{"type": "string"}, {"maxLength": 3}]}), 5),
        (
            json!({"allOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {"const": 1}}}]}),
            16,
        ),
    ] {
        assert_eq!(longest(&schema), Longest::Chars(chars), "{schema}");
    }
}

#[test]
fn what_has_no_longest_says_why() {
    for (schema, reasons) in [
        (json!({"type": "string"}), vec![("", Lacks::MaxLength)]),
        (json!({"type": "string", "pattern": "^a*$"}), vec![("", Lacks::MaxLength)]),
        (json!({}), vec![("", Lacks::Type)]),
        (json!({"type": "array", "items": {"const": 1}}), vec![("", Lacks::MaxItems)]),
        (
            json!({"type": "object", "additionalProperties": {"const": 1}}),
            vec![("", Lacks::MaxProperties)],
        ),
        (
            closed(
                &json!({"a": {"type": "string"}, "b": {"type": "array", "items": {"const": 1}}}),
            ),
            vec![("/properties/a", Lacks::MaxLength), ("/properties/b", Lacks::MaxItems)],
        ),
        (
            closed(&json!({"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}})),
            vec![("", Lacks::End)],
        ),
    ] {
        let Longest::Unbounded(found) = longest(&schema) else { panic!("{schema}") };
        let found: Vec<_> = found.iter().map(|one| (one.pointer.as_str(), one.lacks)).collect();
        assert_eq!(found, reasons, "{schema}");
    }
}

#[test]
fn a_cap_is_held_against_the_longest_reply() {
    let capped = |schema: &Value, cap| {
        let findings = lint(schema, &Usage { cap: Some(cap), ..Usage::default() });
        let about = |finding: &Finding| matches!(finding.lint, Lint::CapTooLow | Lint::NoLongest);
        findings.into_iter().find(about)
    };
    // {"s":"…"} and a comma: 109 characters, at 3 a token 37.
    let schema = closed(&json!({"s": {"type": "string", "maxLength": 100}}));
    assert_eq!(capped(&schema, 37), None);
    let told = capped(&schema, 36).unwrap();
    assert_eq!(told.lint, Lint::CapTooLow);
    assert_eq!(
        told.message,
        "the longest reply has about 109 characters, 37 tokens; the cap is 36"
    );
    let schema = closed(&json!({"s": {"type": "string"}, "t": {"type": "string"}}));
    let told = capped(&schema, 1_000).unwrap();
    assert_eq!((told.lint, told.pointer.as_str()), (Lint::NoLongest, "/properties/s"));
    assert_eq!(
        told.message,
        "the cap is 1000 tokens, and `/properties/s` has no `maxLength`; as have 1 more places"
    );
}

#[test]
fn an_entangled_schema_is_measured_in_good_time() {
    let mut definitions = serde_json::Map::new();
    for level in 0..60 {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        let both = closed(&json!({"a": next, "b": next, "c": {"anyOf": [next, next]}}));
        definitions.insert(format!("d{level}"), both);
    }
    definitions.insert("d60".into(), json!({"type": "boolean"}));
    let schema = json!({"$ref": "#/$defs/d0", "$defs": definitions});
    assert_eq!(longest(&schema), Longest::Chars(u64::MAX));
    assert_eq!(found(&schema), []);
}

#[test]
fn findings_are_bounded_and_a_schema_of_any_form_is_read() {
    let many: serde_json::Map<String, Value> =
        (0..500).map(|at| (format!("k{at}"), json!({"type": "object"}))).collect();
    let findings = lint(&closed(&Value::Object(many)), &Usage::default());
    assert_eq!(findings.len(), super::MAX_FINDINGS + 1);
    for odd in [
        json!(true),
        json!(7),
        json!({"properties": 3, "required": "x", "enum": {}, "items": [1]}),
        json!({"$ref": "#/nowhere", "anyOf": {}, "type": 4, "maxLength": -1}),
    ] {
        lint(&odd, &Usage { rules: Some(&[]), cap: Some(1), subsets: &Subset::ALL });
    }
}

#[test]
fn names_lead_back_to_their_lints() {
    for one in Lint::ALL {
        assert_eq!(Lint::from_name(one.name()), Some(one));
    }
}

#[test]
fn what_a_provider_does_not_enforce_is_told_once_for_each() {
    let schema = closed(&json!({
        "n": {"type": "integer", "minimum": 1, "maximum": 4},
        "m": {"type": "integer", "minimum": 1}
    }));
    let dropped = |subsets: &[Subset]| {
        let findings = lint(&schema, &Usage { subsets, ..Usage::default() }).into_iter();
        let about = findings.filter(|finding| finding.lint == Lint::KeywordDropped);
        about.map(|finding| (finding.pointer, finding.message)).collect::<Vec<_>>()
    };
    assert_eq!(dropped(&[Subset::OpenaiStrict, Subset::Whole]), []);
    assert_eq!(
        dropped(&[Subset::OpenaiStrict, Subset::Anthropic]),
        [(
            "/properties/n/minimum".to_owned(),
            "`anthropic` does not enforce `minimum`, `maximum`".to_owned()
        )]
    );
}
