//! Finds out that an answer refuses, in words. What a provider says in its own fields is certain and is
//! not looked for here.
//!
//! One phrase is not enough to go by: people apologise and call themselves names in good answers too. So
//! an answer refuses if it is short, is neither code nor JSON nor a call, and near its beginning *declines* (says
//! that it will not do what was asked), or *objects* twice (calls what was asked wrong).

mod words;

use super::opening::Opening;
use words::{DECLINES, OBJECTS};

/// Characters of an answer that may be a refusal. Reasons and offers of help take their room.
const SHORT: usize = 1200;

/// Whether an answer with such an `opening` may be a refusal, as far as its length and its first character say.
pub(super) fn may_refuse(opening: &Opening) -> bool {
    opening.length() <= SHORT && !matches!(opening.first(), Some(b'{' | b'[' | b'<' | b'|') | None)
}

/// All phrases, each with what it says.
pub(super) fn phrases() -> impl Iterator<Item = (&'static str, Role)> + Clone {
    let declines = DECLINES.iter().enumerate().flat_map(|(language, (who, _))| {
        who.iter().map(move |phrase| (*phrase, Role::Declines { language }))
    });
    let objects = OBJECTS.iter().enumerate().flat_map(|(language, (objects, teaches))| {
        let objects = objects.iter().enumerate();
        let objects =
            objects.map(move |(number, phrase)| (*phrase, Role::Objects { language, number }));
        objects.chain(teaches.iter().map(move |phrase| (*phrase, Role::Teaches { language })))
    });
    declines.chain(objects)
}

/// What the opening of an answer that [may](may_refuse) refuse has of a refusal.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Signs {
    declines: bool,
    objections: [Objections; OBJECTS.len()],
}

impl Signs {
    /// Takes note of a phrase that stands at `at` in `opening`.
    pub(super) fn note(&mut self, opening: &str, at: usize, phrase: &str, role: Role) {
        if !stands_free(opening, at) {
            return;
        }
        match role {
            Role::Declines { language } => {
                self.declines |= declines(opening, at + phrase.len(), language);
            }
            Role::Objects { language, number } => self.objections[language].objects |= 1 << number,
            Role::Teaches { language } => self.objections[language].teaches = true,
        }
    }

    /// Whether they are enough.
    pub(super) fn refuses(&self) -> bool {
        let objects = |told: &Objections| {
            let objects = told.objects.count_ones();
            objects >= 2 || objects == 1 && told.teaches
        };
        self.declines || self.objections.iter().any(objects)
    }
}

/// Whether one of the things that are declined in `language` stands right after `end`.
fn declines(text: &str, end: usize, language: usize) -> bool {
    text.get(end..).is_some_and(|rest| {
        let rest = rest.trim_start();
        DECLINES[language].1.iter().any(|what| rest.starts_with(what))
    })
}

/// What an answer says against what was asked, in one language.
#[derive(Clone, Copy, Debug, Default)]
struct Objections {
    /// A bit for each phrase.
    objects: u64,
    teaches: bool,
}

/// What a phrase of a language is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// Who declines.
    Declines {
        language: usize,
    },
    /// The objection of that `number`, below 64.
    Objects {
        language: usize,
        number: usize,
    },
    Teaches {
        language: usize,
    },
}

/// Whether what begins at `at` begins a word, and is no quotation.
fn stands_free(text: &str, at: usize) -> bool {
    let before = text.get(..at).and_then(|before| before.chars().next_back());
    before.is_none_or(|before| {
        matches!(before, '\u{2E80}'..)
            || !(before.is_alphanumeric() || matches!(before, '"' | '\u{201c}' | '«' | '\''))
    })
}

#[cfg(test)]
mod tests {
    use super::super::wording::heard;
    use super::*;

    fn is_told(answer: &str) -> bool {
        let mut opening = Opening::default();
        opening.feed(answer);
        may_refuse(&opening) && heard(&opening.normalised()).refuses
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
    fn every_objection_has_its_bit() {
        assert!(OBJECTS.iter().all(|(objects, _)| objects.len() <= 64));
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
