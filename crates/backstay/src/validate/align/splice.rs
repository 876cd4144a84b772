//! Changes of a text, in order.

use std::ops::Range;

/// One stretch of text and what takes its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Splice {
    pub(super) span: Range<usize>,
    pub(super) after: String,
}

/// The text with all splices made. They are in order and do not overlap.
pub(super) fn spliced(text: &str, splices: &[Splice]) -> String {
    let mut made = String::with_capacity(text.len());
    let mut kept = 0;
    for Splice { span, after } in splices {
        made.push_str(text.get(kept..span.start).unwrap_or_default());
        made.push_str(after);
        kept = span.end;
    }
    made.push_str(text.get(kept..).unwrap_or_default());
    made
}
