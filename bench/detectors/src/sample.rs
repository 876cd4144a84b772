//! A text with its tokens, as the rules of other programs see it.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// A text, split into about as many tokens as a model's own.
pub struct Sample {
    pub text: String,
    /// Token, and where it ends in the text.
    pub tokens: Vec<(u64, usize)>,
    /// Where the loop begins in the text. 0 in a text without one.
    pub begins: usize,
}

impl Sample {
    pub fn new(text: String, begins: usize) -> Self {
        let tokens = split(&text);
        Self { text, tokens, begins }
    }

    /// Tokens from the loop's begin to the byte `at`.
    pub fn delay(&self, at: usize) -> usize {
        let before = self.tokens.partition_point(|(_, end)| *end <= self.begins);
        self.tokens.partition_point(|(_, end)| *end <= at).saturating_sub(before)
    }
}

/// Words of at most eight letters with the space before them, up to three digits, single signs.
pub fn split(text: &str) -> Vec<(u64, usize)> {
    let (mut tokens, mut begin, mut length, mut last) = (Vec::new(), 0, 0, 'x');
    for (at, letter) in text.char_indices() {
        let goes_on = match () {
            () if at == 0 => true,
            () if last == ' ' && length == 1 => letter != ' ' && letter != '\n',
            () if letter.is_alphabetic() => last.is_alphabetic() && length < 8,
            () if letter.is_ascii_digit() => last.is_ascii_digit() && length < 3,
            () => false,
        };
        if !goes_on {
            tokens.push((hash(&text[begin..at]), at));
            (begin, length) = (at, 0);
        }
        length += 1;
        last = letter;
    }
    tokens.push((hash(&text[begin..]), text.len()));
    tokens
}

pub fn hash(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}
