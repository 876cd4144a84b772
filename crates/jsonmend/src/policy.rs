//! What may be mended, what is refused, and the limits of a run.

use crate::edit::{Class, Kind, KindSet};

/// How the reply ended, as far as the transport knows. Only this decides whether an open container
/// was cut off or is damage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Status {
    /// Nobody said. An open container counts as cut, and the result as partial.
    #[default]
    Unknown,
    /// The model ended by itself: an open container is damage.
    Stopped,
    /// The reply ran into a limit: an open container was cut.
    Cut,
}

/// What to do with a key that an object has twice with two values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DupKeys {
    /// The document is ambiguous. The same value twice is one member.
    #[default]
    SameOnly,
    /// Also the same value twice is ambiguous.
    Reject,
    /// The first member counts.
    First,
    /// The last member counts.
    Last,
}

/// What to do with `NaN` and infinities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Nan {
    /// The document is ambiguous.
    #[default]
    Reject,
    /// They become `null`.
    Null,
    /// They become a string of their letters.
    Text,
}

/// What to do with a word that looks like a number and is none, such as `007`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BareNumber {
    /// The document is ambiguous, unless the schema wants a string there.
    #[default]
    Reject,
    /// It becomes a string of its letters.
    Text,
}

/// What becomes of something that stands at the cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtCut {
    /// What is there is kept.
    Keep,
    /// It is left out.
    Drop,
}

/// What to do with several different documents in one reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Several {
    /// The reply is ambiguous, unless the schema fits one of them only, and the others are plainly
    /// no attempts at the same answer: roots of another kind, or objects that share no name with
    /// the schema and the one that fits.
    #[default]
    Only,
    /// The first counts.
    First,
    /// The last counts.
    Last,
    /// The longest counts.
    Largest,
    /// All become the elements of one array.
    Array,
}

/// Bounds on one run. Exceeding one is a refusal, never a panic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Levels of nesting, 1 to 1024.
    pub depth: usize,
    /// Bytes of input, at most 2^28 - 1.
    pub input: usize,
    /// Places where a document may begin.
    pub candidates: usize,
    /// Edits in one document.
    pub edits: usize,
}

impl Default for Limits {
    /// 128 levels, as `serde_json` has; 16 MiB; 16 candidates; 1000 edits.
    fn default() -> Self {
        Self { depth: 128, input: 16 << 20, candidates: 16, edits: 1000 }
    }
}

/// Everything that decides what is accepted. Start from [`Policy::strict`], [`Policy::standard`]
/// or [`Policy::lenient`] and change fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// Kinds that may be mended. A document that needs another kind is rejected.
    pub allow: KindSet,
    /// The worst class that is accepted: at most [`Class::Partial`]. What a knob below decides
    /// by name is accepted too.
    pub worst: Class,
    /// Keys given twice.
    pub dup_keys: DupKeys,
    /// `NaN` and infinities.
    pub nan: Nan,
    /// `007`, `1e` and `1/3`.
    pub bare_number: BareNumber,
    /// Several different documents.
    pub several: Several,
    /// A string at the cut.
    pub cut_string: AtCut,
    /// A number at the cut: it may lack digits.
    pub cut_number: AtCut,
    /// Bounds.
    pub limits: Limits,
}

impl Policy {
    /// Mends notation and damage with one reading; refuses what is partial or ambiguous.
    pub fn strict() -> Self {
        Self { worst: Class::Unique, ..Self::standard() }
    }

    /// As strict, and accepts a cut document, marked as partial. The default.
    pub fn standard() -> Self {
        Self {
            allow: KindSet::ALL,
            worst: Class::Partial,
            dup_keys: DupKeys::SameOnly,
            nan: Nan::Reject,
            bare_number: BareNumber::Reject,
            several: Several::Only,
            cut_string: AtCut::Keep,
            cut_number: AtCut::Drop,
            limits: Limits::default(),
        }
    }

    /// As standard, and decides by rule what is ambiguous in the text itself: the last of two
    /// keys, `NaN` and odd numbers as their letters, several documents as an array.
    pub fn lenient() -> Self {
        Self {
            dup_keys: DupKeys::Last,
            nan: Nan::Text,
            bare_number: BareNumber::Text,
            several: Several::Array,
            ..Self::standard()
        }
    }

    /// Accepts these kinds of repair and no other.
    #[must_use]
    pub fn allowing(mut self, kinds: &[Kind]) -> Self {
        self.allow = KindSet::of(kinds);
        self
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::standard()
    }
}
