//! Leave to call, and why there is none.

use std::fmt;
use std::time::Duration;

use super::suits::{Suits, Unfit};
use crate::time::Moment;

/// Leave to make one call. Give it back through [`Breaker::note`](super::Breaker::note) or
/// [`Breaker::release`](super::Breaker::release); one that is lost runs out.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Pass {
    /// The number of the breaker that gave it.
    pub(super) breaker: u32,
    /// The epoch it was given in.
    pub(super) epoch: u32,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// The circuit was closed.
    Ordinary,
    /// It tests a half-open circuit, under this number.
    Canary(u64),
    /// Let through an open circuit for want of another target.
    Forced,
    /// Let through by an operator's mode: its end says nothing.
    Bystander,
}

impl Pass {
    /// Whether this call tests a target that was resting.
    pub fn is_probe(&self) -> bool {
        match self.kind {
            Kind::Canary(_) | Kind::Forced => true,
            Kind::Ordinary | Kind::Bystander => false,
        }
    }
}

/// A test in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) number: u64,
    /// When it counts as lost.
    pub(super) lease: Moment,
    /// Whether it brought content.
    pub(super) started: bool,
}

/// Whether somebody else can serve the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Elsewhere {
    /// Another target is live: this one may be spared.
    Live,
    /// None is: a share or a ramp would only turn calls away.
    Nobody,
}

/// The call that wants to go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The time.
    pub now: Moment,
    /// How long the call may take to report, should it be a test: its `total` and some grace.
    pub lease: Duration,
    /// Whether somebody else can serve it.
    pub elsewhere: Elsewhere,
    /// Whether it may be used as a test.
    pub suits: Suits,
}

/// Why a call may not go through now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The earliest moment at which it may, as far as is known now. `None`: an operator must act.
    pub until: Option<Moment>,
    /// The reason.
    pub why: Denial,
}

/// The reason of a [`Denied`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Denial {
    /// The circuit is open.
    Open,
    /// The target asked to be left alone.
    Asked,
    /// It is being tested, or on probation, and this call is not in the share that goes through.
    Share {
        /// The share, in thousandths of the calls offered.
        thousandths: u32,
        /// Calls to be offered before the next goes through. `None`: none does by share.
        calls: Option<u32>,
    },
    /// It is being tested, and this call is no test.
    Unfit(Unfit),
    /// All tests that may be in flight are.
    Testing {
        /// Tests in flight.
        tests: u32,
        /// Tests that may be.
        most: u32,
    },
    /// None of its keys may be used.
    Keys,
    /// The rates of its keys are used up.
    Paced,
    /// An operator took it out.
    Forced,
}

impl Denial {
    /// Whether it only spares the target: the call may go there all the same if nobody else is live.
    pub const fn spares(self) -> bool {
        matches!(self, Self::Share { .. } | Self::Unfit(_))
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unfit(unfit) => write!(f, "it is being tested, and not by this call: {unfit}"),
            Self::Open => f.write_str("its breaker is open"),
            Self::Asked => f.write_str("it asked to be left alone"),
            Self::Share { thousandths, calls } => {
                let (whole, tenth) = (thousandths / 10, thousandths % 10);
                write!(f, "{whole}.{tenth} % of the calls go there until it has proved itself")?;
                calls.map_or(Ok(()), |calls| write!(f, ", the next after {calls} more"))
            }
            Self::Testing { tests, most } => {
                write!(f, "it is being tested by other calls: {tests} of {most} at once")
            }
            Self::Keys => f.write_str("all its keys rest"),
            Self::Paced => f.write_str("its rates are used up"),
            Self::Forced => f.write_str("an operator took it out"),
        }
    }
}
