//! The tape: a parsed document as a flat list of offsets, without a borrow of the text.
//!
//! ```text
//!   text   {"id": 12345678901234567890123, "tags": ["a"]}
//!   tape   [{ 2 members, ends at 6] ["id"] [1234…] ["tags"] [[ 1 item, ends at 6] ["a"]
//! ```
//!
//! One word of 64 bits for each scalar, key and container; numbers and strings are spans of the
//! text, so a number keeps every digit it was written with.

pub(crate) mod build;
mod keys;
mod node;
mod rewind;
#[cfg(feature = "serde_json")]
mod value;
mod word;

pub use node::{Items, Kind as ValueKind, Members, Node};
pub(crate) use rewind::Rewound;
pub(crate) use word::{Tag, Word};

/// A parsed document as offsets into its text. Keep the text beside it and look at both through
/// [`Tape::view`].
#[derive(Clone, Debug, Default)]
pub struct Tape {
    words: Vec<Word>,
}

impl Tape {
    /// The root of the document, read from the text that the tape was made from. With another text
    /// the view is nonsense, but never a panic. `None` when nothing has been parsed yet.
    pub fn view<'t>(&'t self, text: &'t str) -> Option<Node<'t>> {
        Node::root(&self.words, text)
    }

    /// How many words the tape has: one for each key, scalar and container.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Says whether nothing has been parsed.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The first words of a tape; containers that reach beyond them are open.
    pub(crate) fn of(words: &[Word]) -> Self {
        let close = |word: &Word| {
            let is_beyond = word.is_container() && word.wide() > words.len();
            if is_beyond { Word::container(word.tag(), 0, 0) } else { *word }
        };
        Self { words: words.iter().map(close).collect() }
    }

    pub(crate) fn words(&self) -> &[Word] {
        &self.words
    }
}
