//! The end of a call whose reply was handed on as a stream.

use std::time::Duration;

use backstay_decide::Verdict;
use backstay_decide::breaker::Turn;
use backstay_decide::fault::Fault;
use backstay_decide::spend::Took;
use backstay_wire::chat::Quirk;
use backstay_wire::{Dialect, Finish, Reply, Usage};

use super::amended::has_cut_call;
use super::facts::sentence;
use super::{Call, End, Plan};
use crate::attempt::stream::Opened;
use crate::attempt::{Failure, Whole};
use crate::fault::CallError;
use crate::policy::StreamMode;
use crate::record::{Outcome, Receipt};
use crate::route::{Brought, Ending, Held};

impl Call {
    /// The dialect of the target the call is at.
    pub(crate) fn provider_dialect(&self) -> Option<Dialect> {
        self.stop().map(|stop| stop.target.provider.dialect)
    }

    /// Content goes out; the first time is kept.
    pub(crate) fn first_out(&mut self) {
        if self.first_out.is_none() {
            self.first_out = Some(self.engine.now().since(self.contract.ask.arrived));
        }
    }

    /// Reports how the stream went to its target.
    pub(crate) fn streamed(&mut self, held: Held, mut ending: Ending) {
        self.unjudged(&mut ending);
        let stop = self.current.and_then(|index| self.stops.get_mut(index));
        ending.leaves = stop.and_then(|stop| stop.stay.take());
        let changes = held.settle(ending, self.engine.now());
        self.turned_here(&changes);
    }

    /// The shape of what was handed on piece by piece was not judged.
    fn unjudged(&self, ending: &mut Ending) {
        if self.contract.schema_key().is_some() && ending.report.quality == Verdict::Success {
            ending.report.quality = Verdict::Neutral;
        }
    }

    /// Reports to its target that the stream broke off, by its `failure` if there is one.
    pub(crate) fn broke_off(&mut self, held: Held, mut ending: Ending, failure: Option<&Failure>) {
        if let Some((index, failure)) = self.current.zip(failure) {
            self.spares(index, &held, failure, &[]);
        }
        self.unjudged(&mut ending);
        self.count_usage(ending.usage);
        self.at_least = true;
        self.pay(Took::Unknown);
        let changes = held.settle(ending, self.engine.now());
        self.turned_here(&changes);
    }

    /// Lets a stream go to the caller.
    pub(super) fn releases(&mut self, opened: Box<Opened>, mut held: Held) {
        // One that was not looked at tells of its first content at its end.
        if let Some(first_token) = opened.first_token() {
            self.opened(&mut held, Brought::Content(Some(first_token)));
        }
        self.end = Some(End::Stream(opened, held));
        self.plan = Plan::Over;
    }

    /// Reports to its target that the stream brought content.
    fn opened(&mut self, held: &mut Held, brought: Brought) {
        let changes = held.started(brought, self.engine.now());
        self.turned_here(&changes);
    }

    /// What the end of a stream says of its first content: something only where it went out before
    /// there was any.
    pub(crate) fn brought_late(&self, first_token: Option<Duration>) -> Brought {
        match self.contract.stream_mode {
            StreamMode::Passthrough => Brought::Content(first_token),
            StreamMode::Gate | StreamMode::Windowed | StreamMode::Buffered => Brought::Nothing,
        }
    }

    fn turned_here(&mut self, changes: &[Turn]) {
        if let Some(index) = self.current {
            self.turned(index, changes);
        }
    }

    /// Elements of the stream that are not known here.
    pub(crate) fn met_unknown(&self, count: u64) {
        if count > 0 {
            let target = self.target_id();
            tracing::warn!(%target, count, "a stream held elements not known here");
            self.engine.metrics().unknown(target, count);
        }
    }

    /// The stream finished in a word that is not known.
    pub(crate) fn met_unknown_finish(&self, failure: &Failure) {
        self.unknown_finish(self.target_id(), &failure.note);
    }

    /// What was put right while a reply was read.
    pub(super) fn met_quirks(&mut self, quirks: &[Quirk]) {
        for quirk in quirks {
            let target = self.target_id();
            tracing::warn!(%target, quirk = quirk.word(), "a reply was not as its dialect has it");
            self.engine.metrics().quirk(target, quirk.word());
            self.notes.push(format!("put right: {}", quirk.word()));
        }
    }

    /// What could not be said in the caller's dialect.
    pub(crate) fn lost(&mut self, losses: &[backstay_wire::Loss]) {
        self.notes.extend(losses.iter().map(|loss| format!("lost {}: {}", loss.path, loss.note)));
    }

    /// Judges the tool calls of a stream that is over, like those of a whole reply: the new
    /// arguments of each that was mended, by its place among the calls.
    ///
    /// # Errors
    /// Some call may not be made.
    pub(crate) fn calls_of(&mut self, reply: Reply) -> Result<Vec<(usize, String)>, Failure> {
        self.met_quirks(&reply.quirks);
        let dialect = self.contract.ask.dialect;
        let whole = Whole { reply, raw: None, events: None, dialect };
        let verdict = self.verdict(&whole);
        self.judged(verdict.as_ref().err().map(|(_, unfit)| unfit), self.engine.now());
        match verdict {
            Ok(checked) => {
                let amended = self.amended(checked);
                self.count_edits();
                let new = amended.into_iter().flat_map(|amended| amended.arguments);
                Ok(new.map(|new| (new.call, new.text)).collect())
            }
            // As a whole reply would be: handed on with its own finish.
            Err((_, unfit)) if is_handed(unfit.fault) && !has_cut_call(&whole.reply) => {
                Ok(Vec::new())
            }
            Err((_, unfit)) => Err(Failure::new(unfit.fault, sentence(&unfit))),
        }
    }

    /// How a stream that ended well is told: mended, where its calls were.
    pub(crate) fn ended_as(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Answered if !self.edits.is_empty() => Outcome::Mended,
            outcome => outcome,
        }
    }

    /// A whole stream was handed on.
    pub(crate) fn stream_done(
        &mut self,
        outcome: Outcome,
        finish: Finish,
        usage: Usage,
    ) -> Box<Receipt> {
        self.count_usage(usage);
        self.pays_usage(usage);
        self.stream_told(outcome, finish)
    }

    /// A whole reply was handed on, which was booked before.
    pub(crate) fn stream_told(&mut self, outcome: Outcome, finish: Finish) -> Box<Receipt> {
        self.seen.finish = finish.word();
        self.is_rescued();
        self.end_stream(outcome, "", "")
    }

    /// A stream broke after its release, and this was told.
    pub(crate) fn stream_failed(&mut self, failure: &Failure) -> Box<Receipt> {
        self.end_stream(Outcome::Failed, failure.fault.code(), &failure.note)
    }

    fn end_stream(&mut self, outcome: Outcome, code: &'static str, note: &str) -> Box<Receipt> {
        self.count_rescue();
        let receipt = Box::new(self.receipt(outcome));
        self.close_as(&receipt, code, note);
        receipt
    }

    /// The failure as the caller is told it inside the stream.
    pub(crate) fn stream_error(&self, failure: &Failure) -> CallError {
        let target = self.target_id();
        let id = &self.contract.call_id;
        let note = format!(
            "the stream from {target} broke after its start: {}; what came before is not a whole \
             answer; see `backstay explain {id}`",
            failure.note
        );
        CallError::attempt(failure.fault, note).told_by(failure.provider.clone())
    }
}

/// Whether a reply with this fault goes to the caller with its own finish.
fn is_handed(fault: Fault) -> bool {
    matches!(fault, Fault::Truncated | Fault::Paused | Fault::Refused | Fault::ContentFiltered)
}
