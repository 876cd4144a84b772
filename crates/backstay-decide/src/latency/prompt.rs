//! How long a prompt is, roughly: what takes long with a long prompt is kept apart from what does
//! with a short one.

/// The largest prompts of each size but the last, in bytes: 1, 4, 16 and 64 thousand tokens of four
/// bytes. Bytes and not tokens, since those are estimated, and an estimate that moves would move the
/// limits of what was measured before.
const MOST: [u64; 4] = [4 << 10, 16 << 10, 64 << 10, 256 << 10];

/// A size of prompts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PromptSize(u8);

impl PromptSize {
    /// How many there are.
    pub const COUNT: usize = MOST.len() + 1;

    /// All of them, the smallest first.
    pub const ALL: [Self; Self::COUNT] = [Self(0), Self(1), Self(2), Self(3), Self(4)];

    /// The size of a prompt of `bytes` bytes.
    pub fn of(bytes: u64) -> Self {
        let larger = MOST.iter().filter(|most| bytes > **most).count();
        Self(u8::try_from(larger).unwrap_or(0))
    }

    /// Its place among them, from 0.
    pub fn index(self) -> usize {
        self.0.into()
    }

    /// Its name in answers and metrics: the most tokens of it, in thousands.
    pub const fn name(self) -> &'static str {
        match self.0 {
            0 => "1k",
            1 => "4k",
            2 => "16k",
            3 => "64k",
            _ => "over_64k",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_size_ends_where_the_next_begins() {
        let sizes = [0, 4096, 4097, 16_384, 16_385, 65_536, 65_537, 262_144, 262_145, u64::MAX];
        let sizes = sizes.map(|bytes| PromptSize::of(bytes).index());
        assert_eq!(sizes, [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(PromptSize::ALL.map(PromptSize::index), [0, 1, 2, 3, 4]);
        let names = PromptSize::ALL.map(PromptSize::name);
        assert_eq!(names, ["1k", "4k", "16k", "64k", "over_64k"]);
    }
}
