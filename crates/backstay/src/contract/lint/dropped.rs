//! What a provider's subset of JSON Schema does not hold the model to.

use backstay_wire::lower::{Change, Subset, lower};
use backstay_wire::pointer;
use serde_json::Value;

use super::{Finding, Lint, listed};

/// The finding for one subset: every keyword that is not enforced, at the place of the first.
pub(super) fn dropped(schema: &Value, subset: Subset) -> Option<Finding> {
    let finding = |pointer, message| Some(Finding { lint: Lint::KeywordDropped, pointer, message });
    let name = subset.name();
    let lowered = match lower(schema, subset) {
        Ok(lowered) => lowered,
        Err(fault) => {
            let message = format!("`{name}` cannot be held to the schema at all: {fault}");
            return finding(String::new(), message);
        }
    };
    let first = lowered.lowering.residual().next()?;
    let mut keywords: Vec<&str> = Vec::new();
    for change in lowered.lowering.residual() {
        if !keywords.contains(&change.keyword.as_str()) {
            keywords.push(&change.keyword);
        }
    }
    let shown = listed(keywords.iter().map(|keyword| format!("`{keyword}`")));
    finding(place(schema, first), format!("`{name}` does not enforce {shown}"))
}

/// Where the change is about: the keyword, if it stands in the source.
fn place(schema: &Value, change: &Change) -> String {
    let keyword = format!("{}/{}", change.pointer, pointer::escape(&change.keyword));
    if schema.pointer(&keyword).is_some() { keyword } else { change.pointer.clone() }
}
