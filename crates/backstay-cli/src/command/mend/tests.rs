//! What is printed, without a process: the view in place, the lines, the report.

use jsonmend::{Mender, Policy, Status};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::{judge, report, view};

fn placed(raw: &str) -> String {
    view::in_place(raw, &judge(raw, Policy::standard(), Status::Unknown, None))
}

#[test]
fn edits_are_shown_in_the_lines_of_the_reply() {
    let raw = "Sure:\n```json\n{'name': 'Bo',\t\"tags\": [1, True,]}\n```";
    assert_eq!(
        placed(raw),
        "1 | Sure:\n  \
         | ^^^^^\n  \
         = prose_before (lossless): Sure: taken out\n\
         2 | ```json\n  \
         | ^^^^^^^\n  \
         = fence (lossless): ```json taken out\n\
         3 | {'name': 'Bo', \"tags\": [1, True,]}\n  \
         |  ^    ^  ^  ^              ^^^^^\n  \
         = single_quotes ×4 (lossless) at /name: ' becomes \"\n  \
         = python_literal (lossless) at /tags/1: True becomes true\n  \
         = trailing_comma (lossless) at /tags/1: , taken out\n\
         4 | ```\n  \
         | ^^^\n  \
         = fence (lossless) at /tags/1: ``` taken out\n\
         mended, edits: 9"
    );
    assert_eq!(placed("{\"a\": 1}"), "");
}

#[test]
fn both_readings_of_an_ambiguous_reply_are_shown_with_their_edits() {
    assert_eq!(
        placed("[\"a\", \"b\"c\", \"d\"]"),
        "ambiguous at /1: the damage can be explained in two ways, with two values, \
         at line 1, column 9 (two_readings)\n\
         reading 1: [\"a\", \"b\\\"c\", \"d\"]\n\
         1 | [\"a\", \"b\"c\", \"d\"]\n  \
         |         ^\n  \
         = inner_quote (unique) at /1: \\ put in\n\
         reading 2: [\"a\", \"b\",\"c\", \"d\"]\n\
         1 | [\"a\", \"b\"c\", \"d\"]\n  \
         |          ^\n  \
         = missing_comma (unique) at /1: , put in\n  \
         = missing_open_quote (unique) at /2: \" put in"
    );
}

#[test]
fn a_long_line_is_shown_around_its_edits_and_many_edits_are_counted() {
    let far = format!("{{\"a\": \"{}\", \"b\": None, \"c\": 1}}", "x".repeat(500));
    assert_eq!(
        placed(&far),
        "1 | …xxxxxxxxxxxx\", \"b\": None, \"c\": 1}\n  \
         |                      ^^^^\n  \
         = python_literal (lossless) at /b: None becomes null\n\
         mended, edits: 1"
    );
    let many = "{'a': 1, 'b': 2},\n".repeat(50);
    let told = placed(&format!("[{many}]"));
    assert_eq!(told.lines().filter(|line| line.contains(" | ")).count(), 40);
    assert!(told.contains("\nand 121 more edits; --json lists all of them\n"), "{told}");
    // Nothing in a reply may move the cursor.
    assert!(!placed("x\u{1b}[2J\r {\"a\": 1}").contains(['\u{1b}', '\r']));
}

#[test]
fn a_line_for_each_edit_is_what_a_pipe_gets() {
    let raw = "{'a': 1,\n\"b\": [None, {}";
    let told = view::lines(raw, &judge(raw, Policy::standard(), Status::Cut, None));
    assert_eq!(
        told,
        "1:2: single_quotes (lossless) at /a: ' becomes \"\n\
         1:4: single_quotes (lossless) at /a: ' becomes \"\n\
         2:7: python_literal (lossless) at /b/0: None becomes null\n\
         2:15: trunc_container (partial) at /b/0: ]} put in"
    );
}

fn reported(raw: &str, policy: Policy) -> Value {
    serde_json::from_str(&report::json(raw, &judge(raw, policy, Status::Unknown, None))).unwrap()
}

#[test]
fn the_report_has_the_same_members_whatever_came_of_the_reply() {
    for (raw, outcome, value, code) in [
        ("{\"a\": 1}", "valid", json!({"a": 1}), None),
        ("{'a': 1}", "mended", json!({"a": 1}), None),
        ("{\"a\": [1, tr", "partial", json!({"a": [1]}), None),
        ("{\"a\": 1, \"a\": 2}", "ambiguous", Value::Null, Some("duplicate_key")),
        ("nothing here", "rejected", Value::Null, Some("no_document")),
        ("", "rejected", Value::Null, Some("empty")),
    ] {
        let report = reported(raw, Policy::standard());
        let members: Vec<&String> = report.as_object().unwrap().keys().collect();
        assert_eq!(members, ["outcome", "value", "edits", "errors", "readings"]);
        assert_eq!((&report["outcome"], &report["value"]), (&json!(outcome), &value), "{raw}");
        assert_eq!(report["errors"][0]["code"].as_str(), code, "{raw}");
        let doubted = outcome == "ambiguous";
        assert!(doubted || report["readings"] == json!([]), "{raw}");
    }
    let readings = &reported("[\"a\", \"b\"c\", \"d\"]", Policy::standard())["readings"];
    assert_eq!(readings[0]["value"], json!(["a", "b\"c", "d"]));
    assert_eq!(readings[1]["value"], json!(["a", "b", "c", "d"]));
    assert_eq!(readings[1]["edits"][0]["kind"], "missing_comma");
    let edit = &reported("{\n \"a\": None}", Policy::standard())["edits"][0];
    assert_eq!(
        edit,
        &json!({"kind": "python_literal", "class": "lossless", "span": [8, 12], "line": 2,
            "column": 7, "path": "/a", "before": "None", "after": "null"})
    );
}

#[test]
fn numbers_keep_every_digit() {
    #[derive(Deserialize)]
    struct Report {
        value: Box<RawValue>,
    }
    let raw = "{'id': 123456789012345678901234567890, \"price\" : 1.10, \"e\": 1E+2}";
    let told = report::json(raw, &judge(raw, Policy::standard(), Status::Unknown, None));
    let report: Report = serde_json::from_str(&told).unwrap();
    assert_eq!(
        report.value.get(),
        "{\"id\":123456789012345678901234567890,\"price\":1.10,\"e\":1E+2}"
    );
}

/// Valid JSON, a few levels deep.
fn document() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "[ -~\n\té\u{2028}]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("[a-z\" ]{1,4}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn the_reported_value_is_the_one_that_jsonmend_has(
        value in document(), at in any::<prop::sample::Index>(), with in "[\"',\\[\\]{} :]{0,2}",
        policy in prop_oneof![Just(Policy::strict()), Just(Policy::standard()), Just(Policy::lenient())],
    ) {
        let mut raw = format!("{value:#}");
        let place = raw.char_indices().map(|(place, _)| place).nth(at.index(raw.chars().count()));
        let place = place.unwrap();
        let end = raw.char_indices().map(|(end, _)| end).find(|end| *end > place);
        let end = end.unwrap_or(raw.len());
        raw.replace_range(place..end, &with);
        let report = reported(&raw, policy);
        let outcome = Mender::new(policy).mend(&raw, Status::Unknown);
        prop_assert_eq!(&report["outcome"], outcome.name());
        let document = outcome.document();
        let expected = document.map_or(Value::Null, |d| d.root(&raw).unwrap().to_value());
        prop_assert_eq!(&report["value"], &expected);
        prop_assert_eq!(
            report["edits"].as_array().unwrap().len(), document.map_or(0, jsonmend::Document::edit_count)
        );
    }
}
