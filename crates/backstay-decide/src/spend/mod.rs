//! What a caller's key may spend in a day, in money or in tokens: an alert once at 80 %, a refusal
//! before 100 %.
//!
//! A call reserves what it may cost at most and settles what it did cost; so calls that run side by
//! side cannot pass the limit together. A call that timed out may have been billed: it is booked at
//! its estimate, and the day's sum then says "at least".
//!
//! A day is a UTC day. What was spent ends with it; what is still reserved goes over into the new
//! day and is paid there. A reservation that is never settled is forgotten with the day after its own.

use std::fmt;
use std::time::Duration;

use crate::money::Money;
use crate::time::Secs;

mod tariff;

pub use tariff::{Tariff, Tokens};

/// When the alert comes, in thousandths of the limit.
pub const ALERT: u32 = 800;

const DAY: u64 = 86_400;

/// A day of the UTC calendar, counted from 1 January 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub u64);

impl Day {
    /// The day that `unix`, the time since 1970, is in.
    pub const fn of(unix: Duration) -> Self {
        Self(unix.as_secs() / DAY)
    }

    /// From `unix` to the next midnight: when a limit a day begins anew.
    pub const fn left(unix: Duration) -> Duration {
        let next =
            Duration::from_secs((unix.as_secs() / DAY).saturating_add(1).saturating_mul(DAY));
        next.saturating_sub(unix)
    }
}

/// What can be spent: money, or a number of tokens.
pub trait Amount: Copy + Ord + fmt::Display {
    /// Nothing.
    const ZERO: Self;
    /// What it is counted in: `money` or `tokens`.
    const UNIT: &'static str;
    /// Both together; stays at the most there is.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// This without `other`; nothing if that is more.
    #[must_use]
    fn less(self, other: Self) -> Self;
    /// `thousandths` of it.
    #[must_use]
    fn part(self, thousandths: u32) -> Self;
    /// As a number of units, to be looked at.
    fn units(self) -> f64;

    /// How much of `whole` it is; 1 of nothing.
    fn share_of(self, whole: Self) -> f64 {
        if whole == Self::ZERO { 1.0 } else { self.units() / whole.units() }
    }
}

impl Amount for Money {
    const ZERO: Self = Self::ZERO;
    const UNIT: &'static str = "money";

    fn plus(self, other: Self) -> Self {
        Self::plus(self, other)
    }

    fn less(self, other: Self) -> Self {
        Self::less(self, other)
    }

    fn part(self, thousandths: u32) -> Self {
        Self::part(self, thousandths)
    }

    fn units(self) -> f64 {
        Self::units(self)
    }
}

impl Amount for u64 {
    const ZERO: Self = 0;
    const UNIT: &'static str = "tokens";

    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }

    fn less(self, other: Self) -> Self {
        self.saturating_sub(other)
    }

    fn part(self, thousandths: u32) -> Self {
        Self::try_from(u128::from(self) * u128::from(thousandths) / 1000).unwrap_or(Self::MAX)
    }

    fn units(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a number to be looked at")]
        let units = self as f64;
        units
    }
}

/// What one call may take. Settle it once, by [`Purse::settle`].
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Hold<A> {
    estimate: A,
    day: Day,
}

/// What a call took in the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Took<A> {
    /// What the provider's own numbers come to.
    Known(A),
    /// Nobody knows, as after a timeout: what was reserved is booked.
    Unknown,
    /// Nothing: the call was never sent.
    Nothing,
}

/// The spending of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Purse<A> {
    day: Day,
    /// Settled today.
    spent: A,
    /// Of it, booked by estimate.
    estimated: A,
    /// Calls booked by estimate today.
    unknown: u32,
    /// Reserved today and not settled.
    held: A,
    /// Reserved the day before and not settled.
    held_before: A,
    alerted: bool,
}

impl<A: Amount> Purse<A> {
    /// Nothing spent on `day`.
    pub const fn new(day: Day) -> Self {
        Self {
            day,
            spent: A::ZERO,
            estimated: A::ZERO,
            unknown: 0,
            held: A::ZERO,
            held_before: A::ZERO,
            alerted: false,
        }
    }

    /// `spent` before the start, on `day`; of it, `estimated` by `unknown` calls that are not known
    /// in full.
    pub const fn resumed(day: Day, spent: A, estimated: A, unknown: u32) -> Self {
        Self { spent, estimated, unknown, ..Self::new(day) }
    }

    /// Says whether `estimate` is left of a `limit` a day, and reserves nothing.
    ///
    /// # Errors
    /// As [`Purse::reserve`].
    pub fn check(&mut self, estimate: A, limit: Option<A>, day: Day) -> Result<(), Overspent<A>> {
        self.turn(day);
        let total = self.total();
        match limit.filter(|limit| total.at_least.plus(total.held).plus(estimate) > *limit) {
            Some(limit) => Err(Overspent { total, estimate, limit }),
            None => Ok(()),
        }
    }

    /// Reserves `estimate` of a `limit` a day. Without a limit it is counted all the same. A limit of
    /// nothing allows calls that cost nothing.
    ///
    /// # Errors
    /// [`Overspent`] with the sum: the call must not be made; the limit begins anew at midnight.
    pub fn reserve(
        &mut self,
        estimate: A,
        limit: Option<A>,
        day: Day,
    ) -> Result<Hold<A>, Overspent<A>> {
        self.check(estimate, limit, day)?;
        self.held = self.held.plus(estimate);
        Ok(Hold { estimate, day: self.day })
    }

    /// Books what a call took, and says whether that makes the alert due: once a day, at 80 % of the
    /// limit.
    #[expect(clippy::needless_pass_by_value, reason = "given back once, by its type")]
    pub fn settle(
        &mut self,
        hold: Hold<A>,
        took: Took<A>,
        limit: Option<A>,
        day: Day,
    ) -> Option<Alert<A>> {
        self.turn(day);
        let Hold { estimate, day: reserved } = hold;
        if reserved == self.day {
            self.held = self.held.less(estimate);
        } else if reserved.0 + 1 == self.day.0 {
            self.held_before = self.held_before.less(estimate);
        }
        match took {
            Took::Known(amount) => self.spent = self.spent.plus(amount),
            Took::Unknown => {
                self.spent = self.spent.plus(estimate);
                self.estimated = self.estimated.plus(estimate);
                self.unknown = self.unknown.saturating_add(1);
            }
            Took::Nothing => {}
        }
        let limit = limit?;
        if self.alerted || self.spent < limit.part(ALERT) || self.spent == A::ZERO {
            return None;
        }
        self.alerted = true;
        Some(Alert { total: self.total(), limit })
    }

    /// How the key stands on `day`.
    pub fn standing(&mut self, day: Day) -> Total<A> {
        self.turn(day);
        self.total()
    }

    /// How the key stands on `day` to a `limit` a day.
    pub fn level(&mut self, limit: A, day: Day) -> Level<A> {
        Level { total: self.standing(day), limit, alerted: self.alerted }
    }

    fn total(&self) -> Total<A> {
        let held = self.held.plus(self.held_before);
        Total { at_least: self.spent, estimated: self.estimated, unknown: self.unknown, held }
    }

    /// Begins a new day. A day before the present one is a clock set back, and changes nothing.
    fn turn(&mut self, day: Day) {
        if day <= self.day {
            return;
        }
        let next = day.0 - self.day.0 == 1;
        *self = Self { held_before: if next { self.held } else { A::ZERO }, ..Self::new(day) };
    }
}

/// What a key spent today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total<A> {
    /// What was spent. Exact if `unknown` is 0.
    pub at_least: A,
    /// Of it, what was booked by estimate; before the start, all of what such calls took.
    pub estimated: A,
    /// Calls whose price nobody knows.
    pub unknown: u32,
    /// What calls under way may take besides.
    pub held: A,
}

impl<A: Amount> fmt::Display for Total<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { at_least, estimated, unknown, held } = self;
        if *unknown == 0 {
            write!(f, "{at_least} spent")?;
        } else {
            write!(f, "at least {at_least} spent ({estimated} by estimate for {unknown} calls)")?;
        }
        if *held > A::ZERO { write!(f, " + {held} reserved") } else { Ok(()) }
    }
}

/// How a key stands to its limit today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level<A> {
    /// What it spent.
    pub total: Total<A>,
    /// Its limit a day.
    pub limit: A,
    /// Whether the alert was told today.
    pub alerted: bool,
}

impl<A: Amount> Level<A> {
    /// What was spent of the limit: 1 is all.
    pub fn share(&self) -> f64 {
        self.total.at_least.share_of(self.limit)
    }
}

/// A key has spent 80 % of its limit today. Said once a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Alert<A> {
    /// How it stands.
    pub total: Total<A>,
    /// Its limit a day.
    pub limit: A,
}

impl<A: Amount> fmt::Display for Alert<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of the {} a day", self.total, self.limit)
    }
}

/// The call could take the key over its limit today.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overspent<A> {
    /// How it stands.
    pub total: Total<A>,
    /// What this call may take at most.
    pub estimate: A,
    /// Its limit a day.
    pub limit: A,
}

impl<A: Amount> fmt::Display for Overspent<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { total, estimate, limit } = self;
        write!(f, "{total} + up to {estimate} for this call is over the {limit} a day")
    }
}

impl<A: Amount + fmt::Debug> std::error::Error for Overspent<A> {}

/// When a refused call may come again: at midnight UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Until(pub Duration);

impl fmt::Display for Until {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the limit begins anew at 00:00 UTC, in {}", Secs(self.0))
    }
}

#[cfg(test)]
mod tests;
