//! How long a target usually takes: to the first token, between two pieces, for a token, in all.
//!
//! ```text
//!  what an attempt took ─▶ buckets of 2 % × 6 slices of 60 s ─▶ a quantile a slice ─▶ its timers
//!       by size of prompt                                         ± 25 % at most
//! ```
//!
//! Each size of prompt has its own statistics; where it has fewer than [`ENOUGH`] values, those of all
//! sizes stand in, and where these are too few nothing is known. What was given up (a timer, a caller
//! who left) is known to have taken at least that long and is counted so: else a timer that strikes
//! would see only what is quicker, and shorten itself. What failed fast says nothing about speed.
//!
//! While the target's circuit is not closed time stands still here: nothing is taken in and nothing
//! forgotten, so a sick target does not become the yardstick for itself.

mod bucket;
mod derive;
mod gaps;
mod prompt;
mod window;

use std::time::Duration;

use crate::time::Moment;
use window::{Summed, Window};

pub use bucket::{ACCURACY, LONGEST};
pub use derive::{Derived, Slow, Source, Timeouts, Timer};
pub use gaps::Gaps;
pub use prompt::PromptSize;

/// How many slices of time are looked at.
pub const SLICES: usize = 6;

/// How long a slice is. Six of a minute: a model with ten calls a minute is still known.
pub const SLICE: Duration = Duration::from_mins(1);

/// Values that make statistics. Of 50 the 99th of a hundred is the largest.
pub const ENOUGH: u32 = 50;

/// The share by which what is derived may grow or shrink from a slice to the next.
pub const STEP: f64 = 0.25;

/// What is measured of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Measure {
    /// From sending to the first content of a stream.
    FirstToken,
    /// A pause between two pieces of content.
    Gap,
    /// The time for a token of output.
    PerToken,
    /// From sending to the end of a reply that was read whole.
    Whole,
}

impl Measure {
    const COUNT: usize = 4;
}

/// How long something took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Took {
    /// So long.
    Done(Duration),
    /// At least so long: it was given up then.
    Cut(Duration),
}

/// Whether the target's circuit is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Circuit {
    /// It is: what is seen is normal.
    Closed,
    /// It is open, tested, or on probation.
    Troubled,
}

/// What is known of a target's speed for a size of prompt. Each is `None` where too little was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Known {
    /// What one first token in a hundred exceeds.
    pub first_token: Option<Duration>,
    /// What half of the first tokens exceed.
    pub usual_first_token: Option<Duration>,
    /// What one pause in a hundred exceeds.
    pub gap: Option<Duration>,
    /// What the time for a token exceeds in one reply of twenty.
    pub per_token: Option<Duration>,
    /// What half of the replies that were read whole exceed.
    pub usual_whole: Option<Duration>,
}

/// What is worked out: of which measure, and which share is below it.
const QUANTILES: [(Measure, f64); 5] = [
    (Measure::FirstToken, 0.99),
    (Measure::FirstToken, 0.5),
    (Measure::Gap, 0.99),
    (Measure::PerToken, 0.95),
    (Measure::Whole, 0.5),
];

/// The statistics of one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Latency {
    /// By size of prompt; made when the first value comes.
    by_size: [Option<Box<[Window; Measure::COUNT]>>; PromptSize::COUNT],
    /// What was worked out, by size of prompt.
    told: [[Told; QUANTILES.len()]; PromptSize::COUNT],
    /// Slices so far.
    slice: u64,
    /// When the present one began.
    began: Moment,
}

/// A value that was worked out, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Told {
    millis: Option<f64>,
    slice: u64,
}

/// The statistics of a target at one moment.
#[derive(Debug)]
pub struct Present<'l> {
    latency: &'l mut Latency,
    circuit: Circuit,
}

impl Latency {
    /// The statistics at `now`, where the target's circuit stands so.
    pub fn at(&mut self, now: Moment, circuit: Circuit) -> Present<'_> {
        match circuit {
            Circuit::Closed => self.turn(now),
            Circuit::Troubled => self.began = now,
        }
        Present { latency: self, circuit }
    }

    /// The sizes of prompts that were seen.
    pub fn sizes(&self) -> impl Iterator<Item = PromptSize> + '_ {
        PromptSize::ALL.into_iter().filter(|size| self.by_size[size.index()].is_some())
    }

    /// Forgets the slices that are too old at `now`.
    fn turn(&mut self, now: Moment) {
        let passed = now.since(self.began).as_secs() / SLICE.as_secs();
        if passed == 0 {
            return;
        }
        for _ in 0..passed.min(SLICES as u64) {
            self.slice += 1;
            let column = self.column();
            for windows in self.by_size.iter_mut().flatten() {
                windows.iter_mut().for_each(|window| window.clear(column));
            }
        }
        self.slice += passed.saturating_sub(SLICES as u64);
        self.began = self.began.plus(SLICE * u32::try_from(passed).unwrap_or(u32::MAX));
    }

    /// Where the present slice is kept.
    fn column(&self) -> usize {
        usize::try_from(self.slice % SLICES as u64).unwrap_or(0)
    }

    /// The value of a quantile at this moment, which changes once a slice.
    fn told(&mut self, size: PromptSize, quantile: usize) -> Option<Duration> {
        let told = self.told[size.index()][quantile];
        let told = if told.slice == self.slice && told.millis.is_some() {
            told
        } else {
            let (measure, share) = QUANTILES[quantile];
            let millis = self.measured(size, measure, share).map(|seen| match told.millis {
                Some(before) => stepped(before, seen, self.slice - told.slice),
                None => seen,
            });
            let told = Told { millis, slice: self.slice };
            self.told[size.index()][quantile] = told;
            told
        };
        told.millis.map(|millis| Duration::from_secs_f64(millis / 1000.0))
    }

    /// A quantile of a size of prompts, or of all sizes where it has too few.
    fn measured(&self, size: PromptSize, measure: Measure, share: f64) -> Option<f64> {
        let own = self.by_size[size.index()].as_ref().map(|windows| &windows[measure as usize]);
        if let Some(own) = own.filter(|own| own.count() >= ENOUGH) {
            return Summed::of([own]).quantile(share);
        }
        let all = || self.by_size.iter().flatten().map(|windows| &windows[measure as usize]);
        let count = all().map(Window::count).fold(0, u32::saturating_add);
        if count < ENOUGH { None } else { Summed::of(all()).quantile(share) }
    }
}

/// `seen`, as far as that is from `before` by at most [`STEP`] for each of so many slices.
fn stepped(before: f64, seen: f64, slices: u64) -> f64 {
    let slices = i32::try_from(slices).unwrap_or(i32::MAX);
    seen.clamp(before * (1.0 - STEP).powi(slices), before * (1.0 + STEP).powi(slices))
}

impl Present<'_> {
    /// Takes note of what an attempt with a prompt of this size took.
    pub fn note(&mut self, size: PromptSize, measure: Measure, took: Took) {
        if self.circuit == Circuit::Troubled {
            return;
        }
        let column = self.latency.column();
        let windows = self.latency.by_size[size.index()].get_or_insert_default();
        windows[measure as usize].note(took, column);
    }

    /// What is known for prompts of this size.
    pub fn known(&mut self, size: PromptSize) -> Known {
        let mut told = |quantile| self.latency.told(size, quantile);
        Known {
            first_token: told(0),
            usual_first_token: told(1),
            gap: told(2),
            per_token: told(3),
            usual_whole: told(4),
        }
    }
}

/// The time for a token of a reply of `output` tokens that took `took`. Of a stream whose
/// `first_token` is known the time after it counts, of another reply all of it: too much, which makes
/// a timer longer and never shorter. `None`: nothing can be said.
pub fn per_token(took: Duration, first_token: Option<Duration>, output: u64) -> Option<Duration> {
    let (time, tokens) = match first_token {
        Some(first) => (took.checked_sub(first)?, output.checked_sub(1)?),
        None => (took, output),
    };
    let tokens = u32::try_from(tokens).unwrap_or(u32::MAX);
    time.checked_div(tokens)
}

#[cfg(test)]
mod tests;
