//! How high a failure rate surely is, given the few calls seen.

/// The lower end of Wilson's score interval: the rate that lies below the true one with the
/// confidence of `z` standard deviations (1.28: 90 %). 0 for no calls, the plain rate for `z = 0`.
// E. B. Wilson (1927); unlike the normal interval it holds for few calls and for rates near 0.
pub fn lower_bound(failures: u32, calls: u32, z: f64) -> f64 {
    if calls == 0 {
        return 0.0;
    }
    let (n, square) = (f64::from(calls), z * z);
    let rate = f64::from(failures) / n;
    let middle = rate + square / (2.0 * n);
    let spread = z * (rate * (1.0 - rate) / n + square / (4.0 * n * n)).sqrt();
    (middle - spread) / (1.0 + square / n)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bound_agrees_with_a_calculation_by_hand() {
        // 10 of 50, z = 1.96: 0.1124, as in every text book's table.
        let rows = [
            (10, 50, 1.96, "0.1124"),
            (6, 20, 1.28, "0.1881"),
            (5, 20, 1.28, "0.1483"),
            (20, 20, 1.28, "0.9243"),
            (0, 20, 1.28, "0.0000"),
            (3, 20, 0.0, "0.1500"),
            (0, 0, 1.28, "0.0000"),
        ];
        for (failures, calls, z, bound) in rows {
            assert_eq!(format!("{:.4}", lower_bound(failures, calls, z).abs()), bound);
        }
    }

    proptest! {
        #[test]
        fn the_bound_is_below_the_rate_and_grows_with_the_failures(calls in 1_u32..5000, part in 0.0..1.0_f64) {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most `calls`")]
            let failures = (f64::from(calls) * part) as u32;
            let bound = lower_bound(failures, calls, 1.28);
            prop_assert!(bound <= f64::from(failures) / f64::from(calls) + 1e-12);
            prop_assert!((-1e-12..=1.0).contains(&bound));
            prop_assert!(bound < lower_bound(failures + 1, calls + 1, 1.28));
        }
    }
}
