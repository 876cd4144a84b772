//! Varied English text from a word list, for replies that need not mean anything.

use crate::dice::Dice;

#[rustfmt::skip]
const WORDS: &[&str] = &[
    "account", "across", "actual", "after", "again", "agent", "allow", "amber", "answer", "april",
    "archive", "around", "arrive", "autumn", "balance", "basket", "before", "begin", "between",
    "billing", "border", "branch", "bridge", "bright", "broken", "button", "candle", "carrier",
    "cause", "charge", "check", "clear", "client", "closed", "colour", "common", "confirm",
    "copper", "corner", "credit", "customer", "damage", "decide", "deliver", "detail", "device",
    "double", "early", "east", "enough", "entry", "evening", "every", "exact", "expect", "extra",
    "factor", "failed", "family", "figure", "finish", "follow", "forest", "forward", "friday",
    "garden", "gather", "gentle", "given", "glass", "handle", "harbour", "heavy", "history",
    "hollow", "honest", "house", "hundred", "inside", "invoice", "island", "issue", "journey",
    "kept", "kitchen", "label", "ladder", "large", "later", "leave", "ledger", "letter", "level",
    "light", "limit", "linen", "listen", "little", "local", "lower", "machine", "manual", "margin",
    "market", "matter", "meadow", "message", "middle", "minute", "mirror", "missing", "module",
    "monday", "morning", "motion", "narrow", "nearly", "needle", "never", "night", "normal",
    "north", "notice", "number", "object", "office", "often", "older", "orange", "order", "other",
    "outside", "packet", "paper", "parcel", "passed", "pattern", "payment", "people", "period",
    "person", "picture", "place", "plain", "planned", "portal", "present", "price", "printed",
    "problem", "proper", "public", "quarter", "quick", "quiet", "reach", "ready", "reason",
    "receipt", "record", "refund", "region", "remain", "repair", "repeat", "reply", "report",
    "rest", "return", "river", "round", "sample", "season", "second", "section", "select", "send",
    "service", "seven", "shelf", "signal", "silver", "simple", "single", "sister", "slow", "small",
    "south", "spring", "square", "started", "station", "steady", "stone", "street", "string",
    "summer", "supply", "system", "table", "taken", "thread", "ticket", "timber", "today",
    "toward", "travel", "tuesday", "twelve", "under", "update", "upper", "usual", "valley",
    "version", "visit", "wait", "warehouse", "warm", "water", "weather", "week", "west", "while",
    "willow", "window", "winter", "within", "without", "wooden", "worker", "yellow", "yesterday",
];

/// Words whose letters take two, three and four bytes in UTF-8.
const WIDE: &[&str] = &[
    "café",
    "naïve",
    "Zürich",
    "東京",
    "précis",
    "smörgås",
    "Ελλάδα",
    "🚂",
    "日本語",
    "żółw",
    "mañana",
    "👩‍💻",
    "ünïts",
    "Москва",
    "한국어",
];

/// Which words the text is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// ASCII only.
    Plain,
    /// Every third word has characters of several bytes.
    Wide,
}

/// Sentences of at least `size` bytes, ending at a full stop.
pub(crate) fn sentences(dice: &mut Dice, size: usize, words: Words) -> String {
    let mut text = String::with_capacity(size + 80);
    while text.len() < size.max(1) {
        if !text.is_empty() {
            text.push(' ');
        }
        let length = 5 + dice.below(8);
        for at in 0..length {
            let word = word(dice, at, words);
            if at == 0 {
                let mut letters = word.chars();
                text.extend(letters.next().into_iter().flat_map(char::to_uppercase));
                text.push_str(letters.as_str());
            } else {
                text.push(' ');
                text.push_str(word);
            }
            if text.len() >= size {
                break;
            }
        }
        text.push('.');
    }
    text
}

/// `count` words in a line, without a stop.
pub(crate) fn line(dice: &mut Dice, count: usize, words: Words) -> String {
    let mut text = String::new();
    for at in 0..count {
        if at > 0 {
            text.push(' ');
        }
        text.push_str(word(dice, at, words));
    }
    text
}

fn word(dice: &mut Dice, at: usize, words: Words) -> &'static str {
    let list = if words == Words::Wide && at.is_multiple_of(3) { WIDE } else { WORDS };
    dice.pick(list).copied().unwrap_or("word")
}

/// The first `limit` bytes of `text`, or a little less so that no character is cut.
pub(crate) fn head(text: &str, limit: usize) -> &str {
    let mut end = limit.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_near_the_size_asked_for_and_varied() {
        for size in [1, 50, 700, 20_000] {
            let text = sentences(&mut Dice::of(3, &["x"]), size, Words::Plain);
            assert!(text.len() >= size && text.len() < size + 16, "{size} gave {}", text.len());
        }
        let text = sentences(&mut Dice::of(3, &["x"]), 2_000, Words::Plain);
        let distinct: std::collections::BTreeSet<_> = text.split(' ').collect();
        assert!(distinct.len() > 120, "only {} different words", distinct.len());
    }

    #[test]
    fn wide_text_has_characters_of_several_bytes() {
        let text = sentences(&mut Dice::of(3, &["x"]), 200, Words::Wide);
        assert!(text.chars().any(|c| c.len_utf8() == 3));
        assert!(text.chars().any(|c| c.len_utf8() == 2));
    }

    #[test]
    fn head_never_cuts_a_character() {
        assert_eq!(head("aé", 2), "a");
        assert_eq!(head("aé", 3), "aé");
        assert_eq!(head("aé", 99), "aé");
        assert_eq!(head("é", 0), "");
    }
}
