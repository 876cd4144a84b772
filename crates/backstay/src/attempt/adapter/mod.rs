//! Turns a contract into the request for one target.
//!
//! Same dialect in and out: the caller's bytes go through, with only the edits needed, and fields
//! not known here survive. Another dialect: the neutral form is built once and written anew; what
//! cannot be said is a reported loss.

mod added;
mod edits;
mod fit;
mod headers;
mod lowering_cache;
mod prefill;
mod prompt;

pub(crate) use added::added;
pub use fit::Lowerings;
pub(crate) use headers::{authorize, join};
pub use lowering_cache::LoweringCache;

use std::sync::{Arc, OnceLock};

use backstay_decide::recover::rescue::Way;
use backstay_wire::amend::{self, Objection};
use backstay_wire::chat::{Format, Part, Turn};
use backstay_wire::{Chat, Dialect, Loss, lower};
use bytes::Bytes;
use http::{HeaderMap, Uri};
use serde_json::Value;

use crate::contract::{Added, Contract, Fingerprint, Wants};
use crate::fault::CallError;
use crate::policy::{EarlyStop, Target, Upstream};
use fit::{Asking, Fit, Held, Parameters};

/// How deep a body may nest that is edited: as deep as a request may.
const MAX_DEPTH: usize = 127;

/// Whether a reply is asked for in one piece or as a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// In one piece.
    Plain,
    /// As a stream.
    Stream,
}

/// What may differ from one attempt of a call to the next.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turned<'a> {
    /// The output cap now, when it was raised.
    pub cap: Option<u64>,
    /// Turns added to the conversation by a re-ask.
    pub reask: &'a [Turn],
    /// What the request has for this target beside the caller's bytes, where its window is known.
    pub added: Added,
    /// Which of the provider's keys to use.
    pub key: usize,
    /// What the target is to go on with, if it takes that.
    pub prefill: Option<&'a str>,
    /// What the target does not take.
    pub objections: &'a [Objection],
    /// The target's address, once it was built.
    pub address: Option<&'a OnceLock<Uri>>,
}

/// A request ready to be sent.
pub struct Outgoing {
    /// Where to.
    pub uri: Uri,
    /// All headers, credentials included.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// The form asked for.
    pub form: Form,
    /// Whether the reply goes on with what it was given.
    pub way: Way,
    /// The provider's dialect.
    pub dialect: Dialect,
    /// What could not be said.
    pub losses: Vec<Loss>,
    /// What the schemas it carries were changed to.
    pub lowerings: Arc<Lowerings>,
    /// What this attempt hashes to.
    pub fingerprint: Fingerprint,
}

impl std::fmt::Debug for Outgoing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Outgoing({:?}, {} bytes)", self.form, self.body.len())
    }
}

/// Builds the request for `target`; schemas that were lowered before are in `cache`.
///
/// # Errors
/// The caller's request is not of its dialect's form, or an address from config cannot be built.
pub fn build(
    cache: &LoweringCache,
    contract: &Contract,
    target: &Target,
    turned: Turned<'_>,
) -> Result<Outgoing, CallError> {
    let form = form(contract, target);
    let dialect = target.provider.dialect;
    let mut fit = fit::fit(cache, contract, target);
    let (body, mut losses, edits) = if dialect == contract.ask.dialect {
        let edits = edits::list(contract, target, turned, (form, &mut fit))?;
        let body = edits::apply(contract, &edits);
        (body, Vec::new(), edits::print(&edits))
    } else {
        let chat = translated(contract, target, turned, (form, &mut fit))?;
        let written = dialect.write_request_capped(&chat, edits::cap_field(target));
        (
            Bytes::from(written.bytes),
            written.losses,
            format!("{:?} {:?}", turned.cap, turned.reask).into_bytes(),
        )
    };
    losses.extend(edits::cap_loss(contract, target, turned));
    let (body, edits) = amended(body, edits, turned.objections, &mut losses);
    let (body, edits, way) = prefilled(body, edits, target, turned);
    Ok(Outgoing {
        uri: headers::uri(contract, target, turned.address)?,
        headers: headers::all(contract, target, turned.key)?,
        fingerprint: contract.fingerprint.attempt(&target.id, &edits),
        body,
        form,
        way,
        dialect,
        losses,
        lowerings: Arc::new(fit.lowerings),
    })
}

/// The body without what the target does not take.
fn amended(
    body: Bytes,
    mut edits: Vec<u8>,
    objections: &[Objection],
    losses: &mut Vec<Loss>,
) -> (Bytes, Vec<u8>) {
    if objections.is_empty() {
        return (body, edits);
    }
    let Some(amended) = amend::apply(&body, objections) else { return (body, edits) };
    losses.extend(amended.losses);
    edits.extend(format!("{objections:?}").into_bytes());
    (Bytes::from(amended.body), edits)
}

/// The body with the beginning of the reply in it, where the target is given one.
fn prefilled(
    body: Bytes,
    mut edits: Vec<u8>,
    target: &Target,
    turned: Turned<'_>,
) -> (Bytes, Vec<u8>, Way) {
    let asked = turned.prefill.zip(target.prefill);
    let given = asked.and_then(|(text, form)| Some((text, prefill::given(&body, text, form)?)));
    let Some((text, given)) = given else { return (body, edits, Way::Restart) };
    edits.extend(format!("prefill {text:?}").into_bytes());
    (given, edits, Way::Continue)
}

/// Whether the provider is asked for a stream.
fn form(contract: &Contract, target: &Target) -> Form {
    if !target.streams {
        return Form::Plain;
    }
    let wished = match (contract.wants, contract.route.upstream) {
        (Wants::Stream { .. }, _) => return Form::Stream,
        (Wants::Whole, Upstream::AsAsked) => false,
        (Wants::Whole, Upstream::Stream) => true,
        // 1,000 tokens take some 25 s at a slow 40 a second: longer than anyone should wait
        // without a sign of life. What may be stopped early has to be read as it comes.
        (Wants::Whole, Upstream::Auto) => {
            contract.guards.early_stop == EarlyStop::BehindValue
                || contract.cap.tokens.is_none_or(|cap| cap > 1_000)
        }
    };
    if wished && edits::folds_whole(contract) { Form::Stream } else { Form::Plain }
}

/// The neutral request for a provider of another dialect.
fn translated(
    contract: &Contract,
    target: &Target,
    turned: Turned<'_>,
    (form, fit): (Form, &mut Fit<'_>),
) -> Result<Chat, CallError> {
    let mut chat = contract.neutral()?.clone();
    if let Some(model) = &target.model {
        chat.model.clone_from(model);
    }
    chat.stream = form == Form::Stream;
    chat.include_usage = chat.stream;
    chat.max_output_tokens = edits::cap(contract, target, turned);
    if chat.stop.is_empty() {
        chat.stop.clone_from(&contract.route.stop);
    }
    match &fit.ask {
        Asking::Untouched => {}
        Asking::Schema(Held { name, schema, strict, .. }) => {
            let (name, schema) = (name.clone(), Value::clone(schema));
            chat.format = Some(Format::JsonSchema { name, schema, strict: *strict });
        }
        Asking::Json => chat.format = Some(Format::JsonObject),
        Asking::Nothing => chat.format = None,
    }
    for tool in chat.tools.iter_mut().filter(|tool| tool.strict == Some(true)) {
        match fit.tool(&tool.name, &tool.parameters, target.subset()) {
            Parameters::Untouched => {}
            Parameters::Lowered(schema) => tool.parameters = Value::clone(&schema),
            Parameters::Loose => tool.strict = Some(false),
        }
    }
    if let Some(Format::JsonSchema { schema, .. }) = &mut chat.format {
        without_own(schema);
    }
    chat.tools.iter_mut().for_each(|tool| without_own(&mut tool.parameters));
    if let Some(words) = fit.instruction() {
        let gap = if chat.system.is_empty() { "" } else { "\n\n" };
        chat.system.push(Part::Text(format!("{gap}{words}")));
    }
    chat.turns.extend_from_slice(turned.reask);
    Ok(chat)
}

/// Takes our own annotations out of a schema.
fn without_own(schema: &mut Value) {
    if let Some(stripped) = lower::without_own(schema) {
        *schema = stripped;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::contract::{Ask, settle};
    use crate::engine::Engine;
    use crate::policy::{Policy, Provider, Secret};
    use crate::record::CallLog;

    #[test]
    fn a_second_call_with_the_same_schemas_lowers_none_of_them_again() {
        let policy = Policy::of([Provider::openai(Secret::new("k".to_owned()))]);
        let engine = Engine::new(policy, CallLog::memory(1)).unwrap();
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let body = json!({"model": "openai/gpt-x", "messages": [{"role": "user", "content": "a"}],
            "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}},
            "tools": [{"type": "function",
                "function": {"name": "t", "strict": true, "parameters": schema}}]});
        let built = || {
            let ask = Ask::new(Dialect::OpenaiChat, body.to_string(), engine.now());
            let contract = settle(&engine, ask).unwrap();
            let target = Arc::clone(&contract.route.tiers[0][0]);
            build(engine.lowerings(), &contract, &target, Turned::default()).unwrap()
        };
        let (first, second) = (built(), built());
        assert_eq!(first.body, second.body);
        for tool in [None, Some("t")] {
            let of = |outgoing: &Outgoing| outgoing.lowerings.of(tool).map(std::ptr::from_ref);
            assert!(of(&first).is_some(), "{tool:?} was lowered");
            assert_eq!(of(&first), of(&second), "{tool:?} is the same one");
        }
        assert_eq!(engine.lowerings().len(), 2, "after the answer's schema the tool's is another");
    }
}
