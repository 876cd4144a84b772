//! What is known of a target's speed, over time and whatever comes.

use proptest::prelude::*;

use super::*;

const SMALL: PromptSize = PromptSize::ALL[0];
const LARGE: PromptSize = PromptSize::ALL[3];

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn at(secs: u64) -> Moment {
    Moment::at(Duration::from_secs(secs))
}

fn noted(latency: &mut Latency, now: Moment, size: PromptSize, times: &[(u32, u64)]) {
    let mut present = latency.at(now, Circuit::Closed);
    for (count, millis) in times {
        for _ in 0..*count {
            present.note(size, Measure::FirstToken, Took::Done(ms(*millis)));
        }
    }
}

/// What is known of first tokens at `now`, in milliseconds.
fn first(latency: &mut Latency, now: Moment, size: PromptSize) -> Option<u128> {
    latency.at(now, Circuit::Closed).known(size).first_token.map(|took| took.as_millis())
}

fn is_near(told: Option<u128>, millis: u128) -> bool {
    told.is_some_and(|told| told.abs_diff(millis) * 50 <= millis + 50)
}

#[test]
fn a_size_with_too_few_values_goes_by_all_sizes_and_with_too_few_of_these_nothing_is_known() {
    let mut latency = Latency::default();
    noted(&mut latency, at(1), SMALL, &[(30, 200)]);
    noted(&mut latency, at(1), LARGE, &[(19, 4000)]);
    assert_eq!(first(&mut latency, at(1), SMALL), None, "49");
    noted(&mut latency, at(1), LARGE, &[(1, 4000)]);
    assert!(is_near(first(&mut latency, at(1), SMALL), 4000), "the slower ones stand in");
    noted(&mut latency, at(1), SMALL, &[(20, 200)]);
    assert!(is_near(first(&mut latency, at(1), LARGE), 4000));
    assert!(is_near(first(&mut latency, at(61), SMALL), 3000), "its own, a quarter nearer");
}

#[test]
fn what_is_too_old_is_forgotten_slice_by_slice_and_then_nothing_is_known() {
    let mut latency = Latency::default();
    noted(&mut latency, at(0), SMALL, &[(50, 300)]);
    for second in [0, 59, 60, 359] {
        assert!(is_near(first(&mut latency, at(second), SMALL), 300), "{second}");
    }
    assert_eq!(first(&mut latency, at(360), SMALL), None);
    noted(&mut latency, at(400), SMALL, &[(50, 9000)]);
    assert!(is_near(first(&mut latency, at(400), SMALL), 9000), "known anew, not step by step");
    assert_eq!(first(&mut latency, at(100_000_000), SMALL), None);
}

#[test]
fn it_grows_and_shrinks_by_a_quarter_a_slice() {
    let mut latency = Latency::default();
    noted(&mut latency, at(0), SMALL, &[(100, 1000)]);
    assert!(is_near(first(&mut latency, at(1), SMALL), 1000));
    noted(&mut latency, at(2), SMALL, &[(100, 10_000)]);
    assert!(is_near(first(&mut latency, at(3), SMALL), 1000), "once a slice");
    assert!(is_near(first(&mut latency, at(60), SMALL), 1250));
    assert!(is_near(first(&mut latency, at(180), SMALL), 1953), "two slices on");
    for slice in 4..20 {
        noted(&mut latency, at(slice * 60), SMALL, &[(100, 100)]);
    }
    let now = first(&mut latency, at(19 * 60), SMALL);
    assert!(is_near(now, 100), "{now:?}");
}

#[test]
fn while_the_circuit_is_not_closed_nothing_is_taken_in_and_nothing_forgotten() {
    let mut latency = Latency::default();
    noted(&mut latency, at(0), SMALL, &[(50, 300)]);
    for second in [30, 300, 1200] {
        let mut present = latency.at(at(second), Circuit::Troubled);
        for _ in 0..100 {
            present.note(SMALL, Measure::FirstToken, Took::Done(ms(60_000)));
        }
        assert!(is_near(present.known(SMALL).first_token.map(|t| t.as_millis()), 300));
    }
    assert!(is_near(first(&mut latency, at(1230), SMALL), 300), "after an outage of 20 minutes");
}

#[test]
fn each_thing_is_measured_by_itself() {
    let mut latency = Latency::default();
    let mut present = latency.at(at(1), Circuit::Closed);
    let rows = [
        (Measure::FirstToken, 400),
        (Measure::Gap, 100),
        (Measure::PerToken, 20),
        (Measure::Whole, 5000),
    ];
    for (measure, millis) in rows {
        (0..ENOUGH).for_each(|_| present.note(SMALL, measure, Took::Done(ms(millis))));
    }
    let known = present.known(SMALL);
    let told =
        [known.first_token, known.usual_first_token, known.gap, known.per_token, known.usual_whole];
    for (told, millis) in told.into_iter().zip([400, 400, 100, 20, 5000]) {
        assert!(is_near(told.map(|told| told.as_millis()), millis), "{told:?}");
    }
}

#[test]
fn a_token_takes_what_the_rest_of_a_stream_or_the_whole_of_a_reply_took() {
    let rows = [
        (per_token(ms(1500), Some(ms(500)), 101), Some(ms(10))),
        (per_token(ms(1500), None, 100), Some(ms(15))),
        (per_token(ms(1500), Some(ms(500)), 1), None),
        (per_token(ms(1500), Some(ms(500)), 0), None),
        (per_token(ms(1500), None, 0), None),
        (per_token(ms(500), Some(ms(1500)), 10), None),
    ];
    for (told, want) in rows {
        assert_eq!(told, want);
    }
}

/// One thing that happens to a target.
#[derive(Clone, Copy, Debug)]
enum Event {
    Note(usize, Took),
    Pass(u64),
    Trouble,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => (0..PromptSize::COUNT, 1_u64..600_000, any::<bool>()).prop_map(|(size, millis, cut)| {
            Event::Note(size, if cut { Took::Cut(ms(millis)) } else { Took::Done(ms(millis)) })
        }),
        2 => (0_u64..90).prop_map(Event::Pass),
        1 => Just(Event::Trouble),
    ]
}

proptest! {
    #[test]
    fn whatever_comes_a_value_moves_by_a_quarter_a_slice_at_most(
        events in prop::collection::vec((event(), 1_u32..60), 1..60),
    ) {
        let (mut latency, mut now) = (Latency::default(), 0);
        let mut before: Option<(u64, f64)> = None;
        for (event, times) in events {
            match event {
                Event::Note(size, took) => {
                    let mut present = latency.at(at(now), Circuit::Closed);
                    let size = PromptSize::ALL[size];
                    (0..times).for_each(|_| present.note(size, Measure::FirstToken, took));
                }
                Event::Pass(seconds) => now += seconds,
                Event::Trouble => drop(latency.at(at(now), Circuit::Troubled)),
            }
            let known = latency.at(at(now), Circuit::Closed).known(SMALL).first_token;
            let slice = latency.slice;
            let told = known.map(|known| (slice, known.as_secs_f64()));
            if let (Some((then, was)), Some((_, is))) = (before, told) {
                let slices = i32::try_from(slice - then).unwrap();
                let bounds = 0.75_f64.powi(slices) * was..=1.25_f64.powi(slices) * was;
                prop_assert!(
                    *bounds.start() <= is * 1.000_001 && is <= *bounds.end() * 1.000_001,
                    "{was} became {is} in {slices} slices"
                );
            }
            before = told;
        }
    }
}
