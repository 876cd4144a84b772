//! The few changes that the caller's own bytes need on their way to a provider of its dialect.

use backstay_wire::chat::{Role, Turn};
use backstay_wire::lower;
use backstay_wire::scan::Edit;
use backstay_wire::{Dialect, Loss};
use bytes::Bytes;
use serde_json::{Value, json};

use super::fit::{Asking, Fit, Held, Parameters};
use super::{Form, Turned, prompt};
use crate::contract::{Added, CapOwner, Contract, Wants, cap_fields, output_config};
use crate::fault::CallError;
use crate::policy::{CapField, Target};

/// Fields whose effect a fold of the stream would lose: several answers, log probabilities, sound,
/// the annotations of a web search, reasoning that is redacted, blocks of servers' tools.
const NOT_FOLDED: [&str; 10] = [
    "n",
    "logprobs",
    "top_logprobs",
    "modalities",
    "audio",
    "store",
    "web_search_options",
    "thinking",
    "mcp_servers",
    "container",
];

/// The cap that is sent where nothing is known of the model, or more might not fit its window: the
/// smallest output limit among the models the Messages API has had.
const LEAST: u64 = 4_096;

/// Whether a streamed reply, folded, says all that a plain one would.
pub(super) fn folds_whole(contract: &Contract) -> bool {
    let body = &contract.ask.body;
    let has_plain_fields = NOT_FOLDED.iter().all(|key| {
        let raw = contract.head.raw(body, key).unwrap_or(b"null");
        match *key {
            "n" if raw == b"1" => true,
            "thinking" => is_off(raw),
            _ => matches!(raw, b"null" | b"false"),
        }
    });
    has_plain_fields && !contract.has_server_tools()
}

/// Whether a `thinking` field asks for none.
fn is_off(raw: &[u8]) -> bool {
    let thinking: Value = serde_json::from_slice(raw).unwrap_or_default();
    thinking.is_null() || thinking.get("type").is_some_and(|kind| kind == "disabled")
}

/// The output cap to send: the raised one, the caller's, or the route's, within what the model can
/// write. Where nobody set one and only the target's dialect demands it, as much as surely is taken.
pub(super) fn cap(contract: &Contract, target: &Target, turned: Turned<'_>) -> Option<u64> {
    match turned.cap.or(contract.cap.tokens) {
        Some(cap) => Some(target.max_output_tokens.map_or(cap, |most| cap.min(most))),
        None => match (contract.ask.dialect, target.provider.dialect) {
            (Dialect::OpenaiChat, Dialect::Anthropic) => {
                Some(own_cap(contract, target, turned.added))
            }
            (Dialect::OpenaiChat | Dialect::Anthropic, _) => None,
        },
    }
}

/// As much as the model can write and as surely fits its window beside the prompt: the Messages
/// API refuses a cap that goes over either. Every byte of the prompt is taken for a token.
fn own_cap(contract: &Contract, target: &Target, added: Added) -> u64 {
    let Some(most) = target.max_output_tokens else { return LEAST };
    let prompt = contract.ask.body.len() as u64 + added.bytes;
    let room = target.context_tokens.map_or(most, |window| window.saturating_sub(prompt));
    most.min(room.max(LEAST))
}

/// What is to be told of the cap in [`cap`]: that it is ours, or lower than the caller's.
pub(super) fn cap_loss(contract: &Contract, target: &Target, turned: Turned<'_>) -> Option<Loss> {
    let sent = cap(contract, target, turned)?;
    match contract.cap.tokens {
        None if turned.cap.is_none() => {
            let note = format!("not given and demanded by the target's API; set to {sent}");
            Some(Loss::new("/max_tokens", note))
        }
        Some(asked) if contract.cap.owner == CapOwner::Caller && sent < asked => {
            let mut fields = cap_fields(contract.ask.dialect).iter();
            let field = fields.find(|field| contract.head.span(field).is_some())?;
            let note = format!("lowered from {asked} to {sent}, the most the model can write");
            Some(Loss::new(format!("/{field}"), note))
        }
        Some(_) | None => None,
    }
}

/// The edits for `target`, in the order of the request's life.
pub(super) fn list(
    contract: &Contract,
    target: &Target,
    turned: Turned<'_>,
    (form, fit): (Form, &mut Fit<'_>),
) -> Result<Vec<Edit>, CallError> {
    let mut edits = Vec::new();
    if let Some(model) = target.model.as_ref().filter(|model| **model != contract.model) {
        edits.push(Edit::Set("model", json!(model).to_string()));
    }
    delivery(contract, form, &mut edits);
    output(contract, target, turned, &mut edits);
    shape(contract, fit, &mut edits);
    edits.extend(strict_tools(contract, target, fit));
    without_own(contract, &mut edits);
    if let Some(words) = fit.instruction() {
        edits.push(prompt::said(contract, &words)?);
    }
    if !turned.reask.is_empty() {
        let said = edits.iter().rev().find_map(|edit| match edit {
            Edit::Set("messages", text) => Some(text.as_bytes()),
            Edit::Set(..) | Edit::Remove(_) => None,
        });
        let raw = said.or(contract.head.raw(&contract.ask.body, "messages")).unwrap_or(b"[]");
        edits.push(Edit::Set("messages", longer(raw, turned.reask)?));
    }
    Ok(edits)
}

fn delivery(contract: &Contract, form: Form, edits: &mut Vec<Edit>) {
    let asked = matches!(contract.wants, Wants::Stream { .. });
    match form {
        Form::Stream if !asked => edits.push(Edit::Set("stream", "true".into())),
        Form::Plain if asked => edits.push(Edit::Set("stream", "false".into())),
        Form::Stream | Form::Plain => {}
    }
    if contract.ask.dialect != Dialect::OpenaiChat {
        return;
    }
    let usage_asked = matches!(contract.wants, Wants::Stream { usage: true });
    if form == Form::Stream && !usage_asked {
        let raw = contract.head.raw(&contract.ask.body, "stream_options").unwrap_or(b"{}");
        let mut options: Value = serde_json::from_slice(raw).unwrap_or_default();
        if !options.is_object() {
            options = json!({});
        }
        options["include_usage"] = json!(true);
        edits.push(Edit::Set("stream_options", options.to_string()));
    }
    if form == Form::Plain && asked {
        edits.push(Edit::Remove("stream_options"));
    }
}

fn output(contract: &Contract, target: &Target, turned: Turned<'_>, edits: &mut Vec<Edit>) {
    let name = cap_field(target).key();
    let present: Vec<&'static str> = cap_fields(contract.ask.dialect)
        .iter()
        .copied()
        .filter(|field| contract.head.span(field).is_some())
        .collect();
    let cap = cap(contract, target, turned);
    let as_it_is = contract.cap.owner == CapOwner::Caller
        && cap == contract.cap.tokens
        && present.as_slice() == [name];
    if let Some(tokens) = cap.filter(|_| !as_it_is) {
        edits.push(Edit::Set(name, tokens.to_string()));
        edits.extend(present.into_iter().filter(|field| *field != name).map(Edit::Remove));
    }
    let (stop, has) = match contract.ask.dialect {
        Dialect::OpenaiChat => ("stop", contract.head.span("stop").is_some()),
        Dialect::Anthropic => ("stop_sequences", contract.head.span("stop_sequences").is_some()),
    };
    if !has && !contract.route.stop.is_empty() {
        edits.push(Edit::Set(stop, json!(contract.route.stop).to_string()));
    }
}

/// The name under which `target` knows the output cap.
pub(super) fn cap_field(target: &Target) -> backstay_wire::dialect::CapField {
    use backstay_wire::dialect::CapField as Wire;
    match (target.provider.dialect, target.provider.cap_field) {
        (Dialect::Anthropic, _) | (Dialect::OpenaiChat, CapField::MaxTokens) => Wire::MaxTokens,
        (Dialect::OpenaiChat, CapField::MaxCompletionTokens) => Wire::MaxCompletionTokens,
    }
}

/// The response format as it fits the target.
fn shape(contract: &Contract, fit: &Fit<'_>, edits: &mut Vec<Edit>) {
    let dialect = contract.ask.dialect;
    let field = crate::contract::format_field(dialect);
    match (&fit.ask, dialect) {
        (Asking::Untouched, _) => {}
        (Asking::Schema(held), _) => edits.push(Edit::Set(field, written(contract, held))),
        (Asking::Json, Dialect::OpenaiChat) => {
            edits.push(Edit::Set(field, json!({"type": "json_object"}).to_string()));
        }
        (Asking::Json | Asking::Nothing, _) => {
            if contract.head.span(field).is_some() {
                edits.push(without_format(contract, field));
            }
        }
    }
}

fn written(contract: &Contract, held: &Held) -> String {
    let Held { name, schema, strict, .. } = held;
    match contract.ask.dialect {
        Dialect::OpenaiChat => {
            // What else the caller says of its schema stays, such as a description.
            let raw = contract.head.raw(&contract.ask.body, "response_format").unwrap_or(b"{}");
            let own: Value = serde_json::from_slice(raw).unwrap_or_default();
            let mut named = match own.get("json_schema") {
                Some(Value::Object(named)) => named.clone(),
                _ => serde_json::Map::new(),
            };
            named.entry("name").or_insert_with(|| name.as_str().into());
            named.insert("schema".into(), Value::clone(schema));
            if let Some(strict) = strict {
                named.insert("strict".into(), (*strict).into());
            }
            json!({"type": "json_schema", "json_schema": named}).to_string()
        }
        Dialect::Anthropic => output_config(&contract.head, &contract.ask.body, schema).to_string(),
    }
}

/// The caller's tools as they came, if one of them may be strict: cheaper than reading every list.
pub(super) fn maybe_strict_tools(contract: &Contract) -> Option<&[u8]> {
    let raw = contract.head.raw(&contract.ask.body, "tools")?;
    memchr::memmem::find(raw, b"\"strict\"").map(|_| raw)
}

/// The tools with the parameters of strict ones lowered. `None`: they go as they are.
pub(super) fn strict_tools(
    contract: &Contract,
    target: &Target,
    fit: &mut Fit<'_>,
) -> Option<Edit> {
    let raw = maybe_strict_tools(contract)?;
    let mut tools: Vec<Value> = serde_json::from_slice(raw).ok()?;
    let mut changed = false;
    for tool in &mut tools {
        let (tool, field) = match contract.ask.dialect {
            Dialect::OpenaiChat => (tool.get_mut("function"), "parameters"),
            Dialect::Anthropic => (Some(tool), "input_schema"),
        };
        let Some(tool) = tool.filter(|tool| tool.get("strict") == Some(&Value::Bool(true))) else {
            continue;
        };
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let Some(parameters) = tool.get(field) else { continue };
        match fit.tool(&name, parameters, target.subset()) {
            Parameters::Untouched => continue,
            Parameters::Lowered(schema) => tool[field] = Value::clone(&schema),
            Parameters::Loose => tool["strict"] = Value::Bool(false),
        }
        changed = true;
    }
    changed.then(|| Edit::Set("tools", Value::Array(tools).to_string()))
}

/// Takes our own annotations out of every schema that goes, and leaves the other bytes.
fn without_own(contract: &Contract, edits: &mut Vec<Edit>) {
    let fields: &[(&'static str, &[&str])] = match contract.ask.dialect {
        Dialect::OpenaiChat => &[
            ("response_format", &["json_schema", "schema"]),
            ("tools", &["*", "function", "parameters"]),
            ("functions", &["*", "parameters"]),
        ],
        Dialect::Anthropic => {
            &[("output_config", &["format", "schema"]), ("tools", &["*", "input_schema"])]
        }
    };
    for (field, path) in fields {
        let made = edits.iter_mut().find_map(|edit| match edit {
            Edit::Set(key, text) if key == field => Some(Some(text)),
            Edit::Remove(key) if key == field => Some(None),
            Edit::Set(..) | Edit::Remove(_) => None,
        });
        match made {
            Some(Some(text)) => {
                if let Some(cut) = lower::cut_own(text, path) {
                    *text = cut;
                }
            }
            Some(None) => {}
            None => {
                let raw = contract.head.raw(&contract.ask.body, field).unwrap_or_default();
                let cut = std::str::from_utf8(raw).ok().and_then(|raw| lower::cut_own(raw, path));
                edits.extend(cut.map(|cut| Edit::Set(field, cut)));
            }
        }
    }
}

/// Takes the format out and leaves what else the field says.
fn without_format(contract: &Contract, field: &'static str) -> Edit {
    if contract.ask.dialect == Dialect::OpenaiChat {
        return Edit::Remove(field);
    }
    let raw = contract.head.raw(&contract.ask.body, field).unwrap_or(b"{}");
    match serde_json::from_slice::<Value>(raw) {
        Ok(Value::Object(mut config)) => {
            config.remove("format");
            if config.is_empty() {
                return Edit::Remove(field);
            }
            Edit::Set(field, Value::Object(config).to_string())
        }
        _ => Edit::Remove(field),
    }
}

/// The messages with the re-ask's turns behind them.
fn longer(raw: &[u8], turns: &[Turn]) -> Result<String, CallError> {
    let text = std::str::from_utf8(raw).map_err(|_| {
        CallError::local(backstay_decide::Local::InvalidRequest, "`messages` is not UTF-8")
    })?;
    let text = text.trim_end();
    let mut text = text.strip_suffix(']').unwrap_or(text).trim_end().to_owned();
    // The contract has seen to it that the list is not empty.
    for turn in turns {
        let role = if turn.role == Role::Assistant { "assistant" } else { "user" };
        text.push(',');
        text.push_str(&json!({"role": role, "content": turn.text()}).to_string());
    }
    text.push(']');
    Ok(text)
}

/// The caller's bytes with `edits` made; the same bytes when there are none.
pub(super) fn apply(contract: &Contract, edits: &[Edit]) -> Bytes {
    if edits.is_empty() {
        return contract.ask.body.clone();
    }
    Bytes::from(contract.head.edit(&contract.ask.body, edits))
}

/// The edits as bytes to be hashed.
pub(super) fn print(edits: &[Edit]) -> Vec<u8> {
    let mut out = Vec::new();
    for edit in edits {
        match edit {
            Edit::Set(key, value) => {
                out.extend_from_slice(key.as_bytes());
                out.push(b'=');
                out.extend_from_slice(value.as_bytes());
            }
            Edit::Remove(key) => {
                out.push(b'-');
                out.extend_from_slice(key.as_bytes());
            }
        }
        out.push(0);
    }
    out
}
