//! Prices and what tokens cost, in the currency the config's prices are in, whichever that is.
//!
//! Amounts are whole trillionths, so that a cent per million tokens is exact, sums lose nothing and
//! never fall below zero.

use std::fmt;

/// Trillionths in one unit of the currency.
const SCALE: f64 = 1e12;

/// Tokens a price is quoted for.
const QUOTED: f64 = 1e6;

/// The highest price that is taken for one, per million tokens.
const MOST: f64 = 1e6;

/// An amount of money. Zero: nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Money(u128);

/// What one token costs. Zero: it is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Price(u64);

/// What a model's tokens cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Prices {
    /// A token of input; one read from a cache counts as any other, so a sum is never too low.
    pub input: Price,
    /// A token of output, reasoning included.
    pub output: Price,
}

impl Money {
    /// Nothing.
    pub const ZERO: Self = Self(0);

    /// `units` of the currency, rounded to a trillionth. `None`: negative, no number, or over a
    /// million.
    pub fn of(units: f64) -> Option<Self> {
        if !(0.0..=MOST).contains(&units) {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 1e18 after the check above"
        )]
        let whole = (units * SCALE).round() as u128;
        Some(Self(whole))
    }

    /// Both together; stays at the largest amount there is.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// This without `other`; nothing if that is more.
    #[must_use]
    pub const fn less(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// `thousandths` of it, rounded down.
    #[must_use]
    pub const fn part(self, thousandths: u32) -> Self {
        let thousandths = thousandths as u128;
        // Exact for every amount: whole thousands first, then the rest.
        let whole = (self.0 / 1000).saturating_mul(thousandths);
        Self(whole.saturating_add(self.0 % 1000 * thousandths / 1000))
    }
}

impl Money {
    /// As a number of units of the currency, to be looked at.
    pub fn units(self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a number to be looked at")]
        let trillionths = self.0 as f64;
        trillionths / SCALE
    }
}

impl Price {
    /// What `tokens` cost at this price.
    pub const fn times(self, tokens: u64) -> Money {
        Money(self.0 as u128 * tokens as u128)
    }

    /// A price of `units` for a million tokens. `None`: negative, no number, or over a million.
    pub fn per_million(units: f64) -> Option<Self> {
        if !(0.0..=MOST).contains(&units) {
            return None;
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "0 to 1e12 after the check above"
        )]
        let each = (units * (SCALE / QUOTED)).round() as u64;
        Some(Self(each))
    }
}

impl Prices {
    /// What so many tokens cost.
    pub fn cost(&self, input: u64, output: u64) -> Money {
        let of = |price: Price, tokens: u64| u128::from(price.0) * u128::from(tokens);
        Money(of(self.input, input).saturating_add(of(self.output, output)))
    }
}

impl fmt::Display for Money {
    /// Six decimals, rounded up, without zeros at the end: `0.0123`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millionths = self.0.div_ceil(1_000_000);
        let (whole, rest) = (millionths / 1_000_000, millionths % 1_000_000);
        if rest == 0 {
            return write!(f, "{whole}");
        }
        let rest = format!("{rest:06}");
        write!(f, "{whole}.{}", rest.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn prices(input: f64, output: f64) -> Prices {
        let price = |units| Price::per_million(units).unwrap();
        Prices { input: price(input), output: price(output) }
    }

    #[test]
    fn tokens_cost_what_the_price_list_says() {
        let rows = [
            (3.0, 15.0, 1_000_000, 0, "3"),
            (3.0, 15.0, 1_000, 100, "0.0045"),
            (0.15, 0.6, 612, 40, "0.000116"),
            (0.0375, 0.0, 1, 0, "0.000001"),
            (0.0, 0.0, u64::MAX, u64::MAX, "0"),
        ];
        for (input, output, read, written, told) in rows {
            assert_eq!(prices(input, output).cost(read, written).to_string(), told);
        }
    }

    #[test]
    fn what_is_no_price_is_refused() {
        for units in [-0.01, f64::NAN, f64::INFINITY, 1_000_001.0] {
            assert_eq!(Price::per_million(units), None);
            assert_eq!(Money::of(units), None);
        }
        assert_eq!(Money::of(0.0), Some(Money::ZERO));
        assert_eq!(Money::of(0.05).unwrap().to_string(), "0.05");
    }

    #[test]
    fn amounts_are_taken_apart_without_a_loss() {
        let ten = Money::of(10.0).unwrap();
        assert_eq!(ten.part(800).to_string(), "8");
        assert_eq!((ten.part(0), ten.part(1000)), (Money::ZERO, ten));
        assert_eq!(ten.less(Money::of(2.5).unwrap()).to_string(), "7.5");
        assert_eq!(Money::ZERO.less(ten), Money::ZERO);
        assert_eq!(Money(1999).part(500), Money(999));
        assert_eq!(Money(u128::MAX).part(1000), Money(u128::MAX));
        assert_eq!(Price::per_million(3.0).unwrap().times(1_000_000).to_string(), "3");
        assert_eq!(Money::of(2.5).unwrap().units().to_string(), "2.5");
    }

    proptest! {
        #[test]
        fn more_tokens_never_cost_less(
            input in 0.0..1e6_f64, output in 0.0..1e6_f64, a: u64, b: u64, c: u64, d: u64,
        ) {
            let prices = prices(input, output);
            let (least, most) = (prices.cost(a.min(b), c.min(d)), prices.cost(a.max(b), c.max(d)));
            prop_assert!(least <= most);
            prop_assert!(most <= most.plus(least));
        }
    }
}
