//! Feeds the guards with what a model writes, and cuts a reply off that is not worth reading on.
//!
//! The guards see decoded text, choice by choice and channel by channel, before anybody else does: the
//! fold, the gate and the caller read only what has passed. They read no clock.
//!
//! A reply is cut off when none of its choices is worth anything: one that loops does not take the others with
//! it. Why: docs/decisions/0022.

use std::time::Duration;

use backstay_decide::Fault;
use backstay_decide::detectors::{
    Attachments, CALLS_BEFORE, Channel, Finding, Floor, Guards, Length, Level, Limits, Signal,
};
use backstay_wire::chat::{Logprobs, Part, Turn};
use backstay_wire::{Chat, Delta, Dialect, Reply};
use bytes::Bytes;

use super::Failure;
use crate::contract::{Contract, may_hold_pictures};
use crate::policy::{GuardPolicy, OnFinding, Pace};

/// Choices that are watched: each may take 150 kB, and few callers want more.
const MOST_CHOICES: usize = 8;

/// The guards of one reply.
#[derive(Debug)]
pub(crate) struct Watched {
    first: Choice,
    /// Those after the first, in the order they began.
    others: Vec<Choice>,
    /// Whether there are more than are watched.
    has_more: bool,
    limits: Limits,
    policy: GuardPolicy,
    /// What was asked, to be read when a loop is found, for whoever asks for repetition gets it, and when a tool is
    /// called.
    asked: (Dialect, Bytes),
    /// Whether the whole of it will be held to a shape.
    is_checked: bool,
    /// What it was cut off for.
    cut: Option<Signal>,
}

/// The guards of one answer.
#[derive(Debug)]
struct Choice {
    /// Its place in the reply.
    place: u32,
    guards: Guards,
    /// Whether nothing of worth comes any more.
    is_lost: bool,
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
            // Looked for in the request only where the words of a reply say that they are missing.
            OnFinding::Tag | OnFinding::Cut => Attachments::Sent,
        };
        let pace = contract.route.holding.pace.filter(|_| policy.length != OnFinding::Off);
        let limits = Limits {
            length: Length { expected: policy.expected_tokens, most: policy.most_tokens },
            attachments,
            pace: pace.map(floor),
            ..Limits::default()
        };
        Some(Self {
            first: Choice::new(0, limits),
            others: Vec::new(),
            has_more: false,
            limits,
            policy,
            asked: (contract.ask.dialect, contract.ask.body.clone()),
            is_checked: contract.wants_json(),
            cut: None,
        })
    }

    /// Whether somebody has to say how long was waited for it.
    pub(crate) fn is_paced(&self) -> bool {
        self.limits.pace.is_some()
    }

    /// Takes what an event of the stream adds.
    ///
    /// # Errors
    /// What a guard is sure of, and the route has it cut.
    pub(crate) fn feed(&mut self, deltas: &[Delta]) -> Result<(), Failure> {
        for delta in deltas {
            let (place, delta) = match delta {
                Delta::OtherChoice { choice, delta } => (*choice, delta.as_ref()),
                delta => (0, delta),
            };
            let signal = self.choice(place).and_then(|choice| choice.take(delta));
            if let Some(signal) = signal {
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
        let mut odds = reply.logprobs.iter();
        let mut signals = Vec::new();
        for (place, said) in (0..).zip(&reply.choices) {
            let odds = odds.next();
            let Some(choice) = self.choice(place) else { break };
            if let Some(odds) = odds {
                choice.weigh(odds);
            }
            let mut calls = 0..;
            for part in &said.parts {
                signals.extend(choice.read(part, &mut calls));
            }
        }
        if self.is_checked {
            return Ok(());
        }
        // All are read before one is judged: the worth of each counts.
        signals.into_iter().try_for_each(|signal| self.judge(signal))
    }

    /// What was found and is to be told, now that no more comes. What it was cut off for is told by its
    /// failure. `waited`: for the provider, from the first content on.
    pub(crate) fn told(&mut self, waited: Duration) -> Vec<Signal> {
        if self.cut.is_none() {
            self.finish(waited);
        }
        let is_told = |signal: &&Signal| {
            on(&self.policy, &signal.finding) != OnFinding::Off
                && self.cut != Some(**signal)
                && (signal.finding != Finding::MissesAttachment || may_hold_pictures(&self.asked.1))
        };
        let mut told: Vec<Signal> = self.signals().filter(is_told).copied().collect();
        if self.has_more {
            let watched = u32::try_from(MOST_CHOICES).unwrap_or(u32::MAX);
            let finding = Finding::Unwatched { watched };
            told.push(Signal { finding, level: Level::Soft, channel: None, choice: 0 });
        }
        told
    }

    fn finish(&mut self, waited: Duration) {
        let tokens = self.choices().map(|choice| choice.guards.tokens()).sum();
        self.first.guards.pace(tokens, waited);
        let calls = self.choices().any(|choice| choice.guards.has_calls());
        let (dialect, body) = &self.asked;
        let before = if calls && self.policy.repetition != OnFinding::Off {
            dialect.last_calls(body, CALLS_BEFORE)
        } else {
            Vec::new()
        };
        for choice in std::iter::once(&mut self.first).chain(&mut self.others) {
            for call in &before {
                choice.guards.called_before(&call.tool, &call.arguments);
            }
            choice.guards.finish();
        }
    }

    fn choices(&self) -> impl Iterator<Item = &Choice> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn signals(&self) -> impl Iterator<Item = &Signal> {
        self.choices().flat_map(|choice| choice.guards.signals())
    }

    /// The guards of the choice at `place`. `None`: there are too many to watch it.
    fn choice(&mut self, place: u32) -> Option<&mut Choice> {
        if place == 0 {
            return Some(&mut self.first);
        }
        let known = self.others.iter().position(|choice| choice.place == place);
        let at = known.unwrap_or(self.others.len());
        if known.is_none() {
            if at + 1 == MOST_CHOICES {
                self.has_more = true;
                return None;
            }
            self.others.push(Choice::new(place, self.limits));
        }
        self.others.get_mut(at)
    }

    /// Cuts the reply off where `signal` is sure, the route says so, the caller did not ask for it, and no other
    /// choice is worth waiting for.
    fn judge(&mut self, signal: Signal) -> Result<(), Failure> {
        let sure =
            signal.level == Level::Hard || matches!(signal.finding, Finding::Degenerate { .. });
        if !sure || on(&self.policy, &signal.finding) != OnFinding::Cut {
            return Ok(());
        }
        if signal.level == Level::Hard && self.weighed(signal).level != Level::Hard {
            return Ok(());
        }
        if let Some(choice) = self.choice(signal.choice) {
            choice.is_lost = true;
        }
        if self.has_more || self.choices().any(|choice| !choice.is_lost) {
            return Ok(());
        }
        self.cut = Some(signal);
        let failure = Failure::new(Fault::Looping, format!("the reply is cut off: {signal}"));
        Err(Failure { found: Some(signal), ..failure })
    }

    /// `signal`, softened where the request asks for what was found.
    fn weighed(&self, signal: Signal) -> Signal {
        let (dialect, body) = &self.asked;
        let choice = self.choices().find(|choice| choice.place == signal.choice);
        match (dialect.read_request(body), choice) {
            (Ok(chat), Some(choice)) => {
                let texts = texts(&chat);
                choice.guards.weigh(signal, texts.iter().map(String::as_str))
            }
            (Ok(_) | Err(_), _) => signal,
        }
    }
}

impl Choice {
    fn new(place: u32, limits: Limits) -> Self {
        Self { place, guards: Guards::new(limits).of_choice(place), is_lost: false }
    }

    /// Takes what an event adds to it.
    fn take(&mut self, delta: &Delta) -> Option<Signal> {
        match delta {
            Delta::Text(text) => self.guards.feed(Channel::Text, text),
            Delta::Reasoning(text) => self.guards.feed(Channel::Reasoning, text),
            Delta::ToolArguments { index, fragment } => {
                self.guards.feed(Channel::Call(*index), fragment)
            }
            Delta::ToolStart { index, name, .. } => {
                self.guards.begin_call(*index, name);
                None
            }
            Delta::Logprobs(odds) => {
                self.weigh(odds);
                None
            }
            _ => None,
        }
    }

    /// Takes a whole part of it; `calls` numbers those that are calls.
    fn read(&mut self, part: &Part, calls: &mut impl Iterator<Item = u32>) -> Option<Signal> {
        match part {
            Part::Text(text) => self.guards.whole(Channel::Text, text),
            Part::Thinking { text, .. } => self.guards.whole(Channel::Reasoning, text),
            Part::ToolCall { name, arguments, .. } => {
                let number = calls.next().unwrap_or_default();
                self.guards.begin_call(number, name);
                self.guards.whole(Channel::Call(number), arguments)
            }
            _ => None,
        }
    }

    /// Takes how likely the model found its tokens. What they show is told, and never sure.
    fn weigh(&mut self, odds: &Logprobs) {
        for (channel, odds) in [(Channel::Text, &odds.text), (Channel::Reasoning, &odds.reasoning)]
        {
            for choices in odds.tokens() {
                self.guards.logprobs(channel, choices.iter().copied());
            }
        }
    }
}

/// The pace that a stream has to show at the gate, for all of it.
fn floor(pace: Pace) -> Floor {
    let per_kilosecond = u128::from(pace.tokens.0) * 1_000_000 / pace.within.as_millis().max(1);
    let tokens_per_kilosecond = u32::try_from(per_kilosecond).unwrap_or(u32::MAX);
    Floor { tokens_per_kilosecond, over: pace.within }
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
