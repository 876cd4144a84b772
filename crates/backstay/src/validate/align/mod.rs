//! Brings values to the form their schema wants, where that loses nothing and the route allows it.
//!
//! ```text
//!  parsed ─check─▶ fits ──────────────────────────────────────────────▶ as it is
//!            └────▶ does not ─walk: node and outline side by side─▶ splices ─▶ text ─check─▶ …
//! ```
//!
//! Only a document that breaks its schema is touched. A change is a splice of the text, so numbers
//! keep their digits and everything else its spelling; each is named with its path. Nothing is
//! computed, rounded or chosen by likeness: `"2.5"` is no integer, and a word that folds into two
//! members of an enum is none of them. What is not in the reply (a `default`, a declared fallback)
//! is named as that.

mod cursor;
mod fallback;
mod splice;
mod walk;

use serde_json::Value;

pub(super) use fallback::{Asking, settled};
use walk::Aligned;

use super::outline::Spot;
use super::syntax::Parsed;
use super::{Layer, Schema, Unfit};
use crate::policy::{Align, Field};

/// What may be done, and which fields have a fallback of their own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wants<'a> {
    pub(super) align: &'a Align,
    pub(super) fields: &'a [Field],
}

/// A document that fits its schema, aligned if it has to be.
///
/// # Errors
/// It does not fit. The candidate is what alignment made of it.
pub(super) fn fitted(parsed: Parsed, schema: &Schema, wants: Wants<'_>) -> Result<Parsed, Unfit> {
    let Err(unfit) = check(&parsed, schema) else { return Ok(parsed) };
    if !wants.align.allows_any() {
        return Err(unfit.about(parsed));
    }
    let aligned = match walk::aligned(&parsed, schema.outline(), wants) {
        Aligned::Changed(aligned) => aligned,
        Aligned::Same => return Err(unfit.about(parsed)),
        Aligned::TooCostly => return Err(unfit.and_cut("too costly to align").about(parsed)),
    };
    match check(&aligned, schema) {
        Ok(()) => Ok(aligned),
        Err(unfit) => Err(unfit.about(aligned)),
    }
}

/// Checks a document against its schema.
pub(super) fn check(parsed: &Parsed, schema: &Schema) -> Result<(), Unfit> {
    let Some(root) = parsed.root() else { return Err(Unfit::empty()) };
    schema.check_node(root)
}

impl Unfit {
    /// The same, with the document it is about.
    fn about(self, parsed: Parsed) -> Self {
        debug_assert!(self.layer == Layer::Schema, "only the schema is checked here");
        let candidate = super::Candidate { text: parsed.text, edits: parsed.edits };
        Self { candidate: Some(Box::new(candidate)), ..self }
    }
}

/// The declared fallback of the field at `pointer`: the route's, else the schema's.
fn declared<'a>(pointer: &str, fields: &'a [Field], spot: &'a Spot) -> Option<&'a Value> {
    let field = fields.iter().find(|field| field.at.matches(pointer));
    field.and_then(|field| field.fallback.as_deref()).or(spot.fallback.as_ref())
}

#[cfg(test)]
mod tests;
