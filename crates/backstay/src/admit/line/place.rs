//! A place in the line: a future that ends with the turn of its call, or with why there is none.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use backstay_decide::Moment;
use backstay_decide::queue::{Gone, Ticket};
use tokio::time::Sleep;

use super::{Gate, Going, Line, Slot, Stood};

/// What a timer is late by at most, so that a time is over once it rings.
const TICK: Duration = Duration::from_millis(1);

/// A place in a line. Dropping it gives it up.
#[derive(Debug)]
#[must_use]
pub struct Place<G: Gate> {
    line: Line<G>,
    /// `None`: it was told how it ends.
    ticket: Option<Ticket>,
    /// The last moment at which its call can start.
    last: Moment,
    alarm: Option<(Moment, Pin<Box<Sleep>>)>,
    stood: Stood,
}

impl<G: Gate> Place<G> {
    pub(super) fn new(line: Line<G>, ticket: Ticket, last: Moment, stood: Stood) -> Self {
        Self { line, ticket: Some(ticket), last, alarm: None, stood }
    }

    /// How it stood when it entered.
    pub fn stood(&self) -> Stood {
        self.stood
    }

    /// What the line has to say by now, else when to ask again. `None`: it was told already.
    fn ask(&mut self, cx: &Context<'_>) -> Option<Result<Result<Going<G>, Gone>, Moment>> {
        let ticket = self.ticket?;
        let mut state = self.line.shared.state.lock();
        if let Some(Slot::Waits(waker, _)) = state.slots.get_mut(&ticket) {
            match waker {
                Some(waker) => waker.clone_from(cx.waker()),
                None => *waker = Some(cx.waker().clone()),
            }
            let last = self.last.plus(TICK);
            return Some(Err(state.looks_at(ticket).map_or(last, |at| at.min(last))));
        }
        self.ticket = None;
        match state.slots.remove(&ticket)? {
            Slot::Goes(running, pass) => Some(Ok(Ok(Going::new(self.line.clone(), running, pass)))),
            Slot::Left(gone) => Some(Ok(Err(gone))),
            Slot::Waits(..) => None,
        }
    }

    /// Waits until `at`.
    fn rest(&mut self, at: Moment, cx: &mut Context<'_>) -> Poll<()> {
        let instant = self.line.shared.clock.instant(at);
        let new = || (at, Box::pin(tokio::time::sleep_until(instant)));
        let (set, sleep) = self.alarm.get_or_insert_with(new);
        if *set != at {
            *set = at;
            sleep.as_mut().reset(instant);
        }
        sleep.as_mut().poll(cx)
    }
}

impl<G: Gate> Future for Place<G> {
    type Output = Result<Going<G>, Gone>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        loop {
            match this.ask(cx) {
                None => return Poll::Pending,
                Some(Ok(told)) => return Poll::Ready(told),
                Some(Err(at)) => ready!(this.rest(at, cx)),
            }
            // Its time is over, or the gate may be open: every look moves one of the two on.
            this.line.look();
        }
    }
}

impl<G: Gate> Drop for Place<G> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let told = self.line.change(|state, now| {
            let told = state.slots.remove(&ticket);
            if let Some(Slot::Waits(..)) = told {
                state.queue.leave(ticket, now);
            }
            told
        });
        // Its turn had come, and nobody took it.
        if let Some(Slot::Goes(running, pass)) = told {
            let mut going = Going::new(self.line.clone(), running, pass);
            going.took(0);
        }
    }
}
