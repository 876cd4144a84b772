//! What becomes of a reading when the text ends.
//!
//! A cut and damage are two things. If the model stopped by itself, an open container lost its
//! closer, and an open string is beyond mending. If the text was cut, what is whole is kept, and
//! what the cut may have changed is dropped.

use super::next::closer_text;
use super::quote::Quote;
use super::string::settle;
use super::{Doubt, Expect, Last, Parser, Reading, cost};
use crate::edit::Kind;
use crate::lex::number;
use crate::policy::{AtCut, Status};

/// How far before a document the fence may begin that it stands in.
const FENCE: usize = 64;

/// Where a cut document ends, and how.
struct Stump {
    /// What is behind is dropped.
    from: usize,
    /// Ends the string that was open.
    tail: &'static str,
    kind: Kind,
}

impl Parser<'_> {
    /// The text ends between tokens.
    pub(super) fn end(&self, mut reading: Reading, out: &mut Vec<Reading>) {
        if reading.frames.is_empty() {
            if reading.expect == Expect::Done {
                out.push(reading);
            }
            return;
        }
        if self.status == Status::Stopped {
            self.end_of_damage(reading, out);
            return;
        }
        let end = self.bytes.len();
        let member = reading.frames.last().map_or(end, |frame| frame.member);
        let (from, kind) = match reading.expect {
            Expect::Next if self.is_number_at_cut(&reading) => match self.policy.cut_number {
                AtCut::Drop => (member, Kind::TruncNumber),
                AtCut::Keep => (end, Kind::TruncNumber),
            },
            Expect::Colon => (member, Kind::TruncKey),
            Expect::Value => (member, Kind::TruncValue),
            Expect::Key | Expect::Again => (reading.comma, Kind::TruncValue),
            _ => (end, Kind::TruncContainer),
        };
        reading.cost += 1;
        self.cut(reading, &Stump { from, tail: "", kind }, out);
    }

    fn is_number_at_cut(&self, reading: &Reading) -> bool {
        reading.last == Last::Bare
            && reading.value_end == self.bytes.len()
            && number::is_number(self.rest(reading.value_start))
    }

    /// Says whether the last thing in the text is a number or a word: nothing shows its end. A
    /// literal is whole by itself.
    fn may_lack_letters(&self, reading: &Reading) -> bool {
        let word = self.rest(reading.value_start);
        let is_literal = [&b"true"[..], b"false", b"null", b"none"]
            .iter()
            .any(|literal| word.eq_ignore_ascii_case(literal));
        reading.last == Last::Bare
            && reading.value_end == self.bytes.len()
            && !word.ends_with(b")")
            && !is_literal
    }

    fn end_of_damage(&self, mut reading: Reading, out: &mut Vec<Reading>) {
        if reading.expect != Expect::Next {
            return;
        }
        if self.may_lack_letters(&reading) {
            reading.at = reading.value_start;
            reading.doubted(Doubt::Always);
        }
        while !reading.frames.is_empty() {
            self.lose_closer(&mut reading);
        }
        reading.expect = Expect::Done;
        reading.at = self.bytes.len();
        out.push(reading);
    }

    /// Says whether the fence that the document stands in closes at the reading: the same marks
    /// right before the document, and here at the start of a line.
    pub(super) fn closes_fence(&self, reading: &Reading) -> bool {
        let Some(root) = reading.frames.first() else { return false };
        let Some(mark @ [one, two, three, ..]) = self.rest(reading.at).get(..3) else {
            return false;
        };
        let from = self.raw.floor_char_boundary(root.start.saturating_sub(FENCE));
        let before = self.slice(from, root.start).as_bytes();
        one == two
            && two == three
            && memchr::memmem::find(before, mark).is_some()
            && self.slice(0, reading.at).trim_end_matches([' ', '\t']).ends_with('\n')
    }

    /// The document ends with its fence: what is open lost its closer.
    pub(super) fn end_at_fence(&self, mut reading: Reading, out: &mut Vec<Reading>) {
        while !reading.frames.is_empty() {
            self.lose_closer(&mut reading);
        }
        reading.expect = Expect::Done;
        reading.at = reading.value_end;
        out.push(reading);
    }

    /// The text ends inside a string, perhaps in half an escape.
    pub(super) fn end_inside(&self, mut reading: Reading, out: &mut Vec<Reading>) {
        let Some(open) = reading.string else { return };
        let half = reading.at;
        if self.ends_with_closers(&reading, out) {
            return;
        }
        let is_key = matches!(reading.expect, Expect::Member | Expect::Key);
        if let Some(colon) = self.slice(open.start, half).find(':')
            && is_key
            && self.status != Status::Cut
        {
            self.close_at(&reading, open.start + colon, out);
        }
        if self.status == Status::Stopped || reading.frames.is_empty() {
            return;
        }
        reading.cost += if self.status == Status::Cut { 1 } else { 3 };
        let member = reading.frames.last().map_or(half, |frame| frame.member);
        if is_key || self.policy.cut_string == AtCut::Drop {
            let kind = if is_key { Kind::TruncKey } else { Kind::TruncString };
            self.cut(reading, &Stump { from: member, tail: "", kind }, out);
            return;
        }
        settle(&mut reading, open);
        if open.inner % 2 == 1 && open.quote == Quote::Double {
            // Half a pair of quotes and no end: nothing shows that it is text.
            reading.doubted(Doubt::Always);
        }
        if self.status == Status::Unknown && self.may_be_whole(&reading) {
            reading.doubted(Doubt::Always);
        }
        let end = self.bytes.len();
        let kind = if half < end { Kind::TruncEscape } else { Kind::TruncString };
        self.cut(reading, &Stump { from: half, tail: "\"", kind }, out);
    }

    /// Says whether the text ends with just the closers that are needed, behind some quote: then a
    /// quote is wrong, and it is no cut.
    fn may_be_whole(&self, reading: &Reading) -> bool {
        let Some(open) = reading.string else { return false };
        self.before_closers(reading, open.start).is_some_and(|text| text.contains(['"', '\'']))
    }

    /// The text from `start` on without the closers that are needed, if it ends with just those.
    fn before_closers(&self, reading: &Reading, start: usize) -> Option<&str> {
        let mut text = self.slice(start, self.bytes.len()).trim_end();
        for frame in &reading.frames {
            text = text.strip_suffix(char::from(frame.closer()))?.trim_end();
        }
        Some(text)
    }

    /// A string without an end whose last bytes are just the closers that are needed lost its
    /// quote before them.
    fn ends_with_closers(&self, reading: &Reading, out: &mut Vec<Reading>) -> bool {
        let Some(open) = reading.string else { return false };
        if matches!(reading.expect, Expect::Member | Expect::Key) || open.inner > 0 {
            return false;
        }
        let Some(text) = self.before_closers(reading, open.start) else { return false };
        if text.contains('"') {
            return false;
        }
        // Under a cut only a curly quote before the closers shows that they are no text.
        if self.status == Status::Cut && open.quote.curly_end(text) == 0 {
            return false;
        }
        self.close_at(reading, open.start + text.len(), out);
        // It may have ended at any mark before, too.
        self.close_earlier(reading, open.start + text.len(), out);
        true
    }

    /// A key without quotes that the end of the text may have cut.
    pub(super) fn cut_key(&self, mut reading: Reading, out: &mut Vec<Reading>) {
        let member = reading.frames.last().map_or(reading.at, |frame| frame.member);
        reading.cost += cost::UNQUOTED;
        self.cut(reading, &Stump { from: member, tail: "", kind: Kind::TruncKey }, out);
    }

    /// A bare word that the end of the text may have cut.
    pub(super) fn cut_bare(&self, mut reading: Reading, end: usize, out: &mut Vec<Reading>) {
        let word = self.slice(reading.at, end);
        if number::is_number(word.as_bytes()) || matches!(word, "true" | "false" | "null") {
            reading.value_start = reading.at;
            reading.valued(Last::Bare, end);
            out.push(reading);
            return;
        }
        let is_number =
            word.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
        let is_literal = ["true", "false", "null", "True", "False", "None"]
            .iter()
            .any(|literal| literal.starts_with(word));
        let kind = match (is_number, is_literal) {
            (true, _) => Kind::TruncNumber,
            (_, true) => Kind::TruncLiteral,
            _ => Kind::TruncValue,
        };
        let member = match (reading.expect, reading.frames.last()) {
            (Expect::Element | Expect::Again | Expect::Value, Some(frame)) => frame.member,
            _ => reading.at,
        };
        reading.cost += cost::UNQUOTED;
        self.cut(reading, &Stump { from: member, tail: "", kind }, out);
    }

    /// Ends the document with the closers it needs.
    fn cut(&self, mut reading: Reading, stump: &Stump, out: &mut Vec<Reading>) {
        let mut from = stump.from;
        let mut tail = stump.tail.to_owned();
        // An element with nothing whole in it carries nothing but the cut.
        let first_empty =
            reading.frames.iter().rposition(|frame| frame.whole).map_or(0, |at| at + 1);
        let empty = (first_empty.max(1)..reading.frames.len()).find(|at| {
            let is_object = reading.frames.get(*at).is_some_and(|frame| frame.is_object());
            let in_array = reading.frames.get(at - 1).is_some_and(|outer| !outer.is_object());
            is_object && in_array
        });
        if let Some(at) = empty {
            from = reading.frames.get(at - 1).map_or(from, |outer| outer.member);
            reading.frames.truncate(at);
            tail.clear();
        }
        for frame in reading.frames.iter().rev() {
            tail.push_str(closer_text(*frame));
        }
        let end = self.bytes.len();
        reading.dropped_from = Some(from);
        reading.take_back(from);
        reading.change(stump.kind, from, end, self.text(&tail));
        reading.frames.clear();
        reading.string = None;
        reading.expect = Expect::Done;
        reading.at = end;
        reading.cut = true;
        out.push(reading);
    }
}
