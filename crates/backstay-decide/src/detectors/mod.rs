//! Watches a reply while it comes: for loops, for words that say nothing any more, for refusals, for too much and
//! too slow.
//!
//! A guard is fed with decoded text, never with what a network read; however the text is cut, it finds the
//! same. It holds no clock: what depends on time is told how much of it went by.
//!
//! ```text
//!   pieces ─▶ tokens ─▶ exact period ───────────────▶ hard
//!                   ├─▶ near period, phrases, entropy ─▶ soft; two of them near the expected end ─▶ degenerate
//!                   └─▶ length, pace ───────────────▶ hard where a limit is set
//!   the end ─▶ refusal, what was not read ──────────▶ soft
//! ```
//!
//! A hard signal says that nothing of worth comes any more. It is weighed against what was asked
//! ([`Guards::weigh`]) before anything is done about it: whoever asks for the same word a thousand times gets it.

mod asked;
mod calls;
mod entropy;
mod length;
mod lost;
mod one_value;
mod opening;
mod refusal;
mod repetition;
mod root;
mod signal;
mod split;
#[cfg(test)]
mod tests;
mod wording;

use std::time::Duration;

pub use entropy::Sureness;
pub use length::{Floor, Length};
pub use one_value::{OneValue, Reached};
pub use root::Root;
pub use signal::{Channel, Finding, Level, Signal};

use calls::SameCalls;
use opening::Opening;
use repetition::{Care, Repetition};

/// Signals that are kept of a reply. Each kind is told once a channel, and calls are many.
const MOST_SIGNALS: usize = 64;

/// Calls of the conversation before a reply that are worth telling its guards of.
pub const CALLS_BEFORE: usize = calls::TOLD as usize - 1;

/// What is done about a finding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reaction {
    /// It is not looked for.
    Off,
    /// It is told as a soft signal.
    Tell,
    /// It is told as sure as it is.
    #[default]
    Act,
}

/// What a reply is held to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Repetition of every kind, entropy, and calls that are the same.
    pub repetition: Reaction,
    /// How long a reply may be.
    pub length: Length,
    /// How quickly it is to come. `None`: as it likes.
    pub pace: Option<Floor>,
    /// Refusals in words. They are never hard.
    pub refusal: Reaction,
    /// Whether the request holds documents or images.
    pub attachments: Attachments,
}

/// Whether a request holds documents or images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Attachments {
    /// None.
    #[default]
    None,
    /// At least one.
    Sent,
}

/// All guards of one reply. But for its first words, it allocates nothing before it is some thirty tokens long.
#[derive(Clone, Debug)]
pub struct Guards {
    limits: Limits,
    text: Repetition,
    reasoning: Repetition,
    /// The call whose arguments come now.
    call: Option<(u32, Repetition)>,
    /// Tokens of the calls before it.
    called: usize,
    opening: Opening,
    calls: SameCalls,
    /// Of the text, and of the reasoning.
    sureness: [Sureness; 2],
    found: Found,
}

/// What was found.
#[derive(Clone, Debug, Default)]
struct Found {
    signals: Vec<Signal>,
    choice: u32,
}

impl Guards {
    /// Guards of a reply that has not begun.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            text: Repetition::new(Care::Prose),
            reasoning: Repetition::new(Care::Prose),
            call: None,
            called: 0,
            opening: Opening::default(),
            calls: SameCalls::default(),
            sureness: [Sureness::default(); 2],
            found: Found::default(),
        }
    }

    /// The same for another answer of the reply than the first one.
    #[must_use]
    pub fn of_choice(mut self, choice: u32) -> Self {
        self.found.choice = choice;
        self
    }

    /// Takes the next piece of `channel`. Returns the surest of the signals that are new.
    pub fn feed(&mut self, channel: Channel, piece: &str) -> Option<Signal> {
        let from = self.found.signals.len();
        if channel == Channel::Text {
            self.opening.feed(piece);
        }
        let (reaction, found) = (self.limits.repetition, &mut self.found);
        let stream = match channel {
            Channel::Text => &mut self.text,
            Channel::Reasoning => &mut self.reasoning,
            Channel::Call(number) => {
                self.calls.feed(number, piece);
                arguments(&mut self.call, &mut self.called, number)
            }
        };
        stream.feed(piece, |finding, level| found.note_loop(reaction, channel, finding, level));
        self.judge_length();
        self.found.surest_since(from)
    }

    /// Takes all of `channel` at once, and reads it token by token only where it may repeat itself or its length
    /// matters. Finds what [`Guards::feed`] does, but for soft signs in texts that say hardly anything twice.
    pub fn whole(&mut self, channel: Channel, text: &str) -> Option<Signal> {
        if self.limits.length != Length::default() || repetition::may_repeat(text) {
            return self.feed(channel, text);
        }
        match channel {
            Channel::Text => self.opening.feed(text),
            Channel::Reasoning => {}
            Channel::Call(number) => {
                self.calls.feed(number, text);
                arguments(&mut self.call, &mut self.called, number);
            }
        }
        None
    }

    /// Call `number` of a tool begins in this reply; its arguments are fed as [`Channel::Call`].
    pub fn begin_call(&mut self, number: u32, tool: &str) {
        self.calls.begin(number, tool);
    }

    /// Whether the reply calls a tool.
    pub fn has_calls(&self) -> bool {
        self.calls.any()
    }

    /// Takes a whole call of the conversation before this reply. They come in order, the last [`CALLS_BEFORE`] are
    /// enough, and they are told of only where the reply makes the same call again.
    pub fn called_before(&mut self, tool: &str, arguments: &str) {
        self.calls.before(tool, arguments);
    }

    /// Takes how likely the model found the choices for its next token of `channel` ([`Sureness::note`]). From then on
    /// the entropy of that channel is taken from these alone. Of calls nothing is taken.
    pub fn logprobs(
        &mut self,
        channel: Channel,
        logprobs: impl IntoIterator<Item = f32>,
    ) -> Option<Signal> {
        let from = self.found.signals.len();
        let [text, reasoning] = &mut self.sureness;
        let (sureness, stream) = match channel {
            Channel::Text => (text, &mut self.text),
            Channel::Reasoning => (reasoning, &mut self.reasoning),
            Channel::Call(_) => return None,
        };
        stream.leave_entropy();
        if let Some(finding) = sureness.note(logprobs) {
            self.found.note_loop(self.limits.repetition, channel, finding, Level::Soft);
        }
        self.found.surest_since(from)
    }

    /// Judges the pace of a reply of so many tokens in all, for which was waited `elapsed` after the first content. A
    /// slow reply is a reply: the signal is soft.
    pub fn pace(&mut self, tokens: usize, elapsed: Duration) -> Option<Signal> {
        let finding = self.limits.pace?.judge(narrow(tokens), elapsed)?;
        let from = self.found.signals.len();
        self.found.note(finding, Level::Soft, None);
        self.found.surest_since(from)
    }

    /// Judges the reply as a whole, now that no more of it comes. Nothing may be fed after it.
    pub fn finish(&mut self) -> Option<Signal> {
        let from = self.found.signals.len();
        let (reaction, found) = (self.limits.repetition, &mut self.found);
        let call = self.call.as_mut().map(|(number, stream)| (Channel::Call(*number), stream));
        let streams = [(Channel::Text, &mut self.text), (Channel::Reasoning, &mut self.reasoning)];
        for (channel, stream) in streams.into_iter().chain(call) {
            stream.finish(|finding, level| found.note_loop(reaction, channel, finding, level));
        }
        self.judge_words();
        if let Some(finding) = self.calls.finish() {
            self.found.note_loop(reaction, None, finding, Level::Soft);
        }
        self.judge_length();
        self.found.surest_since(from)
    }

    /// `signal`, softened where the request asked for what was found: its texts hold what is repeated at least
    /// three times, or the last of them asks for repetition. Costs one pass over the texts, so it is for a signal
    /// only.
    #[must_use]
    pub fn weigh<'a>(
        &self,
        signal: Signal,
        texts: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Signal {
        let Finding::Loop { .. } = signal.finding else { return signal };
        let stream = signal.channel.and_then(|channel| self.of(channel));
        let last = texts.clone().into_iter().last();
        let asked = last.is_some_and(asked::for_repetition)
            || stream.is_some_and(|stream| stream.is_asked_by(texts));
        Signal { level: if asked { Level::Soft } else { signal.level }, ..signal }
    }

    /// All signals so far, in the order found.
    pub fn signals(&self) -> &[Signal] {
        &self.found.signals
    }

    /// Tokens so far, of all channels.
    pub fn tokens(&self) -> usize {
        let call = self.call.as_ref().map_or(0, |(_, stream)| stream.tokens());
        self.text.tokens() + self.reasoning.tokens() + self.called + call
    }

    fn of(&self, channel: Channel) -> Option<&Repetition> {
        match channel {
            Channel::Text => Some(&self.text),
            Channel::Reasoning => Some(&self.reasoning),
            Channel::Call(number) => {
                self.call.as_ref().filter(|(open, _)| *open == number).map(|(_, stream)| stream)
            }
        }
    }

    fn judge_length(&mut self) {
        let tokens = narrow(self.tokens());
        if let Some((finding, level)) = self.limits.length.judge(tokens) {
            self.found.note(finding, level, None);
        }
        let expected = self.limits.length.nearly_used(tokens);
        if let Some(expected) = expected.filter(|_| self.found.has_two_signs()) {
            let finding = Finding::Degenerate { expected };
            self.found.note(finding, Level::Soft, None);
        }
    }

    fn judge_words(&mut self) {
        let may_refuse = self.limits.refusal != Reaction::Off && refusal::may_refuse(&self.opening);
        let may_miss = self.limits.attachments == Attachments::Sent;
        if !(may_refuse || may_miss) || self.calls.any() || self.call.is_some() {
            return;
        }
        let heard = wording::heard(&self.opening.normalised());
        let mut told = |finding| self.found.note(finding, Level::Soft, Some(Channel::Text));
        if may_refuse && heard.refuses {
            told(Finding::Refusal);
        }
        if may_miss && heard.misses {
            told(Finding::MissesAttachment);
        }
    }
}

/// Judges the prompt tokens that a provider reports, cached ones included, by the fewest that such prompts took before.
/// Small prompts pass. The signal is soft.
pub fn unread(reported: u64, estimated: u64) -> Option<Signal> {
    let finding = lost::unread(reported, estimated)?;
    Some(Signal { finding, level: Level::Soft, channel: None, choice: 0 })
}

/// The stream of the arguments of call `number`. Of calls only the last one is remembered; the tokens of those
/// before are added to `called`.
fn arguments<'a>(
    open: &'a mut Option<(u32, Repetition)>,
    called: &mut usize,
    number: u32,
) -> &'a mut Repetition {
    if open.as_ref().is_none_or(|(of, _)| *of != number) {
        *called += open.take().map_or(0, |(_, stream)| stream.tokens());
    }
    &mut open.get_or_insert_with(|| (number, Repetition::new(Care::Values))).1
}

impl Found {
    /// Takes note of a sign of repetition, at most as sure as `reaction` has it.
    fn note_loop(
        &mut self,
        reaction: Reaction,
        channel: impl Into<Option<Channel>>,
        finding: Finding,
        level: Level,
    ) {
        let level = match reaction {
            Reaction::Off => return,
            Reaction::Tell => Level::Soft,
            Reaction::Act => level,
        };
        self.note(finding, level, channel.into());
    }

    /// Keeps a signal if it is the first of its kind, level and channel.
    fn note(&mut self, finding: Finding, level: Level, channel: Option<Channel>) {
        let signal = Signal { finding, level, channel, choice: self.choice };
        let known = self.signals.iter().any(|known| {
            known.finding.place() == signal.finding.place()
                && known.level == signal.level
                && known.channel == signal.channel
        });
        if !known && self.signals.len() < MOST_SIGNALS {
            self.signals.push(signal);
        }
    }

    /// The surest of the signals from number `from` on; of several the first.
    fn surest_since(&self, from: usize) -> Option<Signal> {
        self.signals[from..].iter().rev().max_by_key(|signal| signal.level).copied()
    }

    /// Whether there are two kinds of signs of a loop.
    fn has_two_signs(&self) -> bool {
        let mut kinds = self.signals.iter().filter(|signal| signal.finding.is_sign_of_loop());
        let first = kinds.next().map(|signal| signal.finding.place());
        first.is_some_and(|first| kinds.any(|signal| signal.finding.place() != first))
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
