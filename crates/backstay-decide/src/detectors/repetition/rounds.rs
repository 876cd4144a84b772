//! Whether a request holds what its reply repeats.

use std::collections::HashMap;

use super::super::split::Splitter;
use super::ring::{Kept, Ring};

/// How often a loop's period must stand in a request that asked for it.
const ASKED: usize = 3;

impl Ring {
    /// Whether the last `period` tokens stand in `texts` at least three times, in any of their rotations.
    pub(super) fn stands_in<'a>(
        &self,
        period: usize,
        texts: impl IntoIterator<Item = &'a str>,
    ) -> bool {
        let cycle: Vec<u32> = (0..period).rev().map(|back| self.back(back).hash()).collect();
        let places = cycle.iter().enumerate().map(|(place, hash)| (*hash, place)).collect();
        let mut times = 0;
        for text in texts {
            let mut run = Cyclic { cycle: &cycle, places: &places, at: None, length: 0 };
            let mut splitter = Splitter::default();
            splitter.feed(text, |token| times += usize::from(run.note(Kept::from(token).hash())));
            times += usize::from(
                splitter.finish().is_some_and(|token| run.note(Kept::from(token).hash())),
            );
        }
        times >= ASKED
    }
}

/// Finds whole rounds of a cycle in a text.
struct Cyclic<'a> {
    cycle: &'a [u32],
    places: &'a HashMap<u32, usize>,
    /// Where in the cycle the last token stands.
    at: Option<usize>,
    length: usize,
}

impl Cyclic<'_> {
    /// Whether the token `hash` ends a round.
    fn note(&mut self, hash: u32) -> bool {
        let next = self.at.map(|at| (at + 1) % self.cycle.len());
        if let Some(next) = next.filter(|next| self.cycle[*next] == hash) {
            self.at = Some(next);
            self.length += 1;
        } else {
            self.at = self.places.get(&hash).copied();
            self.length = usize::from(self.at.is_some());
        }
        // The first token of a quotation has no space before it, so that one may be missing.
        if self.length + usize::from(self.cycle.len() > 3) < self.cycle.len() {
            return false;
        }
        self.length = 0;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether `texts` ask for `unit` again and again.
    fn asks(unit: &str, texts: &[&str]) -> bool {
        let ring = Ring::of(&unit.repeat(9));
        let period = (ring.count() - Ring::of(&unit.repeat(5)).count()) / 4;
        ring.stands_in(period, texts.iter().copied())
    }

    #[test]
    fn three_copies_ask_for_more_in_one_text_or_in_several() {
        let unit = " one two three four.";
        assert!(asks(unit, &[&unit.repeat(3)]));
        assert!(!asks(unit, &[&unit.repeat(2)]));
        assert!(asks(unit, &[unit, "other words", &unit.repeat(2)]));
        assert!(!asks(unit, &[" one two", " three four.", unit, unit]));
        assert!(!asks(unit, &[]));
    }

    #[test]
    fn any_rotation_is_the_same_round() {
        let unit = " one two three four.";
        assert!(asks(unit, &["Say: three four. one two three four. one two three four. one two"]));
        assert!(!asks(unit, &["four three two one. four three two one. four three two one."]));
        assert!(!asks(
            unit,
            &["one two three four five. one two three four five. one two three four five."]
        ));
    }

    #[test]
    fn the_first_token_of_a_quotation_may_be_missing_but_not_of_few() {
        assert!(asks(
            " one two three four",
            &["\"one two three four\", ", "\"one two three four\"", "\"one two three four\""]
        ));
        assert!(!asks(
            " one two three",
            &["\"one two three\"", "\"one two three\"", "\"one two three\""]
        ));
        assert!(asks(" one two", &[" one two", " one two one two"]));
        assert!(!asks(" one two", &[" one two", " one two one"]));
    }
}
