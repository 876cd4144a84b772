//! Finds the top-level spans of a request body in one pass, without building it.
//!
//! The hot path needs five fields of a body that may be megabytes long. The scan checks the whole
//! body as strictly as `serde_json` reads it into a `Value` (escapes, UTF-8, numbers, nesting,
//! what follows the end), so that nothing it lets through fails later; but it keeps only where
//! each top-level key and value stand. It does not recurse: 100,000 brackets are a clean fault.
//!
//! A repeated key means its last value, as in `serde_json` and Python.

mod edit;
mod walk;

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;

use crate::dialect::Malformed;
use crate::pointer;

pub use edit::Edit;

/// The deepest nesting that is useful: `serde_json` refuses to build anything deeper.
pub const MAX_DEPTH: usize = 127;

/// Byte range of a value in the body.
pub type Span = Range<usize>;

/// The top-level keys of a JSON object and where their values stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scanned {
    /// All keys, unescaped, one after the other.
    names: String,
    /// In the order of the body.
    members: Vec<Member>,
    /// The span of the object, from `{` to `}`.
    object: Span,
}

/// One key and its value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Member {
    /// The key in [`Scanned::names`].
    name: Range<usize>,
    /// Where the key's opening quote stands.
    start: usize,
    /// The value.
    value: Span,
}

/// Why a body could not be scanned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request body is not valid JSON: {note} at line {line}, column {column}")]
pub struct ScanFault {
    /// What is wrong.
    pub note: String,
    /// From 1.
    pub line: usize,
    /// From 1, in bytes.
    pub column: usize,
}

/// Scans `body`, which must be one JSON object. `depth` bounds nesting: 1 lets the object itself
/// stand, 2 an array in it; more than [`MAX_DEPTH`] is taken as that.
///
/// # Errors
/// [`ScanFault`] says where the JSON breaks, or that it is no object.
pub fn scan(body: &[u8], depth: usize) -> Result<Scanned, ScanFault> {
    walk::walk(body, depth.min(MAX_DEPTH)).map_err(|fault| {
        let before = body.get(..fault.at).unwrap_or(body);
        let line_start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        ScanFault {
            note: fault.note,
            line: memchr::memchr_iter(b'\n', before).count() + 1,
            column: before.len() - line_start + 1,
        }
    })
}

impl Scanned {
    /// The span of `key`'s value; the last one if the key is repeated.
    pub fn span(&self, key: &str) -> Option<Span> {
        self.members.iter().rev().find(|m| self.name(m) == key).map(|m| m.value.clone())
    }

    /// The JSON text of `key`'s value in `body`, the one that was scanned.
    pub fn raw<'b>(&self, body: &'b [u8], key: &str) -> Option<&'b [u8]> {
        self.span(key).and_then(|span| body.get(span))
    }

    /// The keys in order, repeated ones too.
    pub fn keys(&self) -> impl Iterator<Item = (&str, &Span)> {
        self.members.iter().map(|m| (self.name(m), &m.value))
    }

    /// The text under `key`; `None` if the key is absent or null. Borrowed unless it has escapes.
    ///
    /// # Errors
    /// [`Malformed`] if the value is of another type.
    pub fn string<'b>(&self, body: &'b [u8], key: &str) -> Result<Option<Cow<'b, str>>, Malformed> {
        self.read(body, key, "a string", text)
    }

    /// The boolean under `key`; `None` if the key is absent or null.
    ///
    /// # Errors
    /// [`Malformed`] if the value is of another type.
    pub fn boolean(&self, body: &[u8], key: &str) -> Result<Option<bool>, Malformed> {
        self.read(body, key, "true or false", |raw| match raw {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        })
    }

    /// The whole number under `key`, from 0; `None` if the key is absent or null.
    ///
    /// # Errors
    /// [`Malformed`] if the value is of another type, negative, or not whole.
    pub fn unsigned(&self, body: &[u8], key: &str) -> Result<Option<u64>, Malformed> {
        self.read(body, key, "a whole number from 0", |raw| serde_json::from_slice(raw).ok())
    }

    fn name(&self, member: &Member) -> &str {
        self.names.get(member.name.clone()).unwrap_or_default()
    }

    fn read<'b, T>(
        &self,
        body: &'b [u8],
        key: &str,
        expected: &str,
        parse: impl Fn(&'b [u8]) -> Option<T>,
    ) -> Result<Option<T>, Malformed> {
        let Some(raw) = self.raw(body, key) else { return Ok(None) };
        if raw == b"null" {
            return Ok(None);
        }
        let note = || format!("expected {expected}, found {}", kind(raw));
        let path = || format!("/{}", pointer::escape(key));
        parse(raw).map(Some).ok_or_else(|| Malformed::new(path(), note()))
    }
}

fn text(raw: &[u8]) -> Option<Cow<'_, str>> {
    /// Lets serde borrow a string that has no escapes.
    #[derive(Deserialize)]
    #[serde(transparent)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_slice::<Text<'_>>(raw).ok().map(|text| text.0)
}

/// What a JSON text is, in words for the sender.
fn kind(raw: &[u8]) -> &'static str {
    match raw.first() {
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b'"') => "a string",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        Some(b'-') => "a negative number",
        Some(_) if raw.iter().any(|b| matches!(b, b'.' | b'e' | b'E')) => {
            "a number with a fraction"
        }
        Some(_) => "a number",
        None => "nothing",
    }
}

#[cfg(test)]
mod tests;
