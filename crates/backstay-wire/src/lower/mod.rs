//! Fits a schema to what a provider takes, and undoes on the reply what that changed.
//!
//! ```text
//!  source schema ─lower─▶ schema of the subset ─▶ provider ─▶ reply in the lowered form
//!                  └─▶ Lowering: changes, forms ──undo──▶ reply in the source's form ─▶ full check
//! ```
//! The reply is always checked against the source, so a keyword left out costs likelihood, never
//! truth. Every change is listed; where a change alters what a reply looks like (a wrapped root, a
//! map as entries, a property made nullable), [`Lowering::undo`] takes it back.
//!
//! Schemas come from callers: everything here is bounded by size, depth and work.

mod apart;
mod array;
mod change;
mod fault;
mod finish;
mod form;
mod kinds;
mod merge;
mod node;
mod null;
mod object;
mod own;
mod refs;
mod subset;
mod tally;
mod undo;
mod union;
mod walk;
mod words;

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

pub use change::{Change, Rule};
pub use fault::CannotLower;
pub use own::{cut_own, own_values, without_own};
pub use subset::Subset;
pub use tally::Tally;
pub use undo::{Event, EventKind, RepeatedKey, Undone};

use form::Form;
use walk::{Pass, Stop};

/// How deep a schema may nest, references followed. 64: none in use is half as deep.
const MAX_DEPTH: usize = 64;

/// The most bytes a lowered schema may take, about, and the work to get there. 4 MiB: the largest
/// schema a provider is known to take.
const MAX_SPENT: usize = 4 * 1024 * 1024;

/// How many times a definition may stand in itself where recursion is unrolled. 3: a tree of four
/// levels is rare in an answer, and each level multiplies the schema.
const UNROLL: usize = 3;

/// What is said before a schema.
const INSTRUCTION: &str = "Answer with one JSON value and nothing else: no text before or after it, \
    no code fence. It must be valid against this JSON Schema:\n";

/// Marks in a schema being lowered; no keyword begins so, and none leaves this module.
const MARK: &str = "\u{1}backstay ";
const OPTIONAL: &str = "\u{1}backstay optional";
const MAP: &str = "\u{1}backstay map";
const EXTRA: &str = "\u{1}backstay extra";
const TUPLE: &str = "\u{1}backstay tuple";
const WRAPPED: &str = "\u{1}backstay wrapped";

/// A lowered schema and how it came to be.
#[derive(Clone, Debug)]
pub struct Lowered {
    /// The schema to send.
    pub schema: Value,
    /// What was changed, and how it is undone.
    pub lowering: Lowering,
    /// What the request has used of the provider's limits with this schema.
    pub tally: Tally,
}

/// What a lowering changed, and how it is undone on a reply.
#[derive(Clone, Debug, Default)]
pub struct Lowering {
    changes: Vec<Change>,
    forms: Arc<[Form]>,
}

impl Lowering {
    /// The changes in the order they were made. Empty: the schema fitted as it was.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }

    /// Whether the schema fitted as it was.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// The constraints that the provider does not enforce: the changes that leave one out or weaken
    /// it, in the order of the schema.
    pub fn residual(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter().filter(|change| change.residual.is_some())
    }
}

/// Lowers `schema` to `subset`.
///
/// # Errors
/// [`CannotLower`]: no schema of the subset is close enough; the schema then goes as text.
pub fn lower(schema: &Value, subset: Subset) -> Result<Lowered, CannotLower> {
    lower_after(schema, subset, Tally::default())
}

/// As [`lower`], for a request whose other schemas have used `tally` of the provider's limits.
///
/// # Errors
/// As [`lower`].
pub fn lower_after(schema: &Value, subset: Subset, tally: Tally) -> Result<Lowered, CannotLower> {
    if is_deeper(schema, MAX_DEPTH * 4) {
        return Err(CannotLower::TooDeep(MAX_DEPTH));
    }
    let stripped = without_own(schema);
    let schema = stripped.as_ref().unwrap_or(schema);
    let Some(rules) = subset.rules() else {
        return Ok(Lowered { schema: schema.clone(), lowering: Lowering::default(), tally });
    };
    let mut pass = Pass::new(schema, rules, tally)?;
    let root = pass.all().map_err(|stop| match stop {
        Stop::Cut(fault) | Stop::Cannot(fault) => fault,
    })?;
    let marked = finish::assemble(&mut pass, root);
    let forms = form::forms(&marked);
    let schema = finish::clean(marked, rules);
    finish::measure(&schema, rules)?;
    // A definition that stands in several places is changed in the same way in each.
    let mut changes = pass.changes;
    let mut seen = HashSet::new();
    changes
        .retain(|change| seen.insert((change.rule, change.pointer.clone(), change.what.clone())));
    let lowering = Lowering { changes, forms };
    Ok(Lowered { schema, lowering, tally: pass.tally })
}

/// Whether one more strict tool fits a request that has used `tally`.
pub fn takes_strict_tool(subset: Subset, tally: Tally) -> bool {
    subset.rules().is_some_and(|rules| tally.tools < rules.limits.tools)
}

/// Says in words what a schema wants, for a model whose provider cannot be told otherwise.
pub fn instruction(schema: &Value) -> String {
    let stripped = without_own(schema);
    let schema = stripped.as_ref().unwrap_or(schema);
    format!("{INSTRUCTION}{schema}")
}

/// The most bytes of [`instruction`] for a schema that takes `schema` bytes as compact JSON.
pub const fn instruction_bound(schema: u64) -> u64 {
    schema.saturating_add(INSTRUCTION.len() as u64)
}

/// Whether a value nests deeper than `most` levels; told without going deeper itself.
fn is_deeper(value: &Value, most: usize) -> bool {
    match value {
        _ if most == 0 => true,
        Value::Array(items) => items.iter().any(|item| is_deeper(item, most - 1)),
        Value::Object(members) => members.values().any(|member| is_deeper(member, most - 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Whether a root schema can stand where only an object may: an object without a union.
fn is_plain_object(root: &Map<String, Value>) -> bool {
    root.get("type").is_some_and(|kind| kind == "object")
        && !root.contains_key("anyOf")
        && !root.contains_key("oneOf")
}
