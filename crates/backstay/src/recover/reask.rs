//! Words a second request: the part of the reply that did not fit, and what is wrong with it.
//!
//! Two turns go after the caller's own: the model's reply as an assistant turn, and a user turn
//! with the errors. Because the request changes, the second answer is no blind repeat of the first.
//! A reply of over 4,096 bytes is shown in part: the surroundings of what is wrong, with marks for
//! what is left out. How often, and whether at all, is decided elsewhere.

use std::fmt::Write as _;

use backstay_wire::chat::{Choice, Part, Role, Turn};
use serde_json::Value;

use super::template::{self, Scene};
use super::{Complaint, Template, excerpt};
use crate::validate::{Candidate, Unfit};

/// What a re-ask says besides the reply and its errors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wording<'a> {
    /// The route's own template. `None`: the default wording.
    pub template: Option<&'a Template>,
    /// The schema as JSON text; empty: none.
    pub schema: &'a str,
    /// The last user message.
    pub request: &'a str,
    /// Which re-ask of this target it is, from 1.
    pub number: u32,
}

/// The turns to add to the request for another answer: the model's reply, where it said anything,
/// and what is wrong with it. Never empty; the last is the user's.
///
/// A template that fails on this reply, which its trial did not show, gives way to the default.
pub fn turns(previous: &Choice, unfit: &Unfit, wording: &Wording<'_>) -> Vec<Turn> {
    let errors = Complaint::all(unfit);
    let pointers: Vec<&str> = errors.iter().filter_map(|error| error.pointer.as_deref()).collect();
    let mended = unfit.candidate.as_deref().map(Candidate::text);
    let excerpt = excerpt::of(&said(previous), mended, &pointers);
    let scene = Scene {
        errors: &errors,
        reply: &excerpt.text,
        shortened: excerpt.shortened,
        schema: wording.schema,
        request: wording.request,
        number: wording.number,
    };
    let asked = wording.template.and_then(|template| template.render(&scene).ok());
    let asked = asked.filter(|asked| !asked.trim().is_empty());
    let asked = asked.unwrap_or_else(|| template::standard(&scene));
    let mut turns = Vec::new();
    // Providers refuse an empty turn, and white space at its end.
    let reply = excerpt.text.trim_end();
    if !reply.trim().is_empty() {
        turns.push(Turn::said(Role::Assistant, reply));
    }
    turns.push(Turn::said(Role::User, asked));
    turns
}

/// What the model said. Calls of tools are told in words: a call without its result is a request
/// that providers refuse.
fn said(choice: &Choice) -> String {
    let mut said = choice.text();
    for part in &choice.parts {
        if let Part::ToolCall { name, arguments, .. } = part {
            let gap = if said.is_empty() { "" } else { "\n" };
            let name = Value::from(name.as_str());
            // Writing to a `String` cannot fail.
            let _ = write!(said, "{gap}[called the tool {name} with {arguments}]");
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use backstay_decide::fault::Fault;
    use backstay_wire::chat::Finish;

    use super::*;
    use crate::validate::{Layer, Problem};

    fn said(text: &str) -> Choice {
        let parts = vec![Part::Text(text.to_owned())];
        Choice { parts, finish: Finish::Complete, finish_word: None }
    }

    fn unfit(errors: &[&str]) -> Unfit {
        let errors = errors.iter().map(|error| (*error).to_owned()).collect();
        Unfit::new(Fault::SchemaError, Layer::Schema, errors)
    }

    fn plain(previous: &Choice, errors: &[&str]) -> Vec<Turn> {
        turns(previous, &unfit(errors), &Wording::default())
    }

    #[test]
    fn the_previous_reply_and_every_error_are_sent_back() {
        let turns = plain(&said("{\"a\": \"2\"}\n"), &["'a' should be int", "missing 'b'"]);
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
            let turns = plain(&said(text), &[]);
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
        let turns = plain(&choice, &["broken"]);
        assert_eq!(
            turns[0].parts,
            [Part::Text("[called the tool \"look_up\" with {\"q\": ]".to_owned())]
        );
    }

    #[test]
    fn of_a_long_reply_the_wrong_part_is_sent_and_the_model_is_told_so() {
        let long = "é".repeat(5_000);
        let text = format!("{{\"a\":\"{long}\",\"kind\":7,\"b\":\"{long}\"}}");
        let problem = Problem::new("/kind", "type", "'kind' should be str");
        let unfit = Unfit::of(Fault::SchemaError, Layer::Schema, vec![problem]);
        let turns = turns(&said(&text), &unfit, &Wording::default());
        let sent = turns[0].text();
        assert!(sent.contains("\"kind\":7") && sent.len() < 600, "{} bytes", sent.len());
        assert!(turns[1].text().ends_with("shown above in part only; give the whole answer."));
    }

    #[test]
    fn a_template_of_the_route_is_used() {
        let template = Template::compile("{{ number }}: {{ errors | join(', ') }} in {{ reply }}");
        let template = template.unwrap();
        let wording = Wording { template: Some(&template), number: 2, ..Wording::default() };
        let turns = turns(&said("<x>"), &unfit(&["a", "b"]), &wording);
        assert_eq!(turns[1].text(), "2: a, b in <x>");
    }

    #[test]
    fn a_template_that_fails_on_one_reply_gives_way_to_the_default() {
        let template = Template::compile("{{ errors[2] }}").unwrap();
        let wording = Wording { template: Some(&template), ..Wording::default() };
        let turns = turns(&said("x"), &unfit(&["only one"]), &wording);
        assert!(turns[1].text().starts_with("That reply could not be used:\n- only one\n"));
    }
}
