//! Takes the lowering of a schema back on a reply, between its syntax and its schema.

use backstay_decide::fault::Fault;
use backstay_wire::lower::{EventKind, Lowering, RepeatedKey, Undone};

use super::outline::Outline;
use super::syntax::Parsed;
use super::{Edit, EditKind, Layer, Problem, Unfit};

/// What chooses among the readings of a reply: the schema's `outline`, unless the reply is to have
/// the lowered form, which the schema does not know.
pub(super) fn guide<'o>(lowering: Option<&Lowering>, outline: &'o Outline) -> &'o Outline {
    if lowering.is_some_and(Lowering::acts) { Outline::anything() } else { outline }
}

/// The document in the schema's own form, with an edit for everything undone.
///
/// # Errors
/// Two entries of a map have the same key.
pub(super) fn undone(parsed: Parsed, lowering: Option<&Lowering>) -> Result<Parsed, Unfit> {
    let (Some(lowering), Some(root)) = (lowering, parsed.root()) else { return Ok(parsed) };
    let Some(Undone { text, events }) = lowering.undo(root).map_err(|fault| repeated(&fault))?
    else {
        return Ok(parsed);
    };
    // What was written of strict pieces is strict, so this holds.
    let Some(raised) = Parsed::strict(text) else { return Ok(parsed) };
    let mut edits = parsed.edits;
    edits.extend(events.iter().map(|event| {
        let before = if event.kind == EventKind::NullDropped { "null" } else { "" };
        Edit::of_value(EditKind::Raised(event.kind), &event.pointer, before, "")
    }));
    Ok(Parsed { edits, ..raised })
}

fn repeated(fault: &RepeatedKey) -> Unfit {
    let place = if fault.pointer.is_empty() { "" } else { ": " };
    let message = format!("{}{place}duplicate key '{}'", fault.pointer, fault.key);
    let problem = Problem::new(&fault.pointer, "duplicate_key", message);
    Unfit::of(Fault::SchemaError, Layer::Schema, vec![problem])
}
