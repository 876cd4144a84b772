//! Parses strict JSON onto the tape: explicit stack, one pass, resumable at any byte.
//!
//! It accepts exactly RFC 8259 and stops at the first byte that is not. What to make of such a
//! byte is decided elsewhere.

use super::Tape;
use super::keys::{Escaped, Keys, Twice};
use super::word::{MAX_TEXT, Tag, Word};
use crate::lex::escape::{self, Escape};
use crate::lex::{number, plain, space};

/// Words there is room for at first.
const FIRST_WORDS: usize = 1 << 12;

/// Whether the text given is all there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    Whole,
    /// More may follow.
    Part,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// The root and everything behind it was read.
    Done,
    /// The text ended inside the document.
    More,
    /// The byte at this offset fits no rule of JSON.
    Broken(usize),
    /// A container was opened that is nested deeper than the limit.
    TooDeep(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    Value,
    /// A first element, or the end of the array.
    Element,
    /// A first key, or the end of the object.
    Member,
    Key,
    Colon,
    /// A comma or a closer.
    Next,
    End,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    /// Index of the container's word.
    pub(super) open: u32,
    pub(super) items: u32,
    /// Where its keys begin on the list of keys; unused for arrays.
    pub(super) keys: u32,
    pub(super) is_object: bool,
    /// Where it starts in the text.
    pub(super) start: u32,
}

/// A document under construction.
#[derive(Clone, Debug)]
pub(crate) struct Builder {
    pub(super) words: Vec<Word>,
    pub(super) frames: Vec<Frame>,
    pub(super) keys: Keys,
    pub(super) expect: Expect,
    pub(super) at: usize,
    /// In a string: where its inside begins, how far it was read, and whether it has an escape.
    pub(super) string: Option<(usize, usize, Escaped)>,
    /// How far the letters of a number that may go on were read.
    pub(super) letters: usize,
    /// Length of the whole text, as far as known.
    likely: usize,
    depth: usize,
    root_end: usize,
    /// The last two values that are scalars, by their index on the tape.
    pub(super) recent: [u32; 2],
    /// Whether the last word is a string that was not read to its end.
    pub(super) is_open: bool,
}

impl Builder {
    /// Containers may be nested `depth` levels deep.
    pub(crate) fn new(depth: usize) -> Self {
        Self {
            words: Vec::new(),
            frames: Vec::new(),
            keys: Keys::default(),
            expect: Expect::Value,
            at: 0,
            string: None,
            letters: 0,
            likely: 0,
            depth,
            root_end: 0,
            recent: [0; 2],
            is_open: false,
        }
    }

    /// Says how long the whole text is likely to be.
    pub(crate) fn expect_text_of(&mut self, bytes: usize) {
        self.likely = bytes;
    }

    #[inline]
    fn push(&mut self, word: Word) {
        if self.words.len() == self.words.capacity() {
            self.make_room();
        }
        self.words.push(word);
    }

    /// A text that breaks at once costs no memory. A long one gets as much as its first part shows
    /// that it will need; room that is not used is never touched.
    #[cold]
    fn make_room(&mut self) {
        let made = self.words.len();
        if made < FIRST_WORDS {
            self.words.reserve((self.likely / 8 + 8).min(FIRST_WORDS));
            return;
        }
        let read = self.at.max(1);
        let rest = self.likely.saturating_sub(read);
        self.words.reserve_exact(((made * rest / read).min(rest) * 9 / 8).max(made / 2));
    }

    /// Starts at this offset instead of 0.
    pub(crate) fn skip_to(&mut self, at: usize) {
        self.at = at;
    }

    /// Where a container at the root starts that turned out not to be strict.
    pub(crate) fn root_start(&self) -> Option<usize> {
        self.frames.first().map(|frame| frame.start as usize)
    }

    /// Where the root ends, once it is whole.
    pub(crate) fn root_end(&self) -> Option<usize> {
        (self.expect == Expect::End).then_some(self.root_end)
    }

    /// How many words nothing that follows can change: all before the last two scalars. Those may
    /// be read otherwise if what follows them turns out to be damaged.
    pub(crate) fn sure(&self) -> usize {
        self.recent[0] as usize
    }

    /// Says whether no container was opened yet.
    pub(crate) fn is_at_root(&self) -> bool {
        self.frames.is_empty()
    }

    pub(crate) fn words(&self) -> &[Word] {
        &self.words
    }

    /// Every key that stands twice in its object; `text` is what was read.
    pub(crate) fn twice(&self, text: &str) -> Vec<Twice> {
        self.keys.twice(&self.words, text)
    }

    /// Says whether an open string is a key.
    pub(crate) fn wants_key(&self) -> bool {
        matches!(self.expect, Expect::Key | Expect::Member)
    }

    pub(crate) fn into_tape(self) -> Tape {
        Tape { words: self.words }
    }

    /// Takes a document that was read to its end as the same in a text that has so many bytes less
    /// before it.
    pub(crate) fn shifted(&mut self, less: usize) {
        for word in &mut self.words {
            *word = word.shifted(less);
        }
        self.at = self.root_end - less;
        self.root_end = self.at;
    }

    /// Says whether it stands between two tokens.
    pub(crate) fn is_between(&self) -> bool {
        !self.is_open && self.string.is_none()
    }

    /// Shows a string that is read elsewhere as far as it goes.
    pub(crate) fn show_open(&mut self, start: usize, end: usize) {
        self.words.push(Word::scalar(Tag::Escaped, start, end));
        self.is_open = true;
    }

    /// Takes back a string that was not read to its end.
    pub(crate) fn hide_open(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.words.pop();
        }
    }

    /// A scalar that was read elsewhere; the text goes on at `at`.
    #[inline]
    pub(crate) fn put(&mut self, word: Word, at: usize) {
        self.at = at;
        self.push_value(word);
    }

    /// A key that was read elsewhere and has no escape: its inside, and the span of that.
    #[inline]
    pub(crate) fn put_key(&mut self, inside: &[u8], start: usize, end: usize) {
        self.keys.push(inside, Escaped::No, self.words.len());
        self.push(Word::scalar(Tag::Plain, start, end));
        self.expect = Expect::Colon;
        self.at = end + 1;
    }

    /// A container that was opened elsewhere at `at`.
    #[inline]
    pub(crate) fn put_open(&mut self, tag: Tag, at: usize) -> Result<(), Step> {
        self.at = at;
        self.open(tag)
    }

    /// The innermost container was closed elsewhere at `at`.
    #[inline]
    pub(crate) fn put_close(&mut self, at: usize) -> Result<(), Step> {
        self.at = at;
        match self.frames.last() {
            Some(frame) if frame.is_object => self.close_object(),
            _ => self.close_array(),
        }
    }

    /// Reads on. `bytes` is the document from its beginning, in UTF-8; it may only grow between two
    /// runs.
    pub(crate) fn run(&mut self, bytes: &[u8], reach: Reach) -> Step {
        if bytes.len() > MAX_TEXT {
            return Step::Broken(MAX_TEXT);
        }
        self.likely = self.likely.max(bytes.len());
        self.hide_open();
        if let Some((start, scanned, escaped)) = self.string
            && let Err(step) = self.string(bytes, start, scanned, escaped)
        {
            return step;
        }
        match self.tokens(bytes, reach) {
            Err(step) => step,
            Ok(()) if self.expect == Expect::End => Step::Done,
            Ok(()) => Step::More,
        }
    }

    fn tokens(&mut self, bytes: &[u8], reach: Reach) -> Result<(), Step> {
        loop {
            self.at = space::skip(bytes, self.at);
            let Some(byte) = bytes.get(self.at) else { return Ok(()) };
            match (self.expect, byte) {
                (Expect::Key | Expect::Member, b'"') => {
                    self.key(bytes)?;
                    if bytes.get(self.at) == Some(&b':') {
                        self.at += 1;
                        self.expect = Expect::Value;
                    }
                }
                (Expect::Colon, b':') => {
                    self.at += 1;
                    self.expect = Expect::Value;
                }
                (Expect::Next, b',') => self.comma()?,
                (Expect::Next | Expect::Member, b'}') => self.close_object()?,
                (Expect::Next | Expect::Element, b']') => self.close_array()?,
                (Expect::Value | Expect::Element, _) => self.value(bytes, *byte, reach)?,
                _ => return Err(Step::Broken(self.at)),
            }
        }
    }

    #[inline]
    fn comma(&mut self) -> Result<(), Step> {
        let Some(frame) = self.frames.last() else { return Err(Step::Broken(self.at)) };
        self.expect = if frame.is_object { Expect::Key } else { Expect::Value };
        self.at += 1;
        Ok(())
    }

    #[inline]
    fn value(&mut self, bytes: &[u8], byte: u8, reach: Reach) -> Result<(), Step> {
        match byte {
            b'"' => self.text(bytes),
            b'-' | b'0'..=b'9' => self.number(bytes, reach),
            b'{' => self.open(Tag::Object),
            b'[' => self.open(Tag::Array),
            b't' => self.literal(bytes, b"true", Tag::True),
            b'f' => self.literal(bytes, b"false", Tag::False),
            b'n' => self.literal(bytes, b"null", Tag::Null),
            _ => Err(Step::Broken(self.at)),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "a tape has fewer than 2^28 words")]
    fn open(&mut self, tag: Tag) -> Result<(), Step> {
        if self.frames.len() >= self.depth {
            return Err(Step::TooDeep(self.at));
        }
        let is_object = tag == Tag::Object;
        self.frames.push(Frame {
            open: self.words.len() as u32,
            items: 0,
            keys: self.keys.len() as u32,
            is_object,
            start: self.at as u32,
        });
        self.push(Word::container(tag, 0, 0));
        self.at += 1;
        self.expect = if is_object { Expect::Member } else { Expect::Element };
        Ok(())
    }

    fn close_object(&mut self) -> Result<(), Step> {
        let Some(frame) = self.frames.pop_if(|frame| frame.is_object) else {
            return Err(Step::Broken(self.at));
        };
        self.keys.close(frame.keys as usize);
        self.close(frame, Tag::Object);
        Ok(())
    }

    fn close_array(&mut self) -> Result<(), Step> {
        let Some(frame) = self.frames.pop_if(|frame| !frame.is_object) else {
            return Err(Step::Broken(self.at));
        };
        self.close(frame, Tag::Array);
        Ok(())
    }

    #[inline]
    fn close(&mut self, frame: Frame, tag: Tag) {
        let end = self.words.len();
        if let Some(word) = self.words.get_mut(frame.open as usize) {
            *word = Word::container(tag, frame.items, end);
        }
        self.at += 1;
        self.valued();
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a tape has fewer than 2^28 words")]
    fn push_value(&mut self, word: Word) {
        self.recent = [self.recent[1], self.words.len() as u32];
        self.push(word);
        self.valued();
    }

    /// A value is whole: counts it.
    #[inline]
    fn valued(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.items += 1;
            self.expect = Expect::Next;
            return;
        }
        self.root_end = self.at;
        self.expect = Expect::End;
    }

    /// A key: most have no escape and end in this text.
    #[inline]
    fn key(&mut self, bytes: &[u8]) -> Result<(), Step> {
        let start = self.at + 1;
        let end = plain::stop_after(bytes, start);
        match (bytes.get(end), bytes.get(start..end)) {
            (Some(b'"'), Some(inside)) => {
                self.put_key(inside, start, end);
                Ok(())
            }
            _ => self.string(bytes, start, end, Escaped::No),
        }
    }

    /// A string that is a value, likewise.
    #[inline]
    fn text(&mut self, bytes: &[u8]) -> Result<(), Step> {
        let start = self.at + 1;
        let end = plain::stop_after(bytes, start);
        if bytes.get(end) == Some(&b'"') {
            self.put(Word::scalar(Tag::Plain, start, end), end + 1);
            return Ok(());
        }
        self.string(bytes, start, end, Escaped::No)
    }

    /// A string that was read up to `scanned`.
    fn string(
        &mut self,
        bytes: &[u8],
        start: usize,
        mut scanned: usize,
        mut escaped: Escaped,
    ) -> Result<(), Step> {
        loop {
            scanned = plain::stop_after(bytes, scanned);
            match bytes.get(scanned) {
                Some(b'"') | None => break,
                Some(b'\\') => match escape::read(bytes, scanned) {
                    Escape::Whole(length) => {
                        scanned += length;
                        escaped = Escaped::Yes;
                    }
                    Escape::Cut => break,
                    Escape::Lone | Escape::Bad => return Err(Step::Broken(scanned)),
                },
                Some(_) => return Err(Step::Broken(scanned)),
            }
        }
        if bytes.get(scanned) != Some(&b'"') {
            self.string = Some((start, scanned, escaped));
            self.at = bytes.len();
            if !self.wants_key() {
                // Shown in snapshots as far as it goes, and taken back at the next run.
                let tag = if escaped == Escaped::Yes { Tag::Escaped } else { Tag::Plain };
                self.push(Word::scalar(tag, start, scanned));
                self.is_open = true;
            }
            return Err(Step::More);
        }
        self.string = None;
        self.at = scanned + 1;
        let tag = if escaped == Escaped::Yes { Tag::Escaped } else { Tag::Plain };
        if self.wants_key() {
            let inside = bytes.get(start..scanned).unwrap_or_default();
            self.keys.push(inside, escaped, self.words.len());
            self.push(Word::scalar(tag, start, scanned));
            self.expect = Expect::Colon;
        } else {
            self.push_value(Word::scalar(tag, start, scanned));
        }
        Ok(())
    }

    #[inline]
    fn number(&mut self, bytes: &[u8], reach: Reach) -> Result<(), Step> {
        if reach == Reach::Part {
            self.letters = number_letters(bytes, self.letters.max(self.at));
            if self.letters == bytes.len() {
                return Err(Step::More);
            }
        }
        let end = number::end(bytes, self.at);
        let Some(end) = end else { return Err(Step::Broken(self.at)) };
        let start = std::mem::replace(&mut self.at, end);
        self.push_value(Word::scalar(Tag::Number, start, end));
        Ok(())
    }

    #[inline]
    fn literal(&mut self, bytes: &[u8], name: &[u8], tag: Tag) -> Result<(), Step> {
        let rest = bytes.get(self.at..).unwrap_or_default();
        if rest.starts_with(name) {
            let start = self.at;
            self.at += name.len();
            self.push_value(Word::scalar(tag, start, self.at));
            return Ok(());
        }
        if name.starts_with(rest) {
            return Err(Step::More);
        }
        Err(Step::Broken(self.at))
    }
}

/// Where the letters that numbers are made of end, from `at` on.
fn number_letters(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    let is_letter = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
    at + rest.iter().take_while(is_letter).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Step {
        Builder::new(128).run(text.as_bytes(), Reach::Whole)
    }

    #[test]
    fn strict_json_is_read_and_the_first_wrong_byte_is_named() {
        for good in ["{}", " [1, -2.5e3 , \"x\\n\", {\"a\": null}] ", "true", "\"\"", "0"] {
            assert_eq!(whole(good), Step::Done, "{good}");
        }
        for (bad, at) in [("[1,]", 3), ("{'a'}", 1), ("[01]", 2), ("1 2", 2), ("[\"a\nb\"]", 3)] {
            assert_eq!(whole(bad), Step::Broken(at), "{bad}");
        }
        for cut in ["", "[1,", "{\"a", "tru", "[\"x\\u00"] {
            assert_eq!(whole(cut), Step::More, "{cut}");
        }
    }

    #[test]
    fn the_same_tape_comes_from_any_pieces() {
        let text = "{\"a\\u00e9\": [1.25, true, \"x\\ud83d\\ude00y\"], \"b\": {\"c\": -0}}";
        let mut whole = Builder::new(128);
        assert_eq!(whole.run(text.as_bytes(), Reach::Whole), Step::Done);
        let mut pieces = Builder::new(128);
        for end in 1..=text.len() {
            pieces.run(&text.as_bytes()[..end], Reach::Part);
        }
        assert_eq!(pieces.run(text.as_bytes(), Reach::Whole), Step::Done);
        assert_eq!(pieces.words, whole.words);
    }

    #[test]
    fn depth_is_limited() {
        let mut builder = Builder::new(3);
        assert_eq!(builder.run(b"[[[[", Reach::Whole), Step::TooDeep(3));
    }

    #[test]
    fn a_key_given_twice_is_noticed_also_when_escaped() {
        for text in ["{\"a\":1,\"b\":2,\"a\":3}", "{\"a\":1,\"\\u0061\":1}"] {
            let mut builder = Builder::new(8);
            assert_eq!(builder.run(text.as_bytes(), Reach::Whole), Step::Done);
            assert_eq!(builder.twice(text).len(), 1, "{text}");
        }
        for length in 0..40 {
            let key = "k".repeat(length);
            let text = format!("{{\"{key}\":1,\"{key}j\":2,\"j{key}\":3,\"{key}\":4}}");
            let mut builder = Builder::new(8);
            assert_eq!(builder.run(text.as_bytes(), Reach::Whole), Step::Done);
            let again = if length == 0 { 2 } else { 1 };
            assert_eq!(builder.twice(&text).len(), again, "{text}");
        }
        let many: Vec<String> = (0..100).map(|key| format!("\"k{key}\":0,")).collect();
        let many = many.concat();
        let text = format!("{{{many}\"k7\":1}}");
        let mut builder = Builder::new(8);
        builder.run(text.as_bytes(), Reach::Whole);
        assert_eq!(builder.twice(&text).len(), 1);
    }
}
