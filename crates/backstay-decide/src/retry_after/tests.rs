//! Tests of the delay headers.

use proptest::prelude::*;

use super::*;

/// Sunday, 6 November 1994, 08:49:37 GMT: the example of RFC 9110, in Unix seconds.
const EXAMPLE: i64 = 784_111_777;

/// The reply's headers as name and value, asked for by name.
fn headers<'a>(pairs: &'a [(&'a str, &'a str)]) -> DelayHeaders<'a> {
    DelayHeaders::read(|name| pairs.iter().find(|(n, _)| *n == name).map(|(_, value)| *value))
}

fn delay(pairs: &[(&str, &str)], now: i64) -> Option<Duration> {
    server_delay(&headers(pairs), now)
}

#[expect(clippy::unnecessary_wraps, reason = "compared with what may be absent")]
fn ms(n: u64) -> Option<Duration> {
    Some(Duration::from_millis(n))
}

#[test]
fn explicit_delays_are_read_in_every_form() {
    let rows: [(&[(&str, &str)], u64); 14] = [
        (&[("retry-after-ms", "250")], 250),
        (&[("retry-after-ms", "1234.5")], 1234),
        (&[("retry-after", "7")], 7_000),
        (&[("retry-after", "0.5")], 500),
        (&[("retry-after", " 12 ")], 12_000),
        (&[("retry-after-ms", "250"), ("retry-after", "7")], 250),
        (&[("retry-after-ms", "garbage"), ("retry-after", "7")], 7_000),
        (&[("retry-after-ms", "0"), ("retry-after", "7")], 7_000),
        (&[("retry-after-ms", "-1"), ("retry-after", "7")], 7_000),
        (&[("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT")], 10_000),
        (&[("retry-after", "Sunday, 06-Nov-94 08:49:47 GMT")], 10_000),
        (&[("retry-after", "Sun Nov  6 08:49:47 1994")], 10_000),
        (&[("retry-after", "Sun, 06 Nov 1994 08:49:30 GMT")], 0),
        (&[("grpc-retry-pushback-ms", "1500")], 1500),
    ];
    for (pairs, want) in rows {
        let got = delay(pairs, EXAMPLE).map(|d| d.as_millis());
        assert_eq!(got, Some(u128::from(want)), "{pairs:?}");
    }
}

#[test]
fn a_date_is_read_against_the_servers_own_clock() {
    let pairs = [
        ("retry-after", "Sun, 06 Nov 1994 08:49:57 GMT"),
        ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
    ];
    // Our clock is an hour fast; the server's is what counts.
    assert_eq!(delay(&pairs, EXAMPLE + 3600), ms(20_000));
    let unreadable = [pairs[0], ("date", "yesterday")];
    assert_eq!(delay(&unreadable, EXAMPLE), ms(20_000));
}

#[test]
fn garbage_is_absent_and_the_huge_is_cut_to_ten_minutes() {
    for bad in
        ["-1", "0", "NaN", "inf", "-inf", "", " ", "1e400", "soon", "7s", "٧", "Sun, 99 Nov 1994"]
    {
        assert_eq!(delay(&[("retry-after", bad)], EXAMPLE), None, "{bad:?}");
        assert_eq!(delay(&[("retry-after-ms", bad)], EXAMPLE), None, "{bad:?}");
    }
    for huge in ["601", "1e300", "99999999999999999999999", "Fri, 31 Dec 9999 23:59:59 GMT"] {
        assert_eq!(delay(&[("retry-after", huge)], EXAMPLE), Some(LONGEST), "{huge:?}");
    }
    assert_eq!(delay(&[], EXAMPLE), None);
}

#[test]
fn a_reset_counts_only_where_its_limit_is_used_up() {
    let plenty = [
        ("x-ratelimit-remaining-requests", "4999"),
        ("x-ratelimit-reset-requests", "17ms"),
        ("x-ratelimit-remaining-tokens", "10"),
        ("x-ratelimit-reset-tokens", "6m0s"),
    ];
    assert_eq!(delay(&plenty, EXAMPLE), None);
    assert_eq!(reset_bound(&headers(&plenty), EXAMPLE), ms(360_000));

    let no_requests = [("x-ratelimit-remaining-requests", "0"), plenty[1], plenty[2], plenty[3]];
    assert_eq!(delay(&no_requests, EXAMPLE), ms(17));
    assert_eq!(reset_bound(&headers(&no_requests), EXAMPLE), ms(17));

    let explicit = [("retry-after", "3"), no_requests[0], no_requests[1]];
    assert_eq!(delay(&explicit, EXAMPLE), ms(3000));

    // Azure sends -1 where it knows nothing.
    let unknown = [("x-ratelimit-remaining-tokens", "-1"), ("x-ratelimit-reset-tokens", "0")];
    assert_eq!(delay(&unknown, EXAMPLE), None);
}

#[test]
fn the_longest_of_the_used_up_limits_counts() {
    let pairs = [
        ("x-ratelimit-remaining-requests", "0"),
        ("x-ratelimit-reset-requests", "1s"),
        ("x-ratelimit-remaining-tokens", "0"),
        ("x-ratelimit-reset-tokens", "2m59.56s"),
    ];
    assert_eq!(delay(&pairs, EXAMPLE), ms(179_560));
}

#[test]
fn resets_are_read_as_spans_epochs_and_times() {
    let rows = [
        ("17ms", ms(17)),
        ("1s", ms(1000)),
        ("6m0s", ms(360_000)),
        ("30", ms(30_000)),
        ("784111787", ms(600_000)), // below 1e9: a delay, cut to ten minutes
        ("1994-11-06T08:49:47Z", ms(10_000)),
        ("1994-11-06T08:49:47.999Z", ms(10_000)),
        ("1994-11-06T09:49:47+01:00", ms(10_000)),
        ("1994-11-06T03:19:47-05:30", ms(10_000)),
        ("1994-11-06T08:49:00Z", ms(0)),
        ("tomorrow", None),
        ("", None),
        ("-5", None),
    ];
    for (text, want) in rows {
        let pairs = [
            ("anthropic-ratelimit-tokens-remaining", "0"),
            ("anthropic-ratelimit-tokens-reset", text),
        ];
        assert_eq!(delay(&pairs, EXAMPLE), want, "{text:?}");
    }
    let now = 1_900_000_000;
    for epoch in ["1900000042", "1900000042000", "1900000042.5"] {
        let pairs = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", epoch)];
        assert_eq!(delay(&pairs, now), ms(42_000), "{epoch}");
    }
}

#[test]
fn rfc3339_times_match_known_days() {
    let rows = [
        ("1970-01-01T00:00:00Z", Some(0)),
        ("1969-12-31T23:59:59Z", Some(-1)),
        ("2000-02-29T12:00:00Z", Some(951_825_600)),
        ("2026-11-29T22:00:00z", Some(1_795_989_600)),
        ("2100-03-01 00:00:00Z", Some(4_107_542_400)),
        ("2026-13-01T00:00:00Z", None),
        ("2026-00-01T00:00:00Z", None),
        ("2026-01-32T00:00:00Z", None),
        ("2026-01-01T24:00:00Z", None),
        ("2026-01-01T00:00:00", None),
        ("2026-01-01T00:00:00+1:00", None),
        ("2026-01-01T00:00:00+25:00", None),
        ("2026-01-01T00:00Z", None),
        ("26-01-01T00:00:00Z", None),
        ("2026-01-01T00:00:00Zulu", None),
        ("2026-01-01", None),
        ("2026-+1-01T00:00:00Z", None),
        ("1970-01-01T00:60:00Z", None),
        ("1970-01-01T00:00:60Z", Some(60)), // a leap second
        ("1970-01-01T00:00:61Z", None),
        ("1970-01-01T00:00:00+24:00", None),
        ("1970-01-01T00:00:00+00:60", None),
        ("1970-01-02T00:00:00+23:59", Some(60)),
    ];
    for (text, want) in rows {
        assert_eq!(rfc3339(text), want, "{text}");
    }
}

#[test]
fn a_veto_is_a_word_or_a_negative_push_back() {
    let rows: [(&[(&str, &str)], Veto); 9] = [
        (&[], Veto::Absent),
        (&[("x-should-retry", "true")], Veto::Absent),
        (&[("x-should-retry", "maybe")], Veto::Absent),
        (&[("x-should-retry", "false")], Veto::Given),
        (&[("x-should-retry", " False ")], Veto::Given),
        (&[("grpc-retry-pushback-ms", "1500")], Veto::Absent),
        (&[("grpc-retry-pushback-ms", "0")], Veto::Absent),
        (&[("grpc-retry-pushback-ms", "-1")], Veto::Given),
        (&[("grpc-retry-pushback-ms", "soon")], Veto::Given),
    ];
    for (pairs, want) in rows {
        assert_eq!(headers(pairs).veto(), want, "{pairs:?}");
    }
}

#[test]
fn what_we_ask_of_callers_is_whole_seconds_from_one_to_sixty() {
    let rows = [(0, 1), (1, 1), (1000, 1), (1001, 2), (7000, 7), (59_001, 60), (600_000, 60)];
    for (millis, seconds) in rows {
        assert_eq!(outbound(Duration::from_millis(millis)), seconds, "{millis} ms");
    }
    assert_eq!(outbound(Duration::MAX), 60);
}

proptest! {
    #[test]
    fn no_header_value_makes_a_delay_over_ten_minutes_or_a_panic(
        value in prop_oneof![".{0,40}", "[0-9:TZ.+ -]{0,40}", "[0-9]{1,30}(ms|s|m|h)?"],
        name in prop::sample::select(vec![
            "retry-after-ms", "retry-after", "grpc-retry-pushback-ms", "date", "x-ratelimit-reset",
        ]),
        now: i64,
    ) {
        let pairs = [
            (name, value.as_str()),
            ("x-ratelimit-remaining", "0"),
            ("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT"),
        ];
        prop_assert!(delay(&pairs, now).is_none_or(|d| d <= LONGEST));
        prop_assert!(reset_bound(&headers(&pairs), now).is_none_or(|d| d <= LONGEST));
    }

    #[test]
    fn whole_seconds_come_back_as_they_were(seconds in 1_u64..=600) {
        prop_assert_eq!(delay(&[("retry-after", &seconds.to_string())], 0), ms(seconds * 1000));
    }

    #[test]
    fn every_day_follows_the_one_before(days in -200_000_i64..200_000) {
        // Counted from the calendar's side: a valid date is one day after its predecessor.
        let (mut year, mut month, mut day) = (1970, 1, 1);
        let (mut at, step) = (0, if days < 0 { -1 } else { 1 });
        let last = |y: i64, m: i64| match m {
            2 if (y % 4 == 0 && y % 100 != 0) || y % 400 == 0 => 29,
            2 => 28,
            4 | 6 | 9 | 11 => 30,
            _ => 31,
        };
        while at != days {
            at += step;
            day += step;
            if day == 0 {
                month -= 1;
                if month == 0 { (year, month) = (year - 1, 12); }
                day = last(year, month);
            } else if day > last(year, month) {
                (month, day) = (month + 1, 1);
                if month == 13 { (year, month) = (year + 1, 1); }
            }
        }
        prop_assert_eq!(days_from_civil(year, month, day), days);
    }
}

#[test]
fn what_the_body_says_counts_after_headers_that_ask_and_before_resets() {
    let spent = [("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "40s")];
    let asked = |body, pairs: &[(&'static str, &'static str)]| {
        server_delay(&DelayHeaders { body, ..headers(pairs) }, 0)
    };
    let seconds = |count| Some(Duration::from_secs(count));
    assert_eq!(asked(Some("12s"), &spent), seconds(12));
    assert_eq!(asked(Some("12"), &[]), seconds(12));
    assert_eq!(asked(Some("6m0s"), &[]), seconds(360));
    assert_eq!(asked(Some("12s"), &[("retry-after", "3")]), seconds(3));
    assert_eq!(asked(Some("0s"), &spent), seconds(40), "a zero asks for nothing");
    assert_eq!(asked(Some("soon"), &[]), None);
    assert_eq!(asked(None, &[("x-ms-retry-after-ms", "1500")]), Some(Duration::from_millis(1500)));
}
