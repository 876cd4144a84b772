//! Reads the inside of a string, and decides at each quote whether it may be the end.

use super::close::Close;
use super::quote::Quote;
use super::{Doubt, Expect, Last, Open, Parser, Reading, cost};
use crate::edit::{Kind, Text};
use crate::lex::escape::{self, Escape};
use crate::lex::{number, plain};

/// How far back a quote is looked for that was lost inside a string.
const WINDOW: usize = 2048;
/// How many marks are looked at from either end of it.
const MARKS: usize = 12;

impl Parser<'_> {
    /// Reads on inside a string up to a decision.
    pub(super) fn inside(&self, mut reading: Reading, out: &mut Vec<Reading>) {
        let Some(mut open) = reading.string else { return };
        let mut at = reading.at;
        loop {
            let from = at;
            at = self.stop(at, open.quote);
            if at >= self.until {
                reading.at = self.until.max(from);
                reading.string = Some(open);
                out.push(reading);
                return;
            }
            if reading.changes.len() > self.policy.limits.edits {
                self.many.set(true);
                return;
            }
            let Some(byte) = self.byte(at) else {
                reading.string = Some(open);
                reading.at = at;
                self.end_inside(reading, out);
                return;
            };
            open.escaped = true;
            if byte == b'\\' {
                let Some(next) = self.escape(&mut reading, &mut open, at) else {
                    reading.string = Some(open);
                    reading.at = at;
                    self.end_inside(reading, out);
                    return;
                };
                at = next;
                continue;
            }
            let width = open.quote.ends(self.rest(at));
            if width > 0 {
                reading.at = at;
                reading.string = Some(open);
                self.at_quote(reading, width, out);
                return;
            }
            if byte == b'"' && open.quote == Quote::Doubled {
                // The text does not double its quotes after all.
                return;
            }
            if byte == b'"' {
                reading.change(open.quote.kind().unwrap_or(Kind::InnerQuote), at, at, "\\");
                at += 1;
            } else if byte < 0x20 {
                reading.change(Kind::RawControl, at, at + 1, Text::of_control(byte));
                at += 1;
            } else {
                // A mark of several bytes that ends nothing here.
                at += 1;
                while self.byte(at).is_some_and(|byte| byte & 0xc0 == 0x80) {
                    at += 1;
                }
            }
        }
    }

    /// The next byte that may matter inside such a string.
    fn stop(&self, mut at: usize, quote: Quote) -> usize {
        match quote {
            Quote::Double | Quote::Doubled | Quote::Triple => plain::stop_after(self.bytes, at),
            Quote::Single | Quote::TripleSingle => plain::mark_after(self.bytes, at, b'\''),
            Quote::Back => plain::mark_after(self.bytes, at, b'`'),
            Quote::Smart | Quote::SmartSingle | Quote::Wide => {
                let stops = |byte: &u8| plain::is_stop(*byte) || matches!(byte, 0xe2 | 0xef);
                at += self.rest(at).iter().take_while(|byte| !stops(byte)).count();
                at
            }
        }
    }

    /// Reads an escape and returns where the text goes on; `None` if the text ends in it.
    pub(super) fn escape(
        &self,
        reading: &mut Reading,
        open: &mut Open,
        at: usize,
    ) -> Option<usize> {
        match escape::read(self.bytes, at) {
            Escape::Whole(length) => {
                let letter = self.byte(at + 1);
                let behind = self.byte(at + 2);
                let is_word = behind.is_some_and(|byte| byte.is_ascii_alphabetic());
                // `\b` of `\beta`, `\n` of `C:\new`: only telling when others are no escapes.
                open.doubtful |=
                    is_word && matches!(letter, Some(b'b' | b'f' | b'n' | b'r' | b't'));
                return Some(at + length);
            }
            Escape::Cut if self.byte(at + 1).is_none() || self.bytes.len() < at + 12 => {
                return if self.is_at_end_of_cut(at) { None } else { Some(bad(reading, open, at)) };
            }
            Escape::Lone => {
                reading.doubted(Doubt::Always);
                // Kept as text, so that the reading can be shown.
                reading.change(Kind::BadEscape, at, at, "\\");
                return Some(at + 6);
            }
            Escape::Cut | Escape::Bad => {}
        }
        match self.rest(at) {
            [_, b'\'' | b'`', ..] => {
                reading.change(Kind::NeedlessEscape, at, at + 1, "");
                Some(at + 2)
            }
            [_, b'\r', b'\n', ..] => {
                reading.change(Kind::LineContinuation, at, at + 3, "");
                Some(at + 3)
            }
            [_, b'\n', ..] => {
                reading.change(Kind::LineContinuation, at, at + 2, "");
                Some(at + 2)
            }
            [_, b'x', high, low, ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                let code = u8::from_str_radix(self.slice(at + 2, at + 4), 16).unwrap_or_default();
                reading.change(Kind::HexEscape, at, at + 4, Text::of_code(code));
                Some(at + 4)
            }
            [_, b'u', b'{', ..] => Some(self.code_point(reading, open, at)),
            _ => Some(bad(reading, open, at)),
        }
    }

    /// Says whether nothing but the rest of an escape stands behind `at`.
    fn is_at_end_of_cut(&self, at: usize) -> bool {
        escape::read(self.bytes, at) == Escape::Cut
    }

    /// `\u{1F600}`: the character with this code.
    fn code_point(&self, reading: &mut Reading, open: &mut Open, at: usize) -> usize {
        let digits = self.rest(at + 3).iter().take(7).take_while(|byte| byte.is_ascii_hexdigit());
        let end = at + 3 + digits.count();
        let code = u32::from_str_radix(self.slice(at + 3, end), 16).ok();
        match (code.and_then(char::from_u32), self.byte(end)) {
            (Some(letter), Some(b'}')) if letter >= ' ' && letter != '"' && letter != '\\' => {
                reading.change(
                    Kind::HexEscape,
                    at,
                    end + 1,
                    self.text(letter.encode_utf8(&mut [0; 4])),
                );
                end + 1
            }
            _ => bad(reading, open, at),
        }
    }

    /// At a mark that may end the string.
    fn at_quote(&self, reading: Reading, width: usize, out: &mut Vec<Reading>) {
        let Some(open) = reading.string else { return };
        let at = reading.at;
        if matches!(reading.expect, Expect::Member | Expect::Key) {
            self.at_key_quote(reading, width, out);
            return;
        }
        let close = self.ends_value(&reading.frames, at + width);
        if reading.frames.is_empty() {
            // A string at the root ends at its first quote.
            reading.close_string(self, width, out);
            return;
        }
        if close != Close::Clean && open.inner == 0 {
            self.close_earlier(&reading, at, out);
        }
        if close != Close::Clean {
            let mut kept = reading.clone();
            self.keep(&mut kept, close, width);
            out.push(kept);
        }
        if close != Close::Never {
            let mut reading = reading;
            if open.inner > 0 && close == Close::Fair {
                // Quotes inside, and something else lost behind: too much to be sure.
                reading.doubted(Doubt::Always);
            }
            reading.close_string(self, width, out);
        }
    }

    /// `, word"`: an element that lost its opening quote, or text that goes on.
    fn is_half_quoted_after_comma(&self, comma: usize) -> bool {
        let at = self.peek(comma + 1);
        let end = self.name_end(at);
        self.byte(comma) == Some(b',') && end > at && self.byte(end) == Some(b'"')
    }

    /// The quote is part of the text.
    pub(super) fn keep(&self, reading: &mut Reading, close: Close, width: usize) {
        let Some(open) = reading.string.as_mut() else { return };
        let at = reading.at;
        let before = at.checked_sub(1).and_then(|before| self.byte(before));
        let after = self.byte(at + width);
        let is_inch = before.is_some_and(|byte| byte.is_ascii_digit());
        let is_apostrophe = open.quote != Quote::Double
            && before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte >= 0x80)
            && after.is_some_and(|byte| byte.is_ascii_alphabetic());
        open.inches |= is_inch;
        open.inner += 1;
        let between = self.slice(open.mark, at);
        // Only what is open before the first quote makes the quotes part of a sample of JSON.
        if open.inner == 1 || open.nested > 0 {
            open.nested = open.nested.saturating_sub(closers_in(between));
        }
        // Nothing but structure between two quotes: more likely that is what it is.
        let is_gap = !between.is_empty() && between.trim().is_empty();
        let is_structure = open.inner > 1 && (is_gap || is_structure(between));
        open.mark = at + width;
        let is_nested = open.nested > 0;
        let mut price = match open.inner {
            _ if is_apostrophe => 0,
            1 if is_inch => 1,
            1 => cost::INNER_QUOTE,
            2..=6 => 1,
            _ => 0,
        };
        let next = self.peek(at + width);
        let looks_like_key = self.byte(next) == Some(b':');
        let looks_like_end =
            close == Close::Fair && matches!(self.byte(next), Some(b',' | b'}' | b']' | b'"'));
        let is_half_next = looks_like_end && self.is_half_quoted_after_comma(next);
        if (looks_like_key || (looks_like_end && !is_half_next)) && !is_nested {
            price += cost::UNLIKELY_INNER;
        }
        open.ends_early |= matches!(self.byte(next), Some(b',' | b'}' | b']'));
        let quote = open.quote;
        reading.cost += price;
        // An opening quote behind a mark, after another one: likelier a value than text.
        let text = self.slice(open.start, at).trim_end();
        let is_behind_mark = open.inner > 1 && !is_nested && text.ends_with([':', ',', '[', '{']);
        let in_array = reading.frames.last().is_some_and(|frame| !frame.is_object());
        // A key in an array shows that the containers are not what they seem.
        if is_structure || is_behind_mark || (looks_like_key && !is_nested && in_array) {
            reading.doubted(Doubt::Always);
        }
        reading.at = at + width;
        match (quote, self.byte(at)) {
            // Other marks need no escape in a strict string.
            (Quote::Double, _) => reading.change(Kind::InnerQuote, at, at, "\\"),
            (_, Some(b'"')) => {
                for mark in at..at + width {
                    reading.change(Kind::InnerQuote, mark, mark, "\\");
                }
            }
            _ => {}
        }
    }

    /// The string lost its closing quote somewhere before this mark, which opens the next one.
    pub(super) fn close_earlier(&self, reading: &Reading, at: usize, out: &mut Vec<Reading>) {
        for place in self.earlier_ends(reading, at) {
            self.close_at(reading, place, out);
        }
    }

    /// Where the string may have ended without a quote before this mark.
    pub(super) fn earlier_ends(&self, reading: &Reading, at: usize) -> Vec<usize> {
        let Some(open) = reading.string else { return Vec::new() };
        let from = open.start.max(at.saturating_sub(WINDOW));
        let is_mark = |place: &usize| matches!(self.byte(*place), Some(b',' | b'}' | b']' | b'\n'));
        let mut places: Vec<usize> = (from..at).filter(is_mark).collect();
        // The first and the last marks are the likely ones.
        if places.len() > 2 * MARKS {
            places.drain(MARKS..places.len() - MARKS);
        }
        places.retain(|place| {
            self.ends_value(&reading.frames, *place) == Close::Clean
                && !self.slice(open.start, *place).trim().is_empty()
        });
        // The first and the last three show as well as all whether there is one only.
        if places.len() > 6 {
            places.drain(3..places.len() - 3);
        }
        // An empty string that lost one of its quotes.
        if open.start < at && self.ends_value(&reading.frames, open.start) == Close::Clean {
            places.push(open.start);
        }
        places
    }

    /// Ends the string at a place without a quote.
    pub(super) fn close_at(&self, reading: &Reading, place: usize, out: &mut Vec<Reading>) {
        let mut early = reading.clone();
        let Some(open) = early.string.take() else { return };
        // The quote goes right behind the text, before the space in front of the mark.
        let text = self.slice(open.start, place).trim_end();
        let place = open.start + text.len();
        let curly = open.quote.curly_end(text);
        early.take_back(place - curly);
        if curly > 0 {
            early.change(Kind::SmartQuotes, place - curly, place, "\"");
            early.cost += cost::UNQUOTED;
            // Or it is text, and the straight quote behind it was lost.
            early.doubted(Doubt::Always);
        } else {
            early.change(Kind::MissingCloseQuote, place, place, "\"");
            early.cost += cost::LOST_QUOTE;
        }
        // A text without a letter is no evidence, and a second lost quote is none of an accident.
        if !text.contains(char::is_alphanumeric) || (early.lost_quote && curly == 0) {
            early.doubted(Doubt::Always);
        }
        early.lost_quote |= curly == 0;
        let is_key = matches!(early.expect, Expect::Member | Expect::Key);
        if is_key && text.contains(['\n', '"', '\'']) {
            early.doubted(Doubt::Always);
        }
        // A comma before a closer is likelier text than a trailing one.
        let mark = self.peek(place);
        if self.byte(mark) == Some(b',')
            && matches!(self.byte(self.peek(mark + 1)), Some(b',' | b'}' | b']'))
        {
            early.doubted(Doubt::Always);
        }
        // `"a, ""`, `"a, ","`: the next string may be a part of this one. And a text that ends with
        // a quote has lost something else.
        let is_within = self.byte(mark) == Some(b',') && self.opens_oddly(self.peek(mark + 1));
        // So has one that closes what it did not open.
        if is_within || text.ends_with(['"', '\'', '’']) && curly == 0 || closers_in(text) > 0 {
            early.doubted(Doubt::Always);
        }
        self.guide_string(&mut early, open.start, place);
        early.string_read(place);
        out.push(early);
    }
}

impl Reading {
    /// The string ends at this mark.
    pub(super) fn close_string(mut self, parser: &Parser<'_>, width: usize, out: &mut Vec<Self>) {
        if let Some(mut literal) = parser.all_backslashes_text(&self) {
            literal.end_string(parser, width);
            out.push(literal);
        }
        self.end_string(parser, width);
        out.push(self);
    }

    /// As [`Reading::close_string`], in place.
    pub(super) fn end_string(&mut self, parser: &Parser<'_>, width: usize) {
        let at = self.at;
        let Some(open) = self.string.take() else { return };
        if open.inner > 0 {
            let last = parser.slice(open.mark, at);
            let is_gap = !last.is_empty() && last.trim().is_empty();
            // A sample of JSON in a text closes what it opens.
            let is_unbalanced = open.nested > 0 && open.nested != closers_in(last);
            if is_gap || is_structure(last) || is_unbalanced {
                self.doubted(Doubt::Always);
            }
        }
        if let Some(kind) = open.quote.kind() {
            self.change(kind, at, at + width, "\"");
            // Opened in one way and closed in another.
            if matches!(open.quote, Quote::Smart | Quote::Wide) && width == 1 {
                self.doubted(Doubt::Always);
            }
        }
        settle(self, open);
        if open.quote == Quote::Doubled {
            self.doubles = true;
        }
        parser.guide_string(self, open.start, at);
        self.string_read(at + width);
    }

    /// Opens a string at `at`.
    pub(super) fn open_string(&mut self, at: usize, quote: Quote) {
        let start = at + quote.width();
        if let Some(kind) = quote.kind() {
            self.change(kind, at, start, "\"");
        }
        self.value_start = at;
        self.string = Some(Open::new(quote, start));
        self.at = start;
    }

    fn string_read(&mut self, end: usize) {
        if matches!(self.expect, Expect::Member | Expect::Key) {
            self.expect = Expect::Colon;
            self.at = end;
            return;
        }
        self.valued(Last::String, end);
    }
}

/// What a whole string leaves behind: doubts about its escapes, and about an odd quote.
pub(super) fn settle(reading: &mut Reading, open: Open) {
    // One quote inside that may as well have ended the text.
    let is_early = open.inner % 2 == 1 && open.ends_early;
    if is_early || open.has_doubtful_escapes() {
        reading.doubted(Doubt::Always);
    }
    if open.inner % 2 == 1 && !open.inches && open.quote == Quote::Double {
        reading.cost += 1;
    }
}

/// Closers in a text less its openers.
fn closers_in(text: &str) -> i32 {
    let count = |marks: [char; 2]| i32::try_from(text.matches(marks).count()).unwrap_or(i32::MAX);
    count(['}', ']']).saturating_sub(count(['{', '[']))
}

/// Says whether the text is marks, numbers and literals only, with a mark among them.
fn is_structure(text: &str) -> bool {
    let is_mark = |letter: char| matches!(letter, ',' | '[' | ']' | '{' | '}');
    text.contains(is_mark)
        && text
            .split(|letter: char| is_mark(letter) || letter == ':' || letter.is_whitespace())
            .all(|word| {
                matches!(word, "" | "true" | "false" | "null") || number::is_number(word.as_bytes())
            })
}

/// The backslash is text.
fn bad(reading: &mut Reading, open: &mut Open, at: usize) -> usize {
    reading.change(Kind::BadEscape, at, at, "\\");
    open.bad = true;
    at + 1
}
