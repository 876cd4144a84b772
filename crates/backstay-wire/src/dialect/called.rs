//! The last tool calls of a conversation, read from its end: what came before them is not looked at.

use serde::Deserialize;
use serde_json::value::RawValue;

/// A tool call that the model made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Called {
    /// The tool's name.
    pub tool: String,
    /// Its arguments, as JSON text.
    pub arguments: String,
}

#[derive(Deserialize)]
struct Conversation<'a> {
    #[serde(borrow)]
    messages: Vec<&'a RawValue>,
}

/// The last `most` calls of the conversation in `body`, in order. `of` gives those of a message. What cannot be read
/// has none.
pub(super) fn last(body: &[u8], most: usize, of: fn(&RawValue) -> Vec<Called>) -> Vec<Called> {
    let conversation = serde_json::from_slice::<Conversation<'_>>(body);
    let messages = conversation.map(|all| all.messages).unwrap_or_default();
    let newest = messages.iter().rev().flat_map(|message| of(message).into_iter().rev());
    let mut calls: Vec<Called> = newest.take(most).collect();
    calls.reverse();
    calls
}
