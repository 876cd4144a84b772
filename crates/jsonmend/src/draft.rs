//! The mended text and its tape, made while a reading is the only one.
//!
//! ```text
//!   raw    {'a': 1, 'b': [True, x …
//!   text   {"a": 1, "b": [true,      spliced up to the last whole token, when a step was taken
//!   tape   [{] ["a"] [1] ["b"] [[] [true]      each word as its token is skimmed, or by a strict
//!                                              parse of the text that a step left behind
//! ```
//!
//! A word that is skimmed is put on the tape where its token will stand in the mended text. So a
//! reply with one reading is read once, and its text is parsed strictly only where a step was
//! needed, and at its end. In debug builds the whole text is parsed again, and must agree.

use std::ops::Range;

use crate::edit::{Change, spliced_into};
use crate::parse::{Expect, Parser, Reading};
use crate::tape::build::{Builder, Reach, Step};
use crate::tape::{Tag, Word};

/// The document that a reading has made so far.
#[derive(Debug)]
pub(crate) struct Draft {
    builder: Builder,
    text: Vec<u8>,
    /// How far the raw text is in the mended text.
    upto: usize,
    /// Changes made in the text: those before this place on the trail, and so many behind it.
    tail: u32,
    own: usize,
    /// All changes made in the text.
    made: usize,
    /// Where the string being read opens in the mended text.
    opened: usize,
    /// Raw offset behind the last token on the tape.
    seen: usize,
    /// Whether text and tape are in step with the reading.
    is_sound: bool,
}

impl Draft {
    /// Begins where the document does, with the changes that stand before it.
    pub(crate) fn new(parser: &Parser<'_>, start: usize, before: &[Change]) -> Self {
        let mut text = Vec::new();
        spliced_into(&mut text, parser.raw, 0..start, (before, &parser.long.borrow()));
        let mut builder = Builder::new(parser.policy.limits.depth);
        builder.expect_text_of(parser.raw.len());
        Self {
            builder,
            text,
            upto: start,
            tail: 0,
            own: 0,
            made: before.len(),
            opened: 0,
            seen: start,
            is_sound: true,
        }
    }

    /// As [`Draft::new`], without the text before the document: for a reader of this one only. It
    /// cannot be finished.
    pub(crate) fn apart(parser: &Parser<'_>, start: usize) -> Self {
        let builder = Builder::new(parser.policy.limits.depth);
        Self { upto: start, ..Self::resumed(builder, start) }
    }

    /// Begins where a strict parse was taken back to. Nothing before it is changed.
    pub(crate) fn resumed(builder: Builder, end: usize) -> Self {
        Self {
            builder,
            text: Vec::new(),
            upto: 0,
            tail: 0,
            own: 0,
            made: 0,
            opened: 0,
            seen: end,
            is_sound: true,
        }
    }

    /// A document that is strict as it stands and ends where the builder's root does. `removed`
    /// bytes are taken away before it, by so many changes.
    pub(crate) fn strict(mut builder: Builder, before: &[Change]) -> Option<Self> {
        let growth: isize = before.iter().map(|change| change.growth()).sum();
        builder.shifted(usize::try_from(-growth).ok()?);
        Some(Self::resumed(builder, 0))
    }

    pub(crate) fn is_sound(&self) -> bool {
        self.is_sound
    }

    /// Says whether the reading took back what is in the draft already.
    pub(crate) fn is_ahead_of(&self, reading: &Reading) -> bool {
        reading.floor < self.seen.max(self.upto)
    }

    /// Gives the draft up: what it has is not what the reading says.
    pub(crate) fn drop(&mut self) {
        self.is_sound = false;
    }

    /// Takes over what steps have read since. `between` has the changes on the trail from the
    /// first place to the second.
    pub(crate) fn catch_up(
        &mut self,
        parser: &Parser<'_>,
        reading: &mut Reading,
        between: impl FnOnce(u32, u32) -> Option<Vec<Change>>,
    ) {
        if !self.is_sound {
            return;
        }
        self.is_sound = self.take_over(parser, reading, between).is_some();
    }

    fn take_over(
        &mut self,
        parser: &Parser<'_>,
        reading: &mut Reading,
        between: impl FnOnce(u32, u32) -> Option<Vec<Change>>,
    ) -> Option<()> {
        let floor = std::mem::replace(&mut reading.floor, usize::MAX);
        if floor < self.seen.max(self.upto) {
            return None;
        }
        // In a string that began here: what is changed in it is taken over at its end.
        let is_open = reading.string.is_some() && edge_of(reading) <= self.upto;
        if is_open && floor == usize::MAX && !parser.is_part() {
            return Some(());
        }
        let trailed =
            if reading.tail == self.tail { Vec::new() } else { between(self.tail, reading.tail)? };
        let on_trail = trailed.len();
        let mut joined = trailed;
        let list: &[Change] = if joined.is_empty() {
            &reading.changes
        } else {
            joined.extend_from_slice(&reading.changes);
            &joined
        };
        let pending = list.get(self.own..)?;
        let is_inside = reading.string.is_some() && self.upto > reading.value_start;
        let edge = edge_of(reading).max(self.upto);
        let count = pending.iter().take_while(|change| is_before(change, edge, reading)).count();
        let (now, later) = pending.split_at_checked(count)?;
        self.splice(parser, edge, now)?;
        self.own += count;
        if self.own >= on_trail && reading.tail != self.tail {
            self.own -= on_trail;
            self.tail = reading.tail;
        }
        let growth: isize = later.iter().map(|change| change.growth()).sum();
        reading.shift = self.text.len().cast_signed() - self.upto.cast_signed() + growth;
        if !is_inside {
            self.opened = self.text.len();
            self.parse()?;
        }
        self.seen = self.seen.max(self.upto);
        Some(())
    }

    /// Takes what was read of the string that the reading is in, to be shown until it ends.
    pub(crate) fn show_open(&mut self, parser: &Parser<'_>, reading: &Reading) {
        let is_value = !matches!(reading.expect, Expect::Member | Expect::Key);
        if !self.is_sound || reading.string.is_none() || !is_value || reading.tail != self.tail {
            return;
        }
        let edge = parser.raw.floor_char_boundary(reading.at);
        let pending = reading.changes.get(self.own..).unwrap_or_default();
        let count = pending.iter().take_while(|change| change.end() <= edge).count();
        let now = pending.get(..count).unwrap_or_default();
        if edge > self.upto {
            self.is_sound = self.splice(parser, edge, now).is_some();
            self.own += count;
        }
        if self.text.len() > self.opened {
            self.builder.show_open(self.opened + 1, self.text.len());
        }
    }

    /// Takes the string back that was shown although it is open.
    pub(crate) fn hide_open(&mut self) {
        self.builder.hide_open();
    }

    /// The mended text so far.
    pub(crate) fn text(&self) -> &[u8] {
        &self.text
    }

    /// The tape so far.
    pub(crate) fn words(&self) -> &[Word] {
        self.builder.words()
    }

    /// Makes the text as far as this raw offset.
    fn splice(&mut self, parser: &Parser<'_>, edge: usize, changes: &[Change]) -> Option<()> {
        let mut end = self.upto;
        for change in changes {
            if change.start() < end {
                return None;
            }
            end = change.end();
        }
        let part = self.upto..edge.max(end);
        self.upto = part.end;
        self.made += changes.len();
        spliced_into(&mut self.text, parser.raw, part, (changes, &parser.long.borrow()));
        Some(())
    }

    /// Parses the text behind the last word.
    fn parse(&mut self) -> Option<()> {
        let step = self.builder.run(&self.text, Reach::Whole);
        let is_whole = matches!(step, Step::Done | Step::More) && self.builder.is_between();
        is_whole.then_some(())
    }

    /// The text and tape of the whole document, if `changes` begin with those that were made.
    pub(crate) fn finish(
        mut self,
        parser: &Parser<'_>,
        changes: &[Change],
    ) -> Option<(String, Builder)> {
        if !self.is_sound {
            return None;
        }
        let rest = changes.get(self.made..)?;
        if changes.get(..self.made)?.last().is_some_and(|change| change.end() > self.upto) {
            return None;
        }
        self.splice(parser, parser.raw.len(), rest)?;
        if self.builder.run(&self.text, Reach::Whole) != Step::Done {
            return None;
        }
        Some((String::from_utf8(self.text).ok()?, self.builder))
    }
}

/// The words of skimmed tokens.
impl Draft {
    /// A string opens at this raw offset.
    #[inline]
    pub(crate) fn opens(&mut self, reading: &Reading) {
        self.opened = reading.mended(reading.at);
    }

    /// The string that was opened ends before the mark at the reading.
    #[inline]
    pub(crate) fn string(&mut self, reading: &Reading, escaped: bool) {
        let tag = if escaped { Tag::Escaped } else { Tag::Plain };
        let word = Word::scalar(tag, self.opened + 1, reading.mended(reading.at));
        self.seen = reading.at + 1;
        self.builder.put(word, reading.mended(reading.at) + 1);
    }

    /// A string without an escape, from the quote at the reading to the one at `end`.
    #[inline]
    pub(crate) fn plain(&mut self, reading: &Reading, end: usize) {
        let (start, end) = (reading.mended(reading.at) + 1, reading.mended(end));
        self.seen = reading.at + (end + 2 - start);
        self.builder.put(Word::scalar(Tag::Plain, start, end), end + 1);
    }

    /// A key: its text in the raw text, and where it begins in the mended one.
    #[inline]
    pub(crate) fn key(&mut self, bytes: &[u8], raw: Range<usize>, start: usize) {
        self.seen = raw.end;
        let end = start + raw.len();
        self.builder.put_key(bytes.get(raw).unwrap_or_default(), start, end);
    }

    /// A number or literal at the reading; `length` is the strict one's.
    #[inline]
    pub(crate) fn scalar(&mut self, reading: &Reading, tag: Tag, length: usize) {
        let start = reading.mended(reading.at);
        self.seen = reading.at + length;
        self.builder.put(Word::scalar(tag, start, start + length), start + length);
    }

    /// A container opens at the reading.
    #[inline]
    pub(crate) fn open(&mut self, reading: &Reading, tag: Tag) {
        self.seen = reading.at + 1;
        self.is_sound &= self.builder.put_open(tag, reading.mended(reading.at)).is_ok();
    }

    /// The innermost container closes at the reading.
    #[inline]
    pub(crate) fn close(&mut self, reading: &Reading) {
        self.seen = reading.at + 1;
        self.is_sound &= self.builder.put_close(reading.mended(reading.at)).is_ok();
    }
}

/// The raw offset up to which nothing will change any more: behind the last whole token.
fn edge_of(reading: &Reading) -> usize {
    match (reading.string, reading.expect) {
        (Some(_), _) => reading.value_start,
        (None, Expect::Next | Expect::Key | Expect::Again | Expect::Done) => reading.value_end,
        (None, Expect::Root | Expect::Element | Expect::Member | Expect::Value | Expect::Colon) => {
            reading.at
        }
    }
}

/// Says whether a change belongs to the text before `edge`.
fn is_before(change: &Change, edge: usize, reading: &Reading) -> bool {
    let is_opening =
        reading.string.is_some() && change.start() == edge && change.kind.opens_string();
    change.end() <= edge && !is_opening
}
