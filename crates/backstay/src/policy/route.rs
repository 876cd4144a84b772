//! Routes: what a caller may ask for, and how it is answered.

use std::sync::Arc;
use std::time::Duration;

use super::{GuardPolicy, Holding, Mending, Money, StreamMode, Target};
pub use backstay_decide::latency::{Timeouts, Timer};
pub use backstay_decide::recover::OnSemantic;
pub use backstay_decide::recover::rescue::AfterRelease;

/// What a caller asks for as `model`.
#[derive(Clone, Debug)]
pub struct Route {
    /// Its name in config.
    pub name: String,
    /// Which model names it serves.
    pub pattern: Pattern,
    /// Whether it acts, or only says what it would do.
    pub mode: RouteMode,
    /// Who answers: tiers in order; within a tier any target may. Neither level is empty.
    pub tiers: Vec<Vec<Arc<Target>>>,
    /// The longest a call may take from its arrival to its last byte.
    pub deadline: Duration,
    /// Limits of one attempt.
    pub timeouts: Timeouts,
    /// Most attempts a call may make, 1 to 6.
    pub max_attempts: u32,
    /// Most re-asks at one target. 0 turns re-asking off.
    pub reasks: u32,
    /// What bounds them besides their count, and how they are worded.
    pub reask: ReaskPolicy,
    /// The output cap set when the caller sets none. `None`: the provider's default.
    pub max_output_tokens: Option<u64>,
    /// How far the route's own cap may be raised, once, after a truncated reply. `None`: not.
    pub max_output_tokens_ceiling: Option<u64>,
    /// Stop sequences sent when the caller sends none.
    pub stop: Vec<String>,
    /// A label of the instructions; part of the fingerprint.
    pub prompt_version: Option<String>,
    /// The JSON Schema a reply must fit; the caller's own wins. Compiled once.
    pub schema: Option<Arc<serde_json::Value>>,
    /// Checks beyond the schema.
    pub rules: Vec<RuleText>,
    /// What may be done to a reply that is not quite what was asked for.
    pub mending: Arc<Mending>,
    /// Whether a plain call is streamed from the provider.
    pub upstream: Upstream,
    /// How a streamed call is handed on. `None`: gate for text, buffered with a schema.
    pub stream: Option<StreamMode>,
    /// How much of a stream is held before and while it is handed on.
    pub holding: Holding,
    /// What to do about a stream that breaks after its release.
    pub after_release: AfterRelease,
    /// What its guards look for, and what is done about it.
    pub guards: GuardPolicy,
    /// What to do about a refusal.
    pub on_refusal: RefusalPolicy,
    /// What becomes of a call whose caller leaves.
    pub on_disconnect: OnDisconnect,
    /// What to do about a reply that breaks a rule.
    pub on_semantic: OnSemantic,
    /// What answers when no model can.
    pub last_resort: Option<LastResort>,
    /// A digest of everything here that can change an answer; part of the fingerprint.
    pub revision: String,
}

/// Whether a route acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouteMode {
    /// It does what it promises.
    #[default]
    Normal,
    /// Everything goes through untouched, and the log says what would have been done.
    Shadow,
}

/// What bounds a call's re-asks besides their count, and how they are worded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReaskPolicy {
    /// Tokens, input and output, that all re-asks of a call may take. `None`: no bound.
    pub tokens: Option<u64>,
    /// What they may cost. `None`: no bound. A target without prices is not re-asked under one.
    pub cost: Option<Money>,
    /// The source of a template, see [`crate::recover::Template`]. `None`: the default wording.
    pub template: Option<Arc<str>>,
}

/// A route's name, with `*` for any run of characters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(pub String);

/// A check of the reply against the input, in CEL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleText {
    /// What the rule demands, in words a model understands.
    pub name: String,
    /// A CEL expression over `reply` and `input` that gives `true` for a good reply.
    pub check: String,
    /// What is told to the model, the log and the caller when it fails. `None`: the name.
    pub message: Option<String>,
    /// What `input` is: `None` the last user message, else a JSON pointer into the request.
    pub input: Option<String>,
}

/// Whether a plain call is streamed from the provider and folded here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Upstream {
    /// Streamed when the output cap is unknown or above 1,000 tokens.
    #[default]
    Auto,
    /// Always, where the target can.
    Stream,
    /// As the caller asked.
    AsAsked,
}

/// What to do about a refusal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RefusalPolicy {
    /// The route's last resort, else the caller gets it with the provider's reason.
    #[default]
    LastResort,
    /// The next tier is asked.
    NextTier,
}

/// What becomes of a call whose caller leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnDisconnect {
    /// The provider is cancelled at once.
    #[default]
    Cancel,
    /// What the provider was asked for is read to its end, for at most `within` and
    /// [`crate::contract::MAX_UNHEARD`] bytes, and nothing more is asked. It is the gateway that does
    /// so: a program that drops its call cancels it.
    Finish {
        /// From the caller's leaving on.
        within: Duration,
    },
}

/// What answers when no model can.
#[derive(Clone, Debug, PartialEq)]
pub enum LastResort {
    /// This value, as the reply's text.
    Json(Arc<serde_json::Value>),
    /// This text.
    Text(String),
}

impl Pattern {
    /// Whether the pattern holds a `*`.
    pub fn is_glob(&self) -> bool {
        self.0.contains('*')
    }

    /// Whether `name` is meant.
    pub fn matches(&self, name: &str) -> bool {
        let mut pieces = self.0.split('*');
        let Some(mut rest) = pieces.next().and_then(|first| name.strip_prefix(first)) else {
            return false;
        };
        let mut pieces: Vec<&str> = pieces.collect();
        let Some(last) = pieces.pop() else { return rest.is_empty() };
        for piece in pieces {
            let Some(at) = rest.find(piece) else { return false };
            rest = rest.get(at + piece.len()..).unwrap_or_default();
        }
        rest.len() >= last.len() && rest.ends_with(last)
    }
}

#[cfg(test)]
mod tests {
    use super::Pattern;

    #[test]
    fn a_star_stands_for_any_run_and_nothing_else_does() {
        for (pattern, name, yes) in [
            ("triage", "triage", true),
            ("triage", "triage2", false),
            ("*", "anything", true),
            ("gpt-*", "gpt-5", true),
            ("gpt-*", "xgpt-5", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "abc", true),
            ("a*b*c", "acb", false),
            ("a*a", "a", false),
            ("*-mini", "o3-mini", true),
        ] {
            assert_eq!(Pattern(pattern.into()).matches(name), yes, "{pattern} {name}");
        }
    }
}
