//! Words a second request: the reply that did not fit, and what is wrong with it.
//!
//! Two turns go after the caller's own: the model's reply as an assistant turn, and a user turn
//! with the errors. Because the request changes, the second answer is no blind repeat of the first.
//! How often, and whether at all, is decided elsewhere.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use backstay_wire::chat::{Choice, Part, Role, Turn};
use minijinja::{Environment, UndefinedBehavior, context};
use serde_json::Value;

use crate::validate::{Schema, Unfit};

/// The most bytes of the reply that are sent back. Past that a model gains nothing from its own
/// words, and they cost input tokens.
const MAX_REPLY: usize = 16 * 1024;

/// The most bytes of the user turn.
const MAX_ASKED: usize = 64 * 1024;

/// The most bytes of a template.
const MAX_TEMPLATE: usize = 16 * 1024;

/// The user turn where no template is given.
const DEFAULT: &str = include_str!("reask_template.txt");

/// The one name templates go by.
const NAME: &str = "reask";

/// Why a template cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateFault {
    /// Too many bytes.
    #[error("the template has {bytes} bytes, {most} are allowed")]
    TooLarge {
        /// Its size.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// It does not parse, or uses a name that is not set: only `errors`, `reply` and `schema` are.
    #[error("the template fails at line {line}: {problem}")]
    Invalid {
        /// From 1; 0 where it is not known.
        line: usize,
        /// What is wrong there.
        problem: String,
    },
    /// With three short errors it already writes more than may be sent.
    #[error("the template writes more than {most} bytes")]
    Endless {
        /// The limit.
        most: usize,
    },
}

/// The wording of a re-ask, in Jinja. It sees `errors` (a list of lines), `reply` (the text that is
/// sent back) and `schema` (JSON text, empty where none is bound).
#[derive(Clone, Debug)]
pub struct Template {
    compiled: Arc<Environment<'static>>,
    schema: Arc<str>,
}

impl Template {
    /// Compiles `source` and tries it once.
    ///
    /// # Errors
    ///
    /// See [`TemplateFault`]; all of them are for whoever wrote the template to mend.
    pub fn compile(source: &str) -> Result<Self, TemplateFault> {
        if source.len() > MAX_TEMPLATE {
            return Err(TemplateFault::TooLarge { bytes: source.len(), most: MAX_TEMPLATE });
        }
        let mut compiled = Environment::new();
        compiled.set_undefined_behavior(UndefinedBehavior::Strict);
        // The one function that makes long lists of its own.
        compiled.remove_global("range");
        compiled.add_template_owned(NAME, source.to_owned()).map_err(|error| invalid(&error))?;
        let template = Self { compiled: Arc::new(compiled), schema: Arc::from("") };
        let errors = ["missing 'a'", "'b' should be int", "c not in enum"].map(str::to_owned);
        match template.render("{}", &errors) {
            Ok(_) => Ok(template),
            Err(Failed::Full) => Err(TemplateFault::Endless { most: MAX_ASKED }),
            Err(Failed::Template(error)) => Err(invalid(&error)),
        }
    }

    /// The same template with `schema` bound to the schema of the call.
    #[must_use]
    pub fn with_schema(&self, schema: &Schema) -> Self {
        let schema = Arc::from(schema.source().to_string());
        Self { compiled: Arc::clone(&self.compiled), schema }
    }

    fn render(&self, reply: &str, errors: &[String]) -> Result<String, Failed> {
        let template = self.compiled.get_template(NAME).map_err(Failed::Template)?;
        let mut page = Page { text: Vec::new(), full: false };
        let names = context! { errors => errors.to_vec(), reply => reply, schema => &*self.schema };
        match template.render_captured_to(names, &mut page) {
            Ok(_) => Ok(String::from_utf8_lossy(&page.text).into_owned()),
            Err(_) if page.full => Err(Failed::Full),
            Err(error) => Err(Failed::Template(error)),
        }
    }
}

enum Failed {
    Full,
    Template(minijinja::Error),
}

fn invalid(error: &minijinja::Error) -> TemplateFault {
    let problem = error.detail().map_or_else(|| error.kind().to_string(), str::to_owned);
    TemplateFault::Invalid { line: error.line().unwrap_or(0), problem }
}

/// Takes at most [`MAX_ASKED`] bytes.
struct Page {
    text: Vec<u8>,
    full: bool,
}

impl Write for Page {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if self.text.len() + piece.len() > MAX_ASKED {
            self.full = true;
            return Err(io::Error::other("the page is full"));
        }
        self.text.extend_from_slice(piece);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The turns to add to the request for another answer: the model's reply, where it said anything,
/// and what is wrong with it. Never empty; the last is the user's.
///
/// A template that fails on this reply, which its trial did not show, gives way to the default.
pub fn turns(previous: &Choice, unfit: &Unfit, template: Option<&Template>) -> Vec<Turn> {
    let reply = shortened(said(previous));
    let errors = if unfit.errors.is_empty() {
        vec![format!("the reply failed the check of its {}", unfit.layer.name())]
    } else {
        unfit.errors.clone()
    };
    let asked = template.and_then(|template| template.render(&reply, &errors).ok());
    let asked = asked.filter(|asked| !asked.trim().is_empty());
    let asked = asked.unwrap_or_else(|| standard(&reply, &errors));
    let mut turns = Vec::new();
    // Providers refuse an empty turn, and white space at its end.
    if !reply.trim().is_empty() {
        turns.push(Turn::said(Role::Assistant, reply.trim_end()));
    }
    turns.push(Turn::said(Role::User, asked));
    turns
}

/// The default wording, or the bare errors should it fail.
fn standard(reply: &str, errors: &[String]) -> String {
    let rendered = Template::compile(DEFAULT).ok().and_then(|t| t.render(reply, errors).ok());
    rendered.unwrap_or_else(|| errors.join("\n"))
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

/// At most [`MAX_REPLY`] bytes of `text`, with a mark where it was cut.
fn shortened(mut text: String) -> String {
    if text.len() > MAX_REPLY {
        let whole = text.len();
        text.truncate(text.floor_char_boundary(MAX_REPLY));
        let left_out = whole - text.len();
        // Writing to a `String` cannot fail.
        let _ = write!(text, "\n[{left_out} more bytes left out]");
    }
    text
}

#[cfg(test)]
mod tests {
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
}
