//! Arguments of tool calls: the same path as a reply, against the tool's own parameters.

use backstay_decide::fault::Fault;
use backstay_wire::chat::{Choice, Part};
use backstay_wire::lower::Lowering;
use jsonmend::Status;

use super::align;
use super::lowered;
use super::outline::Outline;
use super::syntax::{self, Parsed};
use super::{Asked, Checks, Edit, EditKind, Layer, NewArguments, Problem, Schema, Tool, Unfit};
use super::{clipped, object};
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
        let checked = match (asked.tool)(name) {
            Tool::NotOffered => Err(not_offered(name)),
            Tool::Object => one(text, None, checks, (asked.lowered)(Some(name)))
                .map_err(|unfit| told(name, unfit)),
            Tool::Takes(schema) => one(text, Some(&schema), checks, (asked.lowered)(Some(name)))
                .map_err(|unfit| told(name, unfit)),
        };
        match checked {
            Ok(parsed) if parsed.edits.is_empty() => {}
            Ok(parsed) => {
                arguments.changed.push(NewArguments { part: at, call, text: parsed.text });
                let named = parsed.edits.into_iter();
                let named = named.map(|edit| Edit { tool: Some(name.clone()), ..edit });
                arguments.edits.extend(named);
            }
            Err(unfit) => broken = Some(joined(broken, unfit)),
        }
    }
    match broken {
        Some(unfit) => Err(unfit),
        None => Ok(arguments),
    }
}

/// `schema` is `None` where nothing is known but that arguments are an object.
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
    let Some(schema) = schema else { return object(parsed) };
    // Fields of the route are those of its replies.
    let align = checks.mending.align.of_calls();
    let fitted = align::fitted(parsed, schema, align::Wants { align: &align, fields: &[] })?;
    // Parameters often leave out what every provider takes for granted.
    let says_type = schema.source().get("type").is_some();
    if says_type { Ok(fitted) } else { object(fitted) }
}

/// A call of a tool that is not there.
fn not_offered(name: &str) -> Unfit {
    let message = format!("tool '{}' is not offered", clipped(name, MAX_NAME));
    Unfit::of(Fault::SchemaError, Layer::Schema, vec![Problem::new("", "tool", message)])
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use backstay_wire::chat::{Choice, Finish, Part};
    use serde_json::{Value, json};

    use super::{Asked, Checks, Schema, Tool};
    use crate::policy::{Align, Coercion, Encoded, Enums, Extra, Mending, Missing};
    use crate::validate::{Shape, judge};

    /// A route that allows all there is.
    fn checks() -> Checks {
        let align = Align {
            coerce: vec![Coercion::StrInt],
            enums: Enums::Fallback,
            extra: Extra::Drop,
            missing: Missing::SchemaDefault,
            encoded: Encoded::Decode,
        };
        let mending = Arc::new(Mending { align, ..Mending::default() });
        Checks { shape: Shape::Text, rules: Arc::default(), mending }
    }

    /// What becomes of the arguments of a call of `tool`.
    fn called(arguments: &str, tool: &Tool) -> Result<String, Vec<String>> {
        let (id, name) = ("c1".to_owned(), "t".to_owned());
        let call = Part::ToolCall { id, name, arguments: arguments.to_owned() };
        let choice = Choice { parts: vec![call], finish: Finish::ToolUse, finish_word: None };
        let tool = |_: &str| tool.clone();
        let asked = Asked { tool: &tool, ..Asked::nothing() };
        let checked = judge(&choice, &checks(), &asked).map_err(|unfit| unfit.errors)?;
        let new = checked.arguments.first();
        Ok(new.map_or_else(|| arguments.to_owned(), |new| new.text.clone()))
    }

    fn takes(schema: &Value) -> Tool {
        Tool::Takes(Arc::new(Schema::compile(schema).unwrap()))
    }

    #[test]
    fn an_effect_is_never_made_of_a_default_a_fallback_or_a_dropped_key() {
        let tool =
            takes(&json!({"type": "object", "required": ["do"], "additionalProperties": false,
            "properties": {"n": {"type": "integer"}, "do": {"enum": ["delete", "keep"],
                "default": "delete", "x-backstay-fallback": "delete"}}}));
        for broken in [r#"{"do":"erase"}"#, "{}", r#"{"do":"keep","x":1}"#, r#"{"do":"DELETE"}"#] {
            assert!(called(broken, &tool).is_err(), "{broken}");
        }
        // What the route says of types holds, and broken JSON is mended.
        let exact = r#"{"do":"keep","n":12}"#;
        assert_eq!(called(r#"{"do":"keep","n":"12",}"#, &tool).as_deref(), Ok(exact));
    }

    #[test]
    fn arguments_are_an_object_whatever_is_known_of_their_tool() {
        let error = vec!["arguments of tool 't': top level is not an object".to_owned()];
        for tool in [Tool::Object, takes(&json!({"description": "any"}))] {
            assert_eq!(called("[1]", &tool), Err(error.clone()));
            assert_eq!(called("3", &tool), Err(error.clone()));
            assert_eq!(called(r#"{"a":1,}"#, &tool).as_deref(), Ok(r#"{"a":1}"#));
        }
    }

    #[test]
    fn a_call_of_a_tool_that_is_not_offered_is_an_error_for_the_model() {
        assert_eq!(
            called("{}", &Tool::NotOffered),
            Err(vec!["tool 't' is not offered".to_owned()])
        );
    }
}
