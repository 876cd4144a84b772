//! One class of the queue: who waits in it, by deadline and by age.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::ahead::{Ahead, Slot};
use super::{Ask, Ticket};
use crate::time::Moment;

/// Parts of a unit of cost that virtual time is kept in, so that weights divide without a loss worth
/// speaking of.
const FINE: u128 = 1 << 20;

/// One call that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) cost: u64,
    pub(super) bytes: u64,
    pub(super) entered: Moment,
    pub(super) deadline: Moment,
    pub(super) needs: Duration,
    slot: Slot,
}

impl Waiting {
    /// The last moment at which it can start and be done in time.
    pub(super) fn latest_start(&self) -> Moment {
        latest_start(self.deadline, self.needs)
    }
}

pub(super) fn latest_start(deadline: Moment, needs: Duration) -> Moment {
    Moment::at(deadline.since_origin().saturating_sub(needs))
}

#[derive(Clone, Debug)]
pub(super) struct Lane {
    /// By age: the newest is last.
    waiting: BTreeMap<u64, Waiting>,
    /// By the latest start: the most urgent is first.
    urgency: BTreeSet<(Moment, u64)>,
    pub(super) ahead: Ahead,
    pub(super) bytes: u64,
    /// Calls that left the queue to be made, and are not over.
    pub(super) running: u32,
    /// Virtual time at which its next call starts.
    tag: u128,
}

impl Lane {
    pub(super) fn new() -> Self {
        Self {
            waiting: BTreeMap::new(),
            urgency: BTreeSet::new(),
            ahead: Ahead::new(),
            bytes: 0,
            running: 0,
            tag: 0,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) const fn tag(&self) -> u128 {
        self.tag
    }

    /// A call comes where none waits: a class that was idle has no claim on the past.
    pub(super) fn wake(&mut self, virtual_now: u128) {
        self.tag = self.tag.max(virtual_now);
    }

    /// Puts a call in.
    pub(super) fn put(&mut self, number: u64, ask: &Ask, virtual_now: u128, now: Moment) {
        if self.is_empty() {
            self.wake(virtual_now);
        }
        let Ask { cost, bytes, deadline, needs, class: _ } = *ask;
        let start = latest_start(deadline, needs);
        let slot = self.ahead.put(start, cost, now);
        self.bytes = self.bytes.saturating_add(bytes);
        self.urgency.insert((start, number));
        self.waiting.insert(number, Waiting { cost, bytes, entered: now, deadline, needs, slot });
    }

    /// Takes a call out.
    pub(super) fn take(&mut self, ticket: Ticket) -> Option<Waiting> {
        let waiting = self.waiting.remove(&ticket.number)?;
        self.urgency.remove(&(waiting.latest_start(), ticket.number));
        self.ahead.take(waiting.slot, waiting.cost);
        self.bytes = self.bytes.saturating_sub(waiting.bytes);
        Some(waiting)
    }

    /// The most urgent call, and the last moment at which it can start.
    pub(super) fn first(&self) -> Option<(Moment, u64)> {
        self.urgency.first().copied()
    }

    /// The call of that number.
    pub(super) fn at(&self, number: u64) -> Option<&Waiting> {
        self.waiting.get(&number)
    }

    /// Calls from the newest on.
    pub(super) fn newest(&self) -> impl Iterator<Item = (u64, &Waiting)> {
        self.waiting.iter().rev().map(|(number, waiting)| (*number, waiting))
    }

    /// When its oldest call entered.
    pub(super) fn oldest(&self) -> Option<Moment> {
        self.waiting.first_key_value().map(|(_, waiting)| waiting.entered)
    }

    /// Moves its virtual time on by `cost` at `share`, and returns where it stood.
    pub(super) fn charge(&mut self, cost: u64, share: u32) -> u128 {
        let before = self.tag;
        self.tag = self.tag.saturating_add(fine(cost, share));
        before
    }

    /// Corrects what was charged for a call to what it took.
    pub(super) fn correct(&mut self, charged: u64, took: u64, share: u32) {
        self.tag = self.tag.saturating_add(fine(took.saturating_sub(charged), share));
        self.tag = self.tag.saturating_sub(fine(charged.saturating_sub(took), share));
    }
}

/// Virtual time that `cost` takes at `share`.
fn fine(cost: u64, share: u32) -> u128 {
    u128::from(cost) * FINE / u128::from(share.max(1))
}
