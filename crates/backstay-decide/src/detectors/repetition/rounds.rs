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
