//! Says whether a reply is an answer, and if not, why not.
//!
//! [`judge`] puts a reply through four layers, each of which takes the one before as passed:
//!
//! | layer | question | a reply that fails it |
//! |---|---|---|
//! | [`Layer::Completion`] | did the model finish normally? | cut off, refused, filtered, empty |
//! | [`Layer::Syntax`] | is the text one JSON value? | prose around it, a string left open |
//! | [`Layer::Schema`] | right keys, types, members, ranges? | `"2"` for 2, a key missing |
//! | [`Layer::Rules`] | does it make sense for this input? | a quote that is not in the ticket |
//!
//! Nothing is mended here but one thing: a single Markdown fence around the whole text is taken
//! off, and the answer says so. What a text means is never guessed: prose around a value, or two
//! values, are refused, since the wrong one might be picked.
//!
//! The errors are written for two readers: the model, which gets them in a re-ask, and the person
//! who reads the call log. They hold bits of the reply, at most [`MAX_ERRORS`] lines of
//! [`MAX_ERROR_BYTES`].

mod completion;
mod diagnosis;
pub mod rules;
pub mod schema;
mod syntax;

use std::fmt;
use std::sync::Arc;

use backstay_decide::fault::Fault;
use backstay_wire::chat::Choice;
use serde_json::Value;

use completion::Said;
pub use rules::{Rule, RuleFault};
pub use schema::{Schema, SchemaCache, SchemaFault, Violation};
pub use syntax::Normalised;

/// The most errors told of one reply. 20: more does not help a model, and fills its window.
pub const MAX_ERRORS: usize = 20;

/// The most bytes of one error. 300: a path, a name and a short value.
pub const MAX_ERROR_BYTES: usize = 300;

/// What a reply must be.
#[derive(Clone, Debug)]
pub struct Checks {
    /// Its shape.
    pub shape: Shape,
    /// What must hold beyond the shape, checked in order. Empty: nothing.
    pub rules: Arc<[Rule]>,
}

/// The shape a reply must have.
#[derive(Clone, Debug)]
pub enum Shape {
    /// Any text that is not blank.
    Text,
    /// One JSON object: what `response_format` `json_object` asks for.
    Json,
    /// One JSON value that fits the schema.
    Schema(Arc<Schema>),
}

/// What was asked, for the rules that compare the reply with it.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// The input of a rule: `None` gives the last user message, `Some` the text at a JSON pointer
    /// into the request. Empty where there is none. Called at most once a rule.
    pub input: &'a dyn Fn(Option<&str>) -> String,
}

/// A reply that passed every layer.
#[derive(Clone, PartialEq)]
pub struct Checked {
    /// The value, where one was asked for. `None` for text, and for a reply that calls tools.
    pub value: Option<Value>,
    /// The text as it may be handed on: the model's own, without a fence that was taken off.
    pub text: String,
    /// What was changed to make it valid. `None`: the text is as the model wrote it.
    pub normalised: Option<Normalised>,
}

/// A reply that may not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// What it is called; decides what comes next.
    pub fault: Fault,
    /// The layer that refused it.
    pub layer: Layer,
    /// What is wrong, one line each. Empty where the fault says it all. At most [`MAX_ERRORS`],
    /// each at most [`MAX_ERROR_BYTES`] and without control characters.
    pub errors: Vec<String>,
    /// The errors of the schema once more, for programs; in the order of `errors`, without its last
    /// line where that counts the rest. Empty at the other layers.
    pub violations: Vec<Violation>,
}

/// One layer of checks, in the order they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// How the model finished.
    Completion,
    /// Whether the text is one JSON value.
    Syntax,
    /// Whether the value fits the schema.
    Schema,
    /// Whether the rules hold.
    Rules,
}

impl Layer {
    /// The layer's name as logs and metrics print it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completion => "completion",
            Self::Syntax => "syntax",
            Self::Schema => "schema",
            Self::Rules => "rules",
        }
    }
}

/// Judges one answer against what was asked for.
///
/// A reply that calls tools is judged by its arguments only: the caller asked for the call, and
/// neither schema nor rules are about it.
///
/// # Errors
///
/// The first layer that fails ends it, with every error that layer found.
pub fn judge(choice: &Choice, checks: &Checks, asked: &Asked<'_>) -> Result<Checked, Unfit> {
    let said = completion::completed(choice)?;
    syntax::check_arguments(choice)?;
    let text = match said {
        Said::Text(text) => text,
        Said::Calls(text) => return Ok(Checked { value: None, text, normalised: None }),
    };
    let checked = match &checks.shape {
        Shape::Text => Checked { value: None, text, normalised: None },
        Shape::Json => object(syntax::read(text)?)?,
        Shape::Schema(schema) => {
            let parsed = syntax::read(text)?;
            schema.check(&parsed.value)?;
            parsed.into_checked()
        }
    };
    rules::check(&checks.rules, &checked, asked)?;
    Ok(checked)
}

fn object(parsed: syntax::Parsed) -> Result<Checked, Unfit> {
    if parsed.value.is_object() {
        return Ok(parsed.into_checked());
    }
    let error = "top level is not an object".to_owned();
    Err(Unfit::new(Fault::SchemaError, Layer::Schema, vec![error]))
}

impl Unfit {
    /// A fault of a layer with its errors, cut down to what may be told: see [`Unfit::errors`].
    pub fn new(fault: Fault, layer: Layer, mut errors: Vec<String>) -> Self {
        if errors.len() > MAX_ERRORS {
            let rest = errors.len() - (MAX_ERRORS - 1);
            errors.truncate(MAX_ERRORS - 1);
            errors.push(format!("and {rest} more errors"));
        }
        for error in &mut errors {
            *error = clipped(error, MAX_ERROR_BYTES);
        }
        Self { fault, layer, errors, violations: Vec::new() }
    }

    /// A reply without any answer in it.
    pub fn empty() -> Self {
        Self::new(Fault::Empty, Layer::Completion, vec!["no answer in the reply".to_owned()])
    }
}

/// `text` on one line and in at most `most` bytes, at least 3; an ellipsis stands for what is cut.
fn clipped(text: &str, most: usize) -> String {
    let mut line = String::with_capacity(text.len().min(most));
    for letter in text.chars() {
        let letter = if letter.is_control() { ' ' } else { letter };
        if line.len() + letter.len_utf8() > most {
            while line.len() + '…'.len_utf8() > most {
                line.pop();
            }
            line.push('…');
            break;
        }
        line.push(letter);
    }
    line
}

/// The stack of the threads that compile. 32 MiB: the parser of rules takes 100 KiB a bracket in a
/// debug build, and the compiler of schemas goes down every reference. Pages not used are not taken.
const COMPILE_STACK: usize = 32 * 1024 * 1024;

/// Runs `work` on a thread with a deep stack, for compilers that go down it as deep as what they
/// read. `None`: it panicked, or there was no thread to be had.
fn deep<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(COMPILE_STACK);
        thread.spawn_scoped(scope, work).ok()?.join().ok()
    })
}

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").finish_non_exhaustive()
    }
}

/// Prints lengths: a reply is not for logs.
impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checked")
            .field("value", &self.value.is_some())
            .field("text_bytes", &self.text.len())
            .field("normalised", &self.normalised)
            .finish()
    }
}

#[cfg(test)]
mod tests;
