//! What a caller has got of a reply: its text and reasoning, in runs, as far as another reply can be
//! compared with it.

use backstay_decide::recover::rescue::Released;
use backstay_wire::dialect::StreamPlace;
use backstay_wire::{Delta, Dialect};

use super::seam::Seam;
use crate::attempt::stream::Piece;

/// Most text kept of a stream, in bytes: some 60,000 tokens, more than models write at a time.
const MAX_TEXT: usize = 256 << 10;

/// Most changes between text and reasoning: each costs more than its bytes.
const MAX_RUNS: usize = 256;

/// Which of the two a caller reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Channel {
    Text,
    Reasoning,
}

/// Text of one channel without anything between.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) channel: Channel,
    /// Never empty.
    pub(super) text: String,
}

/// What was sent of one reply, over all the attempts it took.
#[derive(Debug, Default)]
pub(in crate::attempt::stream) struct Sent {
    /// No two neighbours of one channel.
    runs: Vec<Run>,
    bytes: usize,
    place: StreamPlace,
    /// Why no other reply can be compared with it.
    beyond: Option<&'static str>,
}

impl Sent {
    /// Takes note of a piece that went out as the provider's own bytes.
    pub(in crate::attempt::stream) fn pass(&mut self, dialect: Dialect, piece: &Piece) {
        self.place.pass(dialect, &piece.raw, &piece.deltas);
        self.told(&piece.deltas);
    }

    /// Takes note of what a writer told.
    pub(in crate::attempt::stream) fn told(&mut self, deltas: &[Delta]) {
        for delta in deltas {
            match delta {
                Delta::Text(text) => self.add(Channel::Text, text),
                Delta::Reasoning(text) => self.add(Channel::Reasoning, text),
                Delta::Start { .. }
                | Delta::Usage(_)
                | Delta::Alive
                | Delta::Logprobs(_)
                | Delta::Quirk(_)
                | Delta::Signature(_) => {}
                Delta::Refusal(_) => self.ends("a refusal was sent"),
                Delta::ToolStart { .. } | Delta::ToolArguments { .. } => {
                    self.ends("tool calls were sent");
                }
                Delta::Finish { .. } | Delta::End => self.ends("the finish was sent"),
                Delta::OtherChoice { .. } => self.ends("several choices were sent"),
                Delta::Untold(_) | Delta::Unknown(_) => {
                    self.ends("something was sent that has no neutral form");
                }
                Delta::Error(_) => self.ends("an error was sent"),
            }
        }
    }

    /// What may be done with it.
    pub(in crate::attempt::stream) fn released(&self) -> Released {
        match (self.beyond, self.prose()) {
            (Some(why), _) => Released::Beyond(why),
            (None, Some(_)) => Released::Prose,
            (None, None) => Released::Comparable,
        }
    }

    /// The text, where there is nothing else and enough of it to find the seam behind it.
    pub(in crate::attempt::stream) fn prose(&self) -> Option<&str> {
        match self.runs.as_slice() {
            [Run { channel: Channel::Text, text }] if Seam::fits(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is more than reasoning and blanks.
    pub(in crate::attempt::stream) fn has_answered(&self) -> bool {
        let is_answer = |run: &Run| run.channel == Channel::Text && !run.text.trim().is_empty();
        self.runs.iter().any(is_answer)
    }

    /// Where the message stands.
    pub(in crate::attempt::stream) fn place(&self) -> &StreamPlace {
        &self.place
    }

    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }

    fn add(&mut self, channel: Channel, text: &str) {
        if self.beyond.is_some() || text.is_empty() {
            return;
        }
        self.bytes += text.len();
        match self.runs.last_mut().filter(|run| run.channel == channel) {
            Some(run) => run.text.push_str(text),
            None => self.runs.push(Run { channel, text: text.to_owned() }),
        }
        if self.bytes > MAX_TEXT || self.runs.len() > MAX_RUNS {
            self.ends("more was sent than is kept");
        }
    }

    fn ends(&mut self, why: &'static str) {
        self.beyond.get_or_insert(why);
        self.runs = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_is_bounded_and_then_given_up() {
        let mut sent = Sent::default();
        let page = "x".repeat(64 << 10);
        for _ in 0..4 {
            sent.told(&[Delta::Text(page.clone())]);
        }
        assert_eq!((sent.released(), sent.bytes), (Released::Prose, MAX_TEXT));
        sent.told(&[Delta::Text("x".into())]);
        assert_eq!(sent.released(), Released::Beyond("more was sent than is kept"));
        assert!(sent.runs().is_empty());
        let mut sent = Sent::default();
        for _ in 0..200 {
            sent.told(&[Delta::Text("a".into()), Delta::Reasoning("b".into())]);
        }
        assert_eq!(sent.released(), Released::Beyond("more was sent than is kept"));
    }

    #[test]
    fn effects_ends_and_what_has_no_neutral_form_cannot_be_compared() {
        for delta in [
            Delta::Refusal("no".into()),
            Delta::ToolStart { index: 0, id: "1".into(), name: "t".into() },
            Delta::End,
            Delta::of_choice(1, Delta::Text("b".into())),
            Delta::Untold("a citation".into()),
            Delta::Unknown("event: x".into()),
        ] {
            let mut sent = Sent::default();
            sent.told(&[Delta::Text("a".into()), delta.clone()]);
            assert!(matches!(sent.released(), Released::Beyond(_)), "{delta:?}");
        }
    }

    #[test]
    fn only_text_alone_is_prose() {
        let mut sent = Sent::default();
        assert_eq!(sent.released(), Released::Comparable);
        sent.told(&[Delta::Text("Lighthouses".into()), Delta::Alive]);
        assert_eq!(sent.released(), Released::Comparable, "too little to find its end again");
        sent.told(&[Delta::Text(" stand on rocks".into())]);
        assert_eq!(sent.prose(), Some("Lighthouses stand on rocks"));
        sent.told(&[Delta::Reasoning("hm".into())]);
        assert_eq!(sent.released(), Released::Comparable);
    }
}
