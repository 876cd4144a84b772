//! Layer 1: whether a text is one JSON value.
//!
//! Strict JSON first: a text that is valid is not touched. Else one Markdown fence around the whole
//! text is taken off, which is the one tolerance of this layer. A key that comes twice in one
//! object is refused: which of the two was meant cannot be known.

use std::fmt;

use backstay_decide::fault::Fault;
use backstay_wire::chat::{Choice, Part};
use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::{Checked, Layer, Unfit, diagnosis};

/// What was taken off a text to make it valid JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Normalised {
    /// One Markdown fence, bare or marked `json`, that stood around the whole text.
    Fence,
}

impl Normalised {
    /// The name as headers, logs and metrics print it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fence => "fence",
        }
    }
}

/// A text that is one JSON value.
pub(super) struct Parsed {
    pub(super) value: Value,
    /// What the value was read from.
    text: String,
    normalised: Option<Normalised>,
}

impl Parsed {
    pub(super) fn into_checked(self) -> Checked {
        Checked { value: Some(self.value), text: self.text, normalised: self.normalised }
    }
}

/// Reads `text` as one JSON value.
///
/// The error names what was expected and where, in the words of Python's `json`:
/// `Expecting value at char 0`. Characters are counted from 0 in the text without its fence and
/// without the white space around it.
pub(super) fn read(text: String) -> Result<Parsed, Unfit> {
    let failed = match parse(&text) {
        Ok(value) => return Ok(Parsed { value, text, normalised: None }),
        Err(failed) => failed,
    };
    let trimmed = text.trim();
    let Some(inner) = inside_fence(trimmed) else {
        return Err(not_json(diagnosis::words(trimmed, &failed)));
    };
    match parse(inner) {
        Ok(value) => {
            Ok(Parsed { value, text: inner.to_owned(), normalised: Some(Normalised::Fence) })
        }
        Err(failed) => Err(not_json(diagnosis::words(inner, &failed))),
    }
}

/// Refuses a reply with a tool call whose arguments are not JSON. Blank arguments stand for none.
pub(super) fn check_arguments(choice: &Choice) -> Result<(), Unfit> {
    let mut errors = Vec::new();
    for part in &choice.parts {
        let Part::ToolCall { name, arguments, .. } = part else { continue };
        let arguments = arguments.trim();
        if arguments.is_empty() {
            continue;
        }
        if let Err(failed) = parse(arguments) {
            let words = diagnosis::words(arguments, &failed);
            errors.push(format!("arguments of tool '{name}': {words}"));
        }
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(Unfit::new(Fault::NotJson, Layer::Syntax, errors))
}

fn not_json(words: String) -> Unfit {
    Unfit::new(Fault::NotJson, Layer::Syntax, vec![words])
}

/// The text inside a fence that opens and ends `text`.
fn inside_fence(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("```")?.strip_suffix("```")?;
    let marked = inner.get(..4).is_some_and(|mark| mark.eq_ignore_ascii_case("json"));
    let inner = if marked { inner.get(4..).unwrap_or_default() } else { inner };
    Some(inner.trim())
}

/// Strict JSON without repeated keys, at most 127 levels deep.
fn parse(text: &str) -> serde_json::Result<Value> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = Strict.deserialize(&mut reader)?;
    reader.end()?;
    Ok(value)
}

/// Builds a [`Value`] and refuses repeated keys, of which `serde_json` silently keeps the last.
#[derive(Clone, Copy)]
struct Strict;

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = members.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format_args!("duplicate key '{key}'")));
            }
            map.insert(key, members.next_value_seed(self)?);
        }
        Ok(Value::Object(map))
    }
}
