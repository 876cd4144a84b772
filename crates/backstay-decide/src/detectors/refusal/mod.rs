//! Finds out that an answer refuses, in words. What a provider says in its own fields is certain and is
//! not looked for here.
//!
//! One phrase is not enough to go by: people apologise and call themselves names in good answers too. So
//! an answer refuses if it is short, is neither code nor JSON nor a call, and near its beginning *declines* (says
//! that it will not do what was asked), or *objects* twice (calls what was asked wrong).

mod words;

use words::{DECLINES, OBJECTS};

/// Characters of an answer that may be a refusal. Reasons and offers of help take their room.
const SHORT: usize = 1200;

/// Whether an answer of `length` characters refuses that begins with `opening`, normalised.
pub(super) fn refuses(opening: &str, length: usize) -> bool {
    if length > SHORT || opening.starts_with(['{', '[', '<', '|']) || opening.contains("'''") {
        return false;
    }
    if DECLINES.iter().any(|(who, what)| declines(opening, who, what)) {
        return true;
    }
    OBJECTS.iter().any(|(objects, teaches)| {
        let objections = count(opening, objects);
        objections >= 2 || objections == 1 && count(opening, teaches) > 0
    })
}

/// Whether one of `who` stands in `text`, and right after it one of `what`.
fn declines(text: &str, who: &[&str], what: &[&str]) -> bool {
    who.iter().any(|who| {
        text.match_indices(who).any(|(at, _)| {
            stands_free(text, at)
                && text.get(at + who.len()..).is_some_and(|rest| {
                    let rest = rest.trim_start();
                    what.iter().any(|what| rest.starts_with(what))
                })
        })
    })
}

/// How many of `phrases` stand in `text`.
fn count(text: &str, phrases: &[&str]) -> usize {
    let stands = |phrase: &&&str| text.match_indices(**phrase).any(|(at, _)| stands_free(text, at));
    phrases.iter().filter(stands).count()
}

/// Whether what begins at `at` begins a word, and is no quotation.
fn stands_free(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    before.is_none_or(|before| {
        before as u32 > 0x2E7F
            || !(before.is_alphanumeric() || matches!(before, '"' | '\u{201c}' | '«' | '\''))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_told(answer: &str) -> bool {
        let mut opening = super::super::opening::Opening::default();
        opening.feed(answer);
        refuses(&opening.normalised(), opening.length())
    }

    #[test]
    fn refusals_are_told_in_each_language() {
        for answer in [
            "I’m sorry, but I can’t help with that request.",
            "As an AI, I cannot provide instructions for this.",
            "**Sorry**, I am unable to assist with that.",
            "Es tut mir leid, aber ich kann Ihnen dabei nicht helfen.",
            "Je suis désolé, mais je ne peux pas vous aider avec cela.",
            "Lo siento, pero no puedo ayudarte con eso.",
            "Mi dispiace, ma non posso aiutarti con questa richiesta.",
            "Desculpe, mas não posso ajudar com isso.",
            "抱歉，我无法提供这方面的帮助。",
            "申し訳ありませんが、そのご質問にはお答えできません。",
            "Извините, но я не могу помочь с этим.",
            "It is not ethical to do so, and it is important to respect others.",
        ] {
            assert!(is_told(answer), "{answer}");
        }
    }

    #[test]
    fn one_word_of_politeness_is_no_refusal() {
        for answer in [
            "Hello! How can I help you today?",
            "Sorry for the delay: the answer is 42.",
            "I'm sorry to hear that. Here is what you can do about the noise.",
            "As an AI model I have read much about bread; this is how it rises.",
            "I cannot recommend this book enough: it explains the matter well.",
            "The error \"I cannot provide a value\" comes from the parser.",
            "Fraud is illegal. It means deceiving somebody for gain.",
            "I can provide help with that, but first tell me the version.",
            "{\"answer\": \"I cannot provide that\"}",
            "Ich bin sicher, dass der Zug um acht fährt.",
            "No puedo más de contento: aquí está la lista.",
        ] {
            assert!(!is_told(answer), "{answer}");
        }
        let long =
            format!("I cannot provide a short answer. {}", "But here is a long one. ".repeat(60));
        assert!(!is_told(&long));
    }
}
