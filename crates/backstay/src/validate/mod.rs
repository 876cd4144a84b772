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
//! ```text
//!  choice ─completion─▶ text ─syntax─▶ document ─schema─▶ fits ──────────────────▶ rules ─▶ Checked
//!                        │ jsonmend, by the route's policy │ does not
//!                        │                                 ▼
//!                        │                 align: types, enums, keys, defaults ─▶ schema again
//!                        └─▶ tool calls: their arguments take the same path     fields: on_fail
//! ```
//!
//! What is valid is not touched: one strict pass over the text and the check of its schema are all.
//! What is changed is named, edit by edit, and what cannot be known is refused: two readings, a
//! missing end, a word that is no member of an enum.
//!
//! The errors are written for two readers: the model, which gets them in a re-ask, and the person
//! who reads the call log. They hold bits of the reply, at most [`MAX_ERRORS`] lines of
//! [`MAX_ERROR_BYTES`].

mod align;
mod arguments;
mod checked;
mod completion;
mod diagnosis;
mod lowered;
mod outline;
pub mod rules;
pub mod schema;
mod syntax;
mod unfit;

use std::fmt;
use std::sync::Arc;

use backstay_decide::fault::Fault;
use backstay_decide::recover::rescue::Way;
use backstay_wire::chat::{Choice, Finish};
use backstay_wire::lower::Lowering;
use jsonmend::{Status, ValueKind};

use align::{Asking, Wants};
pub use checked::{Checked, Edit, EditKind, NewArguments, Place, Standing};
use completion::Said;
pub use outline::Outline;
pub use rules::{Rule, RuleFault};
pub use schema::{Schema, SchemaCache, SchemaFault, Violation};
pub(crate) use syntax::INSIDE;
use syntax::Parsed;
use unfit::clipped;
pub use unfit::{Candidate, Layer, MAX_ERROR_BYTES, MAX_ERRORS, Problem, Unfit};

use crate::policy::{Mending, Partial};

/// What a reply must be.
#[derive(Clone, Debug)]
pub struct Checks {
    /// Its shape.
    pub shape: Shape,
    /// What must hold beyond the shape, checked in order. Empty: nothing.
    pub rules: Arc<[Rule]>,
    /// What may be done to a reply that is not quite that.
    pub mending: Arc<Mending>,
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
    /// What the request says of the tool of this name. Called once a tool call.
    pub tool: &'a dyn Fn(&str) -> Tool,
    /// How the schema of this tool, or of the answer (`None`), was lowered for the provider.
    pub lowered: &'a dyn Fn(Option<&str>) -> Option<&'a Lowering>,
    /// Whether the reply goes on with a text that was told before: then it may have nothing to add.
    pub way: Way,
}

/// What a request says of a tool that a reply calls.
#[derive(Clone, Debug)]
pub enum Tool {
    /// It takes these parameters.
    Takes(Arc<Schema>),
    /// It takes an object, of which nothing more is known.
    Object,
    /// There is none of this name: a call of it is an error, which the model may mend.
    NotOffered,
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
    let said = match completion::completed(choice, asked.way) {
        Ok(said) => said,
        Err(unfit) => return cut(choice, checks, asked).ok_or(unfit),
    };
    let arguments = arguments::check(choice, checks, asked)?;
    let mut checked = match said {
        Said::Calls(text) => Checked::of_text(text),
        Said::Text(text) => {
            let checked = shaped(text, checks, asked, Status::Stopped)?;
            rules::check(&checks.rules, &checked, asked)?;
            checked
        }
    };
    checked.arguments = arguments.changed;
    checked.edits.extend(arguments.edits);
    Ok(checked)
}

/// The answer that is left of a reply when the model cannot be asked again: its candidate with
/// every declared fallback in place, marked as such. `None`: some problem has no fallback, a
/// fallback does not fit either, or a rule does not hold then.
pub fn with_fallbacks(unfit: &Unfit, checks: &Checks, asked: &Asked<'_>) -> Option<Checked> {
    let Shape::Schema(schema) = &checks.shape else { return None };
    let fields = &checks.mending.fields;
    let parsed = align::settled(unfit.clone(), schema, fields, Asking::Spent).ok()?;
    let checked = parsed.into_checked();
    rules::check(&checks.rules, &checked, asked).ok()?;
    Some(checked)
}

/// A cut reply as far as it goes, where the route takes that. Never a call of a tool: half of an
/// effect is another one.
fn cut(choice: &Choice, checks: &Checks, asked: &Asked<'_>) -> Option<Checked> {
    let takes = checks.mending.syntax.partial == Partial::Accept;
    let is_cut = choice.finish == Finish::Truncated && choice.refusal().is_none();
    if !takes || !is_cut || choice.calls_tools() || matches!(checks.shape, Shape::Text) {
        return None;
    }
    let checked = shaped(choice.text(), checks, asked, Status::Cut).ok()?;
    rules::check(&checks.rules, &checked, asked).ok()?;
    Some(checked)
}

/// The text in the shape that was asked for.
fn shaped(
    text: String,
    checks: &Checks,
    asked: &Asked<'_>,
    status: Status,
) -> Result<Checked, Unfit> {
    let mending = &checks.mending;
    let read = |text, guide| syntax::read(text, &mending.syntax, guide, status);
    let lowering = (asked.lowered)(None);
    match &checks.shape {
        Shape::Text => Ok(Checked::of_text(text)),
        Shape::Json => object(read(text, Outline::object())?).map(Parsed::into_checked),
        Shape::Schema(schema) => {
            let guide = lowered::guide(lowering, schema.outline());
            let parsed = lowered::undone(read(text, guide)?, lowering)?;
            let wants = Wants { align: &mending.align, fields: &mending.fields };
            let fitted = align::fitted(parsed, schema, wants);
            let settled = fitted
                .or_else(|unfit| align::settled(unfit, schema, &mending.fields, Asking::Open));
            settled.map(Parsed::into_checked)
        }
    }
}

/// Whether `text` is strict JSON without a repeated key.
pub(crate) fn is_json(text: &str) -> bool {
    Parsed::strict(text.to_owned()).is_some()
}

/// The same, if it is an object.
fn object(parsed: Parsed) -> Result<Parsed, Unfit> {
    if parsed.root().is_some_and(|root| root.kind() == ValueKind::Object) {
        return Ok(parsed);
    }
    let problem = Problem::new("", "type", "top level is not an object");
    Err(Unfit::of(Fault::SchemaError, Layer::Schema, vec![problem]))
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

impl Asked<'_> {
    /// Nothing is known of what was asked.
    pub fn nothing() -> Self {
        Self {
            input: &|_| String::new(),
            tool: &|_| Tool::Object,
            lowered: &|_| None,
            way: Way::Restart,
        }
    }
}

impl fmt::Debug for Asked<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asked").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
