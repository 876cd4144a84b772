//! The pauses of one stream, a few of many: enough for a share of all, without a look at the clock
//! at each piece.

use std::time::Duration;

use super::Took;

/// Most pauses that are kept of a stream. A power of two.
const MOST: usize = 16;

/// Some pauses of one stream, evenly spread over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gaps {
    /// Milliseconds.
    kept: [u32; MOST],
    count: usize,
    /// One pause in so many is kept.
    every: u32,
    /// Pauses until the next one that is.
    skip: u32,
    /// The pause at which the stream was given up.
    given_up: Option<Duration>,
}

impl Default for Gaps {
    fn default() -> Self {
        Self { kept: [0; MOST], count: 0, every: 1, skip: 0, given_up: None }
    }
}

impl Gaps {
    /// A pause is over: whether it is worth a look at the clock. If so, tell it to [`Gaps::note`].
    pub fn is_due(&mut self) -> bool {
        if self.skip > 0 {
            self.skip -= 1;
            return false;
        }
        self.skip = self.every - 1;
        true
    }

    /// Keeps a pause.
    pub fn note(&mut self, gap: Duration) {
        if self.count == MOST {
            // From now on half as many, so half of those kept would not have been.
            for place in 1..MOST / 2 {
                self.kept[place] = self.kept[place * 2];
            }
            self.count = MOST / 2;
            self.every = self.every.saturating_mul(2);
            self.skip = self.every - 1;
        }
        self.kept[self.count] = u32::try_from(gap.as_millis()).unwrap_or(u32::MAX);
        self.count += 1;
    }

    /// The stream was given up after a pause of `gap`.
    pub fn gave_up(&mut self, gap: Duration) {
        self.given_up = Some(gap);
    }

    /// How long all pauses took together, about: each one kept stands for those that were not.
    pub fn sum(&self) -> Duration {
        let kept: u64 = self.kept[..self.count].iter().map(|millis| u64::from(*millis)).sum();
        Duration::from_millis(kept.saturating_mul(self.every.into()))
    }

    /// Those kept, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Took> + '_ {
        let kept = self.kept[..self.count].iter();
        let kept = kept.map(|millis| Took::Done(Duration::from_millis((*millis).into())));
        kept.chain(self.given_up.map(Took::Cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pauses kept of a stream of `count` pauses of 0 ms, 1 ms, 2 ms and so on.
    fn kept(count: u64) -> Vec<u128> {
        let mut gaps = Gaps::default();
        for millis in 0..count {
            if gaps.is_due() {
                gaps.note(Duration::from_millis(millis));
            }
        }
        let millis = |gap| match gap {
            Took::Done(gap) | Took::Cut(gap) => gap.as_millis(),
        };
        gaps.iter().map(millis).collect()
    }

    #[test]
    fn what_is_kept_stands_for_all() {
        for count in [0_u32, 1, 16, 17, 100, 1000] {
            let mut gaps = Gaps::default();
            for _ in 0..count {
                if gaps.is_due() {
                    gaps.note(Duration::from_millis(40));
                }
            }
            let all = Duration::from_millis(40) * count;
            assert!(gaps.sum().abs_diff(all) <= all / 8, "{count}: {:?}", gaps.sum());
        }
    }

    #[test]
    fn the_pause_at_which_a_stream_was_given_up_was_at_least_so_long() {
        let mut gaps = Gaps::default();
        gaps.note(Duration::from_secs(1));
        gaps.gave_up(Duration::from_secs(20));
        let all: Vec<_> = gaps.iter().collect();
        assert_eq!(all, [Took::Done(Duration::from_secs(1)), Took::Cut(Duration::from_secs(20))]);
    }

    #[test]
    fn a_short_stream_keeps_all_and_a_long_one_keeps_an_even_share() {
        assert_eq!(kept(0), []);
        assert_eq!(kept(16), (0..16).collect::<Vec<_>>());
        assert_eq!(kept(18), [0, 2, 4, 6, 8, 10, 12, 14, 16]);
        let long = kept(100_000);
        assert!((8..=16).contains(&long.len()), "{long:?}");
        let steps: Vec<_> = long.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(steps.iter().all(|step| *step == 8192), "{long:?}");
    }

    #[test]
    fn most_pauses_need_no_clock() {
        let mut gaps = Gaps::default();
        let mut looks = 0;
        for _ in 0..1000 {
            if gaps.is_due() {
                looks += 1;
                gaps.note(Duration::ZERO);
            }
        }
        assert!(looks < 100, "{looks}");
    }
}
