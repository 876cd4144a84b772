//! What may stand behind a value: a comma, a closer, or something that shows a loss.

use super::ahead::KeyAhead;
use super::quote::Quote;
use super::{Doubt, Expect, Frame, Last, Parser, Reading, Shape, cost};
use crate::edit::Kind;

impl Parser<'_> {
    pub(super) fn next(&self, mut reading: Reading, out: &mut Vec<Reading>) {
        let at = reading.at;
        let Some(byte) = self.byte(at) else { return };
        match byte {
            b',' => {
                reading.after_comma(1);
                out.push(reading);
            }
            b';' => {
                reading.change(Kind::Semicolon, at, at + 1, ",");
                reading.after_comma(1);
                out.push(reading);
            }
            b'}' | b']' | b')' => self.closer(reading, byte, out),
            b':' => {
                self.close_before_key(&reading, out);
                open_before_key(&reading, out);
            }
            b'+' if reading.last == Last::String => self.concat(reading, out),
            b'`' | b'~' if self.closes_fence(&reading) => self.end_at_fence(reading, out),
            _ => match self.fullwidth(at) {
                Some((b',', width)) => {
                    reading.change(Kind::Fullwidth, at, at + width, ",");
                    reading.after_comma(width);
                    out.push(reading);
                }
                Some((mark @ (b'}' | b']'), width)) => {
                    let fits = reading.frames.last().is_some_and(|frame| frame.closer() == mark);
                    if fits {
                        let after = if mark == b'}' { "}" } else { "]" };
                        reading.change(Kind::Fullwidth, at, at + width, after);
                        self.pop(reading, at + width, out);
                    }
                }
                _ => {
                    if self.lost_comma(&mut reading) {
                        out.push(reading);
                    }
                }
            },
        }
    }

    /// Puts a comma where one was lost; false if none can have stood there.
    pub(super) fn lost_comma(&self, reading: &mut Reading) -> bool {
        let at = reading.at;
        let Some(frame) = reading.frames.last().copied() else { return false };
        let has_line_end = self.slice(reading.value_end, at).contains('\n');
        let is_next = if frame.is_object() {
            match self.key_ahead(at) {
                KeyAhead::Quoted => self.byte(at) == Some(b'"') || at > reading.value_end,
                KeyAhead::Half => true,
                KeyAhead::Bare => {
                    has_line_end || (reading.last != Last::Bare && at > reading.value_end)
                }
                // A key that lost its closing quote, perhaps.
                KeyAhead::None => has_line_end && Quote::at(self.rest(at)).is_some(),
            }
        } else {
            let end = self.word_end(at);
            matches!(self.byte(at), Some(b'{' | b'['))
                || Quote::at(self.rest(at)).is_some()
                || self.is_scalar(at, end)
                || (end > at && Quote::at(self.rest(end)).is_some())
        };
        let place = reading.value_end;
        let is_word = reading.last == Last::Bare && !self.is_scalar(reading.value_start, place);
        if !is_next || (is_word && !has_line_end) {
            return false;
        }
        if at == place && frame.is_object() && self.byte(at) != Some(b'"') {
            // `"a, "b":`: one lost quote before explains it better than two losses.
            reading.cost += 1;
        }
        self.put_comma(reading, at);
        true
    }

    /// Puts a comma behind the last value, which the token at `at` follows.
    pub(super) fn put_comma(&self, reading: &mut Reading, at: usize) {
        let place = reading.value_end;
        let Some(frame) = reading.frames.last_mut() else { return };
        frame.member = place;
        let is_object = frame.is_object();
        reading.expect = if is_object { Expect::Key } else { Expect::Again };
        // `"" "` may be an empty string and another, or quotes in a text.
        let is_empty = reading.value_start + 2 == place;
        if reading.last == Last::String && (is_empty || (!is_object && self.may_be_inside(at))) {
            reading.doubted(Doubt::Always);
        }
        // A comma that went into the text before, whose quote was lost.
        let is_behind_quote =
            reading.last_change.is_some_and(|(kind, _)| kind == Kind::MissingCloseQuote);
        if is_behind_quote && self.slice(0, place).ends_with(',') {
            reading.doubted(Doubt::Always);
        }
        let has_line_end = self.slice(place, at).contains('\n');
        reading.change(Kind::MissingComma, place, place, ",");
        reading.cost += if has_line_end { cost::LOST_COMMA_AT_LINE_END } else { cost::LOST_COMMA };
        reading.comma = place;
    }

    /// Says whether the quote at `at`, behind another string of an array without a comma, may be
    /// one inside a text: nothing stands between the two, or what is quoted looks like no value.
    fn may_be_inside(&self, at: usize) -> bool {
        if Quote::at(self.rest(at)).is_none() {
            return false;
        }
        let before = at.checked_sub(1).and_then(|before| self.byte(before));
        matches!(before, Some(b'"' | b'\'')) || self.opens_oddly(at)
    }

    /// Says whether a string that would open at this quote is empty, or begins with a mark that no
    /// text begins with.
    pub(super) fn opens_oddly(&self, at: usize) -> bool {
        let Some((_, width)) = Quote::at(self.rest(at)) else { return false };
        let inside = self.rest(at + width);
        Quote::at(inside).is_some()
            || matches!(inside.first(), Some(b',' | b':' | b';' | b'}' | b']' | b')' | b'\\'))
    }

    /// `"a" + "b"`: one string.
    fn concat(&self, mut reading: Reading, out: &mut Vec<Reading>) {
        let next = self.peek(reading.at + 1);
        let is_double = self.byte(next) == Some(b'"')
            && reading.value_end.checked_sub(1).and_then(|end| self.byte(end)) == Some(b'"');
        let Some(end) = self.quote_ahead(next + 1, Quote::Double).filter(|_| is_double) else {
            return;
        };
        // Only plain strings are joined: what an escape or a change does across the seam is
        // not worth a rule.
        if reading.last_change.is_some_and(|(_, end)| end > reading.value_end - 1) {
            return;
        }
        let seam = reading.value_end - 1;
        reading.change(Kind::Concat, seam, next + 1, "");
        reading.at = end;
        reading.value_end = end;
        out.push(reading);
    }

    /// A closer, of the right kind or not.
    fn closer(&self, mut reading: Reading, byte: u8, out: &mut Vec<Reading>) {
        let at = reading.at;
        let Some(frame) = reading.frames.last().copied() else { return };
        if frame.closer() == byte {
            self.close_container(reading, out);
            return;
        }
        // The closer before it may be the one that is wrong.
        if (reading.last == Last::Container && reading.last_mergeable) || reading.lost_closer {
            reading.doubted(Doubt::Always);
        }
        // It closes a container further out, and those inside lost theirs.
        let outer = reading.frames.iter().rposition(|frame| frame.closer() == byte);
        if let Some(outer) = outer {
            let lost = reading.frames.len() - 1 - outer;
            let mut closed = reading.clone();
            for _ in 0..lost {
                self.lose_closer(&mut closed);
            }
            self.close_container(closed, out);
        }
        // It stands for the right one.
        let mut wrong = reading.clone();
        wrong.change(Kind::WrongCloser, at, at + 1, closer_text(frame));
        wrong.cost += cost::WRONG_CLOSER;
        self.pop(wrong, at + 1, out);
        // It closes nothing.
        let mut extra = reading;
        if extra.last_change.is_some_and(|(kind, _)| kind == Kind::TrailingComma) {
            // `,}` and nothing to close: something was there.
            extra.doubted(Doubt::Always);
        }
        extra.change(Kind::ExtraCloser, at, at + 1, "");
        extra.cost += cost::EXTRA_CLOSER;
        extra.extra_closer = true;
        extra.at += 1;
        out.push(extra);
    }

    /// Closes the innermost container at its own closer.
    pub(super) fn close_container(&self, mut reading: Reading, out: &mut Vec<Reading>) {
        let at = reading.at;
        let Some(frame) = reading.frames.last().copied() else { return };
        self.guide_extra(&reading, out);
        match frame.shape {
            Shape::Object | Shape::Array => self.pop(reading, at + 1, out),
            Shape::Tuple => {
                reading.change(Kind::Tuple, at, at + 1, "]");
                self.pop(reading, at + 1, out);
            }
            Shape::Doubled => {
                if self.byte(at + 1) == Some(b'}') {
                    reading.change(Kind::DoubledBraces, at + 1, at + 2, "");
                    self.pop(reading, at + 2, out);
                }
            }
        }
    }

    /// The innermost container ends at `end`.
    fn pop(&self, mut reading: Reading, end: usize, out: &mut Vec<Reading>) {
        let Some(frame) = reading.frames.pop() else { return };
        // `(1)` is a number in brackets, not a tuple of one.
        let has_comma = self.byte(reading.comma) == Some(b',') && reading.comma > frame.start;
        if frame.shape == Shape::Tuple && frame.items == 1 && !has_comma {
            return;
        }
        reading.frames.push(frame);
        self.guide_close(&mut reading);
        reading.shut(end);
        let is_too_many = matches!(self.byte(self.peek(end)), Some(b'}' | b']'));
        let is_odd = frame.mergeable || reading.lost_closer;
        if reading.expect == Expect::Done && is_odd && is_too_many {
            reading.doubted(Doubt::Always);
        }
        if reading.expect == Expect::Done && self.is_strange_rest(end) {
            reading.cost += cost::STRANGE_REST;
            reading.doubted(Doubt::Always);
        }
        out.push(reading);
    }

    /// Closes the innermost container where its last value ended.
    pub(super) fn lose_closer(&self, reading: &mut Reading) {
        self.guide_close(reading);
        reading.lose_closer();
    }

    /// `"key":` in an array: the array was not closed before it, nor perhaps what is around it.
    fn close_before_key(&self, reading: &Reading, out: &mut Vec<Reading>) {
        let is_key = reading.last == Last::String
            && reading.frames.last().is_some_and(|frame| !frame.is_object() && frame.items > 1);
        if !is_key {
            return;
        }
        // Go back before the key: the array ends with the element before it.
        let mut base = reading.clone();
        let key = base.value_start;
        base.take_back(base.comma);
        let before = self.slice(0, base.comma).trim_end();
        base.value_end = before.len();
        base.at = base.comma;
        if let Some(frame) = base.frames.last_mut() {
            frame.items -= 1;
            frame.last_movable = frame.before_movable;
        }
        if base.comma >= key || self.byte(base.comma) != Some(b',') {
            return;
        }
        while base.frames.last().is_some() {
            self.lose_closer(&mut base);
            let Some(frame) = base.frames.last() else { return };
            if frame.is_object() {
                out.push(base.clone());
            }
        }
    }
}

/// `"a": "b": 1`, `["b": 1]`: the value may be the first key of an object that lost its braces. Only shown.
fn open_before_key(reading: &Reading, out: &mut Vec<Reading>) {
    if reading.last != Last::String {
        return;
    }
    let start = reading.value_start;
    let mut opened = reading.clone();
    if let Some(frame) = opened.frames.last_mut() {
        frame.items = frame.items.saturating_sub(1);
    }
    opened.frames.push(Frame { member: start, ..Frame::new(Shape::Object, start) });
    opened.change(Kind::MissingOpener, start, start, "{");
    // What was made of the text so far has the value in it.
    opened.floor = opened.floor.min(start);
    opened.cost += cost::LOST_OPENER;
    opened.doubted(Doubt::Always);
    opened.expect = Expect::Colon;
    out.push(opened);
}

impl Reading {
    /// Behind a comma of this width.
    pub(super) fn after_comma(&mut self, width: usize) {
        let Some(frame) = self.frames.last_mut() else { return };
        self.expect = if frame.is_object() { Expect::Key } else { Expect::Again };
        frame.member = self.at;
        self.comma = self.at;
        self.at += width;
    }

    /// The innermost container ends at `end` and is whole.
    pub(super) fn shut(&mut self, end: usize) {
        let Some(frame) = self.frames.pop() else { return };
        if let Some(parent) = self.frames.last_mut() {
            let is_twin = parent.is_object() == frame.is_object();
            parent.last_movable = is_twin && (frame.movable || frame.may_end_earlier());
            parent.movable |= parent.last_movable;
        }
        self.valued(Last::Container, end);
        if let Some(parent) = self.frames.last_mut() {
            let is_twin = parent.is_object() == frame.is_object();
            parent.has_twin |= is_twin;
            parent.mergeable |= is_twin && frame.mergeable;
            parent.elided |= frame.elided;
        }
        self.last_mergeable = frame.mergeable;
        self.last_container = (frame.is_object(), frame.items);
        self.value_start = frame.start;
    }

    /// An element or member may be lost where a comma stands.
    pub(super) fn elide(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.elided = true;
        }
    }

    /// Closes the innermost container where its last value ended.
    fn lose_closer(&mut self) {
        let Some(frame) = self.frames.pop() else { return };
        let place = self.value_end;
        // A quote lost right before it: the mark between may be text.
        let is_behind_quote = self.last_change.is_some_and(|(kind, end)| {
            let is_quote = matches!(kind, Kind::MissingCloseQuote | Kind::MissingOpenQuote);
            // Text without quotes may have gone on.
            is_quote || (kind == Kind::UnquotedValue && end == place)
        });
        if is_behind_quote {
            self.doubted(Doubt::Always);
        }
        self.lost_closer = true;
        if self.extra_closer || self.lost_quote {
            // One too many and one too few: likelier that one was wrong. And what was lost with
            // a quote may be in the text.
            self.cost += 1;
        }
        self.change(Kind::MissingCloser, place, place, closer_text(frame));
        self.cost += cost::LOST_CLOSER;
        // If it could as well have stood elsewhere, the text does not say where.
        let parent = self.frames.last().copied();
        let is_twin = |parent: Frame| parent.is_object() == frame.is_object();
        if frame.elided
            || frame.last_movable
            || parent.is_some_and(|parent| is_twin(parent) && frame.may_end_earlier())
        {
            self.doubted(Doubt::Always);
        }
        if let Some(parent) = self.frames.last_mut() {
            parent.whole |= frame.whole;
            parent.last_movable = is_twin(*parent) && (frame.movable || frame.may_end_earlier());
            parent.movable |= parent.last_movable;
        }
        self.last_container = (frame.is_object(), frame.items);
        let start = self.value_start;
        self.valued(Last::Container, self.at);
        self.value_start = start;
        self.value_end = place;
    }
}

pub(super) const fn closer_text(frame: Frame) -> &'static str {
    if frame.is_object() { "}" } else { "]" }
}
