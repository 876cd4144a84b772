//! What the first words of an answer say: that it refuses, or that it misses what was sent.
//!
//! The phrases of both are sought in one pass. Hardly any place of an answer begins one, so the three bytes
//! that stand there are looked up first.

use std::sync::LazyLock;

use super::{lost, refusal};

/// Slots of the look-up: some ten for each beginning of a phrase, and 4 kB of memory.
const SLOTS: usize = 2_048;

/// Fewest bytes of a phrase.
const BEGINNING: usize = 3;

/// What an opening says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// It declines what was asked, or calls it wrong.
    pub(super) refuses: bool,
    /// It says that something sent is not there.
    pub(super) misses: bool,
}

/// Reads an opening, [normalised](super::opening::Opening::normalised).
pub(super) fn heard(opening: &str) -> Heard {
    let mut refusal = refusal::Signs::default();
    let mut names_thing = false;
    PHRASES.each(opening, |at, phrase, sign| match sign {
        Sign::Refusal(role) => refusal.note(opening, at, phrase, role),
        Sign::Thing => names_thing = true,
    });
    Heard {
        refuses: refusal.refuses() && !opening.contains("'''"),
        misses: names_thing && lost::misses(opening),
    }
}

/// What a phrase is a sign of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Refusal(refusal::Role),
    /// Names what may have been sent.
    Thing,
}

static PHRASES: LazyLock<Phrases> = LazyLock::new(|| {
    let refusals = refusal::phrases().map(|(phrase, role)| (phrase, Sign::Refusal(role)));
    Phrases::of(refusals.chain(lost::things().map(|thing| (thing, Sign::Thing))))
});

/// Phrases to be sought, each with what it is a sign of.
#[derive(Debug)]
struct Phrases {
    /// By slot: the number of the first phrase, from 1. 0: none begins so.
    first: Vec<u16>,
    /// In the order of their slots.
    all: Vec<(usize, &'static str, Sign)>,
}

impl Phrases {
    /// Phrases of at least three bytes, fewer than 65,535. Shorter ones are never found.
    fn of(phrases: impl Iterator<Item = (&'static str, Sign)>) -> Self {
        let with_slot = |(phrase, sign): (&'static str, Sign)| {
            Some((slot(*phrase.as_bytes().first_chunk()?), phrase, sign))
        };
        let mut all: Vec<_> = phrases.filter_map(with_slot).collect();
        all.sort_by_key(|(slot, ..)| *slot);
        let mut first = vec![0; SLOTS];
        for (number, (slot, ..)) in (1..).zip(&all) {
            if first[*slot] == 0 {
                first[*slot] = number;
            }
        }
        Self { first, all }
    }

    /// Gives every phrase at every place of `text` where it stands to `sink`, by place; they may overlap.
    fn each(&self, text: &str, mut sink: impl FnMut(usize, &'static str, Sign)) {
        for (at, beginning) in text.as_bytes().array_windows().enumerate() {
            let slot = slot(*beginning);
            let first = usize::from(self.first[slot]);
            if first == 0 {
                continue;
            }
            let rest = &text.as_bytes()[at..];
            for (_, phrase, sign) in self.all[first - 1..].iter().take_while(|it| it.0 == slot) {
                if rest.starts_with(phrase.as_bytes()) {
                    sink(at, phrase, *sign);
                }
            }
        }
    }
}

/// Where phrases stand that begin so.
fn slot([one, two, three]: [u8; BEGINNING]) -> usize {
    let mixed = u32::from_le_bytes([one, two, three, 0]).wrapping_mul(0x9E37_79B1);
    mixed as usize >> (32 - SLOTS.ilog2())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_phrase_is_too_short_to_be_found_and_few_share_a_slot() {
        let phrases = refusal::phrases().map(|it| it.0).chain(lost::things());
        assert!(phrases.clone().all(|phrase| phrase.len() >= BEGINNING));
        assert_eq!(PHRASES.all.len(), phrases.count());
        let in_slots = PHRASES.all.chunk_by(|one, other| one.0 == other.0).map(<[_]>::len);
        assert!(in_slots.clone().count() * 10 < SLOTS, "too many places are looked at further");
        // Phrases that begin with one word, as "i am", are together in any case.
        assert!(in_slots.max() <= Some(12));
    }

    #[test]
    fn phrases_are_found_at_both_ends_within_each_other_and_twice() {
        let phrases = ["one", "one two", "two", "wo o"];
        let phrases = Phrases::of(phrases.into_iter().map(|phrase| (phrase, Sign::Thing)));
        let found = |text| {
            let mut found = Vec::new();
            phrases.each(text, |at, phrase, _| found.push((at, phrase)));
            found
        };
        let want = [(0, "one"), (0, "one two"), (4, "two"), (5, "wo o"), (8, "one")];
        assert_eq!(found("one two one"), want);
        assert_eq!(found("on"), []);
        assert_eq!(found(""), []);
    }

    proptest! {
        #[test]
        fn every_place_where_a_phrase_stands_is_told(words in prop::collection::vec(0..1_000_usize, 0..12)) {
            // Words of a phrase now and then, and letters that begin many.
            let word = |number: &usize| match PHRASES.all.get(*number) {
                Some((_, phrase, _)) => *phrase,
                None => ["i ", "no ", "不", " n", "é", "it", "'"][number % 7],
            };
            let text: String = words.iter().map(word).collect();
            let mut found = Vec::new();
            PHRASES.each(&text, |at, phrase, _| found.push((at, phrase)));
            let mut want: Vec<_> = PHRASES
                .all
                .iter()
                .flat_map(|(_, phrase, _)| {
                    (0..text.len())
                        .filter(|at| text.as_bytes()[*at..].starts_with(phrase.as_bytes()))
                        .map(|at| (at, *phrase))
                })
                .collect();
            found.sort_unstable();
            want.sort_unstable();
            prop_assert_eq!(found, want);
        }
    }
}
