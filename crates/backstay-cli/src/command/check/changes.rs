//! Two versions of a schema side by side: what changed, and whom it breaks.

use backstay::contract::lint::{self, Change, Side};
use serde_json::{Value, json};

use super::lints;
use crate::source::SchemaFile;

/// Two versions of a schema, compared.
pub(super) struct Compared {
    old: SchemaFile,
    new: SchemaFile,
    changes: Vec<Change>,
}

impl Compared {
    pub(super) fn new(old: SchemaFile, new: SchemaFile) -> Self {
        let changes = lint::against(&old.value, &new.value);
        Self { old, new, changes }
    }

    pub(super) fn is_breaking(&self) -> bool {
        self.changes.iter().any(|change| change.breaks.anybody())
    }

    /// For people: a line for each change with its place, then whom it breaks.
    pub(super) fn text(&self) -> String {
        let mut lines: Vec<String> = self.changes.iter().map(|change| self.line(change)).collect();
        let breaking = self.changes.iter().filter(|change| change.breaks.anybody()).count();
        lines.push(match (self.changes.len(), breaking) {
            (0, _) => format!("nothing changed since {}", self.old.name),
            (all, 0) => format!("changes since {}: {all}, none of them breaking", self.old.name),
            (all, _) => format!("changes since {}: {all}, breaking: {breaking}", self.old.name),
        });
        lines.join("\n")
    }

    fn line(&self, change: &Change) -> String {
        let file = self.side(change.side);
        let place = match lints::place(file, &change.pointer) {
            Some(place) => format!("{}:{}:{}", place.file, place.line, place.column),
            None => file.name.clone(),
        };
        let pointer = if change.pointer.is_empty() { "/" } else { &change.pointer };
        let breaks = match change.breaks.names() {
            [] => "breaks nobody".to_owned(),
            names => format!("breaks {}", names.join(" and ").replace('_', " ")),
        };
        let kind = change.kind.name();
        format!("{place}: {kind} at {pointer}: {}; {breaks}", change.message)
    }

    /// For programs: a list of changes.
    pub(super) fn json(&self) -> Value {
        let changes = self.changes.iter().map(|change| {
            let file = self.side(change.side);
            let place = lints::place(file, &change.pointer);
            json!({
                "kind": change.kind.name(),
                "pointer": change.pointer,
                "message": change.message,
                "breaks": change.breaks.names(),
                "file": file.name,
                "line": place.as_ref().map(|place| place.line),
                "column": place.as_ref().map(|place| place.column),
            })
        });
        changes.collect()
    }

    fn side(&self, side: Side) -> &SchemaFile {
        match side {
            Side::Old => &self.old,
            Side::New => &self.new,
        }
    }
}
