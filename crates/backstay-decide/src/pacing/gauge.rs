//! One limit: how high it is, where that is known from, how much slower it is for now, and what
//! stands in it.

use std::fmt;
use std::time::Duration;

use super::Wait;
use super::meter::{self, Meter, Pace};
use super::rate::{Dimension, Per, Rate, Share, part};
use super::rolling::Rolling;
use super::slow::{self, FULL, Slow};
use crate::time::Moment;

/// How often a large limit may be believed to have grown, and by how much at most, in thousandths:
/// OpenAI answers 429 `slow_down` to faster growth above a million tokens a minute.
const GROWTH: (Duration, u32) = (Duration::from_mins(15), 1500);

/// A guess whose factor has come so far, in thousandths, without another 429 is given up.
const GUESS_ENDS: u32 = 4000;

/// 429s that come within so long of one that was excused are of the same trouble: calls that were on
/// the way to the provider, and what it counts a little later than we do.
const SAME_TROUBLE: Duration = Duration::from_secs(5);

/// After so long another may be excused.
const EXCUSED_ANEW: Duration = Duration::from_mins(1);

/// A learned limit that no reply has stated for so long, while others were answered, is none any more.
const FORGOTTEN: Duration = Duration::from_hours(1);

/// Where a limit is known from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// Config.
    Published,
    /// Headers of a reply, where config has none.
    Learned,
    /// A 429, where neither has one.
    Guessed,
}

/// What a reservation leaves in one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    Minute(meter::Mark),
    /// The hour it was reserved in.
    Day(u64),
}

/// Whether a gauge is still of use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Needed,
    Obsolete,
}

#[derive(Clone, Debug)]
enum Store {
    Minute(Meter),
    Day(Rolling),
}

#[derive(Clone, Debug)]
pub(super) struct Gauge {
    dimension: Dimension,
    /// As configured; 0 where it is not.
    published: u64,
    /// As believed now.
    limit: u64,
    origin: Origin,
    share: Share,
    /// When a reply last spoke of it.
    stated: Moment,
    grown: Option<Moment>,
    slow: Slow,
    /// The newest reservation whose reply said that less was left than it takes.
    no_room_for: Option<u64>,
    /// When a 429 was first excused by what its reply said.
    excused: Option<Moment>,
    /// In thousandths, as of the last [`Gauge::advance`].
    factor: u32,
    /// The pace at that factor, kept because every call asks for it.
    pace: Pace,
    /// The most that fits at all, which does not shrink while the rate is slowed.
    most: u64,
    store: Store,
}

impl Gauge {
    pub(super) fn new(rate: Rate, origin: Origin, share: Share, now: Moment) -> Self {
        let Rate { dimension, limit } = rate;
        let store = match dimension.per {
            Per::Minute => Store::Minute(Meter::new(share.pace(limit), now)),
            Per::Day => Store::Day(Rolling::new(now)),
        };
        let mut gauge = Self {
            dimension,
            published: if origin == Origin::Published { limit } else { 0 },
            limit,
            origin,
            share,
            stated: now,
            grown: None,
            slow: Slow::default(),
            no_room_for: None,
            excused: None,
            factor: FULL,
            pace: Pace { rate: 0, burst: 0 },
            most: 0,
            store,
        };
        gauge.set_pace();
        gauge
    }

    pub(super) const fn dimension(&self) -> Dimension {
        self.dimension
    }

    pub(super) const fn origin(&self) -> Origin {
        self.origin
    }

    /// A reply spoke of it.
    pub(super) const fn states(&mut self, now: Moment) {
        self.stated = now;
    }

    /// Whether it was learned from replies that have long said nothing of it.
    pub(super) fn is_forgotten(&self, now: Moment) -> bool {
        self.origin == Origin::Learned && now.since(self.stated) >= FORGOTTEN
    }

    /// Whether it was learned by taking `limit` of `dimension` for one over the other time.
    pub(super) fn mistakes(&self, dimension: Dimension, limit: u64) -> bool {
        let Self { dimension: own, origin, limit: believed, .. } = *self;
        origin == Origin::Learned
            && (own.unit, believed) == (dimension.unit, limit)
            && own.per != dimension.per
    }

    /// The most that one request may take.
    pub(super) const fn most(&self) -> u64 {
        self.most
    }

    pub(super) fn set_share(&mut self, share: Share) {
        self.share = share;
        self.set_pace();
    }

    /// Sets the limit. One that config sets anew to the same value leaves what was learned since.
    pub(super) fn relimit(&mut self, limit: u64, origin: Origin) {
        if origin == Origin::Published {
            if self.published == limit && self.origin == origin {
                return;
            }
            self.published = limit;
        }
        self.limit = limit;
        self.origin = origin;
        self.grown = None;
        self.set_pace();
    }

    /// Believes a header's limit: down at once, up at once unless it is a large one.
    pub(super) fn learn(&mut self, limit: u64, now: Moment) {
        if self.origin == Origin::Guessed {
            self.origin = Origin::Learned;
        }
        if limit <= self.limit
            || slow::back(self.dimension.unit, limit) == slow::back(self.dimension.unit, 0)
        {
            self.limit = limit;
            self.set_pace();
            return;
        }
        let (pause, most) = GROWTH;
        if self.grown.is_none_or(|last| now.since(last) >= pause) {
            self.limit = limit.min(part(self.limit, most).max(slow::LARGE));
            self.grown = Some(now);
            self.set_pace();
        }
    }

    pub(super) fn advance(&mut self, now: Moment) -> Standing {
        // What drains until `now` does so at the factor as it was: it only rises, so never too fast.
        match &mut self.store {
            Store::Minute(meter) => meter.drain(self.pace, now),
            Store::Day(day) => day.roll(now),
        }
        if self.slow == Slow::default() {
            return Standing::Needed;
        }
        let back = slow::back(self.dimension.unit, self.limit);
        let ceiling = if self.origin == Origin::Guessed { GUESS_ENDS } else { FULL };
        self.factor = self.slow.factor(back, ceiling, now);
        if self.origin != Origin::Guessed {
            self.slow.settle(back, now);
        }
        self.set_pace();
        if self.factor >= GUESS_ENDS { Standing::Obsolete } else { Standing::Needed }
    }

    /// Works the pace out anew, after a change of limit, share or factor.
    fn set_pace(&mut self) {
        let full = self.share.pace(self.limit);
        self.most = match self.dimension.per {
            Per::Minute => full.most(),
            Per::Day => self.share.day(self.limit),
        };
        self.pace = full;
        if full.rate > 0 {
            let slowed = |whole| part(whole, self.factor).max(1);
            self.pace = Pace { rate: slowed(full.rate), burst: slowed(full.burst) };
        }
    }

    /// Why `cost` has to wait once `before` is reserved, or `None` if it fits.
    pub(super) fn wait(&self, cost: u64, before: u64, now: Moment) -> Option<Wait> {
        if cost == 0 {
            return None;
        }
        if cost > self.most {
            return Some(Wait::TooLarge { level: self.level(), cost });
        }
        let wait = match &self.store {
            Store::Minute(meter) => meter.wait(cost, before, self.pace),
            Store::Day(day) => day.wait(cost.saturating_add(before), self.most, now),
        };
        (!wait.is_zero()).then(|| Wait::Rate { level: self.level(), cost, wait })
    }

    pub(super) fn reserve(&mut self, cost: u64, order: u64) -> Mark {
        match &mut self.store {
            Store::Minute(meter) => Mark::Minute(meter.reserve(cost, order)),
            Store::Day(day) => Mark::Day(day.reserve(cost)),
        }
    }

    pub(super) fn settle(&mut self, reserved: u64, used: u64, order: u64, mark: Mark) {
        let (unused, more) = (reserved.saturating_sub(used), used.saturating_sub(reserved));
        match (&mut self.store, mark) {
            (Store::Minute(meter), Mark::Minute(_)) => {
                meter.refund(unused, order);
                if more > 0 {
                    meter.debit(more);
                }
            }
            (Store::Day(day), Mark::Day(hour)) => {
                day.refund(unused, hour);
                day.reserve(more);
            }
            (Store::Minute(_), Mark::Day(_)) | (Store::Day(_), Mark::Minute(_)) => {}
        }
    }

    /// Obeys that only `remaining` are left.
    pub(super) fn leave_room(
        &mut self,
        remaining: u64,
        mark: Option<Mark>,
        reset: Option<Duration>,
        now: Moment,
    ) {
        let (pace, most) = (self.pace, self.most);
        match &mut self.store {
            Store::Minute(meter) => {
                let mark = match mark {
                    Some(Mark::Minute(mark)) => Some(mark),
                    Some(Mark::Day(_)) | None => None,
                };
                meter.leave_room(remaining, mark, pace);
            }
            Store::Day(day) => day.leave_room(remaining, most, reset, now),
        }
    }

    /// Takes note that the reply to the reservation `order` said that less is left than it takes.
    pub(super) const fn leaves_no_room_for(&mut self, order: u64) {
        self.no_room_for = Some(order);
    }

    /// Whether a 429 to the reservation `order` came of what the provider said is left: that is obeyed
    /// by now, so the rate itself may be right. One that comes again soon says that it is not.
    fn is_excused(&mut self, order: Option<u64>, now: Moment) -> bool {
        if order.is_none() || order != self.no_room_for {
            return false;
        }
        let since = self.excused.map(|first| now.since(first));
        if since.is_none_or(|since| since >= EXCUSED_ANEW) {
            self.excused = Some(now);
            return true;
        }
        since.is_some_and(|since| since < SAME_TROUBLE)
    }

    /// Slows a rate a minute; the rate before and after, or `None` if it was not slowed.
    pub(super) fn slow(
        &mut self,
        order: Option<u64>,
        newest: u64,
        now: Moment,
    ) -> Option<(u64, u64)> {
        if self.dimension.per == Per::Day || self.is_excused(order, now) {
            return None;
        }
        let before = self.pace.rate;
        if !self.slow.cut(self.factor.min(FULL), order, newest, now) {
            return None;
        }
        self.advance(now);
        Some((before, self.pace.rate))
    }

    pub(super) fn level(&self) -> Level {
        let (limit, dimension, factor, most) = (self.limit, self.dimension, self.factor, self.most);
        match &self.store {
            Store::Minute(meter) => {
                let Pace { rate, burst } = self.pace;
                Level { dimension, limit, rate, burst, most, used: meter.used(), factor }
            }
            Store::Day(day) => {
                Level { dimension, limit, rate: most, burst: most, most, used: day.used(), factor }
            }
        }
    }
}

/// How one limit stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Which limit.
    pub dimension: Dimension,
    /// As published, learned or guessed.
    pub limit: u64,
    /// What of it is used steadily, a minute or a day.
    pub rate: u64,
    /// What may stand in it at once.
    pub burst: u64,
    /// The most that one request may take.
    pub most: u64,
    /// What stands in it now; over `burst` where something is owed.
    pub used: u64,
    /// How much slower it is for now, in thousandths; 1000: not at all.
    pub factor: u32,
}

impl Level {
    /// What stands in it, in thousandths of what may; 1000 where nothing may.
    pub fn filled(&self) -> u32 {
        let filled = u128::from(self.used) * 1000;
        filled
            .checked_div(u128::from(self.burst))
            .map_or(1000, |it| u32::try_from(it).unwrap_or(u32::MAX))
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dimension, limit, rate, burst, used, factor, .. } = self;
        write!(f, "{dimension}, {used} of {burst} taken")?;
        if dimension.per == Per::Minute {
            write!(f, ", draining at {rate}")?;
        }
        write!(f, " (limit {limit}")?;
        if *factor != FULL {
            write!(f, ", slowed to {}.{} %", factor / 10, factor % 10)?;
        }
        f.write_str(")")
    }
}
