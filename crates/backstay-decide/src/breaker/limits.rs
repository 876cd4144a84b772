//! The numbers a breaker goes by, and where each comes from.

use std::time::Duration;

use crate::latency::Slow;

/// Whether the circuit acts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Mode {
    /// It opens and closes by what it sees.
    #[default]
    Automatic,
    /// An operator took the target out: no call goes through.
    ForcedOpen,
    /// An operator holds it in: every call goes through, and none counts.
    ForcedClosed,
    /// It opens and closes and says so, and every call goes through all the same.
    MetricsOnly,
}

impl Mode {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Automatic, Self::ForcedOpen, Self::ForcedClosed, Self::MetricsOnly];

    /// Its name in config, metrics and answers.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Automatic => "automatic",
            Self::ForcedOpen => "forced_open",
            Self::ForcedClosed => "forced_closed",
            Self::MetricsOnly => "metrics_only",
        }
    }
}

/// When to open, for how long, and how to come back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Whether the circuit acts.
    pub mode: Mode,
    /// The failure rate above which it opens, 0 to 1. Set it to at least twice the normal rate.
    pub rate: f64,
    /// The fewest calls a rate is judged by. At most [`MAX_RECENT`](super::MAX_RECENT) in a stretch.
    pub min_calls: u32,
    /// How sure it must be that the rate is above: standard deviations of Wilson's bound. 0: not.
    pub z: f64,
    /// Hard failures in a row that open it. 0: none do.
    pub failures: u32,
    /// When a first content counts in the rate though it came.
    pub slow: Slow,
    /// The time a rate is taken over.
    pub window: Duration,
    /// How old the last `min_calls` calls may be where the window holds fewer. Zero: no stretch.
    pub stretch: Duration,
    /// The shortest rest, before jitter.
    pub shortest_rest: Duration,
    /// The longest rest, before jitter.
    pub longest_rest: Duration,
    /// Share of a rest by which the dice lengthen or shorten it, 0 to 1.
    pub jitter: f64,
    /// How it is tested after a rest.
    pub canary: Canary,
    /// How it comes back after the test.
    pub probation: Probation,
}

/// The test after a rest: a few calls, while the others go elsewhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Canary {
    /// Share of the calls offered that test it, 0 to 1.
    pub share: f64,
    /// One test is due after this time even where `share` gives none; never for two calls in a row.
    /// Zero: by share only.
    pub every: Duration,
    /// Most tests in flight. 0 counts as 1.
    pub at_once: u32,
    /// Tests that must come to their first content. One must also end well. 0 counts as 1.
    pub passes: u32,
    /// After so long one test that ended well is enough, for a target with next to no traffic; and
    /// where none began for so long, any call may be one. Zero: never.
    pub patience: Duration,
    /// The largest output cap of a call that is short, in tokens: short ones are preferred.
    pub short: u64,
}

/// The time after the test, when less is forgiven and the load comes back in steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Probation {
    /// How long it lasts. Zero: closed at once.
    pub lasts: Duration,
    /// As [`Limits::rate`], meanwhile.
    pub rate: f64,
    /// As [`Limits::min_calls`], meanwhile.
    pub min_calls: u32,
    /// As [`Limits::failures`], meanwhile.
    pub failures: u32,
    /// The share of the calls offered at first; it doubles with each `step`, up to all.
    pub share: f64,
    /// How long each share holds. Zero: all from the start.
    pub step: Duration,
}

impl Limits {
    /// What holds for availability.
    pub const AVAILABILITY: Self = Self {
        mode: Mode::Automatic,
        // Seed S1: ">15 % over a 60-second window".
        rate: 0.15,
        window: Duration::from_mins(1),
        // 20 calls at 90 %: 8 % of normal failures open it 12 times a day at 0.2 calls a second,
        // where the bare rate does so hundreds of times. docs/breaker.md has the table.
        min_calls: 20,
        z: 1.28,
        // 5: one call in ten failing by chance gives five in a row once in 100,000.
        failures: 5,
        slow: Slow::DEFAULT,
        // 20 calls in 10 minutes are one every 30 s: below that only failures in a row count.
        stretch: Duration::from_mins(10),
        // Seed S1: 30 s. A long outage is tested less often; Envoy's and Finagle's cap is 300 s.
        shortest_rest: Duration::from_secs(30),
        longest_rest: Duration::from_mins(5),
        // Replicas that opened together must not test together.
        jitter: 0.2,
        canary: Canary {
            // Seed S1: "5 % of total volume".
            share: 0.05,
            // 5 % of 0.2 calls a second is one in 100 s: too slow to come back by.
            every: Duration::from_secs(10),
            at_once: 3,
            // A target that fails 3 calls in 10 passes one test 7 times in 10, five 1 time in 6.
            passes: 5,
            patience: Duration::from_mins(5),
            // Above it, or with no cap, a call is long: it is streamed even where nobody asked.
            short: 1_000,
        },
        probation: Probation {
            lasts: Duration::from_mins(1),
            rate: 0.15,
            min_calls: 10,
            failures: 3,
            // A quarter, half, all: a return of the whole load at once is what topples a target
            // that has just come up.
            share: 0.25,
            step: Duration::from_secs(20),
        },
    };

    /// What holds for throttling: 429s count in the rate and never in a row, since one burst over a
    /// limit is many of them.
    pub const THROTTLING: Self = {
        let mut limits = Self::AVAILABILITY;
        limits.failures = 0;
        limits.probation.failures = 0;
        limits
    };

    /// What holds for quality: a row twice as long, since models fail a schema by chance more often
    /// than providers fail a call.
    pub const QUALITY: Self = {
        let mut limits = Self::AVAILABILITY;
        limits.failures = 10;
        limits.probation.failures = 5;
        limits
    };

    /// Seed S1's rule to the letter: more than 15 % of 60 s opens, 30 s of rest, 5 % of the calls
    /// test it, one failed test opens it again, clean ones close it. No least count, no bound, no
    /// row, no jitter, no way back in steps. S1 names no number of tests: it is the default's.
    pub const COMBINED: Self = Self {
        min_calls: 1,
        z: 0.0,
        failures: 0,
        stretch: Duration::ZERO,
        longest_rest: Duration::from_secs(30),
        jitter: 0.0,
        canary: Canary {
            share: 0.05,
            every: Duration::ZERO,
            at_once: 256,
            passes: 5,
            patience: Duration::ZERO,
            short: 1_000,
        },
        probation: Probation {
            lasts: Duration::ZERO,
            rate: 0.15,
            min_calls: 1,
            failures: 0,
            share: 1.0,
            step: Duration::ZERO,
        },
        ..Self::AVAILABILITY
    };

    /// How many single outcomes the stretch may look back on.
    pub(super) fn keep(&self) -> u32 {
        self.min_calls.max(self.probation.min_calls)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::AVAILABILITY
    }
}

impl Probation {
    /// The share of the calls offered that go through `since` its beginning.
    pub fn share_after(&self, since: Duration) -> f64 {
        let steps = since.as_nanos().checked_div(self.step.as_nanos());
        let Some(steps) = steps.filter(|_| self.share > 0.0) else {
            // A share of nothing or with steps of no length is everything.
            return 1.0;
        };
        let doublings = i32::try_from(steps).unwrap_or(i32::MAX);
        (self.share * 2_f64.powi(doublings)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "these values are exact")]

    use super::*;

    #[test]
    fn the_load_comes_back_by_a_quarter_a_half_and_whole() {
        let probation = Limits::default().probation;
        let share = |seconds| probation.share_after(Duration::from_secs(seconds));
        assert_eq!([0, 19, 20, 39, 40, 59].map(share), [0.25, 0.25, 0.5, 0.5, 1.0, 1.0]);
        let odd = |share, step| {
            let step = Duration::from_secs(step);
            Probation { share, step, ..probation }.share_after(Duration::ZERO)
        };
        assert_eq!([odd(0.0, 20), odd(0.25, 0), odd(-1.0, 20), odd(f64::NAN, 20)], [1.0; 4]);
    }

    #[test]
    fn the_combined_rule_looks_at_its_window_only_and_rests_to_the_second() {
        let rule = Limits::COMBINED;
        assert_eq!((rule.stretch, rule.jitter), (Duration::ZERO, 0.0));
        assert_eq!(rule.shortest_rest, rule.longest_rest);
    }

    #[test]
    fn modes_have_the_names_an_operator_gives() {
        let names = Mode::ALL.map(Mode::name);
        assert_eq!(names, ["automatic", "forced_open", "forced_closed", "metrics_only"]);
    }

    #[test]
    fn the_stretch_keeps_what_the_longer_rule_needs() {
        assert_eq!(Limits::default().keep(), 20);
        let mut limits = Limits::default();
        limits.probation.min_calls = 40;
        assert_eq!(limits.keep(), 40);
    }
}
