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
