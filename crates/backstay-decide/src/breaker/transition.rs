//! What a breaker did, with the numbers it did it by, in words a person can check.

use std::fmt;
use std::time::Duration;

use super::window::Tally;
use crate::time::Moment;

/// A change of the circuit, for the log, the alerts and the metrics.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Transition {
    /// It opened: no call goes through before `until`.
    Opened {
        /// The end of the rest.
        until: Moment,
        /// What was seen.
        why: Why,
        /// How the length of the rest came about.
        rest: Rest,
    },
    /// It opened again before it had come back whole.
    Reopened {
        /// The end of the next rest.
        until: Moment,
        /// What was seen.
        why: Why,
        /// How the length of the rest came about.
        rest: Rest,
    },
    /// The rest is over: a few calls test it.
    HalfOpened {
        /// How long after the first opening.
        after: Duration,
        /// What ended the rest.
        by: Ending,
    },
    /// The test was passed: calls go through, at first under the rules of probation.
    Closed {
        /// Tests that came to their first content.
        started: u32,
        /// Tests that ended well.
        finished: u32,
        /// How long less is forgiven now. Zero: it is whole at once.
        probation: Duration,
        /// How long after the first opening.
        after: Duration,
    },
    /// Probation is over: everything is as before the opening.
    Restored {
        /// What was seen in the last window.
        seen: Tally,
    },
}

/// What ended a rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ending {
    /// Its time was up.
    Time,
    /// A call that was let through for want of another target succeeded.
    ForcedCall,
}

/// What opened a circuit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Why {
    /// Too large a part of the calls failed.
    Rate {
        /// What was counted.
        seen: Tally,
        /// The rate that is surely exceeded, 0 to 1.
        bound: f64,
        /// How surely: standard deviations. 0: the bound is the plain rate.
        z: f64,
        /// The rate allowed, 0 to 1.
        limit: f64,
    },
    /// Too many failures in a row.
    Row {
        /// How many.
        failures: u32,
    },
    /// A test failed.
    Canary {
        /// Tests that had come to their first content before.
        started: u32,
        /// Tests that had to.
        passes: u32,
    },
    /// A test that had brought content, and so helped to close it, ended badly after all.
    Late,
    /// A test that was still under way when others closed it failed without any content.
    Leftover,
}

impl Transition {
    /// The states it leads from and to, by [`State::name`](super::State::name).
    pub const fn ends(&self) -> (&'static str, &'static str) {
        match self {
            Self::Opened { .. } => ("closed", "open"),
            Self::Reopened { why: Why::Canary { .. }, .. } => ("half_open", "open"),
            Self::Reopened { .. } => ("probation", "open"),
            Self::HalfOpened { .. } => ("open", "half_open"),
            Self::Closed { probation, .. } if probation.is_zero() => ("half_open", "closed"),
            Self::Closed { .. } => ("half_open", "probation"),
            Self::Restored { .. } => ("probation", "closed"),
        }
    }

    /// What brought it about, in a word.
    pub const fn cause(&self) -> &'static str {
        match self {
            Self::Opened { why, .. } | Self::Reopened { why, .. } => why.name(),
            Self::HalfOpened { by: Ending::Time, .. } | Self::Restored { .. } => "time",
            Self::HalfOpened { by: Ending::ForcedCall, .. } => "forced_call",
            Self::Closed { .. } => "tests_passed",
        }
    }
}

impl Why {
    /// It in a word.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Rate { .. } => "rate",
            Self::Row { .. } => "row",
            Self::Canary { .. } => "test_failed",
            Self::Late => "test_ended_badly",
            Self::Leftover => "late_test_failed",
        }
    }
}

/// How the length of a rest came about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rest {
    /// The time since the circuit first opened.
    pub since_first: Duration,
    /// Half of it, within the limits.
    pub base: Duration,
    /// What the dice made of that.
    pub thrown: Duration,
    /// What the target had asked for, if that is longer.
    pub asked: Option<Duration>,
}

impl Rest {
    /// How long it is.
    pub fn length(&self) -> Duration {
        self.asked.map_or(self.thrown, |asked| asked.max(self.thrown))
    }
}

impl fmt::Display for Transition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Opened { why, rest, .. } => write!(f, "opened: {why}; {rest}"),
            Self::Reopened { why, rest, .. } => write!(f, "opened again: {why}; {rest}"),
            Self::HalfOpened { after, by } => {
                let by = match by {
                    Ending::Time => "the rest is over",
                    Ending::ForcedCall => "a forced call succeeded",
                };
                write!(f, "half-open {} after it first opened: {by}", seconds(*after))
            }
            Self::Closed { started, finished, after, .. } => write!(
                f,
                "closed {} after it first opened: {started} tests brought content, {finished} ended well",
                seconds(*after)
            ),
            Self::Restored { seen } => write!(f, "restored: {seen}"),
        }
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate { seen, bound, z, limit } if *z > 0.0 => {
                write!(f, "{seen}, surely over {} (Wilson, z {z})", percent(*bound))?;
                write!(f, ", {} allowed", percent(*limit))
            }
            Self::Rate { seen, limit, .. } => write!(f, "{seen}, {} allowed", percent(*limit)),
            Self::Row { failures } => write!(f, "{failures} failures in a row"),
            Self::Canary { started, passes } => {
                write!(f, "a test failed after {started} of {passes} had brought content")
            }
            Self::Late => f.write_str("a test that had brought content ended badly"),
            Self::Leftover => f.write_str("a test that was under way when others closed it failed"),
        }
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calls, failures, span } = *self;
        write!(f, "{failures} of {calls} calls failed in {}", seconds(span))?;
        if calls == 0 {
            return Ok(());
        }
        write!(f, " = {}", percent(f64::from(failures) / f64::from(calls)))
    }
}

impl fmt::Display for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, base) = (seconds(self.since_first), seconds(self.base));
        write!(
            f,
            "rests for {}: half of the {first} since it first opened",
            seconds(self.length())
        )?;
        write!(f, " is {base} within its limits, {} by the dice", seconds(self.thrown))?;
        match self.asked {
            Some(asked) => write!(f, ", {} asked for", seconds(asked)),
            None => Ok(()),
        }
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(since_first: u64, base: u64, thrown: u64, asked: Option<u64>) -> Rest {
        let [since_first, base, thrown] = [since_first, base, thrown].map(Duration::from_secs);
        Rest { since_first, base, thrown, asked: asked.map(Duration::from_secs) }
    }

    #[test]
    fn every_change_says_its_sum() {
        let until = Moment::at(Duration::from_secs(99));
        let minute = Duration::from_mins(1);
        let seen = Tally { calls: 40, failures: 11, span: minute };
        let rate = |z| Why::Rate { seen, bound: 0.1935, z, limit: 0.15 };
        let rows = [
            (
                Transition::Opened { until, why: rate(1.28), rest: rest(0, 30, 27, None) },
                "opened: 11 of 40 calls failed in 60.0 s = 27.5 %, surely over 19.4 % (Wilson, z 1.28), 15.0 % allowed; rests for 27.0 s: half of the 0.0 s since it first opened is 30.0 s within its limits, 27.0 s by the dice",
            ),
            (
                Transition::Opened { until, why: rate(0.0), rest: rest(0, 30, 30, Some(45)) },
                "opened: 11 of 40 calls failed in 60.0 s = 27.5 %, 15.0 % allowed; rests for 45.0 s: half of the 0.0 s since it first opened is 30.0 s within its limits, 30.0 s by the dice, 45.0 s asked for",
            ),
            (
                Transition::Reopened {
                    until,
                    why: Why::Row { failures: 3 },
                    rest: rest(100, 50, 55, None),
                },
                "opened again: 3 failures in a row; rests for 55.0 s: half of the 100.0 s since it first opened is 50.0 s within its limits, 55.0 s by the dice",
            ),
            (
                Transition::Reopened {
                    until,
                    why: Why::Canary { started: 2, passes: 5 },
                    rest: rest(0, 30, 30, None),
                },
                "opened again: a test failed after 2 of 5 had brought content; rests for 30.0 s: half of the 0.0 s since it first opened is 30.0 s within its limits, 30.0 s by the dice",
            ),
            (
                Transition::Reopened { until, why: Why::Late, rest: rest(0, 30, 30, None) },
                "opened again: a test that had brought content ended badly; rests for 30.0 s: half of the 0.0 s since it first opened is 30.0 s within its limits, 30.0 s by the dice",
            ),
            (
                Transition::HalfOpened { after: minute, by: Ending::Time },
                "half-open 60.0 s after it first opened: the rest is over",
            ),
            (
                Transition::HalfOpened { after: minute, by: Ending::ForcedCall },
                "half-open 60.0 s after it first opened: a forced call succeeded",
            ),
            (
                Transition::Closed { started: 5, finished: 1, probation: minute, after: minute },
                "closed 60.0 s after it first opened: 5 tests brought content, 1 ended well",
            ),
            (Transition::Restored { seen }, "restored: 11 of 40 calls failed in 60.0 s = 27.5 %"),
            (
                Transition::Restored { seen: Tally { calls: 0, failures: 0, span: minute } },
                "restored: 0 of 0 calls failed in 60.0 s",
            ),
        ];
        for (change, words) in rows {
            assert_eq!(change.to_string(), words);
        }
    }

    #[test]
    fn a_rest_is_as_long_as_the_longer_of_the_two() {
        assert_eq!(rest(0, 30, 27, None).length(), Duration::from_secs(27));
        assert_eq!(rest(0, 30, 27, Some(45)).length(), Duration::from_secs(45));
        assert_eq!(rest(0, 30, 27, Some(5)).length(), Duration::from_secs(27));
    }
}
