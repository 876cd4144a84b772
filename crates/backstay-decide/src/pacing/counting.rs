//! What a request takes of a limit, by the provider's own way of counting.
//!
//! Providers differ: some count the whole output cap when a request comes, some what was written;
//! some do not count input that came from a cache. What a request costs is another matter: see
//! [`crate::spend`].

use super::Cost;

/// Whether input read from the provider's cache counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cached {
    /// It does not (Anthropic, and the default: who counts too much throttles its caller for
    /// nothing).
    #[default]
    Free,
    /// It does, as any other.
    Counted,
}

/// What output is counted when a request comes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Upfront {
    /// The output cap (OpenAI, Azure, Cerebras), the default: too much rather than too little.
    #[default]
    Cap,
    /// What is expected, at most the cap.
    Expected,
}

/// How a provider counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counting {
    /// Input from a cache.
    pub cached: Cached,
    /// Output, when the request comes.
    pub upfront: Upfront,
}

/// What is known before a request is sent. All in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Estimate {
    /// Its input.
    pub input: u64,
    /// Its output cap; `None`: it has none.
    pub cap: Option<u64>,
    /// The output that is expected, such as the 95th percentile of the route's past replies.
    pub expected: u64,
}

/// What a reply says that it took. All in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Input, with what came from a cache.
    pub input: u64,
    /// Of it, from a cache; more than `input` counts as `input`.
    pub cached: u64,
    /// Output, reasoning included.
    pub output: u64,
}

impl Counting {
    /// What to reserve.
    pub fn reserve(self, estimate: Estimate) -> Cost {
        let Estimate { input, cap, expected } = estimate;
        let output = match (self.upfront, cap) {
            (Upfront::Cap, Some(cap)) => cap,
            (Upfront::Expected, Some(cap)) => expected.min(cap),
            (Upfront::Cap | Upfront::Expected, None) => expected,
        };
        Cost::request(input, output)
    }

    /// What was counted in the end.
    pub fn settle(self, usage: Usage) -> Cost {
        let Usage { input, cached, output } = usage;
        let input = match self.cached {
            Cached::Counted => input,
            Cached::Free => input.saturating_sub(cached),
        };
        Cost::request(input, output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Case B230: 8,000 of 10,000 from a cache are 2,000 by default.
    #[test]
    fn cached_input_counts_as_the_provider_says() {
        let usage = Usage { input: 10_000, cached: 8000, output: 0 };
        assert_eq!(Counting::default().settle(usage), Cost::request(2000, 0));
        let all = Counting { cached: Cached::Counted, ..Counting::default() };
        assert_eq!(all.settle(usage), Cost::request(10_000, 0));
        let odd = Usage { cached: 20_000, output: 7, ..usage };
        assert_eq!(Counting::default().settle(odd), Cost::request(0, 7));
    }

    #[test]
    fn the_cap_is_reserved_or_what_is_expected_of_it() {
        let expected = Counting { upfront: Upfront::Expected, ..Counting::default() };
        let rows =
            [(Some(4096), 150, 4096, 150), (Some(100), 150, 100, 100), (None, 150, 150, 150)];
        for (cap, likely, by_cap, by_expected) in rows {
            let estimate = Estimate { input: 900, cap, expected: likely };
            assert_eq!(Counting::default().reserve(estimate), Cost::request(900, by_cap));
            assert_eq!(expected.reserve(estimate), Cost::request(900, by_expected));
        }
    }
}
