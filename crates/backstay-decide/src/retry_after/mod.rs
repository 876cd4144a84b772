//! How long a provider asks us to stay away, read from its reply's headers; and what we ask of ours.
//!
//! The delay is a floor for the wait, never the wait itself. Explicit delays win over rate-limit
//! resets, and a reset counts only where the reply says that limit is used up: providers send
//! resets with every reply, and they tell when the limit is full again, not when one more call fits.

use std::time::Duration;

use crate::span::{self, Unit};

mod limits;

pub use limits::{is_limit, limits};

/// The longest delay believed: ten minutes. A longer one is cut to it.
pub const LONGEST: Duration = Duration::from_mins(10);

/// The longest delay ever asked of our own callers, in seconds.
pub const LONGEST_OUTBOUND: u64 = 60;

/// Whether the provider said not to repeat the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Veto {
    /// It said nothing of the kind.
    #[default]
    Absent,
    /// It did: `x-should-retry: false`, or a negative gRPC push-back.
    Given,
}

/// One rate limit as a reply states it: what is left, and when it is full again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Meter<'a> {
    /// What is left. Only an exact zero means used up.
    pub remaining: Option<&'a str>,
    /// A Go duration, seconds, an epoch in seconds or milliseconds, or an RFC 3339 time.
    pub reset: Option<&'a str>,
}

/// The headers of one reply that speak of delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayHeaders<'a> {
    /// `retry-after-ms` or `x-ms-retry-after-ms`: milliseconds, fractions allowed.
    pub retry_after_ms: Option<&'a str>,
    /// `retry-after`: seconds (fractions seen) or an HTTP date.
    pub retry_after: Option<&'a str>,
    /// What the body says: seconds or a Go duration, such as Google's `retryDelay`.
    pub body: Option<&'a str>,
    /// `grpc-retry-pushback-ms`: milliseconds; negative or unreadable means "do not repeat".
    pub grpc_retry_pushback_ms: Option<&'a str>,
    /// `date`: the server's clock, against which its dates are read.
    pub date: Option<&'a str>,
    /// `x-should-retry`: `true` or `false`.
    pub x_should_retry: Option<&'a str>,
    /// The rate limits, in the order of [`METERS`].
    pub meters: [Meter<'a>; METERS.len()],
}

/// Headers of the rate limits read: what remains, and when it resets.
pub const METERS: [(&str, &str); 8] = [
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("x-ratelimit-remaining", "x-ratelimit-reset"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
    ("anthropic-ratelimit-unified-remaining", "anthropic-ratelimit-unified-reset"),
];

impl<'a> DelayHeaders<'a> {
    /// Picks the headers by name; `header` gets lower-case names.
    pub fn read(header: impl Fn(&str) -> Option<&'a str>) -> Self {
        Self {
            // Azure has a spelling of its own.
            retry_after_ms: header("retry-after-ms").or_else(|| header("x-ms-retry-after-ms")),
            body: None,
            retry_after: header("retry-after"),
            grpc_retry_pushback_ms: header("grpc-retry-pushback-ms"),
            date: header("date"),
            x_should_retry: header("x-should-retry"),
            meters: METERS.map(|(remaining, reset)| Meter {
                remaining: header(remaining),
                reset: header(reset),
            }),
        }
    }

    /// Whether the provider said not to repeat the request.
    pub fn veto(&self) -> Veto {
        let forbidden = self.x_should_retry.is_some_and(|v| v.trim().eq_ignore_ascii_case("false"));
        // gRPC A6: a negative or unreadable push-back means "do not retry".
        let pushed_back = self
            .grpc_retry_pushback_ms
            .is_some_and(|v| v.trim().parse::<i32>().map_or(true, |ms| ms < 0));
        if forbidden || pushed_back { Veto::Given } else { Veto::Absent }
    }
}

/// The delay the server asks for, at most [`LONGEST`]; `None` if it asks for none that can be read.
///
/// In order: `retry-after-ms`, `retry-after`, `grpc-retry-pushback-ms`, the body, then the longest
/// reset of a limit that is used up. A zero is no request (seen from Azure); a date in the past is zero.
/// `now` is the wall clock in Unix seconds, used only where the reply has no `date`.
pub fn server_delay(headers: &DelayHeaders<'_>, now: i64) -> Option<Duration> {
    let now = headers.date.and_then(http_date).unwrap_or(now);
    let asked = |text: Option<&str>, unit| {
        text.and_then(|t| span::number(t, unit)).filter(|d| !d.is_zero())
    };
    asked(headers.retry_after_ms, Unit::Millis)
        .or_else(|| asked(headers.retry_after, Unit::Seconds))
        .or_else(|| headers.retry_after.and_then(http_date).map(|then| seconds_until(then, now)))
        .or_else(|| asked(headers.grpc_retry_pushback_ms, Unit::Millis))
        .or_else(|| headers.body.and_then(said).filter(|delay| !delay.is_zero()))
        .or_else(|| spent(&headers.meters, now))
        .map(|delay| delay.min(LONGEST))
}

/// When every limit is full again, at most [`LONGEST`]: an upper bound, good for showing and for
/// resting a key, too long for a wait. The used-up limit's reset, else the longest.
pub fn reset_bound(headers: &DelayHeaders<'_>, now: i64) -> Option<Duration> {
    let now = headers.date.and_then(http_date).unwrap_or(now);
    let longest = || headers.meters.iter().filter_map(|meter| reset(meter.reset?, now)).max();
    spent(&headers.meters, now).or_else(longest).map(|delay| delay.min(LONGEST))
}

/// What we ask of our own callers: whole seconds, rounded up, 1 to [`LONGEST_OUTBOUND`].
pub fn outbound(delay: Duration) -> u64 {
    let whole = delay.as_secs().saturating_add(u64::from(delay.subsec_nanos() > 0));
    whole.clamp(1, LONGEST_OUTBOUND)
}

/// A delay in a body: a number of seconds, or a Go duration.
fn said(text: &str) -> Option<Duration> {
    span::number_or_go(text, Unit::Seconds)
}

/// The longest reset of a limit with nothing left.
fn spent(meters: &[Meter<'_>], now: i64) -> Option<Duration> {
    meters
        .iter()
        .filter(|meter| meter.remaining.is_some_and(|left| left.trim() == "0"))
        .filter_map(|meter| reset(meter.reset?, now))
        .max()
}

/// Time until a reset, in any of the forms seen.
fn reset(text: &str, now: i64) -> Option<Duration> {
    let number = span::number(text, Unit::Seconds).map(|value| match value.as_secs() {
        // Too large for a delay: an epoch, in milliseconds from 1e12 on, in seconds from 1e9 on.
        millis @ 1_000_000_000_000.. => {
            seconds_until(i64::try_from(millis / 1000).unwrap_or(i64::MAX), now)
        }
        seconds @ 1_000_000_000.. => seconds_until(i64::try_from(seconds).unwrap_or(i64::MAX), now),
        _ => value,
    });
    number.or_else(|| span::go(text)).or_else(|| rfc3339(text).map(|then| seconds_until(then, now)))
}

/// From `now` to `then`, both in Unix seconds; zero if past.
fn seconds_until(then: i64, now: i64) -> Duration {
    Duration::from_secs(u64::try_from(then.saturating_sub(now)).unwrap_or(0))
}

/// An HTTP date in any of its three forms, as Unix seconds.
fn http_date(text: &str) -> Option<i64> {
    let then = httpdate::parse_http_date(text.trim()).ok()?;
    let since = then.duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_secs()).ok()
}

/// An RFC 3339 time, as Unix seconds; a fraction is dropped.
fn rfc3339(text: &str) -> Option<i64> {
    let text = text.trim();
    let (date, rest) = text.split_once(['T', 't', ' '])?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let clock_end = rest.find(|c: char| !c.is_ascii_digit() && c != ':')?;
    let (clock, zone) = rest.split_at(clock_end);
    let [hour, minute, second] = numbers(clock, ':', [2, 2, 2])?;
    let zone = match zone.strip_prefix('.') {
        Some(fraction) => fraction.trim_start_matches(|c: char| c.is_ascii_digit()),
        None => zone,
    };
    if !(1..=12).contains(&month)
        || !(1..=31).contains(&day)
        || hour > 23
        || minute > 59
        || second > 60
    {
        return None;
    }
    let local = days_from_civil(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    Some(local - zone_offset(zone)?)
}

/// Seconds east of UTC: `Z`, `+hh:mm` or `-hh:mm`.
fn zone_offset(zone: &str) -> Option<i64> {
    if zone.eq_ignore_ascii_case("z") {
        return Some(0);
    }
    let (sign, rest) = match (zone.strip_prefix('+'), zone.strip_prefix('-')) {
        (Some(east), _) => (1, east),
        (_, Some(west)) => (-1, west),
        (None, None) => return None,
    };
    let [hours, minutes] = numbers(rest, ':', [2, 2])?;
    (hours < 24 && minutes < 60).then_some(sign * (hours * 3600 + minutes * 60))
}

/// Fields of exact widths between separators.
fn numbers<const N: usize>(text: &str, separator: char, widths: [usize; N]) -> Option<[i64; N]> {
    let mut fields = text.split(separator);
    let mut found = [0; N];
    for (place, width) in found.iter_mut().zip(widths) {
        let field = fields.next()?;
        let digits = field.len() == width && field.bytes().all(|b| b.is_ascii_digit());
        *place = digits.then(|| field.parse().ok())??;
    }
    fields.next().is_none().then_some(found)
}

/// Days from 1970-01-01 to a date of the Gregorian calendar, for years 0 to 9999.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that the leap day is the last of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leap_days + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests;
