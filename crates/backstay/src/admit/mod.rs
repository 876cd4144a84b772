//! Decides whether a call may start now.
//!
//! A seat is global: nothing that belongs to one target is held while a call waits. Today a seat
//! is a count of calls with an upper bound; queues and priorities come with their issue
//! (docs/gaps.md).

pub mod line;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use backstay_decide::Local;

use crate::contract::Contract;
use crate::engine::Engine;
use crate::fault::CallError;

/// Calls that may be under way at once. Each may hold a body of 32 MiB at most; typical ones hold
/// some kilobytes.
pub const MAX_CALLS: usize = 20_000;

/// A place among the calls under way; given back when dropped.
#[derive(Debug)]
pub struct Seat {
    taken: Arc<AtomicUsize>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Takes a seat for the call.
///
/// # Errors
/// [`Local::Busy`] when all are taken, [`Local::DeadlineExceeded`] when the call is late already:
/// its body took longer than its deadline.
pub fn enter(engine: &Engine, contract: &Contract) -> Result<Seat, CallError> {
    if engine.now() >= contract.models_until() {
        let total = contract.deadline.total;
        let note = format!("the deadline of {total:?} passed before the request had arrived");
        return Err(CallError::local(Local::DeadlineExceeded, note));
    }
    let taken = engine.seats();
    if taken.fetch_add(1, Ordering::AcqRel) >= MAX_CALLS {
        taken.fetch_sub(1, Ordering::AcqRel);
        let note = format!("{MAX_CALLS} calls are under way; try again in a second");
        return Err(CallError::local(Local::Busy, note)
            .again_after(Some(std::time::Duration::from_secs(1))));
    }
    Ok(Seat { taken })
}
