//! Which calls may test a target that was resting: those that lose nothing if the test fails.

use std::fmt;
use std::time::Duration;

use super::Canary;

/// How many times the usual wait for a first token, or the shortest attempt if that is longer, must
/// be left of a call that tests a target. 4: a test may take two fifths of what is left before it is
/// given up, and more than two such times then remain for the target that answers instead.
const ROOM: u32 = 4;

/// Whether the call may be used to test a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Suits {
    /// It can be made again elsewhere, and has the time for it.
    Test,
    /// Only a healthy target is good enough.
    HealthyOnly(Unfit),
}

/// Why a call is no test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unfit {
    /// It does something at the provider beside answering, which a second attempt would do again.
    Effect {
        /// The part of the request that asks for it.
        field: &'static str,
    },
    /// It has too little time for a failed test and an answer from elsewhere.
    Tight {
        /// What is left for models.
        left: Duration,
        /// What must be.
        least: Duration,
    },
    /// Its answer may be long, and short ones come that tell sooner.
    Long {
        /// Its output cap. `None`: it has none.
        cap: Option<u64>,
        /// The largest that is short.
        short: u64,
    },
    /// Nobody else could answer it, should the test fail.
    Alone,
}

/// A call that may become a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prospect {
    /// The part of the request that asks for an effect at the provider. `None`: nothing does.
    pub effect: Option<&'static str>,
    /// What is left of its deadline for models.
    pub left: Duration,
    /// The usual time to a first token there, or the shortest attempt worth starting: the longer.
    pub start: Duration,
    /// Its output cap. `None`: it has none.
    pub cap: Option<u64>,
    /// Time since the last call that was short and suited. `None`: none came.
    pub since_short: Option<Duration>,
}

impl Prospect {
    /// Whether the call may test a target whose tests go by `canary`.
    pub fn suits(&self, canary: &Canary) -> Suits {
        if let Some(field) = self.effect {
            return Suits::HealthyOnly(Unfit::Effect { field });
        }
        let least = self.start.saturating_mul(ROOM);
        if self.left < least {
            return Suits::HealthyOnly(Unfit::Tight { left: self.left, least });
        }
        let is_spared = self.since_short.is_some_and(|since| since < canary.every);
        if is_spared && !self.is_short(canary) {
            return Suits::HealthyOnly(Unfit::Long { cap: self.cap, short: canary.short });
        }
        Suits::Test
    }

    /// Whether its answer is surely short.
    pub fn is_short(&self, canary: &Canary) -> bool {
        self.cap.is_some_and(|cap| cap <= canary.short)
    }
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Effect { field } => write!(f, "`{field}` has effects at the provider"),
            Self::Tight { left, least } => {
                let (left, least) = (left.as_secs_f64(), least.as_secs_f64());
                write!(f, "{left:.1} s are left, {least:.1} s needed")
            }
            Self::Long { cap: Some(cap), short } => {
                write!(f, "its cap is {cap} tokens, and calls of at most {short} come")
            }
            Self::Long { cap: None, short } => {
                write!(f, "it has no output cap, and calls of at most {short} tokens come")
            }
            Self::Alone => f.write_str("no other untried target is live, should it fail"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breaker::Limits;

    const CANARY: Canary = Limits::AVAILABILITY.canary;

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn short() -> Prospect {
        let (left, start) = (secs(30), secs(1));
        Prospect { effect: None, left, start, cap: Some(200), since_short: None }
    }

    #[test]
    fn a_short_call_with_time_and_without_effects_is_a_test_and_the_others_say_why_not() {
        let long = Prospect { cap: Some(4_000), since_short: Some(secs(9)), ..short() };
        let rows = [
            (short(), None),
            (
                Prospect { effect: Some("store"), ..short() },
                Some("`store` has effects at the provider"),
            ),
            (Prospect { left: secs(4), ..short() }, None),
            (
                Prospect { left: Duration::from_millis(3_999), start: secs(1), ..short() },
                Some("4.0 s are left, 4.0 s needed"),
            ),
            (Prospect { start: secs(8), ..short() }, Some("30.0 s are left, 32.0 s needed")),
            (long, Some("its cap is 4000 tokens, and calls of at most 1000 come")),
            (
                Prospect { cap: None, ..long },
                Some("it has no output cap, and calls of at most 1000 tokens come"),
            ),
            (
                Prospect { cap: Some(1_001), ..long },
                Some("its cap is 1001 tokens, and calls of at most 1000 come"),
            ),
            (Prospect { cap: Some(1_000), ..long }, None),
            // No short one came for ten seconds, or ever.
            (Prospect { since_short: Some(secs(10)), ..long }, None),
            (Prospect { since_short: None, ..long }, None),
            (Prospect { cap: None, since_short: None, ..short() }, None),
        ];
        for (prospect, why) in rows {
            let told = match prospect.suits(&CANARY) {
                Suits::Test => None,
                Suits::HealthyOnly(unfit) => Some(unfit.to_string()),
            };
            assert_eq!(told.as_deref(), why, "{prospect:?}");
        }
    }

    #[test]
    fn where_tests_go_by_share_alone_their_length_does_not_matter() {
        let long = Prospect { cap: None, since_short: Some(Duration::ZERO), ..short() };
        assert_eq!(long.suits(&Limits::COMBINED.canary), Suits::Test);
    }
}
