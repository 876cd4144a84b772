//! Whether a model may be asked once more to mend its reply: bounds of count, tokens, cost and
//! time, and an end for a model that does not learn.
//!
//! [`Budget::check`] asks five questions, in this order:
//!
//! 1. is a re-ask left at this target?
//! 2. did the same errors come back after two re-asks? Then a third is no use, whatever the count
//!    allows;
//! 3. is there the time that the last attempt took?
//! 4. do the tokens of the next one fit what the call may spend on re-asks?
//! 5. does its cost?
//!
//! A bound is met exactly: a re-ask that would bring the sum to the bound is made.

use std::fmt;
use std::time::Duration;

use super::why::Secs;
use crate::money::Money;

/// How often the same errors may be seen at one target before it is given up: once in its own
/// answer, and once more after each of two re-asks that told of them.
pub const SAME_ERRORS: u32 = 3;

/// What is left of a call's re-asks at one target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Re-asks made at this target.
    pub made: u32,
    /// Re-asks the route allows at one target. 0: never.
    pub allowed: u32,
    /// How often this target has shown these same errors, now included; at least 1.
    pub seen: u32,
    /// How long the last attempt took: the next one is taken to need as long.
    pub took: Duration,
    /// Tokens, input and output. `None`: no bound.
    pub tokens: Option<Bound<u64>>,
    /// Money.
    pub cost: Cost,
}

/// A sum that has a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound<T> {
    /// What the re-asks of this call took so far.
    pub spent: T,
    /// What the next one is expected to take.
    pub next: T,
    /// What all of them may take.
    pub allowed: T,
}

/// What re-asks may cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// There is no bound.
    Unbound,
    /// There is a bound, and the model has no price: it cannot be kept.
    NoPrice,
    /// A bound that can be kept.
    Bound(Bound<Money>),
}

/// Why a re-ask is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The route allows none at all.
    Off,
    /// All that are allowed were made.
    Count {
        /// Re-asks made at this target.
        made: u32,
        /// Re-asks the route allows at one target.
        allowed: u32,
    },
    /// The model was told of the same errors often enough.
    SameErrors {
        /// How often they were seen.
        seen: u32,
    },
    /// It would not be done in time.
    Time {
        /// What is left for models.
        left: Duration,
        /// What the last attempt took.
        took: Duration,
    },
    /// Too many tokens.
    Tokens(Bound<u64>),
    /// Too much money.
    Cost(Bound<Money>),
    /// Its cost is bounded, and not known.
    NoPrice,
}

impl Budget {
    /// Whether another re-ask may be made with `left` of the models' deadline.
    ///
    /// # Errors
    /// The first bound that forbids it, with its numbers.
    pub fn check(&self, left: Duration) -> Result<(), Refusal> {
        let Self { made, allowed, seen, took, tokens, cost } = *self;
        if allowed == 0 {
            return Err(Refusal::Off);
        }
        if made >= allowed {
            return Err(Refusal::Count { made, allowed });
        }
        if seen >= SAME_ERRORS {
            return Err(Refusal::SameErrors { seen });
        }
        if took > left {
            return Err(Refusal::Time { left, took });
        }
        if let Some(bound) = tokens.filter(|b| b.spent.saturating_add(b.next) > b.allowed) {
            return Err(Refusal::Tokens(bound));
        }
        match cost {
            Cost::Bound(bound) if bound.spent.plus(bound.next) > bound.allowed => {
                Err(Refusal::Cost(bound))
            }
            Cost::NoPrice => Err(Refusal::NoPrice),
            Cost::Bound(_) | Cost::Unbound => Ok(()),
        }
    }

    /// A budget of `allowed` re-asks with nothing else bounded, none made yet.
    pub const fn of(allowed: u32) -> Self {
        Self { made: 0, allowed, seen: 1, took: Duration::ZERO, tokens: None, cost: Cost::Unbound }
    }
}

impl Refusal {
    /// A stable name for logs and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Off => "reasks_off",
            Self::Count { .. } => "reasks_spent",
            Self::SameErrors { .. } => "reask_same_errors",
            Self::Time { .. } => "reask_time",
            Self::Tokens(_) => "reask_tokens",
            Self::Cost(_) => "reask_cost",
            Self::NoPrice => "reask_no_price",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Off => f.write_str("the route allows no re-ask"),
            Self::Count { made, allowed } => write!(f, "{made} of {allowed} re-asks made here"),
            Self::SameErrors { seen } => {
                write!(f, "no re-ask: the same errors came {seen} times from here")
            }
            Self::Time { left, took } => {
                write!(f, "no re-ask: {} left, the last attempt took {}", Secs(left), Secs(took))
            }
            Self::Tokens(Bound { spent, next, allowed }) => write!(
                f,
                "no re-ask: {spent} tokens spent on re-asks + about {next} for the next is over \
                 the {allowed} allowed"
            ),
            Self::Cost(Bound { spent, next, allowed }) => write!(
                f,
                "no re-ask: {spent} spent on re-asks + about {next} for the next is over the \
                 {allowed} allowed"
            ),
            Self::NoPrice => {
                f.write_str("no re-ask: their cost is bounded and this model has no price")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn s(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn money(units: f64) -> Money {
        Money::of(units).unwrap()
    }

    fn tokens(spent: u64, next: u64, allowed: u64) -> Budget {
        Budget { tokens: Some(Bound { spent, next, allowed }), ..Budget::of(2) }
    }

    fn cost(spent: f64, next: f64, allowed: f64) -> Budget {
        let bound = Bound { spent: money(spent), next: money(next), allowed: money(allowed) };
        Budget { cost: Cost::Bound(bound), ..Budget::of(2) }
    }

    #[test]
    fn every_bound_speaks_for_itself_with_its_numbers() {
        let usual = Budget { took: s(2), ..Budget::of(2) };
        let rows = [
            (usual, "yes"),
            (Budget { made: 1, seen: 2, ..usual }, "yes"),
            (Budget::of(0), "reasks_off: the route allows no re-ask"),
            (Budget { made: 2, ..usual }, "reasks_spent: 2 of 2 re-asks made here"),
            (
                Budget { made: 2, allowed: 5, seen: 3, ..usual },
                "reask_same_errors: no re-ask: the same errors came 3 times from here",
            ),
            (Budget { took: s(10), ..usual }, "yes"),
            (
                Budget { took: Duration::from_millis(10_500), ..usual },
                "reask_time: no re-ask: 10 s left, the last attempt took 10.5 s",
            ),
            (tokens(600, 400, 1000), "yes"),
            (
                tokens(600, 401, 1000),
                "reask_tokens: no re-ask: 600 tokens spent on re-asks + about 401 for the next is \
                 over the 1000 allowed",
            ),
            (tokens(u64::MAX, u64::MAX, u64::MAX), "yes"),
            (cost(0.01, 0.01, 0.02), "yes"),
            (
                cost(0.01, 0.0101, 0.02),
                "reask_cost: no re-ask: 0.01 spent on re-asks + about 0.0101 for the next is over \
                 the 0.02 allowed",
            ),
            (
                Budget { cost: Cost::NoPrice, ..usual },
                "reask_no_price: no re-ask: their cost is bounded and this model has no price",
            ),
        ];
        for (budget, told) in rows {
            let said = match budget.check(s(10)) {
                Ok(()) => "yes".to_owned(),
                Err(refusal) => format!("{}: {refusal}", refusal.name()),
            };
            assert_eq!(said, told);
        }
    }

    #[test]
    fn the_order_of_the_questions_is_the_documented_one() {
        let all = Budget {
            made: 5,
            allowed: 5,
            seen: 3,
            took: s(11),
            tokens: Some(Bound { spent: 9, next: 9, allowed: 9 }),
            cost: Cost::NoPrice,
        };
        let names = |budget: Budget| budget.check(s(10)).unwrap_err().name();
        assert_eq!(names(all), "reasks_spent");
        let all = Budget { made: 0, ..all };
        assert_eq!(names(all), "reask_same_errors");
        let all = Budget { seen: 2, ..all };
        assert_eq!(names(all), "reask_time");
        let all = Budget { took: s(1), ..all };
        assert_eq!(names(all), "reask_tokens");
        let all = Budget { tokens: None, ..all };
        assert_eq!(names(all), "reask_no_price");
    }

    proptest! {
        #[test]
        fn a_run_of_re_asks_keeps_every_bound(
            allowed in 0_u32..8,
            most_tokens in 0_u64..5_000,
            most_cost in 0.0..0.01_f64,
            left in 0_u64..60,
            asks in prop::collection::vec((1_u64..2_000, 0.0..0.004_f64, 0_u64..10, 0_u8..3), 1..20),
        ) {
            let (mut spent, mut paid, mut left) = (0_u64, Money::ZERO, s(left));
            let mut seen = [0_u32; 3];
            let mut made = 0;
            for (next, price, took, errors) in asks {
                let times = &mut seen[usize::from(errors)];
                *times += 1;
                let price = money(price);
                let budget = Budget {
                    made,
                    allowed,
                    seen: *times,
                    took: s(took),
                    tokens: Some(Bound { spent, next, allowed: most_tokens }),
                    cost: Cost::Bound(Bound { spent: paid, next: price, allowed: money(most_cost) }),
                };
                if budget.check(left).is_err() {
                    break;
                }
                made += 1;
                spent += next;
                paid = paid.plus(price);
                left = left.checked_sub(s(took)).expect("it was judged to fit");
            }
            prop_assert!(made <= allowed);
            prop_assert!(spent <= most_tokens);
            prop_assert!(paid <= money(most_cost));
            // Two re-asks for each set of errors, and no more.
            prop_assert!(made <= 3 * (SAME_ERRORS - 1));
        }

        #[test]
        fn a_wider_bound_never_forbids_what_a_narrower_one_allows(
            made in 0_u32..4, allowed in 0_u32..4, seen in 1_u32..4, took in 0_u64..5, left in 0_u64..5,
            spent in 0_u64..50, next in 0_u64..50, most in 0_u64..100, more in 0_u64..100,
        ) {
            let bound = Bound { spent, next, allowed: most };
            let budget = Budget { made, allowed, seen, took: s(took), tokens: Some(bound), cost: Cost::Unbound };
            if budget.check(s(left)).is_ok() {
                let wider = Budget {
                    allowed: allowed + 1,
                    tokens: Some(Bound { allowed: most + more, ..bound }),
                    ..budget
                };
                prop_assert!(wider.check(s(left + more)).is_ok());
                let unbound = Budget { tokens: None, ..budget };
                prop_assert!(unbound.check(s(left)).is_ok());
            }
        }
    }
}
