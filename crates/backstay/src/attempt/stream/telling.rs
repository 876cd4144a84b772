//! One reply on its way to the caller, until it is whole or breaks.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use backstay_decide::breaker::Report;
use backstay_decide::fault::Fault;
use backstay_wire::Delta;
use bytes::Bytes;

use super::ends::Ended;
use super::passing::{How, Passed, Passing};
use super::rescue::{Differs, Found, Rescuing};
use super::{Opened, Piece, Waiting};
use crate::attempt::Failure;
use crate::attempt::fold::is_silence;
use crate::call::{Anew, Call};
use crate::fault::CallError;
use crate::policy::StreamMode;
use crate::record::Receipt;
use crate::route::{Brought, Ending, Held};

/// Bytes gathered into one write when several events are ready at once.
const GATHER: usize = 16 << 10;

/// A reply that is being told.
#[derive(Debug)]
pub(super) struct Telling {
    call: Box<Call>,
    source: Source,
    passing: Passing,
    /// Tool calls that wait for the end.
    calls: Waiting,
    /// Whether they wait at all.
    holds_calls: bool,
    /// The deadline passed while the caller read.
    late: bool,
    /// Whether the edits are still to be told in the stream.
    owes_report: bool,
}

/// Where the reply comes from.
#[derive(Debug)]
enum Source {
    /// The provider's stream.
    Stream { opened: Box<Opened>, held: Held },
    /// A reply that is there already, judged and booked.
    Whole(VecDeque<Piece>),
}

/// How far the telling is.
pub(super) enum Told {
    /// No more for now.
    SoFar,
    /// It is whole.
    Whole(Ended),
    /// It broke.
    Broken(Failure),
    /// It is another reply than the caller has begun to read.
    Differs(Differs),
    /// It cannot be told in the caller's dialect, and that was said.
    Untold,
}

/// What follows when a reply broke.
pub(super) enum After {
    /// Another one is sought.
    Rescue(Rescuing),
    /// The stream is over; these bytes are its last.
    Over(Bytes, Box<Receipt>),
}

impl Telling {
    /// Hands `opened` on for `call`.
    pub(super) fn first(call: Box<Call>, opened: Box<Opened>, held: Held) -> Self {
        let passing = Passing::of(&call);
        Self::of(call, Source::Stream { opened, held }, passing)
    }

    /// Goes on with what a rescue found, or ends with the fault that broke the first stream.
    pub(super) fn joined(found: Found) -> Result<Box<Self>, After> {
        let Found { mut call, anew, passing } = found;
        let source = match anew {
            Some(Anew::Stream(opened, held)) => Source::Stream { opened, held: *held },
            Some(Anew::Whole(reply)) => {
                let deltas = reply.deltas().into_iter();
                let piece = |delta| Piece { raw: Bytes::new(), deltas: vec![delta] };
                Source::Whole(deltas.map(piece).collect())
            }
            None => {
                let (last, receipt) = lost(&mut call);
                return Err(After::Over(last, receipt));
            }
        };
        let passing = passing.joined(call.way());
        Ok(Box::new(Self::of(call, source, passing)))
    }

    fn of(call: Box<Call>, source: Source, passing: Passing) -> Self {
        Self {
            owes_report: call.wants_report(),
            calls: Waiting::new(call.contract.ask.dialect),
            holds_calls: call.contract.stream_mode != StreamMode::Passthrough,
            call,
            source,
            passing,
            late: false,
        }
    }

    /// Whether the caller has nothing to read though the provider may be at work.
    pub(super) fn is_held_back(&self) -> bool {
        self.calls.has_begun() || self.passing.is_held_back()
    }

    /// Reads what is there, up to one write's worth, and puts into `ready` what goes out.
    pub(super) fn read(&mut self, cx: &mut Context<'_>, ready: &mut VecDeque<Bytes>) -> Told {
        if self.source.is_late() {
            // The provider spoke in time, the caller did not read.
            self.late = true;
            let note = "the deadline passed while the stream was being read";
            return self.ended_by(Failure::new(Fault::TotalTimeout, note), ready);
        }
        let mut gathered = 0;
        while gathered < GATHER {
            let piece = match self.source.poll_next(cx) {
                Poll::Pending => return Told::SoFar,
                Poll::Ready(Ok(Some(piece))) => piece,
                Poll::Ready(Ok(None)) => {
                    // After a known finish that is a whole reply, and the terminal event is ours to
                    // send; else it is a cut.
                    let cut = Failure::new(Fault::StreamCut, "the stream ended before its end");
                    return self.ended_by(cut, ready);
                }
                // Silent after its finish: the reply is whole, only the end was not said.
                Poll::Ready(Err(failure)) if is_silence(failure.fault) => {
                    return self.ended_by(failure, ready);
                }
                Poll::Ready(Err(failure)) => return Told::Broken(failure),
            };
            let out = if self.holds_calls && self.calls.takes(&piece) {
                self.wait(piece, ready)
            } else {
                self.pass(piece, ready)
            };
            match out {
                Ok(out) => gathered += out,
                Err(told) => return told,
            }
            if self.is_finished() {
                self.source.expect_end();
            }
        }
        Told::SoFar
    }

    /// Passes `piece` on: how many bytes went out.
    ///
    /// # Errors
    /// The telling is over.
    fn pass(&mut self, piece: Piece, ready: &mut VecDeque<Bytes>) -> Result<usize, Told> {
        let shows = piece.deltas.iter().any(Delta::is_content);
        let passed = self.passing.pass(piece);
        if let Passed::On(bytes) | Passed::Last(bytes, _) = &passed
            && shows
            && !bytes.is_empty()
        {
            self.call.first_out();
        }
        match passed {
            Passed::On(bytes) => {
                let bytes = self.reported(bytes);
                let out = bytes.len();
                push(bytes, ready);
                Ok(out)
            }
            Passed::Last(bytes, ended) => {
                let bytes = self.reported(bytes);
                push(bytes, ready);
                Err(Told::Whole(ended))
            }
            Passed::Broken(failure) => {
                if failure.fault == Fault::UnknownFinish {
                    self.call.met_unknown_finish(&failure);
                }
                Err(Told::Broken(failure))
            }
            Passed::Differs(differs) => Err(Told::Differs(differs)),
            Passed::Untold(bytes) => {
                push(bytes, ready);
                Err(Told::Untold)
            }
        }
    }

    /// Keeps `piece` with the calls that wait; at the end they go out. As [`Telling::pass`].
    fn wait(&mut self, piece: Piece, ready: &mut VecDeque<Bytes>) -> Result<usize, Told> {
        self.calls.push(piece.kept()).map_err(Told::Broken)?;
        if self.calls.is_over() { self.let_go(ready) } else { Ok(0) }
    }

    /// Judges the calls that wait and passes them on with all that waits behind them. As
    /// [`Telling::pass`].
    fn let_go(&mut self, ready: &mut VecDeque<Bytes>) -> Result<usize, Told> {
        let fresh = Waiting::new(self.call.contract.ask.dialect);
        let calls = std::mem::replace(&mut self.calls, fresh);
        let pieces = self.judged(calls).map_err(Told::Broken)?;
        let mut out = 0;
        for piece in pieces {
            out += self.pass(piece, ready)?;
        }
        Ok(out)
    }

    /// The pieces that say the calls which waited, mended where the route allows that.
    fn judged(&mut self, calls: Waiting) -> Result<Vec<Piece>, Failure> {
        let calls = calls.over()?;
        let new = self.call.calls_of(calls.reply.clone())?;
        match (&self.passing.how, &self.source) {
            (How::AsTheyAre, Source::Stream { opened, .. }) => {
                calls.in_own_form(opened.dialect(), &new)
            }
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

    /// Whether nothing is missing but the end.
    fn is_finished(&self) -> bool {
        if self.calls.has_begun() {
            return self.calls.is_finished();
        }
        self.passing.ends.has_finished() && self.ended().is_some()
    }

    /// How all choices ended. `None`: some have not; of one that is missing nothing may have come.
    fn ended(&self) -> Option<Ended> {
        let are_all = self.passing.ends.count() >= self.call.contract.most_choices();
        self.passing.ends.whole().ok().filter(|_| are_all)
    }

    /// No more comes, and `failure` says why: after a known finish the reply is whole.
    fn ended_by(&mut self, failure: Failure, ready: &mut VecDeque<Bytes>) -> Told {
        if self.calls.has_begun() {
            if !self.calls.is_finished() {
                return Told::Broken(failure);
            }
            if let Err(told) = self.let_go(ready) {
                return told;
            }
        }
        if self.ended().is_none() {
            return Told::Broken(failure);
        }
        let ended = match self.passing.whole() {
            Ok(ended) => ended,
            Err(failure) => return Told::Broken(failure),
        };
        let last = self.passing.terminal();
        let last = self.reported(last);
        push(last, ready);
        Told::Whole(ended)
    }

    /// The reply is whole.
    pub(super) fn complete(self, Ended { outcome, finish }: Ended) -> Box<Receipt> {
        let Self { mut call, source, passing, .. } = self;
        let outcome = call.ended_as(outcome);
        if let How::Anew(writer) = &passing.how {
            call.lost(writer.losses());
        }
        match source {
            Source::Stream { mut opened, held } => {
                let (timed, signals) = (opened.timed(), opened.signals());
                drop(opened);
                call.signalled(&signals);
                call.met_unknown(passing.unknown);
                let report = call.report(None);
                let (brought, usage) = (call.brought_late(timed.first_token), passing.usage);
                call.streamed(held, Ending { report, brought, usage, timed, leaves: None });
                call.stream_done(outcome, finish, passing.usage)
            }
            Source::Whole(_) => call.stream_told(outcome, finish),
        }
    }

    /// The reply broke: another one takes its place, or the fault is told and ends the stream.
    pub(super) fn breaks(self, failure: &Failure) -> After {
        let Self { mut call, source, passing, late, .. } = self;
        call.cut_off(failure);
        let report = if late { Report::NEUTRAL } else { call.report(Some(failure.fault)) };
        source.broke_off(&mut call, &passing, report, Some(failure));
        let is_to_be_rescued = !late && call.rescues(failure, passing.released(), passing.prose());
        if is_to_be_rescued {
            return After::Rescue(Rescuing::new(call, passing));
        }
        let (last, receipt) = match call.original() {
            Some(_) => lost(&mut call),
            None => failed(&mut call, failure),
        };
        After::Over(last, receipt)
    }

    /// The reply is another one than the caller has begun to read: the fault of the first one is told.
    pub(super) fn differs(self, differs: Differs) -> (Bytes, Box<Receipt>) {
        let Self { mut call, source, passing, .. } = self;
        source.broke_off(&mut call, &passing, Report::NEUTRAL, None);
        call.differed(differs.same);
        lost(&mut call)
    }

    /// It was told that the reply cannot be told.
    pub(super) fn untold(self) -> Box<Receipt> {
        let Self { mut call, source, passing, .. } = self;
        let note = "the stream cannot be told in the caller's dialect";
        let failure = Failure::new(Fault::MalformedReply, note);
        let report = call.report(Some(failure.fault));
        source.broke_off(&mut call, &passing, report, Some(&failure));
        call.stream_failed(&failure)
    }
}

impl Source {
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Failure>> {
        match self {
            Self::Stream { opened, .. } => opened.poll_next(cx),
            Self::Whole(pieces) => Poll::Ready(Ok(pieces.pop_front())),
        }
    }

    /// Nothing more is read of it, for its `failure` if there is one: its target is told so.
    fn broke_off(
        self,
        call: &mut Call,
        passing: &Passing,
        report: Report,
        failure: Option<&Failure>,
    ) {
        if let Self::Stream { mut opened, held } = self {
            let (timed, signals) = (opened.timed(), opened.signals());
            drop(opened);
            call.signalled(&signals);
            call.met_unknown(passing.unknown);
            let brought = failure.map_or(Brought::Nothing, |failure| Brought::Fault(failure.fault));
            let usage = passing.usage;
            let ending = Ending { report, brought, usage, timed, leaves: None };
            call.broke_off(held, ending, failure);
        }
    }

    /// Nothing is missing but the end.
    fn expect_end(&mut self) {
        if let Self::Stream { opened, .. } = self {
            opened.expect_end();
        }
    }

    /// Whether the time for the whole attempt passed while nobody read.
    fn is_late(&self) -> bool {
        match self {
            Self::Stream { opened, .. } => opened.is_late(),
            Self::Whole(_) => false,
        }
    }
}

fn push(bytes: Bytes, ready: &mut VecDeque<Bytes>) {
    if !bytes.is_empty() {
        ready.push_back(bytes);
    }
}

/// The stream is over by `failure`, which nothing was done about.
fn failed(call: &mut Call, failure: &Failure) -> (Bytes, Box<Receipt>) {
    let bytes = told(call, &call.stream_error(failure));
    (bytes, call.stream_failed(failure))
}

/// The stream is over by the fault that broke the first reply.
fn lost(call: &mut Call) -> (Bytes, Box<Receipt>) {
    let Some((failure, error)) = call.original() else {
        // There is none only where nothing was to be rescued.
        return failed(call, &Failure::new(Fault::StreamCut, "the stream broke off"));
    };
    let (failure, bytes) = (failure.clone(), told(call, error));
    (bytes, call.stream_failed(&failure))
}

/// `error` in the caller's dialect.
fn told(call: &Call, error: &CallError) -> Bytes {
    let dialect = call.contract.ask.dialect;
    Bytes::from(error.told(&call.contract.call_id, |told| dialect.write_stream_error(told)))
}
