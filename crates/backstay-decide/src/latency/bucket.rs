//! Lengths of time as buckets that grow by the same factor, so that each is known to 2 % whatever
//! its size.
//!
//! The mapping of `DDSketch` (Masson, Rim and Lee, VLDB 2019): bucket `i` holds what is over
//! `G^(i-1)` and at most `G^i` milliseconds, with `G = (1 + a) / (1 - a)`, and stands for the value
//! from which its two ends are equally far, as a share.

use std::time::Duration;

/// The share by which a value may be wrong: 2 %.
pub const ACCURACY: f64 = 0.02;

const GROWTH: f64 = (1.0 + ACCURACY) / (1.0 - ACCURACY);

/// The longest that is told apart. What is longer counts as this.
pub const LONGEST: Duration = Duration::from_mins(10);

/// How many there are. 333: the 332nd power of the growth is 586 s, the next one over [`LONGEST`].
pub(super) const BUCKETS: usize = 334;

/// The bucket of `took`. What is below a millisecond counts as one.
pub(super) fn bucket(took: Duration) -> usize {
    let millis = took.min(LONGEST).as_secs_f64() * 1000.0;
    let bucket = (millis.max(1.0).ln() / GROWTH.ln()).ceil();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "0 to 333, since 1 <= millis <= 600,000"
    )]
    let bucket = bucket as usize;
    bucket
}

/// What `bucket` stands for, in milliseconds.
pub(super) fn millis(bucket: usize) -> f64 {
    let power = i32::try_from(bucket).unwrap_or(i32::MAX);
    if power == 0 { 1.0 } else { GROWTH.powi(power) * (1.0 - ACCURACY) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_out_of_range_counts_as_the_end_of_it() {
        assert_eq!([Duration::ZERO, Duration::from_micros(999)].map(bucket), [0, 0]);
        assert_eq!(bucket(Duration::MAX), bucket(LONGEST));
        assert_eq!(bucket(LONGEST), BUCKETS - 1);
    }

    proptest! {
        #[test]
        fn a_bucket_stands_for_each_of_its_values_to_two_percent(micros in 1_000_u64..600_000_000) {
            let took = Duration::from_micros(micros);
            let exact = took.as_secs_f64() * 1000.0;
            let told = millis(bucket(took));
            prop_assert!((told - exact).abs() <= exact * (ACCURACY + 1e-9), "{told} for {exact}");
        }

        #[test]
        fn what_took_longer_is_in_no_lower_bucket(one in 0_u64..700_000_000, more in 0_u64..1_000_000) {
            let (short, long) = (Duration::from_micros(one), Duration::from_micros(one + more));
            prop_assert!(bucket(short) <= bucket(long));
        }
    }
}
