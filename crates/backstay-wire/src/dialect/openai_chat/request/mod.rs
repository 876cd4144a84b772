//! Requests of `OpenAI` Chat Completions, both ways.
//!
//! What the neutral form has no place for is kept, so that the same dialect can write it again:
//! unknown top-level fields, tools that are no functions and odd forms of known fields in
//! [`crate::Chat::extra`] under their own name; unknown fields of a message or of a part in a
//! [`crate::chat::Part::Other`] that holds one of the keys below.

mod read;
mod write;

use crate::scan::Scanned;

pub(crate) use read::read;
pub(crate) use write::{write, write_capped};

/// Key of an `Other` part: fields of the message itself, such as `name`.
const MESSAGE_FIELDS: &str = "message_fields";
/// Key of an `Other` part: further fields of the part before it, such as `cache_control`.
const PART_FIELDS: &str = "part_fields";

/// Under which name the output cap is sent.
///
/// `OpenAI` and Azure want `max_completion_tokens` and their reasoning models refuse the old name;
/// most compatible servers (Mistral, Together, `DeepSeek`, llama.cpp, TGI) know only `max_tokens`.
/// So the old name is the default, and a provider's entry chooses the new one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CapField {
    /// `max_tokens`.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

impl CapField {
    /// The field's name.
    pub fn key(self) -> &'static str {
        match self {
            Self::MaxTokens => "max_tokens",
            Self::MaxCompletionTokens => "max_completion_tokens",
        }
    }

    /// The name a caller used; the new one where both stand, as it is the one that counts then.
    /// `None`: the caller set no cap.
    pub fn of(scanned: &Scanned) -> Option<Self> {
        [Self::MaxCompletionTokens, Self::MaxTokens]
            .into_iter()
            .find(|field| scanned.span(field.key()).is_some())
    }
}
