//! Ways in which servers depart from their dialect and still say one thing only.

/// What was put right while a reply was read. Each is counted; none is an error by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Quirk {
    /// A later fragment of a tool call gave its id or name again; a client that joins them doubles
    /// both.
    CallNamedAgain,
    /// Two tool calls had the same index.
    IndexShared,
    /// A fragment of a tool call had no index.
    IndexMissing,
    /// One event had two fragments of the same tool call.
    CallSplit,
    /// Arguments came as JSON where their text belongs.
    ArgumentsNotText,
    /// Each fragment had all arguments so far, or the whole arguments came again.
    ArgumentsAgain,
    /// Arguments came for a tool call that had not begun.
    ArgumentsFirst,
    /// The reason to stop was missing, but the protocol's end came and every tool call is whole.
    FinishMissing,
    /// Something came after the protocol's end; it was left out.
    AfterEnd,
}

impl Quirk {
    /// The word in logs and metrics, such as `call_named_again`.
    pub fn word(self) -> &'static str {
        match self {
            Self::CallNamedAgain => "call_named_again",
            Self::IndexShared => "index_shared",
            Self::IndexMissing => "index_missing",
            Self::CallSplit => "call_split",
            Self::ArgumentsNotText => "arguments_not_text",
            Self::ArgumentsAgain => "arguments_again",
            Self::ArgumentsFirst => "arguments_first",
            Self::FinishMissing => "finish_missing",
            Self::AfterEnd => "after_end",
        }
    }
}
