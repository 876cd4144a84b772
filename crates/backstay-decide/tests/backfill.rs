//! Ten thousand old tickets beside people at a screen, over one account: the seed's worked budget,
//! with queue and pacer together and a provider that counts every sliding minute.
#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::collections::VecDeque;
use std::time::Duration;

use backstay_decide::pacing::{Cost, Dimension, Pacer, Per, Rate, Share, Unit};
use backstay_decide::queue::{Ask, Class, Queue, Rules};
use backstay_decide::{Dice, Moment, Seeded};

const TICKETS: usize = 10_000;
const REQUESTS: u64 = 600;
const TOKENS: u64 = 90_000;
const MINUTE: Duration = Duration::from_mins(1);
/// A ticket takes 900 tokens in and 150 out.
const TICKET: Cost = Cost::request(900, 150);
const TAKES: u64 = 1050;

/// What a provider saw: it refuses what would take a minute over the limits.
#[derive(Default)]
struct Provider {
    minute: VecDeque<(Moment, u64)>,
    tokens: u64,
    refused: u32,
}

impl Provider {
    fn ask(&mut self, now: Moment, tokens: u64) {
        while self.minute.front().is_some_and(|(when, _)| when.plus(MINUTE) <= now) {
            self.tokens -= self.minute.pop_front().unwrap().1;
        }
        if self.minute.len() as u64 >= REQUESTS || self.tokens + tokens > TOKENS {
            self.refused += 1;
            return;
        }
        self.minute.push_back((now, tokens));
        self.tokens += tokens;
    }
}

/// What came of a run.
struct Toll {
    /// Until the last ticket went.
    took: Duration,
    refused: u32,
    /// Waits of the interactive calls, shortest first.
    waits: Vec<Duration>,
    interactive: u64,
}

fn run(share: Share, seed: u64) -> Toll {
    let rate = |unit, limit| Rate { dimension: Dimension { unit, per: Per::Minute }, limit };
    let limits = [rate(Unit::Requests, REQUESTS), rate(Unit::Total, TOKENS)];
    let mut now = Moment::ORIGIN;
    let mut pacer = Pacer::new(&limits, share, now);
    let class = |name: &str, share| Class { name: name.into(), share, kept: 0 };
    let classes = vec![class("interactive", 80), class("batch", 20)];
    let mut queue = Queue::new(Rules { classes, count: 12_000, bytes: 1 << 30 });
    let ask = |class, deadline| Ask {
        class,
        cost: TAKES,
        bytes: 4000,
        deadline,
        needs: Duration::from_secs(1),
    };
    let tomorrow = Moment::at(Duration::from_hours(24));
    for _ in 0..TICKETS {
        queue.enter(&ask(1, tomorrow), None, now).ticket.unwrap();
    }
    let mut dice = Seeded::new(seed);
    let mut pause = || Duration::from_secs_f64(-(1.0 - dice.unit()).ln() * 10.0);
    let mut person = now.plus(pause());
    let mut provider = Provider::default();
    let mut toll = Toll { took: Duration::ZERO, refused: 0, waits: Vec::new(), interactive: 0 };
    let mut batch = 0;
    while batch < TICKETS {
        // One every ten seconds on average, at a time of their own.
        while person <= now {
            let entry = queue.enter(&ask(0, now.plus(Duration::from_secs(30))), None, now);
            entry.ticket.unwrap();
            person = person.plus(pause());
        }
        if let Err(wait) = pacer.check(TICKET, now) {
            now = now.plus(wait.wait()).min(person);
            continue;
        }
        let running = queue.next(1, now).call.unwrap();
        let reservation = pacer.reserve(TICKET, now).unwrap();
        provider.ask(now, TAKES);
        pacer.settle(reservation, TICKET, now);
        if running.ticket.class() == 0 {
            toll.waits.push(running.waited);
            toll.interactive += 1;
        } else {
            batch += 1;
        }
        queue.done(running, TAKES);
    }
    toll.took = now.since(Moment::ORIGIN);
    toll.refused = provider.refused;
    toll.waits.sort_unstable();
    toll
}

#[test]
fn a_backfill_uses_the_account_to_98_percent_without_a_single_429() {
    for seed in [1, 2, 3] {
        let toll = run(Share::per_mille(980), seed);
        assert_eq!(toll.refused, 0, "seed {seed}");
        let calls = TICKETS as u64 + toll.interactive;
        #[expect(clippy::cast_precision_loss, reason = "some ten thousand calls")]
        let rate = (calls * TAKES) as f64 / toll.took.as_secs_f64() * 60.0;
        let used = rate / 90_000.0;
        assert!((0.975..=1.0).contains(&used), "seed {seed}: {used:.4} of the tokens");
        let p95 = toll.waits[toll.waits.len() * 95 / 100];
        assert!(p95 < Duration::from_secs(1), "seed {seed}: people wait {p95:?}");
    }
}

#[test]
fn four_fifths_of_the_account_take_four_fifths_of_its_speed() {
    let toll = run(Share::default(), 7);
    assert_eq!(toll.refused, 0);
    // 117 minutes at the full rate (S2), 146 at 80 %, and about a tenth more for the people.
    let minutes = toll.took.as_secs() / 60;
    assert!((146..=165).contains(&minutes), "{minutes} minutes");
}
