//! How long the caller is willing to wait, read from its headers and capped by the route.
//!
//! | header | form |
//! |---|---|
//! | `x-backstay-deadline` | `12s`, `1500ms`, `1m30s`, or plain seconds: `12`, `0.5` |
//! | `grpc-timeout` | up to 8 digits and one of `H M S m u n` |
//! | `x-request-timeout`, `request-timeout` | as `x-backstay-deadline` |
//! | `x-envoy-expected-rq-timeout-ms` | milliseconds |
//! | `x-stainless-timeout` | seconds (Node SDKs); `NOT_GIVEN` says nothing |
//!
//! The smallest wins. A zero or anything unreadable is ignored and reported, never obeyed.
//! `x-stainless-read-timeout` is not a deadline: it limits the silence between two reads.

use std::time::Duration;

use crate::span::{self, Unit};

/// Where a deadline came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// The route's own deadline.
    Route,
    /// `x-backstay-deadline`.
    Backstay,
    /// `grpc-timeout`.
    Grpc,
    /// `x-request-timeout`.
    XRequestTimeout,
    /// `request-timeout`.
    RequestTimeout,
    /// `x-envoy-expected-rq-timeout-ms`.
    Envoy,
    /// `x-stainless-timeout`.
    Stainless,
}

impl Source {
    /// The headers that carry a deadline, in the order they are read.
    pub const HEADERS: [Self; 6] = [
        Self::Backstay,
        Self::Grpc,
        Self::XRequestTimeout,
        Self::RequestTimeout,
        Self::Envoy,
        Self::Stainless,
    ];

    /// The header's name in lower case, or `route`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Route => "route",
            Self::Backstay => "x-backstay-deadline",
            Self::Grpc => "grpc-timeout",
            Self::XRequestTimeout => "x-request-timeout",
            Self::RequestTimeout => "request-timeout",
            Self::Envoy => "x-envoy-expected-rq-timeout-ms",
            Self::Stainless => "x-stainless-timeout",
        }
    }

    /// Reads a header's value; `None` if it makes no sense there.
    fn parse(self, text: &str) -> Option<Duration> {
        match self {
            Self::Route => None,
            Self::Backstay | Self::XRequestTimeout | Self::RequestTimeout => {
                span::number_or_go(text, Unit::Seconds)
            }
            Self::Grpc => grpc_timeout(text),
            Self::Envoy => span::number(text, Unit::Millis),
            Self::Stainless => span::number(text, Unit::Seconds),
        }
    }
}

/// What a caller's headers say about time and about earlier tries.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// The smallest deadline asked for.
    pub deadline: Option<(Source, Duration)>,
    /// Headers that were present and made no sense, in the order read.
    pub ignored: Vec<Source>,
    /// The longest silence the caller's reader bears, from `x-stainless-read-timeout`. The SDKs'
    /// default of 600 s says nothing and is left out.
    pub read_gap: Option<Duration>,
    /// Tries of this same request that layers above us already made: `x-stainless-retry-count`, or
    /// `x-envoy-attempt-count` less one, whichever is larger. At most [`MOST_PRIOR_ATTEMPTS`].
    pub prior_attempts: u32,
}

/// The pause between two signs of life while nothing can be shown: what proxies and browsers bear.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// The shortest such pause, whatever a caller asks for.
const LEAST_KEEP_ALIVE: Duration = Duration::from_millis(100);

/// More earlier tries than this count as this many.
pub const MOST_PRIOR_ATTEMPTS: u32 = 100;

impl Asked {
    /// The pause between two signs of life while nothing can be shown: 10 s, or half of the longest
    /// silence that the caller's reader bears, so that one may come late.
    pub fn keep_alive(&self) -> Duration {
        let half = self.read_gap.map_or(KEEP_ALIVE, |gap| gap / 2);
        half.clamp(LEAST_KEEP_ALIVE, KEEP_ALIVE)
    }

    /// Reads the caller's headers; `header` gets lower-case names.
    pub fn read<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Self {
        let mut asked = Self::default();
        for source in Source::HEADERS {
            let Some(text) = header(source.name()) else { continue };
            if text.trim().eq_ignore_ascii_case("not_given") {
                continue;
            }
            match source.parse(text).filter(|d| !d.is_zero()) {
                None => asked.ignored.push(source),
                Some(limit) if asked.deadline.is_none_or(|(_, least)| limit < least) => {
                    asked.deadline = Some((source, limit));
                }
                Some(_) => {}
            }
        }
        asked.read_gap = header("x-stainless-read-timeout")
            .and_then(|text| span::number(text, Unit::Seconds))
            .filter(|gap| !gap.is_zero() && *gap != Duration::from_mins(10));
        let count =
            |name| header(name).and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(0);
        asked.prior_attempts = count("x-stainless-retry-count")
            .max(count("x-envoy-attempt-count").saturating_sub(1))
            .min(MOST_PRIOR_ATTEMPTS);
        asked
    }
}

/// The one deadline of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadline {
    /// From the call's arrival to its end, all attempts and waits included.
    pub total: Duration,
    /// Who set it.
    pub source: Source,
}

/// The smaller of what the route allows and what the caller asked for. The route wins a tie.
pub fn settle(route: Duration, asked: &Asked) -> Deadline {
    match asked.deadline {
        Some((source, total)) if total < route => Deadline { total, source },
        Some(_) | None => Deadline { total: route, source: Source::Route },
    }
}

/// A gRPC timeout: one to eight digits and a unit.
fn grpc_timeout(text: &str) -> Option<Duration> {
    let text = text.trim();
    let unit = text.chars().next_back()?;
    let digits = text.strip_suffix(unit)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    match unit {
        'H' => Some(Duration::from_secs(count * 3600)),
        'M' => Some(Duration::from_secs(count * 60)),
        'S' => Some(Duration::from_secs(count)),
        'm' => Some(Duration::from_millis(count)),
        'u' => Some(Duration::from_micros(count)),
        'n' => Some(Duration::from_nanos(count)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn asked(pairs: &[(&str, &str)]) -> Asked {
        Asked::read(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| *value))
    }

    const ROUTE: Duration = Duration::from_secs(30);

    #[test]
    fn every_header_is_read_in_its_own_form() {
        let rows = [
            ("x-backstay-deadline", "12", 12_000, Source::Backstay),
            ("x-backstay-deadline", "12s", 12_000, Source::Backstay),
            ("x-backstay-deadline", "1500ms", 1_500, Source::Backstay),
            ("x-backstay-deadline", "0.5", 500, Source::Backstay),
            ("grpc-timeout", "5S", 5_000, Source::Grpc),
            ("grpc-timeout", "250m", 250, Source::Grpc),
            ("grpc-timeout", "99999999u", 99_999_999 / 1000, Source::Route),
            ("grpc-timeout", "2000000u", 2_000, Source::Grpc),
            ("x-request-timeout", "15", 15_000, Source::XRequestTimeout),
            ("x-request-timeout", "900ms", 900, Source::XRequestTimeout),
            ("request-timeout", "2s", 2_000, Source::RequestTimeout),
            ("x-envoy-expected-rq-timeout-ms", "4000", 4_000, Source::Envoy),
            ("x-stainless-timeout", "20", 20_000, Source::Stainless),
            ("x-stainless-timeout", "600", 30_000, Source::Route),
        ];
        for (name, value, millis, source) in rows {
            let settled = settle(ROUTE, &asked(&[(name, value)]));
            let total = if source == Source::Route { ROUTE } else { Duration::from_millis(millis) };
            assert_eq!(settled, Deadline { total, source }, "{name}: {value}");
        }
    }

    #[test]
    fn the_smallest_wins_and_the_route_caps_it() {
        let both = asked(&[("grpc-timeout", "9S"), ("x-stainless-timeout", "8")]);
        let eight = Deadline { total: Duration::from_secs(8), source: Source::Stainless };
        assert_eq!(settle(ROUTE, &both), eight);
        let short = Duration::from_secs(5);
        assert_eq!(settle(short, &both), Deadline { total: short, source: Source::Route });
        assert_eq!(settle(ROUTE, &Asked::default()).source, Source::Route);
        let first_of_two = asked(&[("x-stainless-timeout", "8"), ("grpc-timeout", "8S")]);
        assert_eq!(first_of_two.deadline, Some((Source::Grpc, Duration::from_secs(8))));
        let tie = asked(&[("grpc-timeout", "30S")]);
        assert_eq!(settle(ROUTE, &tie).source, Source::Route);
    }

    #[test]
    fn grpc_units_reach_from_hours_to_nanoseconds() {
        let rows = [
            ("2H", Duration::from_hours(2)),
            ("3M", Duration::from_mins(3)),
            ("4S", Duration::from_secs(4)),
            ("5m", Duration::from_millis(5)),
            ("6u", Duration::from_micros(6)),
            ("99999999n", Duration::from_nanos(99_999_999)),
            ("99999999H", Duration::from_hours(99_999_999)),
        ];
        for (text, span) in rows {
            let got = asked(&[("grpc-timeout", text)]).deadline;
            assert_eq!(got, Some((Source::Grpc, span)), "{text}");
        }
    }

    #[test]
    fn garbage_is_reported_and_never_obeyed() {
        let odd = asked(&[
            ("x-backstay-deadline", "soon"),
            ("grpc-timeout", "123456789S"),
            ("x-request-timeout", "-5"),
            ("request-timeout", "NaN"),
            ("x-envoy-expected-rq-timeout-ms", "0"),
            ("x-stainless-timeout", ""),
        ]);
        assert_eq!(odd.deadline, None);
        assert_eq!(odd.ignored, Source::HEADERS);
        for bad in ["", "5", "S", "5s", "5X", "-5S", "+5S", "5.5S", "٥S", "S5"] {
            assert_eq!(asked(&[("grpc-timeout", bad)]).deadline, None, "{bad:?}");
        }
        let silent = asked(&[("x-stainless-timeout", "NOT_GIVEN")]);
        assert_eq!((silent.deadline, silent.ignored.len()), (None, 0));
    }

    #[test]
    fn a_read_timeout_is_a_gap_and_no_deadline() {
        let python = asked(&[("x-stainless-read-timeout", "45")]);
        assert_eq!((python.deadline, python.read_gap), (None, Some(Duration::from_secs(45))));
        assert_eq!(asked(&[("x-stainless-read-timeout", "600")]).read_gap, None);
        assert_eq!(asked(&[("x-stainless-read-timeout", "600.0")]).read_gap, None);
        assert_eq!(asked(&[("x-stainless-read-timeout", "NOT_GIVEN")]).read_gap, None);
    }

    #[test]
    fn a_reader_hears_twice_in_the_silence_that_it_bears() {
        let rows = [("600", 10_000), ("45", 10_000), ("15", 7500), ("0.5", 250), ("0.001", 100)];
        for (gap, millis) in rows {
            let pause = asked(&[("x-stainless-read-timeout", gap)]).keep_alive();
            assert_eq!(pause, Duration::from_millis(millis), "{gap}");
        }
        assert_eq!(Asked::default().keep_alive(), Duration::from_secs(10));
    }

    #[test]
    fn earlier_tries_of_layers_above_are_counted() {
        let rows: [(&[(&str, &str)], u32); 7] = [
            (&[], 0),
            (&[("x-stainless-retry-count", "0")], 0),
            (&[("x-stainless-retry-count", "2")], 2),
            (&[("x-envoy-attempt-count", "1")], 0),
            (&[("x-envoy-attempt-count", "3"), ("x-stainless-retry-count", "1")], 2),
            (&[("x-stainless-retry-count", "-1")], 0),
            (&[("x-stainless-retry-count", "4000000000")], MOST_PRIOR_ATTEMPTS),
        ];
        for (pairs, want) in rows {
            assert_eq!(asked(pairs).prior_attempts, want, "{pairs:?}");
        }
    }

    proptest! {
        #[test]
        fn a_settled_deadline_is_positive_and_never_over_the_routes(
            value in prop_oneof![".{0,20}", "[0-9.]{1,12}[HMSmuns]?s?"],
            name in prop::sample::select(Source::HEADERS.to_vec()),
            route in 1_u64..1_000_000,
        ) {
            let route = Duration::from_millis(route);
            let settled = settle(route, &asked(&[(name.name(), &value)]));
            prop_assert!(settled.total <= route && !settled.total.is_zero());
        }
    }
}
