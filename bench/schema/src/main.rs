//! Measures a reply from its text to the verdict of its whole schema: `serde_json` to a `Value` and
//! `jsonschema` on it, against `jsonmend` to a tape and Backstay's check on that.
//!
//! `cargo run --release` in this folder; with `--no-default-features` the peers alone, with the
//! quicker map of `serde_json`; `run` has both in turns. Both sides take turns in short windows.
//! Times are the medians, the ratio that of neighbouring windows; the parts behind them are the best.

#[cfg(feature = "ours")]
mod ours;
mod peers;
mod reply;

use std::time::Instant;

use mimalloc::MiMalloc;

/// As the shipped binary has it; for both alike.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Windows of each side.
const WINDOWS: usize = 301;

fn main() {
    for tickets in [1, 5, 6, 250] {
        let text = reply::reply(tickets);
        peers::measure(&text);
        #[cfg(feature = "ours")]
        ours::measure(&text);
    }
}

/// Runs of one window.
fn rounds(text: &str) -> usize {
    (400_000 / text.len()).max(1)
}

/// Microseconds for one run, over a window of `rounds`.
fn time(rounds: usize, run: impl Fn()) -> f64 {
    let start = Instant::now();
    for _ in 0..rounds {
        run();
    }
    start.elapsed().as_secs_f64() * 1e6 / rounds as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The best of some windows.
fn best(rounds: usize, run: impl Fn()) -> f64 {
    (0..WINDOWS / 3).map(|_| time(rounds, &run)).fold(f64::MAX, f64::min)
}
