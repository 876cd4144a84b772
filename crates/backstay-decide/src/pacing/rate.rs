//! What a provider limits, by how much, and the pace that keeps below it.

use std::fmt;

use super::meter::Pace;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// Requests.
    Requests,
    /// Input tokens.
    Input,
    /// Output tokens.
    Output,
    /// Input and output tokens together.
    Total,
}

/// Over what time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Per {
    /// Any minute.
    Minute,
    /// Any 24 hours.
    Day,
}

/// One limit that can be kept: what, and over what time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Dimension {
    /// What is counted.
    pub unit: Unit,
    /// Over what time.
    pub per: Per,
}

impl Dimension {
    /// All that there are, in the order in which ties are told.
    pub const ALL: [Self; 8] = [
        Self { unit: Unit::Requests, per: Per::Minute },
        Self { unit: Unit::Input, per: Per::Minute },
        Self { unit: Unit::Output, per: Per::Minute },
        Self { unit: Unit::Total, per: Per::Minute },
        Self { unit: Unit::Requests, per: Per::Day },
        Self { unit: Unit::Input, per: Per::Day },
        Self { unit: Unit::Output, per: Per::Day },
        Self { unit: Unit::Total, per: Per::Day },
    ];

    /// Its name in config and metrics.
    pub const fn name(self) -> &'static str {
        match (self.unit, self.per) {
            (Unit::Requests, Per::Minute) => "requests_per_minute",
            (Unit::Input, Per::Minute) => "input_tokens_per_minute",
            (Unit::Output, Per::Minute) => "output_tokens_per_minute",
            (Unit::Total, Per::Minute) => "tokens_per_minute",
            (Unit::Requests, Per::Day) => "requests_per_day",
            (Unit::Input, Per::Day) => "input_tokens_per_day",
            (Unit::Output, Per::Day) => "output_tokens_per_day",
            (Unit::Total, Per::Day) => "tokens_per_day",
        }
    }

    /// Its place in [`Dimension::ALL`].
    pub(super) const fn place(self) -> usize {
        let unit = match self.unit {
            Unit::Requests => 0,
            Unit::Input => 1,
            Unit::Output => 2,
            Unit::Total => 3,
        };
        match self.per {
            Per::Minute => unit,
            Per::Day => unit + 4,
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.unit {
            Unit::Requests => "requests",
            Unit::Input => "input tokens",
            Unit::Output => "output tokens",
            Unit::Total => "tokens",
        })?;
        f.write_str(match self.per {
            Per::Minute => " a minute",
            Per::Day => " a day",
        })
    }
}

/// A limit as the provider publishes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// What is limited.
    pub dimension: Dimension,
    /// How many. 0: nothing at all is allowed.
    pub limit: u64,
}

/// What part of a published limit is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    steady: u32,
    burst: Option<u32>,
}

impl Default for Share {
    /// S2: "releases requests at, for example, 80 percent of the published rate". The other 20 % are
    /// the burst.
    fn default() -> Self {
        Self::per_mille(800)
    }
}

impl Share {
    /// `thousandths` of the limit as the steady rate, 1 to 1000; pulled into that range. The burst is
    /// what is left of the limit, so that no minute holds more than the limit.
    pub const fn per_mille(thousandths: u32) -> Self {
        let steady = match thousandths {
            0 => 1,
            1..=1000 => thousandths,
            _ => 1000,
        };
        Self { steady, burst: None }
    }

    /// The same with a burst of its own, in thousandths of the limit, 0 to 1000. A provider whose
    /// bucket is as large as a minute takes any; one that counts a sliding minute answers 429 where
    /// both parts are over 1000 together.
    #[must_use]
    pub const fn burst(self, thousandths: u32) -> Self {
        let own = match thousandths {
            0..=1000 => thousandths,
            _ => 1000,
        };
        Self { burst: Some(own), ..self }
    }

    /// The steady part in thousandths.
    pub const fn thousandths(self) -> u32 {
        self.steady
    }

    /// The pace for a limit a minute. The burst is at least one second's worth and 1, the rate at
    /// least 1, unless nothing is allowed.
    pub(super) fn pace(self, limit: u64) -> Pace {
        if limit == 0 {
            return Pace { rate: 0, burst: 0 };
        }
        let rate = part(limit, self.steady).max(1);
        let burst = self.burst.map_or(limit - rate, |own| part(limit, own));
        Pace { rate, burst: burst.max(limit / 60).max(1) }
    }

    /// What a limit a day allows in 24 hours; at least 1, unless nothing is allowed.
    pub(super) fn day(self, limit: u64) -> u64 {
        part(limit, self.steady).max(limit.min(1))
    }
}

/// `thousandths` of `whole`, rounded down.
pub(super) fn part(whole: u64, thousandths: u32) -> u64 {
    let exact = u128::from(whole) * u128::from(thousandths) / 1000;
    u64::try_from(exact).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn eighty_percent_is_the_rate_and_the_rest_the_burst() {
        let rows =
            [(90_000, 72_000, 18_000), (600, 480, 120), (5, 4, 1), (2, 1, 1), (1, 1, 1), (0, 0, 0)];
        for (limit, rate, burst) in rows {
            assert_eq!(Share::default().pace(limit), Pace { rate, burst }, "{limit}");
        }
        assert_eq!(Share::per_mille(1000).pace(90_000), Pace { rate: 90_000, burst: 1500 });
        let wide = Share::per_mille(1000).burst(200);
        assert_eq!(wide.pace(90_000), Pace { rate: 90_000, burst: 18_000 });
        assert_eq!(wide.burst(5000).pace(90), Pace { rate: 90, burst: 90 });
        assert_eq!(Share::per_mille(0).thousandths(), 1);
        assert_eq!(Share::per_mille(1001).thousandths(), 1000);
        assert_eq!([1000, 1, 0].map(|limit| Share::default().day(limit)), [800, 1, 0]);
    }

    #[test]
    fn every_dimension_has_its_place_and_name() {
        for (ix, dimension) in Dimension::ALL.into_iter().enumerate() {
            assert_eq!(dimension.place(), ix);
        }
        let names: Vec<String> = Dimension::ALL.iter().map(ToString::to_string).collect();
        assert_eq!(
            names[..4],
            [
                "requests a minute",
                "input tokens a minute",
                "output tokens a minute",
                "tokens a minute"
            ]
        );
        assert_eq!(names[7], "tokens a day");
        let names = Dimension::ALL.map(Dimension::name);
        assert_eq!(names[..2], ["requests_per_minute", "input_tokens_per_minute"]);
        assert_eq!(names[2..4], ["output_tokens_per_minute", "tokens_per_minute"]);
        assert_eq!(names[4..6], ["requests_per_day", "input_tokens_per_day"]);
        assert_eq!(names[6..], ["output_tokens_per_day", "tokens_per_day"]);
    }

    proptest! {
        #[test]
        fn a_minute_never_holds_more_than_the_limit(limit in 2_u64.., share in 1_u32..=983) {
            let pace = Share::per_mille(share).pace(limit);
            prop_assert!(pace.rate >= 1 && pace.burst >= 1);
            prop_assert!(pace.most() <= limit);
        }
    }
}
