//! Looks ahead, by at most [`REACH`] bytes and without changing anything.

use super::Parser;
use super::quote::Quote;
use crate::lex::plain;

/// How far a look-ahead goes. Every key and mark that matters is nearer.
pub(super) const REACH: usize = 4096;

/// What kind of key, with its colon, stands at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KeyAhead {
    None,
    Quoted,
    /// Without quotes.
    Bare,
    /// With a closing quote only.
    Half,
}

impl Parser<'_> {
    /// Says whether a quoted key and its colon stand at `at`.
    pub(crate) fn is_key(&self, at: usize) -> bool {
        self.key_ahead(at) == KeyAhead::Quoted
    }

    /// Says whether what opens at `at` looks like an object or a list, not like a placeholder.
    pub(crate) fn is_like_document(&self, at: usize) -> bool {
        let inside = self.peek(at + 1);
        match self.byte(at) {
            Some(b'{') => {
                self.key_ahead(inside) != KeyAhead::None || Quote::at(self.rest(inside)).is_some()
            }
            _ => matches!(self.byte(inside), Some(b'"' | b'{' | b'[' | b'-' | b'0'..=b'9')),
        }
    }

    /// Says which kind of key stands at `at`: text and then a colon.
    pub(super) fn key_ahead(&self, at: usize) -> KeyAhead {
        if let Some((quote, width)) = Quote::at(self.rest(at)) {
            return match self.quote_ahead(at + width, quote) {
                Some(end) if self.is_colon(end) => KeyAhead::Quoted,
                _ => KeyAhead::None,
            };
        }
        let end = self.name_end(at);
        if end == at {
            return KeyAhead::None;
        }
        match Quote::at(self.rest(end)) {
            Some((_, width)) if self.is_colon(end + width) => KeyAhead::Half,
            None if self.is_colon(end) => KeyAhead::Bare,
            _ => KeyAhead::None,
        }
    }

    /// Where the string whose inside starts at `at` ends by the letter: behind its next quote.
    /// A line break or a colon before a quote means that there is none.
    pub(super) fn quote_ahead(&self, at: usize, quote: Quote) -> Option<usize> {
        let near = self.bytes.get(..self.bytes.len().min(at + REACH)).unwrap_or_default();
        let mut here = at;
        loop {
            here = match quote {
                Quote::Double | Quote::Doubled | Quote::Triple => plain::stop_after(near, here),
                Quote::Single | Quote::TripleSingle => plain::mark_after(near, here, b'\''),
                Quote::Back => plain::mark_after(near, here, b'`'),
                Quote::Smart | Quote::SmartSingle | Quote::Wide => here,
            };
            let rest = near.get(here..)?;
            let width = quote.ends(rest);
            if width > 0 {
                return Some(here + width);
            }
            match rest.first()? {
                b'\n' => return None,
                b'\\' => here += 2,
                _ => here += 1,
            }
        }
    }

    fn is_colon(&self, at: usize) -> bool {
        let at = self.peek(at);
        match self.rest(at) {
            // A URL, not a key.
            [b':', b'/', b'/', ..] => false,
            [b':', ..] | [b'=', b'>', ..] => true,
            _ => self.fullwidth(at).is_some_and(|(mark, _)| mark == b':'),
        }
    }

    /// Where the name at `at` ends: letters, digits, `_`, `$`, `-` and `.`, and letters beyond
    /// ASCII that are no marks.
    pub(super) fn name_end(&self, at: usize) -> usize {
        let mut end = at;
        while end < at + REACH {
            match self.byte(end) {
                Some(b'_' | b'$' | b'-' | b'.') => end += 1,
                Some(byte) if byte.is_ascii_alphanumeric() => end += 1,
                Some(byte) if byte >= 0x80 => match self.letter(end) {
                    0 => break,
                    width => end += width,
                },
                _ => break,
            }
        }
        end
    }

    /// Width of the letter beyond ASCII at `at`; 0 if it is a mark or a space.
    pub(super) fn letter(&self, at: usize) -> usize {
        let tail = self.raw.get(at..).unwrap_or_default();
        match tail.chars().next() {
            Some(letter) if letter.is_alphanumeric() => letter.len_utf8(),
            _ => 0,
        }
    }

    /// The structural mark that a full-width one at `at` stands for, and its width.
    pub(super) fn fullwidth(&self, at: usize) -> Option<(u8, usize)> {
        let [0xef, second, third, ..] = self.rest(at) else { return None };
        let mark = match (second, third) {
            (0xbd, 0x9b) => b'{',
            (0xbd, 0x9d) => b'}',
            (0xbc, 0xbb) => b'[',
            (0xbc, 0xbd) => b']',
            (0xbc, 0x9a) => b':',
            (0xbc, 0x8c) => b',',
            _ => return None,
        };
        Some((mark, 3))
    }
}
