//! Skips what means nothing between tokens: white space, odd spaces and comments.

use super::Parser;
use crate::edit::{Change, Kind};
use crate::lex::space;

impl Parser<'_> {
    /// Where the next token starts. Odd spaces and comments become a space each; a block comment
    /// that never ends is not skipped.
    pub(super) fn skip(&self, mut at: usize, changes: &mut Vec<Change>) -> usize {
        loop {
            at = space::skip(self.bytes, at);
            let odd = space::odd(self.bytes, at);
            if odd > 0 {
                changes.push(Change::new(Kind::OddSpace, at..at + odd, " "));
                at += odd;
                continue;
            }
            let comment = self.comment(at);
            if comment == 0 {
                return at;
            }
            changes.push(Change::new(Kind::Comment, at..at + comment, " "));
            at += comment;
        }
    }

    /// Says whether a line comment ends with a quote that it does not open: it may be a text that
    /// begins like a comment and lost its opening quote. Or it has swallowed the end of the document.
    pub(super) fn hides_text(&self, skipped: &[Change]) -> bool {
        skipped.iter().filter(|change| change.kind == Kind::Comment).any(|change| {
            let text = self.slice(change.start(), change.end());
            let text = text.trim_end_matches([',', ' ', '\t']);
            let quotes = memchr::memchr_iter(b'"', text.as_bytes()).count();
            let escaped = memchr::memmem::find_iter(text.as_bytes(), b"\\\"").count();
            let is_last = change.end() == self.bytes.len() && text.contains(['"', ']', '}']);
            let is_half = text.ends_with('"') && quotes.saturating_sub(escaped) % 2 == 1;
            !text.starts_with("/*") && (is_last || is_half)
        })
    }

    /// As [`Parser::skip`], without a trace.
    #[inline]
    pub(super) fn peek(&self, at: usize) -> usize {
        let at = space::skip(self.bytes, at);
        match self.byte(at) {
            // What may begin a comment or an odd space.
            Some(b'/' | b'#' | b'<' | 0x0b | 0x0c | 0x80..) => self.peek_far(at),
            _ => at,
        }
    }

    #[cold]
    fn peek_far(&self, mut at: usize) -> usize {
        loop {
            at = space::skip(self.bytes, at);
            let length = space::odd(self.bytes, at) + self.comment(at);
            if length == 0 {
                return at;
            }
            at += length;
        }
    }

    /// Length of the comment at `at`, 0 if there is none or it never ends. The line break behind
    /// a line comment is not part of it.
    pub(super) fn comment(&self, at: usize) -> usize {
        let rest = self.rest(at);
        let line = || memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
        let until = |open: usize, end: &[u8]| {
            let body = rest.get(open..).unwrap_or_default();
            memchr::memmem::find(body, end).map_or(0, |length| open + length + end.len())
        };
        // Right behind a quote, two slashes are likelier text than a comment.
        let before = at.checked_sub(1).and_then(|before| self.byte(before));
        let is_glued = matches!(before, Some(b'"' | b'\'' | b'`' | 0x80..));
        match rest {
            [b'/', b'/', ..] if is_glued => 0,
            [b'/', b'/', ..] | [b'#', b' ' | b'\t' | b'#', ..] => line(),
            [b'/', b'*', ..] => until(2, b"*/"),
            [b'<', b'!', b'-', b'-', ..] => until(4, b"-->"),
            _ => 0,
        }
    }
}
