//! How much a text's tokens still say: few different ones, or ones the model was sure of, are the mark of
//! a loop. Advisory: forms and lists say little too.

use std::sync::LazyLock;

use super::signal::Finding;

/// Tokens over which unigrams are counted. A power of two: its logarithm is 8 bits.
const WINDOW: usize = 256;
const WINDOW_32: u32 = 256;
/// Counters. Tokens that share one make the entropy a little smaller.
const COUNTERS: usize = 1024;
/// One bit.
const BIT: u32 = 1 << 16;
/// Below so many thousandths of a bit a window is told. Prose has over 6,000, tables over 4,000.
const TOLD: u32 = 3000;

/// `count * log2(count)`, in parts of a bit.
static WEIGHTS: LazyLock<Vec<u32>> = LazyLock::new(|| {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "at most 2,048 bits, not negative"
    )]
    let weight = |count: usize| {
        (count as f64 * (count.max(1) as f64).log2() * f64::from(BIT)).round() as u32
    };
    (0..=WINDOW).map(weight).collect()
});

/// The entropy of the last 256 tokens, each as often as it stands there.
#[derive(Clone, Debug, Default)]
pub(super) struct Unigrams {
    counts: Vec<u16>,
    /// Sum of the weights of all counts.
    weight: u32,
    /// Whether the model itself says how sure it is: then nothing is counted.
    outdone: bool,
}

impl Unigrams {
    /// Takes note of the last of `count` tokens; `back` gives the one so many before it. Returns a
    /// finding where the window says too little.
    pub(super) fn note(&mut self, count: usize, back: impl Fn(usize) -> u32) -> Option<Finding> {
        if count < WINDOW || self.outdone {
            return None;
        }
        if self.counts.is_empty() {
            self.counts = vec![0; COUNTERS];
            for place in 0..WINDOW {
                self.count(back(place), 1);
            }
        } else {
            self.count(back(0), 1);
            self.count(back(WINDOW), -1);
        }
        let bits = WINDOW.ilog2() * BIT - self.weight / WINDOW_32;
        let millibits = u32::try_from(u64::from(bits) * 1000 / u64::from(BIT)).unwrap_or(u32::MAX);
        (millibits < TOLD).then_some(Finding::LowEntropy { millibits, tokens: WINDOW_32 })
    }

    /// The model itself says how sure it is, which is better than to count.
    pub(super) fn outdo(&mut self) {
        self.outdone = true;
    }

    /// Bytes on the heap.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.counts.capacity() * size_of::<u16>()
    }

    fn count(&mut self, hash: u32, by: i16) {
        let counter = &mut self.counts[(hash ^ hash >> 16) as usize % COUNTERS];
        let weights = WEIGHTS.as_slice();
        let before = weights[usize::from(*counter).min(WINDOW)];
        *counter = counter.saturating_add_signed(by);
        self.weight = self.weight + weights[usize::from(*counter).min(WINDOW)] - before;
    }
}

/// The model's own word: how sure it was of each token.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sureness {
    /// Bits a token, the last ones weighing most.
    average: f32,
    tokens: u32,
    /// Tokens in a row at which the average was near zero.
    sure: u32,
}

/// Tokens over which the average is taken, about.
const OVER: f32 = 64.0;
/// Bits below which the average is near zero.
const NEAR_ZERO: f32 = 0.02;
/// Tokens of certainty that are told. A quoted licence is as sure, but seldom longer.
const SURE: u32 = 128;

impl Sureness {
    /// Takes note of a token's most likely choices: the natural logarithms of their probabilities, as providers
    /// report them. What they leave of 1 counts as one further choice. Values over 0 or not a number count
    /// as 0. No choices: nothing is noted.
    pub fn note(&mut self, logprobs: impl IntoIterator<Item = f32>) -> Option<Finding> {
        let (mut rest, mut bits, mut any) = (1.0_f32, 0.0_f32, false);
        for logprob in logprobs {
            let logprob = if logprob.is_nan() { 0.0 } else { logprob.min(0.0) };
            let share = logprob.exp();
            bits += entropy(share);
            rest -= share;
            any = true;
        }
        if !any {
            return None;
        }
        bits += entropy(rest.max(0.0));
        self.tokens = self.tokens.saturating_add(1);
        #[expect(clippy::cast_precision_loss, reason = "at most 64")]
        let over = OVER.min(self.tokens as f32);
        self.average += (bits - self.average) / over;
        self.sure = if self.average < NEAR_ZERO { self.sure.saturating_add(1) } else { 0 };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and at most 20 bits"
        )]
        let millibits = (self.average.max(0.0) * 1000.0) as u32;
        (self.sure > SURE).then_some(Finding::LowEntropy { millibits, tokens: self.sure })
    }
}

/// Bits that a choice of this probability adds to the entropy of all.
fn entropy(share: f32) -> f32 {
    -share * share.max(f32::MIN_POSITIVE).log2()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::split::Splitter;
    use super::*;

    /// What is told at each of `tokens`, in thousandths of a bit.
    fn told(tokens: &[u32]) -> Vec<Option<u32>> {
        let mut unigrams = Unigrams::default();
        let note = |at| match unigrams.note(at + 1, |back| tokens[at - back]) {
            Some(Finding::LowEntropy { millibits, tokens: WINDOW_32 }) => Some(millibits),
            Some(other) => panic!("{other}"),
            None => None,
        };
        (0..tokens.len()).map(note).collect()
    }

    #[test]
    fn three_bits_a_token_are_enough() {
        let eight: Vec<u32> = (0..256).map(|n| n % 8).collect();
        assert_eq!(told(&eight)[255], None);
        let seven: Vec<u32> = (0..256).map(|n| n % 7).collect();
        assert_eq!(told(&seven)[255], Some(2807));
        assert_eq!(told(&[5; 256])[254..], [None, Some(0)]);
    }

    #[test]
    fn different_words_seldom_share_a_counter() {
        let letter = |n: u8| char::from(b'a' + n);
        let words =
            (0..16).flat_map(|a| (0..16).map(move |b| format!(" {}b{}", letter(a), letter(b))));
        let mut hashes = Vec::new();
        // The lowest four bits say what a token is made of.
        let words: String = words.collect();
        Splitter::default().feed(&format!("{words} "), |token| hashes.push(token.hash & !0xF));
        let mut unigrams = Unigrams::default();
        unigrams.note(hashes.len(), |back| hashes[back]);
        let counters = unigrams.counts.iter().filter(|count| **count > 0).count();
        assert!(hashes.len() == 256 && counters > 140, "{counters} for {}", hashes.len());
    }

    proptest! {
        #[test]
        fn what_is_told_is_the_entropy_of_the_last_256_tokens(
            tokens in (1_u32..20).prop_flat_map(|kinds| prop::collection::vec(0..kinds, 250..600)),
        ) {
            for (at, told) in told(&tokens).into_iter().enumerate() {
                let Some(begin) = (at + 1).checked_sub(WINDOW) else {
                    prop_assert_eq!(told, None);
                    continue;
                };
                let count = |token| tokens[begin..=at].iter().filter(|it| **it == token).count();
                let shares = (0..20).map(count).filter(|count| *count > 0);
                #[expect(clippy::cast_precision_loss, reason = "at most 256")]
                let bits: f64 = shares.map(|n| n as f64 / 256.0).map(|p| -p * p.log2()).sum();
                match told {
                    Some(millibits) => {
                        prop_assert!((f64::from(millibits) / 1000.0 - bits).abs() < 0.002);
                    }
                    None => prop_assert!(bits > 2.998, "{}", bits),
                }
            }
        }
    }

    const LN_HALF: f32 = -std::f32::consts::LN_2;

    /// After how many further tokens, each with these choices, certainty is told, and with which average.
    fn certain_after(sureness: &mut Sureness, choices: &[f32]) -> Option<(usize, String)> {
        (1..1000).find_map(|count| {
            let finding = sureness.note(choices.iter().copied())?;
            Some((count, finding.to_string()))
        })
    }

    #[test]
    fn more_than_128_certain_tokens_in_a_row_are_told() {
        let told = Some((129, "0.00 bits a token for 129 tokens".to_owned()));
        for choices in [&[0.0][..], &[f32::NAN], &[7.0], &[-0.0001], &[0.0, f32::NEG_INFINITY]] {
            assert_eq!(certain_after(&mut Sureness::default(), choices), told, "{choices:?}");
        }
        for choices in [&[LN_HALF][..], &[LN_HALF; 2], &[-0.1], &[]] {
            assert_eq!(certain_after(&mut Sureness::default(), choices), None, "{choices:?}");
        }
    }

    #[test]
    fn one_doubt_in_fifty_tokens_is_as_good_as_none() {
        // One bit at first: after 51 tokens the average of all is below a fiftieth.
        let mut sureness = Sureness::default();
        assert_eq!(sureness.note([LN_HALF]), None);
        assert_eq!(certain_after(&mut sureness, &[0.0]).unwrap().0, 50 + 128);
        // Of the last 64 tokens one is a sixty-fourth of a bit, and two are too much.
        let one = sureness.note([LN_HALF, LN_HALF]).unwrap();
        assert_eq!(one.to_string(), "0.01 bits a token for 130 tokens");
        assert_eq!(sureness.note([LN_HALF]), None);
        assert_eq!(sureness.note([0.0]), None, "counted anew");
    }
}
