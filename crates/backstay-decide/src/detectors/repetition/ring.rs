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
        let is_near = (1..=LONGEST).contains(&distance);
        (is_near && (0..PHRASE).all(|back| self.same(view, back, distance))).then_some(distance)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::split::Splitter;
    use super::*;

    impl Kept {
        /// A word of which there is one for each number; 0 is what stands where nothing was put yet.
        pub(in super::super) fn word(number: usize) -> Self {
            let mixed = u32::try_from(number).unwrap().wrapping_mul(FACTOR);
            Self((mixed ^ mixed >> 15).wrapping_mul(FACTOR << 4))
        }

        /// A number of which there is one for each number.
        pub(in super::super) fn number(number: usize) -> Self {
            Self(Self::word(number).0 | Mark::Number as u32)
        }
    }

    impl Ring {
        /// The tokens of `text`.
        pub(in super::super) fn of(text: &str) -> Self {
            let (mut ring, mut splitter) = (Self::default(), Splitter::default());
            splitter.feed(text, |token| ring.push(Kept::from(token)));
            if let Some(last) = splitter.finish() {
                ring.push(Kept::from(last));
            }
            ring
        }
    }

    /// Where the phrase of each of `tokens` stood before.
    fn looked_up(view: View, tokens: impl IntoIterator<Item = Kept>) -> Vec<Option<usize>> {
        let mut ring = Ring::default();
        let look_up = |token| {
            ring.push(token);
            ring.look_up(view)
        };
        tokens.into_iter().map(look_up).collect()
    }

    #[test]
    fn a_phrase_is_found_where_it_stood_last_up_to_2048_tokens_back() {
        for period in [1, 2, 6, 7, 26, 27, 32, 33, 250, 251, 256, 1001, 2047, 2048, 2049, 3000] {
            let tokens = (0..70_000).map(|at| Kept::word(at % period));
            let found = looked_up(View::Exact, tokens);
            let first = found.iter().position(Option::is_some);
            if period > LONGEST {
                assert_eq!(first, None, "{period}");
                continue;
            }
            // Early tokens are not looked up, and a few phrases share their place with another.
            let soonest = (period + PHRASE - 1).max(EARLY);
            assert!((soonest..soonest + 10).contains(&first.unwrap()), "{period}: {first:?}");
            let known = found[soonest..].iter().flatten();
            assert!(known.clone().all(|distance| *distance == period), "{period}");
            assert!(known.count() * 10 > (found.len() - soonest) * 6, "{period}");
            let (last, before) = (&found[65_000..], &found[65_000 - period..]);
            assert!(last.iter().zip(before).all(|(last, before)| last == before), "{period}");
        }
    }

    #[test]
    fn numbers_are_alike_in_the_masked_view_only() {
        let token =
            |at: usize| if at.is_multiple_of(10) { Kept::number(at) } else { Kept::word(at % 10) };
        let found = |view| looked_up(view, (0..100).map(token)).into_iter().flatten().max();
        assert_eq!((found(View::Masked), found(View::Exact)), (Some(10), Some(10)));
        let token =
            |at: usize| if at.is_multiple_of(5) { Kept::number(at) } else { Kept::word(at % 5) };
        let found = |view| looked_up(view, (0..100).map(token)).into_iter().flatten().max();
        assert_eq!((found(View::Masked), found(View::Exact)), (Some(5), None));
    }

    #[test]
    fn what_a_token_is_made_of_is_kept_with_it() {
        use Mark::{Blank, Code, Digits, Dot, Fence, Item, Line, Number, Pipe, Same, Sign, Word};
        let marks = |text: &str| {
            let ring = Ring::of(text);
            (0..ring.count()).rev().map(|back| ring.back(back).mark()).collect::<Vec<_>>()
        };
        assert_eq!(marks("a 1 12.|  \n"), [Word, Number, Number, Dot, Pipe, Blank, Line]);
        assert_eq!(marks("1. no2\nfe ,"), [Item, Dot, Word, Digits, Line, Code, Sign]);
        assert_eq!(
            marks(".. || ``\n```\n~~~ ```"),
            [Sign, Sign, Sign, Line, Fence, Line, Fence, Sign]
        );
        assert_eq!(marks(&"A".repeat(40)), [Word, Word, Word, Word, Same]);
        assert_eq!(marks("---"), [Sign]);
    }

    #[test]
    fn a_number_has_the_same_value_with_and_without_a_space() {
        let ring = Ring::of("7 7 8");
        let [eight, spaced, seven] = [0, 1, 2].map(|back| ring.back(back));
        assert_eq!(spaced.value(), seven.value());
        assert_ne!(spaced.hash(), seven.hash());
        assert_ne!(spaced.value(), eight.value());
    }

    proptest! {
        #[test]
        fn what_is_found_is_where_the_same_six_tokens_stood_last(
            tokens in (1_usize..6).prop_flat_map(|kinds| prop::collection::vec(0..kinds, 0..900)),
        ) {
            let tokens: Vec<Kept> = tokens.into_iter().map(Kept::word).collect();
            for (at, found) in looked_up(View::Exact, tokens.iter().copied()).into_iter().enumerate() {
                let Some(distance) = found else { continue };
                let phrase = |back: usize| tokens.get((at + 1).checked_sub(PHRASE + back)?..=at - back);
                let stood = (1..=at).find(|back| phrase(*back) == phrase(0));
                prop_assert_eq!(stood, Some(distance), "at {}", at);
            }
        }
    }
}
