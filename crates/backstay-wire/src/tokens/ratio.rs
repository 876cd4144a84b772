//! How many bytes one token stands for, learned from the usage a provider reports.
//!
//! A value: no clock, no lock. It keeps the last observations and answers with a low one, so that
//! the estimate errs on the side of too many tokens.

/// Observations kept. At 64, one odd prompt leaves the memory after 64 ordinary ones.
const KEPT: usize = 64;
/// Observations needed before an estimate: below 8 the low quantile is the lowest value seen, and
/// chance decides it.
const NEEDED: usize = 8;
/// Prompts below this many tokens teach nothing: what the template adds outweighs their text.
const SMALLEST: u64 = 32;
/// A token is at least one byte.
const LOWEST: u64 = 1_000;
/// Prose in the best vocabularies stays under 6 bytes; more means that the two numbers do not
/// belong together (a picture, a cached part not reported).
const HIGHEST: u64 = 8_000;

/// A learned ratio of bytes to tokens, of one model at one provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratio {
    /// Thousandths of a byte per token, oldest overwritten first.
    kept: [u16; KEPT],
    /// How many observations were made; the first `min(made, KEPT)` slots are filled.
    made: usize,
}

impl Default for Ratio {
    fn default() -> Self {
        Self { kept: [0; KEPT], made: 0 }
    }
}

impl Ratio {
    /// Takes note that a prompt of `bytes` bytes was reported as `tokens` tokens.
    pub fn note(&mut self, bytes: u64, tokens: u64) {
        if tokens < SMALLEST {
            return;
        }
        let thousandths = bytes.saturating_mul(1_000) / tokens;
        let clamped = u16::try_from(thousandths.clamp(LOWEST, HIGHEST)).unwrap_or(u16::MAX);
        let place = self.made % KEPT;
        if let Some(slot) = self.kept.get_mut(place) {
            *slot = clamped;
        }
        // Kept small, so that it never wraps; only its rest and whether it is past KEPT count.
        self.made = if self.made >= 2 * KEPT { KEPT + 1 + place } else { self.made + 1 };
    }

    /// The tokens of a prompt of `bytes` bytes, rather too many than too few. `None`: too little
    /// is known, use the upper bound.
    pub fn estimate(&self, bytes: u64) -> Option<u64> {
        Some(of_bytes(bytes, self.low()?))
    }

    /// The 5 % quantile of what is kept.
    fn low(&self) -> Option<u16> {
        let (sorted, filled) = self.sorted()?;
        sorted.get(filled / 20).copied()
    }

    /// The 95 % quantile of what is kept, in thousandths of a byte for each token: with it [`of_bytes`] gives
    /// rather too few than too many. `None`: too little is known.
    pub fn high(&self) -> Option<u16> {
        let (sorted, filled) = self.sorted()?;
        sorted.get(filled - 1 - filled / 20).copied()
    }

    /// What is kept in order, and how much that is. `None`: too little.
    fn sorted(&self) -> Option<([u16; KEPT], usize)> {
        let filled = self.made.min(KEPT);
        if filled < NEEDED {
            return None;
        }
        let mut sorted = self.kept;
        sorted.get_mut(..filled)?.sort_unstable();
        Some((sorted, filled))
    }
}

/// The tokens of `bytes` bytes at so many thousandths of a byte for each, rounded up. 0 is taken for 1.
pub fn of_bytes(bytes: u64, thousandths: u16) -> u64 {
    bytes.saturating_mul(1_000).div_ceil(u64::from(thousandths.max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taught(pairs: impl IntoIterator<Item = (u64, u64)>) -> Ratio {
        let mut ratio = Ratio::default();
        for (bytes, tokens) in pairs {
            ratio.note(bytes, tokens);
        }
        ratio
    }

    #[test]
    fn nothing_is_estimated_before_eight_observations() {
        assert_eq!(taught([(4_000, 1_000); 7]).estimate(4_000), None);
        assert_eq!(taught([(4_000, 1_000); 8]).estimate(4_000), Some(1_000));
    }

    #[test]
    fn the_low_end_decides_and_one_outlier_in_sixty_does_not() {
        let mixed =
            taught((0..40).map(|n| if n % 4 == 0 { (2_000, 1_000) } else { (4_000, 1_000) }));
        assert_eq!(mixed.estimate(4_000), Some(2_000));
        let outlier = taught((0..60).map(|n| if n == 7 { (1_000, 1_000) } else { (4_000, 1_000) }));
        assert_eq!(outlier.estimate(4_000), Some(1_000));
    }

    #[test]
    fn the_high_end_gives_the_fewest_tokens_that_are_usual() {
        assert_eq!(taught([(4_000, 1_000); 7]).high(), None);
        let mixed =
            taught((0..40).map(|n| if n % 4 == 0 { (2_000, 1_000) } else { (4_000, 1_000) }));
        assert_eq!(mixed.high().map(|high| of_bytes(4_000, high)), Some(1_000));
        let outlier = taught((0..60).map(|n| if n == 7 { (7_000, 1_000) } else { (3_000, 1_000) }));
        assert_eq!(outlier.high(), Some(3_000));
        assert_eq!(taught((1..=8).map(|n| (n * 1_000, 1_000))).high(), Some(8_000));
        assert_eq!((of_bytes(7, 2_000), of_bytes(0, 4_000), of_bytes(5, 0)), (4, 0, 5_000));
    }

    #[test]
    fn old_observations_are_forgotten() {
        let mut ratio = taught([(1_000, 1_000); 64]);
        assert_eq!(ratio.estimate(4_000), Some(4_000));
        for _ in 0..64 {
            ratio.note(4_000, 1_000);
        }
        assert_eq!(ratio.estimate(4_000), Some(1_000));
    }

    #[test]
    fn a_million_observations_keep_the_ring_turning() {
        let mut ratio = taught((0..1_000_000).map(|_| (3_000, 1_000)));
        assert_eq!(ratio.estimate(3_000), Some(1_000));
        for _ in 0..KEPT {
            ratio.note(5_000, 1_000);
        }
        assert_eq!(ratio.estimate(5_000), Some(1_000));
    }

    #[test]
    fn odd_numbers_are_clamped_or_ignored() {
        let pictures = taught([(1_000_000, 100); 10]);
        assert_eq!(pictures.estimate(8_000), Some(1_000));
        let templates = taught([(10, 100); 10]);
        assert_eq!(templates.estimate(10), Some(10));
        assert_eq!(taught([(4_000, 0); 10]), Ratio::default());
        assert_eq!(taught([(4, 31); 10]), Ratio::default());
        assert_eq!(taught([(u64::MAX, u64::MAX); 10]).estimate(0), Some(0));
        assert!(taught([(4_000, 1_000); 10]).estimate(u64::MAX).is_some());
    }

    #[test]
    fn the_estimate_is_never_above_the_bound() {
        for (bytes, tokens) in [(100, 100), (500, 400), (4_000, 1_000), (1, 50)] {
            let ratio = taught([(bytes, tokens); 10]);
            assert!(ratio.estimate(bytes).unwrap() <= super::super::upper_bound(bytes));
        }
    }
}
