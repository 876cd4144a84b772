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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn error(text: &str) -> String {
        let unfit = read(text.to_owned()).err().unwrap_or_else(|| panic!("read: {text}"));
        assert_eq!((unfit.fault, unfit.layer), (Fault::NotJson, Layer::Syntax));
        unfit.errors.join("; ")
    }

    #[test]
    fn valid_json_is_not_touched() {
        for text in [" {\"a\" : 1e2}\n", "[]", "\"```\"", "null", "18446744073709551615"] {
            let parsed = read(text.to_owned()).ok().unwrap();
            assert_eq!((parsed.text.as_str(), parsed.normalised), (text, None));
            assert_eq!(parsed.value, serde_json::from_str::<Value>(text).unwrap());
        }
    }

    #[test]
    fn one_fence_around_the_whole_text_is_taken_off() {
        for text in [
            "```json\n{\"a\": 1}\n```",
            "```\n{\"a\": 1}\n```",
            "  ```JSON\r\n{\"a\": 1}\r\n```\n\n",
            "```json {\"a\": 1} ```",
            "```{\"a\": 1}```",
        ] {
            let parsed = read(text.to_owned()).ok().unwrap_or_else(|| panic!("{text}"));
            assert_eq!(parsed.value, json!({"a": 1}));
            assert_eq!(
                (parsed.text.as_str(), parsed.normalised),
                ("{\"a\": 1}", Some(Normalised::Fence))
            );
        }
    }

    #[test]
    fn anything_else_around_a_value_is_refused() {
        for text in [
            "Sure! {\"a\":1}",
            "{\"a\":1} Hope that helps!",
            "{\"a\":1}{\"b\":2}",
            "{\"a\":1}\n{\"b\":2}",
            "Here:\n```json\n{\"a\":1}\n```",
            "```json\n{\"a\":1}\n```\nDone.",
            "```json\n{\"a\":1}",
            "{\"a\":1}\n```",
            "```json\n```json\n{\"a\":1}\n```\n```",
            "```json\n{\"a\":1}\n```\n```json\n{\"b\":2}\n```",
            "```python\n{\"a\":1}\n```",
            "<think>so</think>{\"a\":1}",
            "\u{feff}{\"a\":1}",
            "{'a': 1}",
            "{\"a\": 1,}",
            "{\"a\": NaN}",
            "// note\n{\"a\":1}",
            "",
            "```",
            "``````",
        ] {
            error(text);
        }
    }

    #[test]
    fn a_refusal_says_what_was_expected_and_where_in_characters() {
        let rows = [
            ("Sure! {}", "Expecting value at char 0"),
            ("  \n Sure!", "Expecting value at char 0"),
            ("```json\n{\"é\": }\n```", "Expecting value at char 6"),
            ("{\"a\":1} {\"b\":2}", "Extra data at char 8"),
            ("{\"a\":1", "Expecting ',' delimiter at char 6"),
            ("{\"a\" 1}", "Expecting ':' delimiter at char 5"),
            ("{\"a\":1,}", "Expecting property name enclosed in double quotes at char 7"),
            ("{'a':1}", "Expecting property name enclosed in double quotes at char 1"),
            ("[1,", "Expecting value at char 3"),
            ("[1 2]", "Expecting ',' delimiter at char 3"),
            ("[\"éé\", \"ab", "Unterminated string starting at char 7"),
            ("\"a\nb\"", "Invalid control character at char 2"),
            ("\"\\x\"", "Invalid \\escape at char 1"),
            ("\"\\u12zz\"", "Invalid \\uXXXX escape at char 2"),
            ("01", "Extra data at char 1"),
            ("1.", "Extra data at char 1"),
            ("-", "Expecting value at char 0"),
            ("[tru]", "Expecting value at char 1"),
            ("NaN", "Expecting value at char 0"),
            ("{\"a\":{\"b\":1,\"b\":2}}", "duplicate key 'b'"),
        ];
        for (text, expected) in rows {
            assert_eq!(error(text), expected, "{text}");
        }
        assert!(error("1e999").starts_with("number out of range at char "));
        assert!(error("\"\\ud800\"").contains("at char "));
    }

    #[test]
    fn nesting_is_bounded_and_the_bound_is_the_parsers() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(read(nested(127)).is_ok());
        assert_eq!(error(&nested(128)), "Nested too deeply at char 127");
        assert_eq!(error(&"[".repeat(100_000)), "Nested too deeply at char 127");
        assert_eq!(error(&"{\"a\":".repeat(100_000)), "Nested too deeply at char 635");
    }

    #[test]
    fn a_long_bad_text_is_diagnosed_in_one_pass() {
        let text = format!("[{}", "\"é\",".repeat(400_000));
        assert_eq!(error(&text), "Expecting value at char 1600001");
        error(&"```".repeat(500_000));
        error(&"\\".repeat(1_000_000));
    }

    #[test]
    fn large_numbers_keep_their_text_and_lose_only_digits_of_the_value() {
        let text = "123456789012345678901234567890";
        let parsed = read(text.to_owned()).ok().unwrap();
        assert_eq!(parsed.text, text);
        assert_eq!(parsed.value, json!(1.234_567_890_123_456_8e29));
    }
}
