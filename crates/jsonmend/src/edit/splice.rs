//! Replays edits onto a text.

use std::borrow::Cow;
use std::ops::Range;

use super::kind::Kind;
use super::place::Edit;

/// What a change puts in place: mostly a mark or two.
pub(crate) type Text = Cow<'static, str>;

/// One change, in offsets of the raw text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) kind: Kind,
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) after: Text,
}

impl Change {
    pub(crate) fn new(kind: Kind, span: Range<usize>, after: impl Into<Text>) -> Self {
        Self { kind, start: span.start, end: span.end, after: after.into() }
    }
}

/// The text with all changes made. They are in order and do not overlap.
pub(crate) fn spliced(raw: &str, changes: &[Change]) -> String {
    let mut text = String::with_capacity(raw.len() + changes.len() * 2);
    let mut kept = 0;
    for change in changes {
        text.push_str(raw.get(kept..change.start).unwrap_or_default());
        text.push_str(&change.after);
        kept = change.end;
    }
    text.push_str(raw.get(kept..).unwrap_or_default());
    text
}

/// Makes the edits of a report in the raw reply: the mended text, which parses strictly to the
/// value of the report. `None` if the edits are not of this reply.
pub fn apply(edits: &[Edit], raw: &str) -> Option<String> {
    let mut text = String::with_capacity(raw.len());
    let mut kept = 0;
    for edit in edits {
        if raw.get(edit.span.clone())? != edit.before {
            return None;
        }
        text.push_str(raw.get(kept..edit.span.start)?);
        text.push_str(&edit.after);
        kept = edit.span.end;
    }
    text.push_str(raw.get(kept..)?);
    Some(text)
}
