//! The outcome of whole replies, layer by layer.

use std::cell::RefCell;

use backstay_wire::chat::{Finish, Part};
use serde_json::{Value, json};

use super::*;

fn said(text: &str, finish: Finish) -> Choice {
    Choice { parts: vec![Part::Text(text.to_owned())], finish, finish_word: None }
}

fn checks(shape: Shape) -> Checks {
    Checks { shape, rules: Arc::from(Vec::new()), mending: Arc::default() }
}

fn schema(source: &Value) -> Shape {
    Shape::Schema(Arc::new(Schema::compile(source).unwrap()))
}

fn judged(choice: &Choice, checks: &Checks) -> Result<Checked, Unfit> {
    judge(choice, checks, &Asked::nothing())
}

fn fault(choice: &Choice, shape: Shape) -> Fault {
    judged(choice, &checks(shape)).unwrap_err().fault
}

#[test]
fn every_abnormal_end_has_its_fault_whatever_the_text_says() {
    let ends = [
        (Finish::Truncated, Fault::Truncated),
        (Finish::Refused, Fault::Refused),
        (Finish::ContentFiltered, Fault::ContentFiltered),
        (Finish::ContextExceeded, Fault::ContextExceeded),
        (Finish::Paused, Fault::Paused),
        (Finish::Unknown, Fault::UnknownFinish),
    ];
    for (finish, expected) in ends {
        for text in ["{\"a\":1}", "", "not json"] {
            let unfit = judged(&said(text, finish), &checks(Shape::Json)).unwrap_err();
            assert_eq!((unfit.fault, unfit.layer), (expected, Layer::Completion), "{finish:?}");
        }
    }
}

#[test]
fn an_unknown_finish_is_named() {
    let mut choice = said("fine", Finish::Unknown);
    choice.finish_word = Some("hologram".to_owned());
    let unfit = judged(&choice, &checks(Shape::Text)).unwrap_err();
    assert_eq!(unfit.errors, ["unknown finish 'hologram'"]);
    choice.finish_word = None;
    let unfit = judged(&choice, &checks(Shape::Text)).unwrap_err();
    assert_eq!(unfit.errors, ["no finish given"]);
}

#[test]
fn a_refusal_in_its_own_field_counts_however_the_reply_ended() {
    for finish in [Finish::Complete, Finish::Truncated, Finish::Unknown, Finish::ContentFiltered] {
        let mut choice = said("{\"a\":1}", finish);
        choice.parts.push(Part::Refusal("I can't help with that.".to_owned()));
        let unfit = judged(&choice, &checks(Shape::Json)).unwrap_err();
        assert_eq!(unfit.fault, Fault::Refused);
        assert_eq!(unfit.errors, ["I can't help with that."]);
    }
}

#[test]
fn a_reply_that_says_nothing_is_empty_for_every_shape() {
    let thought = Part::Thinking { text: "hm".to_owned(), signature: None };
    let nothing = [vec![], vec![Part::Text(" \n\t".to_owned())], vec![thought]];
    for parts in nothing {
        for finish in [Finish::Complete, Finish::ToolUse] {
            let choice = Choice { parts: parts.clone(), finish, finish_word: None };
            for shape in [Shape::Text, Shape::Json, schema(&json!({}))] {
                assert_eq!(fault(&choice, shape), Fault::Empty);
            }
        }
    }
}

#[test]
fn a_picture_without_text_is_an_answer_in_text_but_not_in_json() {
    let choice = Choice {
        parts: vec![Part::Other(json!({"type": "hologram"}))],
        finish: Finish::Complete,
        finish_word: None,
    };
    assert!(judged(&choice, &checks(Shape::Text)).is_ok());
    assert_eq!(fault(&choice, Shape::Json), Fault::NotJson);
}

fn call(arguments: &str) -> Part {
    Part::ToolCall {
        id: "c1".to_owned(),
        name: "look_up".to_owned(),
        arguments: arguments.to_owned(),
    }
}

#[test]
fn a_tool_call_is_not_held_to_the_schema_or_the_rules() {
    let rule = Rule::compile("never", "false", None, None).unwrap();
    let checks = Checks {
        shape: schema(&json!({"required": ["a"]})),
        rules: Arc::from([rule]),
        mending: Arc::default(),
    };
    for (finish, text) in [(Finish::ToolUse, "let me see"), (Finish::Complete, "")] {
        let parts = vec![Part::Text(text.to_owned()), call("{\"q\":1}"), call(""), call("  ")];
        let checked = judged(&Choice { parts, finish, finish_word: None }, &checks).unwrap();
        assert_eq!((checked.value(), checked.text.as_str()), (None, text));
    }
}

#[test]
fn tool_arguments_that_are_not_json_are_told_with_the_tools_name() {
    for finish in [Finish::ToolUse, Finish::Complete] {
        let parts = vec![Part::Text("so".to_owned()), call("{}"), call("{\"q\": }")];
        let choice = Choice { parts, finish, finish_word: None };
        let unfit = judged(&choice, &checks(Shape::Text)).unwrap_err();
        assert_eq!((unfit.fault, unfit.layer), (Fault::NotJson, Layer::Syntax));
        assert_eq!(
            unfit.errors,
            ["arguments of tool 'look_up': Expecting value at char 6 (line 1, column 7, in /q)"]
        );
    }
}

#[test]
fn json_asked_for_without_a_schema_must_be_an_object() {
    let checked = judged(&said(" {\"a\": 1}\n", Finish::Complete), &checks(Shape::Json)).unwrap();
    assert_eq!(checked.value(), Some(json!({"a": 1})));
    assert_eq!(checked.text, " {\"a\": 1}\n", "valid text is not touched");
    for text in ["[1]", "\"sorry\"", "null", "4"] {
        let unfit = judged(&said(text, Finish::Complete), &checks(Shape::Json)).unwrap_err();
        assert_eq!(unfit.fault, Fault::SchemaError);
        assert_eq!(unfit.errors, ["top level is not an object"]);
    }
}

#[test]
fn a_rule_on_a_reply_in_text_sees_the_text_and_asks_for_its_own_input() {
    let rules = [
        Rule::compile("r", "reply.contains(input)", None, None).unwrap(),
        Rule::compile("r", "reply.contains(input)", None, Some("/system")).unwrap(),
    ];
    let checks = Checks { shape: Shape::Text, rules: Arc::from(rules), mending: Arc::default() };
    let seen = RefCell::new(Vec::new());
    let input = |pointer: Option<&str>| {
        seen.borrow_mut().push(pointer.map(str::to_owned));
        "fine".to_owned()
    };
    let choice = said("all fine", Finish::Complete);
    judge(&choice, &checks, &Asked { input: &input, ..Asked::nothing() }).unwrap();
    assert_eq!(*seen.borrow(), [None, Some("/system".to_owned())]);
}

#[test]
fn errors_are_bounded_in_number_and_length_and_stay_on_one_line() {
    let long = "é".repeat(1000);
    let errors: Vec<String> = (0..50).map(|n| format!("{n}\n\u{7}{long}")).collect();
    let unfit = Unfit::new(Fault::SchemaError, Layer::Schema, errors);
    assert_eq!(unfit.errors.len(), MAX_ERRORS);
    assert_eq!(unfit.errors[MAX_ERRORS - 1], "and 31 more errors");
    for error in &unfit.errors {
        assert!(error.len() <= MAX_ERROR_BYTES, "{}", error.len());
        assert!(!error.contains(char::is_control));
    }
    assert!(unfit.errors[0].ends_with('…'));
    assert_eq!(clipped("abc", 3), "abc");
    assert_eq!(clipped("abcd", 3), "…");
}

#[test]
fn debug_output_holds_no_reply() {
    let checked =
        judged(&said("{\"a\":\"secret\"}", Finish::Complete), &checks(Shape::Json)).unwrap();
    assert!(!format!("{checked:?}").contains("secret"));
}
