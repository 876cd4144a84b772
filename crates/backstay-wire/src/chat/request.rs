//! A chat request in the neutral form.

use serde_json::{Map, Number, Value};

use crate::dialect::Dialect;

/// What a caller asks of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chat {
    /// The dialect it was read from, so that the same dialect can keep every entry of `extra` and
    /// another one can tell what is foreign to it. `None`: built by hand.
    pub source: Option<Dialect>,
    /// The model's name, as the caller wrote it.
    pub model: String,
    /// Instructions that stand above the conversation. Empty: none.
    pub system: Vec<Part>,
    /// The conversation, oldest turn first.
    pub turns: Vec<Turn>,
    /// Tools the model may call. Empty: none.
    pub tools: Vec<Tool>,
    /// Which tool must, may or must not be called. `None`: the provider's default.
    pub tool_choice: Option<ToolChoice>,
    /// Whether several tools may be called in one turn. `None`: the provider's default.
    pub parallel_tools: Option<bool>,
    /// The most tokens the model may write. `None`: the provider's default.
    pub max_output_tokens: Option<u64>,
    /// Strings at which generation stops. Empty: none.
    pub stop: Vec<String>,
    /// Sampling temperature as written, so that no digit changes.
    pub temperature: Option<Number>,
    /// Nucleus sampling as written.
    pub top_p: Option<Number>,
    /// What shape the reply must have. `None`: free text.
    pub format: Option<Format>,
    /// Whether the reply is asked for as a stream.
    pub stream: bool,
    /// Whether a stream should end with a usage event (`OpenAI`: `stream_options.include_usage`).
    pub include_usage: bool,
    /// An opaque name of the end user.
    pub user: Option<String>,
    /// Everything else of the source's top level, kept for the same dialect; another dialect
    /// reports each entry as a [`super::Loss`].
    pub extra: Map<String, Value>,
}

/// Who speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The person or program that asks.
    User,
    /// The model.
    Assistant,
    /// The result of a tool, addressed to the model.
    Tool,
    /// An instruction in the middle of the conversation.
    System,
}

/// One turn of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order. May be empty.
    pub parts: Vec<Part>,
}

/// A piece of a turn or of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Part {
    /// Plain text.
    Text(String),
    /// A picture: a URL, or base64 with its media type.
    Image {
        /// Such as `image/png`. `None` where only a URL is known.
        media_type: Option<String>,
        /// Base64 text or a URL.
        source: ImageSource,
    },
    /// The model asks for a tool.
    ToolCall {
        /// The provider's id of this call.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments as JSON text, exactly as received. May be blank or broken.
        arguments: String,
    },
    /// What a tool answered.
    ToolResult {
        /// The id of the call it answers.
        id: String,
        /// The answer.
        parts: Vec<Self>,
        /// Whether the tool failed.
        failed: bool,
    },
    /// The model's reasoning, with the provider's signature where it has one.
    Thinking {
        /// The text; empty where the provider hides it.
        text: String,
        /// Opaque and bound to its provider.
        signature: Option<String>,
    },
    /// A refusal in its own field.
    Refusal(String),
    /// A block of a kind not known here, whole. Only the same dialect can write it.
    Other(Value),
}

/// Where a picture is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ImageSource {
    /// An address the provider fetches.
    Url(String),
    /// The bytes, in base64.
    Base64(String),
}

/// A tool the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it is for, to the model. Empty: none given.
    pub description: String,
    /// A JSON Schema of its arguments.
    pub parameters: Value,
    /// Whether the provider is asked to hold the arguments to the schema.
    pub strict: Option<bool>,
    /// Fields of the source's tool that are not named here.
    pub extra: Map<String, Value>,
}

/// How free the model is in calling tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    Auto,
    /// It must not.
    Never,
    /// It must call some tool.
    Required,
    /// It must call this one.
    Named(String),
}

/// The shape asked of a reply.
#[derive(Clone, Debug, PartialEq)]
pub enum Format {
    /// Some JSON value.
    JsonObject,
    /// A JSON value that fits the schema.
    JsonSchema {
        /// A short name; providers want one.
        name: String,
        /// The schema.
        schema: Value,
        /// Whether the provider is asked to enforce it. `None`: its default.
        strict: Option<bool>,
    },
}

impl Chat {
    /// The text of the last user turn, its text parts joined; empty when there is none.
    pub fn last_user_text(&self) -> String {
        let turn = self.turns.iter().rev().find(|t| t.role == Role::User && t.has_text());
        turn.map(Turn::text).unwrap_or_default()
    }
}

impl Turn {
    /// A turn that says one text.
    pub fn said(role: Role, text: impl Into<String>) -> Self {
        Self { role, parts: vec![Part::Text(text.into())] }
    }

    /// The text parts, joined.
    pub fn text(&self) -> String {
        join_text(&self.parts)
    }

    fn has_text(&self) -> bool {
        self.parts.iter().any(|p| matches!(p, Part::Text(_)))
    }
}

/// The text parts of `parts`, joined with nothing between.
pub(crate) fn join_text(parts: &[Part]) -> String {
    let mut text = String::new();
    for part in parts {
        if let Part::Text(piece) = part {
            text.push_str(piece);
        }
    }
    text
}
