//! The wire formats, one folder each, behind one enum.
//!
//! A dialect's folder has the same four files: `request`, `reply`, `stream`, `error`. Adding a
//! provider family means a folder and one arm in each `match` here.

pub mod anthropic;
mod called;
pub(crate) mod errors;
pub mod openai_chat;
mod place;
mod surroundings;
mod told;
pub(crate) mod whole;

use serde_json::Value;

use crate::chat::{Chat, Delta, Loss, ProviderError, Reply, Usage};
use crate::frame::sse::Event;

pub use called::Called;
pub use openai_chat::request::CapField;
pub use place::{OpenBlock, StreamPlace};

/// A provider family's wire format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// `OpenAI` Chat Completions and everything compatible with it.
    OpenaiChat,
    /// Anthropic Messages.
    Anthropic,
}

/// Bytes of a dialect, and what it could not say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The body.
    pub bytes: Vec<u8>,
    /// What was lost on the way.
    pub losses: Vec<Loss>,
}

/// A body that is not what its dialect says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {note}")]
pub struct Malformed {
    /// Where, as a JSON pointer; empty for the whole body.
    pub path: String,
    /// What is wrong and what was expected, in one sentence, fit to show to the sender.
    pub note: String,
}

impl Malformed {
    /// A fault at `path`, told by `note`.
    pub fn new(path: impl Into<String>, note: impl Into<String>) -> Self {
        Self { path: path.into(), note: note.into() }
    }
}

/// A typed failure to be told to a caller in its own dialect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ErrorOut<'a> {
    /// HTTP status; chooses the dialect's `type` word where the code does not.
    pub status: u16,
    /// The stable code, such as `provider_overloaded`.
    pub code: &'a str,
    /// The sentence for a person.
    pub message: &'a str,
    /// The parameter to blame. `None`: none.
    pub param: Option<&'a str>,
    /// The call's id, for the log.
    pub call_id: &'a str,
}

impl Dialect {
    /// The name in config and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai_chat",
            Self::Anthropic => "anthropic",
        }
    }

    /// The path of a generating call below the provider's base URL.
    pub fn path(self) -> &'static str {
        match self {
            Self::OpenaiChat => "/chat/completions",
            Self::Anthropic => "/v1/messages",
        }
    }

    /// Reads a caller's request.
    ///
    /// # Errors
    /// [`Malformed`] names the first field that is not of the dialect's form.
    pub fn read_request(self, body: &[u8]) -> Result<Chat, Malformed> {
        match self {
            Self::OpenaiChat => openai_chat::request::read(body),
            Self::Anthropic => anthropic::request::read(body),
        }
    }

    /// The last `most` tool calls of the conversation in a request, in order. It is read from its end, and only as
    /// far as they reach. What cannot be read has none.
    pub fn last_calls(self, body: &[u8], most: usize) -> Vec<Called> {
        match self {
            Self::OpenaiChat => called::last(body, most, openai_chat::called::read),
            Self::Anthropic => called::last(body, most, anthropic::called::read),
        }
    }

    /// Writes a request for a provider of this dialect. `Chat::extra` is what another dialect left
    /// over: every entry becomes a loss, except those this dialect knows under the same name.
    pub fn write_request(self, chat: &Chat) -> Written {
        match self {
            Self::OpenaiChat => openai_chat::request::write(chat),
            Self::Anthropic => anthropic::request::write(chat),
        }
    }

    /// As [`Dialect::write_request`], with the output cap under the name this provider knows.
    /// Only `OpenAI` Chat has two.
    pub fn write_request_capped(self, chat: &Chat, cap: CapField) -> Written {
        match self {
            Self::OpenaiChat => openai_chat::request::write_capped(chat, cap),
            Self::Anthropic => anthropic::request::write(chat),
        }
    }

    /// Reads a provider's whole reply (status 200).
    ///
    /// # Errors
    /// [`ReadFault::Malformed`] for a body that is no reply; [`ReadFault::Failure`] for an error
    /// body under a success status.
    pub fn read_reply(self, body: &[u8]) -> Result<Reply, ReadFault> {
        match self {
            Self::OpenaiChat => openai_chat::reply::read(body),
            Self::Anthropic => anthropic::reply::read(body),
        }
    }

    /// Writes a reply for a caller of this dialect.
    pub fn write_reply(self, reply: &Reply) -> Written {
        match self {
            Self::OpenaiChat => openai_chat::reply::write(reply),
            Self::Anthropic => anthropic::reply::write(reply),
        }
    }

    /// The usage object of this dialect's replies. `None`: nothing is known.
    pub fn write_usage(self, usage: &Usage) -> Option<Value> {
        match self {
            _ if *usage == Usage::default() => None,
            Self::OpenaiChat => openai_chat::reply::usage_json(usage),
            Self::Anthropic => Some(anthropic::usage::write(usage)),
        }
    }

    /// Reads a provider's error response. Total: any bytes give some class, if only by status.
    pub fn read_error(self, status: u16, body: &[u8]) -> ProviderError {
        match self {
            Self::OpenaiChat => openai_chat::error::RULES.read(status, body),
            Self::Anthropic => anthropic::error::RULES.read(status, body),
        }
    }

    /// Writes an error body for a caller of this dialect.
    pub fn write_error(self, error: &ErrorOut<'_>) -> Vec<u8> {
        match self {
            Self::OpenaiChat => openai_chat::error::write(error),
            Self::Anthropic => anthropic::error::write(error),
        }
    }

    /// The event that ends a stream of this dialect.
    pub fn terminal_event(self) -> &'static [u8] {
        match self {
            Self::OpenaiChat => b"data: [DONE]\n\n",
            Self::Anthropic => b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
        }
    }

    /// A reader for one streamed reply.
    pub fn stream_reader(self) -> StreamReader {
        match self {
            Self::OpenaiChat => StreamReader::OpenaiChat(openai_chat::stream::Reader::default()),
            Self::Anthropic => StreamReader::Anthropic(anthropic::stream::Reader::default()),
        }
    }

    /// A writer for one streamed reply. `model` is the name the caller asked for;
    /// `usage` whether it asked for a usage event (`OpenAI` only).
    pub fn stream_writer(self, model: &str, usage: UsageEvent) -> StreamWriter {
        match self {
            Self::OpenaiChat => {
                StreamWriter::OpenaiChat(openai_chat::stream::Writer::new(model, usage))
            }
            Self::Anthropic => StreamWriter::Anthropic(anthropic::stream::Writer::new(model)),
        }
    }

    /// A writer for the rest of a streamed reply whose beginning was told as `place` says.
    pub fn stream_writer_from(self, place: &StreamPlace, usage: UsageEvent) -> StreamWriter {
        match self {
            Self::OpenaiChat => {
                StreamWriter::OpenaiChat(openai_chat::stream::Writer::going_on(place, usage))
            }
            Self::Anthropic => StreamWriter::Anthropic(anthropic::stream::Writer::going_on(place)),
        }
    }

    /// Writes a failure inside a stream that has begun, in the form this dialect's clients raise.
    pub fn write_stream_error(self, error: &ErrorOut<'_>) -> Vec<u8> {
        match self {
            Self::OpenaiChat => openai_chat::stream::write_error(error),
            Self::Anthropic => anthropic::stream::write_error(error),
        }
    }
}

/// Whether a stream ends with a usage event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UsageEvent {
    /// It was asked for.
    Send,
    /// It was not.
    Omit,
}

/// Why a success body could not be read as a reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReadFault {
    /// It is not a reply of this dialect.
    #[error("{0}")]
    Malformed(#[from] Malformed),
    /// It is an error body under a success status.
    #[error("the provider answered 200 with an error: {}", .0.message)]
    Failure(ProviderError),
}

/// Reads the events of one streamed reply.
#[derive(Debug)]
pub enum StreamReader {
    /// See [`openai_chat::stream`].
    OpenaiChat(openai_chat::stream::Reader),
    /// See [`anthropic::stream`].
    Anthropic(anthropic::stream::Reader),
}

impl StreamReader {
    /// Appends to `out` what `event` says.
    ///
    /// # Errors
    /// [`Malformed`] for a payload that is not of the dialect's form; the stream cannot be trusted
    /// after it.
    pub fn read(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<(), Malformed> {
        match self {
            Self::OpenaiChat(reader) => reader.read(event, out),
            Self::Anthropic(reader) => reader.read(event, out),
        }
    }
}

/// Writes one streamed reply, delta by delta.
#[derive(Debug)]
pub enum StreamWriter {
    /// See [`openai_chat::stream`].
    OpenaiChat(openai_chat::stream::Writer),
    /// See [`anthropic::stream`].
    Anthropic(anthropic::stream::Writer),
}

impl StreamWriter {
    /// Appends to `out` the bytes that say `delta`; may be none. After [`Delta::End`] the stream
    /// is complete with its one terminal event.
    pub fn write(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        match self {
            Self::OpenaiChat(writer) => writer.write(delta, out),
            Self::Anthropic(writer) => writer.write(delta, out),
        }
    }

    /// Forgets what was used so far: another reply goes on with this one.
    pub fn forget_usage(&mut self) {
        match self {
            Self::OpenaiChat(writer) => writer.forget_usage(),
            Self::Anthropic(writer) => writer.forget_usage(),
        }
    }

    /// Whether the stream cannot be told in this dialect: an in-band error was written and nothing
    /// more will be.
    pub fn is_broken(&self) -> bool {
        match self {
            Self::OpenaiChat(_) => false,
            Self::Anthropic(writer) => writer.is_broken(),
        }
    }

    /// What this dialect could not say so far; each kind once.
    pub fn losses(&self) -> &[Loss] {
        match self {
            Self::OpenaiChat(writer) => writer.losses(),
            Self::Anthropic(writer) => writer.losses(),
        }
    }
}

/// Whether a JSON value is an in-band error: a top-level `error` that is not null, or `object` or
/// `type` saying `error`; and, where nothing in it looks like an answer, a list of `errors`, a
/// `detail`, `success` that is false, a status of a failure, or a `code` with its `message`.
pub(crate) fn is_error_body(value: &Value) -> bool {
    let is = |key: &str, word: &str| value.get(key).is_some_and(|found| found == word);
    if value.get("error").is_some_and(|e| !e.is_null())
        || is("object", "error")
        || is("type", "error")
    {
        return true;
    }
    let is_told = |key: &&str| value.get(key).is_some_and(|found| !found.is_null());
    if ["choices", "content", "usage", "delta"].iter().any(is_told) {
        return false;
    }
    let word = |key: &str| value.get(key).and_then(Value::as_str).is_some_and(|s| !s.is_empty());
    let status = |key: &&str| value.get(key).and_then(errors::status_number).is_some();
    value.get("errors").and_then(Value::as_array).is_some_and(|list| !list.is_empty())
        || value.get("success") == Some(&Value::Bool(false))
        || value.get("detail").is_some_and(|detail| detail.is_string() || detail.is_array())
        || ["code", "status", "status_code", "statusCode"].iter().any(status)
        || (word("code") && word("message"))
}
