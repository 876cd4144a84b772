//! Where reading could not go on: what stood there, and what was expected.

use std::fmt;

use crate::edit::line_and_column;

/// The furthest place that any reading of the reply came to, when none came to an end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halt {
    /// Offset in bytes of what could not be read; the length of the reply at its end.
    pub offset: usize,
    /// Line of the offset, from 1.
    pub line: usize,
    /// Column of the offset in characters, from 1.
    pub column: usize,
    /// What stood before, as `after the value 1 and a comma`; empty if nothing did.
    pub behind: String,
    /// What would have been read, as `a key`.
    pub expected: &'static str,
    /// What stands there: a few characters on one line; `None` at the end of the text.
    pub found: Option<String>,
}

/// Characters of the reply that are shown.
const SHOWN: usize = 24;

impl Halt {
    pub(crate) fn new(raw: &str, offset: usize, behind: String, expected: &'static str) -> Self {
        let offset = raw.floor_char_boundary(offset);
        let (line, column) = line_and_column(raw, offset);
        Self {
            offset,
            line,
            column,
            behind,
            expected,
            found: excerpt(raw.get(offset..).unwrap_or_default()),
        }
    }

    /// For what is read whole or not at all.
    pub(crate) fn at(raw: &str, offset: usize) -> Self {
        Self::new(raw, offset, String::new(), "a JSON document")
    }
}

/// The first word or string of a text, on one line and no longer than [`SHOWN`].
pub(crate) fn excerpt(text: &str) -> Option<String> {
    let first = text.chars().next()?;
    let is_quote = matches!(first, '"' | '\'' | '`');
    let is_word = is_quote || first.is_alphanumeric() || "-+.<$_".contains(first);
    let is_end = |letter: char| {
        letter.is_control()
            || (!is_quote && (letter.is_whitespace() || ",:;]}[{\"".contains(letter)))
    };
    let mut shown = String::from(if first.is_control() { ' ' } else { first });
    for letter in text.chars().skip(1) {
        if is_end(letter) || !is_word {
            break;
        }
        if shown.chars().count() == SHOWN {
            shown.push('…');
            break;
        }
        shown.push(letter);
        if is_quote && letter == first {
            break;
        }
    }
    Some(shown)
}

impl fmt::Display for Halt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}, column {}: ", self.line, self.column)?;
        if !self.behind.is_empty() {
            write!(out, "{} ", self.behind)?;
        }
        write!(out, "{} was expected, found ", self.expected)?;
        out.write_str(self.found.as_deref().unwrap_or("the end of the text"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_word_or_string_on_one_line() {
        for (text, shown) in [
            ("000}", "000"),
            ("}]", "}"),
            ("\"a b\": 1", "\"a b\""),
            ("\"a\nb", "\"a"),
            ("word more", "word"),
            ("(1, 2)", "("),
            ("\n", " "),
        ] {
            assert_eq!(excerpt(text).as_deref(), Some(shown), "{text:?}");
        }
        assert_eq!(excerpt(""), None);
        assert_eq!(excerpt(&"é".repeat(99)).map(|shown| shown.chars().count()), Some(SHOWN + 1));
    }

    #[test]
    fn columns_count_characters_of_the_line() {
        let halt = Halt::at("é\nöü x", 7);
        assert_eq!((halt.line, halt.column), (2, 3));
    }
}
