//! Lengths of time as headers write them: plain numbers, numbers with a unit, Go durations.
//!
//! Headers come from strangers, so nothing here panics or overflows: what cannot be read is
//! absent, and what is too long to hold is [`Duration::MAX`].

use std::time::Duration;

/// What a number without a unit means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Seconds.
    Seconds,
    /// Milliseconds.
    Millis,
}

/// Reads a plain number: digits with an optional fraction or exponent, no sign, no unit.
///
/// `None` for anything else, and for `NaN`, `inf` and `1e400`. A row of digits too long for any
/// clock is [`Duration::MAX`].
pub fn number(text: &str, unit: Unit) -> Option<Duration> {
    let text = text.trim();
    if !text.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    let unit = match unit {
        Unit::Seconds => Duration::from_secs(1),
        Unit::Millis => Duration::from_millis(1),
    };
    times(text, unit)
}

/// `count` units. Whole numbers are exact; an exponent that leads out of all bounds is absent, a
/// row of digits that does is the longest time.
fn times(count: &str, unit: Duration) -> Option<Duration> {
    if let Ok(whole) = count.parse::<u64>() {
        let nanos = u128::from(whole) * unit.as_nanos();
        let seconds = u64::try_from(nanos / 1_000_000_000);
        let rest = u32::try_from(nanos % 1_000_000_000).unwrap_or(0);
        return Some(seconds.map_or(Duration::MAX, |seconds| Duration::new(seconds, rest)));
    }
    let value: f64 = count.parse().ok()?;
    let plain = count.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    if !value.is_finite() && !plain {
        return None;
    }
    Some(Duration::try_from_secs_f64(value * unit.as_secs_f64()).unwrap_or(Duration::MAX))
}

/// Reads a Go duration: numbers with units in a row, such as `6m0s`, `1.5s`, `17ms`, `1h2m3s`.
///
/// Units are `h`, `m`, `s`, `ms`, `us` (or `µs`) and `ns`. `None` for a sign, a missing unit, or
/// anything else; the sum saturates.
pub fn go(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    if rest.is_empty() {
        return None;
    }
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let (digits, after) = split_while(rest, |c| c.is_ascii_digit() || c == '.');
        let (unit, tail) = split_while(after, char::is_alphabetic);
        let unit = match unit {
            "h" => Duration::from_hours(1),
            "m" => Duration::from_mins(1),
            "s" => Duration::from_secs(1),
            "ms" => Duration::from_millis(1),
            "us" | "µs" | "μs" => Duration::from_micros(1),
            "ns" => Duration::from_nanos(1),
            _ => return None,
        };
        sum = sum.saturating_add(times(digits, unit)?);
        rest = tail;
    }
    Some(sum)
}

/// Reads a plain number in `bare`, or a Go duration.
pub fn number_or_go(text: &str, bare: Unit) -> Option<Duration> {
    number(text, bare).or_else(|| go(text))
}

/// Splits where `keep` first says no.
fn split_while(text: &str, keep: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !keep(c)).unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "compared with what may be absent")]
    fn ms(n: u64) -> Option<Duration> {
        Some(Duration::from_millis(n))
    }

    #[test]
    fn a_plain_number_is_in_the_unit_of_its_place_and_a_go_duration_in_its_own() {
        assert_eq!(number_or_go("7", Unit::Seconds), Some(Duration::from_secs(7)));
        assert_eq!(number_or_go("7", Unit::Millis), Some(Duration::from_millis(7)));
        assert_eq!(number_or_go("1m7s", Unit::Millis), Some(Duration::from_secs(67)));
        assert_eq!(number_or_go("soon", Unit::Millis), None);
    }

    #[test]
    fn numbers_are_read_in_their_unit() {
        assert_eq!(number("7", Unit::Seconds), ms(7000));
        assert_eq!(number(" 0.5 ", Unit::Seconds), ms(500));
        assert_eq!(number("1e2", Unit::Millis), ms(100));
        assert_eq!(number("1500.0", Unit::Millis), ms(1500));
        assert_eq!(number("0", Unit::Seconds), ms(0));
    }

    #[test]
    fn what_is_no_number_is_absent_and_what_is_too_long_is_the_longest() {
        for bad in
            ["", " ", "-1", "+1", "NaN", "inf", "infinity", "1e400", "1s", "1_0", "٣", "..", "0x1"]
        {
            assert_eq!(number(bad, Unit::Seconds), None, "{bad:?}");
        }
        assert_eq!(number(&"9".repeat(30), Unit::Seconds), Some(Duration::MAX));
        assert_eq!(number(&"9".repeat(500), Unit::Millis), Some(Duration::MAX));
    }

    #[test]
    fn go_durations_are_sums_of_parts() {
        assert_eq!(go("6m0s"), ms(360_000));
        assert_eq!(go("17ms"), ms(17));
        assert_eq!(go("1.5s"), ms(1500));
        assert_eq!(go("1h2m3s4ms"), ms(3_723_004));
        assert_eq!(go("250µs"), Some(Duration::from_micros(250)));
        assert_eq!(go("40ns"), Some(Duration::from_nanos(40)));
        for bad in ["", "s", "5", "-5s", "1s-", "1d", "1 s", "1s2", "1.2.3s", "∞s", "1e3s"] {
            assert_eq!(go(bad), None, "{bad:?}");
        }
        assert_eq!(go(&format!("{}h9h", "9".repeat(40))), Some(Duration::MAX));
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_a_panic(text in ".{0,40}") {
            let _ = number_or_go(&text, Unit::Seconds);
            let _ = number_or_go(&text, Unit::Millis);
        }

        #[test]
        fn milliseconds_survive_the_trip(n in 0_u64..10_000_000_000) {
            prop_assert_eq!(number(&n.to_string(), Unit::Millis), ms(n));
            prop_assert_eq!(go(&format!("{n}ms")), ms(n));
        }
    }
}
