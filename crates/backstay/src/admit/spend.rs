//! What callers' keys have spent today, by `backstay_decide::spend`.
//!
//! An attempt reserves the most it may take before it is sent, and settles what it took; so calls
//! that run side by side cannot pass a limit together. A key without a limit keeps no account.

use std::collections::BTreeMap;
use std::fmt;

use backstay_decide::Money;
use backstay_decide::spend::{Day, Hold, Level, Overspent, Purse, Took};

use crate::sync::Mutex;

/// What a key may spend in a UTC day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allowance {
    /// In the currency of the models' prices. `None`: no limit. Nothing: only what is free.
    pub money: Option<Money>,
    /// In tokens, input and output. `None`: no limit. 0: none.
    pub tokens: Option<u64>,
}

impl Allowance {
    /// Whether anything bounds it.
    pub const fn is_limited(&self) -> bool {
        self.money.is_some() || self.tokens.is_some()
    }
}

/// What an attempt takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Nothing where the target has no price.
    pub(crate) money: Money,
    pub(crate) tokens: u64,
}

/// What a key spent on a day before the start, as the call log has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Before {
    pub(crate) key: String,
    /// In all.
    pub(crate) spent: Cost,
    /// Of it, by calls of which not all is known.
    pub(crate) estimated: Cost,
    /// How many of these there are, in money and in tokens.
    pub(crate) unknown: [u32; 2],
}

/// What a key spent today of its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spending {
    /// Its name.
    pub key: String,
    /// `None`: no limit.
    pub money: Option<Level<Money>>,
    /// `None`: no limit.
    pub tokens: Option<Level<u64>>,
}

impl Spending {
    /// What it spent of the limit that is nearer: 1 is all. 0 without a limit.
    pub fn share(&self) -> f64 {
        let money = self.money.map_or(0.0, |level| level.share());
        money.max(self.tokens.map_or(0.0, |level| level.share()))
    }
}

/// What one attempt may take. Settle it once, by [`Purses::settle`].
#[derive(Debug)]
#[must_use]
pub(crate) struct Reserved {
    money: Hold<Money>,
    tokens: Hold<u64>,
}

/// The accounts of all keys that have a limit.
#[derive(Debug, Default)]
pub(crate) struct Purses(Mutex<BTreeMap<String, Account>>);

#[derive(Debug)]
struct Account {
    money: Purse<Money>,
    tokens: Purse<u64>,
    allowed: Allowance,
}

impl Purses {
    /// Reserves `most` for an attempt of `key`.
    ///
    /// # Errors
    /// The sum that is over its limit.
    pub(crate) fn reserve(
        &self,
        key: &str,
        allowed: Allowance,
        most: Cost,
        day: Day,
    ) -> Result<Reserved, String> {
        let mut accounts = self.0.lock();
        if !accounts.contains_key(key) {
            accounts.insert(key.to_owned(), Account::new(allowed, day));
        }
        let Some(account) = accounts.get_mut(key) else { return Err("no account".into()) };
        account.allowed = allowed;
        account.check(most, day)?;
        let money = account.money.reserve(most.money, allowed.money, day).map_err(in_money)?;
        let tokens = account.tokens.reserve(most.tokens, allowed.tokens, day).map_err(in_tokens)?;
        Ok(Reserved { money, tokens })
    }

    /// Says whether `most` is left to `key`, and reserves nothing. Call it after
    /// [`Purses::reserve`]: a key without an account may spend all.
    ///
    /// # Errors
    /// As [`Purses::reserve`].
    pub(crate) fn check(&self, key: &str, most: Cost, day: Day) -> Result<(), String> {
        self.0.lock().get_mut(key).map_or(Ok(()), |account| account.check(most, day))
    }

    /// Opens the account of a key that spent something before the start.
    pub(crate) fn resume(&self, before: Before, allowed: Allowance, day: Day) {
        let Before { key, spent, estimated, unknown: [in_money, in_tokens] } = before;
        let money = Purse::resumed(day, spent.money, estimated.money, in_money);
        let tokens = Purse::resumed(day, spent.tokens, estimated.tokens, in_tokens);
        self.0.lock().insert(key, Account { money, tokens, allowed });
    }

    /// Books what an attempt of `key` took; the alerts that makes due, in words.
    pub(crate) fn settle(
        &self,
        key: &str,
        reserved: Reserved,
        took: Took<Cost>,
        day: Day,
    ) -> Vec<String> {
        let mut accounts = self.0.lock();
        let Some(account) = accounts.get_mut(key) else { return Vec::new() };
        let (money, tokens) = match took {
            Took::Known(cost) => (Took::Known(cost.money), Took::Known(cost.tokens)),
            Took::Unknown => (Took::Unknown, Took::Unknown),
            Took::Nothing => (Took::Nothing, Took::Nothing),
        };
        let Reserved { money: held, tokens: held_tokens } = reserved;
        let money = account.money.settle(held, money, account.allowed.money, day);
        let tokens = account.tokens.settle(held_tokens, tokens, account.allowed.tokens, day);
        let told = [money.map(|a| a.to_string()), tokens.map(|a| format!("in tokens, {a}"))];
        told.into_iter().flatten().collect()
    }

    /// How every key stands that has an account.
    pub(crate) fn levels(&self, day: Day) -> Vec<Spending> {
        let mut accounts = self.0.lock();
        accounts.iter_mut().map(|(key, account)| account.level(key, account.allowed, day)).collect()
    }

    /// How `key` stands that may spend `allowed`, also before its first call.
    pub(crate) fn level(&self, key: &str, allowed: Allowance, day: Day) -> Spending {
        match self.0.lock().get_mut(key) {
            Some(account) => account.level(key, allowed, day),
            None => Account::new(allowed, day).level(key, allowed, day),
        }
    }
}

impl Account {
    const fn new(allowed: Allowance, day: Day) -> Self {
        Self { money: Purse::new(day), tokens: Purse::new(day), allowed }
    }

    fn level(&mut self, key: &str, allowed: Allowance, day: Day) -> Spending {
        Spending {
            key: key.to_owned(),
            money: allowed.money.map(|limit| self.money.level(limit, day)),
            tokens: allowed.tokens.map(|limit| self.tokens.level(limit, day)),
        }
    }

    /// Both or neither: what one limit refuses is not reserved of the other.
    fn check(&mut self, most: Cost, day: Day) -> Result<(), String> {
        self.money.check(most.money, self.allowed.money, day).map_err(in_money)?;
        self.tokens.check(most.tokens, self.allowed.tokens, day).map_err(in_tokens)
    }
}

fn in_money(over: Overspent<Money>) -> String {
    over.to_string()
}

fn in_tokens(over: Overspent<u64>) -> String {
    format!("in tokens, {over}")
}

impl fmt::Display for Allowance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.money, self.tokens) {
            (Some(money), Some(tokens)) => write!(f, "{money} and {tokens} tokens a day"),
            (Some(money), None) => write!(f, "{money} a day"),
            (None, Some(tokens)) => write!(f, "{tokens} tokens a day"),
            (None, None) => f.write_str("no limit"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn cost(tokens: u64) -> Cost {
        Cost { money: Money::ZERO, tokens }
    }

    fn allowed(money: Option<f64>, tokens: Option<u64>) -> Allowance {
        Allowance { money: money.and_then(Money::of), tokens }
    }

    fn shares(purses: &Purses, day: Day) -> Vec<(String, f64)> {
        let levels = purses.levels(day).into_iter();
        levels.map(|spending| (spending.key.clone(), spending.share())).collect()
    }

    #[test]
    fn either_limit_refuses_and_what_the_other_reserved_comes_back() {
        let purses = Purses::default();
        let allowed = allowed(Some(1.0), Some(100));
        let most = Cost { money: Money::of(0.6).unwrap(), tokens: 101 };
        let told = purses.reserve("app", allowed, most, Day(1)).unwrap_err();
        assert_eq!(told, "in tokens, 0 spent + up to 101 for this call is over the 100 a day");
        let most = Cost { tokens: 50, ..most };
        let held = purses.reserve("app", allowed, most, Day(1)).unwrap();
        let told = purses.reserve("app", allowed, most, Day(1)).unwrap_err();
        assert_eq!(told, "0 spent + 0.6 reserved + up to 0.6 for this call is over the 1 a day");
        assert_eq!(purses.settle("app", held, Took::Nothing, Day(1)), Vec::<String>::new());
        assert!(purses.reserve("app", allowed, most, Day(1)).is_ok());
        assert!(purses.reserve("job", allowed, most, Day(1)).is_ok(), "each key has its own");
    }

    #[test]
    fn the_alert_comes_once_a_day_and_a_new_limit_holds_for_what_was_spent() {
        let purses = Purses::default();
        let limit = allowed(None, Some(100));
        let mut told = Vec::new();
        for (tokens, day) in [(70, 1), (15, 1), (10, 1), (90, 2)] {
            let held = purses.reserve("app", limit, cost(tokens), Day(day)).unwrap();
            told.push(purses.settle("app", held, Took::Known(cost(tokens)), Day(day)).len());
        }
        assert_eq!(told, [0, 1, 0, 1]);
        assert_eq!(shares(&purses, Day(2)), [("app".to_owned(), 0.9)]);
        let Spending { money, tokens, .. } = purses.level("app", limit, Day(2));
        assert_eq!((money, tokens.map(|level| level.alerted)), (None, Some(true)));
        let wider = allowed(None, Some(1000));
        let held = purses.reserve("app", wider, cost(500), Day(2)).unwrap();
        assert_eq!(purses.settle("app", held, Took::Unknown, Day(2)), Vec::<String>::new());
        assert_eq!(shares(&purses, Day(2)), [("app".to_owned(), 0.59)]);
        assert_eq!(shares(&purses, Day(3)), [("app".to_owned(), 0.0)]);
        let fresh = purses.level("job", limit, Day(3));
        let told = fresh.tokens.map(|level| (level.total.at_least, level.limit, level.alerted));
        assert_eq!(told, Some((0, 100, false)));
        assert_eq!(shares(&purses, Day(3)).len(), 1, "to look opens no account");
    }

    #[cfg(shuttle)]
    #[test]
    fn shuttled_threads_never_pass_a_limit_together() {
        use std::sync::Arc;

        const LIMIT: u64 = 80;
        /// Three attempts that each may take 30; what they took.
        fn spends(purses: &Purses, way: usize) -> u64 {
            let ends = [(Took::Known(cost(20)), 20), (Took::Unknown, 30), (Took::Nothing, 0)];
            let mut spent = 0;
            for round in 0..3 {
                let limit = allowed(None, Some(LIMIT));
                let Ok(held) = purses.reserve("app", limit, cost(30), Day(1)) else { continue };
                shuttle::thread::yield_now();
                let (end, took) = ends[(way + round) % 3];
                assert!(purses.settle("app", held, end, Day(1)).len() < 2);
                spent += took;
                let total = purses.0.lock().get_mut("app").unwrap().tokens.standing(Day(1));
                assert!(total.at_least + total.held <= LIMIT, "{total}");
            }
            spent
        }
        crate::sync::tried(|| {
            let purses = Arc::new(Purses::default());
            let threads = [0, 1].map(|way| {
                let purses = Arc::clone(&purses);
                shuttle::thread::spawn(move || spends(&purses, way))
            });
            let spent: u64 = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
            let total = purses.0.lock().get_mut("app").unwrap().tokens.standing(Day(1));
            assert_eq!((total.at_least, total.held), (spent, 0));
        });
    }
}
