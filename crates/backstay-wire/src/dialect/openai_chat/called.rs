//! Reads the tool calls of one message.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::wire::{Call, Function};
use crate::dialect::Called;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message<'a> {
    #[serde(borrow)]
    tool_calls: Option<Vec<Call<'a>>>,
    function_call: Option<Function<'a>>,
}

/// The tool calls of `message`.
pub(crate) fn read(message: &RawValue) -> Vec<Called> {
    let message: Message<'_> = serde_json::from_str(message.get()).unwrap_or_default();
    let calls = message.tool_calls.into_iter().flatten().filter_map(|call| call.function);
    let called = |function: Function<'_>| Called {
        arguments: function.arguments().into_owned(),
        tool: function.name.into_text().into_owned(),
    };
    calls.chain(message.function_call).map(called).collect()
}
