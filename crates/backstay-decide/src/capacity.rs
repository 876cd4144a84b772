//! What given limits can carry: sustainable rate, batch time, workers, and what retries cost.

use std::time::Duration;

/// What an account allows, and what one call takes of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// Requests a minute.
    pub requests: f64,
    /// Tokens a minute.
    pub tokens: f64,
    /// Tokens one call takes on average, both directions. 0 or less: tokens do not bind.
    pub tokens_per_call: f64,
}

impl Allowance {
    /// Calls a minute that both limits permit: the smaller of the two.
    pub fn rate(self) -> f64 {
        if self.tokens_per_call <= 0.0 {
            return self.requests;
        }
        self.requests.min(self.tokens / self.tokens_per_call)
    }

    /// The least time `calls` can take. [`Duration::MAX`] if nothing is allowed at all.
    pub fn batch(self, calls: f64) -> Duration {
        Duration::try_from_secs_f64(calls / self.rate() * 60.0).unwrap_or(Duration::MAX)
    }

    /// Calls in flight that keep the limit busy when one call takes `each`: Little's law, arrival
    /// rate times time in the system. More workers than this only wait.
    pub fn in_flight(self, each: Duration) -> f64 {
        self.rate() / 60.0 * each.as_secs_f64()
    }
}

/// The most calls to a provider one action causes when `layers` layers try `attempts` times each.
pub const fn amplification(attempts: u64, layers: u32) -> u64 {
    attempts.saturating_pow(layers)
}

/// The chance that one of at most `attempts` independent tries succeeds, each failing with chance
/// `failure` (0 to 1).
pub fn success(failure: f64, attempts: i32) -> f64 {
    1.0 - failure.powi(attempts)
}

/// Tries a call makes on average under the same assumptions. During an incident failures are not
/// independent: expect `attempts` itself.
pub fn expected_attempts(failure: f64, attempts: i32) -> f64 {
    (0..attempts).map(|k| failure.powi(k)).sum()
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "these values are exact")]

    use super::*;

    const WORKED: Allowance =
        Allowance { requests: 600.0, tokens: 90_000.0, tokens_per_call: 1050.0 };

    #[test]
    fn the_worked_budget_comes_out_as_in_the_seed() {
        assert_eq!(format!("{:.1}", WORKED.rate()), "85.7");
        assert_eq!(format!("{:.0}", WORKED.batch(10_000.0).as_secs_f64() / 60.0), "117");
        assert_eq!(format!("{:.1}", WORKED.in_flight(Duration::from_secs(4))), "5.7");
    }

    #[test]
    fn the_request_limit_binds_when_calls_are_small() {
        assert_eq!(Allowance { tokens_per_call: 10.0, ..WORKED }.rate(), 600.0);
        assert_eq!(Allowance { tokens_per_call: 0.0, ..WORKED }.rate(), 600.0);
        assert_eq!(Allowance { requests: 0.0, ..WORKED }.batch(1.0), Duration::MAX);
    }

    #[test]
    fn retries_multiply_across_layers() {
        assert_eq!([1, 2, 3].map(|layers| amplification(3, layers)), [3, 9, 27]);
        assert_eq!(amplification(4, 3), 64);
        assert_eq!(amplification(u64::MAX, 9), u64::MAX);
    }

    #[test]
    fn three_tries_at_five_percent_cost_five_percent_more() {
        assert_eq!(format!("{:.6}", success(0.05, 3)), "0.999875");
        assert_eq!(format!("{:.4}", expected_attempts(0.05, 3)), "1.0525");
        assert_eq!(expected_attempts(1.0, 3), 3.0);
    }
}
