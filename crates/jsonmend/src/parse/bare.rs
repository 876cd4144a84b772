//! Reads a value without quotes.

use super::ahead::{KeyAhead, REACH};
use super::close::Close;
use super::quote::Quote;
use super::word::{self, Word};
use super::{Doubt, Expect, Last, Open, Parser, Reading, cost};
use crate::edit::Kind;
use crate::guide::Types;
use crate::lex::space;
use crate::policy::{BareNumber, Nan, Status};

/// Calls of the Mongo shell that stand for their one argument.
const CALLS: [&str; 8] = [
    "ObjectId",
    "ISODate",
    "NumberInt",
    "NumberLong",
    "NumberDecimal",
    "UUID",
    "Timestamp",
    "Date",
];

impl Parser<'_> {
    /// At a value that starts with none of the marks of JSON.
    pub(super) fn bare(&self, reading: Reading, out: &mut Vec<Reading>) {
        let at = reading.at;
        if reading.frames.is_empty() {
            return;
        }
        let end = self.bare_end(&reading, at);
        if end == at {
            return;
        }
        self.half_quoted(&reading, end, out);
        self.guide_grouped(&reading, end, out);
        if end >= self.bytes.len() && self.status != Status::Stopped {
            self.cut_bare(reading, end, out);
            return;
        }
        if self.byte(end) == Some(b'(') {
            self.call(reading, end, out);
            return;
        }
        self.word(reading, end, out);
    }

    /// Where the bare text at `at` ends, trailing spaces left out.
    fn bare_end(&self, reading: &Reading, at: usize) -> usize {
        let in_object = reading.frames.last().is_some_and(|frame| frame.is_object());
        let mut end = at;
        let mut here = at;
        while here < at + REACH {
            let Some(byte) = self.byte(here) else { break };
            match byte {
                byte if self.ends_bare(here, byte) => break,
                b' ' | b'\t' => {
                    let next = self.peek(here);
                    // A comment, a key, or one scalar behind another ends it.
                    let is_spaces =
                        self.slice(here, next).bytes().all(|b| matches!(b, b' ' | b'\t'));
                    if !is_spaces
                        || (in_object && self.key_ahead(next) != KeyAhead::None)
                        || self.splits_here(at, end, next)
                    {
                        break;
                    }
                    here = next;
                }
                0..0x80 => {
                    here += 1;
                    end = here;
                }
                _ => {
                    here += 1;
                    while self.byte(here).is_some_and(|byte| byte & 0xc0 == 0x80) {
                        here += 1;
                    }
                    end = here;
                }
            }
        }
        end
    }

    /// Says whether bare text cannot go on with this byte.
    fn ends_bare(&self, at: usize, byte: u8) -> bool {
        match byte {
            b'\t' => false,
            0..0x20 | b'"' | b'(' | b')' | b',' | b';' | b'[' | b'\\' | b']' | b'{' | b'}' => true,
            b':' => !self.is_inner_colon(at),
            b'\'' | b'`' => !self.is_apostrophe(at),
            b'/' => self.byte(at + 1) == Some(b'*'),
            _ if byte < 0x80 => false,
            _ => {
                let is_quote = Quote::at(self.rest(at)).is_some() && !self.is_apostrophe(at);
                is_quote || self.fullwidth(at).is_some() || space::odd(self.bytes, at) > 0
            }
        }
    }

    /// `10:30`, `https://…`, but not `key: value`.
    fn is_inner_colon(&self, at: usize) -> bool {
        self.byte(at + 1).is_some_and(|next| next.is_ascii_alphanumeric() || next == b'/')
    }

    /// A mark between two letters: `it's`.
    fn is_apostrophe(&self, at: usize) -> bool {
        let width = Quote::at(self.rest(at)).map_or(1, |(_, width)| width);
        let is_letter = |byte: Option<u8>| {
            byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte >= 0x80)
        };
        is_letter(at.checked_sub(1).and_then(|before| self.byte(before)))
            && is_letter(self.byte(at + width))
    }

    /// Says whether a whole scalar ends at `end` and another follows at `next`.
    fn splits_here(&self, at: usize, end: usize, next: usize) -> bool {
        let follows = self.word_end(next);
        follows > next && self.is_scalar(at, end) && self.is_scalar(next, follows)
    }

    /// The text lost its opening quote: its closing one is there.
    fn half_quoted(&self, reading: &Reading, end: usize, out: &mut Vec<Reading>) {
        let at = reading.at;
        let rest = self.rest(end).get(..REACH).unwrap_or_else(|| self.rest(end));
        let Some(quote) = memchr::memchr(b'"', rest).map(|length| end + length) else { return };
        let inside = self.slice(at, quote);
        let is_end = self.ends_value(&reading.frames, quote + 1) == Close::Clean;
        let is_odd = inside
            .starts_with(|first: char| !first.is_alphanumeric() && !"-+$(<#@".contains(first))
            || reading.last_change.is_some_and(|(kind, _)| kind == Kind::WrongColon);
        if is_odd {
            return;
        }
        if !is_end || inside.contains(['\n', '{', '[']) || inside.ends_with(' ') {
            return;
        }
        let mut half = reading.clone();
        half.change(Kind::MissingOpenQuote, at, at, "\"");
        half.cost += cost::LOST_QUOTE;
        // The elements before may be part of the same text.
        let is_array = reading.frames.last().is_some_and(|frame| !frame.is_object());
        if reading.frames.last().is_some_and(|frame| frame.elided) {
            half.doubted(Doubt::Always);
        }
        // Something else is odd right before it: too much to be sure.
        let is_second = reading.last_change.is_some_and(|(kind, end)| match kind {
            Kind::MissingComma | Kind::UnquotedKey => true,
            // Behind a string in other quotes.
            Kind::SingleQuotes => end == reading.value_end && reading.expect == Expect::Again,
            _ => false,
        });
        if is_second {
            half.doubted(Doubt::Always);
        }
        let is_behind_bare = reading.last == Last::Bare && reading.expect == Expect::Again;
        let is_odd = inside.contains([',', '{', '}', '[', ']', '\'', '\\', '“', '”']);
        if is_array && (is_behind_bare || is_odd) {
            half.doubted(Doubt::Always);
        }
        self.guide_type(&mut half, Types::STRING);
        half.value_start = at;
        half.string = Some(Open::new(Quote::Double, at));
        out.push(half);
    }

    /// A word that the text has whole.
    fn word(&self, mut reading: Reading, end: usize, out: &mut Vec<Reading>) {
        let at = reading.at;
        let word = self.slice(at, end);
        reading.value_start = at;
        match word::classify(word) {
            Word::Scalar => {}
            Word::Literal(kind, strict) => reading.change(kind, at, end, strict),
            Word::Form(strict) => {
                reading.change(Kind::NumberForm, at, end, self.text(&strict));
            }
            Word::Nan => match self.policy.nan {
                Nan::Null => reading.change(Kind::Nan, at, end, "null"),
                Nan::Text => quote_word(&mut reading, Kind::Nan, at, end),
                Nan::Reject => {
                    quote_word(&mut reading, Kind::Nan, at, end);
                    reading.doubted(Doubt::Always);
                }
            },
            Word::Doubtful if spaced_number(word).is_none() => {
                if self.policy.bare_number == BareNumber::Reject {
                    let mut shadow = reading.clone();
                    shadow.change(Kind::BareNumber, at, end, "0");
                    shadow.doubted(Doubt::Shadow);
                    shadow.cost += cost::UNQUOTED;
                    shadow.valued(Last::Bare, end);
                    out.push(shadow);
                }
                quote_word(&mut reading, Kind::BareNumber, at, end);
                reading.cost += cost::UNQUOTED;
            }
            Word::Near(meant) => {
                self.as_literal(&reading, (end, meant), out);
                quote_word(&mut reading, Kind::UnquotedValue, at, end);
                reading.cost += cost::UNQUOTED;
            }
            Word::Text | Word::Doubtful => {
                if let Some(number) = spaced_number(word) {
                    let mut joined = reading.clone();
                    joined.change(Kind::NumberForm, at, end, self.text(&number));
                    joined.cost += cost::UNQUOTED;
                    self.guide_type(&mut joined, Types::NUMBER);
                    joined.valued(Last::Bare, end);
                    out.push(joined);
                }
                quote_word(&mut reading, Kind::UnquotedValue, at, end);
                reading.cost += cost::UNQUOTED;
            }
            Word::Nothing => return,
        }
        self.guide_word(&mut reading, end);
        reading.valued(Last::Bare, end);
        out.push(reading);
    }

    /// `nul` as the literal it begins: shown beside the text, and never accepted, for the text
    /// does not have it.
    fn as_literal(
        &self,
        reading: &Reading,
        (end, meant): (usize, Option<&str>),
        out: &mut Vec<Reading>,
    ) {
        let mut literal = reading.clone();
        let doubt = if meant.is_some() { Doubt::Always } else { Doubt::Shadow };
        let strict = self.text(meant.unwrap_or("null"));
        literal.change(Kind::LiteralCase, reading.at, end, strict);
        literal.doubted(doubt);
        literal.cost += cost::UNQUOTED;
        literal.valued(Last::Bare, end);
        out.push(literal);
    }

    /// `ObjectId("…")`: its argument.
    fn call(&self, mut reading: Reading, end: usize, out: &mut Vec<Reading>) {
        let at = reading.at;
        if !CALLS.contains(&self.slice(at, end)) {
            return;
        }
        let start = self.peek(end + 1);
        let (last, stop) = match Quote::at(self.rest(start)) {
            Some((quote @ (Quote::Double | Quote::Single), _)) => {
                let Some(stop) = self.quote_ahead(start + 1, quote) else { return };
                (Last::String, stop)
            }
            _ => (Last::Bare, self.word_end(start)),
        };
        let close = self.peek(stop);
        let inside = self.slice(start, stop);
        if self.byte(close) != Some(b')') || inside.contains('\\') {
            return;
        }
        if last == Last::Bare && !self.is_scalar(start, stop) {
            return;
        }
        reading.value_start = at;
        reading.change(Kind::MongoCall, at, start, "");
        if inside.starts_with('\'') {
            if inside.contains('"') {
                return;
            }
            reading.change(Kind::SingleQuotes, start, start + 1, "\"");
            reading.change(Kind::SingleQuotes, stop - 1, stop, "\"");
        }
        reading.change(Kind::MongoCall, stop, close + 1, "");
        reading.valued(last, close + 1);
        out.push(reading);
    }
}

pub(super) fn quote_word(reading: &mut Reading, kind: Kind, at: usize, end: usize) {
    reading.change(kind, at, at, "\"");
    reading.change(kind, end, end, "\"");
}

/// `0. 85` as a number, which only a schema can tell from text.
fn spaced_number(word: &str) -> Option<String> {
    let (whole, fraction) = word.split_once(". ")?;
    let joined = format!("{whole}.{}", fraction.trim_start());
    crate::lex::number::is_number(joined.as_bytes()).then_some(joined)
}
