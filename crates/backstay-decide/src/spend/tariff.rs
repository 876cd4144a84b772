//! What a model's tokens cost, those from a cache apart.

use crate::money::{Money, Price, Prices};

/// The tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Input, with what came from a cache.
    pub input: u64,
    /// Of it, from a cache; more than `input` counts as `input`.
    pub cached: u64,
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
}

impl Tariff {
    /// What so many tokens cost.
    pub fn cost(&self, tokens: Tokens) -> Money {
        let cached = tokens.cached.min(tokens.input);
        let Some(price) = self.cached else { return self.prices.cost(tokens.input, tokens.output) };
        self.prices.cost(tokens.input - cached, tokens.output).plus(price.times(cached))
    }

    /// The most that a call may cost: nothing from a cache, and all of its output cap.
    pub fn most(&self, input: u64, cap: u64) -> Money {
        let dear = self.cost(Tokens { input, cached: input, output: cap });
        dear.max(self.cost(Tokens { input, cached: 0, output: cap }))
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
        }
    }

    #[test]
    fn input_from_a_cache_has_its_own_price() {
        let tokens = Tokens { input: 10_000, cached: 8000, output: 500 };
        let rows = [(Some(0.3), "0.0159"), (None, "0.0375"), (Some(0.0), "0.0135")];
        for (cached, told) in rows {
            assert_eq!(tariff(3.0, cached, 15.0).cost(tokens).to_string(), told, "{cached:?}");
        }
        let odd = Tokens { cached: u64::MAX, ..tokens };
        assert_eq!(tariff(3.0, Some(0.0), 15.0).cost(odd).to_string(), "0.0075");
    }

    proptest! {
        #[test]
        fn no_call_costs_more_than_its_most(
            input in 0_u64..1_000_000, cached in 0_u64..1_000_000, cap in 0_u64..100_000, wrote in 0_u64..100_000,
            prices in prop::array::uniform3(0.0..100.0_f64), has_cached: bool,
        ) {
            let [dear, cheap, out] = prices;
            let tariff = tariff(dear, has_cached.then_some(cheap), out);
            let tokens = Tokens { input, cached, output: wrote.min(cap) };
            prop_assert!(tariff.cost(tokens) <= tariff.most(input, cap));
        }
    }
}
