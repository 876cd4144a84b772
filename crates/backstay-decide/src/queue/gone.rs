//! Why a call may not wait, or waits no more, with the numbers that say so.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::Ticket;
use crate::time::Secs;

/// Why a call may not enter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Its turn would come too late.
    TooLate {
        /// Until its turn.
        wait: Duration,
        /// The cost that goes before it in its class.
        ahead: u64,
        /// How long it takes once it goes.
        needs: Duration,
        /// What is left of its deadline.
        left: Duration,
    },
    /// There is no room, and nobody who has to make some.
    Full {
        /// Its class.
        class: Arc<str>,
        /// Calls that wait.
        count: usize,
        /// Calls that may.
        most: usize,
        /// Bytes that wait.
        bytes: u64,
        /// Bytes that may.
        most_bytes: u64,
    },
    /// It would not fit into an empty queue.
    NeverFits {
        /// Its bytes.
        bytes: u64,
        /// Bytes that may wait.
        most: u64,
        /// Calls that may wait.
        count: usize,
    },
}

impl Refusal {
    /// When to come again; zero where nothing is known, [`Duration::MAX`] where it is no use.
    pub const fn retry_after(&self) -> Duration {
        match self {
            Self::TooLate { wait, .. } => *wait,
            Self::Full { .. } => Duration::ZERO,
            Self::NeverFits { .. } => Duration::MAX,
        }
    }

    /// A stable name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::TooLate { .. } => "queue_too_late",
            Self::Full { .. } => "queue_full",
            Self::NeverFits { .. } => "queue_never_fits",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLate { wait, ahead, needs, left } => write!(
                f,
                "too late: a wait of {} for {ahead} ahead + {} to serve is over the {} left",
                Secs(*wait),
                Secs(*needs),
                Secs(*left)
            ),
            Self::Full { class, count, most, bytes, most_bytes } => write!(
                f,
                "the queue is full for {class}: {count} of {most} calls, {bytes} of {most_bytes} \
                 bytes, and no lower class over its share"
            ),
            Self::NeverFits { bytes, most, count } => {
                write!(f, "{bytes} bytes do not fit a queue of {count} calls and {most} bytes")
            }
        }
    }
}

impl std::error::Error for Refusal {}

/// Why a call waits no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Left {
    /// It had to make room.
    Shed {
        /// The class of the call that came.
        arrived: Arc<str>,
        /// Calls that waited, and may.
        count: [usize; 2],
        /// Bytes that waited, and may.
        bytes: [u64; 2],
    },
    /// Too little is left of its deadline.
    Expired {
        /// What is left.
        left: Duration,
        /// What it takes.
        needs: Duration,
    },
    /// Its caller gave up.
    GaveUp,
}

impl Left {
    /// A stable name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Shed { .. } => "queue_shed",
            Self::Expired { .. } => "queue_expired",
            Self::GaveUp => "queue_gave_up",
        }
    }
}

/// A call that left without going.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Which call.
    pub ticket: Ticket,
    /// Its class.
    pub class: Arc<str>,
    /// How long it waited.
    pub waited: Duration,
    /// Why it left.
    pub left: Left,
}

impl fmt::Display for Gone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ticket, class, waited, left } = self;
        write!(f, "{class} {ticket} left after {}: ", Secs(*waited))?;
        match left {
            Left::Shed { arrived, count: [count, most], bytes: [bytes, most_bytes] } => write!(
                f,
                "the queue was full and a call of {arrived} came: {count} of {most} calls, \
                 {bytes} of {most_bytes} bytes"
            ),
            Left::Expired { left, needs } => {
                write!(f, "{} left, it takes {}", Secs(*left), Secs(*needs))
            }
            Left::GaveUp => f.write_str("its caller gave up"),
        }
    }
}
