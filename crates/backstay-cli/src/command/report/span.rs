//! When a report begins and ends, as it is typed.

use std::str::FromStr;

/// A moment, or a length of time back from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// Milliseconds before now.
    Ago(u64),
    /// Milliseconds since 1970 UTC.
    At(u64),
}

impl Edge {
    /// The moment, in milliseconds since 1970 UTC.
    pub(super) fn at(self, now_ms: u64) -> u64 {
        match self {
            Self::Ago(back) => now_ms.saturating_sub(back),
            Self::At(moment) => moment,
        }
    }
}

impl FromStr for Edge {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(back) = length(text) {
            return Ok(Self::Ago(back));
        }
        let moment = text.parse::<jiff::Timestamp>().or_else(|_| {
            let midnight = text.parse::<jiff::civil::Date>()?.at(0, 0, 0, 0);
            jiff::tz::Offset::UTC.to_timestamp(midnight)
        });
        let moment = moment.ok().and_then(|moment| u64::try_from(moment.as_millisecond()).ok());
        moment.map(Self::At).ok_or_else(|| {
            "not a length of time (24h), a day (2026-11-30) or a moment (2026-11-30T14:00:00Z)"
                .to_owned()
        })
    }
}

/// A number with `s`, `m`, `h` or `d`, in milliseconds.
fn length(text: &str) -> Option<u64> {
    let at = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at_checked(at)?;
    let unit: u64 = match unit {
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::Edge;

    #[test]
    fn lengths_days_and_moments_are_read_and_nothing_else_is() {
        for (text, edge) in [
            ("90m", Edge::Ago(5_400_000)),
            ("24h", Edge::Ago(86_400_000)),
            ("7d", Edge::Ago(604_800_000)),
            ("0s", Edge::Ago(0)),
            ("1970-01-02", Edge::At(86_400_000)),
            ("1970-01-01T00:00:01Z", Edge::At(1_000)),
            ("1970-01-01T01:00:01+01:00", Edge::At(1_000)),
        ] {
            assert_eq!(text.parse(), Ok(edge), "{text}");
        }
        for text in ["", "24", "h", "-1h", "1.5h", "yesterday", "2026-13-01", "99999999999999999d"]
        {
            assert!(text.parse::<Edge>().is_err(), "{text}");
        }
        assert_eq!(Edge::Ago(10).at(5), 0);
        assert_eq!((Edge::Ago(2).at(5), Edge::At(9).at(5)), (3, 9));
    }
}
