//! Keeps the load on a target below its provider's rates: requests, input, output and total tokens,
//! a minute and a day, all at once.
//!
//! One pacer a target and credential. A call reserves what it may take in every dimension or in
//! none; when it is over it settles what it took, and the rest comes back. A limit is published (by
//! config), learned (from headers) or guessed (from a 429 where nothing is known).
//!
//! | event | what it does |
//! |---|---|
//! | [`Pacer::reserve`] | takes the cost in all dimensions, or says how long to wait: the longest wait of all |
//! | [`Pacer::settle`] | gives back what was not used; books what was used beyond, as a debt; drops a learned limit that no reply spoke of for an hour |
//! | [`Pacer::observe`] | obeys `limit` and `remaining` of a reply: down at once, up as the rules allow |
//! | [`Pacer::throttled`] | slows the dimension a 429 was about to 70 %; it comes back by itself |
//! | [`Pacer::rerate`] | sets new published limits; debts stay |
//!
//! A reservation that is never settled stays booked and drains away like one that used all of it.

use std::fmt;
use std::time::Duration;

use crate::time::{Moment, Secs};

mod counting;
mod gauge;
mod meter;
mod rate;
mod recent;
mod rolling;
mod slow;

pub use counting::{Cached, Counting, Estimate, Upfront, Usage};
pub use gauge::Level;
use gauge::{Gauge, Mark, Origin};
pub use rate::{Dimension, Per, Rate, Share, Unit};
use recent::Recent;

/// The longest that a 429's delay stops a target. A server's larger word is taken for this.
pub const LONGEST_PAUSE: Duration = Duration::from_mins(10);

/// The least that is guessed of a limit nobody told: what a few calls a minute met says little, and
/// the provider's delay is obeyed besides. In requests and in tokens.
pub const LEAST_GUESS: [u64; 2] = [60, 60_000];

/// What one request takes, or took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Requests: 1, or 0 for one that the provider never counted.
    pub requests: u64,
    /// Input tokens.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
}

impl Cost {
    /// Nothing: the request was never sent.
    pub const NOTHING: Self = Self { requests: 0, input: 0, output: 0 };

    /// One request with so many tokens.
    pub const fn request(input: u64, output: u64) -> Self {
        Self { requests: 1, input, output }
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
        }
    }

    /// What is left of it without `other`; of nothing there is never less.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_sub(other.requests),
            input: self.input.saturating_sub(other.input),
            output: self.output.saturating_sub(other.output),
        }
    }

    /// The part of each of so many that share it, rounded down. 0 shares as 1.
    #[must_use]
    pub const fn shared_by(self, keys: usize) -> Self {
        let keys = if keys == 0 { 1 } else { keys as u64 };
        Self {
            requests: self.requests / keys,
            input: self.input / keys,
            output: self.output / keys,
        }
    }

    /// As counted in `unit`.
    const fn of(self, unit: Unit) -> u64 {
        match unit {
            Unit::Requests => self.requests,
            Unit::Input => self.input,
            Unit::Output => self.output,
            Unit::Total => self.input.saturating_add(self.output),
        }
    }
}

/// What was reserved. Settle it once, by [`Pacer::settle`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Reservation {
    cost: Cost,
    order: u64,
    /// Of each limit that was known.
    marks: Vec<(Dimension, Mark)>,
}

impl Reservation {
    /// What was reserved.
    pub const fn cost(&self) -> Cost {
        self.cost
    }

    fn mark(&self, dimension: Dimension) -> Option<Mark> {
        self.marks.iter().find(|(of, _)| *of == dimension).map(|(_, mark)| *mark)
    }
}

/// What a reply said of one limit. A header that makes no sense is absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Which limit.
    pub dimension: Dimension,
    /// How many are allowed; 0 is ignored.
    pub limit: Option<u64>,
    /// How many of them are left; ignored where it is over `limit`.
    pub remaining: Option<u64>,
    /// Until all of them are there again: an upper bound, used for limits a day.
    pub reset: Option<Duration>,
}

/// The rates of one target and credential.
#[derive(Clone, Debug)]
pub struct Pacer {
    share: Share,
    /// Of what is known, in the order of [`Dimension::ALL`].
    gauges: Vec<Gauge>,
    /// Counts reservations.
    order: u64,
    paused_until: Moment,
    recent: Recent,
}

impl Pacer {
    /// A pacer for the limits in `published`, idle until `now`. Of two for one dimension the last
    /// counts. Without any, it lets everything through until it learns of a limit.
    pub fn new(published: &[Rate], share: Share, now: Moment) -> Self {
        let mut pacer = Self {
            share,
            gauges: Vec::new(),
            order: 0,
            paused_until: Moment::ORIGIN,
            recent: Recent::new(now),
        };
        pacer.rerate(published, share, now);
        pacer
    }

    /// Sets new published limits and a new share, as after a reload. What stands in a dimension
    /// stays; limits that were published and are no more are dropped, learned ones stay.
    pub fn rerate(&mut self, published: &[Rate], share: Share, now: Moment) {
        self.advance(now);
        self.share = share;
        self.gauges.retain(|gauge| {
            let is_published = published.iter().any(|rate| rate.dimension == gauge.dimension());
            is_published || gauge.origin() != Origin::Published
        });
        for rate in published {
            self.gauge_or(*rate, Origin::Published, now).relimit(rate.limit, Origin::Published);
        }
        for gauge in &mut self.gauges {
            gauge.set_share(share);
        }
    }

    /// Whether it lets everything through at `now`: no limit is known, and no pause asked for.
    pub fn is_free(&self, now: Moment) -> bool {
        self.gauges.is_empty() && now >= self.paused_until
    }

    /// `cost` as far as limits can hold it that nobody published: what was learned or guessed may be
    /// less than one request takes, and is no reason to refuse it for ever.
    #[must_use]
    pub fn fitting(&self, cost: Cost) -> Cost {
        let mut fitting = cost;
        for gauge in self.gauges.iter().filter(|gauge| gauge.origin() != Origin::Published) {
            let most = gauge.most();
            match gauge.dimension().unit {
                Unit::Requests => fitting.requests = fitting.requests.min(most),
                Unit::Input => fitting.input = fitting.input.min(most),
                Unit::Output => fitting.output = fitting.output.min(most),
                Unit::Total => {
                    fitting.input = fitting.input.min(most);
                    fitting.output = fitting.output.min(most - fitting.input);
                }
            }
        }
        fitting
    }

    fn gauge(&mut self, dimension: Dimension) -> Option<&mut Gauge> {
        self.gauges.iter_mut().find(|gauge| gauge.dimension() == dimension)
    }

    /// The gauge of the rate's dimension; a new one, if there is none.
    fn gauge_or(&mut self, rate: Rate, origin: Origin, now: Moment) -> &mut Gauge {
        let place = rate.dimension.place();
        let at = self.gauges.partition_point(|gauge| gauge.dimension().place() < place);
        if self.gauges.get(at).is_none_or(|gauge| gauge.dimension() != rate.dimension) {
            self.gauges.insert(at, Gauge::new(rate, origin, self.share, now));
        }
        &mut self.gauges[at]
    }

    /// Whether `cost` could be reserved at `now`, without doing so: for a caller that has other
    /// limits to ask first.
    ///
    /// # Errors
    /// The longest [`Wait`] of all dimensions.
    pub fn check(&mut self, cost: Cost, now: Moment) -> Result<(), Wait> {
        self.check_after(Cost::NOTHING, cost, now)
    }

    /// As [`Pacer::check`], once `before` is reserved, which others were promised.
    ///
    /// # Errors
    /// The longest [`Wait`] of all dimensions.
    pub fn check_after(&mut self, before: Cost, cost: Cost, now: Moment) -> Result<(), Wait> {
        self.advance(now);
        let mut longest: Option<Wait> = None;
        if now < self.paused_until {
            longest = Some(Wait::Paused { wait: now.until(self.paused_until) });
        }
        for gauge in &self.gauges {
            let unit = gauge.dimension().unit;
            let Some(wait) = gauge.wait(cost.of(unit), before.of(unit), now) else { continue };
            if longest.is_none_or(|other| wait.wait() > other.wait()) {
                longest = Some(wait);
            }
        }
        longest.map_or(Ok(()), Err)
    }

    /// Reserves `cost` in all dimensions, or in none.
    ///
    /// # Errors
    /// The longest [`Wait`] of all dimensions. Whoever waits asks again afterwards: others may have
    /// come first.
    pub fn reserve(&mut self, cost: Cost, now: Moment) -> Result<Reservation, Wait> {
        self.check(cost, now)?;
        Ok(self.book(cost, now))
    }

    /// Reserves `cost` whatever the rates say: for a call that is not paced and counts all the same.
    pub fn book(&mut self, cost: Cost, now: Moment) -> Reservation {
        self.advance(now);
        self.order += 1;
        self.recent.note(cost, now);
        let order = self.order;
        let mark = |gauge: &mut Gauge| {
            let dimension = gauge.dimension();
            (dimension, gauge.reserve(cost.of(dimension.unit), order))
        };
        Reservation { cost, order, marks: self.gauges.iter_mut().map(mark).collect() }
    }

    /// Takes note of what a reserved request took in the end. What it did not use comes back, as
    /// far as it has not drained already; what it used beyond is owed.
    pub fn settle(&mut self, reservation: Reservation, used: Cost, now: Moment) {
        self.advance(now);
        let Reservation { cost, order, marks } = reservation;
        for (dimension, mark) in marks {
            if let Some(gauge) = self.gauge(dimension) {
                let unit = dimension.unit;
                gauge.settle(cost.of(unit), used.of(unit), order, mark);
            }
        }
        // A reply speaks of its limits before it is settled: what is idle is not forgotten for it.
        self.gauges.retain(|gauge| !gauge.is_forgotten(now));
    }

    /// Obeys what a reply said of a limit. `reserved` is the reservation of the request it answers:
    /// what was reserved after it, the provider had not counted yet.
    pub fn observe(&mut self, seen: &Seen, reserved: Option<&Reservation>, now: Moment) {
        self.advance(now);
        let dimension = seen.dimension;
        let limit = seen.limit.filter(|limit| *limit > 0);
        let gauge = match limit {
            Some(limit) => {
                // One reset can look like a day's. Two limits of a unit at once have numbers of their own.
                self.gauges.retain(|gauge| !gauge.mistakes(dimension, limit));
                let gauge = self.gauge_or(Rate { dimension, limit }, Origin::Learned, now);
                gauge.learn(limit, now);
                gauge
            }
            None => match self.gauge(dimension) {
                Some(gauge) => gauge,
                None => return,
            },
        };
        gauge.states(now);
        let Some(remaining) = seen.remaining else { return };
        if limit.is_none_or(|limit| remaining <= limit) {
            let mark = reserved.and_then(|reservation| reservation.mark(dimension));
            gauge.leave_room(remaining, mark, seen.reset, now);
            let too_large = |it: &&Reservation| remaining < it.cost.of(dimension.unit);
            if let Some(reservation) = reserved.filter(too_large) {
                gauge.leaves_no_room_for(reservation.order);
            }
        }
    }

    /// Takes note of a 429. `about` is the limit it named; without one the fullest rate a minute is
    /// slowed, and where none is known the requests of the last minute become a guess. `after` is the
    /// server's delay: nothing is reserved before it is over. Where the same reply said that too little
    /// is left ([`Pacer::observe`]), that is obeyed already, and the rate is not slowed for it, once in a
    /// minute.
    pub fn throttled(
        &mut self,
        about: Option<Dimension>,
        reserved: Option<&Reservation>,
        after: Option<Duration>,
        now: Moment,
    ) -> Slowed {
        self.advance(now);
        let pause = after.unwrap_or_default().min(LONGEST_PAUSE);
        // The longer of two delays holds: a second 429 with a shorter one does not end the first.
        self.paused_until = self.paused_until.max(now.plus(pause));
        let dimension = self.suspect(about, now);
        let newest = self.order;
        let order = reserved.map(|reservation| reservation.order);
        let rate = self.gauge(dimension).and_then(|gauge| gauge.slow(order, newest, now));
        Slowed { dimension, rate, pause }
    }

    /// How full the fullest dimension is at `now`, in thousandths of what may stand in it; over 1000
    /// where something is owed. 0 where nothing is known.
    pub fn filled(&mut self, now: Moment) -> u32 {
        self.advance(now);
        self.gauges.iter().map(|gauge| gauge.level().filled()).max().unwrap_or(0)
    }

    /// Every known limit with its numbers, for people.
    pub fn levels(&mut self, now: Moment) -> Vec<Level> {
        self.advance(now);
        self.gauges.iter().map(Gauge::level).collect()
    }

    fn advance(&mut self, now: Moment) {
        self.gauges.retain_mut(|gauge| gauge.advance(now) != gauge::Standing::Obsolete);
    }

    /// The dimension that a 429 was about; there is a gauge for it afterwards, unless it is a day's.
    fn suspect(&mut self, about: Option<Dimension>, now: Moment) -> Dimension {
        let a_minute = self.gauges.iter().filter(|gauge| gauge.dimension().per == Per::Minute);
        let fullest = a_minute.max_by_key(|gauge| gauge.level().filled()).map(Gauge::dimension);
        let dimension = about.or(fullest).unwrap_or(Dimension::ALL[0]);
        if dimension.per == Per::Minute && self.gauge(dimension).is_none() {
            let [requests, tokens] = LEAST_GUESS;
            let least = if dimension.unit == Unit::Requests { requests } else { tokens };
            let limit = self.recent.a_minute(dimension.unit, now).max(least);
            self.gauge_or(Rate { dimension, limit }, Origin::Guessed, now);
        }
        dimension
    }
}

/// What a 429 changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slowed {
    /// What it is taken to be about.
    pub dimension: Dimension,
    /// Units a minute before and after; `None`: nothing was slowed, because the request was sent
    /// before the last cut, the limit is one a day, or what the reply said is left is obeyed instead.
    pub rate: Option<(u64, u64)>,
    /// How long nothing is reserved.
    pub pause: Duration,
}

impl fmt::Display for Slowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dimension, rate, pause } = self;
        match rate {
            Some((before, after)) => write!(f, "429: {dimension} slowed from {before} to {after}")?,
            None => write!(f, "429: {dimension} not slowed")?,
        }
        if pause.is_zero() {
            return Ok(());
        }
        write!(f, ", nothing for {}", Secs(*pause))
    }
}

/// Why a request has to wait for a rate, with the sum that says how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// The provider asked for a pause.
    Paused {
        /// What is left of it.
        wait: Duration,
    },
    /// The rate is used up.
    Rate {
        /// How the rate stands.
        level: Level,
        /// What the request takes of it.
        cost: u64,
        /// Until it fits, if nothing else is reserved.
        wait: Duration,
    },
    /// It can never fit: it takes more than any window holds.
    TooLarge {
        /// How the rate stands.
        level: Level,
        /// What the request takes of it.
        cost: u64,
    },
}

impl Wait {
    /// How long; [`Duration::MAX`]: waiting is no use.
    pub const fn wait(&self) -> Duration {
        match self {
            Self::Paused { wait } | Self::Rate { wait, .. } => *wait,
            Self::TooLarge { .. } => Duration::MAX,
        }
    }

    /// A stable name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Paused { .. } => "pace_paused",
            Self::Rate { .. } => "pace_rate",
            Self::TooLarge { .. } => "pace_too_large",
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused { wait } => write!(f, "the provider asked to wait: {} left", Secs(*wait)),
            Self::Rate { level, cost, wait } => {
                write!(f, "{cost} asked of {level}: wait {}", Secs(*wait))
            }
            Self::TooLarge { level, cost } => {
                write!(f, "{cost} asked of {level}: over the {} that fit at all", level.most)
            }
        }
    }
}

impl std::error::Error for Wait {}

#[cfg(test)]
mod tests;
