//! Takes a strict parse back to before its last values, so that a tolerant one can go on there.

use super::build::{Builder, Expect, Frame};
use super::keys::Escaped;
use super::word::Tag;

/// A container that is open where a parse was taken back to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    /// Index of its word.
    pub(crate) word: usize,
    /// Where it starts in the text.
    pub(crate) start: usize,
    /// Elements or members that are whole.
    pub(crate) items: u32,
    pub(crate) is_object: bool,
}

/// Where a parse was taken back to: between two values of one container.
#[derive(Debug)]
pub(crate) struct Rewound {
    /// Open containers, outermost first; at least one.
    pub(crate) open: Vec<Opened>,
    /// The separator or opener before the next value or key.
    pub(crate) mark: usize,
    /// Behind the last token before the mark, or behind the mark if it is an opener.
    pub(crate) end: usize,
}

impl Builder {
    /// Goes back to before the second last scalar, with its key. `None` if there is no way back;
    /// then the parse is left as it is.
    pub(crate) fn rewind(&mut self, bytes: &[u8]) -> Option<Rewound> {
        let last = self.recent[0] as usize;
        let mut open = self.open_at(last, bytes)?;
        let is_member = open.last()?.is_object;
        let words = last - usize::from(is_member);
        self.count_items(&mut open, words);
        let next = *self.words.get(words)?;
        let is_string = matches!(next.tag(), Tag::Plain | Tag::Escaped);
        let start = next.span().0 - usize::from(is_string);
        let mark = before(bytes, start)?;
        let end = match bytes.get(mark)? {
            b',' => before(bytes, mark)? + 1,
            b'{' | b'[' => mark + 1,
            _ => return None,
        };
        self.cut_back(words, &open, bytes);
        self.at = end;
        self.expect = match (bytes.get(mark)?, open.last()?.is_object) {
            (b',', _) => Expect::Next,
            (_, true) => Expect::Member,
            (_, false) => Expect::Element,
        };
        Some(Rewound { open, mark, end })
    }

    /// The containers that are open before the word at `words`.
    fn open_at(&self, words: usize, bytes: &[u8]) -> Option<Vec<Opened>> {
        let mut open = Vec::new();
        let mut here = 0;
        while here < words {
            let word = self.words.get(here)?;
            if !word.is_container() {
                here += 1;
                continue;
            }
            if word.wide() != 0 && word.wide() <= words {
                here = word.wide();
                continue;
            }
            let is_object = word.tag() == Tag::Object;
            let start = self.start_of(here, bytes)?;
            open.push(Opened { word: here, start, items: 0, is_object });
            here += 1;
        }
        (!open.is_empty()).then_some(open)
    }

    fn count_items(&self, open: &mut [Opened], words: usize) {
        let mut end = words;
        for container in open.iter_mut().rev() {
            container.items = self.items_in(container.word + 1, end, container.is_object);
            // A member that is open: its key does not count.
            end = container.word;
        }
    }

    /// Whole values of a container from one word up to another.
    fn items_in(&self, mut here: usize, end: usize, is_object: bool) -> u32 {
        let mut items = 0;
        while here + usize::from(is_object) < end {
            let value = here + usize::from(is_object);
            here = match self.words.get(value) {
                Some(word) if word.is_container() && word.wide() != 0 => word.wide(),
                _ => value + 1,
            };
            items += 1;
        }
        items
    }

    /// Where the container at this index starts: it has no offset, but what is in it has.
    fn start_of(&self, at: usize, bytes: &[u8]) -> Option<usize> {
        let inside = self.words.get(at + 1..)?;
        let depth = inside.iter().position(|word| !word.is_container())?;
        let first = inside.get(depth)?;
        let is_string = matches!(first.tag(), Tag::Plain | Tag::Escaped);
        let mut start = first.span().0 - usize::from(is_string);
        for _ in 0..=depth {
            start = before(bytes, start)?;
            if !matches!(bytes.get(start)?, b'{' | b'[') {
                return None;
            }
        }
        Some(start)
    }

    #[expect(clippy::cast_possible_truncation, reason = "a tape has fewer than 2^28 words")]
    fn cut_back(&mut self, words: usize, open: &[Opened], bytes: &[u8]) {
        self.words.truncate(words);
        self.frames.clear();
        self.keys.forget_from(words);
        for (place, container) in open.iter().enumerate() {
            let keys = self.keys.len() as u32;
            if let Some(word) = self.words.get_mut(container.word) {
                *word = super::Word::container(word.tag(), 0, 0);
            }
            if container.is_object {
                let end = open.get(place + 1).map_or(words, |inner| inner.word);
                self.take_keys(container.word + 1, end, bytes);
            }
            self.frames.push(Frame {
                open: container.word as u32,
                items: container.items,
                keys,
                is_object: container.is_object,
                start: container.start as u32,
            });
        }
        self.string = None;
        self.is_open = false;
        self.letters = 0;
        self.recent = [0; 2];
    }

    /// Puts the keys from one word up to another on their list once more.
    fn take_keys(&mut self, mut here: usize, end: usize, bytes: &[u8]) {
        while here < end {
            let Some(word) = self.words.get(here) else { return };
            let (start, stop) = word.span();
            let escaped = if word.tag() == Tag::Escaped { Escaped::Yes } else { Escaped::No };
            self.keys.push(bytes.get(start..stop).unwrap_or_default(), escaped, here);
            here = match self.words.get(here + 1) {
                Some(word) if word.is_container() && word.wide() != 0 => word.wide(),
                _ => here + 2,
            };
        }
    }
}

/// The last byte before an offset that is no white space.
fn before(bytes: &[u8], at: usize) -> Option<usize> {
    bytes.get(..at)?.iter().rposition(|byte| !matches!(byte, b' ' | b'\n' | b'\r' | b'\t'))
}
