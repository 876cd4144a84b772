//! How many of the last tokens stand in phrases that were there before.

use super::ring::{PHRASE, Ring, View};

/// Tokens of a phrase that counts.
const LONG: usize = 8;
/// Tokens over which the share is taken, about: it moves by one part in so many at each.
const OVER: u32 = 512;
/// Tokens before which nothing is said.
const ENOUGH: usize = 512;
/// The whole, in which the share is kept.
const WHOLE: u32 = 1 << 24;
/// Thousandths from which on it is told. Source code has up to 700.
const TOLD: u32 = 850;

/// The share of tokens in phrases of eight that stood among the last 2,048 tokens before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Phrases {
    share: u32,
}

impl Phrases {
    /// Takes note of the ring's last token, whose phrase stood `before` tokens back. Returns thousandths, where
    /// there are enough.
    pub(super) fn note(&mut self, ring: &Ring, before: Option<usize>) -> Option<u32> {
        let known = before.is_some_and(|distance| {
            distance + LONG <= ring.reach()
                && (PHRASE..LONG).all(|back| ring.same(View::Exact, back, distance))
        });
        let aim = if known { WHOLE } else { 0 };
        self.share = self.share - self.share / OVER + aim / OVER;
        let share = self.share / (WHOLE / 1000);
        (ring.count() >= ENOUGH && share >= TOLD).then_some(share.min(1000))
    }
}

#[cfg(test)]
mod tests {
    use super::super::ring::Kept;
    use super::*;

    /// What is told after each of `tokens`.
    fn told(tokens: impl IntoIterator<Item = Kept>) -> Vec<Option<u32>> {
        let (mut ring, mut phrases) = (Ring::default(), Phrases::default());
        let note = |token| {
            ring.push(token);
            let before = ring.look_up(View::Exact);
            phrases.note(&ring, before)
        };
        tokens.into_iter().map(note).collect()
    }

    #[test]
    fn a_text_of_known_phrases_is_told_once_they_are_most_of_it() {
        let told = told((0..6000).map(|at| Kept::word(at % 10)));
        let first = told.iter().position(Option::is_some).unwrap();
        // 0.85 = 1 - (511/512)^970, from the first token on that is looked up.
        assert!((1000..1005).contains(&first), "{first}");
        assert_eq!(told[first], Some(TOLD));
        assert!(told[5999].is_some_and(|share| (990..=1000).contains(&share)), "{:?}", told[5999]);
    }

    #[test]
    fn a_short_text_says_nothing() {
        let (mut ring, mut phrases) = (Ring::default(), Phrases { share: WHOLE });
        for at in 1..=600 {
            ring.push(Kept::word(at % 40));
            let before = ring.look_up(View::Exact);
            assert_eq!(phrases.note(&ring, before).is_some(), at >= ENOUGH, "{at}");
        }
    }

    #[test]
    fn phrases_of_fewer_than_eight_tokens_do_not_count() {
        let block = |same: usize| {
            let token = move |at: usize| {
                let place = at % (same + 1);
                Kept::word(if place == same { 1000 + at } else { place })
            };
            told((0..6000).map(token)).into_iter().flatten().count()
        };
        assert_eq!((block(7), block(40)), (0, 0));
        assert!(block(60) > 1000);
    }
}
