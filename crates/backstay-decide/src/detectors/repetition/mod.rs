//! Finds out that a text only repeats itself.
//!
//! Every token costs the same, however long the text is. One exact test is certain; what is found by
//! likeness is told, and proves nothing: code, tables and lists are alike too.
//!
//! | repeated | tokens at least | copies of a period of up to 8, up to 64, more tokens |
//! |---|---|---|
//! | words | 128 | 24, 8, 4 |
//! | words in fenced code, in JSON or markup, in tables, in a call's arguments, or without blanks; different numbers in turn | 256 | 48, 16, 8 |
//! | signs only, or digits without an end | 512 | 48, 16, 8 |
//! | the same letter | 1,024 | 48, 16, 8 |
//! | the same number, or encoded bytes | 4,096 | 48, 16, 8 |
//! | blanks and line ends only | 512 | |

mod glance;
mod period;
mod phrases;
mod ring;
mod rounds;

pub(super) use glance::may_repeat;
use period::{Exact, Near, Strictness};
use phrases::Phrases;
use ring::{Kept, Mark, Ring, View};

use super::entropy::Unigrams;
use super::signal::{Finding, Level};
use super::split::{Sort, Splitter, Token};

/// Blank tokens in a row that are a loop.
const BLANKS: u32 = 512;

/// How words are taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Care {
    /// As prose.
    #[default]
    Prose,
    /// As code or values: they are alike by nature.
    Values,
}

/// One channel's text, as far as its repetition matters.
#[derive(Clone, Debug, Default)]
pub(super) struct Repetition {
    splitter: Splitter,
    watch: Watch,
}

/// What is known of the tokens.
#[derive(Clone, Debug, Default)]
struct Watch {
    care: Care,
    ring: Ring,
    exact: Exact,
    near: Near,
    phrases: Phrases,
    unigrams: Unigrams,
    /// Whether a code fence is open.
    fenced: bool,
    /// Blank tokens in a row.
    blanks: u32,
    /// Tokens of the period of the loop that was found. 0: none yet.
    period: usize,
}

impl Repetition {
    pub(super) fn new(care: Care) -> Self {
        Self { splitter: Splitter::default(), watch: Watch { care, ..Watch::default() } }
    }

    /// Takes `piece`, and gives what is found at each token to `sink`, again and again while it lasts.
    pub(super) fn feed(&mut self, piece: &str, mut sink: impl FnMut(Finding, Level)) {
        let watch = &mut self.watch;
        self.splitter.feed(piece, |token| watch.note(token, &mut sink));
    }

    /// The last token, now that no more text comes.
    pub(super) fn finish(&mut self, mut sink: impl FnMut(Finding, Level)) {
        if let Some(token) = self.splitter.finish() {
            self.watch.note(token, &mut sink);
        }
    }

    /// How sure the model is of this text is known from itself: its entropy is not counted any more.
    pub(super) fn leave_entropy(&mut self) {
        self.watch.unigrams.outdo();
    }

    /// Tokens so far.
    pub(super) fn tokens(&self) -> usize {
        self.watch.ring.count()
    }

    /// Bytes on the heap.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.watch.ring.memory() + self.watch.unigrams.memory()
    }

    /// Whether `texts` hold what is repeated here at least three times, in any of its rotations.
    pub(super) fn is_asked_by<'a>(&self, texts: impl IntoIterator<Item = &'a str>) -> bool {
        let period = self.watch.period;
        period != 0 && self.watch.ring.stands_in(period, texts)
    }
}

impl Watch {
    fn note(&mut self, token: Token, sink: &mut impl FnMut(Finding, Level)) {
        let kept = Kept::from(token);
        if self.begins_values(token) {
            self.care = Care::Values;
        }
        self.ring.push(kept);
        let count = self.ring.count();
        self.fenced ^= kept.mark() == Mark::Fence;
        self.note_blank(token, sink);
        let before = self.ring.look_up(View::Exact);
        if let Some(finding) = self.exact_loop(before) {
            sink(finding, Level::Hard);
        }
        let masked = self.ring.look_up(View::Masked);
        self.near.note(&self.ring, masked);
        if let Some((period, score)) = self.near.told() {
            sink(Finding::NearLoop { period: narrow(period), score }, Level::Soft);
        }
        if let Some(share) = self.phrases.note(&self.ring, before) {
            sink(Finding::Phrases { share }, Level::Soft);
        }
        if let Some(finding) = self.unigrams.note(count, |back| self.ring.back(back).hash()) {
            sink(finding, Level::Soft);
        }
    }

    /// Whether `token` is the text's first one, and opens JSON or markup.
    fn begins_values(&self, token: Token) -> bool {
        let first = self.ring.count() == self.blanks as usize;
        first && matches!(token.first, b'{' | b'[' | b'<')
    }

    fn note_blank(&mut self, token: Token, sink: &mut impl FnMut(Finding, Level)) {
        if !matches!(token.sort, Sort::Blank | Sort::Line) {
            self.blanks = 0;
            return;
        }
        self.blanks = self.blanks.saturating_add(1);
        if self.blanks == BLANKS {
            sink(Finding::Blank { tokens: BLANKS }, Level::Hard);
        }
    }

    fn exact_loop(&mut self, before: Option<usize>) -> Option<Finding> {
        let run = self.exact.note(&self.ring, before)?;
        let care = if self.fenced { Care::Values } else { self.care };
        let asked = Strictness::of(&self.ring, run.period, care).tokens(run.period);
        // Looked at again only when it is twice as long, so that looking stays cheap.
        self.exact.wait_for(if run.tokens < asked { asked } else { run.tokens * 2 });
        if run.tokens < asked {
            return None;
        }
        self.period = run.period;
        let copies = narrow(run.tokens / run.period);
        Some(Finding::Loop { period: narrow(run.period), copies, tokens: narrow(run.tokens) })
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens of the loops that are told of `text`, in turn.
    fn loops(text: &str) -> Vec<u32> {
        let (mut repetition, mut loops) = (Repetition::new(Care::Prose), Vec::new());
        repetition.feed(text, |finding, level| {
            if let Finding::Loop { tokens, .. } = finding {
                assert_eq!(level, Level::Hard);
                loops.push(tokens);
            }
        });
        loops
    }

    #[test]
    fn a_loop_is_told_when_it_is_long_enough_and_whenever_it_is_twice_as_long() {
        assert_eq!(loops(&"one two three four five. ".repeat(120)), [144, 288, 576]);
        // A period of 100 is looked at from 400 tokens on, and told at the 4,096 that its zeros ask for.
        let zeros = format!("[{}],\n", ["0"; 49].join(","));
        assert_eq!(loops(&zeros.repeat(90)), [4096, 8192]);
    }

    #[test]
    fn what_begins_with_a_bracket_is_taken_as_values_to_its_end() {
        let words = "one two three four five. ".repeat(120);
        for before in ["{", "[\"", "<p>", "  \n{"] {
            assert_eq!(loops(&format!("{before}{words}")), [288, 576], "{before:?}");
        }
        for before in ["", "(", "Here: {", "\n\n"] {
            assert_eq!(loops(&format!("{before}{words}")), [144, 288, 576], "{before:?}");
        }
    }
}
