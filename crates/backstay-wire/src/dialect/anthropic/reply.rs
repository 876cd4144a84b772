//! Whole replies.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use super::block::{self, Block, Input, parse_whole};
use super::error;
use super::usage::{self, Counters};
use crate::chat::{Choice, Finish, Loss, Part, ProviderError, Reply};
use crate::dialect::{Malformed, ReadFault, Written, is_error_body};

/// The most unknown elements listed of one reply.
const MAX_UNKNOWN: usize = 32;

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    stop_reason: Value,
    #[serde(default)]
    stop_details: Value,
    #[serde(default)]
    usage: Value,
}

#[derive(Deserialize)]
struct Signs {
    #[serde(default)]
    r#type: Value,
    #[serde(default)]
    error: Value,
}

/// What the provider tells of a failure, else that its body is no reply.
fn failure_or(fault: Malformed, told: Option<ProviderError>) -> ReadFault {
    told.map_or(ReadFault::Malformed(fault), ReadFault::Failure)
}

/// Reads a whole reply.
pub(crate) fn read(bytes: &[u8]) -> Result<Reply, ReadFault> {
    // A derived reader would take an array for the fields in order.
    let is_list = bytes.trim_ascii_start().starts_with(b"[");
    let signs: Signs = match parse_whole(bytes) {
        Ok(signs) if !is_list => signs,
        Ok(_) => {
            let fault = Malformed::new("", "expected an object");
            return Err(failure_or(fault, error::RULES.in_words(bytes)));
        }
        Err(fault) => return Err(failure_or(fault, error::RULES.in_words(bytes))),
    };
    if !signs.error.is_null() || signs.r#type == "error" {
        let whole: Value = parse_whole(bytes)?;
        if is_error_body(&whole) {
            return Err(ReadFault::Failure(error::RULES.in_band(&whole)));
        }
    }
    let body: Body<'_> = parse_whole(bytes)?;
    if body.content.is_none() && body.stop_reason.is_null() {
        let whole: Value = parse_whole(bytes)?;
        let told = is_error_body(&whole).then(|| error::RULES.in_band(&whole));
        let fault = Malformed::new("", "no reply: neither content nor stop_reason");
        return Err(failure_or(fault, told));
    }
    let mut unknown = Vec::new();
    let mut parts = match body.content {
        Some(content) => read_content(content, &mut unknown)?,
        None => Vec::new(),
    };
    let finish_word = word(&body.stop_reason);
    let finish = finish_of(finish_word.as_deref());
    note_finish(finish, finish_word.as_deref(), &mut unknown);
    if finish == Finish::Refused {
        parts.push(Part::Refusal(explanation(&body.stop_details).to_owned()));
    }
    let mut counters = Counters::default();
    counters.overwrite(&body.usage);
    Ok(Reply {
        id: body.id.unwrap_or_default(),
        model: body.model.unwrap_or_default(),
        choices: vec![Choice { parts, finish, finish_word }],
        usage: counters.neutral(),
        unknown,
        ..Reply::default()
    })
}

fn read_content(content: &RawValue, unknown: &mut Vec<String>) -> Result<Vec<Part>, Malformed> {
    let parts = block::read_all(content, "/content")?;
    for part in &parts {
        let Part::Other(value) = part else { continue };
        let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
        if !block::is_known_other(kind) && unknown.len() < MAX_UNKNOWN {
            unknown.push(format!("content block: {}", block::short(kind)));
        }
    }
    Ok(parts)
}

/// A string as it is, null as none, anything else as its JSON text.
pub(crate) fn word(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(word) => Some(word.clone()),
        other => Some(other.to_string()),
    }
}

/// Says which finish is not known, so that it raises an alert.
pub(crate) fn note_finish(finish: Finish, word: Option<&str>, unknown: &mut Vec<String>) {
    if let (Finish::Unknown, Some(word)) = (finish, word) {
        unknown.push(format!("stop_reason: {}", block::short(word)));
    }
}

/// The provider's words on a refusal; empty where it gives none.
pub(crate) fn explanation(stop_details: &Value) -> &str {
    stop_details.get("explanation").and_then(Value::as_str).unwrap_or_default()
}

/// What a `stop_reason` means.
pub(crate) fn finish_of(word: Option<&str>) -> Finish {
    match word {
        Some("end_turn" | "stop_sequence") => Finish::Complete,
        Some("max_tokens") => Finish::Truncated,
        Some("tool_use") => Finish::ToolUse,
        Some("refusal") => Finish::Refused,
        Some("model_context_window_exceeded") => Finish::ContextExceeded,
        Some("pause_turn" | "compaction") => Finish::Paused,
        _ => Finish::Unknown,
    }
}

/// The `stop_reason` for a finish: the reply's own word where it is one of this dialect, else ours.
/// An unknown finish is null, which no SDK takes for an end.
pub(crate) fn stop_reason(finish: Finish, word: Option<&str>) -> Value {
    if let Some(word) = word
        && finish != Finish::Unknown
        && finish_of(Some(word)) == finish
    {
        return word.into();
    }
    match finish {
        Finish::Complete => "end_turn".into(),
        Finish::Truncated => "max_tokens".into(),
        Finish::ToolUse => "tool_use".into(),
        Finish::Refused | Finish::ContentFiltered => "refusal".into(),
        Finish::ContextExceeded => "model_context_window_exceeded".into(),
        Finish::Paused => "pause_turn".into(),
        Finish::Unknown => Value::Null,
    }
}

/// What is lost when `finish` is written, if anything.
pub(crate) fn finish_loss(finish: Finish) -> Option<Loss> {
    let note = match finish {
        Finish::ContentFiltered => "a stop by the content filter is written as a refusal",
        Finish::Unknown => "a finish that is not known is written as null",
        Finish::Complete
        | Finish::Truncated
        | Finish::ToolUse
        | Finish::Refused
        | Finish::ContextExceeded
        | Finish::Paused => return None,
    };
    Some(Loss::new("/finish", note))
}

/// `stop_details` of a refusal.
pub(crate) fn stop_details(words: &str) -> Value {
    let words = if words.is_empty() { Value::Null } else { words.into() };
    json!({ "type": "refusal", "category": null, "explanation": words })
}

#[derive(Serialize)]
struct Out<'a> {
    id: &'a str,
    r#type: &'static str,
    role: &'static str,
    model: &'a str,
    content: Vec<Block>,
    stop_reason: Value,
    stop_sequence: Value,
    #[serde(skip_serializing_if = "Value::is_null")]
    stop_details: Value,
    usage: Value,
}

/// Writes a reply. Only the first choice has a form here; refusals go to `stop_details`.
pub(crate) fn write(reply: &Reply) -> Written {
    let mut losses = Vec::new();
    for at in 1..reply.choices.len() {
        losses.push(Loss::new(format!("/choices/{at}"), "only one answer can be given"));
    }
    if reply.usage.input.is_none() || reply.usage.output.is_none() {
        losses.push(Loss::new("/usage", "a count that is not known is written as 0"));
    }
    let empty = Choice::default();
    let choice = reply.choices.first().unwrap_or(&empty);
    let mut content = Vec::new();
    for (at, part) in choice.parts.iter().enumerate() {
        write_part(part, &format!("/choices/0/parts/{at}"), &mut content, &mut losses);
    }
    let (finish, word) = match choice.refusal() {
        Some(_) => (Finish::Refused, None),
        None => (choice.finish, choice.finish_word.as_deref()),
    };
    losses.extend(finish_loss(finish));
    let out = Out {
        id: &reply.id,
        r#type: "message",
        role: "assistant",
        model: &reply.model,
        content,
        stop_reason: stop_reason(finish, word),
        stop_sequence: Value::Null,
        stop_details: choice.refusal().map_or(Value::Null, stop_details),
        usage: usage::write(&reply.usage),
    };
    Written { bytes: serde_json::to_vec(&out).unwrap_or_default(), losses }
}

fn write_part(part: &Part, path: &str, content: &mut Vec<Block>, losses: &mut Vec<Loss>) {
    match part {
        Part::Text(words) if words.is_empty() => {}
        Part::Text(words) => content.push(block::text(words)),
        Part::Thinking { text, signature } => content.push(Block::Json(json!({
            "type": "thinking",
            "thinking": text,
            // Empty: not ours to sign. It is read back as absent, and never sent to a provider.
            "signature": signature.as_deref().unwrap_or_default(),
        }))),
        Part::ToolCall { id, name, arguments } => {
            let input = match block::input(arguments) {
                Input::Object(raw) => raw,
                Input::Wrapped(raw) => {
                    losses.push(Loss::new(path, "arguments that are no JSON object stand in _raw"));
                    raw
                }
            };
            let (id, name) = (id.clone(), name.clone());
            let kind = "tool_use";
            content.push(Block::ToolUse(block::ToolUse {
                kind,
                id,
                name,
                input,
                rest: Map::new(),
            }));
        }
        // Written as stop_details.
        Part::Refusal(_) => {}
        Part::Other(value) => {
            let kind = value.get("type").and_then(Value::as_str).unwrap_or_default();
            if block::is_known_other(kind) {
                content.push(Block::Json(value.clone()));
            } else {
                losses.push(Loss::new(path, format!("a block of type `{kind}` has no form here")));
            }
        }
        Part::Image { .. } | Part::ToolResult { .. } => {
            losses.push(Loss::new(path, "a reply has no such part"));
        }
    }
}
