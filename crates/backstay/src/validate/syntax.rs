//! Layer 1: whether a text is one JSON value, and what it takes to make it one.
//!
//! Strict JSON first: a text that is valid is not touched. Else it is mended as far as the route's
//! policy goes, and every change is named. A text with two readings is refused with both: which of
//! them was meant, only the model can say. A text that lost something is refused too, unless the
//! policy takes it.

use backstay_decide::fault::Fault;
use jsonmend::{Ambiguity, Class, Document, Guide, Kind, Mender, Node, Outcome, Refusal, Status};

use super::diagnosis::{self, Diagnosis};
use super::{Checked, Edit, Layer, Problem, Unfit, clipped};
use crate::policy::{Partial, Syntax};

/// The most bytes of one reading that are told.
const MAX_READING: usize = 240;

/// The most bytes of a pointer in a sentence.
const MAX_POINTER: usize = 120;

/// What stands before a pointer in a sentence. A pointer holds keys of the reply.
pub(crate) const INSIDE: &str = ", in /";

/// A text that is one JSON value.
#[derive(Clone, Debug)]
pub(super) struct Parsed {
    /// What the document was read from: strict JSON.
    pub(super) text: String,
    pub(super) document: Document,
    /// What was changed to get there.
    pub(super) edits: Vec<Edit>,
}

impl Parsed {
    /// `text` as it is. `None`: it is not strict JSON, or repeats a key.
    pub(super) fn strict(text: String) -> Option<Self> {
        match Mender::new(Syntax::off().policy).mend(&text, Status::Stopped) {
            Outcome::Valid(document) => Some(Self { text, document, edits: Vec::new() }),
            Outcome::Mended(_)
            | Outcome::Partial(_)
            | Outcome::Ambiguous(_)
            | Outcome::Rejected(_) => None,
        }
    }

    /// The value. `None` never happens for what was parsed.
    pub(super) fn root(&self) -> Option<Node<'_>> {
        self.document.root(&self.text)
    }

    pub(super) fn into_checked(self) -> Checked {
        let Self { text, document, edits } = self;
        Checked { text, document: Some(document), edits, arguments: Vec::new() }
    }
}

/// Reads `text`, which ended with `status`, as one JSON value. A schema's `guide` chooses among
/// readings.
///
/// The error names what was expected and where, in the words of Python's `json`:
/// `Expecting value at char 0`. Characters are counted from 0 in the text without its fence and
/// without the white space around it. Behind it stands the place in the whole reply, as
/// `(line 3, column 7, in /items/2)`, where it is not the very start.
pub(super) fn read(
    text: String,
    syntax: &Syntax,
    guide: &dyn Guide,
    status: Status,
) -> Result<Parsed, Unfit> {
    let outcome = Mender::guided(syntax.policy, guide).mend(&text, status);
    match outcome {
        Outcome::Valid(document) => Ok(Parsed { text, document, edits: Vec::new() }),
        Outcome::Mended(document) => mended(&text, &document),
        Outcome::Partial(document) if syntax.partial == Partial::Accept => mended(&text, &document),
        Outcome::Partial(_) | Outcome::Rejected(Refusal::WorseClass(Class::Partial)) => {
            Err(partial(&text))
        }
        Outcome::Ambiguous(ambiguity) => Err(ambiguous(&text, &ambiguity)),
        Outcome::Rejected(refusal) => Err(not_json(words(&text, &refusal.to_string()))),
    }
}

/// The mended text without the white space that stands where prose was.
fn mended(raw: &str, document: &Document) -> Result<Parsed, Unfit> {
    let edits = document.edits(raw).into_iter().map(Edit::of_syntax).collect();
    let text = document.text(raw).trim_matches([' ', '\t', '\n', '\r']).to_owned();
    let parsed = Parsed::strict(text).ok_or_else(|| not_json(words(raw, "not JSON")))?;
    Ok(Parsed { edits, ..parsed })
}

fn not_json(words: String) -> Unfit {
    Unfit::of(Fault::NotJson, Layer::Syntax, vec![Problem::new("", "not_json", words)])
}

fn partial(text: &str) -> Unfit {
    let words = words(text, "something is missing");
    let message = format!("a part of the value is missing: {words}; write the whole value");
    Unfit::of(Fault::NotJson, Layer::Syntax, vec![Problem::new("", "partial", message)])
}

/// What is wrong, and the readings: the model knows which one it meant.
fn ambiguous(text: &str, ambiguity: &Ambiguity) -> Unfit {
    let rule = ambiguity.reason.name();
    let mut problems = vec![Problem::new("", rule, words(text, rule))];
    let readings = ambiguity.readings.iter().filter(|_| ambiguity.readings.len() > 1);
    for (number, reading) in readings.enumerate() {
        let shown = clipped(reading.text(text).trim(), MAX_READING);
        let message = format!("it could be read as ({}) {shown}", number + 1);
        problems.push(Problem::new("", rule, message));
    }
    Unfit::of(Fault::NotJson, Layer::Syntax, problems)
}

/// Why `text` is no JSON value, or is one that is not taken; `otherwise` where no place says it.
fn words(text: &str, otherwise: &str) -> String {
    let trimmed = text.trim();
    let inner = inside_fence(trimmed).unwrap_or(trimmed);
    // One is a part of the other.
    let before = inner.as_ptr().addr().saturating_sub(text.as_ptr().addr());
    if let Some(Diagnosis { words, at, pointer }) = diagnosis::of(inner) {
        return if at == 0 { words } else { words + &place(text, before + at, &pointer) };
    }
    repeated_key(inner).map_or_else(
        || otherwise.to_owned(),
        |(key, at, pointer)| format!("duplicate key '{key}'{}", place(text, before + at, &pointer)),
    )
}

/// ` (line 3, column 7, in /items/2)`: byte `at` of `text`, both counted from 1, columns in
/// characters. The root is not named.
fn place(text: &str, at: usize, pointer: &str) -> String {
    let before = text.get(..text.floor_char_boundary(at)).unwrap_or_default();
    let line = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
    let column = 1 + before.rsplit('\n').next().unwrap_or_default().chars().count();
    if pointer.is_empty() {
        return format!(" (line {line}, column {column})");
    }
    let rest = clipped(pointer.strip_prefix('/').unwrap_or(pointer), MAX_POINTER);
    format!(" (line {line}, column {column}{INSIDE}{rest})")
}

/// The text inside a fence that opens and ends `text`.
fn inside_fence(text: &str) -> Option<&str> {
    let inner = text.strip_prefix("```")?.strip_suffix("```")?;
    let marked = inner.get(..4).is_some_and(|mark| mark.eq_ignore_ascii_case("json"));
    let inner = if marked { inner.get(4..).unwrap_or_default() } else { inner };
    Some(inner.trim())
}

/// The first key that an object of `text` has twice, where in the text and under which pointer.
fn repeated_key(text: &str) -> Option<(String, usize, String)> {
    let policy =
        jsonmend::Policy { dup_keys: jsonmend::DupKeys::Last, ..jsonmend::Policy::lenient() };
    let outcome = Mender::new(policy).mend(text, Status::Stopped);
    let edits = outcome.document()?.edits(text);
    let twice = edits.iter().find(|edit| matches!(edit.kind, Kind::DupKey | Kind::DupSame))?;
    let key = twice.before.trim_start_matches([',', ' ', '\t', '\n', '\r']);
    let key = key.strip_prefix('"')?;
    let key = key.split('"').next().unwrap_or_default().to_owned();
    let around = twice.path.rsplit_once('/').map(|(around, _)| around.to_owned());
    Some((key, twice.span.start, around.unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::validate::EditKind;
    use crate::validate::outline::Outline;

    fn under(text: &str, syntax: Syntax) -> Result<Parsed, Unfit> {
        super::read(text.to_owned(), &syntax, Outline::anything(), Status::Stopped)
    }

    fn value(parsed: &Parsed) -> Value {
        parsed.root().unwrap().to_value()
    }

    /// As S2 reads it: strict, but for a fence.
    fn read(text: &str) -> Result<Parsed, Unfit> {
        under(text, Syntax::only(&[Kind::Fence]))
    }

    fn error(text: &str) -> String {
        let unfit = read(text).err().unwrap_or_else(|| panic!("read: {text}"));
        assert_eq!((unfit.fault, unfit.layer), (Fault::NotJson, Layer::Syntax));
        unfit.errors[0].clone()
    }

    #[test]
    fn valid_json_is_not_touched() {
        for text in [" {\"a\" : 1e2}\n", "[]", "\"```\"", "null", "18446744073709551615"] {
            let parsed = read(text).ok().unwrap();
            assert_eq!((parsed.text.as_str(), parsed.edits.len()), (text, 0));
            assert_eq!(value(&parsed), serde_json::from_str::<Value>(text).unwrap());
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
            let parsed = read(text).ok().unwrap_or_else(|| panic!("{text}"));
            assert_eq!(value(&parsed), json!({"a": 1}));
            assert_eq!(parsed.text, "{\"a\": 1}");
            assert!(parsed.edits.iter().all(|edit| edit.kind == EditKind::Syntax(Kind::Fence)));
            assert!(!parsed.edits.is_empty());
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
            "```json\n{\"a\":1}\n```\n```json\n{\"b\":2}\n```",
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
            ("```json\n{\"é\": }\n```", "Expecting value at char 6 (line 2, column 7, in /é)"),
            ("{\"a\":1} {\"b\":2}", "Extra data at char 8 (line 1, column 9)"),
            ("{\"a\":1", "Expecting ',' delimiter at char 6 (line 1, column 7)"),
            ("{\"a\" 1}", "Expecting ':' delimiter at char 5 (line 1, column 6, in /a)"),
            (
                "{\"a\":1,}",
                "Expecting property name enclosed in double quotes at char 7 (line 1, column 8)",
            ),
            (
                "{'a':1}",
                "Expecting property name enclosed in double quotes at char 1 (line 1, column 2)",
            ),
            ("[1,", "Expecting value at char 3 (line 1, column 4, in /1)"),
            ("[1 2]", "Expecting ',' delimiter at char 3 (line 1, column 4)"),
            ("[\"éé\", \"ab", "Unterminated string starting at char 7 (line 1, column 8, in /1)"),
            ("\"a\nb\"", "Invalid control character at char 2 (line 1, column 3)"),
            ("\"\\x\"", "Invalid \\escape at char 1 (line 1, column 2)"),
            ("\"\\u12zz\"", "Invalid \\uXXXX escape at char 2 (line 1, column 3)"),
            ("01", "Extra data at char 1 (line 1, column 2)"),
            ("1.", "Extra data at char 1 (line 1, column 2)"),
            ("-", "Expecting value at char 0"),
            ("[tru]", "Expecting value at char 1 (line 1, column 2, in /0)"),
            ("NaN", "Expecting value at char 0"),
            (
                " \n{\"items\": [{}, {},\n  {\"a/b\": [1, {\"x\\\"\": -}]}]}",
                "Expecting value at char 41 (line 3, column 23, in /items/2/a~1b/1/x\")",
            ),
            ("{\"a\": [1,\n2}", "Expecting ',' delimiter at char 11 (line 2, column 2, in /a)"),
            ("{\"a\":{\"b\":1,\"b\":2}}", "duplicate key 'b' (line 1, column 7, in /a)"),
        ];
        for (text, expected) in rows {
            assert_eq!(error(text), expected, "{text}");
        }
    }

    #[test]
    fn a_schema_says_which_closer_is_one_too_many_and_which_was_lost() {
        let user = json!({"type": "object", "properties": {"name": {"type": "string"}},
            "required": ["name"], "additionalProperties": false});
        let schema = json!({"type": "object", "properties": {"user": user,
            "role": {"enum": ["admin", "guest"]}}, "required": ["user", "role"]});
        let outline = Outline::of(&schema);
        let wanted = json!({"user": {"name": "Bo"}, "role": "admin"});
        for text in [
            r#"{"user": {"name": "Bo"}}, "role": "admin"}"#,
            r#"{"user": {"name": "Bo", "role": "admin"}"#,
        ] {
            let read =
                |guide| super::read(text.to_owned(), &Syntax::default(), guide, Status::Stopped);
            assert_eq!(value(&read(&outline).ok().unwrap()), wanted, "{text}");
            let alone = read(Outline::anything()).ok().map(|parsed| value(&parsed));
            assert_ne!(alone, Some(wanted.clone()), "{text}");
        }
    }

    #[test]
    fn nesting_is_bounded_and_the_bound_is_the_parsers() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(read(&nested(127)).is_ok());
        let bound = |text: &str, place: &str| {
            let error = error(text);
            assert!(error.starts_with(&format!("Nested too deeply at {place}, in /")), "{error}");
            assert!(error.len() < 220, "{error}");
        };
        bound(&nested(128), "char 127 (line 1, column 128");
        bound(&"[".repeat(100_000), "char 127 (line 1, column 128");
        bound(&"{\"a\":".repeat(100_000), "char 635 (line 1, column 636");
    }

    #[test]
    fn a_long_bad_text_is_diagnosed_in_one_pass() {
        let text = format!("[{}", "\"é\",".repeat(400_000));
        assert_eq!(
            error(&text),
            "Expecting value at char 1600001 (line 1, column 1600002, in /400000)"
        );
        error(&"```".repeat(500_000));
        error(&"\\".repeat(1_000_000));
    }

    #[test]
    fn large_numbers_keep_their_text_and_lose_only_digits_of_the_value() {
        let text = "123456789012345678901234567890";
        let parsed = read(text).ok().unwrap();
        assert_eq!(parsed.text, text);
        assert_eq!(value(&parsed), json!(1.234_567_890_123_456_8e29));
    }
}
