//! Reads the tool calls of one message.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::dialect::Called;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Block<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    name: Cow<'a, str>,
    input: Value,
}

/// The tool calls of `message`. Their arguments are written anew: the caller has read and written them since.
pub(crate) fn read(message: &RawValue) -> Vec<Called> {
    let message: Message<'_> = serde_json::from_str(message.get()).unwrap_or_default();
    let blocks = message.content.filter(|content| content.get().starts_with('['));
    let blocks: Vec<&RawValue> =
        blocks.and_then(|blocks| serde_json::from_str(blocks.get()).ok()).unwrap_or_default();
    let called = |block: &RawValue| {
        // Of other blocks nothing is to be built: they may be pictures.
        if !block.get().contains("\"tool_use\"") {
            return None;
        }
        let block: Block<'_> = serde_json::from_str(block.get()).ok()?;
        let arguments = block.input.to_string();
        (block.kind == "tool_use").then(|| Called { tool: block.name.into_owned(), arguments })
    };
    blocks.into_iter().filter_map(called).collect()
}
