//! Says something in the caller's own prompt, in its own bytes.

use backstay_decide::Local;
use backstay_wire::Dialect;
use backstay_wire::scan::Edit;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::contract::Contract;
use crate::fault::CallError;

/// The edit that puts `words` at the end of the system prompt. In a chat of the `OpenAI` dialect that
/// is an edit of `messages`, whose other messages keep their bytes.
pub(super) fn said(contract: &Contract, words: &str) -> Result<Edit, CallError> {
    match contract.ask.dialect {
        Dialect::OpenaiChat => Ok(Edit::Set("messages", in_messages(contract, words)?)),
        Dialect::Anthropic => {
            let raw = contract.head.raw(&contract.ask.body, "system").unwrap_or(b"null");
            let system = longer(serde_json::from_slice(raw).unwrap_or_default(), words);
            Ok(Edit::Set("system", system.to_string()))
        }
    }
}

fn in_messages(contract: &Contract, words: &str) -> Result<String, CallError> {
    let raw = contract.head.raw(&contract.ask.body, "messages").unwrap_or(b"[]");
    let messages: Vec<&RawValue> = serde_json::from_slice(raw).map_err(|_| {
        CallError::local(Local::InvalidRequest, "`messages` is not a list").blaming("messages")
    })?;
    let mut parts: Vec<String> = messages.iter().map(|message| message.get().to_owned()).collect();
    let first = messages.first().and_then(|first| serde_json::from_str::<Value>(first.get()).ok());
    let is_system = |message: &Value| {
        message.get("role").is_some_and(|role| role == "system" || role == "developer")
    };
    match (first.filter(is_system), parts.first_mut()) {
        (Some(mut system), Some(place)) => {
            let content = system.get("content").cloned().unwrap_or_default();
            system["content"] = longer(content, words);
            *place = system.to_string();
        }
        _ => parts.insert(0, json!({ "role": "system", "content": words }).to_string()),
    }
    Ok(format!("[{}]", parts.join(",")))
}

/// A text, or a list of blocks, with `words` behind it.
fn longer(content: Value, words: &str) -> Value {
    match content {
        Value::String(text) if !text.trim().is_empty() => Value::from(format!("{text}\n\n{words}")),
        Value::Array(mut blocks) => {
            blocks.push(json!({ "type": "text", "text": words }));
            Value::Array(blocks)
        }
        _ => Value::from(words),
    }
}
