//! The fast way through what has one explanation: no parting of readings, nothing copied.
//!
//! It decides nothing that a step would decide otherwise. Where a step might leave two readings it
//! stops, with the reading as it was before the token.

use super::ahead::REACH;
use super::close::Close;
use super::quote::Quote;
use super::{Expect, Frame, Last, Parser, Reading, Shape, cost};
use crate::draft::Draft;
use crate::edit::{Kind, Text};
use crate::lex::{number, plain, space};
use crate::tape::Tag;

/// Whether a token was read.
type Went = bool;

/// A key that is beyond doubt, with its colon.
#[derive(Clone, Copy)]
struct PlainKey {
    at: usize,
    /// Where its text ends.
    end: usize,
    colon: usize,
    mark: u8,
}

/// What plainly follows a string.
#[derive(Clone, Copy)]
enum Follow {
    /// A comma and a key.
    Key(usize, PlainKey),
    /// A comma and an element.
    Element(usize, usize),
    /// A key, and its comma was lost.
    LostComma(PlainKey),
}

impl Parser<'_> {
    /// Takes a reading on for as long as every token has one explanation.
    pub(crate) fn skim(&self, reading: &mut Reading, draft: &mut Draft) {
        loop {
            if reading.changes.len() > self.policy.limits.edits {
                return;
            }
            if reading.changes.len() == reading.changes.capacity() {
                self.make_room(reading);
            }
            if reading.string.is_some() {
                if !self.skim_inside(reading, draft) {
                    return;
                }
                continue;
            }
            reading.at = space::skip(self.bytes, reading.at);
            if reading.at >= self.until {
                return;
            }
            let Some(byte) = self.byte(reading.at) else { return };
            let went = match reading.expect {
                Expect::Member | Expect::Key => self.skim_key(reading, byte, draft),
                Expect::Colon if byte == b':' => {
                    reading.at += 1;
                    reading.expect = Expect::Value;
                    true
                }
                Expect::Value | Expect::Element | Expect::Again => {
                    self.skim_value(reading, byte, draft)
                }
                Expect::Next => self.skim_next(reading, byte, draft),
                Expect::Colon | Expect::Root | Expect::Done => false,
            };
            if !went {
                return;
            }
        }
    }

    /// As many changes are expected of the rest as were needed so far.
    #[cold]
    fn make_room(&self, reading: &mut Reading) {
        let (made, read) = (reading.changes.len(), reading.at.max(1));
        if made > 256 {
            let rest = self.bytes.len().saturating_sub(read);
            let likely = (made * rest / read).min(rest).min(self.policy.limits.edits);
            // At least by half, for a text that comes in pieces.
            reading.changes.reserve_exact(likely.max(made / 2));
        }
    }

    fn skim_key(&self, reading: &mut Reading, byte: u8, draft: &mut Draft) -> Went {
        if byte == b'}' {
            return skim_end_of_object(reading, draft);
        }
        match self.plain_key(reading.at) {
            Some(key) => {
                self.take_key(reading, key, draft);
                true
            }
            None => false,
        }
    }

    /// The key at `at`, if it is whole and nothing about it is doubtful.
    #[inline]
    fn plain_key(&self, at: usize) -> Option<PlainKey> {
        let mark = self.byte(at)?;
        let (end, behind) = match mark {
            b'"' => {
                let end = plain::stop_after(self.bytes, at + 1);
                (end, end + 1)
            }
            b'\'' => {
                let end = at + 1 + self.plain_name(at + 1);
                (end, end + 1)
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => {
                let end = at + self.plain_name(at);
                (end, end)
            }
            _ => return None,
        };
        let colon = space::skip(self.bytes, behind);
        let is_bare = end == behind;
        let is_whole = (is_bare || self.byte(end) == Some(mark)) && end > at + 1;
        if !is_whole || end > at + REACH || self.byte(colon) != Some(b':') {
            return None;
        }
        let text = self.bytes.get(at..end).unwrap_or_default();
        let is_odd = mark == b'"' && text.iter().any(|byte| matches!(byte, b':' | b'='));
        if is_odd || self.rest(colon).starts_with(b"://") {
            return None;
        }
        Some(PlainKey { at, end, colon, mark })
    }

    /// Length of the ASCII name at `at`.
    #[inline]
    fn plain_name(&self, at: usize) -> usize {
        let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        self.rest(at).iter().take_while(is_name).count()
    }

    fn skim_value(&self, reading: &mut Reading, byte: u8, draft: &mut Draft) -> Went {
        let at = reading.at;
        let member = match reading.expect {
            Expect::Again => reading.comma,
            Expect::Element => at,
            _ => reading.frames.last().map_or(at, |frame| frame.member),
        };
        // Before the value is read: what follows it may be read with it.
        if byte != b']'
            && let Some(frame) = reading.frames.last_mut()
        {
            frame.member = member;
        }
        match byte {
            b'"' | b'\'' => self.skim_quote(reading, byte, draft),
            b'-' | b'0'..=b'9' => match number::end(self.bytes, at) {
                Some(end) => self.skim_word(reading, end, (Tag::Number, None), draft),
                None => false,
            },
            b'{' => self.skim_open(reading, Shape::Object, member, draft),
            b'[' => self.skim_open(reading, Shape::Array, member, draft),
            b']' => skim_end_of_array(self, reading, draft),
            b't' | b'f' | b'n' | b'T' | b'F' | b'N' => self.skim_literal(reading, draft),
            _ => false,
        }
    }

    /// At a quote that opens a value and may not be a doubled or tripled one.
    fn skim_quote(&self, reading: &mut Reading, mark: u8, draft: &mut Draft) -> Went {
        let at = reading.at;
        let is_odd = mark == b'"'
            && self.byte(at + 1) == Some(b'"')
            && matches!(
                self.byte(at + 2),
                Some(b'"' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | 0x80..)
            );
        if is_odd || self.rest(at).starts_with(b"'''") {
            return false;
        }
        let end = self.stop_at(at + 1, mark);
        if self.byte(end) == Some(mark)
            && end < self.until
            && let Some(follow) = self.follow(reading, end + 1)
        {
            draft.plain(reading, end);
            if mark == b'\'' {
                reading.change(Kind::SingleQuotes, at, at + 1, "\"");
                reading.change(Kind::SingleQuotes, end, end + 1, "\"");
            }
            reading.value_start = at;
            reading.valued(Last::String, end + 1);
            self.take(reading, follow, draft);
            return true;
        }
        draft.opens(reading);
        reading.open_string(at, if mark == b'"' { Quote::Double } else { Quote::Single });
        // Where more will come, nothing behind the bytes held back counts as read.
        reading.at = end.min(self.until.max(reading.at));
        true
    }

    /// The next byte that may matter in a string with this mark.
    #[inline]
    fn stop_at(&self, at: usize, mark: u8) -> usize {
        if mark == b'"' {
            return plain::stop_after(self.bytes, at);
        }
        plain::mark_after(self.bytes, at, mark)
    }

    /// What follows a string that ends before `after`, if it leaves no doubt.
    #[inline]
    fn follow(&self, reading: &Reading, after: usize) -> Option<Follow> {
        let is_object = reading.frames.last()?.is_object();
        let next = space::skip(self.bytes, after);
        match self.byte(next)? {
            b',' => {
                let at = space::skip(self.bytes, next + 1);
                if is_object {
                    return self.plain_key(at).map(|key| Follow::Key(next, key));
                }
                matches!(self.byte(at)?, b'"' | b'\'' | b'{' | b'[')
                    .then_some(Follow::Element(next, at))
            }
            b'"' if is_object && next > after => self.plain_key(next).map(Follow::LostComma),
            _ => None,
        }
    }

    /// Takes what follows a string that was read.
    #[inline]
    fn take(&self, reading: &mut Reading, follow: Follow, draft: &mut Draft) {
        match follow {
            Follow::Key(comma, key) => {
                reading.at = comma;
                reading.after_comma(1);
                self.take_key(reading, key, draft);
            }
            Follow::Element(comma, at) => {
                reading.at = comma;
                reading.after_comma(1);
                reading.at = at;
            }
            Follow::LostComma(key) => {
                self.put_comma(reading, key.at);
                self.take_key(reading, key, draft);
            }
        }
    }

    /// Reads on in a value's string, to its end if that is beyond doubt. At a mark that is in
    /// doubt it stops, and a step decides.
    fn skim_inside(&self, reading: &mut Reading, draft: &mut Draft) -> Went {
        let Some(mut open) = reading.string else { return false };
        let mark = match open.quote {
            Quote::Double => b'"',
            Quote::Single => b'\'',
            _ => return false,
        };
        if reading.frames.is_empty() || matches!(reading.expect, Expect::Member | Expect::Key) {
            return false;
        }
        let mut at = reading.at;
        loop {
            let from = at;
            at = self.stop_at(at, mark);
            if at >= self.until {
                at = self.until.max(from);
                break;
            }
            if reading.changes.len() > self.policy.limits.edits {
                self.many.set(true);
                return false;
            }
            match self.byte(at) {
                Some(byte) if byte == mark => {
                    reading.at = at;
                    reading.string = Some(open);
                    if self.skim_end(reading, draft) {
                        return true;
                    }
                    match reading.string {
                        // A quote inside: on behind it.
                        Some(kept) if reading.at > at => (open, at) = (kept, reading.at),
                        _ => return false,
                    }
                }
                Some(b'"') => {
                    open.escaped = true;
                    reading.change(Kind::SingleQuotes, at, at, "\\");
                    at += 1;
                }
                Some(b'\\') => {
                    open.escaped = true;
                    match self.escape(reading, &mut open, at) {
                        Some(next) => at = next,
                        None => break,
                    }
                }
                Some(byte) => {
                    open.escaped = true;
                    reading.change(Kind::RawControl, at, at + 1, Text::of_control(byte));
                    at += 1;
                }
                None => break,
            }
        }
        reading.at = at;
        reading.string = Some(open);
        false
    }

    /// At a mark that may end the string. Ends it, and takes what plainly follows, if nothing
    /// else is likely; goes past it, if it cannot be the end; else stays.
    fn skim_end(&self, reading: &mut Reading, draft: &mut Draft) -> Went {
        if reading.string.is_some_and(|open| open.has_doubtful_escapes()) {
            return false;
        }
        let after = reading.at + 1;
        if let Some(follow) = self.follow(reading, after) {
            self.take_string(reading, draft);
            self.take(reading, follow, draft);
            return true;
        }
        match self.ends_value(&reading.frames, after) {
            Close::Clean => {
                self.take_string(reading, draft);
                true
            }
            Close::Never => {
                let is_first = reading.string.is_some_and(|open| open.inner == 0);
                if !is_first || self.earlier_ends(reading, reading.at).is_empty() {
                    self.keep(reading, Close::Never, 1);
                }
                false
            }
            Close::Fair => false,
        }
    }

    fn skim_literal(&self, reading: &mut Reading, draft: &mut Draft) -> Went {
        let (end, what) = match self.rest(reading.at) {
            [b't', b'r', b'u', b'e', ..] => (4, (Tag::True, None)),
            [b'n', b'u', b'l', b'l', ..] => (4, (Tag::Null, None)),
            [b'f', b'a', b'l', b's', b'e', ..] => (5, (Tag::False, None)),
            [b'T', b'r', b'u', b'e', ..] => (4, (Tag::True, Some("true"))),
            [b'F', b'a', b'l', b's', b'e', ..] => (5, (Tag::False, Some("false"))),
            [b'N', b'o', b'n', b'e', ..] => (4, (Tag::Null, Some("null"))),
            _ => return false,
        };
        self.skim_word(reading, reading.at + end, what, draft)
    }

    fn skim_word(
        &self,
        reading: &mut Reading,
        end: usize,
        (tag, strict): (Tag, Option<&'static str>),
        draft: &mut Draft,
    ) -> Went {
        let at = reading.at;
        // A comma or a closer ends it for sure; a space may be part of a text.
        if !matches!(self.byte(space::skip(self.bytes, end)), Some(b',' | b'}' | b']')) {
            return false;
        }
        reading.value_start = at;
        draft.scalar(reading, tag, end - at);
        if let Some(strict) = strict {
            reading.change(Kind::PythonLiteral, at, end, strict);
        }
        reading.valued(Last::Bare, end);
        true
    }

    /// The string that is being read ends at the reading.
    #[inline]
    fn take_string(&self, reading: &mut Reading, draft: &mut Draft) {
        let escaped = reading.string.is_some_and(|open| open.escaped || open.inner > 0);
        draft.string(reading, escaped);
        reading.end_string(self, 1);
    }

    fn take_key(&self, reading: &mut Reading, key: PlainKey, draft: &mut Draft) {
        let PlainKey { at, end, colon, mark } = key;
        let member = if reading.expect == Expect::Key { reading.comma } else { at };
        if let Some(frame) = reading.frames.last_mut() {
            frame.member = member;
        }
        let start = reading.mended(at) + 1;
        let mut inside = at + 1..end;
        match mark {
            b'"' => reading.value_start = at,
            b'\'' => {
                reading.value_start = at;
                reading.change(Kind::SingleQuotes, at, at + 1, "\"");
                reading.change(Kind::SingleQuotes, end, end + 1, "\"");
            }
            _ => {
                inside = at..end;
                reading.change(Kind::UnquotedKey, at, at, "\"");
                reading.change(Kind::UnquotedKey, end, end, "\"");
                reading.cost += cost::UNQUOTED;
            }
        }
        draft.key(self.bytes, inside, start);
        reading.at = colon + 1;
        reading.expect = Expect::Value;
    }

    fn skim_open(
        &self,
        reading: &mut Reading,
        shape: Shape,
        member: usize,
        draft: &mut Draft,
    ) -> Went {
        if reading.frames.len() >= self.policy.limits.depth {
            return false;
        }
        if let Some(frame) = reading.frames.last_mut() {
            frame.member = member;
        }
        let tag = if shape == Shape::Object { Tag::Object } else { Tag::Array };
        draft.open(reading, tag);
        reading.frames.push(Frame::new(shape, reading.at));
        reading.at += 1;
        reading.expect = if shape == Shape::Object { Expect::Member } else { Expect::Element };
        true
    }

    fn skim_next(&self, reading: &mut Reading, byte: u8, draft: &mut Draft) -> Went {
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
                draft.close(reading);
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

fn skim_end_of_object(reading: &mut Reading, draft: &mut Draft) -> Went {
    let at = reading.at;
    let Some(frame) = reading.frames.last() else { return false };
    if frame.shape != Shape::Object || reading.frames.len() == 1 {
        return false;
    }
    if reading.expect == Expect::Key {
        let comma = reading.comma;
        reading.change(Kind::TrailingComma, comma, comma + 1, "");
    }
    draft.close(reading);
    reading.shut(at + 1);
    true
}

fn skim_end_of_array(parser: &Parser<'_>, reading: &mut Reading, draft: &mut Draft) -> Went {
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
    draft.close(reading);
    reading.shut(at + 1);
    true
}
