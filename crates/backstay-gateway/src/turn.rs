//! Whose turn it is on a connection: the caller's, to ask, or ours, to answer.
//!
//! The socket's side cannot see requests and answers, only bytes. This is what it has to know of
//! them: between two requests the HTTP library may speak by itself, and the caller is the one who
//! is waited for; from a request to the last byte of its answer neither is so.
//!
//! ```text
//!   Asking ──request──▶ Answering ──body given away──▶ Said ──flushed──▶ Asking
//! ```

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use http_body::{Body, Frame, SizeHint};

/// Nothing is asked, or not all of a head has come.
const ASKING: u8 = 0;
/// A request is being answered.
const ANSWERING: u8 = 1;
/// All of the answer is with the HTTP library, and perhaps not yet on the wire.
const SAID: u8 = 2;

/// Whose turn it is; shared by the two sides of a connection.
#[derive(Debug, Default)]
pub(crate) struct Turn(AtomicU8);

impl Turn {
    /// A request has come. Its answer ends when the ticket is dropped.
    pub(crate) fn answer(turn: &Arc<Self>) -> Ticket {
        turn.0.store(ANSWERING, Ordering::Release);
        Ticket(Arc::clone(turn))
    }

    /// Everything the library holds is on the wire. Says whether that ended an answer.
    pub(crate) fn flushed(&self) -> bool {
        self.0.compare_exchange(SAID, ASKING, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Whether no request is being answered.
    pub(crate) fn is_asking(&self) -> bool {
        self.0.load(Ordering::Acquire) == ASKING
    }
}

/// An answer under way.
#[derive(Debug)]
pub(crate) struct Ticket(Arc<Turn>);

impl Drop for Ticket {
    fn drop(&mut self) {
        self.0.0.store(SAID, Ordering::Release);
    }
}

/// A body that keeps its ticket until the library has taken all of it.
#[derive(Debug)]
pub(crate) struct Ticketed<B> {
    body: B,
    _ticket: Ticket,
}

impl<B> Ticketed<B> {
    pub(crate) fn new(body: B, ticket: Ticket) -> Self {
        Self { body, _ticket: ticket }
    }
}

impl<B: Body + Unpin> Body for Ticketed<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::Turn;

    #[test]
    fn the_caller_is_asked_again_only_once_an_answer_is_said_and_flushed() {
        let turn = Arc::new(Turn::default());
        assert!(turn.is_asking() && !turn.flushed());
        let ticket = Turn::answer(&turn);
        assert!(!turn.flushed(), "flushed in the middle of an answer");
        assert!(!turn.is_asking());
        drop(ticket);
        assert!(!turn.is_asking(), "not yet on the wire");
        assert!(turn.flushed() && turn.is_asking());
    }
}
