//! Operations of `backstay-decide` as the engine makes them for one healthy call.

use std::time::Duration;

use backstay_decide::Moment;
use backstay_decide::breaker::{Ask, Elsewhere, Planes, Report, Rules, Seen, Suits};
use backstay_decide::dice::Seeded;
use backstay_decide::extra::{Arrival, Budget, Kind, Limits, Made};
use backstay_decide::pacing::{Cost, Dimension, Pacer, Per, Rate, Share, Unit};
use backstay_decide::queue::{self, Queue};

/// One operation on a state that it leaves as it found it, but for what it counts.
pub trait Operation {
    /// Runs it at `now`.
    fn run(&mut self, now: Moment);
}

/// A target's breakers: admit a call, and note that it went well.
pub struct Breaker {
    planes: Planes,
    rules: Rules,
    dice: Seeded,
}

/// A target's pace, of requests and of tokens: reserve, and settle with less.
pub struct Limiter(Pacer);

/// A queue in which 64 calls of two classes wait: one arrives, one goes, one is done.
pub struct Line(Queue);

/// A target's budget of extra attempts: a call arrives, asks for a retry, and leaves.
pub struct Extra {
    budget: Budget,
    limits: Limits,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { planes: Planes::new(1), rules: Rules::default(), dice: Seeded::new(7) }
    }
}

impl Operation for Breaker {
    fn run(&mut self, now: Moment) {
        let lease = Duration::from_secs(60);
        let ask = Ask { now, lease, elsewhere: Elsewhere::Live, suits: Suits::Test };
        let admitted = self.planes.admit(&ask, None, &self.rules);
        let passes = admitted.passes.expect("a healthy target");
        let report = Report::of(Seen::default());
        let turns = self.planes.note(passes, report, now, (&self.rules, &mut self.dice));
        assert!(turns.is_empty());
    }
}

impl Default for Limiter {
    fn default() -> Self {
        let rate = |unit, limit| Rate { dimension: Dimension { unit, per: Per::Minute }, limit };
        let rates = [rate(Unit::Requests, 60_000_000), rate(Unit::Total, 60_000_000_000)];
        Self(Pacer::new(&rates, Share::default(), Moment::ORIGIN))
    }
}

impl Operation for Limiter {
    fn run(&mut self, now: Moment) {
        let reservation = self.0.reserve(Cost::request(750, 300), now).expect("room");
        self.0.settle(reservation, Cost::request(750, 200), now);
    }
}

impl Default for Line {
    fn default() -> Self {
        let mut queue = Queue::new(queue::Rules::default());
        for index in 0..64 {
            let entry = queue.enter(&ask(index, Moment::ORIGIN), None, Moment::ORIGIN);
            assert!(entry.ticket.is_ok());
        }
        Self(queue)
    }
}

impl Operation for Line {
    fn run(&mut self, now: Moment) {
        let entry = self.0.enter(&ask(1, now), None, now);
        assert!(entry.ticket.is_ok());
        let call = self.0.next(1, now).call.expect("one that waits");
        self.0.done(call, 1_000);
    }
}

fn ask(class: usize, now: Moment) -> queue::Ask {
    queue::Ask {
        class: class % 2,
        cost: 1_050,
        bytes: 4_096,
        deadline: now.plus(Duration::from_secs(3_600)),
        needs: Duration::from_secs(1),
    }
}

impl Default for Extra {
    fn default() -> Self {
        let limits = Limits::default();
        Self { budget: Budget::new(&limits, Moment::ORIGIN), limits }
    }
}

impl Operation for Extra {
    fn run(&mut self, now: Moment) {
        let visit = self.budget.arrive(Arrival::First, &self.limits, now);
        if let Ok(grant) = self.budget.ask(Kind::Retry, &visit, &self.limits, now) {
            self.budget.end(grant, Made::NotSent, &self.limits);
        }
        self.budget.leave(visit, now);
    }
}
