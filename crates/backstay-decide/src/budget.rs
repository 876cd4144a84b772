//! Whether a prompt and its output cap fit the model's window, and the sum that shows it.

use std::fmt;

/// The part of the window held back for the error of the token count, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Margin(u32);

impl Margin {
    /// One tenth of the window.
    pub const TENTH: Self = Self(100);
    /// Nothing held back.
    pub const NONE: Self = Self(0);

    /// `thousandths` of the window, 0 to 1000; more counts as 1000.
    pub const fn per_mille(thousandths: u32) -> Self {
        Self(match thousandths {
            0..=1000 => thousandths,
            _ => 1000,
        })
    }

    /// What of `window` may be used, rounded down.
    const fn allowed(self, window: u64) -> u64 {
        let kept = 1000 - self.0 as u64;
        // Exact for every window: whole thousands first, then the rest.
        window / 1000 * kept + window % 1000 * kept / 1000
    }
}

/// The sum, whichever way it came out. All in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fits {
    /// The prompt, as estimated.
    pub prompt: u64,
    /// The output cap.
    pub cap: u64,
    /// What may be used: the window without its margin.
    pub allowed: u64,
}

impl Fits {
    /// Prompt and cap together; saturates.
    pub const fn need(&self) -> u64 {
        self.prompt.saturating_add(self.cap)
    }
}

impl fmt::Display for Fits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { prompt, cap, allowed } = self;
        write!(f, "prompt~{prompt} + output cap {cap} = {} vs allowed {allowed}", self.need())
    }
}

/// The request is too large for the window: it has to be shortened, or its cap lowered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverBudget(pub Fits);

impl fmt::Display for OverBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for OverBudget {}

/// Checks that `prompt + cap` fits `window` less `margin`. A window of 0 means nothing fits.
///
/// # Errors
/// [`OverBudget`] with the sum, when it does not.
pub const fn check(prompt: u64, cap: u64, window: u64, margin: Margin) -> Result<Fits, OverBudget> {
    let sum = Fits { prompt, cap, allowed: margin.allowed(window) };
    if sum.need() <= sum.allowed { Ok(sum) } else { Err(OverBudget(sum)) }
}

/// Whether an upper bound of `need` tokens is close enough to `window` to deserve a better count:
/// over three quarters of it. Below that no count could change the answer.
pub const fn wants_better_count(need: u64, window: u64) -> bool {
    need > window / 4 * 3 + window % 4 * 3 / 4
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_sums_print_as_in_the_seed() {
        let short = check(24, 300, 8000, Margin::TENTH).unwrap();
        assert_eq!(short.to_string(), "prompt~24 + output cap 300 = 324 vs allowed 7200");
        let big = check(7613, 300, 8000, Margin::TENTH).unwrap_err();
        assert_eq!(big.to_string(), "prompt~7613 + output cap 300 = 7913 vs allowed 7200");
    }

    #[test]
    fn the_last_token_that_fits_fits() {
        assert!(check(6900, 300, 8000, Margin::TENTH).is_ok());
        assert!(check(6901, 300, 8000, Margin::TENTH).is_err());
        assert!(check(1, 0, 0, Margin::NONE).is_err());
        assert!(check(1, 0, 1000, Margin::per_mille(5000)).is_err());
        assert!(check(u64::MAX, u64::MAX, u64::MAX, Margin::NONE).is_ok());
        assert!(check(u64::MAX, 1, u64::MAX - 1, Margin::NONE).is_err());
    }

    #[test]
    fn a_better_count_is_worth_it_past_three_quarters() {
        assert!(!wants_better_count(6000, 8000));
        assert!(wants_better_count(6001, 8000));
        assert!(!wants_better_count(3, 5));
        assert!(wants_better_count(4, 5));
    }

    proptest! {
        #[test]
        fn three_quarters_are_exact_for_every_window(need: u64, window: u64) {
            let near = u128::from(need) > u128::from(window) * 3 / 4;
            prop_assert_eq!(wants_better_count(need, window), near);
            let edge = u64::try_from(u128::from(window) * 3 / 4).unwrap();
            prop_assert!(!wants_better_count(edge, window) && wants_better_count(edge + 1, window));
        }

        #[test]
        fn what_is_allowed_is_the_window_less_the_margin_rounded_down(window: u64, thousandths in 0_u32..=1000) {
            let exact = u128::from(window) * u128::from(1000 - thousandths) / 1000;
            prop_assert_eq!(u128::from(Margin::per_mille(thousandths).allowed(window)), exact);
        }
    }
}
