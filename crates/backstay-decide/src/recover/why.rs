//! The reason of a decision, with the numbers that led to it, printed as one line.

use std::fmt;
use std::time::Duration;

use super::reask::Refusal;
use crate::extra;

/// Why [`super::decide`] said what it said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A wait that is worth it.
    Wait {
        /// The wait: the larger of the next two.
        wait: Duration,
        /// What the backoff drew.
        jitter: Duration,
        /// The most it may draw.
        bound: Duration,
        /// What the server asked for.
        server: Option<Duration>,
        /// What was left of the deadline.
        left: Duration,
    },
    /// A wait of more than a quarter of what is left, while another target is live.
    WaitTooLong {
        /// The wait that was not made.
        wait: Duration,
        /// What was left of the deadline.
        left: Duration,
    },
    /// A wait that leaves no time for an attempt.
    NoRoom {
        /// The wait that was not made.
        wait: Duration,
        /// The shortest attempt worth starting.
        needed: Duration,
        /// What was left of the deadline.
        left: Duration,
    },
    /// The target had its tries, and another is live.
    TriedEnough {
        /// Tries made there.
        tries: u32,
    },
    /// The provider said not to repeat the request.
    Vetoed,
    /// A re-ask is left.
    Reask {
        /// Re-asks made at this target before.
        made: u32,
        /// Re-asks the route allows at one target.
        allowed: u32,
    },
    /// No re-ask may be made.
    NoReask(Refusal),
    /// The target's budget has no retry.
    NoRetry(extra::Refusal),
    /// It has none while so many are in flight: it is asked again after the wait.
    Crowded {
        /// What it says now: [`extra::Refusal::AtOnce`].
        refusal: extra::Refusal,
        /// The wait.
        wait: Duration,
    },
    /// The last attempt belongs to a live tier that was not tried.
    LastAttemptKept {
        /// Attempts made.
        made: u32,
        /// Attempts the route allows.
        allowed: u32,
    },
    /// No attempt is left.
    AttemptsSpent {
        /// Attempts made.
        made: u32,
        /// Attempts the route allows.
        allowed: u32,
    },
    /// Too little time is left.
    Deadline {
        /// What was left of the deadline.
        left: Duration,
        /// The shortest attempt worth starting.
        needed: Duration,
    },
    /// The fault's own row of the table.
    Rule(&'static str),
}

impl Why {
    /// A stable name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Wait { .. } => "wait",
            Self::WaitTooLong { .. } => "wait_too_long",
            Self::NoRoom { .. } => "no_room",
            Self::TriedEnough { .. } => "tried_enough",
            Self::Vetoed => "vetoed",
            Self::Reask { .. } => "reask",
            Self::NoReask(refusal) => refusal.name(),
            Self::NoRetry(refusal) => refusal.name(),
            Self::Crowded { .. } => "crowded",
            Self::LastAttemptKept { .. } => "last_attempt_kept",
            Self::AttemptsSpent { .. } => "attempts_spent",
            Self::Deadline { .. } => "deadline",
            Self::Rule(_) => "rule",
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Wait { wait, jitter, bound, server, left } => write!(
                f,
                "wait {} = max(jitter {} of up to {}, server {}), {} % of {} left",
                Secs(wait),
                Secs(jitter),
                Secs(bound),
                Secs(server.unwrap_or_default()),
                percent(wait, left),
                Tenths(left),
            ),
            Self::WaitTooLong { wait, left } => {
                let share = percent(wait, left);
                write!(
                    f,
                    "wait {} is {share} % of {} left, over 25 %; another target is live",
                    Secs(wait),
                    Tenths(left)
                )
            }
            Self::NoRoom { wait, needed, left } => write!(
                f,
                "next wait {} + {} for an attempt is over the {} left",
                Secs(wait),
                Secs(needed),
                Secs(left)
            ),
            Self::TriedEnough { tries } => {
                write!(f, "tried {tries} times here; another target is live")
            }
            Self::Vetoed => f.write_str("the provider said not to repeat this"),
            Self::Reask { made, allowed } => write!(f, "re-ask {} of {allowed}", made + 1),
            Self::NoReask(refusal) => refusal.fmt(f),
            Self::NoRetry(refusal) => refusal.fmt(f),
            Self::Crowded { refusal, wait } => {
                write!(f, "{refusal}; asked again after {}", Secs(wait))
            }
            Self::LastAttemptKept { made, allowed } => write!(
                f,
                "{made} of {allowed} attempts made: the last is kept for a target not tried yet"
            ),
            Self::AttemptsSpent { made, allowed } => write!(f, "{made} of {allowed} attempts made"),
            Self::Deadline { left, needed } => {
                write!(f, "{} left, an attempt needs {}", Secs(left), Secs(needed))
            }
            Self::Rule(rule) => f.write_str(rule),
        }
    }
}

/// What part of `left` a wait is, in whole percent, rounded; over 999 where nothing is left.
fn percent(wait: Duration, left: Duration) -> u64 {
    let (wait, left) = (wait.as_millis(), left.as_millis());
    if left == 0 {
        return 999;
    }
    u64::try_from((wait * 100 + left / 2) / left).unwrap_or(u64::MAX).min(999)
}

/// Seconds with two decimals, without trailing zeros: `0.24 s`, `7 s`.
pub(super) struct Secs(pub(super) Duration);

impl fmt::Display for Secs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{:.2}", self.0.as_secs_f64());
        write!(f, "{} s", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Seconds with one decimal: `29.6 s`.
struct Tenths(Duration);

impl fmt::Display for Tenths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s", self.0.as_secs_f64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_prints_its_numbers() {
        let ms = Duration::from_millis;
        let rows = [
            (
                Why::Wait {
                    wait: ms(240),
                    jitter: ms(240),
                    bound: ms(500),
                    server: None,
                    left: ms(29_600),
                },
                "wait 0.24 s = max(jitter 0.24 s of up to 0.5 s, server 0 s), 1 % of 29.6 s left",
            ),
            (
                Why::Wait {
                    wait: ms(7000),
                    jitter: ms(240),
                    bound: ms(1000),
                    server: Some(ms(7000)),
                    left: ms(29_800),
                },
                "wait 7 s = max(jitter 0.24 s of up to 1 s, server 7 s), 23 % of 29.8 s left",
            ),
            (
                Why::WaitTooLong { wait: ms(7000), left: ms(20_000) },
                "wait 7 s is 35 % of 20.0 s left, over 25 %; another target is live",
            ),
            (
                Why::NoRoom { wait: ms(1480), needed: ms(1000), left: ms(700) },
                "next wait 1.48 s + 1 s for an attempt is over the 0.7 s left",
            ),
            (Why::TriedEnough { tries: 2 }, "tried 2 times here; another target is live"),
            (Why::Vetoed, "the provider said not to repeat this"),
            (Why::Reask { made: 0, allowed: 2 }, "re-ask 1 of 2"),
            (Why::NoReask(Refusal::Count { made: 2, allowed: 2 }), "2 of 2 re-asks made here"),
            (
                Why::LastAttemptKept { made: 3, allowed: 4 },
                "3 of 4 attempts made: the last is kept for a target not tried yet",
            ),
            (Why::AttemptsSpent { made: 4, allowed: 4 }, "4 of 4 attempts made"),
            (Why::Deadline { left: ms(300), needed: ms(1000) }, "0.3 s left, an attempt needs 1 s"),
            (Why::Rule("so it is"), "so it is"),
        ];
        for (why, line) in rows {
            assert_eq!(why.to_string(), line);
        }
        assert_eq!(percent(ms(5), ms(0)), 999);
        assert_eq!(percent(Duration::MAX, ms(1)), 999);
    }
}
