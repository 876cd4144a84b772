//! Reads keys and their colons.

use super::close::Close;
use super::quote::Quote;
use super::{Doubt, Expect, Parser, Reading, Shape, cost};
use crate::edit::Kind;
use crate::policy::Status;

impl Parser<'_> {
    /// At a first key, or at a key after a comma.
    pub(super) fn key(&self, mut reading: Reading, out: &mut Vec<Reading>) {
        let at = reading.at;
        let Some(byte) = self.byte(at) else { return };
        let is_first = reading.expect == Expect::Member;
        if !is_first {
            self.guide_lost(&reading, out);
        }
        match byte {
            b'}' | b']' | b')' if is_first => {
                let closes = reading.frames.last().is_some_and(|frame| frame.closer() == byte);
                if closes {
                    self.close_container(reading, out);
                }
            }
            b'}' | b']' | b')' => {
                let comma = reading.comma;
                reading.change(Kind::TrailingComma, comma, comma + 1, "");
                reading.expect = Expect::Next;
                out.push(reading);
            }
            b',' => {
                let kind = if is_first { Kind::LeadingComma } else { Kind::DoubleComma };
                reading.change(kind, at, at + 1, "");
                reading.elide();
                reading.at += 1;
                out.push(reading);
            }
            b'{' if is_first => doubled_brace(reading, out),
            _ => self.key_text(reading, out),
        }
    }

    fn key_text(&self, mut reading: Reading, out: &mut Vec<Reading>) {
        let at = reading.at;
        if let Some(frame) = reading.frames.last_mut() {
            frame.member = if reading.expect == Expect::Key { reading.comma } else { at };
        }
        if let Some((quote, _)) = Quote::at(self.rest(at)) {
            if quote == Quote::Double && self.is_doubled(at) {
                let mut doubled = reading.clone();
                doubled.cost += if doubled.doubles { 0 } else { cost::DOUBLED };
                doubled.open_string(at, Quote::Doubled);
                out.push(doubled);
                if self.byte(self.peek(at + 2)) != Some(b':') {
                    return;
                }
            }
            reading.open_string(at, quote);
            out.push(reading);
            return;
        }
        self.bare_key(reading, out);
    }

    /// `""` with text right behind it.
    pub(super) fn is_doubled(&self, at: usize) -> bool {
        match self.rest(at) {
            [b'"', b'"', b'"', ..] => false,
            [b'"', b'"', next, ..] => next.is_ascii_alphanumeric() || *next >= 0x80,
            _ => false,
        }
    }

    /// A key without quotes, or with its closing quote only.
    fn bare_key(&self, mut reading: Reading, out: &mut Vec<Reading>) {
        let at = reading.at;
        let end = self.name_end(at);
        if end == at {
            return;
        }
        let width = match Quote::at(self.rest(end)) {
            Some((Quote::Double | Quote::Single, width)) => width,
            _ => 0,
        };
        if end == self.bytes.len() && self.status != Status::Stopped {
            self.cut_key(reading, out);
            return;
        }
        let is_key = matches!(self.byte(self.peek(end + width)), Some(b':' | b'='))
            || self.fullwidth(self.peek(end + width)).is_some_and(|(mark, _)| mark == b':');
        if !is_key {
            return;
        }
        if width > 0 {
            reading.change(Kind::MissingOpenQuote, at, at, "\"");
            if self.byte(end) != Some(b'"') {
                reading.change(Kind::SingleQuotes, end, end + width, "\"");
            }
            reading.cost += cost::LOST_QUOTE;
        } else {
            reading.change(Kind::UnquotedKey, at, at, "\"");
            reading.change(Kind::UnquotedKey, end, end, "\"");
            reading.cost += cost::UNQUOTED;
        }
        reading.at = end + width;
        reading.expect = Expect::Colon;
        self.guide_key(&mut reading, at, end);
        out.push(reading);
    }

    /// At a mark that may end a key.
    pub(super) fn at_key_quote(&self, mut reading: Reading, width: usize, out: &mut Vec<Reading>) {
        let Some(open) = reading.string else { return };
        let at = reading.at;
        let next = self.peek(at + width);
        let close = match self.byte(next) {
            None | Some(b':' | b'=') => Close::Clean,
            _ if self.fullwidth(next).is_some_and(|(mark, _)| mark == b':') => Close::Clean,
            Some(b'{' | b'[' | b'-' | b'0'..=b'9') => Close::Fair,
            Some(_) if Quote::at(self.rest(next)).is_some() => Close::Fair,
            Some(_) => {
                let end = self.word_end(next);
                if self.is_scalar(next, end) { Close::Fair } else { Close::Never }
            }
        };
        let text = self.slice(open.start, at);
        if let Some(colon) = text.find([':', '=']) {
            self.close_at(&reading, open.start + colon, out);
            // Keys neither end in a colon nor have lines.
            if close != Close::Clean || text.trim_end().ends_with(':') || text.contains('\n') {
                reading.cost += cost::LOST_QUOTE;
            }
        }
        if text.contains('\n') {
            // Keys have no lines.
            reading.doubted(Doubt::Always);
        }
        if close != Close::Never {
            reading.close_string(self, width, out);
        }
    }

    /// Between a key and its value.
    pub(super) fn colon(&self, mut reading: Reading, out: &mut Vec<Reading>) {
        let at = reading.at;
        let width = match self.rest(at) {
            [b'=', b'>', ..] => 2,
            [b':' | b'=', ..] => 1,
            _ => self.fullwidth(at).filter(|(mark, _)| *mark == b':').map_or(0, |(_, width)| width),
        };
        if width > 0 {
            if self.byte(at) != Some(b':') {
                let kind = if width == 3 { Kind::Fullwidth } else { Kind::WrongColon };
                reading.change(kind, at, at + width, ":");
            }
            reading.at = at + width;
            reading.expect = Expect::Value;
            out.push(reading);
            return;
        }
        let end = self.word_end(at);
        let is_value = matches!(self.byte(at), Some(b'{' | b'['))
            || Quote::at(self.rest(at)).is_some()
            || self.is_scalar(at, end);
        if is_value {
            reading.change(Kind::MissingColon, at, at, ":");
            reading.cost += cost::LOST_COLON;
            reading.expect = Expect::Value;
            out.push(reading);
        }
    }
}

/// `{{` opens one object if its key follows.
fn doubled_brace(mut reading: Reading, out: &mut Vec<Reading>) {
    let at = reading.at;
    let Some(frame) = reading.frames.last_mut() else { return };
    if frame.shape == Shape::Doubled || at != frame.start + 1 {
        return;
    }
    frame.shape = Shape::Doubled;
    reading.change(Kind::DoubledBraces, at, at + 1, "");
    reading.cost += 1;
    reading.at += 1;
    out.push(reading);
}
