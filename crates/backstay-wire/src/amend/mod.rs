//! Requests that a provider objects to, and how they are made so that it takes them.
//!
//! ```text
//!  400, body ─read_error─▶ ProviderError ─Objection::of─▶ Objection ┐
//!  request body ────────────────────────────────────────────────────┴─apply─▶ body, losses
//! ```
//!
//! Only what changes no question may be left out: how to sample, and words for the provider's books.
//! Each change is a [`Loss`], so that it is told.

mod history;

use crate::chat::{ErrorClass, Loss, ProviderError};
use crate::scan::{self, Edit, MAX_DEPTH};

/// Fields that may be left out of a request whose provider does not take them.
const OPTIONAL: [&str; 16] = [
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "presence_penalty",
    "frequency_penalty",
    "repetition_penalty",
    "seed",
    "logit_bias",
    "user",
    "metadata",
    "service_tier",
    "reasoning_effort",
    "verbosity",
    "prompt_cache_key",
    "safety_identifier",
];

/// Words by which a provider says that it does not take something.
const NOT_TAKEN: [&str; 10] = [
    "unsupported",
    "not supported",
    "not support",
    "unrecognized",
    "unknown",
    "unexpected",
    "not permitted",
    "not allowed",
    "cannot both",
    "deprecated",
];

/// What a provider does not take in a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Objection {
    /// A field of [`OPTIONAL`].
    Field(&'static str),
    /// The output cap under the name `max_tokens`: it wants `max_completion_tokens`.
    OldCap,
    /// The output cap under the name `max_completion_tokens`: it wants `max_tokens`.
    NewCap,
    /// Blocks of reasoning that another provider signed.
    SignedThinking,
    /// Ids of tool calls that another provider made: too long, or of letters it does not take.
    ToolIds,
}

impl Objection {
    /// What `error` objects to, where a request without it asks the same.
    pub fn of(error: &ProviderError) -> Option<Self> {
        if !matches!(error.class, ErrorClass::BadRequest | ErrorClass::TooLarge) {
            return None;
        }
        let message = error.message.to_ascii_lowercase();
        let blamed = error.param.as_deref().unwrap_or_default();
        let code = error.code.as_deref().unwrap_or_default();
        if message.contains("thinking")
            && (message.contains("signature") || message.contains("cannot be modified"))
        {
            return Some(Self::SignedThinking);
        }
        if is_about_tool_ids(&message, blamed, code) {
            return Some(Self::ToolIds);
        }
        let not_taken =
            matches!(code, "unsupported_parameter" | "unsupported_value" | "unknown_parameter")
                || NOT_TAKEN.iter().any(|word| message.contains(word));
        if !not_taken {
            return None;
        }
        match cap(&message, blamed) {
            Some(cap) => Some(cap),
            None => OPTIONAL
                .into_iter()
                .rev()
                .find(|field| names(&message, blamed, field))
                .map(Self::Field),
        }
    }

    /// Whether it holds for every request to the same model, and not only for one with such a past.
    pub fn is_lasting(self) -> bool {
        self != Self::SignedThinking
    }
}

/// Whether the cap's name is what is wrong.
fn cap(message: &str, blamed: &str) -> Option<Objection> {
    let (old, new) = ("max_tokens", "max_completion_tokens");
    if blamed == new || (blamed.is_empty() && begins_with_name(message, new)) {
        return Some(Objection::NewCap);
    }
    let about_old = blamed == old || (blamed.is_empty() && names(message, "", old));
    (about_old && message.contains(new)).then_some(Objection::OldCap)
}

/// Whether `field` is the one that a sentence, or the parameter it blames, is about.
fn names(message: &str, blamed: &str, field: &str) -> bool {
    if !blamed.is_empty() {
        return blamed == field;
    }
    let quoted =
        ['\'', '`', '"'].iter().any(|quote| message.contains(&format!("{quote}{field}{quote}")));
    quoted || begins_with_name(message, field)
}

/// `field: Extra inputs …`, or `… supplied: field`.
fn begins_with_name(message: &str, field: &str) -> bool {
    let colon = message.strip_prefix(field).is_some_and(|rest| rest.starts_with(':'));
    colon || message.split(": ").skip(1).any(|said| said.trim_end_matches('.') == field)
}

fn is_about_tool_ids(message: &str, blamed: &str, code: &str) -> bool {
    let about = |text: &str| {
        let named =
            ["tool_call_id", "tool_use_id", "tool_use.id"].iter().any(|name| text.contains(name));
        named || (text.contains("tool_calls") && (text.contains(".id") || text.contains("'id'")))
    };
    let too_long = code == "string_above_max_length"
        || ["too long", "maximum length", "at most", "pattern"]
            .iter()
            .any(|word| message.contains(word));
    too_long && (about(blamed) || about(message))
}

/// A request as its provider takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amended {
    /// The body.
    pub body: Vec<u8>,
    /// What was changed.
    pub losses: Vec<Loss>,
}

/// `body`, a request in any dialect, without what is objected to. `None`: nothing of it is there, or
/// the body is no JSON object.
pub fn apply(body: &[u8], objections: &[Objection]) -> Option<Amended> {
    let head = scan::scan(body, MAX_DEPTH).ok()?;
    let (mut edits, mut losses) = (Vec::new(), Vec::new());
    let mut messages = None;
    for objection in objections {
        match *objection {
            Objection::Field(field) if head.span(field).is_some() => {
                edits.push(Edit::Remove(field));
                losses
                    .push(Loss::new(format!("/{field}"), "left out: the target does not take it"));
            }
            Objection::Field(_) => {}
            Objection::OldCap => {
                rename(&head, body, ("max_tokens", "max_completion_tokens"), &mut edits);
            }
            Objection::NewCap => {
                rename(&head, body, ("max_completion_tokens", "max_tokens"), &mut edits);
            }
            Objection::SignedThinking | Objection::ToolIds => {
                let raw = head.raw(body, "messages").and_then(|raw| std::str::from_utf8(raw).ok());
                let Some(before) = messages.as_deref().or(raw) else { continue };
                let changed = if *objection == Objection::ToolIds {
                    history::with_short_ids(before)
                } else {
                    history::without_thinking(before)
                };
                if let Some((text, note)) = changed {
                    messages = Some(text);
                    losses.push(Loss::new("/messages", note));
                }
            }
        }
    }
    edits.extend(messages.map(|text| Edit::Set("messages", text)));
    (!edits.is_empty()).then(|| Amended { body: head.edit(body, &edits), losses })
}

/// The value of one field under another name. Nothing is lost.
fn rename(
    head: &scan::Scanned,
    body: &[u8],
    (from, to): (&'static str, &'static str),
    edits: &mut Vec<Edit>,
) {
    let value = head.raw(body, from).and_then(|raw| std::str::from_utf8(raw).ok());
    if let Some(value) = value.filter(|_| head.span(to).is_none()) {
        edits.push(Edit::Set(to, value.to_owned()));
    }
    if head.span(from).is_some() {
        edits.push(Edit::Remove(from));
    }
}

#[cfg(test)]
mod tests;
