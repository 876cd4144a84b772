//! The first characters of an answer, normalised for a look-up of phrases.

/// Bytes that are kept: some 240 characters of a script of wide ones, more of others.
const KEPT: usize = 720;
/// Characters of them that are looked at.
const LOOKED_AT: usize = 240;

/// How an answer begins, and how long it is.
#[derive(Clone, Debug, Default)]
pub(super) struct Opening {
    /// At most [`KEPT`].
    bytes: Vec<u8>,
    /// Characters in all.
    length: usize,
}

impl Opening {
    /// Takes the next piece of the answer.
    pub(super) fn feed(&mut self, piece: &str) {
        self.length += piece.chars().count();
        let taken = piece.len().min(KEPT - self.bytes.len());
        self.bytes.extend_from_slice(&piece.as_bytes()[..taken]);
    }

    /// Characters in all.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The first byte that is no blank. `None`: there is none among those that are kept.
    pub(super) fn first(&self) -> Option<u8> {
        self.bytes.trim_ascii_start().first().copied()
    }

    /// The first 240 characters in lower case, each run of blanks and marks of emphasis as one space, with one kind
    /// of apostrophe.
    pub(super) fn normalised(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes);
        let text = text.trim_start();
        let most = text.len().min(LOOKED_AT);
        match text.as_bytes().get(..most) {
            Some(ascii) if ascii.is_ascii() => of_ascii(ascii),
            _ => of_any(text),
        }
    }
}

fn of_any(text: &str) -> String {
    let mut normalised = String::with_capacity(text.len());
    for letter in text.chars().take(LOOKED_AT) {
        match letter {
            '\u{2019}' | '\u{2018}' | '\u{02bc}' | '`' => normalised.push('\''),
            _ if letter.is_whitespace() || matches!(letter, '*' | '_' | '#') => {
                if !normalised.ends_with(' ') {
                    normalised.push(' ');
                }
            }
            _ => normalised.extend(letter.to_lowercase()),
        }
    }
    normalised
}

/// The same for a text of ASCII letters only, many at a time.
fn of_ascii(text: &[u8]) -> String {
    let folded = |byte: &u8| match byte {
        b'`' => b'\'',
        b'\t'..=b'\r' | b' ' | b'*' | b'_' | b'#' => b' ',
        _ => byte.to_ascii_lowercase(),
    };
    let folded = text.iter().map(folded).collect();
    let mut normalised = String::from_utf8(folded).unwrap_or_default();
    if normalised.contains("  ") {
        let mut follows_blank = false;
        normalised.retain(|letter| {
            let is_first = letter != ' ' || !follows_blank;
            follows_blank = letter == ' ';
            is_first
        });
    }
    normalised
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn opening(pieces: &[&str]) -> Opening {
        let mut opening = Opening::default();
        for piece in pieces {
            opening.feed(piece);
        }
        opening
    }

    #[test]
    fn letters_are_small_and_blanks_and_emphasis_are_one_space() {
        let rows = [
            ("", ""),
            (" \n I am", "i am"),
            ("**Sorry**, I \t\n can\u{2019}t", " sorry , i can't"),
            ("_É_ИЯ# a`b", " é ия a'b"),
            ("1 + 2 = 3", "1 + 2 = 3"),
        ];
        for (text, want) in rows {
            assert_eq!(opening(&[text]).normalised(), want, "{text:?}");
        }
    }

    #[test]
    fn only_the_first_240_characters_are_looked_at_and_all_are_counted() {
        let long = "日".repeat(200);
        let opening = opening(&[&long, &long, "a"]);
        assert_eq!((opening.length(), opening.normalised().chars().count()), (401, 240));
        assert_eq!(opening.bytes.len(), KEPT, "no more is kept");
    }

    #[test]
    fn the_first_byte_is_the_first_that_is_no_blank() {
        assert_eq!(opening(&[" ", "\n{"]).first(), Some(b'{'));
        assert_eq!(opening(&["ab"]).first(), Some(b'a'));
        assert_eq!(opening(&["  "]).first(), None);
    }

    proptest! {
        #[test]
        fn ascii_is_normalised_as_every_other_text(text in "[ -~\t\n\r\x0b\x0c\x1f]{0,300}", pieces in 1..9_usize) {
            let letters: Vec<char> = text.chars().collect();
            let pieces: Vec<String> =
                letters.chunks(letters.len().div_ceil(pieces).max(1)).map(String::from_iter).collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            prop_assert_eq!(opening(&pieces).normalised(), of_any(text.trim_start()));
        }
    }
}
