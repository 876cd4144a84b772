//! The period of a text's end: exact, or but for a few tokens.

use super::Care;
use super::ring::{Mark, PHRASE, Ring, View};

/// An end that repeats itself without a difference.
///
/// The distance to where the last phrase stood before is the smallest period there can be; it is kept for
/// as long as every token is the one that stands a period before, so that a token costs one comparison.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Exact {
    /// 0: none.
    period: usize,
    /// Tokens in a row that were as expected.
    run: usize,
    /// Tokens of a run at which it is looked at again.
    next: usize,
}

/// Tokens of a run that are counted when it is first seen: more than the ring keeps before it looks phrases
/// up.
const AT_ONCE: usize = 64;

/// A run that is long enough to be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) period: usize,
    /// Tokens of all copies, the first one included.
    pub(super) tokens: usize,
}

impl Exact {
    /// Takes note of the ring's last token, whose phrase stood `before` tokens back. Returns a run that is
    /// to be [judged](Self::wait_for).
    pub(super) fn note(&mut self, ring: &Ring, before: Option<usize>) -> Option<Run> {
        if self.period != 0 && ring.same(View::Exact, 0, self.period) {
            self.run += 1;
        } else {
            *self = Self::default();
            let period = before?;
            let run = (PHRASE..AT_ONCE)
                .find(|back| {
                    back + period >= ring.reach() || !ring.same(View::Exact, *back, period)
                })
                .unwrap_or(AT_ONCE);
            *self = Self { period, run, next: Strictness::Plain.tokens(period) };
        }
        let tokens = self.run + self.period;
        (tokens >= self.next).then_some(Run { period: self.period, tokens })
    }

    /// Does not tell of this run again before it has so many tokens.
    pub(super) fn wait_for(&mut self, tokens: usize) {
        self.next = tokens;
    }
}

/// How much of a repetition it takes, by what is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strictness {
    /// Words.
    Plain,
    /// Words in fenced code, in the rows of a table, in the arguments of a call or without blanks between
    /// them; different numbers in turn.
    Careful,
    /// Signs only, or digits without an end.
    Bare,
    /// One letter.
    Letter,
    /// The same number again and again, or encoded bytes: people ask for that.
    Uniform,
}

impl Strictness {
    /// Tokens of all copies from which on a `period` is a loop.
    ///
    /// Short periods need many copies, since "ha ha ha" is text; four copies of anything long are not.
    pub(super) fn tokens(self, period: usize) -> usize {
        let copies = match period {
            0..=8 => 24,
            9..=64 => 8,
            _ => 4,
        };
        match self {
            Self::Plain => (period * copies).max(128),
            Self::Careful => (period * copies * 2).max(256),
            Self::Bare => (period * copies * 2).max(512),
            // 1024: 6 kB of the same byte, encoded.
            Self::Letter => (period * copies * 2).max(1024),
            // 4096: an array of two thousand zeros is asked for now and then, a longer one is not read.
            Self::Uniform => (period * copies * 2).max(4096),
        }
    }

    /// How strictly the last `period` tokens are to be taken.
    pub(super) fn of(ring: &Ring, period: usize, care: Care) -> Self {
        let mut seen = Seen::default();
        // Once more round, so that a number that the period's start cuts is seen whole.
        for back in (0..period * 2).rev().filter(|back| *back < ring.reach()) {
            let token = ring.back(back);
            seen.note(token.mark(), token.value());
        }
        match () {
            () if seen.words > 0 => {
                // A period with a fence in it is more than code.
                let code = care == Care::Values && seen.fences == 0;
                if code || seen.is_table() { Self::Careful } else { Self::Plain }
            }
            () if seen.codes + seen.sames > 0 && seen.numbers > 0 => Self::Uniform,
            () if seen.codes > 0 => Self::Careful,
            () if seen.sames > 0 => Self::Letter,
            () if seen.numbers > 0 && seen.values_differ => Self::Careful,
            () if seen.numbers > 0 && seen.others > 0 => Self::Uniform,
            () => Self::Bare,
        }
    }
}

/// What a period is made of.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    words: usize,
    codes: usize,
    sames: usize,
    fences: usize,
    numbers: usize,
    /// Neither words nor codes nor digits.
    others: usize,
    pipes: usize,
    lines: usize,
    /// The number under way. 0: none.
    value: u32,
    /// The last number. 0: none.
    last: u32,
    /// The first number may be cut, so the second one is the first to be compared with.
    whole: bool,
    values_differ: bool,
}

impl Seen {
    fn note(&mut self, mark: Mark, hash: u32) {
        match mark {
            Mark::Number | Mark::Digits => {
                self.numbers += 1;
                if mark == Mark::Number {
                    self.end_number();
                    self.others += 1;
                }
                self.value = self.value.rotate_left(5) ^ hash | 1;
                return;
            }
            Mark::Dot if self.value != 0 => {
                self.others += 1;
                self.value = self.value.rotate_left(5) ^ hash | 1;
                return;
            }
            Mark::Word => self.words += 1,
            Mark::Code => self.codes += 1,
            Mark::Same => self.sames += 1,
            Mark::Fence => self.fences += 1,
            Mark::Pipe => self.pipes += 1,
            Mark::Line => self.lines += 1,
            Mark::Item | Mark::Blank | Mark::Sign | Mark::Dot => {}
        }
        self.others += 1;
        self.end_number();
    }

    fn end_number(&mut self) {
        if self.value == 0 {
            return;
        }
        if self.whole {
            self.values_differ |= self.last != 0 && self.last != self.value;
            self.last = self.value;
        }
        self.whole = true;
        self.value = 0;
    }

    fn is_table(&self) -> bool {
        self.lines > 0 && self.pipes >= 2 * self.lines
    }
}

/// An end that repeats itself but for a few tokens, or for its numbers.
///
/// Every token that is as expected counts one, every place that is not takes some away; a period that
/// changes by little, since a token was added or left out, goes on.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Near {
    period: usize,
    score: u32,
    /// Tokens since the last one that was as expected.
    missed: u32,
}

/// What a place that is not as expected takes away: at more than one place in seven it does not grow.
const MISS: u32 = 6;
/// Further tokens of the same place are forgiven, for as long as a new phrase takes to be known.
const FORGIVEN: u32 = 8;
/// Tokens that are not as expected before a quite different period is followed.
const PATIENCE: u32 = 4;
/// How far a period may change.
const DRIFT: usize = 4;
/// The score is told from here on; of long periods only after two copies.
const TOLD: u32 = 256;
/// It grows no further: what was long ago must not outweigh a text that goes on well.
const TOP: u32 = 4096;

impl Near {
    /// Takes note of the ring's last token, whose phrase stood `before` tokens back with numbers alike.
    pub(super) fn note(&mut self, ring: &Ring, before: Option<usize>) {
        if self.period != 0 && ring.same(View::Masked, 0, self.period) {
            self.score = (self.score + 1).min(TOP);
            self.missed = 0;
            return;
        }
        self.missed += 1;
        if self.missed == 1 {
            self.score = self.score.saturating_sub(MISS);
        } else if self.missed > FORGIVEN {
            self.score = self.score.saturating_sub(1);
        }
        let Some(before) = before else { return };
        if before.abs_diff(self.period) > DRIFT {
            // One changed word does not end a period: the next one may be as expected again.
            if self.missed < PATIENCE && self.score > 0 {
                return;
            }
            self.score = 0;
        }
        self.period = before;
        self.missed = 0;
    }

    /// The period and the score, where it is high enough to be told.
    pub(super) fn told(&self) -> Option<(usize, u32)> {
        let asked = TOLD.max(u32::try_from(self.period * 2).unwrap_or(TOP));
        (self.score >= asked.min(TOP)).then_some((self.period, self.score))
    }
}
