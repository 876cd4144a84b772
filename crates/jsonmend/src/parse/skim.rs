//! The fast way through what has one explanation: no parting of readings, nothing copied.
//!
//! It decides nothing that a step would decide otherwise. Where a step might leave two readings it
//! stops, with the reading as it was before the token.

use super::close::Close;
use super::quote::Quote;
use super::{Expect, Frame, Last, Parser, Reading, Shape, cost};
use crate::edit::Kind;
use crate::lex::escape::{self, Escape};
use crate::lex::{number, plain, space};

/// Whether a token was read.
type Went = bool;

impl Parser<'_> {
    /// Takes a reading on for as long as every token has one explanation.
    pub(crate) fn skim(&self, reading: &mut Reading) {
        if reading.string.is_some() {
            return;
        }
        loop {
            if reading.changes.len() > self.policy.limits.edits {
                return;
            }
            reading.at = space::skip(self.bytes, reading.at);
            let Some(byte) = self.byte(reading.at) else { return };
            let went = match reading.expect {
                Expect::Member | Expect::Key => self.skim_key(reading, byte),
                Expect::Colon if byte == b':' => {
                    reading.at += 1;
                    reading.expect = Expect::Value;
                    true
                }
                Expect::Value | Expect::Element | Expect::Again => self.skim_value(reading, byte),
                Expect::Next => self.skim_next(reading, byte),
                Expect::Colon | Expect::Root | Expect::Done => false,
            };
            if !went {
                return;
            }
        }
    }

    fn skim_key(&self, reading: &mut Reading, byte: u8) -> Went {
        let at = reading.at;
        let end = match byte {
            b'"' => plain::stop_after(self.bytes, at + 1),
            b'\'' => at + 1 + self.plain_name(at + 1),
            b'}' => return skim_end_of_object(reading),
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => at + self.plain_name(at),
            _ => return false,
        };
        let is_bare = !matches!(byte, b'"' | b'\'');
        let behind = if is_bare { end } else { end + 1 };
        let colon = space::skip(self.bytes, behind);
        let is_whole = (is_bare || self.byte(end) == Some(byte)) && end > at + 1;
        let is_plain = memchr::memchr2(b':', b'=', self.rest(at).get(..end - at).unwrap_or(b":"));
        if !is_whole
            || self.byte(colon) != Some(b':')
            || is_plain.is_some()
            || (is_bare && self.rest(colon).starts_with(b"://"))
        {
            return false;
        }
        if let Some(frame) = reading.frames.last_mut() {
            frame.member = if reading.expect == Expect::Key { reading.comma } else { at };
        }
        if is_bare {
            reading.change(Kind::UnquotedKey, at, at, "\"");
            reading.change(Kind::UnquotedKey, end, end, "\"");
            reading.cost += cost::UNQUOTED;
        } else {
            reading.value_start = at;
            if byte == b'\'' {
                reading.change(Kind::SingleQuotes, at, at + 1, "\"");
                reading.change(Kind::SingleQuotes, end, end + 1, "\"");
            }
        }
        reading.at = colon + 1;
        reading.expect = Expect::Value;
        true
    }

    /// Length of the ASCII name at `at`.
    fn plain_name(&self, at: usize) -> usize {
        let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        self.rest(at).iter().take_while(is_name).count()
    }

    fn skim_value(&self, reading: &mut Reading, byte: u8) -> Went {
        let at = reading.at;
        let member = match reading.expect {
            Expect::Again => reading.comma,
            Expect::Element => at,
            _ => reading.frames.last().map_or(at, |frame| frame.member),
        };
        let went = match byte {
            b'"' | b'\'' => self.skim_string(reading, byte),
            b'-' | b'0'..=b'9' => match number::end(self.bytes, at) {
                Some(end) => self.skim_word(reading, end, None),
                None => false,
            },
            b'{' => self.skim_open(reading, Shape::Object, member),
            b'[' => self.skim_open(reading, Shape::Array, member),
            b']' => skim_end_of_array(self, reading),
            b't' | b'f' | b'n' | b'T' | b'F' | b'N' => self.skim_literal(reading),
            _ => false,
        };
        if went
            && byte != b'{'
            && byte != b'['
            && byte != b']'
            && let Some(frame) = reading.frames.last_mut()
        {
            frame.member = member;
        }
        went
    }

    fn skim_literal(&self, reading: &mut Reading) -> Went {
        let (length, strict) = match self.rest(reading.at) {
            [b't', b'r', b'u', b'e', ..] | [b'n', b'u', b'l', b'l', ..] => (4, None),
            [b'f', b'a', b'l', b's', b'e', ..] => (5, None),
            [b'T', b'r', b'u', b'e', ..] => (4, Some("true")),
            [b'F', b'a', b'l', b's', b'e', ..] => (5, Some("false")),
            [b'N', b'o', b'n', b'e', ..] => (4, Some("null")),
            _ => return false,
        };
        self.skim_word(reading, reading.at + length, strict)
    }

    fn skim_word(&self, reading: &mut Reading, end: usize, strict: Option<&'static str>) -> Went {
        let at = reading.at;
        // A comma or a closer ends it for sure; a space may be part of a text.
        if !matches!(self.byte(space::skip(self.bytes, end)), Some(b',' | b'}' | b']')) {
            return false;
        }
        reading.value_start = at;
        if let Some(strict) = strict {
            reading.change(Kind::PythonLiteral, at, end, strict);
        }
        reading.valued(Last::Bare, end);
        true
    }

    fn skim_string(&self, reading: &mut Reading, mark: u8) -> Went {
        let at = reading.at;
        let kept = (reading.changes.len(), reading.last_change);
        let end = self.skim_inside(reading, mark);
        let is_end = end.is_some_and(|end| {
            (end > at + 1
                || !matches!(
                    self.byte(at + 2),
                    Some(b'"' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | 0x80..)
                ))
                && self.ends_plainly(reading, end + 1)
        });
        let (Some(end), true) = (end, is_end) else {
            reading.changes.truncate(kept.0);
            reading.last_change = kept.1;
            return false;
        };
        if mark == b'\'' {
            reading.change(Kind::SingleQuotes, end, end + 1, "\"");
        }
        reading.value_start = at;
        reading.valued(Last::String, end + 1);
        true
    }

    /// As [`Parser::ends_value`] says `Clean`, with the commonest way of it first: a comma and a
    /// key in quotes.
    fn ends_plainly(&self, reading: &Reading, after: usize) -> Went {
        let is_object = reading.frames.last().is_some_and(|frame| frame.is_object());
        if is_object && self.byte(after) == Some(b',') {
            let at = space::skip(self.bytes, after + 1);
            if self.byte(at) == Some(b'"') {
                let end = plain::stop_after(self.bytes, at + 1);
                if self.rest(end).starts_with(b"\":") && !self.rest(end).starts_with(b"\"://") {
                    return true;
                }
            }
        }
        self.ends_value(&reading.frames, after) == Close::Clean
    }

    /// Where the string at the reading ends by the letter; `None` if anything in it is doubtful.
    fn skim_inside(&self, reading: &mut Reading, mark: u8) -> Option<usize> {
        let mut at = reading.at + 1;
        if mark == b'\'' {
            reading.change(Kind::SingleQuotes, reading.at, at, "\"");
        }
        loop {
            at = if mark == b'"' {
                plain::stop_after(self.bytes, at)
            } else {
                plain::mark_after(self.bytes, at, mark)
            };
            if reading.changes.len() > self.policy.limits.edits {
                self.many.set(true);
                return None;
            }
            match self.byte(at)? {
                byte if byte == mark => return Some(at),
                b'"' => {
                    reading.change(Kind::SingleQuotes, at, at, "\\");
                    at += 1;
                }
                b'\\' if mark == b'\'' && self.byte(at + 1) == Some(b'\'') => {
                    reading.change(Kind::NeedlessEscape, at, at + 1, "");
                    at += 2;
                }
                b'\\' => match escape::read(self.bytes, at) {
                    Escape::Whole(length) => at += length,
                    Escape::Bad | Escape::Cut | Escape::Lone => return None,
                },
                byte => {
                    reading.change(Kind::RawControl, at, at + 1, escape::of_control(byte));
                    at += 1;
                }
            }
        }
    }

    fn skim_open(&self, reading: &mut Reading, shape: Shape, member: usize) -> Went {
        if reading.frames.len() >= self.policy.limits.depth {
            return false;
        }
        if let Some(frame) = reading.frames.last_mut() {
            frame.member = member;
        }
        reading.frames.push(Frame::new(shape, reading.at));
        reading.at += 1;
        reading.expect = if shape == Shape::Object { Expect::Member } else { Expect::Element };
        true
    }

    fn skim_next(&self, reading: &mut Reading, byte: u8) -> Went {
        let at = reading.at;
        match byte {
            b',' => {
                reading.after_comma(1);
                true
            }
            b'}' | b']' => {
                let Some(frame) = reading.frames.last() else { return false };
                let fits = matches!(frame.shape, Shape::Object | Shape::Array);
                // The root's end is looked at more closely.
                if !fits || frame.closer() != byte || reading.frames.len() == 1 {
                    return false;
                }
                reading.shut(at + 1);
                true
            }
            b'"' | b'\'' | b'{' | b'[' => self.lost_comma(reading),
            byte if Quote::at(&[byte]).is_none() && byte.is_ascii_alphabetic() => {
                self.lost_comma(reading)
            }
            _ => false,
        }
    }
}

fn skim_end_of_object(reading: &mut Reading) -> Went {
    let at = reading.at;
    let Some(frame) = reading.frames.last() else { return false };
    if frame.shape != Shape::Object || reading.frames.len() == 1 {
        return false;
    }
    if reading.expect == Expect::Key {
        let comma = reading.comma;
        reading.change(Kind::TrailingComma, comma, comma + 1, "");
    }
    reading.shut(at + 1);
    true
}

fn skim_end_of_array(parser: &Parser<'_>, reading: &mut Reading) -> Went {
    let at = reading.at;
    let Some(frame) = reading.frames.last() else { return false };
    if frame.shape != Shape::Array || reading.frames.len() == 1 {
        return false;
    }
    if reading.expect == Expect::Again {
        let comma = reading.comma;
        if parser.byte(comma) != Some(b',') {
            return false;
        }
        reading.change(Kind::TrailingComma, comma, comma + 1, "");
    }
    reading.shut(at + 1);
    true
}
