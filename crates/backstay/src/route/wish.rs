//! What a call asks of a target.

use std::time::Duration;

use backstay_decide::Moment;
use backstay_decide::breaker::{Elsewhere, Prospect};
use backstay_decide::extra::Arrival;
use backstay_decide::latency::PromptSize;
use backstay_decide::usual::FirstTokens;

use super::paces::{Asked, Prompt};

/// What is asked of a target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish<'a> {
    /// The time.
    pub now: Moment,
    /// How long it may take to report, should it be a test.
    pub lease: Duration,
    /// Whether somebody else can serve it.
    pub elsewhere: Elsewhere,
    /// What is left of its deadline for models.
    pub left: Duration,
    /// The shortest attempt worth starting.
    pub min_attempt: Duration,
    /// The schema of its reply.
    pub schema: Option<u64>,
    /// The size of its body, with what is added to it for the target.
    pub bytes: u64,
    /// Its prompt.
    pub prompt: &'a dyn Prompt,
    /// Its output cap.
    pub cap: Option<u64>,
    /// Whose call it is.
    pub whose: Whose,
    /// What it is to the target's budget; `None`: it is there already.
    pub arrival: Option<Arrival>,
}

/// Whose a call is that comes to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    /// The target's own: its first choice.
    Own,
    /// Another's, that could not answer it.
    Fallback,
}

impl Wish<'_> {
    pub(super) fn asked(&self) -> Asked<'_> {
        Asked { prompt: self.prompt, bytes: self.bytes, cap: self.cap, now: self.now }
    }

    /// The call, as one that may test the target. `short_came`: when the last short one did.
    pub(super) fn prospect(&self, usual: &FirstTokens, short_came: Option<Moment>) -> Prospect {
        let usual = usual.usual(PromptSize::of(self.bytes)).unwrap_or_default();
        Prospect {
            effect: self.prompt.effect(),
            left: self.left,
            start: usual.max(self.min_attempt),
            cap: self.cap,
            since_short: short_came.map(|came| self.now.since(came)),
        }
    }
}
