//! Tells what a word without quotes is: a literal, a number, text, or a doubt.

use super::Parser;
use crate::edit::Kind;
use crate::lex::number;

/// What a word is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Word {
    /// A strict literal or number.
    Scalar,
    /// A literal of another notation.
    Literal(Kind, &'static str),
    /// A number of another notation, written strictly.
    Form(String),
    /// `NaN`, an infinity or `undefined`: JSON has no value for it.
    Nan,
    /// Half a literal or one with a slip: text, or the strict literal. `None` if JSON has no value
    /// for what was meant.
    Near(Option<&'static str>),
    /// A number, or text that looks like one.
    Doubtful,
    Text,
    /// Nothing that can be a value.
    Nothing,
}

const LITERALS: [&str; 3] = ["true", "false", "null"];

impl Parser<'_> {
    /// Where the first word at `at` ends.
    pub(super) fn word_end(&self, at: usize) -> usize {
        let mut end = self.name_end(at);
        while matches!(self.byte(end), Some(b'+')) && end < at + super::ahead::REACH {
            end = self.name_end(end + 1);
        }
        end
    }

    /// Says whether the word is a literal or a number, in any common notation.
    pub(super) fn is_scalar(&self, at: usize, end: usize) -> bool {
        let word = self.slice(at, end);
        LITERALS.contains(&word)
            || matches!(word, "True" | "False" | "None")
            || number::is_number(word.as_bytes())
    }
}

/// The strict form of a text that is one literal or number in another notation.
pub(crate) fn notation(text: &str) -> Option<(Kind, String)> {
    match classify(text) {
        Word::Literal(kind, strict) => Some((kind, strict.to_owned())),
        Word::Form(strict) => Some((Kind::NumberForm, strict)),
        _ => None,
    }
}

pub(super) fn classify(word: &str) -> Word {
    if LITERALS.contains(&word) || number::is_number(word.as_bytes()) {
        return Word::Scalar;
    }
    match word {
        "True" => return Word::Literal(Kind::PythonLiteral, "true"),
        "False" => return Word::Literal(Kind::PythonLiteral, "false"),
        "None" => return Word::Literal(Kind::PythonLiteral, "null"),
        _ => {}
    }
    for literal in LITERALS {
        if word.eq_ignore_ascii_case(literal) {
            return Word::Literal(Kind::LiteralCase, literal);
        }
    }
    let unsigned = word.trim_start_matches(['-', '+']);
    let names = ["nan", "inf", "infinity", "undefined", "∞"];
    if names.iter().any(|name| unsigned.eq_ignore_ascii_case(name)) {
        return Word::Nan;
    }
    if let Some(form) = form(word) {
        return Word::Form(form);
    }
    // `etc.` stands for what is not there.
    let is_rest = matches!(word.trim_end_matches('.'), "etc" | "" | "and so on");
    if is_rest || is_glued(word) || looks_like_number(word) {
        return Word::Doubtful;
    }
    if let Some(near) = near(word) {
        return near;
    }
    if is_text(word) { Word::Text } else { Word::Nothing }
}

/// Literals in lower case, and what each is in JSON.
const MEANT: [(&str, Option<&str>); 7] = [
    ("true", Some("true")),
    ("false", Some("false")),
    ("null", Some("null")),
    ("none", Some("null")),
    ("nil", Some("null")),
    ("undefined", None),
    ("nan", None),
];

/// Words of their own that are one letter away from a literal.
const WORDS: [&str; 12] =
    ["no", "one", "tree", "trie", "rue", "nine", "node", "nope", "nose", "note", "noun", "noon"];

/// The literal that a word begins, or is with one letter wrong.
fn near(word: &str) -> Option<Word> {
    if word.is_empty() || word.len() > "undefined".len() + 1 {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    if WORDS.contains(&lower.as_str()) {
        return None;
    }
    let begins = MEANT.iter().find(|(literal, _)| literal.starts_with(&lower));
    // Three letters are too few to see a slip: `can` is not `nan`.
    let slips = || {
        MEANT
            .iter()
            .find(|(literal, _)| literal.len() > 3 && is_slip(lower.as_bytes(), literal.as_bytes()))
    };
    begins.or_else(slips).map(|(_, meant)| Word::Near(*meant))
}

/// Says whether a word is a literal with one letter missing, too many or replaced, or two swapped.
/// A first letter is not replaced: `done` is not `none`.
fn is_slip(word: &[u8], literal: &[u8]) -> bool {
    let same = word.iter().zip(literal).take_while(|(one, two)| one == two).count();
    let (Some(word), Some(literal)) = (word.get(same..), literal.get(same..)) else {
        return false;
    };
    match (word, literal) {
        ([one, two, rest @ ..], [first, second, tail @ ..])
            if one == second && two == first && rest == tail =>
        {
            true
        }
        ([_, rest @ ..], [_, tail @ ..]) if rest == tail && same > 0 => true,
        ([_, rest @ ..], literal) if rest == literal => true,
        (word, [_, tail @ ..]) => word == tail,
        _ => false,
    }
}

/// `.5`, `5.`, `+5` and `1_000` as strict numbers.
fn form(word: &str) -> Option<String> {
    let unsigned = word.strip_prefix('+').unwrap_or(word);
    let (sign, digits) = match unsigned.strip_prefix('-') {
        Some(digits) if unsigned.len() == word.len() => ("-", digits),
        Some(_) => return None,
        None => ("", unsigned),
    };
    let bytes = digits.as_bytes();
    let is_grouped = |at: usize| {
        let digit = |place: Option<usize>| {
            place.and_then(|place| bytes.get(place)).is_some_and(u8::is_ascii_digit)
        };
        digit(at.checked_sub(1)) && digit(Some(at + 1))
    };
    let under: Vec<usize> = digits.match_indices('_').map(|(at, _)| at).collect();
    if under.iter().any(|at| !is_grouped(*at)) {
        return None;
    }
    let mut digits = digits.replace('_', "");
    if digits.starts_with('.') {
        digits.insert(0, '0');
    }
    if digits.ends_with('.') && digits.len() > 1 && digits != "0." {
        digits.push('0');
    }
    let strict = format!("{sign}{digits}");
    number::is_number(strict.as_bytes()).then_some(strict)
}

/// Says whether the word is two scalars that lost what stood between them.
fn is_glued(word: &str) -> bool {
    let is_scalar = |part: &str| LITERALS.contains(&part) || number::is_number(part.as_bytes());
    word.len() < 64
        && word
            .char_indices()
            .skip(1)
            .filter_map(|(at, _)| word.split_at_checked(at))
            .any(|(one, two)| is_scalar(one) && is_scalar(two))
}

/// Says whether the word is made of what numbers are made of, but is not text of a known shape:
/// a date, an address or a version.
fn looks_like_number(word: &str) -> bool {
    let body = word.trim_start_matches(['+', '-']);
    if !body.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return false;
    }
    let is_hex = body.len() > 2
        && body.starts_with('0')
        && body.get(1..2).is_some_and(|mark| matches!(mark, "x" | "X" | "o" | "b"));
    let is_numeric = |letter: char| letter.is_ascii_digit() || "+-.eE_/*^ ".contains(letter);
    if !is_hex && !body.chars().all(is_numeric) {
        return false;
    }
    !is_date(word) && !is_dotted(word)
}

/// `2024-01-15`, `01/15/2024`.
fn is_date(word: &str) -> bool {
    ['-', '/'].iter().any(|mark| {
        let parts: Vec<&str> = word.split(*mark).collect();
        parts.len() == 3
            && parts.iter().all(|part| {
                matches!(part.len(), 1..=4) && part.bytes().all(|byte| byte.is_ascii_digit())
            })
    })
}

/// `10.0.0.1`, `1.2.3`.
fn is_dotted(word: &str) -> bool {
    let parts: Vec<&str> = word.split('.').collect();
    parts.len() >= 3
        && parts.iter().all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
}

fn is_text(word: &str) -> bool {
    let first = word.chars().next();
    let starts = first.is_some_and(|first| first.is_alphanumeric() || "-+._$€£%@".contains(first));
    let has_letter = word.chars().any(char::is_alphanumeric);
    let is_link = word.contains("://");
    let is_odd = |letter: char| match letter {
        '=' => !is_link,
        _ => matches!(letter, '\\' | '(' | ')' | '<' | '>' | '…' | '|'),
    };
    starts
        && has_letter
        && !word.starts_with("...")
        && !word.ends_with("...")
        && !word.ends_with('\'')
        // A comment of SQL's.
        && !word.contains(" --")
        && !word.chars().any(|letter| is_odd(letter) || letter.is_control())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_told_apart() {
        use Word::{Doubtful, Literal, Nan, Near, Nothing, Scalar, Text};
        for (word, what) in [
            ("true", Scalar),
            ("-1.5e3", Scalar),
            ("True", Literal(Kind::PythonLiteral, "true")),
            ("NULL", Literal(Kind::LiteralCase, "null")),
            ("-Infinity", Nan),
            ("undefined", Nan),
            ("007", Doubtful),
            ("1e", Doubtful),
            ("1/3", Doubtful),
            ("0x1F", Doubtful),
            ("1 000", Doubtful),
            ("etc.", Doubtful),
            ("1true", Doubtful),
            ("1.52.5", Doubtful),
            ("1-2", Doubtful),
            ("truefalse", Doubtful),
            ("2024-01-15", Text),
            ("10.0.0.1", Text),
            ("0.0.1", Text),
            ("nul", Near(Some("null"))),
            ("none", Near(Some("null"))),
            ("Flase", Near(Some("false"))),
            ("truee", Near(Some("true"))),
            ("trje", Near(Some("true"))),
            ("undef", Near(None)),
            ("nil", Near(Some("null"))),
            ("1 -- one", Nothing),
            ("oil", Text),
            ("no", Text),
            ("done", Text),
            ("can", Text),
            ("nothing", Text),
            ("3px", Text),
            ("yes", Text),
            ("it's fine", Text),
            ("b'bytes'", Nothing),
            ("...", Doubtful),
            ("<name>", Nothing),
            ("-", Nothing),
        ] {
            assert_eq!(classify(word), what, "{word}");
        }
        for (word, strict) in [(".5", "0.5"), ("5.", "5.0"), ("+5", "5"), ("1_000", "1000")] {
            assert_eq!(classify(word), Word::Form(strict.to_owned()), "{word}");
        }
    }
}
