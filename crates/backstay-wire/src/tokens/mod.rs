//! How many tokens a prompt may be: an upper bound first, a better count near the limit.
//!
//! ```text
//!  bytes ──bound──▶ fits easily ──▶ go on
//!                 └ above 75 % of the window ──Ratio::estimate──▶ the better count decides
//! ```
//!
//! Exact counting needs a vocabulary of 30 MB per family; a ratio learned from the usage that
//! providers report is close enough to decide and costs nothing.

mod prompt;
mod ratio;

pub use prompt::Prompt;
pub use ratio::{Ratio, of_bytes};

/// An upper bound of the tokens in a text of `bytes` bytes: in a byte-level vocabulary every token
/// stands for at least one byte.
pub fn upper_bound(bytes: u64) -> u64 {
    bytes
}

/// Characters that [`rough`] takes for a token.
pub const ROUGH: u64 = 4;

/// A crude guess at the tokens of `text`: one for [`ROUGH`] characters, rounded up. Good for
/// English prose, far too low for digits, code and other scripts: to show, not to decide.
pub fn rough(text: &str) -> u64 {
    u64::try_from(text.chars().count()).unwrap_or(u64::MAX).div_ceil(ROUGH)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYSTEM: &str = "Classify the support ticket. Reply with JSON only.";

    #[test]
    fn the_rough_guess_gives_the_numbers_of_the_budget_check() {
        let short = "My card was charged twice for order 1182.";
        let long = "Order log line. ".repeat(1_900);
        assert_eq!(rough(SYSTEM) + rough(short), 24);
        assert_eq!(rough(SYSTEM) + rough(&long), 7_613);
        let allowed = 8_000 - 800;
        assert!(24 + 300 == 324 && 324 <= allowed);
        assert!(7_613 + 300 == 7_913 && 7_913 > allowed);
    }

    #[test]
    fn the_rough_guess_counts_characters_and_rounds_up() {
        for (text, want) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("日本語日本", 2)] {
            assert_eq!(rough(text), want, "{text}");
        }
    }

    #[test]
    fn the_bound_is_never_below_the_guess() {
        for text in ["", "a", SYSTEM, "1\n2\n3\n", "日本語"] {
            let bytes = u64::try_from(text.len()).unwrap();
            assert!(upper_bound(bytes) >= rough(text));
        }
    }
}
