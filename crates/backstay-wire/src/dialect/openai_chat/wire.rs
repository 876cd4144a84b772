//! The typed form of what a server sends, whole or in chunks: borrowed, one pass, lenient.
//!
//! Compatible servers put numbers where text belongs, null where an object does, and fields of
//! their own anywhere. A field of an odd type reads as absent; only what makes the answer
//! unreadable is a fault.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::chat::{Finish, Usage};

/// A whole reply or one chunk.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Body<'a> {
    #[serde(borrow)]
    pub(super) id: Loose<'a>,
    pub(super) model: Loose<'a>,
    pub(super) object: Loose<'a>,
    #[serde(rename = "type")]
    pub(super) kind: Loose<'a>,
    pub(super) created: Loose<'a>,
    pub(super) choices: Option<Vec<Choice<'a>>>,
    pub(super) usage: Option<Counts<'a>>,
    pub(super) error: Option<&'a RawValue>,
}

/// One answer, or what a chunk adds to it.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Choice<'a> {
    #[serde(borrow)]
    pub(super) index: Loose<'a>,
    pub(super) message: Option<Said<'a>>,
    pub(super) delta: Option<Said<'a>>,
    pub(super) logprobs: Option<&'a RawValue>,
    pub(super) finish_reason: Loose<'a>,
    pub(super) error: Option<&'a RawValue>,
}

/// A message or a delta.
#[derive(Debug, Default)]
pub(super) struct Said<'a> {
    pub(super) content: Content<'a>,
    pub(super) refusal: Loose<'a>,
    pub(super) reasoning_content: Loose<'a>,
    pub(super) reasoning: Loose<'a>,
    pub(super) tool_calls: Vec<Call<'a>>,
    pub(super) function_call: Option<Function<'a>>,
    /// Fields not known here that hold something.
    pub(super) unknown: Vec<String>,
}

/// A message's content.
#[derive(Debug, Default)]
pub(super) enum Content<'a> {
    /// Absent, null, or of a type that is no content.
    #[default]
    None,
    Text(Cow<'a, str>),
    Parts(Vec<Value>),
}

/// A tool call, or a piece of one.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Call<'a> {
    #[serde(borrow)]
    pub(super) index: Loose<'a>,
    pub(super) id: Loose<'a>,
    #[serde(rename = "type")]
    pub(super) kind: Loose<'a>,
    pub(super) function: Option<Function<'a>>,
    pub(super) custom: Option<&'a RawValue>,
}

/// The function a call names.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Function<'a> {
    #[serde(borrow)]
    pub(super) name: Loose<'a>,
    arguments: Option<&'a RawValue>,
}

/// Token counts.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Counts<'a> {
    #[serde(borrow)]
    prompt_tokens: Loose<'a>,
    completion_tokens: Loose<'a>,
    prompt_tokens_details: Option<InputDetails<'a>>,
    completion_tokens_details: Option<OutputDetails<'a>>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct InputDetails<'a> {
    #[serde(borrow)]
    cached_tokens: Loose<'a>,
    cache_write_tokens: Loose<'a>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct OutputDetails<'a> {
    #[serde(borrow)]
    reasoning_tokens: Loose<'a>,
}

/// A value of whatever type; arrays and objects are read over.
#[derive(Debug, Default)]
pub(super) enum Loose<'a> {
    #[default]
    Null,
    Text(Cow<'a, str>),
    Whole(u64),
    /// Any other value, by the name of its type.
    Odd(&'static str),
}

impl<'a> Loose<'a> {
    /// The text, if it is one and not empty.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) if !text.is_empty() => Some(text),
            _ => None,
        }
    }

    /// The text, empty if it is none.
    pub(super) fn into_text(self) -> Cow<'a, str> {
        match self {
            Self::Text(text) => text,
            _ => Cow::Borrowed(""),
        }
    }

    /// The number, if it is a whole one from 0.
    pub(super) fn whole(&self) -> Option<u64> {
        match self {
            Self::Whole(number) => Some(*number),
            _ => None,
        }
    }

    /// Whether it says `word`.
    pub(super) fn is(&self, word: &str) -> bool {
        self.text() == Some(word)
    }
}

impl Body<'_> {
    /// Whether it is an error under a success status.
    pub(super) fn is_error(&self) -> bool {
        // One server leaves every unused field of its answer empty.
        let is_told = |raw: &RawValue| self.choices.is_none() || !is_blank(raw.get());
        self.error.is_some_and(is_told) || self.object.is("error") || self.kind.is("error")
    }
}

impl Choice<'_> {
    /// The finish reason as it was written. `None`: absent or null.
    pub(super) fn finish_word(&self) -> Option<String> {
        match &self.finish_reason {
            Loose::Null => None,
            // One server leaves every unused field of its answer empty.
            Loose::Text(word) if word.is_empty() => None,
            Loose::Text(word) => Some(bounded(word).to_owned()),
            Loose::Whole(number) => Some(number.to_string()),
            Loose::Odd(kind) => Some((*kind).to_owned()),
        }
    }
}

impl Said<'_> {
    /// The reasoning; two servers name it differently, some send both with the same text.
    pub(super) fn reasoning(&self) -> Option<&str> {
        self.reasoning_content.text().or_else(|| self.reasoning.text())
    }

    /// Whether it brings reasoning and no text.
    pub(super) fn only_reasons(&self) -> bool {
        let is_silent = match &self.content {
            Content::None => true,
            Content::Text(text) => text.is_empty(),
            Content::Parts(_) => false,
        };
        is_silent && self.reasoning().is_some()
    }
}

impl<'a> Function<'a> {
    /// Whether the arguments are written as JSON where their text belongs.
    pub(super) fn has_arguments_as_json(&self) -> bool {
        self.arguments.is_some_and(|raw| !raw.get().starts_with('"'))
    }

    /// Whether it names nothing: an unused field sent all the same.
    fn is_blank(&self) -> bool {
        self.name.text().is_none() && self.arguments().is_empty()
    }

    /// The arguments as JSON text; a server that sends an object instead means the same.
    pub(super) fn arguments(&self) -> Cow<'a, str> {
        let Some(raw) = self.arguments else { return Cow::Borrowed("") };
        match serde_json::from_str(raw.get()) {
            Ok(Loose::Text(text)) => text,
            Ok(_) | Err(_) => Cow::Borrowed(raw.get()),
        }
    }
}

impl From<&Counts<'_>> for Usage {
    fn from(counts: &Counts<'_>) -> Self {
        let input = counts.prompt_tokens_details.as_ref();
        let output = counts.completion_tokens_details.as_ref();
        Self {
            input: counts.prompt_tokens.whole(),
            output: counts.completion_tokens.whole(),
            cached: input.and_then(|details| details.cached_tokens.whole()),
            cache_write: input.and_then(|details| details.cache_write_tokens.whole()),
            reasoning: output.and_then(|details| details.reasoning_tokens.whole()),
        }
    }
}

/// What a finish reason means. A refusal ends with `stop`, so the caller says whether there was
/// one.
pub(super) fn finish(word: Option<&str>, refused: bool) -> Finish {
    match word {
        Some("stop") if refused => Finish::Refused,
        Some("stop") => Finish::Complete,
        Some("length") => Finish::Truncated,
        Some("tool_calls" | "function_call") => Finish::ToolUse,
        Some("content_filter") => Finish::ContentFiltered,
        Some(_) | None => Finish::Unknown,
    }
}

/// The finish reason that says `finish` to a caller. `word` is the provider's own.
pub(super) fn finish_word(finish: Finish, word: Option<&str>) -> Option<&str> {
    match finish {
        Finish::Complete | Finish::Refused => Some("stop"),
        // A paused turn is no whole answer either; this dialect has no nearer word.
        Finish::Truncated | Finish::ContextExceeded | Finish::Paused => Some("length"),
        Finish::ToolUse => Some("tool_calls"),
        Finish::ContentFiltered => Some("content_filter"),
        Finish::Unknown => word,
    }
}

/// Whether a field holds nothing: null, an empty text, zero, false, or a list or object of such.
pub(super) fn is_blank(raw: &str) -> bool {
    fn holds_nothing(value: &Value) -> bool {
        match value {
            Value::Null | Value::Bool(false) => true,
            Value::Bool(true) => false,
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::String(text) => text.is_empty(),
            Value::Array(items) => items.iter().all(holds_nothing),
            Value::Object(map) => map.values().all(holds_nothing),
        }
    }
    raw == "null" || serde_json::from_str(raw).is_ok_and(|value| holds_nothing(&value))
}

/// A provider's word, cut to a length fit for logs and counters.
pub(super) fn bounded(word: &str) -> &str {
    word.get(..word.floor_char_boundary(64)).unwrap_or_default()
}

/// Parses typed; a body with repeated keys is put through a `Value` first, where the last wins.
/// `None`: it is not JSON, or not of this form.
pub(super) fn parse<T>(text: &[u8], read: impl FnOnce(Body<'_>) -> T) -> Option<T> {
    // A derived reader would take an array for the fields in order.
    if text.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    if let Ok(body) = crate::json::read(text) {
        return Some(read(body));
    }
    let plain = serde_json::from_slice::<Value>(text).ok()?.to_string();
    serde_json::from_str(&plain).ok().map(read)
}

// --- reading ---

impl<'de: 'a, 'a> Deserialize<'de> for Loose<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Loose<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("any value")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Loose::Null)
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Loose::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Loose::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(Loose::Odd("a boolean"))
            }
            fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
                Ok(Loose::Whole(number))
            }
            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(Loose::Odd("a negative number"))
            }
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "only whole numbers in a double's exact range are cast"
            )]
            fn visit_f64<E>(self, number: f64) -> Result<Self::Value, E> {
                // Some servers write counts as 12.0; 2^53 is the end of exact whole doubles.
                let is_whole =
                    number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number);
                Ok(if is_whole { Loose::Whole(number as u64) } else { Loose::Odd("a fraction") })
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Ok(Loose::Odd("an array"))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Loose::Odd("an object"))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Content<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("null, a string or an array of parts")
            }
            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(Content::None)
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Content::Text(Cow::Owned(text.to_owned())))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut parts = vec![];
                while let Some(part) = seq.next_element()? {
                    parts.push(part);
                }
                Ok(Content::Parts(parts))
            }
        }
        deserializer.deserialize_any(Any)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Said<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Message;
        impl<'de> Visitor<'de> for Message {
            type Value = Said<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut said = Said::default();
                while let Some(Loose::Text(key)) = map.next_key::<Loose<'de>>()? {
                    said.take(&key, &mut map)?;
                }
                Ok(said)
            }
        }
        deserializer.deserialize_map(Message)
    }
}

impl<'de: 'a, 'a> Said<'a> {
    fn take<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
        match key {
            "content" => self.content = map.next_value()?,
            "refusal" => self.refusal = map.next_value()?,
            "reasoning_content" => self.reasoning_content = map.next_value()?,
            "reasoning" => self.reasoning = map.next_value()?,
            "tool_calls" => self.tool_calls = map.next_value::<Option<_>>()?.unwrap_or_default(),
            "function_call" => {
                let function = map.next_value::<Option<Function<'a>>>()?;
                self.function_call = function.filter(|function| !function.is_blank());
            }
            // Known, and nothing a caller could miss: the reasoning's own structure doubles it.
            "role" | "name" | "reasoning_details" | "obfuscation" => {
                map.next_value::<IgnoredAny>()?;
            }
            _ => {
                if !is_blank(map.next_value::<&RawValue>()?.get()) {
                    self.unknown.push(bounded(key).to_owned());
                }
            }
        }
        Ok(())
    }
}
