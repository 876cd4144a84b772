//! What was changed in a reply, where, and why it may be changed.
//!
//! A mended document is its raw text with edits applied, and nothing else: the tape is made from
//! the result of [`apply`]. So no value can appear that an edit does not name.

mod kind;
mod place;
mod splice;

pub use kind::{Class, Kind, KindSet};
pub use place::Edit;
pub(crate) use place::{line_and_column, report, whereabouts};
pub use splice::apply;
pub(crate) use splice::{Change, Long, Text, spliced, spliced_into};
