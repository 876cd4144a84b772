//! What was seen of one thing in the last slices of time, and which value a share of it is below.

use super::bucket::{BUCKETS, bucket, millis};
use super::{SLICES, Took};

/// The last slices of one thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    done: Grid,
    cut: Grid,
    /// What was measured to its end, in all slices.
    count: u32,
}

/// Counts by bucket and slice, for the buckets between the lowest and the highest that were ever
/// needed: once these are known nothing is allocated any more.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Grid {
    lowest: usize,
    rows: Vec<[u32; SLICES]>,
}

/// The same of one window or several, summed up over time.
pub(super) struct Summed {
    done: [u64; BUCKETS],
    cut: [u64; BUCKETS],
}

impl Window {
    /// How much was measured to its end.
    pub(super) fn count(&self) -> u32 {
        self.count
    }

    pub(super) fn note(&mut self, took: Took, slice: usize) {
        match took {
            Took::Done(took) => {
                self.done.add(bucket(took), slice);
                self.count = self.count.saturating_add(1);
            }
            Took::Cut(after) => self.cut.add(bucket(after), slice),
        }
    }

    /// Forgets a slice.
    pub(super) fn clear(&mut self, slice: usize) {
        self.count = self.count.saturating_sub(self.done.clear(slice));
        self.cut.clear(slice);
    }
}

impl Grid {
    fn add(&mut self, bucket: usize, slice: usize) {
        if self.rows.is_empty() {
            self.lowest = bucket;
        }
        let missing = self.lowest.saturating_sub(bucket);
        self.rows.splice(0..0, std::iter::repeat_n([0; SLICES], missing));
        self.lowest -= missing;
        let row = bucket - self.lowest;
        if row >= self.rows.len() {
            self.rows.resize(row + 1, [0; SLICES]);
        }
        let count = &mut self.rows[row][slice];
        *count = count.saturating_add(1);
    }

    /// Forgets a slice: how much that was.
    fn clear(&mut self, slice: usize) -> u32 {
        let counts = self.rows.iter_mut().map(|row| std::mem::take(&mut row[slice]));
        counts.fold(0, u32::saturating_add)
    }

    fn add_to(&self, sum: &mut [u64; BUCKETS]) {
        for (total, row) in sum[self.lowest..].iter_mut().zip(&self.rows) {
            *total += row.iter().copied().map(u64::from).sum::<u64>();
        }
    }
}

impl Summed {
    pub(super) fn of<'w>(windows: impl IntoIterator<Item = &'w Window>) -> Self {
        let mut sum = Self { done: [0; BUCKETS], cut: [0; BUCKETS] };
        for window in windows {
            window.done.add_to(&mut sum.done);
            window.cut.add_to(&mut sum.cut);
        }
        sum
    }

    /// The value in milliseconds that `share` of all does not exceed, by the estimate of Kaplan and
    /// Meier (1958): what was cut off is known to have been under way until then, and counts among
    /// what may still come, so it never makes the value smaller. Where too much was cut off to tell,
    /// the longest that was seen, which is too little. `None`: nothing was seen.
    pub(super) fn quantile(&self, share: f64) -> Option<f64> {
        let mut under_way: u64 = self.done.iter().chain(&self.cut).sum();
        let (mut lasting, mut longest) = (1.0, None);
        for (bucket, (done, cut)) in self.done.iter().zip(&self.cut).enumerate() {
            if done + cut == 0 {
                continue;
            }
            #[expect(clippy::cast_precision_loss, reason = "counts of minutes, far below 2^52")]
            let ended = *done as f64 / under_way as f64;
            lasting *= 1.0 - ended;
            longest = Some(millis(bucket));
            // 1e-9: the product of exact shares is off by less.
            if lasting <= 1.0 - share + 1e-9 {
                break;
            }
            under_way -= done + cut;
        }
        longest
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::super::bucket::ACCURACY;
    use super::*;

    fn window(done: &[u64], cut: &[u64], slice: impl Fn(usize) -> usize) -> Window {
        let mut window = Window::default();
        for (at, millis) in done.iter().enumerate() {
            window.note(Took::Done(Duration::from_millis(*millis)), slice(at));
        }
        for (at, millis) in cut.iter().enumerate() {
            window.note(Took::Cut(Duration::from_millis(*millis)), slice(at));
        }
        window
    }

    fn quantile(done: &[u64], cut: &[u64], share: f64) -> Option<f64> {
        Summed::of([&window(done, cut, |_| 0)]).quantile(share)
    }

    #[test]
    fn nothing_has_no_quantile_and_what_was_only_cut_is_as_long_as_it_was_seen() {
        assert_eq!(quantile(&[], &[], 0.5), None);
        let seen = quantile(&[], &[100, 5000], 0.5).unwrap();
        assert!((seen - 5000.0).abs() <= 100.0, "{seen}");
    }

    /// Kaplan and Meier by hand: at 10 one of four ends, 20 is cut off, at 30 one of two ends.
    #[test]
    fn what_is_cut_off_counts_among_what_may_still_come() {
        let near = |share, millis: f64| {
            let told = quantile(&[10, 30, 40], &[20], share).unwrap();
            assert!((told - millis).abs() <= millis * ACCURACY, "{share}: {told}");
        };
        near(0.25, 10.0);
        near(0.26, 30.0);
        near(0.62, 30.0);
        near(0.63, 40.0);
    }

    #[test]
    fn a_window_that_has_seen_a_range_allocates_no_more() {
        let mut window = window(&[1, 600_000], &[1, 600_000], |_| 0);
        let room = |window: &Window| (window.done.rows.capacity(), window.cut.rows.capacity());
        let before = room(&window);
        for round in 0..1000 {
            window.clear(round % SLICES);
            window.note(Took::Done(Duration::from_millis(round as u64 * 600)), round % SLICES);
        }
        assert_eq!(room(&window), before);
        assert_eq!(window.count(), u32::try_from(SLICES).unwrap(), "one a slice");
    }

    proptest! {
        #[test]
        fn a_quantile_is_within_two_percent(
            mut done in prop::collection::vec(1_u64..600_000, 1..300),
            share in 0.0_f64..=1.0,
        ) {
            let told = quantile(&done, &[], share).unwrap();
            done.sort_unstable();
            #[expect(
                clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss,
                reason = "some hundred values"
            )]
            let rank = ((share - 1e-9) * done.len() as f64).ceil().max(1.0) as usize;
            #[expect(clippy::cast_precision_loss, reason = "minutes")]
            let exact = done[rank - 1] as f64;
            prop_assert!((told - exact).abs() <= exact * (ACCURACY + 1e-9), "{told} for {exact}");
        }

        #[test]
        fn slices_and_windows_add_up(
            done in prop::collection::vec(1_u64..600_000, 1..200),
            cut in prop::collection::vec(1_u64..600_000, 0..50),
            share in 0.0_f64..=1.0,
            at in 0_usize..200,
        ) {
            let whole = quantile(&done, &cut, share);
            let sliced = Summed::of([&window(&done, &cut, |at| at % SLICES)]);
            prop_assert_eq!(sliced.quantile(share), whole);
            let (one, other) = done.split_at(at.min(done.len()));
            let windows = [window(one, &cut, |_| 0), window(other, &[], |_| 3)];
            prop_assert_eq!(Summed::of(&windows).quantile(share), whole);
        }

        #[test]
        fn what_is_cut_off_never_makes_a_quantile_smaller(
            done in prop::collection::vec(1_u64..600_000, 1..200),
            cut in prop::collection::vec(1_u64..600_000, 0..50),
            one_more in 1_u64..600_000,
            share in 0.0_f64..=1.0,
        ) {
            let before = quantile(&done, &cut, share);
            let after = quantile(&done, &[&cut[..], &[one_more]].concat(), share);
            prop_assert!(after >= before, "{after:?} after {before:?}");
        }

        #[test]
        fn clearing_every_slice_leaves_nothing(
            done in prop::collection::vec(1_u64..600_000, 0..100),
            cut in prop::collection::vec(1_u64..600_000, 0..100),
        ) {
            let mut window = window(&done, &cut, |at| at % SLICES);
            prop_assert_eq!(window.count() as usize, done.len());
            for slice in 0..SLICES {
                window.clear(slice);
            }
            prop_assert_eq!((window.count(), Summed::of([&window]).quantile(0.5)), (0, None));
        }
    }
}
