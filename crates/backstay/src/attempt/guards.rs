//! Feeds the guards with what a model writes, and cuts a reply off that is not worth reading on.
//!
//! The guards see decoded text of the first choice, channel by channel, before anybody else does: the
//! fold, the gate and the caller read only what has passed. They read no clock.

use backstay_decide::Fault;
use backstay_decide::detectors::{
    Attachments, Channel, Finding, Guards, Length, Level, Limits, Signal,
};
use backstay_wire::chat::{Logprobs, Part, Turn};
use backstay_wire::{Chat, Delta, Dialect, Reply};
use bytes::Bytes;

use super::Failure;
use crate::contract::Contract;
use crate::policy::{GuardPolicy, OnFinding};

/// The guards of one reply.
#[derive(Debug)]
pub(crate) struct Watched {
    guards: Guards,
    policy: GuardPolicy,
    /// What was asked, to be read when a loop is found: whoever asks for repetition gets it.
    asked: (Dialect, Bytes),
    /// Whether the whole of it will be held to a shape.
    is_checked: bool,
    /// What it was cut off for.
    cut: Option<Signal>,
}

impl Watched {
    /// Guards of a reply to `contract`. `None`: nothing is looked for.
    pub(crate) fn of(contract: &Contract) -> Option<Self> {
        let policy = contract.guards;
        if !policy.reads() {
            return None;
        }
        let attachments = match policy.context {
            OnFinding::Off => Attachments::None,
            _ if contract.may_hold_pictures() => Attachments::Sent,
            OnFinding::Tag | OnFinding::Cut => Attachments::None,
        };
        let limits = Limits {
            length: Length { expected: policy.expected_tokens, most: policy.most_tokens },
            attachments,
            ..Limits::default()
        };
        let asked = (contract.ask.dialect, contract.ask.body.clone());
        let (guards, is_checked) = (Guards::new(limits), contract.wants_json());
        Some(Self { guards, policy, asked, is_checked, cut: None })
    }

    /// Takes what an event of the stream adds.
    ///
    /// # Errors
    /// What a guard is sure of, and the route has it cut.
    pub(crate) fn feed(&mut self, deltas: &[Delta]) -> Result<(), Failure> {
        for delta in deltas {
            let (channel, text) = match delta {
                Delta::Logprobs(odds) => {
                    self.weighs(odds);
                    continue;
                }
                Delta::Text(text) => (Channel::Text, text),
                Delta::Reasoning(text) => (Channel::Reasoning, text),
                Delta::ToolArguments { index, fragment } => (Channel::Call(*index), fragment),
                _ => continue,
            };
            if let Some(signal) = self.guards.feed(channel, text) {
                self.judge(signal)?;
            }
        }
        Ok(())
    }

    /// Takes a reply that came in one piece. Nothing is saved by cutting it, so of one that has a shape the
    /// checks have the last word.
    ///
    /// # Errors
    /// As [`Watched::feed`].
    pub(crate) fn whole(&mut self, reply: &Reply) -> Result<(), Failure> {
        if let Some(odds) = reply.logprobs.first() {
            self.weighs(odds);
        }
        let parts = reply.choices.first().map(|choice| choice.parts.as_slice()).unwrap_or_default();
        let mut calls = 0..;
        for part in parts {
            let (channel, text) = match part {
                Part::Text(text) => (Channel::Text, text),
                Part::Thinking { text, .. } => (Channel::Reasoning, text),
                Part::ToolCall { arguments, .. } => {
                    (Channel::Call(calls.next().unwrap_or_default()), arguments)
                }
                _ => continue,
            };
            if let Some(signal) = self.guards.whole(channel, text).filter(|_| !self.is_checked) {
                self.judge(signal)?;
            }
        }
        Ok(())
    }

    /// Takes how likely the model found its tokens. What they show is told, and never sure.
    fn weighs(&mut self, odds: &Logprobs) {
        for (channel, odds) in [(Channel::Text, &odds.text), (Channel::Reasoning, &odds.reasoning)]
        {
            for choices in odds.tokens() {
                self.guards.logprobs(channel, choices.iter().copied());
            }
        }
    }

    /// What was found and is to be told, now that no more comes. What it was cut off for is told by its
    /// failure.
    pub(crate) fn told(&mut self) -> Vec<Signal> {
        if self.cut.is_none() {
            self.guards.finish();
        }
        let told = |signal: &&Signal| {
            on(&self.policy, &signal.finding) != OnFinding::Off && self.cut != Some(**signal)
        };
        self.guards.signals().iter().filter(told).copied().collect()
    }

    /// Cuts the reply off where `signal` is sure, the route says so and the caller did not ask for it.
    fn judge(&mut self, signal: Signal) -> Result<(), Failure> {
        let sure =
            signal.level == Level::Hard || matches!(signal.finding, Finding::Degenerate { .. });
        if !sure || on(&self.policy, &signal.finding) != OnFinding::Cut {
            return Ok(());
        }
        if signal.level == Level::Hard && self.weighed(signal).level != Level::Hard {
            return Ok(());
        }
        self.cut = Some(signal);
        let failure = Failure::new(Fault::Looping, format!("the reply is cut off: {signal}"));
        Err(Failure { found: Some(signal), ..failure })
    }

    /// `signal`, softened where the request asks for what was found.
    fn weighed(&self, signal: Signal) -> Signal {
        let (dialect, body) = &self.asked;
        match dialect.read_request(body) {
            Ok(chat) => {
                let texts = texts(&chat);
                self.guards.weigh(signal, texts.iter().map(String::as_str))
            }
            Err(_) => signal,
        }
    }
}

/// What the route does about `finding`.
fn on(policy: &GuardPolicy, finding: &Finding) -> OnFinding {
    match finding {
        Finding::Loop { .. } | Finding::Blank { .. } | Finding::SameCall { .. } => {
            policy.repetition
        }
        Finding::Runaway { .. } | Finding::Slow { .. } => policy.length,
        Finding::Refusal => policy.refusal,
        Finding::Unread { .. } | Finding::MissesAttachment => policy.context,
        _ => policy.entropy,
    }
}

/// What was said to the model, the last thing last.
fn texts(chat: &Chat) -> Vec<String> {
    let system = chat.system.iter().filter_map(|part| match part {
        Part::Text(text) => Some(text.clone()),
        _ => None,
    });
    system.chain(chat.turns.iter().map(Turn::text)).filter(|text| !text.is_empty()).collect()
}
