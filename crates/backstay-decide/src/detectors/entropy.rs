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
    let weight = |count: usize| match count {
        0 => 0,
        _ => (count as f64 * (count as f64).log2() * f64::from(BIT)).round() as u32,
    };
    (0..=WINDOW).map(weight).collect()
});

/// The entropy of the last 256 tokens, each as often as it stands there.
#[derive(Clone, Debug, Default)]
pub(super) struct Unigrams {
    counts: Vec<u16>,
    /// Sum of the weights of all counts.
    weight: u32,
}

impl Unigrams {
    /// Takes note of the last of `count` tokens; `back` gives the one so many before it. Returns a
    /// finding where the window says too little.
    pub(super) fn note(&mut self, count: usize, back: impl Fn(usize) -> u32) -> Option<Finding> {
        if count < WINDOW {
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

    /// Bytes on the heap.
    #[cfg(test)]
    pub(super) fn memory(&self) -> usize {
        self.counts.capacity() * size_of::<u16>()
    }

    fn count(&mut self, hash: u32, by: i16) {
        let counter = &mut self.counts[(hash ^ hash >> 16) as usize % COUNTERS];
        let weights = &WEIGHTS;
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
            if share > 0.0 {
                bits -= share * logprob * std::f32::consts::LOG2_E;
            }
            rest -= share;
            any = true;
        }
        if !any {
            return None;
        }
        if rest > f32::EPSILON {
            bits -= rest * rest.log2();
        }
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
