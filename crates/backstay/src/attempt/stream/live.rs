//! A stream on its way to the caller: released, so it can no longer be retried.
//!
//! `Live` is an HTTP body. The caller's own connection polls it; dropping it cancels the provider
//! and gives back everything the call held. It ends in one of two ways: with the dialect's one
//! terminal event after a known finish, or with one in-band error. It never just stops.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future as _;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use backstay_decide::breaker::Report;
use backstay_decide::fault::Fault;
use backstay_wire::dialect::{ErrorOut, StreamWriter, UsageEvent};
use backstay_wire::{Delta, Usage};
use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use super::ends::{Ended, Ends};
use super::{COMMENT, Opened, Piece, Waiting};
use crate::attempt::fold::is_silence;
use crate::attempt::{Failure, classify};
use crate::call::Call;
use crate::contract::Wants;
use crate::policy::StreamMode;
use crate::record::{Outcome, Spent};
use crate::route::{Brought, Ending, Held};

/// Bytes gathered into one write when several events are ready at once.
const GATHER: usize = 16 << 10;

/// A released stream with the call it belongs to.
#[derive(Debug)]
pub struct Live {
    call: Call,
    source: Option<Source>,
    passing: Passing,
    /// Tool calls that wait for the end.
    calls: Waiting,
    /// Whether they wait at all.
    holds_calls: bool,
    /// Rings when a comment is due, while calls wait.
    beat: Option<Pin<Box<Sleep>>>,
    ready: VecDeque<Bytes>,
    /// The deadline passed while the caller read.
    late: bool,
    /// Whether the edits are still to be told in the stream.
    owes_report: bool,
    outcome: Outcome,
}

/// The provider's side, until the stream is over.
#[derive(Debug)]
struct Source {
    opened: Opened,
    held: Held,
}

/// How events are passed on, and what has passed.
#[derive(Debug)]
struct Passing {
    how: How,
    usage_asked: bool,
    ends: Ends,
    usage: Usage,
    /// Elements not known here, each counted.
    unknown: u64,
}

#[derive(Debug)]
enum How {
    /// The provider's bytes as they are.
    AsTheyAre,
    /// Written anew in the caller's dialect.
    Anew(Box<StreamWriter>),
}

/// What became of a piece.
enum Passed {
    /// These bytes go on; may be empty.
    On(Bytes),
    /// These bytes are the last, and the stream ended so.
    Last(Bytes, Ended),
    /// The stream cannot be trusted any more.
    Broken(Failure),
    /// It cannot be told in the caller's dialect; these bytes say so and are the last.
    Untold(Bytes),
}

impl Live {
    /// Hands `opened` on for `call`.
    pub(crate) fn new(call: Call, opened: Opened, held: Held) -> Self {
        let caller = call.contract.ask.dialect;
        let usage_asked = matches!(call.contract.wants, Wants::Stream { usage: true });
        let how = if call.provider_dialect() == Some(caller) {
            How::AsTheyAre
        } else {
            let usage = if usage_asked { UsageEvent::Send } else { UsageEvent::Omit };
            // Without a name of ours it names the model that answers.
            How::Anew(Box::new(caller.stream_writer("", usage)))
        };
        let passing = Passing {
            how,
            usage_asked,
            ends: Ends::default(),
            usage: Usage::default(),
            unknown: 0,
        };
        Self {
            owes_report: call.wants_report(),
            holds_calls: call.contract.stream_mode != StreamMode::Passthrough,
            call,
            source: Some(Source { opened, held }),
            passing,
            calls: Waiting::new(caller),
            beat: None,
            ready: VecDeque::new(),
            late: false,
            outcome: Outcome::Answered,
        }
    }

    /// How the stream ended. Until it has: answered, as its head says.
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// What the call cost. `None`: not known before the stream's end, or without prices.
    pub fn cost(&self) -> Option<Spent> {
        self.call.cost()
    }

    /// Reads what is there, up to one write's worth.
    fn fill(&mut self, cx: &mut Context<'_>) {
        if self.source.as_ref().is_some_and(|source| source.opened.is_over()) {
            // The provider spoke in time, the caller did not read.
            self.late = true;
            let note = "the deadline passed while the stream was being read";
            return self.body_ended_by(&Failure::new(Fault::TotalTimeout, note));
        }
        let mut gathered = 0;
        while gathered < GATHER {
            let Some(source) = &mut self.source else { return };
            let piece = match source.opened.poll_next(cx) {
                Poll::Pending => return,
                Poll::Ready(Ok(Some(piece))) => piece,
                Poll::Ready(Ok(None)) => return self.body_ended(),
                // Silent after its finish: the reply is whole, only the end was not said.
                Poll::Ready(Err(failure)) if is_silence(failure.fault) => {
                    return self.body_ended_by(&failure);
                }
                Poll::Ready(Err(failure)) => return self.broken(&failure),
            };
            let out = if self.holds_calls && self.calls.takes(&piece) {
                self.wait(piece)
            } else {
                self.pass(piece)
            };
            let Some(out) = out else { return };
            gathered += out;
        }
    }

    /// Passes `piece` on: how many bytes went out. `None`: the stream is over.
    fn pass(&mut self, piece: Piece) -> Option<usize> {
        match self.passing.pass(piece) {
            Passed::On(bytes) => {
                let bytes = self.reported(bytes);
                let out = bytes.len();
                self.push(bytes);
                Some(out)
            }
            Passed::Last(bytes, ended) => {
                let bytes = self.reported(bytes);
                self.push(bytes);
                self.complete(ended);
                None
            }
            Passed::Broken(failure) => {
                self.broken(&failure);
                None
            }
            Passed::Untold(bytes) => {
                self.push(bytes);
                let note = "the stream cannot be told in the caller's dialect";
                self.ended(&Failure::new(Fault::MalformedReply, note));
                None
            }
        }
    }

    /// Keeps `piece` with the calls that wait; at the end they go out.
    fn wait(&mut self, piece: Piece) -> Option<usize> {
        if let Err(failure) = self.calls.push(piece) {
            self.broken(&failure);
            return None;
        }
        if self.calls.is_over() { self.let_go() } else { Some(0) }
    }

    /// Judges the calls that wait and passes them on with all that waits behind them. As
    /// [`Live::pass`].
    fn let_go(&mut self) -> Option<usize> {
        let fresh = Waiting::new(self.call.contract.ask.dialect);
        let calls = std::mem::replace(&mut self.calls, fresh);
        let pieces = match self.judged(calls) {
            Ok(pieces) => pieces,
            Err(failure) => {
                self.broken(&failure);
                return None;
            }
        };
        let mut out = 0;
        for piece in pieces {
            out += self.pass(piece)?;
        }
        Some(out)
    }

    /// The pieces that say the calls which waited, mended where the route allows that.
    fn judged(&mut self, calls: Waiting) -> Result<Vec<Piece>, Failure> {
        let calls = calls.over()?;
        let new = self.call.calls_of(calls.reply.clone())?;
        match (&self.passing.how, &self.source) {
            (How::AsTheyAre, Some(source)) => calls.in_own_form(source.opened.dialect(), &new),
            (How::AsTheyAre | How::Anew(_), _) => calls.anew(&new),
        }
    }

    /// `bytes` with the edits where the finish is named. All are known by then: calls wait for it.
    fn reported(&mut self, bytes: Bytes) -> Bytes {
        if !self.owes_report || !self.passing.ends.has_finished() {
            return bytes;
        }
        let told = self.call.report_in(&bytes, 1);
        self.owes_report = told.is_none();
        told.unwrap_or(bytes)
    }

    fn push(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        self.call.first_out();
        self.ready.push_back(bytes);
    }

    /// The provider's body ended without its terminal event. After a known finish that is a whole
    /// reply, and the terminal event is ours to send; else it is a cut.
    fn body_ended(&mut self) {
        let cut = Failure::new(Fault::StreamCut, "the stream ended before its end");
        self.body_ended_by(&cut);
    }

    fn body_ended_by(&mut self, failure: &Failure) {
        if self.calls.has_begun() {
            if !self.calls.is_finished() {
                return self.broken(failure);
            }
            if self.let_go().is_none() {
                return;
            }
        }
        // A choice of which nothing has come may still be missing.
        let are_all = self.passing.ends.count() >= self.call.contract.most_choices();
        let ended = self.passing.ends.whole().ok().filter(|_| are_all);
        let Some(ended) = ended else { return self.broken(failure) };
        let dialect = self.call.contract.ask.dialect;
        let last = self.passing.terminal(dialect);
        let last = self.reported(last);
        self.push(last);
        self.complete(ended);
    }

    /// The stream is whole.
    fn complete(&mut self, Ended { outcome, finish }: Ended) {
        let Some(source) = self.source.take() else { return };
        let timed = source.opened.timed();
        drop(source.opened);
        let outcome = self.call.ended_as(outcome);
        self.outcome = outcome;
        if let How::Anew(writer) = &self.passing.how {
            self.call.lost(writer.losses());
        }
        self.call.met_unknown(self.passing.unknown);
        let report = self.call.report(None);
        let brought = self.call.brought_late(timed.first_token);
        let usage = self.passing.usage;
        self.call.streamed(source.held, Ending { report, brought, usage, timed, leaves: None });
        self.call.stream_done(outcome, finish, self.passing.usage);
    }

    /// The stream broke: say so in the caller's own words, once, and end.
    fn broken(&mut self, failure: &Failure) {
        let Some(source) = self.source.take() else { return };
        let error = self.call.stream_error(failure);
        let told = ErrorOut {
            status: 502,
            code: error.code(),
            message: &error.to_string(),
            param: None,
            call_id: &self.call.contract.call_id,
        };
        let bytes = self.call.contract.ask.dialect.write_stream_error(&told);
        self.ready.push_back(Bytes::from(bytes));
        self.source = Some(source);
        self.ended(failure);
    }

    /// The stream is over, and its failure has been told.
    fn ended(&mut self, failure: &Failure) {
        let Some(source) = self.source.take() else { return };
        let timed = source.opened.timed();
        drop(source.opened);
        let report =
            if self.late { Report::NEUTRAL } else { self.call.report(Some(failure.fault)) };
        let (brought, usage) = (Brought::Fault(failure.fault), self.passing.usage);
        self.call.streamed(source.held, Ending { report, brought, usage, timed, leaves: None });
        self.call.stream_failed(failure, self.passing.usage);
        self.outcome = Outcome::Failed;
    }

    /// A comment, when calls have kept the caller waiting for long.
    fn poll_beat(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        if !self.calls.has_begun() {
            return Poll::Pending;
        }
        let pause = self.call.contract.keep_alive;
        let beat = self.beat.get_or_insert_with(|| Box::pin(tokio::time::sleep(pause)));
        ready!(beat.as_mut().poll(cx));
        self.beat = None;
        Poll::Ready(Bytes::from_static(b": still working\n\n"))
    }

    /// Everything ready as one piece.
    fn take(&mut self) -> Option<Bytes> {
        let first = self.ready.pop_front()?;
        if self.ready.is_empty() {
            return Some(first);
        }
        let more: usize = self.ready.iter().map(Bytes::len).sum();
        let mut all = BytesMut::with_capacity(first.len() + more);
        all.extend_from_slice(&first);
        for bytes in self.ready.drain(..) {
            all.extend_from_slice(&bytes);
        }
        Some(all.freeze())
    }
}

impl Body for Live {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        this.fill(cx);
        match this.take() {
            Some(bytes) => {
                this.beat = None;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            None if this.source.is_none() => Poll::Ready(None),
            None => this.poll_beat(cx).map(|bytes| Some(Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.source.is_none() && self.ready.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}

impl Passing {
    fn pass(&mut self, piece: Piece) -> Passed {
        let mut ended = None;
        for delta in &piece.deltas {
            match delta {
                Delta::Unknown(_) => self.unknown += 1,
                Delta::Usage(usage) => self.usage.overwrite(*usage),
                Delta::Error(error) => return Passed::Broken(classify::in_stream(error.clone())),
                Delta::End => match self.ends.whole() {
                    Ok(whole) => ended = Some(whole),
                    Err(failure) => return Passed::Broken(failure),
                },
                // What is told anew is told of the first choice only.
                Delta::OtherChoice { .. } if matches!(self.how, How::Anew(_)) => {}
                delta => {
                    if let Err(failure) = self.ends.note(delta) {
                        return Passed::Broken(failure);
                    }
                }
            }
        }
        let bytes = self.bytes(piece);
        if matches!(&self.how, How::Anew(writer) if writer.is_broken()) {
            return Passed::Untold(bytes);
        }
        match ended {
            Some(ended) => Passed::Last(bytes, ended),
            None => Passed::On(bytes),
        }
    }

    fn bytes(&mut self, piece: Piece) -> Bytes {
        match &mut self.how {
            How::AsTheyAre if self.usage_asked => piece.raw,
            // The usage event that only we asked for is not the caller's to see.
            How::AsTheyAre if piece.is_usage() => Bytes::new(),
            How::AsTheyAre => piece.raw,
            How::Anew(_) if piece.deltas.is_empty() => Bytes::from_static(COMMENT),
            How::Anew(writer) => {
                let mut out = Vec::new();
                for delta in &piece.deltas {
                    writer.write(delta, &mut out);
                }
                Bytes::from(out)
            }
        }
    }

    /// The dialect's terminal event, where the provider forgot it.
    fn terminal(&mut self, dialect: backstay_wire::Dialect) -> Bytes {
        if let How::Anew(writer) = &mut self.how {
            let mut out = Vec::new();
            writer.write(&Delta::End, &mut out);
            return Bytes::from(out);
        }
        Bytes::from_static(dialect.terminal_event())
    }
}
