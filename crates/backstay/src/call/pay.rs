//! Pays for attempts from the purse of the caller's key, where that has a limit.

use std::sync::Arc;
use std::time::Duration;

use backstay_decide::alert::Kind;
use backstay_decide::recover::LastResort;
use backstay_decide::spend::{Day, Took, Until};
use backstay_decide::{Local, Money};
use backstay_wire::Usage;

use super::{Call, End, Plan};
use crate::admit::spend::Cost;
use crate::attempt::{Got, Seen};
use crate::contract::Caller;
use crate::fault::CallError;
use crate::record::Step;

/// Tokens that a reply is taken to have at most when neither the call nor the target says.
const MOST_OUTPUT: u64 = 16_384;

/// Whether a call may go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purse {
    /// What the attempt may take is reserved, or nothing bounds it.
    Allows,
    /// It is empty: the call's end is planned.
    Refuses,
}

impl Call {
    /// Reserves the most that an attempt at the target at `index` may take.
    pub(crate) fn reserve(&mut self, index: usize) -> Purse {
        let Some(caller) = self.payer() else { return Purse::Allows };
        // A stream that was given up before its end.
        self.pay(Took::Unknown);
        let wall = self.engine.clock().wall();
        let most = self.most(index);
        let purses = self.engine.purses();
        match purses.reserve(&caller.name, caller.allowance, most, Day::of(wall)) {
            Ok(reserved) => {
                self.reserved = Some(reserved);
                Purse::Allows
            }
            Err(sum) => {
                let left = Day::left(wall);
                let why = format!("the key `{}`: {sum}; {}", caller.name, Until(left));
                self.is_broke(why, left);
                Purse::Refuses
            }
        }
    }

    fn is_broke(&mut self, why: String, left: Duration) {
        self.plan = Plan::Over;
        let note = format!("{why}; see `backstay explain {}`", self.contract.call_id);
        self.tell(Step::Decided { next: "end".into(), why });
        if self.best.is_some() {
            self.falls_back();
            return;
        }
        self.end = Some(match self.last_resort() {
            LastResort::Has => End::LastResort,
            LastResort::HasNot => {
                let error = CallError::local(Local::SpendLimit, note);
                End::Fail(Box::new(error.again_after(Some(left))))
            }
        });
    }

    /// An attempt is over, but for a stream that goes on.
    pub(super) fn pays_for(&mut self, seen: &Seen) {
        if self.reserved.is_none() {
            return;
        }
        let failed = seen.status.is_some_and(|status| status >= 400);
        match &seen.result {
            Ok(Got::Whole(whole)) => self.pays_usage(whole.reply.usage),
            Ok(Got::Live(_) | Got::LiveRefusal(_)) => {}
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
        let prices = self.stop().and_then(|stop| stop.target.prices);
        let money = prices.map_or(Money::ZERO, |prices| prices.cost(input, output));
        self.pay(Took::Known(Cost { money, tokens: input.saturating_add(output) }));
    }

    /// Settles what the present attempt reserved, if it did.
    pub(super) fn pay(&mut self, took: Took<Cost>) {
        let Some(reserved) = self.reserved.take() else { return };
        let Some(caller) = self.payer() else { return };
        let day = Day::of(self.engine.clock().wall());
        for told in self.engine.purses().settle(&caller.name, reserved, took, day) {
            self.engine.alert(Kind::Spend, &caller.name, || told);
        }
    }

    /// Who pays, if anything bounds that.
    fn payer(&self) -> Option<Arc<Caller>> {
        self.contract.ask.caller.as_ref().filter(|caller| caller.allowance.is_limited()).cloned()
    }

    /// A token a byte, also of what a re-ask adds, and the whole output cap for each choice.
    fn most(&self, index: usize) -> Cost {
        let Some(stop) = self.stops.get(index) else { return Cost::default() };
        let target = &stop.target;
        let body = self.contract.ask.body.len() as u64;
        let told: u64 = self.reask.iter().map(|turn| turn.text().len() as u64).sum();
        let bytes = body.saturating_add(told);
        let input = stop.health.learned(bytes).filter(|_| !self.contract.may_hold_pictures());
        let input = input.unwrap_or(bytes);
        let cap = self.cap.or(self.contract.cap.tokens).or(target.max_output_tokens);
        let output = cap.unwrap_or(MOST_OUTPUT).saturating_mul(self.contract.choices());
        let money = target.prices.map_or(Money::ZERO, |prices| prices.cost(input, output));
        Cost { money, tokens: input.saturating_add(output) }
    }
}
