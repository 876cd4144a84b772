//! A call's stay at a target, over all its attempts there: what its budget of retries goes by.

use std::sync::Arc;

use backstay_decide::Moment;
use backstay_decide::extra::{Grant, Kind, Made, Refusal, Visit};

use super::health::TargetHealth;
use crate::clock::Clock;

/// A call's stay at a target. Dropping it says that the call left.
#[derive(Debug)]
pub(crate) struct Stay {
    health: Arc<TargetHealth>,
    clock: Clock,
    parts: Option<StayParts>,
}

/// What a stay holds of its target.
#[derive(Debug)]
pub(super) struct StayParts {
    pub visit: Visit,
    /// Leave for one more attempt, and whether that was made.
    pub grant: Option<(Grant, Made)>,
}

impl Stay {
    pub(super) fn new(health: Arc<TargetHealth>, clock: Clock, visit: Visit) -> Self {
        Self { health, clock, parts: Some(StayParts { visit, grant: None }) }
    }

    /// Asks for a retry. One that was granted before and made is over.
    ///
    /// # Errors
    /// The target's budget has none.
    pub(crate) fn ask(&mut self, now: Moment) -> Result<(), Refusal> {
        let Some(parts) = &mut self.parts else { return Ok(()) };
        self.health.ask(Kind::Retry, parts, now)
    }

    /// An attempt goes out: the retry, if one was granted.
    pub(crate) fn sends(&mut self) {
        let grant = self.parts.as_mut().and_then(|parts| parts.grant.as_mut());
        if let Some((_, made)) = grant {
            *made = Made::Sent;
        }
    }

    /// What it holds, for somebody who gives it back with other things.
    pub(super) fn into_parts(mut self) -> Option<StayParts> {
        self.parts.take()
    }
}

impl Drop for Stay {
    fn drop(&mut self) {
        if let Some(parts) = self.parts.take() {
            self.health.leave(parts, self.clock.now());
        }
    }
}
