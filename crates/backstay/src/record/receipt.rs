//! What a caller is told about its call, in headers or in a last comment of a stream.

use std::fmt;

use backstay_decide::Money;
use backstay_wire::frame::sse;

/// What happened to one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Receipt {
    /// The call's id: a UUID of version 7.
    pub call_id: String,
    /// How it ended.
    pub outcome: Outcome,
    /// The target that answered, or was asked last. `None`: none was asked.
    pub target: Option<String>,
    /// Its tier, from 1. `None`: none was asked.
    pub tier: Option<u32>,
    /// Requests sent to providers.
    pub attempts: u32,
    /// The contract's fingerprint: 12 hexadecimal digits.
    pub fingerprint: String,
    /// What was changed in the answer: how many edits of each kind. Empty: it is as it came.
    pub edits: Vec<(&'static str, u32)>,
    /// What its attempts cost. `None`: none went to a target with prices, or a stream is under way.
    pub cost: Option<Spent>,
    /// How a stream went on that broke after its release: `restart`, `continue`; or that it did not:
    /// `differs`, `failed`. `None`: none broke, or the route ends it then.
    pub rescued: Option<&'static str>,
    /// What was lost between dialects, in few words; empty: nothing.
    pub notes: Vec<String>,
}

/// What a call cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spent {
    /// In the currency of the models' prices.
    pub money: Money,
    /// How sure that is.
    pub known: Known,
}

/// How sure a sum is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Every attempt told what it used.
    Exactly,
    /// Some attempt did not, and is in the sum with what it may have used at most; or one went to a
    /// target without prices.
    AtLeast,
}

impl fmt::Display for Spent {
    /// `0.00123`, or `at least 0.00123`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known {
            Known::Exactly => self.money.fmt(f),
            Known::AtLeast => write!(f, "at least {}", self.money),
        }
    }
}

/// The most bytes of the edits as one text.
const MAX_EDITS: usize = 400;

impl Receipt {
    /// The receipt as a comment of a stream, which every reader of events skips.
    pub fn comment(&self) -> Vec<u8> {
        let mut text = format!(
            "backstay call-id={} outcome={} target={} tier={} attempts={} fingerprint={}",
            self.call_id,
            self.outcome,
            self.target.as_deref().unwrap_or("none"),
            self.tier.map_or_else(|| "none".to_owned(), |tier| tier.to_string()),
            self.attempts,
            self.fingerprint
        );
        if let Some(how) = self.rescued {
            text.push_str(" rescued=");
            text.push_str(how);
        }
        if !self.edits.is_empty() {
            text.push_str(" edits=");
            text.push_str(&self.edits_told().replace(", ", ","));
        }
        if let Some(cost) = self.cost {
            text.push_str(match cost.known {
                Known::Exactly => " cost=",
                Known::AtLeast => " cost-at-least=",
            });
            text.push_str(&cost.money.to_string());
        }
        let mut out = Vec::new();
        sse::comment(&mut out, &text);
        out
    }

    /// The edits as headers and the log have them: `fence=1, trailing_comma=3`; empty: none. At
    /// most 400 bytes; what does not fit is counted as `other`.
    pub fn edits_told(&self) -> String {
        let mut told = String::new();
        let mut other = 0_u32;
        for (kind, count) in &self.edits {
            let one = format!("{kind}={count}");
            if told.len() + one.len() + 20 > MAX_EDITS {
                other = other.saturating_add(*count);
                continue;
            }
            told.push_str(if told.is_empty() { "" } else { ", " });
            told.push_str(&one);
        }
        if other > 0 { format!("{told}, other={other}") } else { told }
    }
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The reply passed every check as it came.
    Answered,
    /// The reply passed after named edits; every value was in it.
    Mended,
    /// The reply passed with a value that breaks the schema, as the route lets it.
    Flagged,
    /// Some of the reply was cut off or dropped, and the route takes what is there.
    Partial,
    /// Some value is a declared fallback or default, not the model's.
    Fallback,
    /// Cut at the caller's own cap, and handed on as it is.
    Truncated,
    /// A refusal, handed on with the provider's reason.
    Refused,
    /// The provider paused a long turn; the caller continues it.
    Paused,
    /// No model could answer; the route's last resort did.
    LastResort,
    /// Handed through without any check, as the caller asked.
    Bypassed,
    /// Handed through by a route that only watches.
    Watched,
    /// A typed failure.
    Failed,
    /// The caller left before the end.
    Abandoned,
}

impl Outcome {
    /// Every outcome, for metrics and docs.
    pub const ALL: [Self; 13] = [
        Self::Answered,
        Self::Mended,
        Self::Flagged,
        Self::Partial,
        Self::Fallback,
        Self::Truncated,
        Self::Refused,
        Self::Paused,
        Self::LastResort,
        Self::Bypassed,
        Self::Watched,
        Self::Failed,
        Self::Abandoned,
    ];

    /// The word in headers, logs and metrics.
    pub fn word(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Mended => "mended",
            Self::Flagged => "flagged",
            Self::Partial => "partial",
            Self::Fallback => "fallback",
            Self::Truncated => "truncated",
            Self::Refused => "refused",
            Self::Paused => "paused",
            Self::LastResort => "last_resort",
            Self::Bypassed => "bypassed",
            Self::Watched => "watched",
            Self::Failed => "failed",
            Self::Abandoned => "abandoned",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
