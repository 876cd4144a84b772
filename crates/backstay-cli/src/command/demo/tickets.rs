//! The tickets of the triage example, built into the binary.

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;

/// Tickets with labels, a JSON object a line.
pub(super) const TEXT: &str = include_str!("../../../../../examples/triage/tickets.jsonl");

/// What a reply must look like.
pub(super) const SCHEMA: &str = include_str!("../../../../../examples/triage/triage.schema.json");

/// The instructions.
pub(super) const PROMPT: &str = include_str!("../../../../../examples/triage/prompt.txt");

/// One ticket.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Ticket {
    /// Its name.
    pub id: String,
    /// What the customer wrote.
    pub text: String,
    /// One person's judgement.
    pub label: Value,
}

/// All tickets.
///
/// # Errors
/// The built-in file is broken.
pub(super) fn all() -> anyhow::Result<Vec<Ticket>> {
    let lines = TEXT.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| serde_json::from_str(line).context("a built-in ticket")).collect()
}
