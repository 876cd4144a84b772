//! What given limits can carry: sustainable rate, batch time, workers, and what retries cost.

use std::fmt;
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

/// Whether so many places suit a rate, by Little's law, with the numbers that say so.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workers {
    /// Calls a minute that the limits permit.
    pub rate: f64,
    /// How long one call takes on average.
    pub each: Duration,
    /// Calls in flight that keep the limit busy, rounded up.
    pub needed: f64,
    /// Places there are.
    pub places: u32,
}

impl Allowance {
    /// Compares `places` with what Little's law asks for.
    pub fn workers(self, each: Duration, places: u32) -> Workers {
        Workers { rate: self.rate(), each, needed: self.in_flight(each).ceil(), places }
    }
}

impl Workers {
    /// Whether the places cannot use what the limits permit.
    pub fn too_few(&self) -> bool {
        f64::from(self.places) < self.needed
    }

    /// Calls a minute that the places can carry.
    pub fn carried(&self) -> f64 {
        let each = self.each.as_secs_f64();
        if each <= 0.0 {
            return f64::INFINITY;
        }
        f64::from(self.places) / each * 60.0
    }
}

impl fmt::Display for Workers {
    /// `85.7 calls a minute of 4.0 s each need 6 places; there are 4, which carry 60.0 a minute`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rate, each, needed, places } = self;
        let each = each.as_secs_f64();
        write!(f, "{rate:.1} calls a minute of {each:.1} s each need {needed:.0} places; there ")?;
        write!(f, "are {places}")?;
        if self.too_few() {
            return write!(f, ", which carry {:.1} a minute", self.carried());
        }
        let idle = f64::from(*places) - needed;
        if idle >= 1.0 { write!(f, ", of which {idle:.0} only wait") } else { Ok(()) }
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
    fn six_places_keep_the_seeds_limit_busy_and_more_only_wait() {
        let four = Duration::from_secs(4);
        let told = |places| WORKED.workers(four, places).to_string();
        let need = "85.7 calls a minute of 4.0 s each need 6 places; there are";
        assert_eq!(told(6), format!("{need} 6"));
        assert_eq!(told(4), format!("{need} 4, which carry 60.0 a minute"));
        assert_eq!(told(9), format!("{need} 9, of which 3 only wait"));
        assert!(WORKED.workers(four, 5).too_few() && !WORKED.workers(four, 6).too_few());
        assert_eq!(WORKED.workers(Duration::ZERO, 1).carried(), f64::INFINITY);
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
