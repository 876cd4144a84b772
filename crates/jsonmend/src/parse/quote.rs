//! The marks that strings are written with, and how each opens and closes.

use crate::edit::Kind;

/// How a string was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quote {
    Double,
    Single,
    Back,
    /// `“ … ”`.
    Smart,
    /// `‘ … ’`.
    SmartSingle,
    /// `＂ … ＂`.
    Wide,
    /// `"" … ""`.
    Doubled,
    /// `""" … """`.
    Triple,
    /// `''' … '''`.
    TripleSingle,
}

impl Quote {
    /// The quote at the start of `rest` and its length; doubled and tripled ones are not told
    /// from single ones here.
    pub(super) fn at(rest: &[u8]) -> Option<(Self, usize)> {
        match rest {
            [b'"', ..] => Some((Self::Double, 1)),
            [b'\'', ..] => Some((Self::Single, 1)),
            // Three are a fence.
            [b'`', b'`', b'`', ..] => None,
            [b'`', ..] => Some((Self::Back, 1)),
            // U+201C to U+201F, U+2018 to U+201B.
            [0xe2, 0x80, 0x9c..=0x9f, ..] => Some((Self::Smart, 3)),
            [0xe2, 0x80, 0x98..=0x9b, ..] => Some((Self::SmartSingle, 3)),
            [0xef, 0xbc, 0x82, ..] => Some((Self::Wide, 3)),
            _ => None,
        }
    }

    /// Length of the mark at the start of `rest` that may end a string opened so; 0 if none.
    pub(super) fn ends(self, rest: &[u8]) -> usize {
        match (self, rest) {
            (Self::Double | Self::Smart | Self::Wide, [b'"', ..])
            | (Self::Single, [b'\'', ..])
            | (Self::Back, [b'`', ..]) => 1,
            (Self::Doubled, [b'"', b'"', ..]) => 2,
            (Self::Triple, [b'"', b'"', b'"', ..])
            | (Self::TripleSingle, [b'\'', b'\'', b'\'', ..])
            | (Self::Smart, [0xe2, 0x80, 0x9c..=0x9f, ..])
            | (Self::SmartSingle, [0xe2, 0x80, 0x98..=0x9b, ..])
            | (Self::Wide, [0xef, 0xbc, 0x82, ..]) => 3,
            _ => 0,
        }
    }

    /// Length of the curly mark at the end of a text that was opened by a straight one, if it is
    /// likelier the end of the string than text; 0 if not. One with a partner in the text is text.
    pub(super) fn curly_end(self, text: &str) -> usize {
        let is_double = |letter: char| matches!(letter, '“'..='‟' | '＂');
        let is_opening = |letter: char| matches!(letter, '‘' | '‚' | '‛');
        let Some(last) = text.chars().next_back() else { return 0 };
        let before = text.get(..text.len() - last.len_utf8()).unwrap_or_default();
        let is_end = match self {
            Self::Double => is_double(last) && before.matches(is_double).count() % 2 == 0,
            // `’` is an apostrophe, too, and so says nothing of pairs.
            Self::Single => matches!(last, '‘'..='‛') && !before.contains(is_opening),
            _ => false,
        };
        if is_end { last.len_utf8() } else { 0 }
    }

    /// How the change to strict quotes is reported; `None` if there is no change.
    pub(super) const fn kind(self) -> Option<Kind> {
        match self {
            Self::Double => None,
            Self::Single => Some(Kind::SingleQuotes),
            Self::Back => Some(Kind::Backticks),
            Self::Smart | Self::SmartSingle => Some(Kind::SmartQuotes),
            Self::Wide => Some(Kind::Fullwidth),
            Self::Doubled => Some(Kind::DoubledQuotes),
            Self::Triple | Self::TripleSingle => Some(Kind::TripleQuote),
        }
    }

    /// Length of the opening mark.
    pub(super) const fn width(self) -> usize {
        match self {
            Self::Double | Self::Single | Self::Back => 1,
            Self::Doubled => 2,
            Self::Smart | Self::SmartSingle | Self::Wide | Self::Triple | Self::TripleSingle => 3,
        }
    }
}
