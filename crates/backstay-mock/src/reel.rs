//! A response body that plays steps: send, wait, drip, hold, cut, reset.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};

use crate::log::{End, Pen};
use crate::plan::Reply;

/// One thing to do on the connection.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Sends an event of a stream, or a plain body.
    Send(Bytes),
    /// As `Send`, in several writes, which end at these offsets.
    Split(Bytes, Vec<usize>),
    /// As `Send`, one byte a write.
    Drip(Bytes),
    /// Sends nothing for so long; what came before is flushed.
    Wait(Duration),
    /// Sends an event every so often until the time is up, then goes on.
    Repeat { event: Bytes, gap: Duration, times: u32 },
    /// Closes the connection without ending the body.
    Cut,
    /// Resets the connection.
    Reset,
}

/// Time for what was sent to reach the client before the connection breaks under it.
pub(crate) const SETTLE: Duration = Duration::from_millis(5);

/// What a connection is to do when its last response is over. Shared by the connection and
/// its bodies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Verdict(Arc<AtomicBool>);

impl Verdict {
    /// Asks for a reset instead of a close.
    pub(crate) fn reset(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_reset(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// The error that ends a response on purpose.
#[derive(Debug, thiserror::Error)]
#[error("the behaviour breaks the connection here")]
pub(crate) struct Broken;

/// How long the body says it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Length {
    /// As long as the steps make it; sent with Content-Length.
    Exact(u64),
    /// Chunked, or by the Content-Length that the head claims.
    Open,
}

/// What the body is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carries {
    /// A stream's events, which are counted.
    Events,
    /// Anything else.
    Body,
}

/// The body.
pub(crate) struct Reel {
    steps: std::vec::IntoIter<Step>,
    length: Length,
    carries: Carries,
    /// A step that takes several polls.
    rest: Option<Rest>,
    /// What it waits for before it goes on.
    pause: Option<Pause>,
    verdict: Verdict,
    pen: Pen,
}

type Pause = Pin<Box<dyn Future<Output = ()> + Send>>;

impl std::fmt::Debug for Reel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Reel").field("steps_left", &self.steps.len()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
enum Rest {
    Split { bytes: Bytes, from: usize, ends: std::vec::IntoIter<usize>, flushed: bool },
    Drip { bytes: Bytes, flushed: bool },
    Repeat { event: Bytes, gap: Duration, left: u32 },
}

/// What a poll has come to.
enum Turn {
    Send(Bytes),
    /// Give hyper a chance to write what it has.
    Flush,
    Next,
}

impl Reel {
    pub(crate) fn new(reply: Reply, verdict: Verdict, pen: Pen) -> Self {
        let Reply { steps, length, carries, .. } = reply;
        let mut reel = Self {
            steps: steps.into_iter(),
            length,
            carries,
            rest: None,
            pause: None,
            verdict,
            pen,
        };
        if reel.over() {
            // hyper does not poll a body that is over from the start.
            reel.pen.end(End::Complete);
        }
        reel
    }

    fn sent(&self) {
        if self.carries == Carries::Events {
            self.pen.event();
        }
    }

    fn over(&self) -> bool {
        self.steps.as_slice().is_empty() && self.rest.is_none() && self.pause.is_none()
    }

    /// Goes on with a step of several polls.
    fn go_on(&mut self) -> Turn {
        match self.rest.take() {
            None => Turn::Next,
            Some(Rest::Split { bytes, from, ends, flushed: false }) => {
                self.rest = Some(Rest::Split { bytes, from, ends, flushed: true });
                Turn::Flush
            }
            Some(Rest::Split { bytes, from, mut ends, flushed: true }) => {
                let to = ends.next().unwrap_or(bytes.len()).clamp(from, bytes.len());
                let piece = bytes.slice(from..to);
                if to < bytes.len() {
                    self.rest = Some(Rest::Split { bytes, from: to, ends, flushed: false });
                } else {
                    self.sent();
                }
                if piece.is_empty() { Turn::Next } else { Turn::Send(piece) }
            }
            Some(Rest::Drip { bytes, flushed: false }) => {
                self.rest = Some(Rest::Drip { bytes, flushed: true });
                Turn::Flush
            }
            Some(Rest::Drip { mut bytes, flushed: true }) => {
                if bytes.is_empty() {
                    return Turn::Next;
                }
                let byte = bytes.split_to(1);
                if bytes.is_empty() {
                    self.sent();
                } else {
                    self.rest = Some(Rest::Drip { bytes, flushed: false });
                }
                Turn::Send(byte)
            }
            Some(Rest::Repeat { event, gap, left }) => {
                if left > 0 {
                    self.rest = Some(Rest::Repeat { event: event.clone(), gap, left: left - 1 });
                    self.pause = Some(Box::pin(tokio::time::sleep(gap)));
                }
                self.sent();
                Turn::Send(event)
            }
        }
    }

    fn begin(&mut self, step: Step) -> Result<Turn, Broken> {
        match step {
            Step::Send(bytes) => {
                self.sent();
                return Ok(Turn::Send(bytes));
            }
            Step::Split(bytes, ends) => {
                self.rest =
                    Some(Rest::Split { bytes, from: 0, ends: ends.into_iter(), flushed: true });
            }
            Step::Drip(bytes) => self.rest = Some(Rest::Drip { bytes, flushed: false }),
            Step::Wait(time) => self.pause = Some(Box::pin(tokio::time::sleep(time))),
            Step::Repeat { event, gap, times } => {
                self.rest = Some(Rest::Repeat { event, gap, left: times });
            }
            Step::Cut => {
                self.pen.end(End::Cut);
                return Err(Broken);
            }
            Step::Reset => {
                self.verdict.reset();
                self.pen.end(End::Reset);
                return Err(Broken);
            }
        }
        Ok(Turn::Next)
    }
}

impl Body for Reel {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        let this = &mut *self;
        loop {
            if let Some(pause) = &mut this.pause {
                ready!(pause.as_mut().poll(cx));
                this.pause = None;
            }
            let turn = if this.rest.is_some() {
                Ok(this.go_on())
            } else if let Some(step) = this.steps.next() {
                this.begin(step)
            } else {
                this.pen.end(End::Complete);
                return Poll::Ready(None);
            };
            match turn {
                Ok(Turn::Send(bytes)) => {
                    if this.over() {
                        // hyper does not ask again after the last frame of a known length.
                        this.pen.end(End::Complete);
                    }
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                Ok(Turn::Flush) => {
                    // hyper writes what it has when the body is pending; and the runtime looks at
                    // its sockets before it goes on, so the client can read in between.
                    this.pause = Some(Box::pin(tokio::task::yield_now()));
                }
                Ok(Turn::Next) => {}
                Err(broken) => return Poll::Ready(Some(Err(broken))),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.over()
    }

    fn size_hint(&self) -> SizeHint {
        match self.length {
            Length::Exact(bytes) => SizeHint::with_exact(bytes),
            Length::Open => SizeHint::default(),
        }
    }
}
