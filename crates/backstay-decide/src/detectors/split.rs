//! Splits text into small tokens, the same ones however the text was cut into pieces.
//!
//! A token is about what a model's own is: a word or a part of at most eight letters with the space
//! before it, up to three digits, one sign or a run of the same one, a line end, up to four blanks, one
//! character of a script of wide characters. It is known when the next character has come.
//!
//! Numbers that count the items of a list (`17.` or `17)` where a line begins) are all the same token:
//! a list of the same item over and over is a loop, although its numbers rise.

/// Letters a token has at most.
const LETTERS: u8 = 8;
/// Digits a token has at most.
const DIGITS: u8 = 3;
/// Digits that the number of an item has at most.
const ITEM_DIGITS: u8 = 6;
/// Equal signs or blanks that are one token at most.
const RUN: u8 = 4;
/// Tokens without a blank between them from which on they are no words: identifiers end before, encoded
/// bytes do not.
const UNBROKEN: u32 = 4;

/// One token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    /// Equal for equal tokens.
    pub(super) hash: u32,
    pub(super) sort: Sort,
    /// The byte it began with, after its space.
    pub(super) first: u8,
    /// Equal signs or blanks in it; characters of other sorts.
    pub(super) length: u8,
    /// Whether all its letters are the same.
    pub(super) same: bool,
    /// Whether one space stands before it.
    pub(super) spaced: bool,
    /// Whether the line had only blanks before it.
    pub(super) begins_line: bool,
}

/// What a token is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    /// Letters of a word, or a character of a script that needs no blanks.
    Word,
    /// Letters that stand for bytes: part of a hexadecimal number, or of a long run without a blank.
    Code,
    /// Digits, or a value that is written in letters, such as `null`.
    Digits,
    /// The number of an item of a list.
    Item,
    /// Blanks.
    Blank,
    /// The end of a line.
    Line,
    /// Anything else.
    Sign,
}

/// What a byte can begin or go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Blank,
    Line,
    Sign,
    /// The first byte of a character of three or four.
    Wide,
    /// A further byte of a character.
    Rest,
}

const fn class(byte: u8) -> Class {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | 0xC3..=0xDF => Class::Letter,
        b'0'..=b'9' => Class::Digit,
        b' ' | b'\t' => Class::Blank,
        b'\n' => Class::Line,
        0x80..=0xBF => Class::Rest,
        0xE0..=0xFF => Class::Wide,
        _ => Class::Sign,
    }
}

/// Class of every byte.
const CLASSES: [Class; 256] = {
    let mut classes = [Class::Sign; 256];
    let mut byte = 0;
    while byte < 256 {
        #[expect(clippy::cast_possible_truncation, reason = "below 256")]
        {
            classes[byte] = class(byte as u8);
        }
        byte += 1;
    }
    classes
};

const SEED: u32 = 0x811C_9DC5;
const PRIME: u32 = 0x0100_0193;
const ITEM: u32 = 0x1755_0003;

/// The text so far, but only what the next token needs.
#[derive(Clone, Debug)]
pub(super) struct Splitter {
    /// The token under way.
    open: Option<Open>,
    /// Whether the line has only blanks so far.
    line_is_blank: bool,
    /// The token before, if nothing stands between.
    after: Option<Sort>,
    /// Tokens of letters, digits and signs of encoded bytes since the last other one.
    unbroken: u32,
}

/// A token that may go on.
#[expect(clippy::struct_excessive_bools, reason = "four things that are true of each byte or not")]
#[derive(Clone, Copy, Debug)]
struct Open {
    hash: u32,
    sort: Sort,
    first: u8,
    length: u8,
    /// Whether a single space stands before it, or is all of it.
    spaced: bool,
    /// Whether all its letters are digits of a hexadecimal number.
    hex: bool,
    /// Whether all of it is the same byte.
    same: bool,
    begins_line: bool,
}

impl Default for Splitter {
    fn default() -> Self {
        Self { open: None, line_is_blank: true, after: None, unbroken: 0 }
    }
}

impl Splitter {
    /// Takes `piece`, and gives each token that is complete now to `sink`.
    pub(super) fn feed(&mut self, piece: &str, mut sink: impl FnMut(Token)) {
        for &byte in piece.as_bytes() {
            // A carriage return says nothing that the line feed after it does not.
            if byte == b'\r' {
                continue;
            }
            let class = CLASSES[usize::from(byte)];
            let goes_on = self.open.as_mut().is_some_and(|open| {
                let takes_space = open.is_a_space() && !matches!(class, Class::Line | Class::Blank);
                if takes_space {
                    open.begin_after_space(class, byte);
                    self.line_is_blank = false;
                }
                takes_space || open.goes_on(class, byte)
            });
            if !goes_on {
                if let Some(token) = self.end(class, byte) {
                    sink(token);
                }
                self.begin(class, byte);
            }
            if let Some(open) = &mut self.open {
                open.hash = hash_byte(open.hash, byte);
            }
        }
    }

    /// The last token, now that no more text comes.
    pub(super) fn finish(&mut self) -> Option<Token> {
        let last = self.end(Class::Line, b'\n');
        self.open = None;
        last
    }

    /// Begins a token with `byte`.
    fn begin(&mut self, class: Class, byte: u8) {
        self.open = Some(Open {
            hash: SEED,
            sort: sort_of(class, byte),
            first: byte,
            length: 1,
            spaced: byte == b' ',
            hex: is_hex(byte),
            same: true,
            begins_line: self.line_is_blank,
        });
        match class {
            Class::Line => self.line_is_blank = true,
            Class::Blank => {}
            _ => self.line_is_blank = false,
        }
    }

    /// The token under way, which ends before `next`, a byte of class `class`.
    fn end(&mut self, class: Class, next: u8) -> Option<Token> {
        let open = self.open?;
        if open.spaced || !is_code_sign(open.sort, open.first) {
            self.unbroken = 0;
            self.after = None;
        }
        self.unbroken = self.unbroken.saturating_add(1);
        let (sort, hash) = match (open.sort, open.value()) {
            (Sort::Digits, _) if open.begins_line && matches!(next, b'.' | b')') => {
                (Sort::Item, ITEM)
            }
            (Sort::Word, Some(value)) => (Sort::Digits, value),
            (Sort::Word, None) if self.is_code(open, class) => (Sort::Code, open.hash),
            (sort, _) => (sort, open.hash),
        };
        self.after = Some(sort);
        let Open { first, length, same, spaced, begins_line, .. } = open;
        Some(Token { hash, sort, first, length, same, spaced, begins_line })
    }

    /// Whether the letters under way, with a byte of class `next` after them, stand for bytes.
    fn is_code(&self, open: Open, next: Class) -> bool {
        let by_number = matches!(self.after, Some(Sort::Digits)) || next == Class::Digit;
        let ascii = open.first.is_ascii();
        ascii && (self.unbroken > UNBROKEN || open.hex && (by_number || open.length == 2))
    }
}

/// Values that stand in arrays as numbers do: of JSON and of Python.
const VALUES: [&[u8]; 7] = [b"null", b"true", b"false", b"None", b"True", b"False", b"NaN"];

/// Hashes of the [`VALUES`], each without and with a space before it.
const VALUE_HASHES: [[u32; 2]; VALUES.len()] = {
    let mut hashes = [[0; 2]; VALUES.len()];
    let mut at = 0;
    while at < VALUES.len() {
        hashes[at] = [hashed(SEED, VALUES[at]), hashed(hashed(SEED, b" "), VALUES[at])];
        at += 1;
    }
    hashes
};

/// `hash` with `bytes` after it.
const fn hashed(mut hash: u32, bytes: &[u8]) -> u32 {
    let mut at = 0;
    while at < bytes.len() {
        hash = hash_byte(hash, bytes[at]);
        at += 1;
    }
    hash
}

/// FNV-1a.
const fn hash_byte(hash: u32, byte: u8) -> u32 {
    (hash ^ byte as u32).wrapping_mul(PRIME)
}

impl Open {
    /// The hash of the one of the [`VALUES`] that it is.
    fn value(&self) -> Option<u32> {
        let like =
            matches!((self.first, self.length), (b'n' | b't' | b'f' | b'N' | b'T' | b'F', 3..=5));
        let of = |hashes: &&[u32; 2]| hashes[usize::from(self.spaced)] == self.hash;
        like.then(|| VALUE_HASHES.iter().find(of))?.map(|hashes| hashes[0])
    }

    /// Whether it is one space, which goes with what comes after it.
    fn is_a_space(&self) -> bool {
        self.sort == Sort::Blank && self.spaced
    }

    /// Goes on with `byte` after its space.
    fn begin_after_space(&mut self, class: Class, byte: u8) {
        self.sort = sort_of(class, byte);
        self.first = byte;
        self.hex = is_hex(byte);
        if class == Class::Digit {
            // The same number with a space and without one.
            self.hash = SEED;
        }
    }

    /// Whether `byte` belongs to it, which then has it.
    fn goes_on(&mut self, class: Class, byte: u8) -> bool {
        let takes = match (self.sort, class) {
            (_, Class::Rest) => return true,
            (Sort::Blank, Class::Blank) => {
                self.spaced = false;
                self.length < RUN && byte == self.first
            }
            (Sort::Word, Class::Letter) => self.first < 0xE0 && self.length < LETTERS,
            (Sort::Digits, Class::Digit) => {
                self.length < if self.begins_line { ITEM_DIGITS } else { DIGITS }
            }
            (Sort::Sign, Class::Sign) => byte == self.first && self.length < RUN,
            _ => false,
        };
        if takes {
            self.length += 1;
            self.hex &= is_hex(byte);
            self.same &= byte == self.first;
        }
        takes
    }
}

fn sort_of(class: Class, byte: u8) -> Sort {
    match class {
        Class::Letter | Class::Rest => Sort::Word,
        // Wide characters are letters, but for the signs and brackets of the blocks from U+2000 on.
        Class::Wide if byte != 0xE2 => Sort::Word,
        Class::Digit => Sort::Digits,
        Class::Blank => Sort::Blank,
        Class::Line => Sort::Line,
        Class::Sign | Class::Wide => Sort::Sign,
    }
}

const fn is_hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit() || byte == b'x'
}

/// Whether a token of this sort that begins with `first` may be part of encoded bytes.
const fn is_code_sign(sort: Sort, first: u8) -> bool {
    match sort {
        Sort::Word | Sort::Code => first.is_ascii(),
        Sort::Digits => true,
        Sort::Sign => matches!(first, b'+' | b'/' | b'=' | b'-' | b'_'),
        Sort::Item | Sort::Blank | Sort::Line => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<Token> {
        let (mut splitter, mut tokens) = (Splitter::default(), Vec::new());
        splitter.feed(text, |token| tokens.push(token));
        tokens.extend(splitter.finish());
        tokens
    }

    fn shown(text: &str) -> String {
        let token = |token: Token| {
            let Token { sort, first, length, same, spaced, begins_line, .. } = token;
            let mark = |is, mark| if is { mark } else { "" };
            let (line, space, same) = (mark(begins_line, "^"), mark(spaced, "_"), mark(same, "="));
            format!("{line}{space}{sort:?}{length}{same}{}", first.escape_ascii())
        };
        tokens(text).into_iter().map(token).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn tokens_are_about_what_a_models_own_are() {
        let rows = [
            ("", ""),
            ("The cat sat.", "^Word3T _Word3c _Word3s Sign1=."),
            ("internationalisation of", "^Word8i Word8i Word4t _Word2o"),
            ("on 1234567 mats", "^Word2o _Digits31 Digits34 Digits1=7 _Word4m"),
            ("\n  a\n\n b", r"^Line1=\n ^Blank2=  ^Word1=a Line1=\n ^Line1=\n ^_Word1=b"),
            (
                "     x\t\ty \tz",
                r"^Blank4=  ^_Word1=x Blank2=\t Word1=y Blank1=  Blank1=\t Word1=z",
            ),
            ("..... !!!=", "^Sign4=. Sign1=. _Sign3=! Sign1=="),
            (
                "日本 é😀 — ünter",
                r"^Word1=\xe6 Word1=\xe6 _Word1=\xc3 Word1=\xf0 _Sign1=\xe2 _Word5\xc3",
            ),
            ("```x\r\n ~~~", r"^Sign3=` Word1=x Line1=\n ^_Sign3=~"),
            ("กa éa", r"^Word1=\xe0 Word1=a _Word2\xc3"),
            // Items of a list, up to six digits; elsewhere a number is a number.
            (
                "17. a\n 8) b\n1234567. c",
                r"^Item21 Sign1=. _Word1=a Line1=\n ^_Item1=8 Sign1=) _Word1=b Line1=\n ^Digits61 Digits1=7 Sign1=. _Word1=c",
            ),
            ("a 17. 5", "^Word1=a _Digits21 Sign1=. _Digits1=5"),
            // Values of JSON and of Python.
            (
                "null,[true False] nullable nul",
                "^Digits4n Sign1=, Sign1=[ Digits4t _Digits5F Sign1=] _Word8n _Word3n",
            ),
            // Letters that stand for bytes: beside digits, in pairs, in long runs without a blank.
            (
                "abc1 1abc facade ab ax ag",
                "^Code3a Digits1=1 _Digits1=1 Code3a _Word6f _Code2a _Code2a _Word2a",
            ),
            ("2 ab", "^Digits1=2 _Code2a"),
            ("2 abc", "^Digits1=2 _Word3a"),
            ("2.abc", "^Item1=2 Sign1=. Word3a"),
            (
                "one-two_three/four+five",
                "^Word3o Sign1=- Word3t Sign1=_ Code5t Sign1=/ Code4f Sign1=+ Code4f",
            ),
            ("one.two.three.four", "^Word3o Sign1=. Word3t Sign1=. Word5t Sign1=. Word4f"),
            ("é-é-é-é", r"^Word1=\xc3 Sign1=- Word1=\xc3 Sign1=- Word1=\xc3 Sign1=- Word1=\xc3"),
            ("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", "^Word8=A Word8=A Word8=A Word8=A Code6=A"),
        ];
        for (text, want) in rows {
            assert_eq!(shown(text), want, "{text:?}");
        }
    }

    #[test]
    fn the_same_is_the_same_token_wherever_it_stands_and_nothing_else_is() {
        let hashes = |text| tokens(text).into_iter().map(|token| token.hash).collect::<Vec<_>>();
        let same = |text| hashes(text).windows(2).all(|pair| pair[0] == pair[1]);
        for text in ["7 7", "null null", "None None", "\n\n", "1.\n2.\n"] {
            let of_one_sort =
                hashes(text).into_iter().step_by(if text == "1.\n2.\n" { 3 } else { 1 });
            let of_one_sort: Vec<u32> = of_one_sort.collect();
            assert!(
                of_one_sort.len() > 1 && of_one_sort.iter().all(|hash| *hash == of_one_sort[0]),
                "{text:?}"
            );
        }
        assert!(same("a") && !same("a a") && !same("7 8") && !same("null true"));
        let mut all: Vec<u32> = hashes("a b c aa ab ba é è 日 本 1 2 12 - -- . ! \n None null");
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
