//! Reads a provider's error body, whatever its shape, and classifies it by a table.
//!
//! A dialect's `error.rs` is a table of [`Rule`]s; this file is the one engine that evaluates it.
//! Rules go from top to bottom, the conditions in a row are all needed, the words inside one
//! condition are alternatives. A body that fits no row falls back to its status.
//!
//! ```text
//!  status, bytes ──read_body──▶ Seen ──classify(table)──▶ ErrorClass
//!  event of a 200 ──seen_in──▶ Seen ──┘
//! ```
//!
//! Inside a 200 (a stream's event, or a whole body that is an error) no status is known. What stands
//! for it is a number from 400 to 599 in the body's `code` or `status`, or, where the words for the
//! kind say no more than "error", one in the sentence (`told`). Failing that, rows with a condition
//! on the body match whatever their status says, rows on the status alone do not; what is left goes
//! by the plain meaning of its words, and else is a server error.

use std::borrow::Cow;

use serde_json::Value;

use super::is_error_body;
use super::told;
use crate::chat::{ErrorClass, ProviderError};

/// The longest message kept, in bytes.
const MAX_MESSAGE: usize = 2_000;
/// The longest `type`, `code` or `param` kept, in bytes; real ones are under 50.
const MAX_WORD: usize = 200;

/// One row of a dialect's table. An empty list is no condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// HTTP statuses, any of.
    pub(crate) statuses: &'static [u16],
    /// The body's `type`, any of.
    pub(crate) kinds: &'static [&'static str],
    /// The body's `code`, any of.
    pub(crate) codes: &'static [&'static str],
    /// The body's `details.error_code`, any of.
    pub(crate) error_codes: &'static [&'static str],
    /// Parts of the message, any of; case does not count.
    pub(crate) message_contains: &'static [&'static str],
    /// How the message begins, any of; case does not count.
    pub(crate) message_prefix: &'static [&'static str],
    /// What it means.
    pub(crate) class: ErrorClass,
}

impl Rule {
    /// A row without conditions: it matches any status.
    pub(crate) const fn of(class: ErrorClass) -> Self {
        Self {
            statuses: &[],
            kinds: &[],
            codes: &[],
            error_codes: &[],
            message_contains: &[],
            message_prefix: &[],
            class,
        }
    }

    /// Adds the condition on the status.
    pub(crate) const fn status(self, statuses: &'static [u16]) -> Self {
        Self { statuses, ..self }
    }

    /// Adds the condition on `type`.
    pub(crate) const fn kind(self, kinds: &'static [&'static str]) -> Self {
        Self { kinds, ..self }
    }

    /// Adds the condition on `code`.
    pub(crate) const fn code(self, codes: &'static [&'static str]) -> Self {
        Self { codes, ..self }
    }

    /// Adds the condition on `details.error_code`.
    pub(crate) const fn error_code(self, error_codes: &'static [&'static str]) -> Self {
        Self { error_codes, ..self }
    }

    /// Adds the condition that the message holds one of these.
    pub(crate) const fn contains(self, message_contains: &'static [&'static str]) -> Self {
        Self { message_contains, ..self }
    }

    /// Adds the condition that the message begins with one of these.
    pub(crate) const fn prefix(self, message_prefix: &'static [&'static str]) -> Self {
        Self { message_prefix, ..self }
    }

    fn looks_at_body(&self) -> bool {
        let words =
            [self.kinds, self.codes, self.error_codes, self.message_contains, self.message_prefix];
        words.iter().any(|list| !list.is_empty())
    }

    fn matches(&self, seen: &Seen, message: &str) -> bool {
        let status_fits = match seen.status {
            Some(status) => self.statuses.is_empty() || self.statuses.contains(&status),
            None => self.looks_at_body(),
        };
        status_fits
            && is_any_of(seen.kind.as_deref(), self.kinds)
            && is_any_of(seen.code.as_deref(), self.codes)
            && is_any_of(seen.error_code.as_deref(), self.error_codes)
            && any_or_none(self.message_contains, |part| message.contains(&*lower(part)))
            && any_or_none(self.message_prefix, |part| message.starts_with(&*lower(part)))
    }
}

/// What an error says, dug out of its body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The HTTP status, or the number inside a 200 that stands for it. `None`: neither.
    pub(crate) status: Option<u16>,
    /// The `type` word.
    pub(crate) kind: Option<String>,
    /// The `code` word; a number is kept as its digits.
    pub(crate) code: Option<String>,
    /// The `details.error_code` word (Anthropic).
    pub(crate) error_code: Option<String>,
    /// The parameter that is blamed.
    pub(crate) param: Option<String>,
    /// The sentence; empty where there is none. At most 2,000 bytes.
    pub(crate) message: String,
    /// How long to stay away, as it is written.
    pub(crate) delay: Option<Box<str>>,
}

impl Seen {
    /// The status that its words stand for.
    fn meant(&self) -> Option<u16> {
        let words = [self.code.as_deref(), self.kind.as_deref(), Some(self.message.as_str())];
        words.into_iter().flatten().find_map(told::by_word)
    }

    /// The failure in the neutral form, classified by `rules`.
    fn judge(self, rules: &[Rule]) -> ProviderError {
        let class = classify(rules, &self);
        ProviderError {
            class,
            status: self.status,
            kind: self.kind,
            code: self.code,
            param: self.param,
            message: self.message,
            delay: self.delay,
        }
    }
}

/// How a dialect's errors are told apart: rules in their order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules(pub(crate) &'static [Rule]);

impl Rules {
    /// Reads an error response.
    pub(crate) fn read(self, status: u16, body: &[u8]) -> ProviderError {
        read_body(status, body).judge(self.0)
    }

    /// Reads an error inside a 200: a stream's event or a whole body.
    pub(crate) fn in_band(self, value: &Value) -> ProviderError {
        seen_in(value).judge(self.0)
    }

    /// Reads an error told in plain words where JSON belongs. `None`: the words tell none.
    pub(crate) fn in_words(self, data: &[u8]) -> Option<ProviderError> {
        Some(seen_in_words(data)?.judge(self.0))
    }
}

/// The class of what was seen: the first row that matches, else by status.
fn classify(rules: &[Rule], seen: &Seen) -> ErrorClass {
    let message = seen.message.to_lowercase();
    let row = rules.iter().find(|rule| rule.matches(seen, &message));
    row.map_or_else(|| by_status(seen.status.or_else(|| seen.meant())), |rule| rule.class)
}

/// Digs into an error response. Total: any bytes give something, if only the status.
fn read_body(status: u16, body: &[u8]) -> Seen {
    let mut seen = match serde_json::from_slice::<Value>(body) {
        Ok(value) => seen_in(&value),
        Err(_) => Seen { message: page_text(body), ..Seen::default() },
    };
    // A success status says nothing about a failure; the number in the body may.
    if !(200..300).contains(&status) {
        seen.status = Some(status);
    }
    seen
}

/// Digs into what stands where JSON belongs: an error in a list, or told in plain words, as text, as
/// a JSON string or as a page. `None`: it tells of none, or is JSON that was cut.
fn seen_in_words(data: &[u8]) -> Option<Seen> {
    let words = match serde_json::from_slice(data) {
        Ok(Value::Array(items)) => {
            return items.first().filter(|item| is_error_body(item)).map(seen_in);
        }
        Ok(Value::String(words)) => words,
        Ok(_) => return None,
        Err(_) if begins_as_json(data.trim_ascii()) => return None,
        Err(_) => page_text(data),
    };
    let status = told::in_sentence(&words);
    let tells = status.is_some() || told::by_word(&words).is_some() || told::is_error(&words);
    tells.then(|| Seen {
        status,
        delay: delay_in(&words),
        message: bounded(&words, MAX_MESSAGE),
        ..Seen::default()
    })
}

/// Whether broken text was meant to be JSON: a list of words such as `[ERROR]` was not.
fn begins_as_json(text: &[u8]) -> bool {
    match text {
        [b'{' | b'"', ..] => true,
        [b'[', rest @ ..] => !rest.first().is_some_and(u8::is_ascii_alphabetic),
        _ => false,
    }
}

fn by_status(status: Option<u16>) -> ErrorClass {
    match status {
        Some(401 | 403) => ErrorClass::Auth,
        Some(402) => ErrorClass::QuotaExhausted,
        Some(404) => ErrorClass::NotFound,
        Some(408 | 504 | 524) => ErrorClass::Timeout,
        Some(413) => ErrorClass::TooLarge,
        Some(429) => ErrorClass::RateLimited,
        Some(503 | 529) => ErrorClass::Overloaded,
        Some(409 | 424 | 425 | 499) => ErrorClass::ServerError,
        Some(400..=498) => ErrorClass::BadRequest,
        Some(_) | None => ErrorClass::ServerError,
    }
}

/// Reads any JSON shape an error comes in:
/// `{"error":{…}}`, `{"error":"…"}`, `[{"error":{…}}]`, `{"type":"error",…}`, fields at the top,
/// `{"detail":…}`, `{"errors":[…]}`, `"…"`.
fn seen_in(value: &Value) -> Seen {
    let root = match value {
        Value::Array(items) => items.first().unwrap_or(&Value::Null),
        other => other,
    };
    let first_of_list = root.get("errors").and_then(|list| list.get(0));
    let inner = root.get("error").filter(|e| !e.is_null()).or(first_of_list).unwrap_or(root);
    // `type: "error"` only says that this is an error; it is no kind.
    let kind = word(inner, "type").or_else(|| word(root, "type")).filter(|k| k != "error");
    let code = inner.get("code").or_else(|| root.get("code"));
    let details = inner.get("details").or_else(|| root.get("details"));
    // Beside a plain `error` word ("Bad Request"), a `message` is the fuller sentence.
    let beside = if inner.is_string() { root.get("message").and_then(message_text) } else { None };
    let message =
        beside.or_else(|| message_of(inner)).or_else(|| message_of(root)).unwrap_or_default();
    let status = code.and_then(status_number).or_else(|| {
        let fields = ["status", "status_code", "statusCode", "http_status"];
        [inner, root]
            .iter()
            .find_map(|at| fields.iter().find_map(|key| status_number(at.get(key)?)))
    });
    let has_word = code.and_then(Value::as_str).is_some_and(|code| !code.trim().is_empty());
    let is_plain = !has_word && kind.as_deref().is_none_or(told::is_plain);
    let kind = kind.or_else(|| word(inner, "status").filter(|_| status.is_none()));
    Seen {
        status: status.or_else(|| told::in_sentence(&message).filter(|_| is_plain)),
        kind,
        code: code.and_then(text_of).map(|text| bounded(&text, MAX_WORD)),
        error_code: details.and_then(|d| word(d, "error_code")),
        param: word(inner, "param").or_else(|| word(root, "param")),
        delay: details.and_then(retry_info).or_else(|| delay_in(&message)),
        message,
    }
}

/// The delay of a `google.rpc.RetryInfo` among the details.
fn retry_info(details: &Value) -> Option<Box<str>> {
    let delay = |detail: &Value| word(detail, "retryDelay").map(Into::into);
    details.as_array().map_or_else(|| delay(details), |list| list.iter().find_map(delay))
}

/// The delay of a sentence such as "Please try again in 5.289s.": servers that put it nowhere else.
fn delay_in(message: &str) -> Option<Box<str>> {
    let (_, after) = message.split_once("try again in ")?;
    let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '.').unwrap_or(after.len());
    let delay = after.get(..end)?.trim_end_matches('.');
    // A number without its unit may be of seconds or of minutes.
    delay.ends_with(['s', 'm', 'h']).then(|| bounded(delay, MAX_WORD).into())
}

fn message_of(value: &Value) -> Option<String> {
    let found = match value {
        Value::String(_) => Some(value),
        Value::Object(_) => ["message", "msg", "detail", "error", "title"]
            .iter()
            .find_map(|key| value.get(key).filter(|found| !found.is_null())),
        _ => None,
    };
    found.and_then(message_text)
}

fn message_text(value: &Value) -> Option<String> {
    text_of(value).map(|text| bounded(&text, MAX_MESSAGE))
}

fn word(value: &Value, key: &str) -> Option<String> {
    value.get(key).and_then(text_of).map(|text| bounded(&text, MAX_WORD))
}

/// A string as it is, anything else as JSON text; null and blank are absent. Providers put numbers
/// and objects where the documents say string.
fn text_of(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) if text.trim().is_empty() => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        other => Some(Cow::Owned(other.to_string())),
    }
}

/// A number that can stand for an HTTP status, written as a number or as its digits.
pub(super) fn status_number(code: &Value) -> Option<u16> {
    let number = match code {
        Value::Number(number) => u16::try_from(number.as_u64()?).ok()?,
        Value::String(digits) => digits.parse().ok()?,
        _ => return None,
    };
    (400..600).contains(&number).then_some(number)
}

/// What a body that is no JSON says: the title of an HTML page, else the text itself.
fn page_text(body: &[u8]) -> String {
    // The title stands near the top; an edge's page can be long.
    let head = body.get(..16 * 1024).unwrap_or(body);
    let text = String::from_utf8_lossy(head);
    let title = text
        .split_once("<title>")
        .or_else(|| text.split_once("<TITLE>"))
        .and_then(|(_, rest)| rest.split_once("</"))
        .map(|(title, _)| title.trim())
        .filter(|title| !title.is_empty());
    bounded(title.unwrap_or_else(|| text.trim()), MAX_MESSAGE)
}

/// At most `limit` bytes of `text`, cut between characters.
fn bounded(text: &str, limit: usize) -> String {
    let end = text.floor_char_boundary(limit);
    text.get(..end).unwrap_or_default().to_owned()
}

fn is_any_of(found: Option<&str>, words: &[&str]) -> bool {
    words.is_empty() || found.is_some_and(|word| words.contains(&word))
}

fn any_or_none(words: &[&str], test: impl Fn(&str) -> bool) -> bool {
    words.is_empty() || words.iter().any(|word| test(word))
}

fn lower(text: &str) -> Cow<'_, str> {
    if text.chars().any(char::is_uppercase) {
        Cow::Owned(text.to_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &[Rule] = &[
        Rule::of(ErrorClass::QuotaExhausted).status(&[429]).kind(&["spent"]),
        Rule::of(ErrorClass::ContextExceeded).status(&[400]).contains(&["too Long"]),
        Rule::of(ErrorClass::TooLarge).status(&[400]).prefix(&["Body"]),
        Rule::of(ErrorClass::ContentPolicy).error_code(&["policy"]),
        Rule::of(ErrorClass::BadRequest).status(&[400, 429]),
    ];

    fn class(status: u16, body: &str) -> ErrorClass {
        read_body(status, body.as_bytes()).judge(TABLE).class
    }

    #[test]
    fn the_first_row_whose_conditions_all_hold_wins() {
        assert_eq!(class(429, r#"{"error":{"type":"spent"}}"#), ErrorClass::QuotaExhausted);
        assert_eq!(class(429, r#"{"error":{"type":"fast"}}"#), ErrorClass::BadRequest);
        assert_eq!(class(500, r#"{"error":{"type":"spent"}}"#), ErrorClass::ServerError);
        assert_eq!(
            class(400, r#"{"error":{"message":"It is TOO LONG."}}"#),
            ErrorClass::ContextExceeded
        );
        assert_eq!(class(400, r#"{"error":{"message":"body of 9"}}"#), ErrorClass::TooLarge);
        assert_eq!(class(400, r#"{"error":{"message":"the body"}}"#), ErrorClass::BadRequest);
        let nested = r#"{"error":{"details":{"error_code":"policy"}}}"#;
        assert_eq!(class(418, nested), ErrorClass::ContentPolicy);
    }

    #[test]
    fn inside_a_200_only_rows_on_the_body_match_and_a_number_stands_for_the_status() {
        assert_eq!(class(200, r#"{"error":{"type":"spent"}}"#), ErrorClass::QuotaExhausted);
        assert_eq!(class(200, r#"{"error":{"type":"other"}}"#), ErrorClass::ServerError);
        assert_eq!(class(200, r#"{"error":{"code":503}}"#), ErrorClass::Overloaded);
        assert_eq!(class(200, r#"{"error":{"code":"504"}}"#), ErrorClass::Timeout);
        assert_eq!(class(200, r#"{"error":{"code":429,"type":"fast"}}"#), ErrorClass::BadRequest);
        assert_eq!(class(200, r#"{"error":{"code":200}}"#), ErrorClass::ServerError);
        assert_eq!(read_body(200, br#"{"error":{"code":429}}"#).status, Some(429));
        assert_eq!(read_body(200, br#"{"error":{}}"#).status, None);
        assert_eq!(read_body(502, br#"{"error":{"code":429}}"#).status, Some(502));
    }

    #[test]
    fn a_body_that_fits_no_row_falls_back_to_its_status() {
        let rows: &[(u16, ErrorClass)] = &[
            (401, ErrorClass::Auth),
            (403, ErrorClass::Auth),
            (402, ErrorClass::QuotaExhausted),
            (404, ErrorClass::NotFound),
            (408, ErrorClass::Timeout),
            (504, ErrorClass::Timeout),
            (524, ErrorClass::Timeout),
            (413, ErrorClass::TooLarge),
            (429, ErrorClass::RateLimited),
            (503, ErrorClass::Overloaded),
            (529, ErrorClass::Overloaded),
            (409, ErrorClass::ServerError),
            (424, ErrorClass::ServerError),
            (425, ErrorClass::ServerError),
            (499, ErrorClass::ServerError),
            (500, ErrorClass::ServerError),
            (520, ErrorClass::ServerError),
            (400, ErrorClass::BadRequest),
            (418, ErrorClass::BadRequest),
            (451, ErrorClass::BadRequest),
            (304, ErrorClass::ServerError),
            (0, ErrorClass::ServerError),
        ];
        for (status, want) in rows {
            assert_eq!(read_body(*status, b"<html>").judge(&[]).class, *want, "{status}");
        }
    }

    #[test]
    fn every_shape_gives_up_its_words() {
        type Row = (
            &'static str,
            Option<&'static str>,
            Option<&'static str>,
            Option<&'static str>,
            &'static str,
        );
        let rows: &[Row] = &[
            (
                r#"{"error":{"message":"m","type":"t","code":"c","param":"p"}}"#,
                Some("t"),
                Some("c"),
                Some("p"),
                "m",
            ),
            (
                r#"{"type":"error","error":{"type":"t","message":"m"},"request_id":"r"}"#,
                Some("t"),
                None,
                None,
                "m",
            ),
            (r#"[{"error":{"code":429,"message":"m"}}]"#, None, Some("429"), None, "m"),
            (r#"{"error":"m"}"#, None, None, None, "m"),
            (r#"{"error":"m","error_type":"x","code":7}"#, None, Some("7"), None, "m"),
            (r#"{"error":"Bad Request","message":"m"}"#, None, None, None, "m"),
            (r#"{"object":"error","message":"m","type":"t"}"#, Some("t"), None, None, "m"),
            (
                r#"{"code":"InvalidParameter","message":"m"}"#,
                None,
                Some("InvalidParameter"),
                None,
                "m",
            ),
            (r#"{"detail":"m"}"#, None, None, None, "m"),
            (r#"{"detail":[{"msg":"m"}]}"#, None, None, None, r#"[{"msg":"m"}]"#),
            (r#"{"errors":[{"message":"m","code":"c"}]}"#, None, Some("c"), None, "m"),
            (r#""m""#, None, None, None, "m"),
            (
                r#"{"error":{"message":{"a":1},"param":{"x":1}}}"#,
                None,
                None,
                Some(r#"{"x":1}"#),
                r#"{"a":1}"#,
            ),
            (r#"{"error":null,"message":"m"}"#, None, None, None, "m"),
            ("null", None, None, None, ""),
            ("[]", None, None, None, ""),
            ("17", None, None, None, ""),
            ("", None, None, None, ""),
            (" plain words \n", None, None, None, "plain words"),
            ("<html><title>502 Bad Gateway</title><body>x", None, None, None, "502 Bad Gateway"),
            ("<html><title></title>", None, None, None, "<html><title></title>"),
        ];
        for (body, kind, code, param, message) in rows {
            let seen = read_body(500, body.as_bytes());
            let got = (
                seen.kind.as_deref(),
                seen.code.as_deref(),
                seen.param.as_deref(),
                seen.message.as_str(),
            );
            assert_eq!(got, (*kind, *code, *param, *message), "{body}");
        }
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let body = format!(r#"{{"error":{{"message":"{}"}}}}"#, "é".repeat(1_500));
        let seen = read_body(500, body.as_bytes());
        assert_eq!(seen.message, "é".repeat(1_000));
        let odd = format!(r#"{{"error":"x{}"}}"#, "é".repeat(1_500));
        assert_eq!(read_body(500, odd.as_bytes()).message.len(), 1_999);
    }

    #[test]
    fn bytes_that_are_no_text_are_still_an_error() {
        let seen = read_body(503, &[0xff, 0xfe, 0x00, b'x']);
        assert_eq!(seen.status, Some(503));
        assert!(seen.message.ends_with('x'));
        let deep = "[".repeat(100_000);
        assert_eq!(read_body(500, deep.as_bytes()).message.len(), 2_000);
    }
}
