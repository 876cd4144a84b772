//! A streamed reply as it arrives: bytes to events to deltas, under its timers.
//!
//! The stream is polled by whoever wants its pieces: the fold, the gate, or the caller's own
//! connection. There is no task and no channel. Only the wait for the provider is timed: a clock
//! starts when a poll finds nothing, and only content stops it, so pings keep a stream alive but
//! never count as progress, and a slow reader costs the provider nothing.

mod calls;
mod ends;
mod live;
mod passing;
mod recast;
mod rescue;
mod telling;
mod window;

use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use backstay_decide::detectors::Signal;
use backstay_decide::fault::Fault;
use backstay_decide::latency::Gaps;
use backstay_wire::dialect::StreamReader;
use backstay_wire::frame::sse::{Decoder, Event, Frame, Limits};
use backstay_wire::{Delta, Dialect};
use bytes::Bytes;
use http_body::Body as _;
use tokio::time::{Instant, Sleep};

use super::guards::Watched;
use super::transport::{Incoming, innermost};
use super::{Failure, fold};
use crate::contract::Presence;
use crate::policy;
use crate::route::Timed;

pub(super) use calls::{Told, Waiting};
pub use live::Live;
use window::Window;

/// A sign of life as every client reads over it.
const COMMENT: &[u8] = b": alive\n\n";

/// Whether a client can read `data` as an event of its dialect. Some servers keep a connection open
/// with data that is no JSON; what reads over comments may break on it.
fn is_chunk(data: &[u8]) -> bool {
    let data = data.trim_ascii();
    data.starts_with(b"{") && data != b"{}"
}

/// How long the end of a stream is waited for once all was said, usage included. A `[DONE]` follows in
/// the same packet or the next one; then the connection can be kept.
const END_GRACE: Duration = Duration::from_millis(100);

/// The same where the usage did not come yet, which some servers count only then; at most a gap.
const USAGE_GRACE: Duration = Duration::from_secs(1);

/// Limits of one stream, already cut to the deadline.
#[derive(Clone, Copy, Debug)]
pub struct StreamTimers {
    /// When the request was sent.
    pub sent: Instant,
    /// From there to the first content.
    pub first_token: Duration,
    /// Between two pieces of content.
    pub gap: Duration,
    /// From `sent` to the end.
    pub total: Duration,
}

/// One event of the stream with what it means.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    /// The bytes as received.
    pub raw: Bytes,
    /// What they say; empty for a comment.
    pub deltas: Vec<Delta>,
}

impl Piece {
    /// Whether it is a usage event and nothing else.
    pub fn is_usage(&self) -> bool {
        matches!(self.deltas.as_slice(), [Delta::Usage(_)])
    }

    /// The same, to be kept: without what was read from the socket together with it.
    fn kept(self) -> Self {
        Self { raw: Bytes::copy_from_slice(&self.raw), ..self }
    }

    /// Bytes of what the model writes in it: text, reasoning, arguments of calls.
    pub(super) fn text_bytes(&self) -> usize {
        self.deltas.iter().map(Delta::text_bytes).sum()
    }
}

/// A stream that has begun and is not over.
#[derive(Debug)]
pub struct Opened {
    body: Incoming,
    /// Its guards, where there are any: whoever reads the stream reads what they let pass.
    watched: Option<Box<Watched>>,
    /// Who counts its bytes, where somebody does.
    presence: Option<Arc<Presence>>,
    dialect: Dialect,
    decoder: Decoder,
    reader: StreamReader,
    timers: StreamTimers,
    /// When the present wait for content began. `None`: not waiting.
    waiting: Option<Instant>,
    alarm: Pin<Box<Sleep>>,
    /// When the first content came.
    first_content: Option<Instant>,
    gaps: Gaps,
    /// The waits for content after the first, where the guards ask for it.
    waited: Option<Duration>,
    ended: bool,
    /// Whether usage came.
    has_usage: bool,
    /// Whether nothing is missing of the reply but its end.
    all_said: bool,
    /// Pieces read ahead, to be given out again first.
    held: VecDeque<Piece>,
    /// What is held back of the stream, once it is released in the mode `windowed`.
    window: Option<Box<Window>>,
    /// Why the stream ended, to be told once the window is empty.
    failed: Option<Failure>,
}

impl Opened {
    /// Takes over the body of a streaming response.
    pub fn new(body: Incoming, dialect: Dialect, timers: StreamTimers) -> Self {
        Self {
            body,
            watched: None,
            presence: None,
            dialect,
            decoder: Decoder::new(Limits::default()),
            reader: dialect.stream_reader(),
            alarm: Box::pin(tokio::time::sleep_until(timers.sent + timers.first_token)),
            waiting: Some(timers.sent),
            timers,
            first_content: None,
            gaps: Gaps::default(),
            waited: None,
            ended: false,
            has_usage: false,
            all_said: false,
            held: VecDeque::new(),
            window: None,
            failed: None,
        }
    }

    /// The same, with its bytes counted by `presence`.
    pub(super) fn counted_by(self, presence: Option<Arc<Presence>>) -> Self {
        Self { presence, ..self }
    }

    /// The same, with what it says watched by `watched`.
    pub(super) fn watched_by(self, watched: Option<Watched>) -> Self {
        let is_paced = watched.as_ref().is_some_and(Watched::is_paced);
        Self { waited: is_paced.then_some(Duration::ZERO), watched: watched.map(Box::new), ..self }
    }

    /// What the guards found and let pass, now that no more is read.
    pub(crate) fn signals(&mut self) -> Vec<Signal> {
        let waited = self.waited.unwrap_or_default();
        self.watched.take().map(|mut watched| watched.told(waited)).unwrap_or_default()
    }

    /// How long after sending the first content came. `None`: not yet.
    pub fn first_token(&self) -> Option<Duration> {
        self.first_content.map(|at| at.duration_since(self.timers.sent))
    }

    /// The pauses between its pieces of content.
    pub fn gaps(&self) -> Gaps {
        self.gaps
    }

    /// What the clock saw of it, now that it is over.
    pub(super) fn timed(&self) -> Timed {
        let (took, first_token) = (self.timers.sent.elapsed(), self.first_token());
        Timed { took, first_token, gaps: self.gaps }
    }

    /// When the first content came. `None`: not yet.
    pub(super) fn first_content(&self) -> Option<Instant> {
        self.first_content
    }

    /// Holds back the newest part of what [`Opened::poll_next`] gives out from now on of a stream of so
    /// many `choices`. `came`: when the pieces given back came, where the window has a time.
    pub(super) fn hold_back(&mut self, policy: policy::Window, choices: usize, came: &[Instant]) {
        let held = self.take_held();
        self.window = Some(Box::new(Window::new(policy, choices, held, came)));
    }

    /// The provider's dialect.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether the time for the whole attempt passed while nobody read. Where the provider is waited
    /// for, the alarm tells.
    pub fn is_late(&self) -> bool {
        self.waiting.is_none() && Instant::now() >= self.timers.sent + self.timers.total
    }

    /// Nothing is missing of the reply but its end: from here on that is waited for a moment only.
    pub(in crate::attempt) fn expect_end(&mut self) {
        if !std::mem::replace(&mut self.all_said, true) {
            self.waiting = None;
        }
    }

    /// Gives `piece` back, to be the next one read (after those given back before).
    pub fn hold(&mut self, piece: Piece) {
        self.held.push_back(piece);
    }

    /// Takes the pieces that were given back.
    pub(super) fn take_held(&mut self) -> VecDeque<Piece> {
        std::mem::take(&mut self.held)
    }

    /// The next piece; `None` at the end of the body.
    ///
    /// # Errors
    /// A timer that ran out, a broken connection, a broken frame.
    pub async fn next(&mut self) -> Result<Option<Piece>, Failure> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// As [`Opened::next`], but never from the pieces held back. What it gives may be kept.
    pub async fn read_on(&mut self) -> Result<Option<Piece>, Failure> {
        let read = poll_fn(|cx| self.poll_read(cx)).await?;
        Ok(read.map(Piece::kept))
    }

    /// As [`Opened::next`], for a body.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Failure>> {
        if self.window.is_some() {
            return self.poll_window(cx);
        }
        if let Some(piece) = self.held.pop_front() {
            return Poll::Ready(Ok(Some(piece)));
        }
        self.poll_read(cx)
    }

    /// As [`Opened::poll_next`], for what the window lets go. Reads on while it lets nothing go.
    fn poll_window(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Failure>> {
        loop {
            let Some(window) = &mut self.window else { return self.poll_read(cx) };
            if let Poll::Ready(piece) = window.poll_due(cx) {
                return Poll::Ready(Ok(Some(piece)));
            }
            if let Some(failure) = self.failed.take() {
                self.window = None;
                return Poll::Ready(Err(failure));
            }
            let read = ready!(self.poll_read(cx));
            let Some(window) = &mut self.window else { return Poll::Ready(read) };
            match read {
                // A sign of life: its place in the order does not count.
                Ok(Some(piece)) if piece.deltas.is_empty() => {
                    return Poll::Ready(Ok(Some(piece)));
                }
                Ok(Some(piece)) => {
                    window.push(piece.kept());
                    if window.is_finished() {
                        self.expect_end();
                    }
                }
                Ok(None) => {
                    window.end();
                    if window.is_empty() {
                        return Poll::Ready(Ok(None));
                    }
                }
                Err(failure) => {
                    if fold::is_silence(failure.fault) {
                        window.end();
                    } else {
                        window.spoil();
                    }
                    self.failed = Some(failure);
                }
            }
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Piece>, Failure>> {
        loop {
            let frame = self.decoder.next_frame().map_err(|fault| {
                Failure::new(Fault::MalformedReply, format!("broken stream: {fault}"))
            })?;
            if let Some(frame) = frame {
                return Poll::Ready(self.piece(frame).map(Some));
            }
            if self.ended {
                return Poll::Ready(Ok(None));
            }
            let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) else {
                ready!(self.poll_alarm(cx))?;
                return Poll::Pending;
            };
            match frame {
                Some(Ok(frame)) => {
                    if let Ok(bytes) = frame.into_data() {
                        if let Some(presence) = &self.presence {
                            presence.came(bytes.len());
                        }
                        self.decoder.push(bytes);
                    }
                }
                Some(Err(error)) => {
                    let cause = innermost(&error);
                    let note = format!("the stream broke off: {cause}");
                    return Poll::Ready(Err(Failure::new(Fault::StreamCut, note)));
                }
                None => {
                    self.ended = true;
                    if let Ok(Some(frame)) = self.decoder.finish() {
                        return Poll::Ready(self.piece(frame).map(Some));
                    }
                }
            }
        }
    }

    fn piece(&mut self, frame: Frame) -> Result<Piece, Failure> {
        let event = match frame {
            Frame::Alive(raw) => return Ok(Piece { raw, deltas: Vec::new() }),
            Frame::Event(event) => event,
            // Its blank line is missing; whoever passes it on and writes more needs one.
            Frame::Cut(event) => Event { raw: [&event.raw, &b"\n\n"[..]].concat().into(), ..event },
        };
        let mut deltas = Vec::with_capacity(2);
        self.reader.read(&event, &mut deltas).map_err(|malformed| {
            Failure::new(Fault::MalformedReply, format!("a broken stream event: {malformed}"))
        })?;
        if deltas == [Delta::Alive] && !is_chunk(&event.data) {
            return Ok(Piece { raw: Bytes::from_static(COMMENT), deltas: Vec::new() });
        }
        if deltas.iter().any(Delta::is_content) {
            self.progresses();
        }
        if deltas.iter().any(|delta| matches!(delta, Delta::Usage(_))) {
            self.has_usage = true;
            if self.all_said {
                self.waiting = None;
            }
        }
        if let Some(watched) = &mut self.watched {
            watched.feed(&deltas)?;
        }
        Ok(Piece { raw: event.raw, deltas })
    }

    /// Content came: the wait for it is over.
    fn progresses(&mut self) {
        let waited = self.waiting.take();
        if self.first_content.is_none() {
            self.first_content = Some(Instant::now());
            return;
        }
        let Some(began) = waited else { return };
        let is_due = self.gaps.is_due();
        if !is_due && self.waited.is_none() {
            return;
        }
        let gap = began.elapsed();
        if let Some(waited) = &mut self.waited {
            *waited += gap;
        }
        if is_due {
            self.gaps.note(gap);
        }
    }

    /// Ready with the fault when a timer has run out. The alarm is moved lazily: it may ring
    /// early and is then set to what is due.
    fn poll_alarm(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let began = *self.waiting.get_or_insert_with(Instant::now);
        let (limit, fault) = match (self.all_said, self.first_content.is_some()) {
            (true, _) if self.has_usage => (END_GRACE.min(self.timers.gap), Fault::Stalled),
            (true, _) => (USAGE_GRACE.min(self.timers.gap), Fault::Stalled),
            (false, true) => (self.timers.gap, Fault::Stalled),
            (false, false) => (self.timers.first_token, Fault::NoFirstToken),
        };
        let end = self.timers.sent + self.timers.total;
        let due = (began + limit).min(end);
        if self.alarm.deadline() > due {
            self.alarm.as_mut().reset(due);
        }
        loop {
            ready!(self.alarm.as_mut().poll(cx));
            if Instant::now() < due {
                self.alarm.as_mut().reset(due);
                continue;
            }
            // The wait for an end is no gap.
            if self.first_content.is_some() && !self.all_said {
                self.gaps.gave_up(began.elapsed());
            }
            let failure = if end < began + limit {
                Failure::new(Fault::TotalTimeout, format!("not done in {:?}", self.timers.total))
            } else {
                Failure::new(fault, format!("no content for {limit:?}"))
            };
            return Poll::Ready(Err(failure));
        }
    }
}

#[cfg(test)]
mod tests;
