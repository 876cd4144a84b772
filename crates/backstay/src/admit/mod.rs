//! Decides whether a call may start now, waits, or has to leave.
//!
//! A seat is global: nothing that belongs to one target is held while a call waits for it. Who waits
//! in which order is `backstay_decide::queue`; the [`line`] wakes them.

pub mod line;
pub mod spend;

use std::sync::atomic::{AtomicU32, Ordering};

use backstay_decide::Moment;
use backstay_decide::queue::{Ask, Next};

use crate::contract::Contract;
use crate::engine::Engine;
use line::{Entry, Gate, Going, Refused, Shut};

/// Tokens that a call is taken to write when nobody says how many it may.
const USUAL_OUTPUT: u64 = 1_000;

/// Tokens that a call is taken to write at most, whatever cap it names: more than any model does.
const MOST_OUTPUT: u64 = 1 << 18;

/// Bytes of a request taken for one token.
const BYTES_A_TOKEN: u64 = 4;

/// A place among the calls under way; given back when dropped.
pub type Seat = Going<Seats>;

/// The seats of one engine.
#[derive(Debug)]
pub struct Seats(AtomicU32);

impl Seats {
    /// So many; 0: none.
    pub const fn new(seats: u32) -> Self {
        Self(AtomicU32::new(seats))
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets how many there are.
    pub fn set(&self, seats: u32) {
        self.0.store(seats, Ordering::Relaxed);
    }
}

impl Gate for Seats {
    type Want = ();
    type Pass = ();

    fn free(&self, running: u32) -> u32 {
        self.count().saturating_sub(running)
    }

    fn pass(&self, _next: &Next, _want: &(), _now: Moment) -> Result<(), Shut> {
        Ok(())
    }
}

/// Why a call gets no seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unseated {
    /// Its deadline passed before all of the request had arrived.
    Late,
    /// It may not wait.
    Refused(Refused),
}

/// Takes a seat for the call, or a place in the line for one.
///
/// # Errors
/// It is late already, would come too late, or there is no room.
pub(crate) fn enter(engine: &Engine, contract: &Contract) -> Result<Entry<Seats>, Unseated> {
    let now = engine.now();
    let ask = ask(contract);
    if now >= ask.deadline {
        return Err(Unseated::Late);
    }
    engine.line().enter(&ask, (), now).map_err(Unseated::Refused)
}

/// What the call is to a line.
pub(crate) fn ask(contract: &Contract) -> Ask {
    let bytes = contract.ask.body.len() as u64;
    let output = contract.cap.tokens.unwrap_or(USUAL_OUTPUT).min(MOST_OUTPUT);
    Ask {
        class: contract.class,
        cost: (bytes / BYTES_A_TOKEN).saturating_add(output),
        bytes,
        deadline: contract.models_until(),
        needs: contract.min_attempt(),
    }
}
