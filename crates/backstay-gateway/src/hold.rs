//! Keeps a caller's stream open while its answer is still being sought.
//!
//! The head of a streamed answer is withheld until there is something to show, so that a failure
//! can still be a plain error response. After ten seconds proxies and browsers get nervous, and some
//! callers sooner: then the head goes out, comments keep the connection alive, and the answer, or the
//! failure, follows in the stream. What the headers would have said is in a last comment.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use backstay::attempt::stream::Live;
use backstay::call::{Answer, Body as Said};
use backstay::fault::CallError;
use backstay::record::Receipt;
use backstay_wire::Dialect;
use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep};

/// The rest of a call.
pub(crate) type Seeking = Pin<Box<dyn Future<Output = Result<Answer, CallError>> + Send>>;

/// A stream that is still being sought.
pub struct Held {
    state: State,
    dialect: Dialect,
    beat: Pin<Box<Sleep>>,
    /// The pause between two comments.
    pause: Duration,
}

enum State {
    Seeking(Seeking),
    Live(Box<Live>),
    Last(Bytes),
    Over,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Held({})", self.dialect.name())
    }
}

impl Held {
    /// Holds the caller's connection while `seeking` goes on, with a comment each `pause`.
    pub(crate) fn new(seeking: Seeking, dialect: Dialect, pause: Duration) -> Self {
        // The first comment leaves at once, with the head.
        let beat = Box::pin(tokio::time::sleep(Duration::ZERO));
        Self { state: State::Seeking(seeking), dialect, beat, pause }
    }

    /// What an ended search puts into the stream.
    fn found(&mut self, result: Result<Answer, CallError>) {
        self.state = match result {
            Ok(answer) => match answer.body {
                Said::Live(mut live) => {
                    live.tell_receipt();
                    State::Live(live)
                }
                Said::Told(bytes) | Said::Whole(bytes) => {
                    let mut out = answer.receipt.comment();
                    out.extend_from_slice(&bytes);
                    State::Last(out.into())
                }
            },
            Err(error) => State::Last(failure(self.dialect, &error)),
        };
    }
}

impl Body for Held {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        loop {
            match &mut this.state {
                State::Seeking(seeking) => {
                    if let Poll::Ready(result) = seeking.as_mut().poll(cx) {
                        this.found(result);
                        continue;
                    }
                    ready!(this.beat.as_mut().poll(cx));
                    this.beat.as_mut().reset(Instant::now() + this.pause);
                    let alive = Bytes::from_static(b": still working\n\n");
                    return Poll::Ready(Some(Ok(Frame::data(alive))));
                }
                State::Live(live) => {
                    let frame = ready!(Pin::new(live.as_mut()).poll_frame(cx));
                    if frame.is_none() {
                        this.state = State::Over;
                    }
                    return Poll::Ready(frame);
                }
                State::Last(bytes) => {
                    let bytes = std::mem::take(bytes);
                    this.state = State::Over;
                    return Poll::Ready(Some(Ok(Frame::data(bytes))));
                }
                State::Over => return Poll::Ready(None),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Over)
    }
}

/// A failure as the dialect's clients raise it inside a stream.
fn failure(dialect: Dialect, error: &CallError) -> Bytes {
    let call_id = error.receipt().map_or("", |receipt| receipt.call_id.as_str());
    let mut out = error.receipt().map(Receipt::comment).unwrap_or_default();
    out.extend_from_slice(&error.told(call_id, |told| dialect.write_stream_error(told)));
    out.into()
}
