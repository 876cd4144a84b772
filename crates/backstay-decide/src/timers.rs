//! The four timers of one attempt, cut so that it cannot outlive what is left of the call.
//!
//! While another tier is alive and untried, an attempt leaves time for it: a part of the deadline
//! per such tier, and a target that has not shown itself quick gets at most 40 % of what is left for
//! its first token.

use std::time::Duration;

/// The shortest attempt worth starting under a long deadline.
pub const MIN_ATTEMPT: Duration = Duration::from_secs(1);

/// The shortest attempt worth starting in a call of `deadline`: [`MIN_ATTEMPT`], or a tenth of the
/// deadline where that is less, so that an impatient caller still gets its attempt.
pub fn min_attempt(deadline: Duration) -> Duration {
    MIN_ATTEMPT.min(deadline / 10)
}

/// How long each phase of one attempt may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timers {
    /// Until the connection stands.
    pub connect: Duration,
    /// From sending the request to its first content.
    pub first_token: Duration,
    /// The longest silence after the first content.
    pub gap: Duration,
    /// From start to the whole reply.
    pub total: Duration,
}

/// Whether a target's first token is known to come soon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Nothing is known: no recent success.
    Cold,
    /// It answered lately.
    Warm,
}

/// What an attempt has to leave room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Until the deadline of the models. An attempt never outlives it.
    pub left: Duration,
    /// The call's whole deadline, of which each untried tier is kept a tenth, at least 1 s.
    pub deadline: Duration,
    /// Live tiers that this call has not tried, without the one about to be tried.
    pub untried: u32,
    /// What is known of the target's speed.
    pub start: Start,
    /// The shortest attempt worth starting; see [`min_attempt`].
    pub min_attempt: Duration,
}

impl Room {
    /// What the attempt itself may use: all that is left, less what untried tiers are kept, but
    /// never less than the shortest attempt.
    fn share(self) -> Duration {
        let each = (self.deadline / 10).max(Duration::from_secs(1));
        let kept = each.saturating_mul(self.untried);
        self.left.saturating_sub(kept).max(self.min_attempt).min(self.left)
    }
}

impl Timers {
    /// The timers within `room`, or `None` if too little is left to start at all.
    ///
    /// No timer is ever longer than what was configured, nor than `total`.
    #[must_use]
    pub fn cut(self, room: Room) -> Option<Self> {
        if room.left < room.min_attempt || room.left.is_zero() {
            return None;
        }
        let total = self.total.min(room.share());
        let patience = match (room.untried, room.start) {
            (0, _) | (_, Start::Warm) => total,
            // 40 %: enough for a slow start, and two more such tries still fit.
            (_, Start::Cold) => (room.left.saturating_mul(2) / 5).max(room.min_attempt),
        };
        Some(Self {
            connect: self.connect.min(total),
            first_token: self.first_token.min(patience).min(total),
            gap: self.gap.min(total),
            total,
        })
    }
}
