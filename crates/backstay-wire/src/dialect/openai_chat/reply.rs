//! Whole replies of `OpenAI` Chat Completions, both ways.

use serde_json::{Map, Value, json};

use super::logprobs;
use super::wire::{self, Body, Call, Content, Said};
use crate::chat::{Choice, Finish, Logprobs, Loss, Part, ProviderError, Reply, Usage};
use crate::dialect::openai_chat::error;
use crate::dialect::openai_chat::fields::merge;
use crate::dialect::{Malformed, ReadFault, Written, is_error_body};

/// Said in place of a refusal's words where the other dialect gives none: without the field the
/// caller would take a refusal for an answer.
pub(super) const REFUSAL_WITHOUT_WORDS: &str = "the model declined to answer";

/// The most unknown elements listed of one reply.
const MAX_UNKNOWN: usize = 32;

/// Reads a reply.
pub(crate) fn read(body: &[u8]) -> Result<Reply, ReadFault> {
    wire::parse(body, |parsed| read_body(body, parsed)).unwrap_or_else(|| {
        match error::RULES.in_words(body) {
            Some(error) => Err(ReadFault::Failure(error)),
            None => Err(explain(body).into()),
        }
    })
}

fn read_body(bytes: &[u8], body: Body<'_>) -> Result<Reply, ReadFault> {
    if body.is_error() {
        return Err(ReadFault::Failure(in_band(bytes)));
    }
    let Some(choices) = body.choices else {
        if let Some(error) = error_among(bytes) {
            return Err(ReadFault::Failure(error));
        }
        return Err(Malformed::new("/choices", "expected an array, found nothing").into());
    };
    if choices.is_empty() {
        return Err(Malformed::new("/choices", "expected at least one choice, found none").into());
    }
    let mut reply = Reply {
        created: body.created.whole().unwrap_or(0),
        id: body.id.into_text().into_owned(),
        model: body.model.into_text().into_owned(),
        usage: body.usage.as_ref().map(Usage::from).unwrap_or_default(),
        ..Reply::default()
    };
    for (index, choice) in choices.into_iter().enumerate() {
        if let Some(raw) = choice.error.filter(|raw| !wire::is_blank(raw.get())) {
            return Err(ReadFault::Failure(error_of_choice(raw.get())));
        }
        let finish_word = choice.finish_word();
        let Some(message) = choice.message else {
            let path = format!("/choices/{index}/message");
            return Err(Malformed::new(path, "expected an object, found nothing").into());
        };
        let mut unknown = vec![];
        if let Some(told) = choice.logprobs.and_then(logprobs::read) {
            reply.logprobs.resize_with(index, Logprobs::default);
            reply.logprobs.push(told);
        }
        let parts = parts(message, &mut unknown);
        let mut choice = Choice { parts, finish: Finish::Unknown, finish_word };
        let refused = choice.refusal().is_some();
        choice.finish = wire::finish(choice.finish_word.as_deref(), refused);
        if let (Finish::Unknown, Some(word)) = (choice.finish, &choice.finish_word) {
            unknown.push(format!("finish reason: {word}"));
        }
        reply.unknown.extend(unknown);
        reply.choices.push(choice);
    }
    reply.unknown.truncate(MAX_UNKNOWN);
    Ok(reply)
}

fn in_band(bytes: &[u8]) -> ProviderError {
    error::RULES.in_band(&serde_json::from_slice(bytes).unwrap_or_default())
}

/// An error told by fields of other names than `error`.
pub(super) fn error_among(body: &[u8]) -> Option<ProviderError> {
    let value: Value = serde_json::from_slice(body).ok()?;
    is_error_body(&value).then(|| error::RULES.in_band(&value))
}

/// An error inside a choice, as routers report a provider that failed behind them.
pub(super) fn error_of_choice(raw: &str) -> ProviderError {
    let inner: Value = serde_json::from_str(raw).unwrap_or_default();
    error::RULES.in_band(&json!({ "error": inner }))
}

/// Says why a body could not be read, without quoting it.
fn explain(body: &[u8]) -> Malformed {
    match serde_json::from_slice::<Value>(body) {
        Err(_) if body.trim_ascii().is_empty() => Malformed::new("", "the reply is empty"),
        Err(error) => {
            let (line, column) = (error.line(), error.column());
            let what = if error.is_eof() { "ends in the middle" } else { "is not valid JSON" };
            Malformed::new("", format!("the reply {what} at line {line}, column {column}"))
        }
        Ok(Value::Object(map)) if !matches!(map.get("choices"), Some(Value::Array(_))) => {
            Malformed::new("/choices", "expected an array of objects")
        }
        Ok(Value::Object(_)) => Malformed::new("/choices", "a choice is not of the expected form"),
        Ok(_) => Malformed::new("", "expected an object"),
    }
}

fn parts(message: Said<'_>, unknown: &mut Vec<String>) -> Vec<Part> {
    let mut parts = vec![];
    if let Some(text) = message.reasoning() {
        parts.push(Part::Thinking { text: text.to_owned(), signature: None });
    }
    match message.content {
        Content::None => {}
        Content::Text(text) if text.is_empty() => {}
        Content::Text(text) => parts.push(Part::Text(text.into_owned())),
        Content::Parts(items) => {
            for item in items {
                parts.push(content_part(item, unknown));
            }
        }
    }
    if let Some(words) = message.refusal.text() {
        parts.push(Part::Refusal(words.to_owned()));
    }
    for call in message.tool_calls {
        parts.push(tool_call(call, unknown));
    }
    if let Some(function) = message.function_call {
        parts.push(Part::ToolCall {
            id: String::new(),
            arguments: function.arguments().into_owned(),
            name: function.name.into_text().into_owned(),
        });
    }
    unknown.extend(message.unknown.iter().map(|key| format!("message field: {key}")));
    parts
}

/// Reads one part of a content list; what is not known is counted and kept whole.
pub(super) fn content_part(item: Value, unknown: &mut Vec<String>) -> Part {
    let text = |key: &str| item.get(key).and_then(Value::as_str).map(str::to_owned);
    let kind = item.get("type").and_then(Value::as_str).unwrap_or("without a type");
    let read = match kind {
        "text" | "output_text" => text("text").map(Part::Text),
        "refusal" => text("refusal").map(Part::Refusal),
        "thinking" => item
            .get("thinking")
            .map(|thinking| Part::Thinking { text: thinking_text(thinking), signature: None }),
        _ => None,
    };
    if let Some(part) = read {
        return part;
    }
    unknown.push(format!("content part: {}", wire::bounded(kind)));
    Part::Other(item)
}

/// Mistral nests text parts in its reasoning.
fn thinking_text(thinking: &Value) -> String {
    match thinking {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            items.iter().filter_map(|item| item.get("text").and_then(Value::as_str)).collect()
        }
        _ => String::new(),
    }
}

fn tool_call(call: Call<'_>, unknown: &mut Vec<String>) -> Part {
    let Some(function) = call.function else {
        let kind = call.kind.text().unwrap_or("without a type").to_owned();
        unknown.push(format!("tool call: {}", wire::bounded(&kind)));
        let custom: Value =
            call.custom.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        return Part::Other(json!({ "id": call.id.into_text(), "type": kind, "custom": custom }));
    };
    Part::ToolCall {
        id: call.id.into_text().into_owned(),
        arguments: function.arguments().into_owned(),
        name: function.name.into_text().into_owned(),
    }
}

// --- writing ---

/// Writes a complete `chat.completion`.
pub(crate) fn write(reply: &Reply) -> Written {
    let mut losses = vec![];
    let choices: Vec<Value> = reply
        .choices
        .iter()
        .enumerate()
        .map(|(index, choice)| write_choice(index, choice, &mut losses))
        .collect();
    let mut body = json!({
        "id": reply.id,
        "object": "chat.completion",
        "created": reply.created,
        "model": reply.model,
        "choices": choices,
    });
    if let Some(usage) = usage_json(&reply.usage) {
        merge(&mut body, json!({ "usage": usage }));
    }
    Written { bytes: body.to_string().into_bytes(), losses }
}

fn write_choice(index: usize, choice: &Choice, losses: &mut Vec<Loss>) -> Value {
    let mut text = String::new();
    let mut reasoning = String::new();
    let mut refusal: Option<String> = None;
    let mut calls = vec![];
    for (place, part) in choice.parts.iter().enumerate() {
        let path = format!("/choices/{index}/parts/{place}");
        match part {
            Part::Text(piece) => text.push_str(piece),
            Part::Thinking { text, signature } => {
                reasoning.push_str(text);
                if signature.is_some() {
                    losses.push(Loss::new(path, "the reasoning's signature cannot be said"));
                }
            }
            Part::Refusal(words) => refusal.get_or_insert_default().push_str(words),
            Part::ToolCall { id, name, arguments } => calls.push(json!({
                "id": id,
                "type": "function",
                "function": { "name": name, "arguments": arguments },
            })),
            Part::Image { .. } => losses.push(Loss::new(path, "a reply cannot hold a picture")),
            Part::ToolResult { .. } => {
                losses.push(Loss::new(path, "a reply cannot hold a tool's result"));
            }
            Part::Other(value) => {
                let kind = value.get("type").and_then(Value::as_str).unwrap_or("without a type");
                let note = format!("a block of kind {} cannot be said", wire::bounded(kind));
                losses.push(Loss::new(path, note));
            }
        }
    }
    if choice.finish == Finish::Refused && refusal.as_ref().is_none_or(String::is_empty) {
        let words = if text.is_empty() { REFUSAL_WITHOUT_WORDS.to_owned() } else { text.clone() };
        refusal = Some(words);
        text.clear();
    }
    let is_silent = text.is_empty() && (!calls.is_empty() || refusal.is_some());
    let content = if is_silent { Value::Null } else { Value::from(text) };
    let mut message = json!({ "role": "assistant", "content": content, "refusal": refusal });
    if !reasoning.is_empty() {
        merge(&mut message, json!({ "reasoning_content": reasoning }));
    }
    if !calls.is_empty() {
        merge(&mut message, json!({ "tool_calls": calls }));
    }
    let finish = wire::finish_word(choice.finish, choice.finish_word.as_deref());
    json!({ "index": index, "message": message, "logprobs": null, "finish_reason": finish })
}

/// The usage object; `None` where nothing is known.
pub(crate) fn usage_json(usage: &Usage) -> Option<Value> {
    let mut counts = Map::new();
    let mut set = |key: &str, count: Option<Value>| {
        if let Some(count) = count {
            counts.insert(key.to_owned(), count);
        }
    };
    let total = usage.input.zip(usage.output).map(|(i, o)| i.saturating_add(o));
    set("prompt_tokens", usage.input.map(Value::from));
    set("completion_tokens", usage.output.map(Value::from));
    set("total_tokens", total.map(Value::from));
    let details = |pairs: &[(&str, Option<u64>)]| {
        let known =
            pairs.iter().filter_map(|(key, n)| Some(((*key).to_owned(), Value::from((*n)?))));
        let map: Map<String, Value> = known.collect();
        (!map.is_empty()).then_some(Value::Object(map))
    };
    let input = [("cached_tokens", usage.cached), ("cache_write_tokens", usage.cache_write)];
    set("prompt_tokens_details", details(&input));
    set("completion_tokens_details", details(&[("reasoning_tokens", usage.reasoning)]));
    (!counts.is_empty()).then_some(Value::Object(counts))
}
