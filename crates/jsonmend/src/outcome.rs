//! What came of a reply: a value with its edits, several readings, or a refusal with its reason.

use std::fmt;
use std::ops::Range;

use crate::edit::{Change, Class, Edit, Kind, KindSet, line_and_column, report, whereabouts};
use crate::halt::Halt;
use crate::tape::{Node, Tape};

/// What came of a reply.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// Strict JSON, untouched and without an edit.
    Valid(Document),
    /// Mended; every value in it was in the reply.
    Mended(Document),
    /// Cut or with something dropped; what is there was in the reply.
    Partial(Document),
    /// Two readings or more. None is accepted.
    Ambiguous(Ambiguity),
    /// No document, or one that the policy does not accept.
    Rejected(Refusal),
}

impl Outcome {
    /// The document, if one was accepted.
    pub fn document(&self) -> Option<&Document> {
        match self {
            Self::Valid(document) | Self::Mended(document) | Self::Partial(document) => {
                Some(document)
            }
            Self::Ambiguous(_) | Self::Rejected(_) => None,
        }
    }

    /// The name in reports: `valid`, `mended`, `partial`, `ambiguous` or `rejected`.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Valid(_) => "valid",
            Self::Mended(_) => "mended",
            Self::Partial(_) => "partial",
            Self::Ambiguous(_) => "ambiguous",
            Self::Rejected(_) => "rejected",
        }
    }
}

/// An accepted document. It holds offsets; look at it together with the raw reply.
#[derive(Clone)]
pub struct Document {
    pub(crate) tape: Tape,
    /// The text after all edits; `None` if there are none, and the raw reply is the text.
    pub(crate) mended: Option<String>,
    pub(crate) changes: Vec<Change>,
    /// Texts of changes that are too long for them.
    pub(crate) long: Vec<Box<str>>,
    pub(crate) kinds: KindSet,
    pub(crate) class: Class,
}

impl Document {
    /// The strict JSON text of the document, with white space where prose was.
    pub fn text<'t>(&'t self, raw: &'t str) -> &'t str {
        self.mended.as_deref().unwrap_or(raw)
    }

    /// The value, seen together with the raw reply it was read from.
    pub fn root<'t>(&'t self, raw: &'t str) -> Option<Node<'t>> {
        self.tape.view(self.text(raw))
    }

    /// The tape.
    pub fn tape(&self) -> &Tape {
        &self.tape
    }

    /// How many edits there are. 0 for valid documents.
    pub fn edit_count(&self) -> usize {
        self.changes.len()
    }

    /// Each kind of edit, in the order of the text, without the cost of a full report.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> + '_ {
        self.changes.iter().map(|change| change.kind)
    }

    /// Every edit, in the order of the text.
    pub fn edits(&self, raw: &str) -> Vec<Edit> {
        report(raw, (&self.changes, &self.long), &self.tape, self.text(raw))
    }

    /// The place of an offset of the raw reply.
    pub(crate) fn spot(&self, raw: &str, at: usize) -> Spot {
        let seen = (&self.tape, self.text(raw));
        let (line, column, path) = whereabouts(raw, &self.changes, seen, at);
        Spot { span: at..at, line, column, path }
    }

    /// The worst class of any edit.
    pub fn class(&self) -> Class {
        self.class
    }
}

/// Prints sizes, never the content.
impl fmt::Debug for Document {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "Document({}, {} words, {} edits)",
            self.class.name(),
            self.tape.len(),
            self.changes.len()
        )
    }
}

/// Why a reply has no single reading, and the readings.
#[derive(Clone, Debug)]
pub struct Ambiguity {
    /// What is in doubt.
    pub reason: Doubtful,
    /// The likely documents, the likeliest first; at most four. May be one or none, when the text
    /// holds no value for something. Of a key given more than twice there are the readings with
    /// its first and its last value.
    pub readings: Vec<Document>,
    /// How many more there are: documents, or values of the same key.
    pub more: usize,
    /// Where the doubt is, if it is at one place.
    pub spot: Option<Spot>,
}

/// A place in the reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Bytes of the raw reply; empty for a place between two of them.
    pub span: Range<usize>,
    /// Line of the span's start, from 1.
    pub line: usize,
    /// Column of the span's start in characters, from 1.
    pub column: usize,
    /// JSON Pointer to the value there, in the first reading; empty for the root.
    pub path: String,
}

impl Spot {
    /// A place in no document.
    pub(crate) fn bare(raw: &str, at: usize) -> Self {
        let (line, column) = line_and_column(raw, at);
        Self { span: at..at, line, column, path: String::new() }
    }
}

/// What is in doubt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Doubtful {
    /// The damage can be explained in two ways with two values.
    Readings,
    /// There is more than one document.
    Candidates,
    /// A key stands twice in an object with two values.
    DuplicateKey,
    /// What stands for a value has no value in JSON, or could be one of two.
    Value,
    /// Text beside the document looks like a part of it.
    Rest,
}

impl Doubtful {
    /// A stable name for reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Readings => "two_readings",
            Self::Candidates => "several_documents",
            Self::DuplicateKey => "duplicate_key",
            Self::Value => "doubtful_value",
            Self::Rest => "rest_looks_like_json",
        }
    }
}

/// Why a reply was rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// The reply is blank.
    Empty,
    /// The reply is not UTF-8; the offset of the first bad byte.
    NotUtf8(usize),
    /// Nothing in the reply can be read as a document; where reading went furthest.
    NoDocument(Box<Halt>),
    /// Containers are nested deeper than the limit.
    TooDeep,
    /// The reply is longer than the limit.
    TooLarge,
    /// More edits are needed than the limit.
    TooManyEdits,
    /// There are more places where a document may begin than the limit.
    TooManyCandidates,
    /// The document needs a kind of edit that the policy does not allow.
    NotAllowed(Kind),
    /// The document is of a worse class than the policy accepts.
    WorseClass(Class),
}

impl Refusal {
    /// A stable name for reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::NotUtf8(_) => "not_utf8",
            Self::NoDocument(_) => "no_document",
            Self::TooDeep => "too_deep",
            Self::TooLarge => "too_large",
            Self::TooManyEdits => "too_many_edits",
            Self::TooManyCandidates => "too_many_candidates",
            Self::NotAllowed(_) => "kind_not_allowed",
            Self::WorseClass(_) => "class_not_accepted",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => out.write_str("the reply is blank"),
            Self::NotUtf8(at) => write!(out, "the reply is not UTF-8 at byte {at}"),
            Self::NoDocument(halt) => write!(out, "no JSON document can be read: {halt}"),
            Self::TooDeep => out.write_str("the document is nested deeper than the limit"),
            Self::TooLarge => out.write_str("the reply is longer than the limit"),
            Self::TooManyEdits => out.write_str("the document needs more edits than the limit"),
            Self::TooManyCandidates => {
                out.write_str("the reply has more beginnings of documents than the limit")
            }
            Self::NotAllowed(kind) => write!(out, "the policy does not allow the edit `{kind}`"),
            Self::WorseClass(class) => {
                write!(out, "the policy does not accept the class `{}`", class.name())
            }
        }
    }
}

impl std::error::Error for Refusal {}
