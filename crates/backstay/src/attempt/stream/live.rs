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
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body::{Body, Frame, SizeHint};
use tokio::time::Sleep;

use super::Opened;
use super::rescue::Rescuing;
use super::telling::{After, Telling, Told};
use crate::call::Call;
use crate::record::{Outcome, Receipt, Spent};
use crate::route::Held;

/// A released stream with the call it belongs to.
#[derive(Debug)]
pub struct Live {
    state: State,
    /// Between two comments while nothing can be shown.
    pause: Duration,
    /// Rings when a comment is due, while nothing can be shown.
    beat: Option<Pin<Box<Sleep>>>,
    ready: VecDeque<Bytes>,
    /// How it ended.
    receipt: Option<Box<Receipt>>,
    /// Whether the receipt is to be told behind the stream.
    owes_receipt: bool,
}

#[derive(Debug)]
enum State {
    /// A reply is being told.
    Telling(Box<Telling>),
    /// It broke, and another one is sought.
    Rescuing(Rescuing),
    /// There is no more.
    Over,
}

impl Live {
    /// Hands `opened` on for `call`.
    pub(crate) fn new(call: Box<Call>, opened: Box<Opened>, held: Held) -> Self {
        Self {
            pause: call.contract.keep_alive,
            state: State::Telling(Box::new(Telling::first(call, opened, held))),
            beat: None,
            ready: VecDeque::new(),
            receipt: None,
            owes_receipt: false,
        }
    }

    /// Has the receipt told in a comment behind the stream, whatever becomes of it. Without this, only
    /// a stream that was rescued tells it: its head named another target.
    pub fn tell_receipt(&mut self) {
        self.owes_receipt = true;
    }

    /// How the stream ended. Until it has: answered, as its head says.
    pub fn outcome(&self) -> Outcome {
        self.receipt.as_ref().map_or(Outcome::Answered, |receipt| receipt.outcome)
    }

    /// What the call cost. `None`: not known before the stream's end, or without prices.
    pub fn cost(&self) -> Option<Spent> {
        self.receipt.as_ref().and_then(|receipt| receipt.cost)
    }

    /// Takes the stream as far as it can go now.
    fn advance(&mut self, cx: &mut Context<'_>) {
        loop {
            let told = match &mut self.state {
                State::Telling(telling) => telling.read(cx, &mut self.ready),
                State::Rescuing(rescuing) => {
                    let Poll::Ready(found) = rescuing.poll(cx) else { return };
                    match Telling::joined(found) {
                        Ok(telling) => self.state = State::Telling(telling),
                        Err(after) => self.follow(after),
                    }
                    continue;
                }
                State::Over => return,
            };
            if matches!(told, Told::SoFar) {
                return;
            }
            let State::Telling(telling) = std::mem::replace(&mut self.state, State::Over) else {
                return;
            };
            match told {
                Told::SoFar => {}
                Told::Whole(ended) => self.ends(telling.complete(ended)),
                Told::Broken(failure) => self.follow(telling.breaks(&failure)),
                Told::Differs(differs) => {
                    let (last, receipt) = telling.differs(differs);
                    self.follow(After::Over(last, receipt));
                }
                Told::Untold => self.ends(telling.untold()),
            }
        }
    }

    fn follow(&mut self, after: After) {
        match after {
            After::Rescue(rescuing) => self.state = State::Rescuing(rescuing),
            After::Over(last, receipt) => {
                self.state = State::Over;
                self.ready.push_back(last);
                self.ends(receipt);
            }
        }
    }

    /// The stream is over.
    fn ends(&mut self, receipt: Box<Receipt>) {
        if self.owes_receipt || receipt.rescued.is_some() {
            self.ready.push_back(Bytes::from(receipt.comment()));
        }
        self.receipt = Some(receipt);
    }

    /// A comment, when nothing could be shown for long.
    fn poll_beat(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        let is_held_back = match &self.state {
            State::Telling(telling) => telling.is_held_back(),
            State::Rescuing(_) => true,
            State::Over => false,
        };
        if !is_held_back {
            return Poll::Pending;
        }
        let pause = self.pause;
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
        this.advance(cx);
        match this.take() {
            Some(bytes) => {
                this.beat = None;
                Poll::Ready(Some(Ok(Frame::data(bytes))))
            }
            None if matches!(this.state, State::Over) => Poll::Ready(None),
            None => this.poll_beat(cx).map(|bytes| Some(Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.state, State::Over) && self.ready.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::default()
    }
}
