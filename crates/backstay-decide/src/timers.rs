//! The four timers of one attempt, cut so that it cannot outlive what is left of the call.
//!
//! While another tier is alive and untried, an attempt leaves time for it: a part of the deadline
//! per such tier, and a target that has not shown itself quick gets at most 40 % of what is left for
//! its first token.

use std::fmt;
use std::time::Duration;

use crate::time::Secs;

/// What is kept of a call's deadline for its last resort and its answer.
pub const RESERVE: Duration = Duration::from_millis(250);

/// What is kept of a call of `deadline`: [`RESERVE`], or a tenth of the deadline where that is less.
/// Models get the rest.
pub fn reserve(deadline: Duration) -> Duration {
    RESERVE.min(deadline / 10)
}

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

/// What this call did before the attempt in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tried {
    /// Nothing yet: an estimate alone does not keep it from its first attempt.
    Nothing,
    /// Something.
    Something,
}

/// Why an attempt is not started: it could not be done in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TooLate {
    /// Less is left than the shortest attempt takes.
    Short {
        /// What is left for models.
        left: Duration,
        /// The wait before the attempt.
        wait: Duration,
        /// The shortest attempt.
        min_attempt: Duration,
    },
    /// The target usually takes longer than what is left.
    Slow {
        /// What is left for models.
        left: Duration,
        /// The wait before the attempt.
        wait: Duration,
        /// What the target usually takes.
        usual: Duration,
    },
}

impl TooLate {
    /// A stable name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Short { .. } => "deadline_short",
            Self::Slow { .. } => "deadline_slow",
        }
    }
}

impl fmt::Display for TooLate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (left, wait) = match self {
            Self::Short { left, wait, .. } | Self::Slow { left, wait, .. } => (left, wait),
        };
        write!(f, "no attempt: {} left", Secs(*left))?;
        if !wait.is_zero() {
            write!(f, ", {} to wait", Secs(*wait))?;
        }
        match self {
            Self::Short { min_attempt, .. } => {
                write!(f, ", the shortest attempt takes {}", Secs(*min_attempt))
            }
            Self::Slow { usual, .. } => {
                write!(f, ", the target usually takes {}", Secs(*usual))
            }
        }
    }
}

impl std::error::Error for TooLate {}

impl Room {
    /// Whether an attempt that starts after `wait` can be done in time. `usual`: what the target
    /// takes to show a first token, or to answer where nothing is streamed; `None`: not known.
    ///
    /// # Errors
    /// [`TooLate`] with its numbers: neither wait nor try; go elsewhere, or to the last resort.
    pub fn admits(
        self,
        wait: Duration,
        usual: Option<Duration>,
        tried: Tried,
    ) -> Result<(), TooLate> {
        let Self { left, min_attempt, .. } = self;
        let then = left.saturating_sub(wait);
        if then.is_zero() || then < min_attempt {
            return Err(TooLate::Short { left, wait, min_attempt });
        }
        match (usual, tried) {
            (Some(usual), Tried::Something) if usual > then => {
                Err(TooLate::Slow { left, wait, usual })
            }
            (Some(_) | None, Tried::Nothing | Tried::Something) => Ok(()),
        }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    const SET: Timers =
        Timers { connect: secs(2), first_token: secs(8), gap: secs(5), total: secs(20) };

    fn room(left: Duration, untried: u32, start: Start) -> Room {
        Room { left, deadline: secs(30), untried, start, min_attempt: secs(1) }
    }

    #[test]
    fn with_time_enough_the_timers_are_as_configured() {
        assert_eq!(SET.cut(room(secs(30), 0, Start::Cold)), Some(SET));
        assert_eq!(SET.cut(room(secs(30), 1, Start::Cold)), Some(SET));
    }

    #[test]
    fn no_timer_outlives_what_is_left() {
        let cut = SET.cut(room(secs(4), 0, Start::Cold)).unwrap();
        assert_eq!(
            cut,
            Timers { connect: secs(2), first_token: secs(4), gap: secs(4), total: secs(4) }
        );
    }

    #[test]
    fn a_live_tier_is_left_its_reserve_and_a_cold_target_forty_percent() {
        let cold = SET.cut(room(secs(10), 1, Start::Cold)).unwrap();
        assert_eq!((cold.total, cold.first_token), (secs(7), secs(4)));
        let warm = SET.cut(room(secs(10), 1, Start::Warm)).unwrap();
        assert_eq!((warm.total, warm.first_token), (secs(7), secs(7)));
        let two = SET.cut(room(secs(10), 2, Start::Cold)).unwrap();
        assert_eq!((two.total, two.first_token), (secs(4), secs(4)));
    }

    #[test]
    fn the_reserve_never_takes_the_shortest_attempt() {
        let crowded = SET.cut(room(secs(3), 5, Start::Cold)).unwrap();
        assert_eq!((crowded.total, crowded.first_token), (secs(1), secs(1)));
        assert_eq!(SET.cut(room(secs(1), 1, Start::Cold)).unwrap().total, secs(1));
        assert_eq!(SET.cut(room(Duration::from_millis(999), 0, Start::Warm)), None);
    }

    #[test]
    fn an_attempt_that_cannot_be_done_is_not_started_and_says_why() {
        let told = |left: u64, wait: u64, usual: Option<u64>, tried: Tried| {
            let room = room(secs(left), 0, Start::Warm);
            let admitted = room.admits(secs(wait), usual.map(secs), tried);
            admitted.map_or_else(|late| format!("{}: {late}", late.name()), |()| "yes".to_owned())
        };
        let rows = [
            (10, 0, None, Tried::Something, "yes"),
            (10, 9, None, Tried::Something, "yes"),
            (10, 4, Some(6), Tried::Something, "yes"),
            (3, 0, Some(9), Tried::Nothing, "yes"),
            (
                10,
                5,
                Some(6),
                Tried::Something,
                "deadline_slow: no attempt: 10 s left, 5 s to wait, the target usually takes 6 s",
            ),
            (
                5,
                0,
                Some(6),
                Tried::Something,
                "deadline_slow: no attempt: 5 s left, the target usually takes 6 s",
            ),
            (
                10,
                10,
                None,
                Tried::Nothing,
                "deadline_short: no attempt: 10 s left, 10 s to wait, the shortest attempt takes 1 s",
            ),
        ];
        for (left, wait, usual, tried, want) in rows {
            assert_eq!(told(left, wait, usual, tried), want);
        }
        let unbound = Room { min_attempt: Duration::ZERO, ..room(secs(1), 0, Start::Warm) };
        assert!(unbound.admits(secs(1), None, Tried::Nothing).is_err(), "nothing at all is left");
    }

    #[test]
    fn the_last_resort_is_kept_its_time() {
        let ms = Duration::from_millis;
        let rows = [(30_000, 250), (2500, 250), (2000, 200), (0, 0)];
        for (deadline, kept) in rows {
            assert_eq!(reserve(ms(deadline)), ms(kept));
        }
    }

    #[test]
    fn an_impatient_caller_still_gets_its_attempt() {
        assert_eq!(min_attempt(secs(30)), secs(1));
        assert_eq!(min_attempt(secs(10)), secs(1));
        assert_eq!(min_attempt(secs(2)), Duration::from_millis(200));
        assert_eq!(min_attempt(Duration::ZERO), Duration::ZERO);
        let none = Room { min_attempt: Duration::ZERO, ..room(Duration::ZERO, 0, Start::Cold) };
        assert_eq!(SET.cut(none), None);
    }

    proptest! {
        #[test]
        fn timers_only_ever_shrink_and_leave_what_they_must(
            set in prop::array::uniform4(1_u64..100_000),
            left in 0_u64..100_000,
            deadline in 1_u64..100_000,
            untried in 0_u32..5,
            is_warm: bool,
        ) {
            let [connect, first_token, gap, total] = set.map(Duration::from_millis);
            let set = Timers { connect, first_token, gap, total };
            let (left, deadline) = (Duration::from_millis(left), Duration::from_millis(deadline));
            let min_attempt = min_attempt(deadline);
            let start = if is_warm { Start::Warm } else { Start::Cold };
            let room = Room { left, deadline, untried, start, min_attempt };
            // Invariant 7: what is admitted gets timers that end in time, and nothing else does.
            let admitted = room.admits(Duration::ZERO, None, Tried::Something);
            prop_assert_eq!(admitted.is_ok(), set.cut(room).is_some());
            let Some(cut) = set.cut(Room { left, deadline, untried, start, min_attempt }) else {
                prop_assert!(left < min_attempt || left.is_zero());
                return Ok(());
            };
            prop_assert!(cut.total <= left && cut.total <= set.total && !cut.total.is_zero());
            prop_assert!(cut.total >= min_attempt.min(set.total));
            prop_assert!(cut.first_token >= min_attempt.min(set.first_token).min(cut.total));
            for (mine, theirs) in [(cut.connect, connect), (cut.first_token, first_token), (cut.gap, gap)] {
                prop_assert!(mine <= theirs && mine <= cut.total);
            }
            let kept = left.saturating_sub(cut.total);
            let reserve = (deadline / 10).max(secs(1)) * untried;
            prop_assert!(kept >= reserve || cut.total <= min_attempt);
        }
    }
}
