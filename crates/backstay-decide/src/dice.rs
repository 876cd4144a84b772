//! Chance, as something the caller hands in: the same dice give the same decisions.

use std::time::Duration;

/// A source of numbers in `[0, 1)`.
pub trait Dice {
    /// The next number, at least 0 and below 1.
    fn unit(&mut self) -> f64;

    /// A time drawn evenly from zero up to `limit`. A number outside `[0, 1)` is pulled into it.
    fn below(&mut self, limit: Duration) -> Duration {
        let unit = self.unit();
        let unit = if unit.is_nan() { 0.0 } else { unit.clamp(0.0, 1.0) };
        Duration::try_from_secs_f64(limit.as_secs_f64() * unit).unwrap_or(limit).min(limit)
    }
}

/// Dice that fall as written, first number first. Once they are used up every throw is 0.5.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scripted(pub Vec<f64>);

impl Dice for Scripted {
    fn unit(&mut self) -> f64 {
        if self.0.is_empty() { 0.5 } else { self.0.remove(0) }
    }
}

/// Dice that follow from a seed: splitmix64, one addition and three mixing steps a throw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeded(u64);

impl Seeded {
    /// Dice for `seed`. Any seed is good, 0 included.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }
}

impl Dice for Seeded {
    #[expect(clippy::cast_precision_loss, reason = "53 bits are exactly what an f64 holds")]
    fn unit(&mut self) -> f64 {
        // Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (2014).
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::float_cmp, reason = "the same steps give the same bits")]

    use super::*;

    #[test]
    fn scripted_dice_fall_as_written_and_then_in_the_middle() {
        let mut dice = Scripted(vec![0.25, 0.75]);
        assert_eq!([dice.unit(), dice.unit(), dice.unit()], [0.25, 0.75, 0.5]);
    }

    #[test]
    fn the_same_seed_gives_the_same_throws_spread_over_the_unit() {
        let (mut one, mut two) = (Seeded::new(7), Seeded::new(7));
        let throws: Vec<f64> = (0..10_000).map(|_| one.unit()).collect();
        assert!(throws.iter().all(|t| (0.0..1.0).contains(t) && *t == two.unit()));
        let mean = throws.iter().sum::<f64>() / 10_000.0;
        assert!((0.48..0.52).contains(&mean), "mean {mean}");
        assert_ne!(Seeded::new(0).unit(), Seeded::new(1).unit());
    }

    #[test]
    fn splitmix64_gives_its_published_first_output() {
        // The first output for seed 1234567 is 6457827717110365317.
        let top_bits = 6_457_827_717_110_365_317_u64 >> 11;
        let unit = Seeded::new(1_234_567).unit();
        assert_eq!(format!("{:.0}", unit * 2_f64.powi(53)), top_bits.to_string());
    }

    #[test]
    fn crooked_dice_cannot_leave_the_range() {
        let limit = Duration::from_secs(4);
        let mut dice = Scripted(vec![f64::NAN, -3.0, 9.0, f64::INFINITY]);
        let drawn: Vec<Duration> = (0..4).map(|_| dice.below(limit)).collect();
        assert_eq!(drawn, [Duration::ZERO, Duration::ZERO, limit, limit]);
        assert!(Scripted(vec![0.999]).below(Duration::MAX) < Duration::MAX);
    }
}
