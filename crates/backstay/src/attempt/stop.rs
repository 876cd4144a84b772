//! Stops a reply early that is to be one JSON value: behind the value nothing is read, and the provider is
//! hung up on.

use std::time::Duration;

use backstay_decide::detectors::{OneValue, Reached};
use backstay_wire::chat::Part;
use backstay_wire::{Delta, Reply};
use tokio::time::Instant;

use crate::contract::Contract;
use crate::policy;

/// How long the end is waited for behind the value. The end is one more token of the model and an event:
/// 50 ms at a slow 20 tokens a second, and five times that for a pause on the way.
const GRACE: Duration = Duration::from_millis(250);

/// Watches one reply for the end of its value.
#[derive(Debug, Default)]
pub(super) struct EarlyStop {
    value: OneValue,
    /// Bytes that the model wrote, reasoning included.
    wrote: usize,
    /// When it is stopped unless it ends by itself. `None`: not now.
    until: Option<Instant>,
    /// Whether it is read on, come what may.
    is_over: bool,
}

/// What a reply was stopped at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped {
    /// Why.
    pub why: Behind,
    /// Bytes that the model wrote up to there, what was dropped included.
    pub wrote: usize,
    /// Bytes behind the value that had come. They are dropped.
    pub dropped: usize,
}

/// What came behind a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Behind {
    /// Something else.
    More,
    /// Nothing, not even the end.
    Silence,
}

impl EarlyStop {
    /// For a reply to `contract`.
    pub(super) fn of(contract: &Contract) -> Self {
        let is_over = contract.guards.early_stop == policy::EarlyStop::Never;
        Self { is_over, ..Self::default() }
    }

    /// When no more is waited for. `None`: the stream's own timers say.
    pub(super) fn until(&self) -> Option<Instant> {
        self.until
    }

    /// Takes the next of what the stream says. Returns what it is to be stopped at, if it is.
    pub(super) fn takes(&mut self, delta: &Delta) -> Option<Stopped> {
        if self.is_over {
            return None;
        }
        self.wrote += delta.text_bytes();
        let reached = match delta {
            Delta::Text(text) => self.value.feed(text),
            Delta::Reasoning(_) if self.value.reached() == Reached::Part => return None,
            Delta::Finish { .. } | Delta::End | Delta::Error(_) => {
                (self.is_over, self.until) = (true, None);
                return None;
            }
            delta if delta.is_content() => self.value.other(),
            _ => return None,
        };
        match reached {
            Reached::Part => self.until = None,
            Reached::Value => {
                self.until.get_or_insert_with(|| Instant::now() + GRACE);
            }
            Reached::More => return Some(self.stopped(Behind::More)),
        }
        None
    }

    /// What it is stopped at, now that nothing came in time.
    pub(super) fn silent(&self) -> Stopped {
        self.stopped(Behind::Silence)
    }

    fn stopped(&self, why: Behind) -> Stopped {
        Stopped { why, wrote: self.wrote, dropped: self.value.behind() }
    }
}

impl Stopped {
    /// Takes out of `reply` what came behind its value, and what the provider counted so far: it will have
    /// written more by now.
    pub(super) fn trim(&self, reply: &mut Reply) {
        (reply.usage.output, reply.usage.reasoning) = (None, None);
        let parts = reply.choices.first_mut().map(|choice| &mut choice.parts);
        let text = parts.into_iter().flatten().rev().find_map(|part| match part {
            Part::Text(text) => Some(text),
            _ => None,
        });
        if let Some(text) = text {
            let kept = text.len().saturating_sub(self.dropped);
            text.truncate(text.floor_char_boundary(kept));
        }
    }
}

#[cfg(test)]
mod tests {
    use backstay_wire::Finish;
    use backstay_wire::chat::Choice;

    use super::*;

    fn text(text: &str) -> Delta {
        Delta::Text(text.into())
    }

    /// What the deltas are stopped at, and by which of them.
    fn stopped(deltas: &[Delta]) -> Option<(usize, Stopped)> {
        let mut stop = EarlyStop::default();
        deltas.iter().enumerate().find_map(|(at, delta)| Some((at, stop.takes(delta)?)))
    }

    #[test]
    fn a_reply_is_stopped_by_what_comes_behind_its_value_and_is_no_end() {
        let finish = Delta::Finish { finish: Finish::Truncated, word: None };
        let call = Delta::ToolStart { index: 0, id: "1".into(), name: "find".into() };
        let more = |wrote, dropped| Some((1, Stopped { why: Behind::More, wrote, dropped }));
        for (deltas, told) in [
            (vec![text("{}"), text("\n"), Delta::Alive, finish, text("more")], None),
            (vec![text("{}"), Delta::End, text("more")], None),
            (vec![text("{}\n"), text(" So")], more(6, 4)),
            (vec![text("{}"), Delta::Reasoning("hm".into())], more(4, 0)),
            (vec![text("{} "), call.clone()], more(3, 1)),
            (vec![text("{}"), Delta::Refusal("no".into())], more(4, 0)),
            (vec![text("{}"), Delta::of_choice(1, text("{}"))], more(4, 0)),
            (
                vec![text("{}"), Delta::Untold("citation".into()), Delta::Signature("s".into())],
                None,
            ),
            (vec![Delta::Reasoning("{} so".into()), text("{\"a\":"), text("1}")], None),
            (vec![call, text("{} more")], None),
            (vec![text("{}"), text(","), text("\"a\": 1} more")], None),
        ] {
            assert_eq!(stopped(&deltas), told, "{deltas:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_is_waited_for_from_the_value_on_and_no_longer_once_it_came() {
        let mut stop = EarlyStop::default();
        stop.takes(&text("{\"a\":1"));
        assert_eq!(stop.until(), None);
        stop.takes(&text("}"));
        let until = Instant::now() + GRACE;
        assert_eq!(stop.until(), Some(until));
        tokio::time::advance(GRACE / 2).await;
        stop.takes(&text("\n"));
        assert_eq!(stop.until(), Some(until), "blanks are no sign that more comes");
        assert_eq!(stop.silent(), Stopped { why: Behind::Silence, wrote: 8, dropped: 1 });
        stop.takes(&Delta::Finish { finish: Finish::Complete, word: None });
        assert_eq!(stop.until(), None, "the usage may follow");

        let mut stop = EarlyStop::default();
        stop.takes(&text("{}"));
        stop.takes(&text(", \"a\": 1"));
        assert_eq!(stop.until(), None, "the value was closed too soon");
    }

    #[test]
    fn what_is_dropped_is_the_end_of_the_last_text() {
        let parts = vec![
            Part::Text("{\"a\":".into()),
            Part::Thinking { text: "so".into(), signature: None },
            Part::Text("\"é\"} é".into()),
        ];
        let choices = vec![Choice { parts, ..Choice::default() }];
        let usage = backstay_wire::Usage { input: Some(9), output: Some(1), ..Default::default() };
        let mut reply = Reply { choices, usage, ..Reply::default() };
        Stopped { why: Behind::More, wrote: 17, dropped: 3 }.trim(&mut reply);
        assert_eq!(reply.choices[0].text(), "{\"a\":\"é\"}");
        assert_eq!((reply.usage.input, reply.usage.output), (Some(9), None));
    }
}
