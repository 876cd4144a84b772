//! Reads events that differ from one before in one text only, as nearly all events of a stream do:
//!
//! ```text
//!  {"id":"c-1","choices":[{"delta":{"content":"Light"},"finish_reason":null}]}
//!  └─────────────── before ─────────────────┘     └──────── after ─────────┘
//! ```
//!
//! Where all else is the same byte for byte, the event says what the one before said, of another text: it
//! need not be read as JSON again. `OpenAI` adds a text of chance length at the end (`obfuscation`), which
//! may differ as well.

use memchr::{memchr2, memmem};

use crate::chat::Delta;
use crate::frame::sse::Event;

/// The largest event whose surroundings are kept, in bytes. They are some hundred.
const MAX: usize = 4 << 10;

/// What a text is said to be.
type Says = fn(String) -> Delta;

/// What stood around the text of an event.
#[derive(Debug, Default)]
pub(crate) struct Surroundings {
    /// `None`: of no event.
    says: Option<Says>,
    name: String,
    before: Vec<u8>,
    after: Vec<u8>,
    /// Whether between `after` and the last brace stands the rest of a text that nobody reads.
    is_padded: bool,
}

impl Surroundings {
    /// What `event` says, where it is as the one noted but for its text.
    pub(crate) fn read(&self, event: &Event) -> Option<Delta> {
        let says = self.says?;
        let rest = event.data.trim_ascii().strip_prefix(self.before.as_slice())?;
        let (text, rest) = rest.split_at_checked(memchr2(b'"', b'\\', rest)?)?;
        let rest = rest.strip_prefix(self.after.as_slice())?;
        let is_same = if self.is_padded { is_padding(rest) } else { rest.is_empty() };
        if !is_same || text.is_empty() || event.name != self.name {
            return None;
        }
        let text = std::str::from_utf8(text).ok()?;
        // JSON has them escaped.
        (!text.bytes().any(|byte| byte < b' ')).then(|| says(text.to_owned()))
    }

    /// Notes what stands around `text`, the only thing that `event` says. Where `text` is no slice of it, as
    /// one with an escape, what was noted before stays: it means what it did.
    pub(crate) fn note(&mut self, event: &Event, text: &str, says: Says) {
        let data = event.data.trim_ascii();
        if data.len() > MAX {
            return;
        }
        let Some(start) = text.as_ptr().addr().checked_sub(data.as_ptr().addr()) else { return };
        let Some((before, rest)) = data.split_at_checked(start) else { return };
        let Some(after) = rest.strip_prefix(text.as_bytes()) else { return };
        if !before.ends_with(b"\"") || !after.starts_with(b"\"") {
            return;
        }
        let padding = padding(after);
        self.is_padded = padding.is_some();
        let after = padding.unwrap_or(after);
        self.before.clear();
        self.before.extend_from_slice(before);
        self.after.clear();
        self.after.extend_from_slice(after);
        self.name.clone_from(&event.name);
        self.says = Some(says);
    }

    /// Forgets them: what they mean may have changed.
    pub(crate) fn forget(&mut self) {
        self.says = None;
    }
}

/// What of `after` comes before its padding: the last text of the event, in a field that nobody reads.
fn padding(after: &[u8]) -> Option<&[u8]> {
    const FIELD: &[u8] = b",\"obfuscation\":\"";
    let start = memmem::rfind(after, FIELD)? + FIELD.len();
    let (before, padding) = after.split_at_checked(start)?;
    is_padding(padding).then_some(before)
}

/// Whether it is the rest of a plain text and the end of the event.
fn is_padding(rest: &[u8]) -> bool {
    let text = rest.strip_suffix(b"\"}");
    text.is_some_and(|text| text.iter().all(u8::is_ascii_alphanumeric))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(data: impl Into<String>) -> Event {
        Event { data: data.into().into(), ..Event::default() }
    }

    /// What is read of `data` after an event that says "Light" in `before` and `after`.
    fn read_after(before: &str, after: &str, data: impl Into<String>) -> Option<String> {
        let first = event(format!("{before}Light{after}"));
        let text = first.data.get(before.len()..before.len() + 5).unwrap();
        let mut around = Surroundings::default();
        around.note(&first, std::str::from_utf8(text).unwrap(), Delta::Text);
        match around.read(&event(data)) {
            Some(Delta::Text(text)) => Some(text),
            _ => None,
        }
    }

    #[test]
    fn the_next_text_is_read_where_all_else_is_the_same() {
        let (before, after) = (r#"{"a":[{"text":""#, r#"","end":null}]}"#);
        let read = |text: &str| read_after(before, after, format!("{before}{text}{after}"));
        assert_eq!(read("house").as_deref(), Some("house"));
        assert_eq!(read("ü 漢").as_deref(), Some("ü 漢"));
        for odd in ["", "a\\n", "a\"", "a\nb", "a\\\"b"] {
            assert_eq!(read(odd), None, "{odd:?}");
        }
        assert_eq!(read_after(before, after, format!("{before}x{after} \r")).as_deref(), Some("x"));
        for other in [format!("{before}x\",\"end\":1}}]}}"), format!("{before}x"), "{}".to_owned()]
        {
            assert_eq!(read_after(before, after, other.as_str()), None, "{other}");
        }
    }

    #[test]
    fn padding_at_the_very_end_may_differ() {
        let (before, after) = (r#"{"text":""#, r#"","usage":null,"obfuscation":"aB3"}"#);
        let padded = |with: &str| {
            let data = format!(r#"{before}x","usage":null,"obfuscation":"{with}"}}"#);
            read_after(before, after, data)
        };
        assert_eq!(padded("").as_deref(), Some("x"));
        assert_eq!(padded("aVeryLongOne99").as_deref(), Some("x"));
        for odd in ["\\n", "\",\"error\":\"x", "\n"] {
            assert_eq!(padded(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_text_of_another_event_or_a_huge_event_is_not_noted() {
        let mut around = Surroundings::default();
        around.note(&event(r#"{"text":"Light"}"#), "Light", Delta::Text);
        assert!(around.read(&event(r#"{"text":"Light"}"#)).is_none());
        let pad = "x".repeat(MAX);
        let (before, after) = (format!(r#"{{"pad":"{pad}","text":""#), r#""}"#);
        assert_eq!(read_after(&before, after, format!("{before}house{after}")), None);
    }
}
