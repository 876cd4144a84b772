//! One target under simulated traffic, hour by hour, with a breaker before it.

use std::time::Duration;

use backstay_decide::breaker::{
    Ask, Breaker, Elsewhere, Limits, Planes, Report, Rules, Suits, Transition,
};
use backstay_decide::{Dice, Fault, Moment, Seeded, Verdict};

/// Calls that arrive at random moments: how many a second, and how many of them fail.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    /// Calls a second.
    pub(crate) rate: f64,
    /// Share of them that fails, each by its own chance.
    pub(crate) failing: f64,
}

/// A limit of ours that lets nobody wait for the others: the target is never full.
const LEASE: Duration = Duration::from_mins(1);

impl Traffic {
    /// The time to the next call: exponential, so that calls come in bunches as real ones do.
    fn gap(self, dice: &mut Seeded) -> Duration {
        let unit = 1.0 - dice.unit();
        Duration::try_from_secs_f64(-unit.ln() / self.rate).unwrap_or(Duration::MAX)
    }

    fn verdict(self, dice: &mut Seeded) -> Verdict {
        if dice.unit() < self.failing { Verdict::Failure } else { Verdict::Success }
    }
}

const fn ask(now: Moment) -> Ask {
    Ask { now, lease: LEASE, elsewhere: Elsewhere::Live, suits: Suits::Test }
}

/// One call that ends at once. The change it made, if any.
fn call(
    breaker: &mut Breaker,
    (now, verdict): (Moment, Verdict),
    limits: &Limits,
    dice: &mut Seeded,
) -> Option<Transition> {
    breaker.offer(now, limits);
    let pass = breaker.admit(&ask(now), limits).pass.ok()?;
    breaker.note(pass, verdict, now, limits, dice)
}

const fn is_opening(change: &Transition) -> bool {
    matches!(change, Transition::Opened { .. } | Transition::Reopened { .. })
}

/// How often it opens in `length` of `traffic`, the times it fails a test included.
pub(crate) fn openings(limits: &Limits, traffic: Traffic, length: Duration, seed: u64) -> u32 {
    let (mut breaker, mut dice) = (Breaker::new(), Seeded::new(seed));
    let (mut now, mut count) = (Moment::at(Duration::from_hours(1)), 0);
    let end = now.plus(length);
    while now < end {
        let verdict = traffic.verdict(&mut dice);
        let change = call(&mut breaker, (now, verdict), limits, &mut dice);
        count += u32::from(change.as_ref().is_some_and(is_opening));
        now = now.plus(traffic.gap(&mut dice));
    }
    count
}

/// How long from the beginning of an outage, in which `outage.failing` of the calls fail, until it
/// opens: the median of `trials`. Before it, `calm` of `normal` traffic. `None`: in most trials it
/// did not open within an hour.
pub(crate) fn time_to_open(
    limits: &Limits,
    (normal, outage): (Traffic, Traffic),
    trials: u32,
    seed: u64,
) -> Option<Duration> {
    let mut times: Vec<Duration> = (0..trials)
        .map(|trial| one_outage(limits, (normal, outage), seed ^ u64::from(trial)))
        .collect();
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied()?;
    (median < Duration::from_hours(1)).then_some(median)
}

fn one_outage(limits: &Limits, (normal, outage): (Traffic, Traffic), seed: u64) -> Duration {
    let (mut breaker, mut dice) = (Breaker::new(), Seeded::new(seed.wrapping_mul(0x9E37_79B9)));
    let begin = Moment::at(Duration::from_hours(2));
    let mut now = Moment::at(Duration::from_mins(105));
    while now < begin {
        let verdict = normal.verdict(&mut dice);
        // What opens before the outage is not part of it: such a breaker begins anew.
        if call(&mut breaker, (now, verdict), limits, &mut dice).is_some() {
            breaker = Breaker::new();
        }
        now = now.plus(normal.gap(&mut dice));
    }
    let end = begin.plus(Duration::from_hours(1));
    let mut now = begin.plus(outage.gap(&mut dice));
    while now < end {
        let verdict = outage.verdict(&mut dice);
        let change = call(&mut breaker, (now, verdict), limits, &mut dice);
        if change.as_ref().is_some_and(is_opening) {
            break;
        }
        now = now.plus(outage.gap(&mut dice));
    }
    now.since(begin)
}

/// What goes wrong with calls that all ask for a schema: shares of 5xx, of 429 and of bad answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mixed {
    /// Calls a second.
    pub(crate) rate: f64,
    /// Share of calls that end with a server error.
    pub(crate) down: f64,
    /// Share that is throttled.
    pub(crate) throttled: f64,
    /// Share whose answer breaks the schema.
    pub(crate) bad: f64,
}

impl Mixed {
    fn fault(self, dice: &mut Seeded) -> Option<Fault> {
        let unit = dice.unit();
        let up_to = [
            (self.down, Fault::ServerError),
            (self.down + self.throttled, Fault::RateLimited),
            (self.down + self.throttled + self.bad, Fault::SchemaError),
        ];
        up_to.into_iter().find(|(limit, _)| unit < *limit).map(|(_, fault)| fault)
    }
}

/// What a target with all its planes did in a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Days {
    /// How often some breaker of it opened.
    pub(crate) openings: u32,
    /// Calls that asked for a schema and were turned away.
    pub(crate) turned_away: u32,
    /// All of those.
    pub(crate) calls: u32,
}

/// A run of mixed trouble under `rules`.
pub(crate) fn days(rules: &Rules, mixed: Mixed, length: Duration, seed: u64) -> Days {
    use backstay_decide::breaker::{Seen, Shape};
    let traffic = Traffic { rate: mixed.rate, failing: 0.0 };
    let (mut planes, mut dice, mut days) = (Planes::new(1), Seeded::new(seed), Days::default());
    let mut now = Moment::at(Duration::from_hours(1));
    let end = now.plus(length);
    while now < end {
        let schema = Some(1);
        days.calls += 1;
        planes.offer(now, schema, rules);
        match planes.admit(&ask(now), schema, rules).passes {
            Ok(passes) => {
                let fault = mixed.fault(&mut dice);
                let seen = Seen { fault, shape: Shape::Structured, ..Seen::default() };
                let changes = planes.note(passes, Report::of(seen), now, (rules, &mut dice));
                let opened = changes.iter().filter(|turn| is_opening(&turn.change)).count();
                days.openings += u32::try_from(opened).unwrap_or(u32::MAX);
            }
            Err(_) => days.turned_away += 1,
        }
        now = now.plus(traffic.gap(&mut dice));
    }
    days
}
