//! Reads a string another way, to be shown beside the one that is doubted.

use super::{Doubt, Parser, Reading};
use crate::edit::Kind;
use crate::lex::escape::{self, Escape};

/// The longest string that is read again.
const MAX_STRING: usize = 4096;

impl Parser<'_> {
    /// The string at whose end the reading is, with all backslashes before letters as text: `None`
    /// if none of them is in doubt.
    pub(super) fn all_backslashes_text(&self, reading: &Reading) -> Option<Reading> {
        let open = reading.string.filter(super::Open::has_doubtful_escapes)?;
        let mut at = open.start;
        (reading.at - at <= MAX_STRING).then_some(())?;
        let mut literal = reading.clone();
        let last = literal.last_change;
        while let Some(length) = memchr::memchr(b'\\', self.slice(at, reading.at).as_bytes()) {
            at += length;
            let is_word = self.byte(at + 2).is_some_and(|byte| byte.is_ascii_alphabetic());
            let is_letter = matches!(self.byte(at + 1), Some(b'b' | b'f' | b'n' | b'r' | b't'));
            if is_letter && is_word {
                literal.change(Kind::BadEscape, at, at, "\\");
            }
            at += match escape::read(self.bytes, at) {
                Escape::Whole(length) => length,
                Escape::Cut | Escape::Lone | Escape::Bad => 1,
            };
        }
        literal.last_change = last;
        // The changes are not in the order in which they were made.
        literal.floor = literal.floor.min(open.start);
        literal.cost += 1;
        literal.doubted(Doubt::Always);
        Some(literal)
    }
}
