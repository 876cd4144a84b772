//! Deterministic choice: the same seed and the same request give the same reply.

/// A small generator (splitmix64). Not for secrets.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// Dice whose throws depend on `seed` and on every part, in order.
    pub(crate) fn of(seed: u64, parts: &[&str]) -> Self {
        let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
        for part in parts {
            state = state.rotate_left(17) ^ digest(part.as_bytes());
        }
        let mut dice = Self(state);
        dice.throw();
        dice
    }

    /// The next 64 random bits.
    pub(crate) fn throw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..sides`. 0 when `sides` is 0.
    pub(crate) fn below(&mut self, sides: usize) -> usize {
        let Ok(wide) = u64::try_from(sides) else { return 0 };
        if wide == 0 {
            return 0;
        }
        usize::try_from(self.throw() % wide).unwrap_or(0)
    }

    /// One of `choices`, or none when there are none.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        choices.get(self.below(choices.len()))
    }
}

/// FNV-1a over `bytes`, 64 bits. Tells values apart; hides nothing from someone who guesses.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in bytes {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_parts_throw_the_same() {
        let throws = |seed, parts: &[&str]| {
            let mut dice = Dice::of(seed, parts);
            [dice.throw(), dice.throw(), dice.throw()]
        };
        assert_eq!(throws(7, &["a", "b"]), throws(7, &["a", "b"]));
        assert_ne!(throws(7, &["a", "b"]), throws(8, &["a", "b"]));
        assert_ne!(throws(7, &["a", "b"]), throws(7, &["b", "a"]));
    }

    #[test]
    fn no_sides_give_zero_and_no_choices_give_none() {
        let mut dice = Dice::of(1, &[]);
        assert_eq!(dice.below(0), 0);
        assert_eq!(dice.pick::<u8>(&[]), None);
        assert!((0..200).all(|_| dice.below(3) < 3));
    }
}
