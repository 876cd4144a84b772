//! The seed's experiment on synchronised retries, over `Backoff`: a thousand callers fail at once
//! and come back to a service that takes 150 requests a second.
#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::time::Duration;

use backstay_decide::{Backoff, Dice, Seeded};
use proptest::prelude::*;

const CALLERS: usize = 1000;
const SERVED_PER_SECOND: u32 = 150;
/// Ticks of a tenth of a second.
const TICKS_PER_SECOND: u64 = 10;
const RULE: Backoff = Backoff { base: Duration::from_secs(1), cap: Duration::from_secs(30) };

/// What the herd did to the service.
#[derive(Debug, PartialEq)]
struct Toll {
    requests: u32,
    /// The busiest second after the first one.
    peak: u32,
    /// When the last caller was served, in ticks.
    done: u64,
}

/// One waiting caller: its next tick, and how often it was sent away.
#[derive(Clone, Copy)]
struct Caller {
    due: u64,
    failures: u32,
}

fn stampede(wait: impl Fn(u32, &mut Seeded) -> Duration, seed: u64) -> Toll {
    let mut dice = Seeded::new(seed);
    let mut waiting = vec![Caller { due: 0, failures: 0 }; CALLERS];
    let (mut sent, mut served, mut done) = (Vec::new(), Vec::new(), 0);
    while let Some(tick) = waiting.iter().map(|caller| caller.due).min() {
        let second = usize::try_from(tick / TICKS_PER_SECOND).unwrap();
        sent.resize(sent.len().max(second + 1), 0_u32);
        served.resize(sent.len(), 0_u32);
        let (mut arrived, mut later): (Vec<_>, Vec<_>) =
            waiting.into_iter().partition(|caller| caller.due == tick);
        shuffle(&mut arrived, &mut dice);
        for mut caller in arrived {
            sent[second] += 1;
            if served[second] < SERVED_PER_SECOND {
                served[second] += 1;
                done = tick + 1;
                continue;
            }
            let pause = wait(caller.failures, &mut dice).as_millis() + 50;
            caller.due = tick + u64::try_from(pause / 100).unwrap().max(1);
            caller.failures += 1;
            later.push(caller);
        }
        waiting = later;
    }
    Toll {
        requests: sent.iter().sum(),
        peak: sent.iter().skip(1).copied().max().unwrap_or(0),
        done,
    }
}

fn shuffle(callers: &mut [Caller], dice: &mut Seeded) {
    for last in (1..callers.len()).rev() {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "an index below a thousand"
        )]
        let other = (dice.unit() * (last + 1) as f64) as usize;
        callers.swap(last, other);
    }
}

#[test]
fn without_jitter_the_waves_come_back_together() {
    let fixed = stampede(|_, _| Duration::from_secs(1), 7);
    assert_eq!(fixed, Toll { requests: 3850, peak: 850, done: 61 });
    let doubling = stampede(|failures, _| RULE.bound(failures), 7);
    assert_eq!(doubling, Toll { requests: 3850, peak: 850, done: 611 });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn full_jitter_sends_fewer_requests_with_a_lower_peak(seed: u64) {
        let toll = stampede(|failures, dice| RULE.wait(failures, dice), seed);
        prop_assert!(toll.requests < 3850, "{toll:?}");
        prop_assert!(toll.peak < 850, "{toll:?}");
        // Less pressure, not a quicker end: slower than the fixed second, quicker than no jitter.
        prop_assert!((61..611).contains(&toll.done), "{toll:?}");
    }
}
