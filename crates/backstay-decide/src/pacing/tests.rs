//! The pacer over all its dimensions, and the rows of the seed and of the bug reports.

use proptest::prelude::*;

use super::*;

const REQUESTS: Dimension = Dimension { unit: Unit::Requests, per: Per::Minute };
const INPUT: Dimension = Dimension { unit: Unit::Input, per: Per::Minute };
const TOKENS: Dimension = Dimension { unit: Unit::Total, per: Per::Minute };
const REQUESTS_A_DAY: Dimension = Dimension { unit: Unit::Requests, per: Per::Day };

const fn at(millis: u64) -> Moment {
    Moment::at(Duration::from_millis(millis))
}

const fn rate(dimension: Dimension, limit: u64) -> Rate {
    Rate { dimension, limit }
}

/// The seed's account: 600 requests and 90,000 tokens a minute, at 80 %.
fn account() -> Pacer {
    Pacer::new(&[rate(REQUESTS, 600), rate(TOKENS, 90_000)], Share::default(), at(0))
}

/// A ticket of the seed: 900 tokens in, 150 out.
const TICKET: Cost = Cost::request(900, 150);

fn take(pacer: &mut Pacer, cost: Cost, now: u64) -> Reservation {
    pacer.reserve(cost, at(now)).expect("it fits")
}

#[test]
fn the_seeds_account_carries_four_fifths_of_its_85_calls_a_minute() {
    let mut pacer = account();
    let mut calls = 0;
    for now in (0..600_000).step_by(20) {
        while let Ok(_kept) = pacer.reserve(TICKET, at(now)) {
            calls += 1;
        }
    }
    // 80 % of 85.7 a minute for ten minutes, and the burst of 18,000 tokens once.
    assert_eq!(calls, 685 + 17);
}

#[test]
fn the_wait_is_the_longest_of_all_dimensions_and_prints_its_sum() {
    let mut pacer = account();
    for _ in 0..17 {
        let _kept = take(&mut pacer, TICKET, 0);
    }
    let wait = pacer.reserve(TICKET, at(0)).unwrap_err();
    assert_eq!(
        (wait.name(), wait.to_string().as_str()),
        (
            "pace_rate",
            "1050 asked of tokens a minute, 17850 of 18000 taken, draining at 72000 (limit 90000): \
             wait 0.75 s"
        )
    );
    assert!(pacer.reserve(TICKET, at(749)).is_err());
    assert!(pacer.reserve(TICKET, at(750)).is_ok());
    // The requests bind when calls are small.
    let mut small = account();
    for _ in 0..120 {
        let _kept = take(&mut small, Cost::request(1, 1), 0);
    }
    let wait = small.reserve(Cost::request(1, 1), at(0)).unwrap_err();
    assert_eq!(
        wait.to_string(),
        "1 asked of requests a minute, 120 of 120 taken, draining at 480 (limit 600): wait 0.125 s"
    );
    assert_eq!(wait.wait(), Duration::from_millis(125));
}

#[test]
fn of_two_waits_the_longer_one_is_told_wherever_it_stands() {
    for (requests, tokens, longest) in [(600, 6000, TOKENS), (6, 600_000, REQUESTS)] {
        let limits = [rate(REQUESTS, requests), rate(TOKENS, tokens)];
        let mut pacer = Pacer::new(&limits, Share::default(), at(0));
        let all = pacer.book(Cost { requests, input: tokens, output: 0 }, at(0));
        let wait = pacer.check(TICKET, at(0)).unwrap_err();
        let Wait::Rate { level, .. } = wait else { panic!("{wait}") };
        assert_eq!(level.dimension, longest);
        // A pause counts as one more.
        pacer.throttled(Some(longest), Some(&all), Some(Duration::from_secs(1)), at(0));
        assert_eq!(pacer.check(TICKET, at(0)).unwrap_err().name(), "pace_rate");
        pacer.throttled(Some(longest), Some(&all), Some(LONGEST_PAUSE), at(0));
        assert_eq!(pacer.check(TICKET, at(0)).unwrap_err().name(), "pace_paused");
    }
}

#[test]
fn of_two_waits_alike_the_first_is_told() {
    let limits = [rate(REQUESTS, 60), rate(INPUT, 60)];
    let mut pacer = Pacer::new(&limits, Share::default(), at(0));
    let _all = pacer.book(Cost { requests: 12, input: 12, output: 0 }, at(0));
    let wait = pacer.check(Cost::request(1, 0), at(0)).unwrap_err();
    assert!(wait.to_string().starts_with("1 asked of requests a minute"), "{wait}");
}

/// Case B229: what is refused takes nothing, in no dimension.
#[test]
fn a_refused_request_takes_nothing_anywhere() {
    let mut pacer = account();
    let _kept = take(&mut pacer, Cost::request(18_000, 0), 0);
    let before = pacer.levels(at(0));
    for _ in 0..50 {
        assert!(pacer.reserve(TICKET, at(0)).is_err());
        assert!(pacer.check(TICKET, at(0)).is_err());
    }
    assert_eq!(pacer.levels(at(0)), before);
}

/// Case B232: over the limit it is refused at once; under it the wait is bounded.
#[test]
fn a_request_that_can_never_fit_is_told_so() {
    let mut pacer = account();
    let wait = pacer.reserve(Cost::request(90_000, 1), at(0)).unwrap_err();
    assert_eq!((wait.name(), wait.wait()), ("pace_too_large", Duration::MAX));
    assert_eq!(
        wait.to_string(),
        "90001 asked of tokens a minute, 0 of 18000 taken, draining at 72000 (limit 90000): over \
         the 90000 that fit at all"
    );
    let _kept = take(&mut pacer, Cost::request(90_000, 0), 0);
    let wait = pacer.reserve(Cost::request(89_000, 1000), at(1)).unwrap_err().wait();
    assert!(wait <= Duration::from_secs(75 + 60), "{wait:?}");
}

/// Case B233: 31 tokens every ten seconds under a limit of 186 a minute never wait at a window's
/// edge.
#[test]
fn a_steady_load_within_the_limit_never_waits_at_a_window_edge() {
    let mut pacer = Pacer::new(&[rate(TOKENS, 186)], Share::per_mille(1000).burst(200), at(0));
    for now in (0..180_000).step_by(10_000) {
        let cost = Cost::request(31, 0);
        let reservation = take(&mut pacer, cost, now);
        pacer.settle(reservation, cost, at(now + 2000));
    }
}

#[test]
fn what_a_call_did_not_use_is_there_for_the_next() {
    let mut pacer = account();
    for _ in 0..17 {
        let reservation = take(&mut pacer, TICKET, 0);
        pacer.settle(reservation, Cost::request(900, 50), at(0));
    }
    assert_eq!(pacer.levels(at(0))[1].used, 17 * 950);
    let reservation = take(&mut pacer, TICKET, 0);
    pacer.settle(reservation, Cost::NOTHING, at(0));
    let used: Vec<u64> = pacer.levels(at(0)).iter().map(|level| level.used).collect();
    assert_eq!(used, [17, 17 * 950], "one that was never sent leaves nothing");
}

#[test]
fn a_call_that_took_what_it_said_leaves_the_room_for_a_large_one() {
    let mut pacer = account();
    let reservation = take(&mut pacer, TICKET, 0);
    pacer.settle(reservation, TICKET, at(120_000));
    assert!(pacer.check(Cost::request(90_000, 0), at(120_000)).is_ok());
}

#[test]
fn what_a_call_used_beyond_is_owed() {
    let mut pacer = account();
    let reservation = take(&mut pacer, TICKET, 0);
    pacer.settle(reservation, Cost::request(900, 29_100), at(0));
    assert_eq!(pacer.filled(at(0)), 1666);
    let wait = pacer.reserve(Cost::request(1, 0), at(0)).unwrap_err().wait();
    assert_eq!(wait, Duration::from_nanos(12_001 * 60_000_000_000 / 72_000 + 1));
    assert_eq!(pacer.filled(at(25_000)), 0);
}

#[test]
fn a_reservation_that_is_lost_drains_like_one_that_was_used() {
    let mut pacer = account();
    drop(take(&mut pacer, Cost::request(18_000, 0), 0));
    assert_eq!(pacer.filled(at(7500)), 500);
    assert_eq!(pacer.filled(at(15_000)), 0);
}

#[test]
fn a_cost_less_another_is_never_below_nothing() {
    let left = Cost::request(5, 3).less(Cost { requests: 0, input: 2, output: 9 });
    assert_eq!(left, Cost { requests: 1, input: 3, output: 0 });
}

#[test]
fn without_any_limit_everything_goes() {
    let mut pacer = Pacer::new(&[], Share::default(), at(0));
    for _ in 0..10_000 {
        let _kept = take(&mut pacer, Cost::request(u64::MAX, u64::MAX), 0);
    }
    assert_eq!((pacer.filled(at(0)), pacer.levels(at(0)).len()), (0, 0));
}

#[test]
fn a_limit_of_zero_lets_nothing_through() {
    let mut pacer = Pacer::new(&[rate(REQUESTS, 0)], Share::default(), at(0));
    let wait = pacer.reserve(TICKET, at(0)).unwrap_err();
    assert_eq!(wait.wait(), Duration::MAX);
    pacer.throttled(None, None, None, at(0));
    assert_eq!(pacer.levels(at(0))[0].rate, 0, "and a 429 makes no more of it");
}

#[test]
fn new_limits_keep_what_is_owed_and_drop_what_is_gone() {
    let mut pacer = account();
    let reservation = take(&mut pacer, Cost::request(18_000, 0), 0);
    pacer.rerate(&[rate(TOKENS, 9000)], Share::per_mille(500), at(0));
    let levels = pacer.levels(at(0));
    assert_eq!(levels.len(), 1);
    assert_eq!((levels[0].rate, levels[0].burst, levels[0].used), (4500, 4500, 18_000));
    pacer.settle(reservation, Cost::request(3000, 0), at(0));
    assert_eq!(pacer.levels(at(0))[0].used, 3000);
}

#[test]
fn a_reload_of_the_same_limits_forgets_nothing_learned() {
    let mut pacer = account();
    pacer.observe(&seen(TOKENS, 30_000, 30_000), None, at(0));
    pacer.rerate(&[rate(TOKENS, 90_000), rate(REQUESTS, 600)], Share::default(), at(0));
    assert_eq!(pacer.levels(at(0))[1].limit, 30_000);
    pacer.rerate(&[rate(TOKENS, 80_000), rate(REQUESTS, 600)], Share::default(), at(0));
    assert_eq!(pacer.levels(at(0))[1].limit, 80_000);
}

const fn seen(dimension: Dimension, limit: u64, remaining: u64) -> Seen {
    Seen { dimension, limit: Some(limit), remaining: Some(remaining), reset: None }
}

#[test]
fn headers_teach_a_limit_that_config_has_not() {
    let mut pacer = Pacer::new(&[], Share::default(), at(0));
    pacer.observe(&seen(INPUT, 50_000, 50_000), None, at(0));
    let levels = pacer.levels(at(0));
    assert_eq!((levels.len(), levels[0].rate, levels[0].burst), (1, 40_000, 10_000));
    // It survives a reload that does not speak of it.
    pacer.rerate(&[], Share::default(), at(0));
    assert_eq!(pacer.levels(at(0)).len(), 1);
}

#[test]
fn what_a_header_says_is_left_is_obeyed_at_once() {
    let mut pacer = account();
    pacer.observe(&seen(TOKENS, 90_000, 500), None, at(0));
    assert!(pacer.reserve(Cost::request(501, 0), at(0)).is_err());
    let _kept = take(&mut pacer, Cost::request(500, 0), 0);
    pacer.observe(&seen(TOKENS, 90_000, 80_000), None, at(0));
    assert!(pacer.reserve(Cost::request(1, 0), at(0)).is_err(), "more is not believed at once");
    pacer.observe(&seen(REQUESTS, 600, 0), None, at(0));
    assert!(pacer.reserve(Cost::request(0, 0), at(0)).is_err());
}

#[test]
fn what_was_reserved_since_the_request_is_not_in_what_its_reply_says_is_left() {
    let mut pacer = account();
    let first = take(&mut pacer, Cost::request(1000, 0), 0);
    let _since = take(&mut pacer, Cost::request(5000, 0), 0);
    pacer.observe(&seen(TOKENS, 90_000, 10_000), Some(&first), at(0));
    assert!(pacer.check(Cost::request(5001, 0), at(0)).is_err());
    assert!(pacer.check(Cost::request(5000, 0), at(0)).is_ok());
}

#[test]
fn odd_headers_change_nothing() {
    let mut pacer = account();
    let before = pacer.levels(at(0));
    let odd = [
        Seen { dimension: TOKENS, limit: Some(0), remaining: None, reset: None },
        Seen { dimension: TOKENS, limit: None, remaining: None, reset: Some(Duration::MAX) },
        Seen { dimension: INPUT, limit: None, remaining: Some(0), reset: None },
        Seen { dimension: TOKENS, limit: Some(90_000), remaining: Some(90_001), reset: None },
    ];
    for seen in odd {
        pacer.observe(&seen, None, at(0));
        assert_eq!(pacer.levels(at(0)), before, "{seen:?}");
    }
    let all = Seen { remaining: Some(90_000), ..odd[3] };
    pacer.observe(&all, None, at(0));
    assert_eq!(pacer.levels(at(0)), before, "all of it is left");
}

#[test]
fn a_limit_falls_at_once_and_a_large_one_rises_slowly() {
    let mut pacer = Pacer::new(&[rate(TOKENS, 2_000_000)], Share::default(), at(0));
    let limit = |pacer: &mut Pacer, told, now| {
        let seen = Seen { dimension: TOKENS, limit: Some(told), remaining: None, reset: None };
        pacer.observe(&seen, None, at(now));
        pacer.levels(at(now))[0].limit
    };
    assert_eq!(limit(&mut pacer, 10_000, 0), 10_000);
    assert_eq!(limit(&mut pacer, 900_000, 1), 900_000, "under a million there is no ramp");
    assert_eq!(limit(&mut pacer, 8_000_000, 2), 1_350_000);
    assert_eq!(limit(&mut pacer, 8_000_000, 899_999), 1_350_000);
    assert_eq!(limit(&mut pacer, 8_000_000, 900_002), 2_025_000);
}

#[test]
fn a_429_slows_the_fullest_rate_and_it_comes_back() {
    let mut pacer = account();
    let first = take(&mut pacer, TICKET, 0);
    let second = take(&mut pacer, TICKET, 0);
    let slowed = pacer.throttled(None, Some(&first), None, at(0));
    assert_eq!(slowed.to_string(), "429: tokens a minute slowed from 72000 to 50400");
    let again = pacer.throttled(None, Some(&second), None, at(100));
    assert_eq!(again.to_string(), "429: tokens a minute not slowed");
    let level = pacer.levels(at(100))[1];
    assert!(level.to_string().ends_with("(limit 90000, slowed to 70.2 %)"), "{level}");
    assert_eq!(pacer.levels(at(60_000))[1].rate, 72_000);
    let third = take(&mut pacer, TICKET, 60_000);
    let later = pacer.throttled(None, Some(&third), None, at(60_000));
    assert_eq!(later.rate, Some((72_000, 50_400)), "reserved after the cut");
    let named = pacer.throttled(Some(REQUESTS), None, None, at(60_000));
    assert_eq!((named.dimension, named.rate), (REQUESTS, Some((480, 336))));
}

#[test]
fn a_429_that_says_what_is_left_is_obeyed_and_slows_only_when_it_comes_again() {
    let mut pacer = account();
    let mut refused = |left: u64, now: u64| {
        let sent = pacer.book(TICKET, at(now));
        pacer.observe(&seen(TOKENS, 90_000, left), Some(&sent), at(now));
        let slowed = pacer.throttled(None, Some(&sent), None, at(now));
        assert_eq!(slowed.dimension, TOKENS);
        assert!(pacer.check(TICKET, at(now)).is_err(), "what is left is obeyed");
        slowed.rate.is_some()
    };
    assert!(!refused(1049, 0));
    assert!(!refused(0, 4999), "calls on the way");
    assert!(refused(0, 5000), "the same again, though the provider was obeyed");
    assert!(!refused(0, 60_000), "after a minute it may be chance again");
}

#[test]
fn a_429_that_what_is_left_does_not_explain_slows_at_once() {
    let mut pacer = account();
    let sent = take(&mut pacer, TICKET, 0);
    pacer.observe(&seen(TOKENS, 90_000, 1050), Some(&sent), at(0));
    assert!(pacer.throttled(None, Some(&sent), None, at(0)).rate.is_some());
    let [older, other] = [(), ()].map(|()| pacer.book(TICKET, at(100)));
    pacer.observe(&seen(TOKENS, 90_000, 0), Some(&older), at(100));
    let named = pacer.throttled(Some(TOKENS), Some(&other), None, at(100));
    assert!(named.rate.is_some(), "another call's reply says nothing of this one");
}

proptest! {
    /// What a line lets through together may all be reserved at once.
    #[test]
    fn what_fits_beside_what_was_promised_fits_once_that_is_taken(
        costs in prop::collection::vec((0_u64..2000, 0_u64..500), 1..40), now in 0_u64..120_000,
        taken in 0_u64..30_000,
    ) {
        let mut pacer = account();
        let _before = pacer.book(Cost::request(taken, 0), at(0));
        let mut promised = Cost::NOTHING;
        let mut through = Vec::new();
        for (input, output) in costs {
            let cost = Cost::request(input, output);
            if pacer.check_after(promised, cost, at(now)).is_ok() {
                promised = promised.plus(cost);
                through.push(cost);
            }
        }
        for cost in through {
            prop_assert!(pacer.reserve(cost, at(now)).is_ok());
            promised = promised.less(cost);
        }
        prop_assert_eq!(promised, Cost::NOTHING);
    }
}

/// Cases B191 and B154: the longer of two delays holds, and none is obeyed for over ten minutes.
#[test]
fn a_429s_delay_stops_the_target_and_the_longer_one_holds() {
    let mut pacer = account();
    let slowed = pacer.throttled(None, None, Some(Duration::from_secs(7)), at(0));
    assert!(slowed.to_string().ends_with(", nothing for 7 s"), "{slowed}");
    pacer.throttled(None, None, Some(Duration::from_secs(1)), at(100));
    let wait = pacer.reserve(TICKET, at(1100)).unwrap_err();
    assert_eq!(wait.to_string(), "the provider asked to wait: 5.9 s left");
    assert!(pacer.reserve(TICKET, at(7000)).is_ok());
    pacer.throttled(None, None, Some(Duration::MAX), at(7000));
    assert_eq!(pacer.check(TICKET, at(7000)).unwrap_err().wait(), LONGEST_PAUSE);
}

#[test]
fn a_429_without_any_known_limit_makes_a_guess_that_ends_by_itself() {
    let mut pacer = Pacer::new(&[], Share::per_mille(1000), at(0));
    for now in 0..100 {
        let _kept = take(&mut pacer, TICKET, now);
    }
    let slowed = pacer.throttled(None, None, None, at(100));
    assert_eq!(slowed.to_string(), "429: requests a minute slowed from 100 to 70");
    assert_eq!(pacer.levels(at(60_100))[0].rate, 100);
    assert_eq!(pacer.levels(at(180_000))[0].factor, 3392);
    assert_eq!(pacer.levels(at(400_000)), []);
}

#[test]
fn a_day_is_kept_too() {
    let mut pacer = Pacer::new(&[rate(REQUESTS_A_DAY, 1000)], Share::default(), at(0));
    let kept: Vec<Reservation> = (0..800).map(|now| take(&mut pacer, TICKET, now)).collect();
    let wait = pacer.reserve(TICKET, at(800)).unwrap_err();
    assert_eq!(
        wait.to_string(),
        "1 asked of requests a day, 800 of 800 taken (limit 1000): wait 89999.2 s"
    );
    let last = kept.into_iter().next_back().expect("800 of them");
    pacer.settle(last, Cost::NOTHING, at(900));
    let _kept = take(&mut pacer, TICKET, 900);
    let told = Seen { reset: Some(Duration::from_mins(1)), ..seen(REQUESTS_A_DAY, 1000, 0) };
    pacer.observe(&told, None, at(900));
    assert_eq!(pacer.throttled(Some(REQUESTS_A_DAY), None, None, at(900)).rate, None);
    let mut nothing_known = Pacer::new(&[], Share::default(), at(0));
    nothing_known.throttled(Some(REQUESTS_A_DAY), None, None, at(0));
    assert_eq!(nothing_known.levels(at(0)), [], "a day is never guessed");
}

#[test]
fn a_pacer_of_a_day_learned_empty_waits_for_its_reset() {
    let mut pacer = Pacer::new(&[], Share::default(), at(0));
    let told = Seen { reset: Some(Duration::from_mins(1)), ..seen(REQUESTS_A_DAY, 1000, 0) };
    pacer.observe(&told, None, at(0));
    assert_eq!(pacer.reserve(TICKET, at(0)).unwrap_err().wait(), Duration::from_mins(1));
    assert!(pacer.reserve(TICKET, at(60_000)).is_ok());
}

/// A provider as referee: a sliding minute over what it was sent, counted when it comes.
struct Referee {
    limit: u64,
    seen: Vec<(u64, u64)>,
}

impl Referee {
    fn accepts(&mut self, now: u64, tokens: u64) -> bool {
        self.seen.retain(|(when, _)| when + 60_000 > now);
        let sum: u64 = self.seen.iter().map(|(_, tokens)| tokens).sum();
        let fits = sum + tokens <= self.limit;
        if fits {
            self.seen.push((now, tokens));
        }
        fits
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Invariant 8, from the outside: a provider with a sliding minute never says 429 to calls that
    /// were paced to its limit, whatever their sizes.
    #[test]
    fn a_strict_provider_never_answers_429_to_a_paced_load(
        limit in 1000_u64..100_000, share in 100_u32..=980,
        calls in prop::collection::vec((0_u64..3000, 1_u64..1000), 1..300),
    ) {
        let mut referee = Referee { limit, seen: Vec::new() };
        let mut pacer = Pacer::new(&[rate(TOKENS, limit)], Share::per_mille(share), at(0));
        let mut now = 0;
        for (sleep, thousandths) in calls {
            now += sleep / 3;
            let cost = Cost::request((limit * thousandths / 1000).max(1), 0);
            if let Ok(_kept) = pacer.reserve(cost, at(now)) {
                prop_assert!(referee.accepts(now, cost.input), "at {now} ms");
            }
        }
    }

    /// Invariant 9: whatever is reserved and settled, what stands in a dimension once all is settled
    /// is what was used, less what drained.
    #[test]
    fn at_rest_only_what_was_used_is_booked(
        calls in prop::collection::vec((1_u64..5000, 0_u64..5000, 0_u64..5000), 1..60),
    ) {
        let mut pacer = Pacer::new(&[rate(TOKENS, 100_000_000), rate(REQUESTS_A_DAY, 1000)], Share::default(), at(0));
        let (mut used, mut requests, mut open) = (0, 0, Vec::new());
        for (input, output, spent) in calls {
            let reservation = take(&mut pacer, Cost::request(input, output), 0);
            prop_assert_eq!(reservation.cost(), Cost::request(input, output));
            let sent = spent % 3 != 0;
            let took = if sent { Cost::request(input, spent) } else { Cost::NOTHING };
            used += took.input + took.output;
            requests += took.requests;
            open.push((reservation, took));
        }
        for (reservation, took) in open {
            pacer.settle(reservation, took, at(0));
        }
        let levels = pacer.levels(at(0));
        prop_assert_eq!((levels[0].used, levels[1].used), (used, requests));
    }

    #[test]
    fn no_words_of_a_provider_make_a_panic(
        steps in prop::collection::vec((0_usize..8, any::<Option<u64>>(), any::<Option<u64>>(), any::<Option<u64>>(), any::<u64>()), 0..40),
    ) {
        let mut pacer = Pacer::new(&[rate(TOKENS, 1000)], Share::default(), at(0));
        for (ix, limit, remaining, reset, now) in steps {
            let now = Moment::at(Duration::from_secs(now));
            let reset = reset.map(Duration::from_secs);
            let dimension = Dimension::ALL[ix];
            let reservation = pacer.book(Cost::request(limit.unwrap_or(1), remaining.unwrap_or(1)), now);
            pacer.observe(&Seen { dimension, limit, remaining, reset }, Some(&reservation), now);
            let _ = pacer.throttled(Some(dimension), Some(&reservation), reset, now);
            pacer.settle(reservation, Cost::request(remaining.unwrap_or(0), limit.unwrap_or(0)), now);
            let _ = pacer.check(Cost::request(1, 1), now).map_err(|wait| wait.to_string());
            let _ = pacer.filled(now);
        }
    }
}

/// What was learned may be less than one request takes; only what is published refuses it.
#[test]
fn a_learned_limit_refuses_nobody_for_ever_and_a_guess_is_never_tiny() {
    let tokens = Dimension { unit: Unit::Total, per: Per::Minute };
    let mut pacer = Pacer::new(&[], Share::default(), at(0));
    assert!(pacer.is_free(at(0)));
    let seen = Seen { dimension: tokens, limit: Some(1000), remaining: None, reset: None };
    pacer.observe(&seen, None, at(0));
    assert!(!pacer.is_free(at(0)));
    let large = Cost::request(900, 4000);
    assert_eq!(pacer.check(large, at(0)).unwrap_err().wait(), Duration::MAX);
    assert_eq!(pacer.fitting(large), Cost::request(900, 100));
    assert_eq!(pacer.fitting(Cost::request(5000, 10)), Cost::request(1000, 0));
    assert!(pacer.reserve(pacer.fitting(large), at(0)).is_ok());
    let published = Rate { dimension: tokens, limit: 1000 };
    pacer.rerate(&[published], Share::default(), at(0));
    assert_eq!(pacer.fitting(large), large);

    let mut pacer = Pacer::new(&[], Share::default(), at(0));
    let _one = pacer.reserve(Cost::request(10, 10), at(0)).unwrap();
    pacer.throttled(None, None, None, at(0));
    pacer.throttled(Some(tokens), None, None, at(0));
    let limits: Vec<u64> = pacer.levels(at(0)).iter().map(|level| level.limit).collect();
    assert_eq!(limits, LEAST_GUESS);
}

#[test]
fn what_several_keys_share_is_rounded_down() {
    let cost = Cost { requests: 12, input: 100, output: 1 };
    assert_eq!(cost.shared_by(5), Cost { requests: 2, input: 20, output: 0 });
    assert_eq!([cost.shared_by(1), cost.shared_by(0)], [cost, cost]);
}

#[test]
fn a_limit_that_was_taken_for_a_days_is_gone_when_a_reply_says_a_minute() {
    let tokens_a_day = Dimension { unit: Unit::Total, per: Per::Day };
    let known = |pacer: &mut Pacer, now| -> Vec<Dimension> {
        pacer.levels(at(now)).iter().map(|level| level.dimension).collect()
    };
    let mut pacer = Pacer::new(&[], Share::default(), at(0));
    pacer.observe(&seen(tokens_a_day, 90_000, 0), None, at(0));
    pacer.observe(&seen(TOKENS, 90_000, 80_000), None, at(1000));
    assert_eq!(known(&mut pacer, 1000), [TOKENS]);
    // Groq and OpenAI have both kinds, and state one of them at a time.
    pacer.observe(&seen(tokens_a_day, 1_500_000, 9000), None, at(2000));
    pacer.observe(&seen(TOKENS, 90_000, 80_000), None, at(3000));
    assert_eq!(known(&mut pacer, 3000), [TOKENS, tokens_a_day]);
}

#[test]
fn a_learned_limit_that_replies_speak_of_no_more_is_forgotten_after_an_hour() {
    const HOUR: u64 = 3_600_000;
    let published = rate(REQUESTS, 600);
    let mut pacer = Pacer::new(&[published], Share::default(), at(0));
    pacer.observe(&seen(REQUESTS_A_DAY, 1000, 500), None, at(0));
    let known = |pacer: &mut Pacer, now| pacer.levels(at(now)).len();
    let answer = |pacer: &mut Pacer, now, speaks: bool| {
        let call = pacer.book(TICKET, at(now));
        if speaks {
            pacer.observe(&seen(REQUESTS_A_DAY, 1000, 500), Some(&call), at(now));
        }
        pacer.settle(call, TICKET, at(now));
    };
    // Nobody called for two hours, and the first reply speaks of it again.
    answer(&mut pacer, 2 * HOUR, true);
    answer(&mut pacer, 3 * HOUR - 1, false);
    assert_eq!(known(&mut pacer, 3 * HOUR - 1), 2);
    answer(&mut pacer, 3 * HOUR, false);
    assert_eq!(known(&mut pacer, 3 * HOUR), 1, "what config says stays");
}
