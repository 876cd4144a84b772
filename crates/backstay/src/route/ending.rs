//! What is said of an attempt at its end, to everything that keeps count of its target.

use std::time::Duration;

use backstay_decide::Fault;
use backstay_decide::breaker::Report;
use backstay_decide::pacing::Cost;
use backstay_wire::Usage;

use super::speed::Timed;
use super::stay::Stay;

/// How an attempt ended, for everything that keeps count of its target.
#[derive(Debug)]
pub struct Ending {
    /// What its breakers hear.
    pub report: Report,
    /// What it came to.
    pub brought: Brought,
    /// What it took, as far as the provider said.
    pub usage: Usage,
    /// What a clock saw of it.
    pub timed: Timed,
    /// The call's stay, where the call is done with the target.
    pub(crate) leaves: Option<Stay>,
}

/// What came of an attempt, as far as it speaks of the load on the target.
#[derive(Clone, Copy, Debug)]
pub enum Brought {
    /// Content; after so long, where it was streamed.
    Content(Option<Duration>),
    /// A fault.
    Fault(Fault),
    /// Nothing, or nothing new.
    Nothing,
}

impl Brought {
    /// What the provider counted of the attempt, where that is known without its word: nothing that
    /// never left counts, and what was turned away took no tokens.
    pub(super) fn known_cost(self) -> Option<Cost> {
        match self {
            Self::Fault(Fault::ConnectFailed) => Some(Cost::NOTHING),
            Self::Fault(fault) if fault.was_turned_away() => Some(Cost::request(0, 0)),
            Self::Fault(_) | Self::Content(_) | Self::Nothing => None,
        }
    }
}
