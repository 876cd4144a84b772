//! One step of a streamed reply in the neutral form.

use super::error::ProviderError;
use super::logprobs::Logprobs;
use super::quirk::Quirk;
use super::reply::{Finish, Usage};

/// What one stream event adds. What belongs to a choice other than the first (`n` > 1) is wrapped
/// in [`Delta::OtherChoice`].
#[derive(Clone, Debug, PartialEq)]
pub enum Delta {
    /// The reply begins.
    Start {
        /// The provider's id of the reply; empty where it gives none.
        id: String,
        /// The model that answers, as the provider names it; empty where it gives none.
        model: String,
    },
    /// More of the answer's text. Never empty.
    Text(String),
    /// More of the model's reasoning. Never empty.
    Reasoning(String),
    /// The provider's signature over the reasoning so far.
    Signature(String),
    /// More of a refusal's words. Never empty.
    Refusal(String),
    /// How likely the model found the tokens of the text or reasoning that follows. It stands in the events as they
    /// came, and nowhere else: no writer says it.
    Logprobs(Logprobs),
    /// A tool call begins.
    ToolStart {
        /// Its place among the reply's tool calls, from 0.
        index: u32,
        /// The provider's id of the call.
        id: String,
        /// The tool's name.
        name: String,
    },
    /// More of a tool call's arguments, as JSON text. Never empty.
    ToolArguments {
        /// Which call.
        index: u32,
        /// The next piece.
        fragment: String,
    },
    /// The model stopped, and why. The stream goes on until [`Delta::End`].
    Finish {
        /// In our words.
        finish: Finish,
        /// In the provider's.
        word: Option<String>,
    },
    /// Tokens used so far; overwrites what was known.
    Usage(Usage),
    /// The provider reports a failure inside the stream.
    Error(ProviderError),
    /// The protocol's own end: `[DONE]`, `message_stop`.
    End,
    /// Alive, but no progress: a ping, an empty delta, a role.
    Alive,
    /// Something for a choice other than the first.
    OtherChoice {
        /// Its place among the choices, from 1.
        choice: u32,
        /// What it adds; never wrapped twice.
        delta: Box<Self>,
    },
    /// Content of a known kind that only the provider's own dialect can say, such as a citation or
    /// a server tool's block. It passes through as bytes; anything else loses it.
    Untold(String),
    /// An event or block of a kind not known here; counted, and raises an alert.
    Unknown(String),
    /// Something about a tool call in this event was not as the dialect has it, and was put right.
    /// Mostly told once a kind and choice.
    Quirk(Quirk),
}

impl Delta {
    /// Whether this is content: text, reasoning, refusal or a tool call. Only content is progress;
    /// anything else is merely a sign of life.
    pub fn is_content(&self) -> bool {
        match self {
            Self::Text(_) | Self::Reasoning(_) | Self::Refusal(_) => true,
            Self::OtherChoice { delta, .. } => delta.is_content(),
            other => other.is_call(),
        }
    }

    /// Whether this is content that adds to an answer. Blanks do not: some servers close a finished
    /// answer with a line end.
    pub(crate) fn says_something(&self) -> bool {
        match self {
            Self::Text(text) | Self::Reasoning(text) => !text.trim().is_empty(),
            delta => delta.is_content(),
        }
    }

    /// Bytes of what the model writes here: text, reasoning, a refusal or arguments of a call.
    pub fn text_bytes(&self) -> usize {
        match self {
            Self::Text(text) | Self::Reasoning(text) | Self::Refusal(text) => text.len(),
            Self::ToolArguments { fragment, .. } => fragment.len(),
            Self::OtherChoice { delta, .. } => delta.text_bytes(),
            _ => 0,
        }
    }

    /// `delta` as what it is for another choice. What is the whole stream's stays as it is.
    pub fn of_choice(choice: u32, delta: Self) -> Self {
        match delta {
            Self::Error(_) | Self::Unknown(_) | Self::Quirk(_) | Self::OtherChoice { .. } => delta,
            delta => Self::OtherChoice { choice, delta: Box::new(delta) },
        }
    }

    /// Whether this is a piece of a tool call of the first choice, or says of one that it was put
    /// right.
    pub fn is_call(&self) -> bool {
        matches!(self, Self::ToolStart { .. } | Self::ToolArguments { .. } | Self::Quirk(_))
    }
}
