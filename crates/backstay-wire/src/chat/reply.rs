//! A whole reply in the neutral form.

use super::logprobs::Logprobs;
use super::quirk::Quirk;
use super::request::{Part, join_text};

/// What a model answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The provider's id of the reply. Empty: none given.
    pub id: String,
    /// The model that answered, as the provider names it. Empty: none given.
    pub model: String,
    /// Unix seconds, where the provider gives them; else 0.
    pub created: u64,
    /// The answers, at least one in a reply read from bytes; more only where `n` asked for them.
    pub choices: Vec<Choice>,
    /// Tokens used, as far as the provider says.
    pub usage: Usage,
    /// Elements met that this reader does not know, such as `content block: hologram`. Each is
    /// counted and raises an alert; none is an error by itself.
    pub unknown: Vec<String>,
    /// What was not as the dialect has it and was put right; each kind once.
    pub quirks: Vec<Quirk>,
    /// [choice] -> how likely the model found its tokens. Empty: not said. Those of a stream stand in its deltas only.
    pub logprobs: Vec<Logprobs>,
}

/// One answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Choice {
    /// What was said, in order.
    pub parts: Vec<Part>,
    /// How it ended.
    pub finish: Finish,
    /// The provider's own word for it. `None`: absent or null.
    pub finish_word: Option<String>,
}

/// How a reply ended. Anything not known is [`Finish::Unknown`] and fails closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Finish {
    /// The model was done.
    Complete,
    /// Cut off at the output cap.
    Truncated,
    /// The model waits for a tool.
    ToolUse,
    /// The model declined.
    Refused,
    /// The provider's filter stopped it.
    ContentFiltered,
    /// The context window was full.
    ContextExceeded,
    /// The provider paused a long turn that the caller must continue.
    Paused,
    /// Absent, null, or a word not known here.
    #[default]
    Unknown,
}

impl Finish {
    /// The word used in logs, headers and metrics, such as `complete`.
    pub fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Truncated => "truncated",
            Self::ToolUse => "tool_use",
            Self::Refused => "refused",
            Self::ContentFiltered => "content_filtered",
            Self::ContextExceeded => "context_exceeded",
            Self::Paused => "paused",
            Self::Unknown => "unknown",
        }
    }
}

/// Tokens, as the provider counts them. `None`: not said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// All input, cached parts included.
    pub input: Option<u64>,
    /// All output, reasoning included.
    pub output: Option<u64>,
    /// Input read from the provider's cache; a part of `input`.
    pub cached: Option<u64>,
    /// Input written to the provider's cache; a part of `input`.
    pub cache_write: Option<u64>,
    /// Output spent on reasoning; a part of `output`.
    pub reasoning: Option<u64>,
}

impl Usage {
    /// Takes every number that `later` has. Counters of a stream overwrite, they never add.
    pub fn overwrite(&mut self, later: Self) {
        self.input = later.input.or(self.input);
        self.output = later.output.or(self.output);
        self.cached = later.cached.or(self.cached);
        self.cache_write = later.cache_write.or(self.cache_write);
        self.reasoning = later.reasoning.or(self.reasoning);
    }

    /// What is left without `part`, at least 0 of each.
    #[must_use]
    pub fn less(self, part: Self) -> Self {
        let take = |all: Option<u64>, part: Option<u64>| {
            all.map(|all| all.saturating_sub(part.unwrap_or(0)))
        };
        Self {
            input: take(self.input, part.input),
            output: take(self.output, part.output),
            cached: take(self.cached, part.cached),
            cache_write: take(self.cache_write, part.cache_write),
            reasoning: take(self.reasoning, part.reasoning),
        }
    }

    /// The sum of two calls' usage; a number neither has stays unsaid.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        let add = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Self {
            input: add(self.input, other.input),
            output: add(self.output, other.output),
            cached: add(self.cached, other.cached),
            cache_write: add(self.cache_write, other.cache_write),
            reasoning: add(self.reasoning, other.reasoning),
        }
    }
}

impl Choice {
    /// The text parts, joined.
    pub fn text(&self) -> String {
        join_text(&self.parts)
    }

    /// The refusal's words, if the model refused in a field of its own.
    pub fn refusal(&self) -> Option<&str> {
        self.parts.iter().find_map(|part| match part {
            Part::Refusal(words) => Some(words.as_str()),
            _ => None,
        })
    }

    /// Whether any part is a tool call.
    pub fn calls_tools(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::ToolCall { .. }))
    }
}
