//! The keys of a route that say what is looked for in a reply: `guards` and `on_quiet_refusal`.

use backstay::policy::{EarlyStop, GuardPolicy, OnFinding, QuietRefusal};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What is done about what a guard finds.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum CutWord {
    /// It is not looked for.
    Off,
    /// It is told.
    Tag,
    /// What is sure cuts the reply off.
    Cut,
}

/// What is done about what a guard finds that is never sure.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum TagWord {
    /// It is not looked for.
    Off,
    /// It is told.
    Tag,
}

/// What a refusal in words leads to.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum QuietWord {
    /// It is told.
    Tag,
    /// The next tier is asked.
    NextTier,
}

/// What is looked for in a reply while it comes: [guards](streams.md#guards). What cuts a reply off
/// hangs up on the provider at once.
#[derive(Clone, Copy, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct GuardsTable {
    /// The same again and again: `"cut"` (an exact loop is cut off), `"tag"` or `"off"`.
    pub(super) repetition: CutWord,
    /// Signs of a loop: `"tag"`, `"cut"` (two of them, over 75 % of `expected_tokens`) or `"off"`.
    pub(super) entropy: CutWord,
    /// Length: `"cut"` (at `most_tokens`; twice `expected_tokens` is told), `"tag"` or `"off"`.
    pub(super) length: CutWord,
    /// Refusals in words: `"tag"` or `"off"`.
    pub(super) refusal: TagWord,
    /// Prompts and documents that the model did not read: `"tag"` or `"off"`.
    pub(super) context: TagWord,
    /// Tokens that answers of this route have at most, nearly always. At least 1. Default: not known.
    #[schemars(range(min = 1))]
    pub(super) expected_tokens: Option<u32>,
    /// Tokens from which on an answer is cut off. At least 1. Default: no such number.
    #[schemars(range(min = 1))]
    pub(super) most_tokens: Option<u32>,
    /// Whether a streamed answer that is to be one JSON value is read up to the end of its first complete
    /// value only: [early stop](streams.md#early-stop).
    pub(super) early_stop: bool,
}

impl Default for GuardsTable {
    fn default() -> Self {
        Self {
            repetition: CutWord::Cut,
            entropy: CutWord::Tag,
            length: CutWord::Cut,
            refusal: TagWord::Tag,
            context: TagWord::Tag,
            expected_tokens: None,
            most_tokens: None,
            early_stop: false,
        }
    }
}

impl CutWord {
    fn on(self) -> OnFinding {
        match self {
            Self::Off => OnFinding::Off,
            Self::Tag => OnFinding::Tag,
            Self::Cut => OnFinding::Cut,
        }
    }
}

impl TagWord {
    fn on(self) -> OnFinding {
        match self {
            Self::Off => OnFinding::Off,
            Self::Tag => OnFinding::Tag,
        }
    }
}

impl GuardsTable {
    /// As the engine has it.
    pub(super) fn policy(&self, quiet: QuietWord) -> GuardPolicy {
        GuardPolicy {
            repetition: self.repetition.on(),
            entropy: self.entropy.on(),
            length: self.length.on(),
            refusal: self.refusal.on(),
            context: self.context.on(),
            expected_tokens: self.expected_tokens,
            most_tokens: self.most_tokens,
            on_quiet_refusal: match quiet {
                QuietWord::Tag => QuietRefusal::Tag,
                QuietWord::NextTier => QuietRefusal::NextTier,
            },
            early_stop: if self.early_stop { EarlyStop::BehindValue } else { EarlyStop::Never },
        }
    }
}
