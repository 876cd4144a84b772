//! A reply that passed, and every change that was made to it on the way.

use std::fmt;
use std::ops::Range;

use backstay_wire::lower::EventKind;
use jsonmend::{Document, Node};
use serde_json::Value;

use super::clipped;
use crate::policy::Coercion;

/// The most bytes of a text before or after a change that are kept.
const MAX_SHOWN: usize = 200;

/// The most bytes of a path that are kept.
const MAX_PATH: usize = 300;

/// A reply that passed every layer.
#[derive(Clone, Default)]
pub struct Checked {
    /// The text as it may be handed on: the model's own, with the edits made.
    pub text: String,
    /// The text parsed, where JSON was asked for. `None` for text, and for calls of tools.
    pub document: Option<Document>,
    /// The changes, in the order they were made. Empty: the reply is as the model wrote it.
    pub edits: Vec<Edit>,
    /// New arguments of tool calls. Empty: all are as they came.
    pub arguments: Vec<NewArguments>,
}

/// Arguments of a tool call that were changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewArguments {
    /// The place of the call among the parts of the choice.
    pub part: usize,
    /// Which of the choice's calls it is, from 0.
    pub call: usize,
    /// Strict JSON.
    pub text: String,
}

/// One change to a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// What was done.
    pub kind: EditKind,
    /// Which of the reply's choices it is in, from 0.
    pub choice: usize,
    /// The tool whose arguments were changed. `None`: the text.
    pub tool: Option<String>,
    /// JSON pointer to the value; empty for the whole document.
    pub path: String,
    /// Where in the raw reply; `None` for changes of values.
    pub place: Option<Place>,
    /// What was there, cut at 200 bytes.
    pub before: String,
    /// What is there now, cut at 200 bytes.
    pub after: String,
}

/// Where in the raw reply a change was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The bytes that were replaced; empty for an insertion.
    pub span: Range<usize>,
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
}

/// A kind of change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EditKind {
    /// A repair of the syntax.
    Syntax(jsonmend::Kind),
    /// The same text in another type.
    Coerced(Coercion),
    /// A member of an enum in another spelling.
    EnumFold,
    /// No member of the enum: the declared fallback.
    EnumFallback,
    /// A forbidden key left out.
    ExtraDropped,
    /// A missing key with the schema's default.
    DefaultApplied,
    /// A document that stood inside a string.
    DoubleEncoded,
    /// A field that broke the schema: the declared fallback.
    FieldFallback,
    /// A field that breaks the schema, and was let through.
    Flagged,
    /// Blank arguments of a tool that needs none.
    NoArguments,
    /// What the schema's lowering for the provider had changed, taken back.
    Raised(EventKind),
}

/// How far a reply with its changes is from what the model wrote. Ordered: the worst counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Nothing was changed.
    AsItCame,
    /// Every value was in the reply.
    Mended,
    /// Some value breaks the schema, and the route lets it.
    Flagged,
    /// Something was cut off or dropped.
    Partial,
    /// Some value is the route's or the schema's, not the model's.
    Fallback,
}

impl Checked {
    /// A reply in text, or one that calls tools.
    pub(super) fn of_text(text: String) -> Self {
        Self { text, ..Self::default() }
    }

    /// The value, where JSON was asked for.
    pub fn node(&self) -> Option<Node<'_>> {
        self.document.as_ref()?.root(&self.text)
    }

    /// The value, built. Numbers past 64 bits lose digits here, and only here.
    pub fn value(&self) -> Option<Value> {
        self.node().map(Node::to_value)
    }

    /// The worst of the edits.
    pub fn standing(&self) -> Standing {
        let worst = self.edits.iter().map(|edit| edit.kind.standing()).max();
        worst.unwrap_or(Standing::AsItCame)
    }
}

impl Edit {
    /// A change of a value.
    pub(super) fn of_value(kind: EditKind, path: &str, before: &str, after: &str) -> Self {
        Self {
            kind,
            choice: 0,
            tool: None,
            path: clipped(path, MAX_PATH),
            place: None,
            before: clipped(before, MAX_SHOWN),
            after: clipped(after, MAX_SHOWN),
        }
    }

    /// A repair, as the parser reports it.
    pub(super) fn of_syntax(edit: jsonmend::Edit) -> Self {
        Self {
            kind: EditKind::Syntax(edit.kind),
            choice: 0,
            tool: None,
            path: clipped(&edit.path, MAX_PATH),
            place: Some(Place { span: edit.span, line: edit.line, column: edit.column }),
            before: clipped(&edit.before, MAX_SHOWN),
            after: clipped(&edit.after, MAX_SHOWN),
        }
    }
}

impl EditKind {
    /// The kinds that are no repairs of the syntax.
    pub const OF_VALUES: [Self; 18] = [
        Self::Coerced(Coercion::StrInt),
        Self::Coerced(Coercion::StrNum),
        Self::Coerced(Coercion::StrBool),
        Self::Coerced(Coercion::NumStr),
        Self::Coerced(Coercion::ScalarArray),
        Self::Coerced(Coercion::ArrayScalar),
        Self::Coerced(Coercion::JsonObject),
        Self::EnumFold,
        Self::EnumFallback,
        Self::ExtraDropped,
        Self::DefaultApplied,
        Self::DoubleEncoded,
        Self::FieldFallback,
        Self::Flagged,
        Self::NoArguments,
        Self::Raised(EventKind::NullDropped),
        Self::Raised(EventKind::ValueUnwrapped),
        Self::Raised(EventKind::MapRebuilt),
    ];

    /// The name in headers, logs and metrics. Names are only ever added.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Syntax(kind) => kind.name(),
            Self::Coerced(Coercion::StrInt) => "coerce_str_int",
            Self::Coerced(Coercion::StrNum) => "coerce_str_num",
            Self::Coerced(Coercion::StrBool) => "coerce_str_bool",
            Self::Coerced(Coercion::NumStr) => "coerce_num_str",
            Self::Coerced(Coercion::ScalarArray) => "coerce_scalar_array",
            Self::Coerced(Coercion::ArrayScalar) => "coerce_array_scalar",
            Self::Coerced(Coercion::JsonObject) => "coerce_json_object",
            Self::EnumFold => "enum_fold",
            Self::EnumFallback => "enum_fallback",
            Self::ExtraDropped => "extra_dropped",
            Self::DefaultApplied => "default_applied",
            Self::DoubleEncoded => "double_encoded",
            Self::FieldFallback => "field_fallback",
            Self::Flagged => "flagged",
            Self::NoArguments => "no_arguments",
            Self::Raised(kind) => kind.name(),
        }
    }

    /// How far the change can be trusted: a class of the parser's, `raised`, `aligned`, `dropped`,
    /// `fallback` or `flagged`.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Syntax(kind) => kind.class().name(),
            Self::Coerced(_) | Self::EnumFold | Self::DoubleEncoded | Self::NoArguments => {
                "aligned"
            }
            Self::Raised(_) => "raised",
            Self::ExtraDropped => "dropped",
            Self::EnumFallback | Self::FieldFallback | Self::DefaultApplied => "fallback",
            Self::Flagged => "flagged",
        }
    }

    fn standing(self) -> Standing {
        match self {
            Self::Syntax(kind) if kind.class() == jsonmend::Class::Partial => Standing::Partial,
            // The reply is as it was asked for.
            Self::Raised(_) => Standing::AsItCame,
            Self::Syntax(_)
            | Self::Coerced(_)
            | Self::EnumFold
            | Self::ExtraDropped
            | Self::DoubleEncoded
            | Self::NoArguments => Standing::Mended,
            Self::Flagged => Standing::Flagged,
            Self::EnumFallback | Self::FieldFallback | Self::DefaultApplied => Standing::Fallback,
        }
    }
}

/// Prints lengths: a reply is not for logs.
impl fmt::Debug for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kinds: Vec<&str> = self.edits.iter().map(|edit| edit.kind.name()).collect();
        f.debug_struct("Checked")
            .field("value", &self.document.is_some())
            .field("text_bytes", &self.text.len())
            .field("edits", &kinds)
            .finish_non_exhaustive()
    }
}
