//! How many extra attempts a target may get, over all calls together: retries and hedges.
//!
//! One budget a target. A call that begins at the target earns a part of an extra attempt, a floor
//! adds what a quiet target would else never earn, and each retry or hedge takes its price. So in a
//! long outage the target sees at most `1 + earned` times its load, and not attempts times layers.
//!
//! ```text
//!   call arrives ──▶ + earned ─┐
//!   time passes ───▶ + floor ──┼──▶ [ balance, at most `cap` ] ──▶ - 1 a retry, - 2 a hedge
//!   caller repeats ▶ - 1 ──────┘
//! ```
//!
//! * The floor is a minimum and not an addition: what calls earn in the same time counts towards it.
//! * Where calls come one at a time, none is starved: the retries of a call are free if no two calls
//!   were at the target together in the last [`ALONE`]. One caller in a row cannot multiply a load
//!   beyond its own attempts; many callers meet, even where each call is short. Hedges have no such
//!   right.
//! * A call that falls back on the target arrives like any other: that it may come is a question of
//!   [`headroom`], and not of this budget.
//! * Extra attempts in flight are bounded besides: a few, or a share of the calls under way.

use std::fmt;
use std::time::Duration;

use crate::time::{Moment, Secs};

pub mod headroom;

/// Thousandths in one extra attempt: the unit in which balances are kept, so that no ratio is
/// rounded away.
const WHOLE: u64 = 1000;

/// How long no two calls may have been at a target together for the retries of a call to be free.
pub const ALONE: Duration = Duration::from_secs(10);

/// What extra attempts cost and earn at one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What one arriving call earns, in thousandths of an extra attempt; 0 to 1000. 0: nothing.
    pub earned: u32,
    /// The balance grows by at least one extra attempt in this time. Zero: no floor.
    pub floor: Duration,
    /// Extra attempts in a new budget; more than `cap` counts as `cap`.
    pub start: u32,
    /// The most extra attempts that are kept. 0 turns extra attempts off, lone calls included.
    pub cap: u32,
    /// Extra attempts that may always be in flight at once.
    pub at_once: u32,
    /// Beyond that, in thousandths of the calls under way; 0 to 1000.
    pub at_once_share: u32,
}

impl Default for Limits {
    /// resilience.md section 2: a tenth of the calls, one in ten seconds, two or a fifth at once.
    fn default() -> Self {
        Self {
            earned: 100,
            floor: Duration::from_secs(10),
            start: 3,
            cap: 10,
            at_once: 2,
            at_once_share: 200,
        }
    }
}

impl Limits {
    fn cap(&self) -> u64 {
        u64::from(self.cap) * WHOLE
    }
}

/// What an arriving call is to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// A call's first attempt here, the one that falls back on this target included: it earns.
    First,
    /// A call that a layer above us repeats, so many times by now; at least 1. It pays for itself,
    /// and gets no retries of ours at this target: two retriers multiply.
    Repeated(u32),
    /// A call that was here before and comes back from another target: it earned then.
    Back,
}

/// A call's stay at a target. Give it back through [`Budget::leave`] when the call leaves.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Visit {
    arrival: Arrival,
}

/// What an extra attempt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The one before failed. Takes 1.
    Retry,
    /// The one before is late. Takes 2, so that at a tenth earned at most a twentieth is hedged.
    Hedge,
}

impl Kind {
    const fn price(self) -> u64 {
        match self {
            Self::Retry => WHOLE,
            Self::Hedge => 2 * WHOLE,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Retry => "retry",
            Self::Hedge => "hedge",
        }
    }
}

/// Leave for one extra attempt. Give it back through [`Budget::end`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Grant {
    /// Taken from the balance, in thousandths; 0 for a lone call's retry.
    paid: u64,
}

/// What became of a granted attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// The target saw it, or may have.
    Sent,
    /// It never left: the price is paid back.
    NotSent,
}

/// How a budget stands at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// What it holds.
    pub balance: Thousandths,
    /// The most extra attempts that it keeps; 0: there are none.
    pub cap: u32,
    /// Extra attempts that are granted and not over.
    pub in_flight: u32,
    /// How many these may be, with so many calls at the target as now.
    pub allowed: u32,
}

/// The extra attempts of one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// In thousandths; never over the cap.
    balance: u64,
    /// Until when the floor is paid, by time or by what calls earned.
    paid_until: Moment,
    /// Calls at the target now, those that wait for their next attempt included.
    calls: u32,
    /// Extra attempts in flight.
    extra: u32,
    /// When two calls were last at the target together.
    together: Option<Moment>,
}

impl Budget {
    /// A budget with its start balance.
    pub fn new(limits: &Limits, now: Moment) -> Self {
        let balance = (u64::from(limits.start) * WHOLE).min(limits.cap());
        Self { balance, paid_until: now, calls: 0, extra: 0, together: None }
    }

    /// How it stands at `now`.
    pub fn level(&self, limits: &Limits, now: Moment) -> Level {
        Level {
            balance: self.balance(limits, now),
            cap: limits.cap,
            in_flight: self.extra,
            allowed: self.allowed_at_once(limits),
        }
    }

    /// Whole extra attempts and thousandths that the balance holds at `now`.
    pub fn balance(&self, limits: &Limits, now: Moment) -> Thousandths {
        let mut then = *self;
        then.pay_floor(limits, now);
        Thousandths(then.balance)
    }

    /// Takes note of a call that comes to the target. Never refuses.
    pub fn arrive(&mut self, arrival: Arrival, limits: &Limits, now: Moment) -> Visit {
        self.pay_floor(limits, now);
        match arrival {
            Arrival::First => self.earn(limits, now),
            // The balance stops at nothing: a stranger's retries are not a debt of all others.
            Arrival::Repeated(_) => self.balance = self.balance.saturating_sub(WHOLE),
            Arrival::Back => {}
        }
        self.calls = self.calls.saturating_add(1);
        self.note_company(now);
        Visit { arrival }
    }

    /// Takes note that a call is done with the target.
    #[expect(clippy::needless_pass_by_value, reason = "given back once, by its type")]
    pub fn leave(&mut self, visit: Visit, now: Moment) {
        let Visit { arrival: _ } = visit;
        self.note_company(now);
        self.calls = self.calls.saturating_sub(1);
    }

    /// Asks for an extra attempt of the call that made `visit`.
    ///
    /// # Errors
    /// [`Refusal`] with its arithmetic. The call may go to another target, or end.
    pub fn ask(
        &mut self,
        kind: Kind,
        visit: &Visit,
        limits: &Limits,
        now: Moment,
    ) -> Result<Grant, Refusal> {
        self.pay_floor(limits, now);
        if limits.cap == 0 {
            return Err(Refusal::Off);
        }
        if let Arrival::Repeated(times) = visit.arrival {
            return Err(Refusal::CallerRepeats { kind, times });
        }
        let allowed = self.allowed_at_once(limits);
        if self.extra >= allowed {
            let (extra, calls) = (self.extra, self.calls);
            return Err(Refusal::AtOnce { kind, extra, allowed, calls });
        }
        let paid = self.pay(kind, now).ok_or_else(|| self.empty(kind, limits, now))?;
        self.extra = self.extra.saturating_add(1);
        Ok(Grant { paid })
    }

    /// Takes note that a granted attempt is over.
    #[expect(clippy::needless_pass_by_value, reason = "given back once, by its type")]
    pub fn end(&mut self, grant: Grant, made: Made, limits: &Limits) {
        let Grant { paid } = grant;
        self.extra = self.extra.saturating_sub(1);
        match made {
            Made::Sent => {}
            Made::NotSent => self.balance = self.balance.saturating_add(paid).min(limits.cap()),
        }
    }

    fn note_company(&mut self, now: Moment) {
        if self.calls > 1 {
            self.together = Some(now);
        }
    }

    fn allowed_at_once(&self, limits: &Limits) -> u32 {
        let share = u64::from(self.calls) * u64::from(limits.at_once_share.min(1000)) / 1000;
        limits.at_once.max(u32::try_from(share).unwrap_or(u32::MAX))
    }

    /// Takes the price, or nothing from a lone call's retry. `None`: the balance does not hold it.
    fn pay(&mut self, kind: Kind, now: Moment) -> Option<u64> {
        let alone = self.calls <= 1 && self.together.is_none_or(|last| now.since(last) >= ALONE);
        if kind == Kind::Retry && alone {
            return Some(0);
        }
        self.balance = self.balance.checked_sub(kind.price())?;
        Some(kind.price())
    }

    fn empty(&self, kind: Kind, limits: &Limits, now: Moment) -> Refusal {
        let missing = kind.price().saturating_sub(self.balance);
        let wait = part(limits.floor, missing)
            .map_or(Duration::MAX, |long| self.paid_until.max(now).plus(long).since(now));
        Refusal::Empty { kind, balance: Thousandths(self.balance), earned: limits.earned, wait }
    }

    fn earn(&mut self, limits: &Limits, now: Moment) {
        let earned = u64::from(limits.earned.min(1000));
        self.balance = self.balance.saturating_add(earned).min(limits.cap());
        // What was earned is floor already paid, but only for the time that it covers: a busy
        // minute does not pay for the quiet hour after it.
        let covered = part(limits.floor, earned).unwrap_or(Duration::ZERO);
        self.paid_until = self.paid_until.min(now).plus(covered);
    }

    fn pay_floor(&mut self, limits: &Limits, now: Moment) {
        let since = now.since(self.paid_until);
        if limits.floor.is_zero() || since.is_zero() {
            return;
        }
        let due = since.as_nanos().saturating_mul(u128::from(WHOLE)) / limits.floor.as_nanos();
        let due = u64::try_from(due).unwrap_or(u64::MAX);
        if self.balance.saturating_add(due) >= limits.cap() {
            // Full: time that cannot be paid for is not saved up either.
            self.balance = self.balance.max(limits.cap());
            self.paid_until = now;
            return;
        }
        self.balance += due;
        // Only the time that was paid for, so that no fraction is lost.
        self.paid_until = self.paid_until.plus(part(limits.floor, due).unwrap_or_default());
    }
}

/// `thousandths` of `whole`, rounded up. `None` where `whole` is zero.
fn part(whole: Duration, thousandths: u64) -> Option<Duration> {
    if whole.is_zero() {
        return None;
    }
    let nanos =
        whole.as_nanos().saturating_mul(u128::from(thousandths)).div_ceil(u128::from(WHOLE));
    Some(u64::try_from(nanos).map_or(Duration::MAX, Duration::from_nanos))
}

/// A number in thousandths; prints as `0.3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Thousandths(pub u64);

impl Thousandths {
    /// As a number of wholes, to be looked at.
    pub fn wholes(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a number to be looked at")]
        let thousandths = self.0 as f64;
        thousandths / 1000.0
    }
}

impl fmt::Display for Thousandths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = format!("{}.{:03}", self.0 / 1000, self.0 % 1000);
        f.write_str(text.trim_end_matches('0').trim_end_matches('.'))
    }
}

/// Why there is no extra attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The cap is 0.
    Off,
    /// A layer above us retries this call already.
    CallerRepeats {
        /// What was asked for.
        kind: Kind,
        /// How often it was repeated by now.
        times: u32,
    },
    /// Too many extra attempts are in flight.
    AtOnce {
        /// What was asked for.
        kind: Kind,
        /// Extra attempts in flight.
        extra: u32,
        /// How many may be.
        allowed: u32,
        /// Calls under way at the target.
        calls: u32,
    },
    /// The balance does not hold the price.
    Empty {
        /// What was asked for.
        kind: Kind,
        /// What the balance holds.
        balance: Thousandths,
        /// What a call earns, in thousandths.
        earned: u32,
        /// When the floor alone will have filled it; [`Duration::MAX`] without a floor.
        wait: Duration,
    },
}

impl Refusal {
    /// A stable name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Off => "extra_off",
            Self::CallerRepeats { .. } => "extra_caller_repeats",
            Self::AtOnce { .. } => "extra_at_once",
            Self::Empty { .. } => "extra_spent",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Off => f.write_str("no extra attempts: the budget's cap is 0"),
            Self::CallerRepeats { kind, times } => write!(
                f,
                "no {} here: the caller repeats this call itself, {times} times by now",
                kind.name()
            ),
            Self::AtOnce { kind, extra, allowed, calls } => write!(
                f,
                "no {}: {extra} extra attempts in flight, {allowed} allowed with {calls} calls \
                 under way",
                kind.name()
            ),
            Self::Empty { kind, balance, earned, wait } => write!(
                f,
                "no {}: it takes {} of the target's budget, which holds {balance}; a call earns \
                 {}, the floor fills it in {}",
                kind.name(),
                Thousandths(kind.price()),
                Thousandths(u64::from(earned)),
                Secs(wait)
            ),
        }
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests;
