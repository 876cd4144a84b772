//! Fits what the caller and the route wish of an answer's shape to what one target can be asked for.
//!
//! The schema is lowered to the target's subset, the parameters of strict tools with it, since both
//! draw on the same limits. What cannot be lowered is said in the prompt; what fits already is not
//! touched. Whatever is sent, the reply is checked against the whole schema.

use std::sync::Arc;

use backstay_wire::Dialect;
use backstay_wire::lower::{self, Lowering, Subset, Tally};
use serde_json::Value;

use super::lowering_cache::{Known, LoweringCache};
use crate::contract::Contract;
use crate::contract::shape::Print;
use crate::policy::{Structured, Target};

/// What an attempt's schemas were changed to, kept to be undone on its reply.
#[derive(Clone, Debug, Default)]
pub struct Lowerings {
    /// Of the answer's schema. `None`: it went as it is, or not at all.
    pub answer: Option<Arc<Lowering>>,
    /// Of the parameters of tools, by the tool's name.
    pub tools: Vec<(String, Arc<Lowering>)>,
    /// The changes in few words, without a value of the schema.
    pub told: Vec<String>,
}

impl Lowerings {
    /// Of the tool of this name, or of the answer.
    pub fn of(&self, tool: Option<&str>) -> Option<&Lowering> {
        match tool {
            None => self.answer.as_deref(),
            Some(name) => {
                let mut tools = self.tools.iter();
                tools.find(|(tool, _)| tool == name).map(|(_, lowering)| &**lowering)
            }
        }
    }

    /// Whether a reply may have to be changed back.
    pub fn act(&self) -> bool {
        let tools = self.tools.iter().map(|(_, lowering)| lowering);
        self.answer.iter().chain(tools).any(|lowering| lowering.acts())
    }
}

/// What is asked of a target about the answer's shape.
#[derive(Debug)]
pub(super) struct Fit<'a> {
    pub ask: Asking,
    /// The schema that the prompt has to show.
    pub shown: Option<Arc<Value>>,
    pub lowerings: Lowerings,
    /// Bytes that the parameters of tools grew by.
    pub grown: u64,
    tally: Tally,
    cache: &'a LoweringCache,
}

/// The response format of a request.
#[derive(Debug, PartialEq)]
pub(super) enum Asking {
    /// What the caller wrote stays, or nothing was asked.
    Untouched,
    /// This schema.
    Schema(Held),
    /// Any JSON.
    Json,
    /// None.
    Nothing,
}

/// A schema that the provider is to hold the reply to.
#[derive(Debug, PartialEq)]
pub(super) struct Held {
    pub name: String,
    pub schema: Arc<Value>,
    /// Bytes of it as compact JSON.
    pub bytes: usize,
    pub strict: Option<bool>,
}

/// A schema that the answer is to have, and what is said with it.
struct Wish {
    name: String,
    schema: Arc<Value>,
    strict: Option<bool>,
    by: By,
}

/// Whose wish it is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    Caller,
    Route,
}

/// Fits the contract's shape to `target`.
pub(super) fn fit<'a>(cache: &'a LoweringCache, contract: &Contract, target: &Target) -> Fit<'a> {
    let fit = Fit::untouched(cache);
    let (Some(wish), Some(print)) = (wish(contract), contract.schema_print()) else {
        return Fit { ask: without_schema(contract, target), ..fit };
    };
    if target.structured != Structured::JsonSchema {
        return as_text(fit, contract, target, &wish);
    }
    let subset = target.subset();
    let same = target.provider.dialect == contract.ask.dialect;
    let is_callers = same && wish.by == By::Caller;
    // A caller that says it wants no strict decoding has its schema shown to the model, no more.
    let declined = wish.strict == Some(false) && subset == Subset::OpenaiStrict;
    if subset == Subset::Whole || declined {
        if is_callers {
            return fit;
        }
        return Fit { ask: asked(&wish, (&wish.schema, print.bytes), None), ..fit };
    }
    match cache.get(&wish.schema, print, (subset, fit.tally)) {
        Ok(known) => lowered(fit, &wish, &known, (subset, is_callers)),
        Err(fault) => {
            let mut fit = as_text(fit, contract, target, &wish);
            fit.lowerings.told.push(format!("schema sent as text: {fault}"));
            fit
        }
    }
}

fn lowered<'a>(
    mut fit: Fit<'a>,
    wish: &Wish,
    known: &Known,
    (subset, is_callers): (Subset, bool),
) -> Fit<'a> {
    let enforced = (subset == Subset::OpenaiStrict).then_some(true);
    let fits = known.lowering.is_empty();
    if !(fits && is_callers && (enforced.is_none() || wish.strict == enforced)) {
        let source = if fits { &wish.schema } else { &known.schema };
        // Our own annotations may be more in the source; they do not go.
        fit.ask = asked(wish, (source, known.bytes), enforced);
    }
    fit.tally = known.tally;
    // Where the model does not see the schema that it is held to, the prompt has to show it.
    if !subset.shows_descriptions() && (!fits || wish.by == By::Route) {
        fit.shown = Some(Arc::clone(&wish.schema));
    }
    fit.lowerings.told.clone_from(&known.told);
    fit.lowerings.answer = (!fits).then(|| Arc::clone(&known.lowering));
    fit
}

fn asked(wish: &Wish, (schema, bytes): (&Arc<Value>, usize), strict: Option<bool>) -> Asking {
    let (name, schema) = (wish.name.clone(), Arc::clone(schema));
    Asking::Schema(Held { name, schema, bytes, strict: strict.or(wish.strict) })
}

/// The schema as text in the prompt, and as much of a format as can be asked for besides.
fn as_text<'a>(fit: Fit<'a>, contract: &Contract, target: &Target, wish: &Wish) -> Fit<'a> {
    let is_object = wish.schema.get("type").is_some_and(|kind| kind == "object");
    let takes_json = target.structured != Structured::Nothing
        && target.provider.dialect == Dialect::OpenaiChat
        && is_object;
    let ask = match (takes_json, wish.by) {
        (true, _) => Asking::Json,
        (false, By::Caller) => Asking::Nothing,
        (false, By::Route) if contract.shape.by_caller() => Asking::Nothing,
        (false, By::Route) => Asking::Untouched,
    };
    Fit { ask, shown: Some(Arc::clone(&wish.schema)), ..fit }
}

/// Nobody gave a schema: the caller's format, as far as the target goes.
fn without_schema(contract: &Contract, target: &Target) -> Asking {
    match target.structured {
        Structured::JsonObject if contract.shape.by_caller() && contract.wants_json() => {
            Asking::Json
        }
        Structured::JsonSchema | Structured::JsonObject => Asking::Untouched,
        Structured::Nothing => Asking::Nothing,
    }
}

fn wish(contract: &Contract) -> Option<Wish> {
    if let Some(schema) = contract.shape.route_schema() {
        let (name, strict) = (name(&contract.route.name), None);
        return Some(Wish { name, schema: Arc::clone(schema), strict, by: By::Route });
    }
    let given = contract.shape.given()?;
    Some(Wish {
        name: given.name.as_deref().map_or_else(|| "reply".to_owned(), name),
        schema: Arc::clone(&given.schema),
        strict: given.strict,
        by: By::Caller,
    })
}

/// A strict tool's parameters for the target.
#[derive(Debug, PartialEq)]
pub(super) enum Parameters {
    /// As they are.
    Untouched,
    /// These.
    Lowered(Arc<Value>),
    /// As they are, without `strict`: they cannot be lowered, or the request has too many.
    Loose,
}

impl<'a> Fit<'a> {
    fn untouched(cache: &'a LoweringCache) -> Self {
        Self {
            ask: Asking::Untouched,
            shown: None,
            lowerings: Lowerings::default(),
            grown: 0,
            tally: Tally::default(),
            cache,
        }
    }

    /// What the prompt has to say of the answer's shape.
    pub(super) fn instruction(&self) -> Option<String> {
        self.shown.as_deref().map(lower::instruction)
    }

    /// Lowers the parameters of the strict tool `name`.
    pub(super) fn tool(&mut self, name: &str, parameters: &Value, subset: Subset) -> Parameters {
        if subset == Subset::Whole {
            return Parameters::Untouched;
        }
        if !lower::takes_strict_tool(subset, self.tally) {
            let what = format!("tool '{name}' not strict: the provider takes no more of them");
            self.lowerings.told.push(what);
            return Parameters::Loose;
        }
        let print = Print::of(parameters);
        match self.cache.get(parameters, print, (subset, self.tally)) {
            Ok(known) => {
                self.tally = known.tally;
                self.tally.tools += 1;
                if known.lowering.is_empty() {
                    return Parameters::Untouched;
                }
                self.grown += known.bytes.saturating_sub(print.bytes) as u64;
                let told = known.told.iter().map(|brief| format!("tool '{name}' {brief}"));
                self.lowerings.told.extend(told);
                self.lowerings.tools.push((name.to_owned(), Arc::clone(&known.lowering)));
                Parameters::Lowered(Arc::clone(&known.schema))
            }
            Err(fault) => {
                self.lowerings.told.push(format!("tool '{name}' not strict: {fault}"));
                Parameters::Loose
            }
        }
    }
}

/// A schema's name from a route's: letters, digits, `_` and `-`, at most 64 (OpenAI's rule).
fn name(route: &str) -> String {
    let kept = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    let name: String = route.chars().take(64).map(kept).collect();
    if name.is_empty() { "reply".into() } else { name }
}

#[cfg(test)]
mod tests {
    use super::name;

    #[test]
    fn a_name_keeps_to_the_letters_a_provider_takes() {
        assert_eq!(name("triage/de *"), "triage_de__");
        assert_eq!(name(""), "reply");
    }
}
