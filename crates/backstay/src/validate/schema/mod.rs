//! Layer 2: whether a value fits a JSON Schema. The only folder that knows the crate `jsonschema`.
//!
//! Draft 2020-12, unless `$schema` names another. Nothing is fetched: a reference that leaves the
//! document leads into [`Documents`] given beforehand, or is a fault of the schema. Patterns run in
//! linear time, so look-around and back-references are refused. The [`Formats`] that providers
//! enforce are checked.
//!
//! ```text
//!  schema ─▶ source (measured, hashed) ─▶ compile ─▶ Schema ─┬─ check_node: a tape of jsonmend
//!                                           cache ──┘        └─ check: a serde_json Value
//!                                                               │ node, number, equal
//!                                                               ▼
//!                                             breach (our terms) ─▶ Violation, and its sentence
//! ```
//!
//! A schema can make the check of a small value endless (sixty definitions that each refer twice to
//! the next are 2^60 checks), so every look at a value is counted on the [`meter`]. When that runs
//! out, the reply is refused as too costly to check.

mod breach;
mod cache;
mod check;
mod compile;
mod documents;
mod equal;
mod fallbacks;
mod fault;
mod format;
mod meter;
mod misfit;
mod node;
mod number;
mod source;
mod violation;

use std::fmt;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;

use super::{Outline, Unfit};
pub use cache::SchemaCache;
pub use documents::Documents;
pub use fault::SchemaFault;
pub use format::Formats;
pub use misfit::{Misfit, misfit};
use node::{Metered, Seen};
use source::Measured;
pub use violation::Violation;

/// A compiled JSON Schema.
pub struct Schema {
    source: Value,
    hash: String,
    patterns: usize,
    compiled: Validator<Metered>,
    outline: OnceLock<Outline>,
    misplaced: OnceLock<Option<SchemaFault>>,
}

impl Schema {
    /// Compiles `source` on a thread of its own. Takes from 0.3 ms for twenty lines: keep the result,
    /// or use [`SchemaCache`].
    ///
    /// # Errors
    ///
    /// See [`SchemaFault`]; all of them are for whoever wrote the schema to mend.
    pub fn compile(source: &Value) -> Result<Self, SchemaFault> {
        Self::compile_with(source, &Documents::new())
    }

    /// Compiles `source`, whose references may lead into `documents`. The limits of one schema hold
    /// for all of them together.
    ///
    /// # Errors
    ///
    /// As [`Schema::compile`]; a fault may be one of the documents.
    pub fn compile_with(source: &Value, documents: &Documents) -> Result<Self, SchemaFault> {
        Self::compile_under(source, documents, Formats::Checked)
    }

    /// As [`Schema::compile_with`], and `format` does what `formats` says.
    ///
    /// # Errors
    ///
    /// As [`Schema::compile_with`].
    pub fn compile_under(
        source: &Value,
        documents: &Documents,
        formats: Formats,
    ) -> Result<Self, SchemaFault> {
        Self::compile_measured(source, documents, &source::measure(source, documents)?, formats)
    }

    fn compile_measured(
        source: &Value,
        documents: &Documents,
        measured: &Measured,
        formats: Formats,
    ) -> Result<Self, SchemaFault> {
        let compiled = compile::compiled(source, documents, formats)?;
        let (hash, patterns) = (measured.hash(), measured.patterns);
        let (outline, misplaced) = (OnceLock::new(), OnceLock::new());
        Ok(Self { source: source.clone(), hash, patterns, compiled, outline, misplaced })
    }

    /// The schema as it was given.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// The first 12 hex digits of the SHA-256 of the schema as canonical JSON: compact, keys
    /// sorted. The same for two schemas that differ in the order of keys only.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// What the schema says in so many words; made when it is first asked for.
    pub fn outline(&self) -> &Outline {
        self.outline.get_or_init(|| Outline::of(&self.source))
    }

    /// As [`Schema::compile`], and its [`fallbacks`](Schema::fallbacks) fit.
    ///
    /// # Errors
    ///
    /// As of both.
    pub fn with_fallbacks(source: &Value) -> Result<Self, SchemaFault> {
        let schema = Self::compile(source)?;
        schema.fallbacks()?;
        Ok(schema)
    }

    /// Whether the fallbacks it declares for its places (`x-backstay-fallback`) fit there; looked at
    /// when it is first asked. Who takes none of them, as calls of tools do, need not ask.
    ///
    /// # Errors
    ///
    /// [`SchemaFault::Fallback`], the first that does not.
    pub fn fallbacks(&self) -> Result<(), SchemaFault> {
        let misplaced = self.misplaced.get_or_init(|| fallbacks::misplaced(&self.source));
        misplaced.clone().map_or(Ok(()), Err)
    }

    /// Checks `value` against the schema.
    ///
    /// # Errors
    ///
    /// What is wrong with it: structure first, then keys too many, then values.
    pub fn check(&self, value: &Value) -> Result<(), Unfit> {
        self.check_seen(Seen::Value(value), nodes(value))
    }

    /// Checks a value where it stands on its tape; none is built. Numbers count with every digit
    /// they were written with, as far as the schema has them itself.
    ///
    /// # Errors
    ///
    /// As [`Schema::check`], in the same words.
    pub fn check_node(&self, node: jsonmend::Node<'_>) -> Result<(), Unfit> {
        self.check_seen(Seen::on_tape(&node), u64::try_from(node.words()).unwrap_or(u64::MAX))
    }
}

/// Prints the hash: schemas are long.
impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("hash", &self.hash).finish_non_exhaustive()
    }
}

/// Values in `value`, itself included. The parser bounds the depth.
fn nodes(value: &Value) -> u64 {
    let inside: u64 = match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(members) => members.values().map(nodes).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    inside + 1
}

#[cfg(test)]
mod tests;
