//! Whether somebody asked for the same thing again and again.

/// Whether a request's last text asks for repetition, in words.
pub(super) fn for_repetition(text: &str) -> bool {
    let text = text.to_lowercase();
    WORDS.iter().any(|word| text.match_indices(word).any(|(at, _)| begins_word(&text, at)))
        || asks_for_times(&text)
}

/// Fewer times are no reason for a reply that repeats itself for long.
const MANY: u32 = 10;

/// Whether a number of at least ten stands before a word for "times".
fn asks_for_times(text: &str) -> bool {
    let mut many = false;
    for word in text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty())
    {
        if many && TIMES.contains(&word) {
            return true;
        }
        many = word.parse::<u32>().is_ok_and(|number| number >= MANY);
    }
    false
}

/// Whether what stands at `at` begins a word, in scripts that have words.
fn begins_word(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    before.is_none_or(|before| !before.is_alphanumeric() || matches!(before, '\u{2E80}'..))
}

const TIMES: [&str; 10] =
    ["times", "copies", "repetitions", "mal", "fois", "veces", "volte", "vezes", "раз", "zeros"];

const WORDS: [&str; 24] = [
    "repeat",
    "over and over",
    "again and again",
    "forever",
    "endlessly",
    "fill with",
    "filled with",
    "all zeros",
    "wiederhole",
    "immer wieder",
    "endlos",
    "répète",
    "répéter",
    "répétez",
    "encore et encore",
    "repite",
    "repetir",
    "una y otra vez",
    "ripeti",
    "repita",
    "重复",
    "重複",
    "繰り返",
    "повтор",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetition_is_asked_for_in_words_that_begin_with_it_and_by_ten_times_or_more() {
        for text in [
            "Repeat the word.",
            "(repeat it)",
            "请重复这句话",
            "Fill with zeros",
            "10 times \"ha\"",
            "Sage es 200-mal",
            "Répétez-le",
        ] {
            assert!(for_repetition(text), "{text}");
        }
        for text in [
            "An unrepeatable offer",
            "9 times",
            "ten times",
            "10 or more times",
            "12",
            "times 12",
            "",
        ] {
            assert!(!for_repetition(text), "{text}");
        }
    }
}
