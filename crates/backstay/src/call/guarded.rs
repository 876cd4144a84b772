//! What the guards of a call found: told in its notes, the log and the metrics.

use backstay_decide::detectors::{self, Finding, Signal};
use backstay_decide::fault::Fault;
use backstay_decide::recover::rescue::Way;
use backstay_decide::recover::{self, Next};

use super::Call;
use crate::attempt::{Failure, Whole};
use crate::clock::ThreadDice;
use crate::policy::{OnFinding, QuietRefusal};
use crate::route::{Armed, Brought, Ending, Stop, Timed};
use crate::validate::{Layer, Unfit};

impl Call {
    /// Takes note of what was found in a reply that was not cut off for it.
    pub(crate) fn signalled(&mut self, signals: &[Signal]) {
        for signal in signals {
            self.count_signal(signal);
            self.notes.push(format!("guard {}: {signal}", signal.finding.code()));
        }
    }

    /// Counts what a reply was cut off for. Its sentence is the failure's.
    pub(crate) fn cut_off(&self, failure: &Failure) {
        if let Some(signal) = &failure.found {
            self.count_signal(signal);
        }
    }

    fn count_signal(&self, signal: &Signal) {
        self.engine.metrics().streams().found(self.target_id(), signal);
    }

    /// Why a reply that refuses in words is left for the next tier. `None`: it does not refuse, or is the
    /// caller's to see.
    pub(super) fn quiet_refusal(&self, signals: &[Signal]) -> Option<Failure> {
        if self.contract.guards.on_quiet_refusal == QuietRefusal::Tag {
            return None;
        }
        let refusal = signals.iter().find(|signal| signal.finding == Finding::Refusal)?;
        let failure = Failure::new(Fault::Refused, refusal.to_string());
        let failure = Failure { found: Some(*refusal), ..failure };
        let next = recover::decide(&self.facts(&failure), &mut ThreadDice).next;
        (next == Next::Elsewhere).then_some(failure)
    }

    /// A whole reply that the guards do not let pass.
    pub(super) fn cut_whole(
        &mut self,
        armed: Box<Armed>,
        whole: &Whole,
        (timed, cut): (Timed, Failure),
    ) {
        self.counted(&whole.reply);
        self.cut_off(&cut);
        let report = self.report(Some(cut.fault));
        let (brought, usage) = (Brought::Content(timed.first_token), whole.reply.usage);
        let now = self.settle(armed, Ending { report, brought, usage, timed, leaves: None });
        let unfit = Unfit::new(cut.fault, Layer::Completion, vec![cut.note.clone()]);
        self.judged(Some(&unfit), now);
        let next = self.decide(&cut);
        self.follow(next, cut, None);
    }

    /// Learns from a reported prompt size, or says that the prompt was not read. A prompt that is asked
    /// again, or that holds the beginning of its reply, is longer than the body it began as.
    pub(super) fn learn(&self, input: Option<u64>) -> Option<Signal> {
        let (input, stop) = (input?, self.stop()?);
        if !self.reask.is_empty() || self.way() == Way::Continue {
            return None;
        }
        let sent = self.contract.ask.body.len() as u64 + stop.added.bytes;
        let unread = self.unread(stop, input, sent);
        let learns = unread.is_none() && stop.health.wants_to_learn();
        // The body is read for pictures last: of most calls nothing is told or learned.
        if !(learns || unread.is_some()) || self.contract.may_hold_pictures() {
            return None;
        }
        if learns {
            stop.health.learn(sent, input);
        }
        unread
    }

    /// A prompt that the provider counts far fewer tokens of than it should hold, by what the target's
    /// prompts took before.
    fn unread(&self, stop: &Stop, reported: u64, sent: u64) -> Option<Signal> {
        if self.contract.guards.context == OnFinding::Off {
            return None;
        }
        detectors::unread(reported, stop.health.fewest(sent)?)
    }
}
