//! Finds where values stand in a text that is strict JSON.

use std::ops::Range;

/// A place in strict JSON text. Every step assumes that the text is what it says; on another text
/// it stops at the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Cursor<'t> {
    /// At the first value of `text`.
    pub(super) fn new(text: &'t str) -> Self {
        let mut cursor = Self { text, at: 0 };
        cursor.skip_space();
        cursor
    }

    pub(super) fn at(self) -> usize {
        self.at
    }

    /// What is at a span.
    pub(super) fn text(self, span: Range<usize>) -> &'t str {
        self.text.get(span).unwrap_or_default()
    }

    /// Goes past one mark and the space behind it.
    pub(super) fn step(&mut self) {
        self.at = (self.at + 1).min(self.text.len());
        self.skip_space();
    }

    /// Goes past one mark only.
    pub(super) fn mark(&mut self) {
        self.at = (self.at + 1).min(self.text.len());
    }

    /// The next byte.
    pub(super) fn peek(self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Goes past the value here, not past the space behind it: where it stood.
    pub(super) fn value(&mut self) -> Range<usize> {
        let start = self.at;
        let mut depth = 0_usize;
        loop {
            match self.peek() {
                None => break,
                Some(b'"') => self.string(),
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                Some(b',' | b':' | b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                Some(_) => self.scalar(),
            }
            if depth == 0 {
                break;
            }
        }
        start..self.at
    }

    /// Goes past the space here.
    pub(super) fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += if byte == b'\\' { 2 } else { 1 };
            if byte == b'"' {
                break;
            }
        }
        self.at = self.at.min(self.text.len());
    }

    fn scalar(&mut self) {
        while let Some(byte) = self.peek() {
            if matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r') {
                break;
            }
            self.at += 1;
        }
    }
}
