//! The turns as they are sent.

use backstay_decide::fault::Fault;
use backstay_wire::chat::Finish;
use serde_json::json;

use super::*;
use crate::validate::Layer;

fn said(text: &str) -> Choice {
    let parts = vec![Part::Text(text.to_owned())];
    Choice { parts, finish: Finish::Complete, finish_word: None }
}

fn unfit(errors: &[&str]) -> Unfit {
    let errors = errors.iter().map(|error| (*error).to_owned()).collect();
    Unfit::new(Fault::SchemaError, Layer::Schema, errors)
}

#[test]
fn the_previous_reply_and_every_error_are_sent_back() {
    let turns =
        turns(&said("{\"a\": \"2\"}\n"), &unfit(&["'a' should be int", "missing 'b'"]), None);
    assert_eq!(turns.len(), 2);
    assert_eq!((turns[0].role, turns[0].text().as_str()), (Role::Assistant, "{\"a\": \"2\"}"));
    assert_eq!(turns[1].role, Role::User);
    assert_eq!(
        turns[1].text(),
        "That reply could not be used:\n\
         - 'a' should be int\n\
         - missing 'b'\n\
         \n\
         Answer the request again with these points corrected. Reply with the corrected answer \
         only, with nothing before or after it."
    );
}

#[test]
fn a_blank_reply_leaves_no_empty_turn_behind() {
    for text in ["", " \n"] {
        let turns = turns(&said(text), &unfit(&[]), None);
        assert_eq!(turns.len(), 1);
        assert_eq!(turns[0].role, Role::User);
        assert!(turns[0].text().contains("- the reply failed the check of its schema"));
    }
}

#[test]
fn a_tool_call_is_told_in_words() {
    let mut choice = said("");
    choice.parts.push(Part::ToolCall {
        id: "c1".to_owned(),
        name: "look_up".to_owned(),
        arguments: "{\"q\": ".to_owned(),
    });
    let turns = turns(&choice, &unfit(&["broken"]), None);
    assert_eq!(
        turns[0].parts,
        [Part::Text("[called the tool \"look_up\" with {\"q\": ]".to_owned())]
    );
}

#[test]
fn a_long_reply_is_cut_at_a_character_with_a_mark() {
    let text = format!("x{}", "é".repeat(20_000));
    let turns = turns(&said(&text), &unfit(&["too long"]), None);
    let sent = turns[0].text();
    assert!(sent.len() < MAX_REPLY + 40, "{}", sent.len());
    let left_out = text.len() - (MAX_REPLY - 1);
    assert!(sent.ends_with(&format!("é\n[{left_out} more bytes left out]")));
}

#[test]
fn a_template_of_the_route_is_used_with_errors_reply_and_schema() {
    let schema = Schema::compile(&json!({"type": "object"})).unwrap();
    let template = Template::compile(
        "{{ errors | length }}: {{ errors | join(', ') }} in {{ reply }}{% if schema %} for {{ schema }}{% endif %}",
    )
    .unwrap();
    let unfit = unfit(&["a", "b"]);
    let plain = turns(&said("<x>"), &unfit, Some(&template));
    assert_eq!(plain[1].text(), "2: a, b in <x>");
    let bound = turns(&said("<x>"), &unfit, Some(&template.with_schema(&schema)));
    assert_eq!(bound[1].text(), "2: a, b in <x> for {\"type\":\"object\"}");
}

#[test]
fn a_template_that_cannot_work_is_refused_when_it_is_compiled() {
    let fault = |source: &str| Template::compile(source).unwrap_err();
    assert!(matches!(fault("a\n{{ ticket }}"), TemplateFault::Invalid { line: 2, .. }));
    assert!(matches!(fault("{% for e in errors %}"), TemplateFault::Invalid { .. }));
    assert!(matches!(fault("{{ range(100000) }}"), TemplateFault::Invalid { .. }));
    assert!(matches!(fault(&"x".repeat(MAX_TEMPLATE + 1)), TemplateFault::TooLarge { .. }));
    let most = "{% for a in errors %}".repeat(9) + &"x".repeat(200) + &"{% endfor %}".repeat(9);
    assert_eq!(fault(&most), TemplateFault::Endless { most: MAX_ASKED });
}

#[test]
fn a_template_that_fails_on_one_reply_gives_way_to_the_default() {
    let template = Template::compile("{{ errors[2] }}").unwrap();
    let turns = turns(&said("x"), &unfit(&["only one"]), Some(&template));
    assert!(turns[1].text().starts_with("That reply could not be used:\n- only one\n"));
}
