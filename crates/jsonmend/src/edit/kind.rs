//! The kinds of repair, their report names and the class of each.

use std::fmt;

/// How much a change can be trusted. Ordered: the class of a document is the worst of its edits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Strict JSON, untouched.
    Valid,
    /// Another notation for the same value, such as a fence, a comment or single quotes.
    Lossless,
    /// Damage with one reading, such as a missing comma.
    Unique,
    /// What is there is right, but some was cut off or dropped.
    Partial,
    /// Two readings, or a value that is not in the text.
    Ambiguous,
}

impl Class {
    /// The name in reports: `valid`, `lossless`, `unique`, `partial` or `ambiguous`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Lossless => "lossless",
            Self::Unique => "unique",
            Self::Partial => "partial",
            Self::Ambiguous => "ambiguous",
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident, $report:literal, $class:ident;)*) => {
        /// A kind of repair. Report names are stable and only ever added to.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        #[repr(u8)]
        pub enum Kind { $($(#[$doc])* $name,)* }

        impl Kind {
            /// Every kind, in the order of the reference.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name in reports, such as `trailing_comma`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $report,)* }
            }

            /// The class that one repair of this kind has at best.
            pub const fn class(self) -> Class {
                match self { $(Self::$name => Class::$class,)* }
            }
        }
    };
}

kinds! {
    /// A byte-order mark before the document.
    Bom, "bom", Lossless;
    /// A block of reasoning such as `<think>…</think>`.
    ThinkBlock, "think_block", Lossless;
    /// A Markdown fence or inline code ticks around the document.
    Fence, "fence", Lossless;
    /// Text before the document.
    ProseBefore, "prose_before", Lossless;
    /// Text behind the document.
    ProseAfter, "prose_after", Lossless;
    /// A tag, call or assignment around the document.
    Wrapper, "wrapper", Lossless;
    /// A comma before a closer or behind the root.
    TrailingComma, "trailing_comma", Lossless;
    /// A comma before the first member.
    LeadingComma, "leading_comma", Unique;
    /// Two commas between members.
    DoubleComma, "double_comma", Unique;
    /// A comma where an array may have lost an element.
    ElidedItem, "elided_item", Partial;
    /// No comma between two values.
    MissingComma, "missing_comma", Unique;
    /// A semicolon for a comma, or behind the root.
    Semicolon, "semicolon", Unique;
    /// No colon between key and value.
    MissingColon, "missing_colon", Unique;
    /// `=`, `=>` or `::` for a colon.
    WrongColon, "wrong_colon", Unique;
    /// A string in single quotes.
    SingleQuotes, "single_quotes", Lossless;
    /// A string in typographic quotes.
    SmartQuotes, "smart_quotes", Lossless;
    /// A string in backticks.
    Backticks, "backticks", Lossless;
    /// A key without quotes.
    UnquotedKey, "unquoted_key", Unique;
    /// Text without quotes.
    UnquotedValue, "unquoted_value", Unique;
    /// A string that lost its opening quote.
    MissingOpenQuote, "missing_open_quote", Unique;
    /// A string that lost its closing quote.
    MissingCloseQuote, "missing_close_quote", Unique;
    /// `""a""` for `"a"`.
    DoubledQuotes, "doubled_quotes", Unique;
    /// A document whose every quote is escaped once more.
    EscapedDocument, "escaped_document", Lossless;
    /// A quote inside a string that was not escaped.
    InnerQuote, "inner_quote", Unique;
    /// A raw line break or other control character in a string.
    RawControl, "raw_control", Lossless;
    /// A backslash before a character that needs none, kept as text.
    BadEscape, "bad_escape", Unique;
    /// `\'`: an escape of another notation for the character itself.
    NeedlessEscape, "needless_escape", Lossless;
    /// `\x41` or `\u{41}`.
    HexEscape, "hex_escape", Unique;
    /// A backslash at the end of a line, which joins two lines.
    LineContinuation, "line_continuation", Unique;
    /// `TRUE`, `False` or `NULL`.
    LiteralCase, "literal_case", Lossless;
    /// `True`, `False` or `None`.
    PythonLiteral, "python_literal", Lossless;
    /// A Python tuple.
    Tuple, "tuple", Unique;
    /// `ObjectId("…")` and its kin.
    MongoCall, "mongo_call", Unique;
    /// Two strings joined by `+`.
    Concat, "concat", Unique;
    /// A string in triple quotes.
    TripleQuote, "triple_quote", Unique;
    /// `.5`, `5.`, `+5` or `1_000`.
    NumberForm, "number_form", Lossless;
    /// A comment.
    Comment, "comment", Lossless;
    /// A container that was not closed.
    MissingCloser, "missing_closer", Unique;
    /// A closer of the wrong kind.
    WrongCloser, "wrong_closer", Unique;
    /// A closer that closes nothing.
    ExtraCloser, "extra_closer", Unique;
    /// A root without its opening brace.
    MissingOpener, "missing_opener", Unique;
    /// `{{ … }}` for `{ … }`.
    DoubledBraces, "doubled_braces", Unique;
    /// Full-width structural marks.
    Fullwidth, "fullwidth", Unique;
    /// A space that JSON does not know.
    OddSpace, "odd_space", Lossless;
    /// A member given twice with the same value.
    DupSame, "dup_same", Lossless;
    /// A member given twice with two values, of which policy chose one.
    DupKey, "dup_key", Ambiguous;
    /// The whole document given twice.
    SameRootTwice, "same_root_twice", Unique;
    /// Several documents made one array by policy.
    Ndjson, "ndjson", Ambiguous;
    /// Another document that policy left out.
    OtherCandidate, "other_candidate", Ambiguous;
    /// A string that the end of the text cut.
    TruncString, "trunc_string", Partial;
    /// A key that the end of the text cut, dropped.
    TruncKey, "trunc_key", Partial;
    /// A member whose value was not reached, dropped.
    TruncValue, "trunc_value", Partial;
    /// A number at the end of the text, dropped or kept by policy.
    TruncNumber, "trunc_number", Partial;
    /// A literal that the end of the text cut, dropped.
    TruncLiteral, "trunc_literal", Partial;
    /// Half an escape at the end of the text, dropped.
    TruncEscape, "trunc_escape", Partial;
    /// A container that the end of the text left open.
    TruncContainer, "trunc_container", Partial;
    /// A word that may be a number or text, read as text by policy or schema.
    BareNumber, "bare_number", Ambiguous;
    /// `NaN` or an infinity, which JSON cannot say, mapped by policy.
    Nan, "nan", Ambiguous;
}

impl fmt::Display for Kind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl Kind {
    /// Says whether it may be the quote that was put before a string.
    pub(crate) const fn opens_string(self) -> bool {
        matches!(self, Self::MissingOpenQuote)
    }

    /// The kind of this report name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KindSet(u128);

impl KindSet {
    /// No kind.
    pub const NONE: Self = Self(0);
    /// Every kind, also those that later versions add.
    pub const ALL: Self = Self(u128::MAX);

    /// Just these kinds.
    pub fn of(kinds: &[Kind]) -> Self {
        kinds.iter().fold(Self::NONE, |set, kind| set.with(*kind))
    }

    /// This set and one kind more.
    #[must_use]
    pub const fn with(self, kind: Kind) -> Self {
        Self(self.0 | 1 << kind as u8)
    }

    /// This set without one kind.
    #[must_use]
    pub const fn without(self, kind: Kind) -> Self {
        Self(self.0 & !(1 << kind as u8))
    }

    /// The worst class of a kind in the set; valid for none.
    pub(crate) fn class(self) -> Class {
        let kinds = Kind::ALL.iter().filter(|kind| self.has(**kind));
        kinds.map(|kind| kind.class()).max().unwrap_or(Class::Valid)
    }

    /// Says whether every kind of this set is in the other.
    pub(crate) const fn is_within(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Says whether the kind is in the set.
    pub const fn has(self, kind: Kind) -> bool {
        self.0 >> kind as u8 & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_lead_back_to_their_kinds() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.name()), Some(*kind));
        }
        assert!(Kind::ALL.len() <= 128, "a set has 128 bits");
    }

    #[test]
    fn a_set_holds_what_was_put_in() {
        let set = KindSet::of(&[Kind::Fence, Kind::Bom]);
        assert!(set.has(Kind::Fence) && set.has(Kind::Bom) && !set.has(Kind::Comment));
        assert!(!set.without(Kind::Bom).has(Kind::Bom));
        assert!(KindSet::ALL.has(Kind::Nan));
    }
}
