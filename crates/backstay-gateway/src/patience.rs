//! How long the gateway waits for a caller to ask.
//!
//! Two waits, far apart in length. Load balancers and SDKs keep connections open between requests,
//! often for a minute, and take a connection closed under them for a failure; so the gateway is the
//! one that waits longer. A head that has begun, or a new connection, is another matter: it has to
//! come within the configured time.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep};

/// How long a connection may rest between two requests. Common load balancers keep theirs for 60
/// seconds; whoever closes first must be the caller.
pub(crate) const REST: Duration = Duration::from_secs(75);

/// The waits of one connection.
#[derive(Debug)]
pub(crate) struct Patience {
    head: Duration,
    rest: Duration,
    due: Due,
    alarm: Pin<Box<Sleep>>,
}

/// What is waited for, and until when.
#[derive(Clone, Copy, Debug)]
enum Due {
    /// Nothing yet: the rest begins with the next look.
    Unset,
    /// The first byte of a request.
    Rest(Instant),
    /// The end of a head.
    Head(Instant),
}

/// Which wait was too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// No request came.
    Rest,
    /// One began and did not get to the end of its head.
    Head,
}

impl Patience {
    /// For a new connection: its first head may take `head` from now; later ones `head` from their
    /// first byte, after at most `rest`.
    pub(crate) fn new(head: Duration, rest: Duration) -> Self {
        let due = Instant::now() + head;
        let alarm = Box::pin(tokio::time::sleep_until(due));
        Self { head, rest, due: Due::Head(due), alarm }
    }

    /// Bytes have come while a request was waited for.
    pub(crate) fn came(&mut self) {
        if !matches!(self.due, Due::Head(_)) {
            self.due = Due::Head(Instant::now() + self.head);
        }
    }

    /// A request was answered: the next one is waited for anew.
    pub(crate) fn answered(&mut self) {
        self.due = Due::Unset;
    }

    /// Ready when a wait is over; wakes `cx` when that happens.
    pub(crate) fn poll_over(&mut self, cx: &mut Context<'_>) -> Poll<Over> {
        if matches!(self.due, Due::Unset) {
            self.due = Due::Rest(Instant::now() + self.rest);
        }
        let (due, over) = match self.due {
            Due::Unset => return Poll::Pending,
            Due::Rest(due) => (due, Over::Rest),
            Due::Head(due) => (due, Over::Head),
        };
        if self.alarm.deadline() != due {
            self.alarm.as_mut().reset(due);
        }
        ready!(self.alarm.as_mut().poll(cx));
        Poll::Ready(over)
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::time::Duration;

    use tokio::time::Instant;

    use super::{Over, Patience};

    const HEAD: Duration = Duration::from_millis(200);
    const REST: Duration = Duration::from_millis(900);

    async fn over(patience: &mut Patience) -> (Over, Duration) {
        let began = Instant::now();
        let over = poll_fn(|cx| patience.poll_over(cx)).await;
        (over, began.elapsed())
    }

    fn is_about(took: Duration, want: Duration) -> bool {
        took + HEAD / 10 >= want && took < want + HEAD
    }

    #[tokio::test]
    async fn a_new_connection_has_the_time_of_a_head_also_when_its_bytes_trickle() {
        let mut patience = Patience::new(HEAD, REST);
        tokio::time::sleep(HEAD / 2).await;
        patience.came();
        let (over, took) = over(&mut patience).await;
        assert!(over == Over::Head && is_about(took, HEAD / 2), "{took:?}");
    }

    #[tokio::test]
    async fn an_answered_connection_rests_and_then_has_the_time_of_a_head_again() {
        let mut patience = Patience::new(HEAD, REST);
        patience.came();
        patience.answered();
        let (ended, took) = over(&mut patience).await;
        assert!(ended == Over::Rest && is_about(took, REST), "{took:?}");
        patience.answered();
        let waited = tokio::time::timeout(REST / 2, over(&mut patience)).await;
        assert!(waited.is_err(), "closed while it may rest");
        patience.came();
        let (ended, took) = over(&mut patience).await;
        assert!(ended == Over::Head && is_about(took, HEAD), "{took:?}");
    }
}
