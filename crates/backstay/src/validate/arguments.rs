//! Arguments of tool calls: the same path as a reply, against the tool's own parameters.

use backstay_decide::fault::Fault;
use backstay_wire::chat::{Choice, Part};
use backstay_wire::lower::Lowering;
use jsonmend::Status;

use super::align;
use super::lowered;
use super::outline::Outline;
use super::syntax::{self, Parsed};
use super::{Asked, Checks, Edit, EditKind, Layer, NewArguments, Problem, Schema, Unfit, clipped};
use crate::policy::{Partial, Syntax};

/// The most bytes of a tool's name in an error.
const MAX_NAME: usize = 60;

/// Arguments that were changed.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    pub(super) changed: Vec<NewArguments>,
    pub(super) edits: Vec<Edit>,
}

/// Checks the arguments of every tool call.
///
/// Blank arguments stand for `{}` where nothing is required. What was cut is never taken: a call is
/// an effect, and half of one is another one.
pub(super) fn check(
    choice: &Choice,
    checks: &Checks,
    asked: &Asked<'_>,
) -> Result<Arguments, Unfit> {
    let mut arguments = Arguments::default();
    let mut broken: Option<Unfit> = None;
    let calls = choice.parts.iter().enumerate();
    let calls = calls.filter(|(_, part)| matches!(part, Part::ToolCall { .. }));
    for (call, (at, part)) in calls.enumerate() {
        let Part::ToolCall { name, arguments: text, .. } = part else { continue };
        let schema = (asked.tool)(name);
        match one(text, schema.as_deref(), checks, (asked.lowered)(Some(name))) {
            Ok(parsed) => {
                if !parsed.edits.is_empty() {
                    arguments.changed.push(NewArguments { part: at, call, text: parsed.text });
                    let named = parsed.edits.into_iter();
                    let named = named.map(|edit| Edit { tool: Some(name.clone()), ..edit });
                    arguments.edits.extend(named);
                }
            }
            Err(unfit) => broken = Some(joined(broken, told(name, unfit))),
        }
    }
    match broken {
        Some(unfit) => Err(unfit),
        None => Ok(arguments),
    }
}

fn one(
    text: &str,
    schema: Option<&Schema>,
    checks: &Checks,
    lowering: Option<&Lowering>,
) -> Result<Parsed, Unfit> {
    let syntax = Syntax { partial: Partial::Refuse, ..checks.mending.syntax };
    let parsed = if text.trim().is_empty() {
        blank()?
    } else {
        let guide = match schema {
            Some(schema) => schema.outline(),
            None => Outline::object(),
        };
        let guide = lowered::guide(lowering, guide);
        lowered::undone(syntax::read(text.to_owned(), &syntax, guide, Status::Stopped)?, lowering)?
    };
    match schema {
        // Fields of the route are those of its replies.
        Some(schema) => {
            let wants = align::Wants { align: &checks.mending.align, fields: &[] };
            align::fitted(parsed, schema, wants)
        }
        None => Ok(parsed),
    }
}

/// No arguments, said in JSON.
fn blank() -> Result<Parsed, Unfit> {
    let parsed = Parsed::strict("{}".to_owned()).ok_or_else(Unfit::empty)?;
    let edit = Edit::of_value(EditKind::NoArguments, "", "", "{}");
    Ok(Parsed { edits: vec![edit], ..parsed })
}

/// The same errors with the tool's name in front.
fn told(name: &str, unfit: Unfit) -> Unfit {
    let name = clipped(name, MAX_NAME);
    let problems = unfit.problems.into_iter().map(|problem| Problem {
        message: format!("arguments of tool '{name}': {}", problem.message),
        ..problem
    });
    Unfit::of(unfit.fault, unfit.layer, problems.collect())
}

/// Both lists of errors under the graver of the two faults.
fn joined(first: Option<Unfit>, second: Unfit) -> Unfit {
    let Some(first) = first else { return second };
    let graver = if second.layer < first.layer { &second } else { &first };
    let (fault, layer): (Fault, Layer) = (graver.fault, graver.layer);
    let problems = first.problems.into_iter().chain(second.problems);
    Unfit::of(fault, layer, problems.collect())
}
