//! The first characters of an answer, normalised for a look-up of phrases.

/// Bytes that are kept: some 240 characters of a script of wide ones, more of others.
const KEPT: usize = 720;
/// Characters of them that are looked at.
const LOOKED_AT: usize = 240;

/// How an answer begins, and how long it is.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    bytes: [u8; KEPT],
    kept: usize,
    /// Characters in all.
    length: usize,
}

impl Default for Opening {
    fn default() -> Self {
        Self { bytes: [0; KEPT], kept: 0, length: 0 }
    }
}

impl Opening {
    /// Takes the next piece of the answer.
    pub(super) fn feed(&mut self, piece: &str) {
        self.length += piece.chars().count();
        let room = &mut self.bytes[self.kept..];
        if room.is_empty() {
            return;
        }
        let taken = piece.len().min(room.len());
        room[..taken].copy_from_slice(&piece.as_bytes()[..taken]);
        self.kept += taken;
    }

    /// Characters in all.
    pub(super) fn length(&self) -> usize {
        self.length
    }

    /// The first byte that is no blank. `None`: there is none among those that are kept.
    pub(super) fn first(&self) -> Option<u8> {
        self.bytes[..self.kept].trim_ascii_start().first().copied()
    }

    /// The first 240 characters in lower case, each run of blanks and marks of emphasis as one space, with one kind
    /// of apostrophe.
    pub(super) fn normalised(&self) -> String {
        let text = String::from_utf8_lossy(&self.bytes[..self.kept]);
        let mut normalised = String::with_capacity(text.len());
        for letter in text.trim_start().chars().take(LOOKED_AT) {
            match letter {
                '\u{2019}' | '\u{2018}' | '\u{02bc}' | '`' => normalised.push('\''),
                _ if letter.is_whitespace() || matches!(letter, '*' | '_' | '#') => {
                    if !normalised.ends_with(' ') {
                        normalised.push(' ');
                    }
                }
                _ if letter.is_ascii() => normalised.push(letter.to_ascii_lowercase()),
                _ => normalised.extend(letter.to_lowercase()),
            }
        }
        normalised
    }
}

#[cfg(test)]
mod tests {
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
    }

    #[test]
    fn the_first_byte_is_the_first_that_is_no_blank() {
        assert_eq!(opening(&[" ", "\n{"]).first(), Some(b'{'));
        assert_eq!(opening(&["ab"]).first(), Some(b'a'));
        assert_eq!(opening(&["  "]).first(), None);
    }
}
