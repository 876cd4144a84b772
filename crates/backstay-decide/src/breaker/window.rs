//! What the last calls of a target were like: counts of the last minute, and where that minute held
//! too few calls, the last ones before it.
//!
//! Outcomes are counted when they are known, not when their call began: a call may take longer than
//! the window is wide.

use std::collections::VecDeque;
use std::time::Duration;

use crate::time::Moment;

/// Slices of the window. A count leaves it when its whole slice is out, so the window is at most a
/// twelfth shorter than it says.
const SLICES: usize = 12;

/// Most single outcomes kept for the stretch: bounds the memory of a target, whatever the config.
pub const MAX_RECENT: usize = 1000;

/// How one counted call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    Well,
    Badly,
}

/// Calls of a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// Calls that were counted.
    pub calls: u32,
    /// Those among them that failed.
    pub failures: u32,
    /// The time they are from, back from now.
    pub span: Duration,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Slice {
    /// Which slice since the clock's origin.
    number: u64,
    calls: u32,
    failures: u32,
}

/// The counts of one breaker.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Window {
    /// What the slices were numbered by; another one after a reload.
    width: Duration,
    slices: [Slice; SLICES],
    /// The last outcomes, oldest first.
    recent: VecDeque<(Moment, Ended)>,
}

impl Window {
    /// Counts an outcome at `now`; `keep` is how many single outcomes a stretch may need.
    pub(super) fn count(&mut self, ended: Ended, now: Moment, width: Duration, keep: u32) {
        if self.width != width {
            self.refit(width);
        }
        add(&mut self.slices, ended, now, width);
        self.recent.push_back((now, ended));
        let keep = usize::try_from(keep).unwrap_or(MAX_RECENT).min(MAX_RECENT);
        while self.recent.len() > keep {
            self.recent.pop_front();
        }
    }

    /// The calls of the last `width`, or else the last `least` calls if they are not older than
    /// `stretch`. `None`: there are not `least` of either.
    pub(super) fn tally(
        &self,
        now: Moment,
        width: Duration,
        stretch: Duration,
        least: u32,
    ) -> Option<Tally> {
        let tally = self.in_window(now, width);
        if tally.calls >= least {
            return Some(tally);
        }
        let least = usize::try_from(least).ok()?;
        let last = self.recent.iter().rev().take(least);
        let young: Vec<_> = last.take_while(|(at, _)| now.since(*at) <= stretch).collect();
        if young.len() < least {
            return None;
        }
        let bad = young.iter().filter(|(_, ended)| *ended == Ended::Badly).count();
        Some(Tally {
            calls: u32::try_from(young.len()).ok()?,
            failures: u32::try_from(bad).ok()?,
            span: young.last().map_or(Duration::ZERO, |(at, _)| now.since(*at)),
        })
    }

    /// The calls of the last `width`.
    pub(super) fn in_window(&self, now: Moment, width: Duration) -> Tally {
        let mut tally = Tally { calls: 0, failures: 0, span: width };
        if self.width != width {
            let young = self.recent.iter().filter(|(at, _)| now.since(*at) < width);
            for (_, ended) in young {
                tally.calls += 1;
                tally.failures += u32::from(*ended == Ended::Badly);
            }
            return tally;
        }
        let current = number_at(now, width);
        for slice in &self.slices {
            // A window is at most as wide as all its slices.
            if slice.number.saturating_add(SLICES as u64) > current {
                tally.calls = tally.calls.saturating_add(slice.calls);
                tally.failures = tally.failures.saturating_add(slice.failures);
            }
        }
        tally
    }

    /// Numbers the slices by another width, with what is known one by one.
    fn refit(&mut self, width: Duration) {
        self.width = width;
        self.slices = [Slice::default(); SLICES];
        for &(at, ended) in &self.recent {
            add(&mut self.slices, ended, at, width);
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.width = Duration::ZERO;
        self.slices = [Slice::default(); SLICES];
        self.recent.clear();
    }
}

fn add(slices: &mut [Slice; SLICES], ended: Ended, at: Moment, width: Duration) {
    let number = number_at(at, width);
    let Some(slice) = slices.get_mut(place(number)) else { return };
    if slice.number < number {
        *slice = Slice { number, ..Slice::default() };
    }
    slice.calls = slice.calls.saturating_add(1);
    slice.failures = slice.failures.saturating_add(u32::from(ended == Ended::Badly));
}

fn number_at(now: Moment, width: Duration) -> u64 {
    let slice = (width.as_nanos() / SLICES as u128).max(1);
    u64::try_from(now.since_origin().as_nanos() / slice).unwrap_or(u64::MAX)
}

fn place(number: u64) -> usize {
    usize::try_from(number % SLICES as u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_mins(1);
    const TEN: Duration = Duration::from_mins(10);

    const fn at(seconds: u64) -> Moment {
        Moment::at(Duration::from_secs(seconds))
    }

    fn counted(outcomes: impl IntoIterator<Item = (u64, Ended)>, keep: u32) -> Window {
        let mut window = Window::default();
        for (seconds, ended) in outcomes {
            window.count(ended, at(seconds), MINUTE, keep);
        }
        window
    }

    fn calls(window: &Window, now: u64) -> (u32, u32) {
        let tally = window.in_window(at(now), MINUTE);
        (tally.calls, tally.failures)
    }

    #[test]
    fn a_count_leaves_with_its_slice_of_five_seconds() {
        let window = counted([(2, Ended::Badly), (4, Ended::Well), (5, Ended::Badly)], 20);
        assert_eq!(calls(&window, 5), (3, 2));
        assert_eq!(calls(&window, 59), (3, 2));
        assert_eq!(calls(&window, 60), (1, 1));
        assert_eq!(calls(&window, 64), (1, 1));
        assert_eq!(calls(&window, 65), (0, 0));
    }

    #[test]
    fn a_slice_that_comes_round_again_starts_from_nothing() {
        let window = counted([(0, Ended::Badly), (61, Ended::Well)], 20);
        assert_eq!(calls(&window, 61), (1, 0));
    }

    #[test]
    fn an_outcome_told_late_by_a_clock_that_jumped_back_still_counts() {
        let window = counted([(120, Ended::Badly), (60, Ended::Well)], 20);
        assert_eq!(calls(&window, 120), (2, 1));
    }

    #[test]
    fn too_few_calls_in_the_window_are_made_up_by_the_last_ones_before_it() {
        let sparse = counted((0..20).map(|n| (n * 30, Ended::Badly)), 20);
        assert_eq!(calls(&sparse, 570), (2, 2));
        let tally = sparse.tally(at(570), MINUTE, TEN, 20).unwrap();
        assert_eq!(tally, Tally { calls: 20, failures: 20, span: Duration::from_secs(570) });
        // One too old, and there are not enough.
        assert_eq!(sparse.tally(at(600), MINUTE, TEN, 20).map(|t| t.calls), Some(20));
        assert_eq!(sparse.tally(at(601), MINUTE, TEN, 20), None);
        assert_eq!(sparse.tally(at(570), MINUTE, Duration::ZERO, 20), None);
        // A shorter look takes the youngest.
        let mixed = counted([(0, Ended::Badly), (200, Ended::Well), (400, Ended::Badly)], 20);
        let tally = mixed.tally(at(400), MINUTE, TEN, 2).unwrap();
        assert_eq!(tally, Tally { calls: 2, failures: 1, span: Duration::from_secs(200) });
    }

    #[test]
    fn enough_calls_in_the_window_are_all_counted() {
        let dense = counted((0..40).map(|_| (10, Ended::Well)), 20);
        let tally = dense.tally(at(10), MINUTE, TEN, 20).unwrap();
        assert_eq!(tally, Tally { calls: 40, failures: 0, span: MINUTE });
        assert_eq!(dense.recent.len(), 20);
        let endless = counted((0..1500).map(|_| (10, Ended::Well)), u32::MAX);
        assert_eq!(endless.recent.len(), MAX_RECENT);
    }

    #[test]
    fn counts_leave_a_window_that_was_made_wider_or_narrower() {
        let known = || counted((0..5).map(|n| (1000 + n, Ended::Badly)), 20);
        let tally = |window: &Window, now, width| window.in_window(at(now), width).calls;
        for width in [TEN, Duration::from_secs(12)] {
            let ends = 1004 + width.as_secs();
            let mut window = known();
            // Read before anything is counted by the new width, and after.
            assert_eq!(tally(&window, 1004, width), 5);
            assert_eq!(tally(&window, ends, width), 0);
            window.count(Ended::Well, at(1004), width, 20);
            assert_eq!(tally(&window, 1004, width), 6);
            assert_eq!(tally(&window, ends, width), 0);
            window.count(Ended::Well, at(ends), width, 20);
            assert_eq!(tally(&window, ends, width), 1);
        }
    }

    #[test]
    fn a_cleared_window_is_as_new() {
        let mut window = counted([(0, Ended::Badly)], 20);
        window.clear();
        assert_eq!(window, Window::default());
    }

    #[test]
    fn a_window_of_no_width_holds_the_present_only() {
        let mut window = Window::default();
        window.count(Ended::Badly, at(1), Duration::ZERO, 1);
        assert_eq!(window.in_window(at(1), Duration::ZERO).calls, 1);
        assert_eq!(window.in_window(at(2), Duration::ZERO).calls, 0);
    }
}
