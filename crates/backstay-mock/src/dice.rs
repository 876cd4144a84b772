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
        Self::from_digest(state)
    }

    /// Dice whose throws depend on `state`.
    pub(crate) fn from_digest(state: u64) -> Self {
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

/// 64 bits of `bytes`, in four lanes: a 50 KB prompt takes a few microseconds. Tells values apart;
/// hides nothing from someone who guesses.
pub(crate) fn digest(bytes: &[u8]) -> u64 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut lanes = [1_u64, 2, 3, 4].map(|lane| lane.wrapping_mul(MIX));
    let (blocks, rest) = bytes.as_chunks::<32>();
    let mut last = [0; 32];
    for (to, from) in last.iter_mut().zip(rest) {
        *to = *from;
    }
    for block in blocks.iter().chain(std::iter::once(&last)) {
        for (lane, word) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
            *lane = (lane.rotate_left(29) ^ u64::from_le_bytes(*word)).wrapping_mul(MIX);
        }
    }
    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
    let mixed =
        lanes.iter().fold(length, |all, lane| (all.rotate_left(31) ^ lane).wrapping_mul(MIX));
    mixed ^ (mixed >> 32)
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
    fn digests_differ_in_every_byte_and_in_length() {
        let text: Vec<u8> = (0..100).collect();
        let mut seen = std::collections::BTreeSet::new();
        for at in 0..=text.len() {
            assert!(seen.insert(digest(&text[..at])));
        }
        for at in 0..text.len() {
            let mut other = text.clone();
            other[at] ^= 1;
            assert!(seen.insert(digest(&other)), "byte {at}");
        }
        assert_ne!(digest(b"a"), digest(b"a\0"));
    }

    #[test]
    fn no_sides_give_zero_and_no_choices_give_none() {
        let mut dice = Dice::of(1, &[]);
        assert_eq!(dice.below(0), 0);
        assert_eq!(dice.pick::<u8>(&[]), None);
        assert!((0..200).all(|_| dice.below(3) < 3));
    }
}
