//! The last tokens of a text, and where a phrase of six stood last.
//!
//! Memory grows with the text: none for the first tokens, then 256 tokens, doubled up to 4,096.

use super::super::split::{Sort, Token};

/// Tokens of a phrase that is looked up. Six stand together again by chance in few texts.
pub(super) const PHRASE: usize = 6;
/// The most tokens after which a text may repeat itself and be found.
pub(super) const LONGEST: usize = 2048;
/// Tokens that are kept at most: a text is compared with what stands up to [`LONGEST`] before, and
/// a phrase there must be whole.
const MOST: usize = 4096;
/// Tokens that are kept at first.
const LEAST: usize = 256;
/// Tokens that need no memory but the detector's own: most replies to a form's field are shorter.
const EARLY: usize = 32;
/// Places for phrases, for each token that is kept. Phrases that share a place are found again at the next
/// token.
const PLACES: usize = 2;
/// A place that holds none.
const NOWHERE: u16 = u16::MAX;
/// Odd, so that every token of a phrase counts.
const FACTOR: u32 = 0x9E37_79B1;
/// [`FACTOR`] to the power of a phrase's length.
const FACTORS: u32 = {
    let (mut product, mut token) = (1_u32, 0);
    while token < PHRASE {
        product = product.wrapping_mul(FACTOR);
        token += 1;
    }
    product
};

/// What is kept of a token: its hash, whose lowest four bits say what it is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Kept(u32);

/// Bits for what a token is made of.
const MARK: u32 = 0xF;

/// What a token is made of, as far as a repeated one matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Word,
    /// Letters that stand for bytes.
    Code,
    /// The same letter again and again, in a long run without a blank.
    Same,
    /// Digits with a space before them.
    Number,
    /// Digits that go on with what stands before.
    Digits,
    Dot,
    Pipe,
    Line,
    Item,
    Blank,
    /// Begins or ends fenced code.
    Fence,
    Sign,
}

impl Mark {
    /// Each at its own place.
    const ALL: [Self; 12] = [
        Self::Word,
        Self::Code,
        Self::Same,
        Self::Number,
        Self::Digits,
        Self::Dot,
        Self::Pipe,
        Self::Line,
        Self::Item,
        Self::Blank,
        Self::Fence,
        Self::Sign,
    ];
}

impl From<Token> for Kept {
    fn from(token: Token) -> Self {
        let mark = match token.sort {
            Sort::Word => Mark::Word,
            Sort::Code if token.same => Mark::Same,
            Sort::Code => Mark::Code,
            Sort::Digits if token.spaced => Mark::Number,
            Sort::Digits => Mark::Digits,
            Sort::Item => Mark::Item,
            Sort::Blank => Mark::Blank,
            Sort::Line => Mark::Line,
            Sort::Sign => match (token.first, token.length) {
                (b'.', 1) => Mark::Dot,
                (b'|', 1) => Mark::Pipe,
                (b'`' | b'~', 3..) if token.begins_line => Mark::Fence,
                _ => Mark::Sign,
            },
        };
        Self(token.hash & !MARK | mark as u32)
    }
}

impl Kept {
    /// What the token is made of.
    pub(super) fn mark(self) -> Mark {
        Mark::ALL.get((self.0 & MARK) as usize).copied().unwrap_or(Mark::Word)
    }

    /// Equal for equal tokens.
    pub(super) fn hash(self) -> u32 {
        self.0
    }

    /// Equal for equal tokens, whatever space stands before a number.
    pub(super) fn value(self) -> u32 {
        self.0 & !MARK
    }

    /// The same for all numbers, else the token's own.
    fn masked(self) -> u32 {
        const NUMBER: u32 = Mark::Number as u32;
        const DIGITS: u32 = Mark::Digits as u32;
        if matches!(self.0 & MARK, NUMBER | DIGITS) { NUMBER } else { self.0 }
    }
}

/// Two views of the tokens: as they are, and with all numbers alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    Exact,
    Masked,
}

/// The last tokens.
#[derive(Clone, Debug, Default)]
pub(super) struct Ring {
    early: [Kept; EARLY],
    kept: Vec<Kept>,
    /// Where phrases stood: the low bits of their last token's number.
    exact: Vec<u16>,
    masked: Vec<u16>,
    /// The last phrase, exact and masked, as one number each.
    phrase: [u32; 2],
    /// Tokens in all.
    count: usize,
}

impl Ring {
    /// Tokens so far.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// The token `back` before the last one. It must be among those that are kept.
    pub(super) fn back(&self, back: usize) -> Kept {
        self.at(self.count.wrapping_sub(1 + back))
    }

    /// Takes one more token.
    pub(super) fn push(&mut self, token: Kept) {
        if self.count >= self.kept.len().max(EARLY) && self.kept.len() < MOST {
            self.grow();
        }
        let leaves = if self.count < PHRASE { Kept::default() } else { self.back(PHRASE - 1) };
        let [exact, masked] = &mut self.phrase;
        *exact = roll(*exact, leaves.0, token.0);
        *masked = roll(*masked, leaves.masked(), token.masked());
        if self.kept.is_empty() {
            self.early[self.count] = token;
        } else {
            let mask = self.kept.len() - 1;
            self.kept[self.count & mask] = token;
        }
        self.count += 1;
    }

    /// How far back the last phrase stood before, at most [`LONGEST`]; and takes note that it stands here.
    pub(super) fn look_up(&mut self, view: View) -> Option<usize> {
        if self.kept.is_empty() {
            return None;
        }
        let place = self.place(view);
        let here = self.count;
        let table = self.table(view);
        #[expect(clippy::cast_possible_truncation, reason = "the low bits are what is kept")]
        let stood = std::mem::replace(&mut table[place], here as u16 & !(1 << 15));
        if stood == NOWHERE {
            return None;
        }
        let distance = here.wrapping_sub(usize::from(stood)) & (NOWHERE as usize >> 1);
        let near = (1..=LONGEST).contains(&distance) && distance + PHRASE <= self.reach();
        (near && (0..PHRASE).all(|back| self.same(view, back, distance))).then_some(distance)
    }

    /// Whether the token `back` before the last is the one that stands `distance` before it. Both must be
    /// kept.
    pub(super) fn same(&self, view: View, back: usize, distance: usize) -> bool {
        let (one, other) = (self.back(back), self.back(back + distance));
        match view {
            View::Exact => one == other,
            View::Masked => one.masked() == other.masked(),
        }
    }

    /// Tokens that are kept.
    pub(super) fn reach(&self) -> usize {
        self.count.min(self.kept.len().max(EARLY))
    }

    /// Bytes on the heap.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.kept.capacity() * size_of::<Kept>()
            + (self.exact.capacity() + self.masked.capacity()) * size_of::<u16>()
    }

    fn at(&self, number: usize) -> Kept {
        if self.kept.is_empty() {
            return self.early[number % EARLY];
        }
        self.kept[number & (self.kept.len() - 1)]
    }

    fn table(&mut self, view: View) -> &mut [u16] {
        match view {
            View::Exact => &mut self.exact,
            View::Masked => &mut self.masked,
        }
    }

    /// Where the last phrase is looked up.
    fn place(&self, view: View) -> usize {
        let phrase = self.phrase[usize::from(view == View::Masked)];
        let places = self.kept.len() * PLACES;
        (phrase.wrapping_mul(FACTOR) >> 16) as usize & (places - 1)
    }

    /// Makes room for as many tokens again, and finds the old places anew.
    fn grow(&mut self) {
        let room = (self.kept.len() * 2).max(LEAST);
        let mut grown = Self {
            early: self.early,
            kept: vec![Kept::default(); room],
            exact: vec![NOWHERE; room * PLACES],
            masked: vec![NOWHERE; room * PLACES],
            phrase: [0; 2],
            count: 0,
        };
        for number in 0..self.count {
            grown.push(self.at(number));
            if grown.count >= PHRASE {
                grown.look_up(View::Exact);
                grown.look_up(View::Masked);
            }
        }
        *self = grown;
    }
}

/// A phrase's number when the token `leaves` goes at its front and `comes` at its end.
fn roll(phrase: u32, leaves: u32, comes: u32) -> u32 {
    phrase.wrapping_mul(FACTOR).wrapping_add(comes).wrapping_sub(leaves.wrapping_mul(FACTORS))
}
