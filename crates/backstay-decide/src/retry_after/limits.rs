//! The rate limits a reply states in its headers, of whatever provider.
//!
//! | headers | of |
//! |---|---|
//! | `x-ratelimit-{limit,remaining,reset}-{requests,tokens}` | OpenAI, Azure, Groq, Mistral and most who are compatible |
//! | `x-ratelimit-{limit,remaining,reset}-{tokens-prompt,tokens-generated}` | Fireworks |
//! | `anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-{limit,remaining,reset}` | Anthropic |
//!
//! Nobody says over what time a limit is counted: OpenAI's requests are a minute's or a day's by
//! account, Groq's are a day's. The reset tells: what is full again only after minutes is a day's.

use std::time::Duration;

use super::{http_date, reset};
use crate::pacing::{Dimension, Per, Seen, Unit};

/// A minute's limit is full again within a minute, and clocks are a little off. Seen of `OpenAI`'s
/// 1,500,000 tokens a day: 4,379 of them back after 4m12s, at which all are back after a day. Its own
/// example, 6m0s for 16 of 150,000 tokens, is neither a minute's nor a day's. A minute's limit that is
/// overdrawn may look like a day's: the pacer forgets that with the next reply.
const LONGEST_OF_A_MINUTE: Duration = Duration::from_secs(90);

/// Resets below this may have been rounded up to whole seconds: they say nothing of the window.
const EXACT_FROM: Duration = Duration::from_secs(5);

/// A window longer than this is a day.
const LONGEST_MINUTE: Duration = Duration::from_mins(10);

const UNITS: [Unit; 4] = [Unit::Requests, Unit::Input, Unit::Output, Unit::Total];

/// The words of one limit.
#[derive(Clone, Copy, Debug, Default)]
struct Words<'a> {
    limit: Option<&'a str>,
    remaining: Option<&'a str>,
    reset: Option<&'a str>,
}

/// Whether a header speaks of a rate limit. `name` is in lower case.
pub fn is_limit(name: &str) -> bool {
    name.starts_with("x-ratelimit-") || name.starts_with("anthropic-ratelimit-")
}

/// The limits stated in `headers`, whose names are in lower case. `now` is the wall clock in Unix
/// seconds, used only where the reply has no `date`. What makes no sense is left out.
pub fn limits<'a>(headers: impl Iterator<Item = (&'a str, &'a str)>, now: i64) -> Vec<Seen> {
    let mut words = [Words::default(); UNITS.len()];
    let mut now = now;
    for (name, value) in headers {
        if name == "date" {
            now = http_date(value).unwrap_or(now);
            continue;
        }
        let Some((unit, field)) = meaning(name) else { continue };
        let Some(place) = UNITS.iter().position(|known| *known == unit) else { continue };
        let words = &mut words[place];
        match field {
            "limit" => words.limit = Some(value),
            "remaining" => words.remaining = Some(value),
            "reset" => words.reset = Some(value),
            _ => {}
        }
    }
    let parts = [Unit::Input, Unit::Output].map(|unit| {
        UNITS.iter().zip(&words).any(|(known, words)| *known == unit && words.limit.is_some())
    });
    UNITS
        .into_iter()
        .zip(words)
        // Beside its parts, Anthropic's sum repeats whichever limit is the tightest.
        .filter(|(unit, _)| *unit != Unit::Total || parts == [false, false])
        .filter_map(|(unit, words)| seen(unit, words, now))
        .collect()
}

/// What a header is about: the unit, and which of `limit`, `remaining` and `reset`.
fn meaning(name: &str) -> Option<(Unit, &str)> {
    let (unit, field) = if let Some(rest) = name.strip_prefix("x-ratelimit-") {
        let (field, unit) = rest.split_once('-')?;
        (unit, field)
    } else {
        name.strip_prefix("anthropic-ratelimit-")?.rsplit_once('-')?
    };
    let unit = match unit {
        "requests" => Unit::Requests,
        "tokens" => Unit::Total,
        "input-tokens" | "tokens-prompt" => Unit::Input,
        "output-tokens" | "tokens-generated" => Unit::Output,
        _ => return None,
    };
    Some((unit, field))
}

fn seen(unit: Unit, words: Words<'_>, now: i64) -> Option<Seen> {
    // Azure sends -1 and 0 where it does not know: the one is no number, the other is ignored.
    let number = |text: Option<&str>| text.and_then(|text| text.trim().parse::<u64>().ok());
    let (limit, remaining) =
        (number(words.limit).filter(|limit| *limit > 0), number(words.remaining));
    if limit.is_none() && remaining.is_none() {
        return None;
    }
    let reset = words.reset.and_then(|text| reset(text, now));
    let per = window(limit, remaining, reset);
    Some(Seen { dimension: Dimension { unit, per }, limit, remaining, reset })
}

/// Over what time a limit is counted.
fn window(limit: Option<u64>, remaining: Option<u64>, reset: Option<Duration>) -> Per {
    let Some(reset) = reset else { return Per::Minute };
    if reset > LONGEST_OF_A_MINUTE {
        return Per::Day;
    }
    let (Some(limit), Some(remaining)) = (limit, remaining) else { return Per::Minute };
    let used = limit.saturating_sub(remaining);
    // What is used is full again after `reset`, so all of it is after this.
    let whole = reset.as_millis().saturating_mul(limit.into()).checked_div(used.into());
    match whole {
        Some(whole) if reset >= EXACT_FROM && whole > LONGEST_MINUTE.as_millis() => Per::Day,
        Some(_) | None => Per::Minute,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn dimension(unit: Unit, per: Per) -> Dimension {
        Dimension { unit, per }
    }

    fn read(headers: &[(&str, &str)]) -> Vec<Seen> {
        limits(headers.iter().copied(), 0)
    }

    #[test]
    fn a_limit_is_a_day_s_where_its_reset_says_so_and_a_minute_s_up_to_there() {
        let secs = Duration::from_secs;
        let rows = [
            (Some(10), Some(10), Some(secs(90)), Per::Minute),
            (Some(10), Some(10), Some(secs(91)), Per::Day),
            // One of sixty is full again in ten seconds: all of them in ten minutes.
            (Some(60), Some(59), Some(secs(10)), Per::Minute),
            (Some(61), Some(60), Some(secs(10)), Per::Day),
            (Some(10), None, Some(secs(10)), Per::Minute),
            (Some(10), Some(5), None, Per::Minute),
            // Seen at OpenAI and documented by Groq.
            (Some(1_500_000), Some(1_495_621), Some(Duration::from_millis(252_172)), Per::Day),
            (Some(14_400), Some(14_370), Some(Duration::from_millis(179_560)), Per::Day),
        ];
        for (limit, remaining, reset, per) in rows {
            assert_eq!(window(limit, remaining, reset), per, "{limit:?} {remaining:?} {reset:?}");
        }
    }

    #[test]
    fn parts_of_the_tokens_have_limits_of_their_own_under_either_name() {
        for name in ["anthropic-ratelimit-input-tokens", "x-ratelimit"] {
            let (limit, remaining) = match name {
                "x-ratelimit" => {
                    ("x-ratelimit-limit-tokens-prompt", "x-ratelimit-remaining-tokens-prompt")
                }
                _ => (
                    "anthropic-ratelimit-input-tokens-limit",
                    "anthropic-ratelimit-input-tokens-remaining",
                ),
            };
            let seen = read(&[(limit, "1000"), (remaining, "400")]);
            let units: Vec<Unit> = seen.iter().map(|seen| seen.dimension.unit).collect();
            assert_eq!(units, [Unit::Input], "{name}");
        }
    }

    #[test]
    fn openai_s_limits_are_a_minute_s() {
        let seen = read(&[
            ("content-type", "application/json"),
            ("x-ratelimit-limit-requests", "500"),
            ("x-ratelimit-limit-tokens", "30000"),
            ("x-ratelimit-remaining-requests", "499"),
            ("x-ratelimit-remaining-tokens", "29000"),
            ("x-ratelimit-reset-requests", "120ms"),
            ("x-ratelimit-reset-tokens", "2s"),
        ]);
        let of = |unit, limit, remaining, millis| Seen {
            dimension: dimension(unit, Per::Minute),
            limit: Some(limit),
            remaining: Some(remaining),
            reset: Some(Duration::from_millis(millis)),
        };
        assert_eq!(
            seen,
            [of(Unit::Requests, 500, 499, 120), of(Unit::Total, 30_000, 29_000, 2000)]
        );
    }

    #[test]
    fn a_limit_that_is_full_again_after_minutes_is_a_day_s() {
        let per = |limit, remaining, reset| {
            let seen = read(&[
                ("x-ratelimit-limit-requests", limit),
                ("x-ratelimit-remaining-requests", remaining),
                ("x-ratelimit-reset-requests", reset),
            ]);
            seen[0].dimension.per
        };
        assert_eq!(per("14400", "14370", "2m59.56s"), Per::Day, "Groq");
        assert_eq!(per("10000", "9999", "8.64s"), Per::Day, "OpenAI's smallest accounts");
        assert_eq!(per("3", "0", "60s"), Per::Minute);
        assert_eq!(per("3", "2", "20s"), Per::Minute);
        assert_eq!(per("4000", "3999", "1"), Per::Minute, "rounded up to a second");
        assert_eq!(per("4000", "4000", "0s"), Per::Minute);
    }

    #[test]
    fn anthropic_s_resets_are_read_against_the_reply_s_own_clock_and_its_sum_is_left_out() {
        let mut headers = vec![
            ("anthropic-ratelimit-requests-limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2026-11-29T12:00:01Z"),
            ("anthropic-ratelimit-tokens-limit", "30000"),
            ("anthropic-ratelimit-tokens-remaining", "29000"),
            ("date", "Sun, 29 Nov 2026 12:00:00 GMT"),
        ];
        let seen = read(&headers);
        assert_eq!(seen.len(), 2, "without its parts the sum counts");
        assert_eq!(seen[0].reset, Some(Duration::from_secs(1)));
        headers.push(("anthropic-ratelimit-output-tokens-limit", "8000"));
        let units: Vec<Unit> = read(&headers).iter().map(|seen| seen.dimension.unit).collect();
        assert_eq!(units, [Unit::Requests, Unit::Output]);
    }

    /// Case of Azure: negative numbers and zeros where nothing is known (openai-dotnet 838).
    #[test]
    fn what_makes_no_sense_is_left_out() {
        let odd = [
            ("x-ratelimit-limit-tokens", "0"),
            ("x-ratelimit-remaining-tokens", "-1"),
            ("x-ratelimit-limit-requests", "many"),
            ("x-ratelimit-limit", "5"),
            ("x-ratelimit-limit-images", "5"),
            ("anthropic-ratelimit-unified-reset", "1790000000"),
            ("anthropic-ratelimit-", ""),
        ];
        assert_eq!(read(&odd), []);
        let seen = read(&[("x-ratelimit-remaining-requests", "7")]);
        assert_eq!((seen[0].limit, seen[0].remaining), (None, Some(7)));
        assert!(is_limit("x-ratelimit-limit") && !is_limit("x-rate"));
    }
}
