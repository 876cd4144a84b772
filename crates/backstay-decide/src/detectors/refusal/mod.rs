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
    OBJECTS.iter().map(|phrases| count(opening, phrases)).max().unwrap_or(0) >= 2
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
