//! What a model's tokens cost, those from a cache and into one apart.

use crate::money::{Money, Price, Prices};

/// The tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Input, with what came from a cache and went into one.
    pub input: u64,
    /// Of it, from a cache; more than `input` counts as `input`.
    pub cached: u64,
    /// Of it, into a cache; more than is left beside `cached` counts as what is left.
    pub cache_write: u64,
    /// Output, reasoning included.
    pub output: u64,
}

/// A model's price list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tariff {
    /// Input and output.
    pub prices: Prices,
    /// A token of input that came from a cache. `None`: it costs as any other, so that a sum is never
    /// too low.
    pub cached: Option<Price>,
    /// A token of input that went into a cache. `None`: it costs as any other.
    pub cache_write: Option<Price>,
}

impl Tariff {
    /// What so many tokens cost.
    pub fn cost(&self, tokens: Tokens) -> Money {
        let cached = tokens.cached.min(tokens.input);
        let written = tokens.cache_write.min(tokens.input - cached);
        let of = |price: Option<Price>, tokens| price.unwrap_or(self.prices.input).times(tokens);
        let plain = self.prices.cost(tokens.input - cached - written, tokens.output);
        plain.plus(of(self.cached, cached)).plus(of(self.cache_write, written))
    }

    /// The most that a call may cost: all input at its dearest, and all of the output cap.
    pub fn most(&self, input: u64, cap: u64) -> Money {
        let Prices { input: plain, output } = self.prices;
        let apart = self.cached.max(self.cache_write).unwrap_or_default();
        Prices { input: plain.max(apart), output }.cost(input, cap)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tariff(input: f64, cached: Option<f64>, output: f64) -> Tariff {
        let price = |units| Price::per_million(units).expect("a price");
        Tariff {
            prices: Prices { input: price(input), output: price(output) },
            cached: cached.map(price),
            cache_write: None,
        }
    }

    #[test]
    fn input_from_a_cache_has_its_own_price() {
        let tokens = Tokens { input: 10_000, cached: 8000, cache_write: 0, output: 500 };
        let rows = [(Some(0.3), "0.0159"), (None, "0.0375"), (Some(0.0), "0.0135")];
        for (cached, told) in rows {
            assert_eq!(tariff(3.0, cached, 15.0).cost(tokens).to_string(), told, "{cached:?}");
        }
        let odd = Tokens { cached: u64::MAX, ..tokens };
        assert_eq!(tariff(3.0, Some(0.0), 15.0).cost(odd).to_string(), "0.0075");
    }

    #[test]
    fn input_into_a_cache_has_its_own_price_beside_what_is_read_from_one() {
        let tokens = Tokens { input: 10_000, cached: 3000, cache_write: 5000, output: 500 };
        let rows = [(None, "0.0294"), (Some(3.75), "0.03315"), (Some(0.0), "0.0144")];
        for (written, told) in rows {
            let cache_write = written.and_then(Price::per_million);
            let tariff = Tariff { cache_write, ..tariff(3.0, Some(0.3), 15.0) };
            assert_eq!(tariff.cost(tokens).to_string(), told, "{written:?}");
        }
        let dear = Tariff { cache_write: Price::per_million(6.0), ..tariff(3.0, Some(0.0), 0.0) };
        let odd = Tokens { cache_write: u64::MAX, ..tokens };
        assert_eq!(dear.cost(odd).to_string(), "0.042", "7000 are left beside the 3000");
        assert_eq!(dear.most(10_000, 0).to_string(), "0.06");
        let all = Tokens { input: u64::MAX, cached: 0, cache_write: u64::MAX, output: u64::MAX };
        assert!(dear.cost(all) >= dear.cost(odd), "nothing wraps around");
    }

    proptest! {
        #[test]
        fn no_call_costs_more_than_its_most(
            input in 0_u64..1_000_000, cached in 0_u64..1_000_000, cache_write in 0_u64..1_000_000,
            cap in 0_u64..100_000, wrote in 0_u64..100_000,
            prices in prop::array::uniform4(0.0..100.0_f64), has_cached: bool, has_write: bool,
        ) {
            let [dear, cheap, into, out] = prices;
            let tariff = Tariff {
                cache_write: has_write.then_some(into).and_then(Price::per_million),
                ..tariff(dear, has_cached.then_some(cheap), out)
            };
            let tokens = Tokens { input, cached, cache_write, output: wrote.min(cap) };
            prop_assert!(tariff.cost(tokens) <= tariff.most(input, cap));
        }
    }
}
