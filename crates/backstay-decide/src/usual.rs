//! What is usual of a target: how long to its first token, and how long it takes lately; how much it
//! writes.
//!
//! Single replies say little: one in twenty takes twice as long as most, whatever the load. So the
//! middle one of the last few is compared with the middle one of many before them, and only among
//! prompts of about the same size.

use std::time::Duration;

use crate::latency::PromptSize;

/// Replies that "lately" means. 9: where one in twenty is slow by chance, five of nine are so once in
/// 25,000 times.
const LATELY: usize = 9;

/// Replies that are kept of a size of prompts, the last ones included.
const KEPT: usize = 64;

/// Replies before the last ones that make a habit. Fewer say nothing.
const ENOUGH: usize = 16;

/// A usual time counts as no less than this: what is quicker doubles by chance, and nobody minds.
pub const LEAST: Duration = Duration::from_millis(250);

/// First tokens of one target.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FirstTokens {
    by_size: [Habit; PromptSize::COUNT],
}

/// What is known once a first token came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// The middle one of the last few, this one included.
    pub lately: Duration,
    /// What is usual, at least [`LEAST`]. `None`: too few came before.
    pub usual: Option<Duration>,
}

/// The last values of one kind, at most [`KEPT`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Ring {
    kept: Vec<u32>,
    /// Where the next one goes, once the ring is full.
    next: usize,
}

/// How many milliseconds it took.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Habit {
    ring: Ring,
    /// The middle of those before the last ones, as of some replies ago; 0: not known.
    usual: u32,
}

impl FirstTokens {
    /// Takes note of a first token that came `took` after a prompt of this size was sent.
    pub fn note(&mut self, size: PromptSize, took: Duration) -> Pace {
        let habit = &mut self.by_size[size.index()];
        habit.note(u32::try_from(took.as_millis()).unwrap_or(u32::MAX))
    }

    /// What is usual for a prompt of this size, at least [`LEAST`]. `None`: too little is known.
    pub fn usual(&self, size: PromptSize) -> Option<Duration> {
        self.by_size[size.index()].usual()
    }
}

/// How much a target writes: the longest of its last replies but one in twenty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outputs {
    ring: Ring,
}

impl Outputs {
    /// Takes note of a reply of `tokens` tokens.
    pub fn note(&mut self, tokens: u64) {
        self.ring.push(u32::try_from(tokens).unwrap_or(u32::MAX));
    }

    /// Tokens that nineteen of twenty replies do not exceed. `None`: too few came.
    pub fn likely(&self) -> Option<u64> {
        let mut room = [0; KEPT];
        let all = gathered(&mut room, self.ring.newest_first());
        if all.len() < ENOUGH {
            return None;
        }
        let at = all.len() * 19 / 20;
        Some((*all.select_nth_unstable(at).1).into())
    }
}

impl Ring {
    /// Takes a value in. Returns the place behind it: from 0 on again once the ring was full.
    fn push(&mut self, value: u32) -> usize {
        if self.kept.len() < KEPT {
            self.kept.push(value);
            return self.kept.len();
        }
        self.kept[self.next] = value;
        self.next = (self.next + 1) % KEPT;
        self.next
    }

    fn newest_first(&self) -> impl Iterator<Item = u32> {
        let (newer, older) = self.kept.split_at(self.next);
        newer.iter().rev().chain(older.iter().rev()).copied()
    }
}

impl Habit {
    fn note(&mut self, millis: u32) -> Pace {
        let place = self.ring.push(millis);
        // Looking at all of them now and then is enough: a habit changes slowly.
        if place.is_multiple_of(LATELY) {
            self.settle();
        }
        Pace { lately: self.lately(), usual: self.usual() }
    }

    fn usual(&self) -> Option<Duration> {
        (self.usual > 0).then(|| Duration::from_millis(self.usual.into()).max(LEAST))
    }

    fn lately(&self) -> Duration {
        let mut room = [0; LATELY];
        let last = gathered(&mut room, self.ring.newest_first());
        Duration::from_millis(middle(last).into())
    }

    /// Works out what is usual, from all but the last ones.
    fn settle(&mut self) {
        let mut room = [0; KEPT];
        let before = gathered(&mut room, self.ring.newest_first().skip(LATELY));
        if before.len() >= ENOUGH {
            self.usual = middle(before).max(1);
        }
    }
}

/// The first of these values, as many as there is room for.
fn gathered(room: &mut [u32], values: impl Iterator<Item = u32>) -> &mut [u32] {
    let mut count = 0;
    for (slot, value) in room.iter_mut().zip(values) {
        *slot = value;
        count += 1;
    }
    &mut room[..count]
}

/// The middle one; of two, the larger. 0 of none.
fn middle(millis: &mut [u32]) -> u32 {
    let at = millis.len() / 2;
    if millis.is_empty() { 0 } else { *millis.select_nth_unstable(at).1 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn noted(tokens: &mut FirstTokens, bytes: u64, times: &[u64]) -> Pace {
        let paces = times.iter().map(|millis| tokens.note(PromptSize::of(bytes), ms(*millis)));
        paces.last().unwrap()
    }

    #[test]
    fn a_habit_needs_some_replies_and_one_slow_reply_changes_nothing() {
        let mut tokens = FirstTokens::default();
        let pace = noted(&mut tokens, 100, &[400; 26]);
        assert_eq!(pace, Pace { lately: ms(400), usual: None });
        assert_eq!(
            tokens.note(PromptSize::of(100), ms(9000)),
            Pace { lately: ms(400), usual: Some(ms(400)) }
        );
        assert_eq!(tokens.usual(PromptSize::of(100)), Some(ms(400)));
        assert_eq!(tokens.usual(PromptSize::of(5000)), None, "larger prompts are another matter");
    }

    #[test]
    fn five_slow_replies_of_nine_are_lately_and_in_time_they_are_usual() {
        let mut tokens = FirstTokens::default();
        noted(&mut tokens, 100, &[400; 64]);
        assert_eq!(noted(&mut tokens, 100, &[1000; 4]).lately, ms(400));
        let pace = tokens.note(PromptSize::of(100), ms(1000));
        assert_eq!(pace, Pace { lately: ms(1000), usual: Some(ms(400)) });
        assert_eq!(noted(&mut tokens, 100, &[1000; 60]).usual, Some(ms(1000)));
        assert_eq!(noted(&mut tokens, 100, &[500; 64]).lately, ms(500));
    }

    #[test]
    fn what_is_likely_is_what_few_replies_exceed() {
        let mut outputs = Outputs::default();
        (0..15).for_each(|_| outputs.note(100));
        assert_eq!(outputs.likely(), None);
        outputs.note(150);
        assert_eq!(outputs.likely(), Some(150), "sixteen are enough");
        (0..48).for_each(|_| outputs.note(150));
        outputs.note(9000);
        assert_eq!(outputs.likely(), Some(150), "one in 64");
        (0..4).for_each(|_| outputs.note(u64::MAX));
        assert_eq!(outputs.likely(), Some(u32::MAX.into()));
    }

    proptest! {
        #[test]
        fn only_the_last_replies_say_what_is_likely_and_how_it_is_lately(
            replies in prop::collection::vec(0_u32..10_000, 16..300),
        ) {
            let (mut outputs, mut habit) = (Outputs::default(), Habit::default());
            for (ix, reply) in replies.iter().enumerate() {
                outputs.note((*reply).into());
                let lately = habit.note(*reply).lately;
                let before = &replies[..=ix];
                let mut kept = before[before.len().saturating_sub(KEPT)..].to_vec();
                let mut last = before[before.len().saturating_sub(LATELY)..].to_vec();
                kept.sort_unstable();
                last.sort_unstable();
                prop_assert_eq!(lately, ms(last[last.len() / 2].into()));
                let likely = (kept.len() >= ENOUGH).then(|| kept[kept.len() * 19 / 20].into());
                prop_assert_eq!(outputs.likely(), likely);
            }
        }
    }

    #[test]
    fn what_is_quicker_than_anybody_minds_counts_as_that() {
        let mut tokens = FirstTokens::default();
        let pace = noted(&mut tokens, u64::MAX, &[3; 64]);
        assert_eq!(pace, Pace { lately: ms(3), usual: Some(LEAST) });
    }
}
