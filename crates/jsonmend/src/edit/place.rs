//! The public form of a change: with line, column, path and the text before and after.

use std::ops::Range;

use super::kind::{Class, Kind};
use super::splice::Change;
use crate::lex::escape;
use crate::tape::{Tag, Tape, Word};

/// One change to the reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What was mended.
    pub kind: Kind,
    /// How far the change can be trusted.
    pub class: Class,
    /// Bytes of the raw reply that were replaced; empty for an insertion.
    pub span: Range<usize>,
    /// Line of the span's start, from 1.
    pub line: usize,
    /// Column of the span's start in characters, from 1.
    pub column: usize,
    /// JSON Pointer to the value the change touches; empty for the root.
    pub path: String,
    /// The bytes that were there.
    pub before: String,
    /// The bytes that are there now.
    pub after: String,
}

/// Makes the report of all changes: one walk over the lines and one over the tape.
pub(crate) fn report(
    raw: &str,
    (changes, long): (&[Change], &[Box<str>]),
    tape: &Tape,
    mended: &str,
) -> Vec<Edit> {
    let mut lines = Lines { raw, at: 0, line: 1, column: 1 };
    let mut paths = Paths::new(tape, mended);
    let mut shift = 0_isize;
    changes
        .iter()
        .map(|change| {
            let (line, column) = lines.place(change.start());
            let now = change.start().saturating_add_signed(shift);
            shift += change.growth();
            Edit {
                kind: change.kind,
                class: change.kind.class(),
                span: change.start()..change.end(),
                line,
                column,
                path: paths.at(now),
                before: raw.get(change.start()..change.end()).unwrap_or_default().to_owned(),
                after: String::from_utf8_lossy(change.after.bytes(long)).into_owned(),
            }
        })
        .collect()
}

/// Line and column of an offset of the raw text, and the path of the value there.
pub(crate) fn whereabouts(
    raw: &str,
    changes: &[Change],
    (tape, mended): (&Tape, &str),
    at: usize,
) -> (usize, usize, String) {
    let (line, column) = line_and_column(raw, at);
    let before = changes.iter().take_while(|change| change.end() <= at);
    let shift: isize = before.map(|change| change.growth()).sum();
    (line, column, Paths::new(tape, mended).at(at.saturating_add_signed(shift)))
}

/// Line and column of an offset, from 1; columns count characters.
pub(crate) fn line_and_column(raw: &str, at: usize) -> (usize, usize) {
    Lines { raw, at: 0, line: 1, column: 1 }.place(at)
}

struct Lines<'r> {
    raw: &'r str,
    at: usize,
    line: usize,
    column: usize,
}

impl Lines<'_> {
    /// Offsets asked for never fall.
    fn place(&mut self, at: usize) -> (usize, usize) {
        for letter in self.raw.get(self.at..at).unwrap_or_default().chars() {
            if letter == '\n' {
                self.line += 1;
                self.column = 0;
            }
            self.column += 1;
        }
        self.at = self.at.max(at);
        (self.line, self.column)
    }
}

/// Follows the tape along rising offsets and names the value at each.
struct Paths<'t> {
    words: &'t [Word],
    text: &'t str,
    next: usize,
    /// Open containers: index behind the last word, whether an object, items so far, current key.
    open: Vec<Level>,
}

struct Level {
    end: usize,
    is_object: bool,
    step: String,
    items: usize,
}

impl<'t> Paths<'t> {
    fn new(tape: &'t Tape, text: &'t str) -> Self {
        Self { words: tape.words(), text, next: 0, open: Vec::new() }
    }

    /// Containers have no offset of their own, so a place counts to the last scalar or key that
    /// starts at or before it.
    fn at(&mut self, offset: usize) -> String {
        while let Some(word) = self.words.get(self.next) {
            if !self.starts_by(offset) {
                break;
            }
            self.enter(*word);
        }
        let mut path = String::new();
        for level in &self.open {
            if !level.step.is_empty() || level.items > 0 {
                path.push('/');
                path.push_str(&level.step);
            }
        }
        path
    }

    /// Says whether the next scalar on the tape starts at or before the offset.
    fn starts_by(&self, offset: usize) -> bool {
        let scalar = self.words.get(self.next..).unwrap_or_default();
        // Containers that open right here belong to their first scalar; a run of empty ones is
        // passed over at once, so the search is bounded by the walk itself.
        scalar
            .iter()
            .take(64)
            .find(|word| !word.is_container())
            .is_some_and(|word| word.span().0 <= offset + 1)
    }

    fn enter(&mut self, word: Word) {
        while self.open.pop_if(|level| level.end <= self.next).is_some() {}
        let mut is_key = false;
        if let Some(level) = self.open.last_mut() {
            is_key = level.is_object && level.items.is_multiple_of(2);
            if is_key {
                let (start, end) = word.span();
                let key = self.text.get(start..end).unwrap_or_default();
                level.step = escape::decode(key).replace('~', "~0").replace('/', "~1");
            } else if !level.is_object {
                level.step = level.items.to_string();
            }
            level.items += 1;
        }
        self.next += 1;
        if !is_key && word.is_container() {
            let is_object = word.tag() == Tag::Object;
            self.open.push(Level { end: word.wide(), is_object, step: String::new(), items: 0 });
        }
    }
}
