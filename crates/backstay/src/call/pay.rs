//! Sums up what the attempts of a call cost, and pays for them from the purse of the caller's key.
//!
//! Nothing is estimated or locked for an attempt at a target without prices by a key without a limit.

use std::sync::Arc;
use std::time::Duration;

use backstay_decide::alert::Kind;
use backstay_decide::spend::{Day, Tariff, Tokens, Took, Until};
use backstay_decide::{Local, Money};
use backstay_wire::Usage;

use super::{Call, Plan};
use crate::admit::spend::{Cost, Reserved};
use crate::attempt::{Got, Seen};
use crate::contract::Caller;
use crate::policy::Target;
use crate::record::{Known, Spent};

/// Tokens that a reply is taken to have at most when neither the call nor the target says.
const MOST_OUTPUT: u64 = 16_384;

/// What the attempts of a call took.
#[derive(Debug, Default)]
pub(super) struct Bill {
    /// The attempt under way.
    due: Option<Due>,
    /// `None`: no target with prices was asked.
    money: Option<Money>,
    tokens: u64,
    /// Whether some attempt at a target with prices is in the sum by its estimate.
    estimated: bool,
    /// Whether some attempt at a target without prices is not in the sum.
    unpriced: bool,
}

/// What the attempt under way takes.
#[derive(Debug)]
struct Due {
    /// Nothing, unless somebody asks: there are prices, or a limit.
    most: Cost,
    prices: Option<Tariff>,
    /// `None`: nothing bounds its key.
    reserved: Option<Reserved>,
}

impl Bill {
    /// What the call cost so far. `None`: no target with prices was asked, or an attempt is under way.
    pub(super) fn told(&self) -> Option<Spent> {
        let money = self.money.filter(|_| self.due.is_none())?;
        let known = if self.estimated || self.unpriced { Known::AtLeast } else { Known::Exactly };
        Some(Spent { money, known })
    }

    /// Tokens booked so far.
    pub(super) fn tokens(&self) -> u64 {
        self.tokens
    }

    fn book(&mut self, due: &Due, took: Took<Cost>) {
        let cost = match took {
            Took::Known(cost) => cost,
            Took::Unknown => due.most,
            Took::Nothing => Cost::default(),
        };
        self.tokens = self.tokens.saturating_add(cost.tokens);
        if due.prices.is_some() {
            self.money = Some(self.money.unwrap_or_default().plus(cost.money));
            self.estimated |= took == Took::Unknown;
        } else {
            self.unpriced |= took != Took::Nothing;
        }
    }
}

/// A usage as it is paid for, with `input` and `output` in all.
pub(super) fn priced(usage: Usage, input: u64, output: u64) -> Tokens {
    let [cached, cache_write] = [usage.cached, usage.cache_write].map(Option::unwrap_or_default);
    Tokens { input, cached, cache_write, output }
}

/// Whether a call may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purse {
    /// What the attempt may take is reserved, or nothing bounds it.
    Allows,
    /// Too little is left: the call goes elsewhere, or its end is planned.
    Refuses,
}

impl Call {
    /// Reserves the most that an attempt at the target at `index` may take. If that is more than is
    /// left, the call goes to another target of which this is not so, if there is one.
    pub(crate) fn reserve(&mut self, index: usize) -> Purse {
        debug_assert!(self.bill.due.is_none(), "the attempt before was booked");
        // What is simulated costs nobody anything.
        let payer = self.payer().filter(|_| !self.is_simulated(index));
        let prices = self.stops.get(index).and_then(|stop| stop.target.prices);
        let asks = prices.is_some() || payer.is_some();
        let most = if asks { self.most(index) } else { Cost::default() };
        let mut due = Due { most, prices, reserved: None };
        if let Some(caller) = payer {
            let wall = self.engine.clock().wall();
            let purses = self.engine.purses();
            match purses.reserve(&caller.name, caller.allowance, most, Day::of(wall)) {
                Ok(reserved) => due.reserved = Some(reserved),
                Err(sum) => {
                    self.is_short(index, &caller.name, &sum, wall);
                    return Purse::Refuses;
                }
            }
        }
        self.bill.due = Some(due);
        Purse::Allows
    }

    /// The target at `index` may take more than is left by `sum`: it and all others that may are left
    /// for good.
    fn is_short(&mut self, index: usize, key: &str, sum: &str, wall: Duration) {
        let day = Day::of(wall);
        let mut is_left = false;
        for other in 0..self.stops.len() {
            let Some(stop) = self.stops.get(other) else { continue };
            if stop.left || stop.unable.is_some() {
                continue;
            }
            let short = if other == index {
                Err(sum.to_owned())
            } else {
                self.engine.purses().check(key, self.most(other), day)
            };
            match short {
                Ok(()) => is_left = true,
                Err(sum) => self.leaves(other, format!("too dear: {sum}")),
            }
        }
        self.plan = Plan::Elsewhere;
        if !is_left {
            let left = Day::left(wall);
            let why = format!("the key `{key}`: {sum}; {}", Until(left));
            self.ends_here(Local::SpendLimit, why, Some(left));
        }
    }

    /// An attempt is over, but for a stream that goes on.
    pub(super) fn pays_for(&mut self, seen: &Seen) {
        let failed = seen.status.is_some_and(|status| status >= 400);
        match &seen.result {
            Ok(Got::Whole(whole)) => self.pays_usage(whole.reply.usage),
            Ok(Got::Live(_) | Got::Doubtful(..)) => {}
            Err(failure) if failed || failure.fault.was_turned_away() => self.pay(Took::Nothing),
            Err(_) => self.pay(Took::Unknown),
        }
    }

    /// Books the tokens a provider told; what it did not tell was as much as was reserved.
    pub(super) fn pays_usage(&mut self, usage: Usage) {
        let (Some(input), Some(output)) = (usage.input, usage.output) else {
            self.pay(Took::Unknown);
            return;
        };
        let prices = self.bill.due.as_ref().and_then(|due| due.prices);
        let money = prices.map(|prices| prices.cost(priced(usage, input, output)));
        let tokens = input.saturating_add(output);
        self.pay(Took::Known(Cost { money: money.unwrap_or_default(), tokens }));
    }

    /// Books what the present attempt took. Once; later calls do nothing.
    pub(super) fn pay(&mut self, took: Took<Cost>) {
        let Some(due) = self.bill.due.take() else { return };
        self.bill.book(&due, took);
        let Some(reserved) = due.reserved else { return };
        let Some(caller) = self.payer() else { return };
        let day = Day::of(self.engine.clock().wall());
        for told in self.engine.purses().settle(&caller.name, reserved, took, day) {
            self.engine.alert(Kind::Spend, &caller.name, || told);
        }
    }

    /// What the call cost so far, as [`Bill::told`].
    pub(crate) fn cost(&self) -> Option<Spent> {
        self.bill.told()
    }

    /// Who pays, if anything bounds that.
    fn payer(&self) -> Option<Arc<Caller>> {
        self.contract.ask.caller.as_ref().filter(|caller| caller.allowance.is_limited()).cloned()
    }

    /// Tokens that a reply of `target` has at most. `None`: neither the call nor the target says.
    pub(super) fn output_cap(&self, target: &Target) -> Option<u64> {
        self.cap.or(self.contract.cap.tokens).or(target.max_output_tokens)
    }

    /// A token a byte, also of what is added to the prompt, and the whole output cap for each choice.
    fn most(&self, index: usize) -> Cost {
        let Some(stop) = self.stops.get(index) else { return Cost::default() };
        let target = &stop.target;
        let body = self.contract.ask.body.len() as u64;
        let told: u64 = self.reask.iter().map(|turn| turn.text().len() as u64).sum();
        let begun = self.prefill(index).map_or(0, |text| text.len() as u64);
        let bytes =
            body.saturating_add(told).saturating_add(begun).saturating_add(stop.added.bytes);
        let input = stop.health.learned(bytes).filter(|_| !self.contract.may_hold_pictures());
        let input = input.unwrap_or(bytes);
        let cap = self.output_cap(target).unwrap_or(MOST_OUTPUT);
        let output = cap.saturating_mul(self.contract.choices());
        let money = target.prices.map_or(Money::ZERO, |prices| prices.most(input, output));
        Cost { money, tokens: input.saturating_add(output) }
    }
}
