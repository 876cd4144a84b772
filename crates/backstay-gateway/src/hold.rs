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
use backstay::record::{Known, Receipt};
use backstay_wire::Dialect;
use backstay_wire::dialect::ErrorOut;
use backstay_wire::frame::sse;
use bytes::Bytes;
use http_body::{Body, Frame};
use tokio::time::{Instant, Sleep};

use crate::respond::status;

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
    Live(Box<Live>, Box<Receipt>),
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
                Said::Live(live) => State::Live(live, Box::new(answer.receipt)),
                Said::Told(bytes) | Said::Whole(bytes) => {
                    let mut out = comment(&answer.receipt);
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
                State::Live(live, receipt) => {
                    if let Some(frame) = ready!(Pin::new(live.as_mut()).poll_frame(cx)) {
                        return Poll::Ready(Some(frame));
                    }
                    receipt.outcome = live.outcome();
                    receipt.cost = live.cost();
                    this.state = State::Last(comment(receipt).into());
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

/// The receipt as a comment, which every SSE reader skips.
fn comment(receipt: &Receipt) -> Vec<u8> {
    let mut out = Vec::new();
    let none = || "none".to_owned();
    let mut text = format!(
        "backstay call-id={} outcome={} target={} tier={} attempts={} fingerprint={}",
        receipt.call_id,
        receipt.outcome,
        receipt.target.clone().unwrap_or_else(none),
        receipt.tier.map_or_else(none, |tier| tier.to_string()),
        receipt.attempts,
        receipt.fingerprint
    );
    if !receipt.edits.is_empty() {
        text.push_str(" edits=");
        text.push_str(&receipt.edits_told().replace(", ", ","));
    }
    if let Some(cost) = receipt.cost {
        text.push_str(match cost.known {
            Known::Exactly => " cost=",
            Known::AtLeast => " cost-at-least=",
        });
        text.push_str(&cost.money.to_string());
    }
    sse::comment(&mut out, &text);
    out
}

/// A failure as the dialect's clients raise it inside a stream.
fn failure(dialect: Dialect, error: &CallError) -> Bytes {
    let message = crate::respond::message(error);
    let told = ErrorOut {
        status: status(error),
        code: error.code(),
        message: &message,
        param: error.param(),
        call_id: error.receipt().map_or("", |receipt| &receipt.call_id),
    };
    let mut out = error.receipt().map(comment).unwrap_or_default();
    out.extend_from_slice(&dialect.write_stream_error(&told));
    out.into()
}
