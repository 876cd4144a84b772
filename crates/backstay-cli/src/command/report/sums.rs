//! What a stretch of the call log adds up to.

use std::collections::BTreeMap;

use backstay::policy::{Money, Policy, Tariff};
use backstay::record::{Row, Step};
use serde::Serialize;

/// How often each word came.
type Counts = BTreeMap<String, u64>;

/// The sums of a stretch of the call log.
#[derive(Debug, Default, Serialize)]
pub(super) struct Sums {
    /// The first moment, in milliseconds since 1970 UTC.
    pub from_ms: u64,
    /// The first moment after it.
    pub until_ms: u64,
    /// Calls that arrived in it.
    pub calls: u64,
    /// By how they ended.
    pub outcomes: Counts,
    /// By the code of their failure.
    pub codes: Counts,
    /// By what the checks said of the last reply.
    pub verdicts: Counts,
    /// Edits made to answers, by kind.
    pub edits: Counts,
    /// What was decided after a fault, by word.
    pub decisions: Counts,
    /// Targets that were passed over.
    pub skipped: u64,
    /// What calls planned to wait, in milliseconds.
    pub waited_ms: f64,
    /// By target.
    pub targets: BTreeMap<String, TargetSums>,
    /// From arrival to the last byte.
    pub latency_ms: Quantiles,
    /// From arrival to the first content, of streams that have one.
    pub first_token_ms: Quantiles,
    /// Tokens of all attempts, as far as providers said.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Calls of which some attempt did not say.
    pub at_least: u64,
    /// Calls with a fault that their callers asked for: in no other sum.
    pub simulated: u64,
    /// Calls of routes that only watch, by what Backstay would have done.
    pub would: Counts,
    #[serde(skip)]
    latencies: Vec<f64>,
    #[serde(skip)]
    first_tokens: Vec<f64>,
}

/// The sums of one target.
#[derive(Debug, Default, Serialize)]
pub(super) struct TargetSums {
    /// Requests sent to it.
    pub attempts: u64,
    /// Of these, what went wrong, by code.
    pub faults: Counts,
    /// Tokens it reported.
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// What these cost, by the prices of the config. Absent: no prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
}

/// Quantiles, by the nearest rank. All 0: nothing was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(super) struct Quantiles {
    pub p50: f64,
    pub p90: f64,
    pub p99: f64,
    pub max: f64,
}

impl Sums {
    pub(super) fn new(from_ms: u64, until_ms: u64) -> Self {
        Self { from_ms, until_ms, ..Self::default() }
    }

    /// Adds a call.
    pub(super) fn add(&mut self, row: &Row) {
        if !row.simulated.is_empty() {
            self.simulated += 1;
            return;
        }
        self.calls += 1;
        count(&mut self.outcomes, &row.outcome);
        count(&mut self.codes, &row.code);
        count(&mut self.verdicts, &row.validation);
        count(&mut self.would, &row.would);
        for (kind, times) in edits(&row.edits) {
            *self.edits.entry(kind.to_owned()).or_default() += times;
        }
        self.latencies.push(row.latency_ms);
        if row.first_token_ms > 0.0 {
            self.first_tokens.push(row.first_token_ms);
        }
        self.input_tokens += row.input_tokens;
        self.output_tokens += row.output_tokens;
        self.at_least += u64::from(row.at_least);
        let mut at = "";
        for note in &row.trail.notes {
            if let Step::Sent { target, .. } = &note.step {
                at = target;
            }
            self.step(at, &note.step);
        }
    }

    /// Adds a step of a call that is at the target `at`.
    fn step(&mut self, at: &str, step: &Step) {
        match step {
            Step::Sent { .. } => self.target(at).attempts += 1,
            Step::Came { fault, usage, .. } => {
                let target = self.target(at);
                count(&mut target.faults, fault.as_deref().unwrap_or_default());
                let (input, output) = usage.unwrap_or_default();
                target.input_tokens += input.unwrap_or_default();
                target.output_tokens += output.unwrap_or_default();
            }
            Step::Judged { verdict, .. } if verdict != "ok" => {
                count(&mut self.target(at).faults, verdict);
            }
            Step::Decided { next, .. } => count(&mut self.decisions, next),
            Step::Skipped { .. } => self.skipped += 1,
            Step::Waited { ms, .. } => self.waited_ms += ms,
            Step::Judged { .. }
            | Step::Settled { .. }
            | Step::Turned { .. }
            | Step::Ended { .. } => {}
        }
    }

    fn target(&mut self, name: &str) -> &mut TargetSums {
        self.targets.entry(name.to_owned()).or_default()
    }

    /// Makes the quantiles and the costs.
    pub(super) fn finish(&mut self, policy: &Policy) {
        self.latency_ms = quantiles(&mut self.latencies);
        self.first_token_ms = quantiles(&mut self.first_tokens);
        for (name, sums) in &mut self.targets {
            let prices = policy.targets.get(name).and_then(|target| target.prices.as_ref());
            let cost = |tariff: &Tariff| -> Money {
                // The trail does not say what came from a cache.
                tariff.prices.cost(sums.input_tokens, sums.output_tokens)
            };
            sums.cost = prices.map(|tariff| cost(tariff).to_string());
        }
    }
}

/// Counts a word; an empty one is none.
fn count(counts: &mut Counts, word: &str) {
    if !word.is_empty() {
        *counts.entry(word.to_owned()).or_default() += 1;
    }
}

/// The kinds and counts of `fence=1, trailing_comma=3`.
fn edits(text: &str) -> impl Iterator<Item = (&str, u64)> {
    text.split(", ").filter_map(|one| {
        let (kind, times) = one.split_once('=')?;
        Some((kind, times.parse().ok()?))
    })
}

/// The value at `percent`, 0 to 100, of what is sorted, by the nearest rank. Of nothing: the default.
pub(crate) fn nearest_rank<T: Copy + Default>(sorted: &[T], percent: usize) -> T {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

fn quantiles(all: &mut [f64]) -> Quantiles {
    all.sort_by(f64::total_cmp);
    let at = |percent| nearest_rank(all, percent);
    Quantiles { p50: at(50), p90: at(90), p99: at(99), max: at(100) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_nearest_rank_above() {
        let mut all: Vec<f64> = (1..=200).rev().map(f64::from).collect();
        let of = quantiles(&mut all);
        assert_eq!(of, Quantiles { p50: 100.0, p90: 180.0, p99: 198.0, max: 200.0 });
        assert_eq!(quantiles(&mut [7.0]), Quantiles { p50: 7.0, p90: 7.0, p99: 7.0, max: 7.0 });
        assert_eq!(quantiles(&mut []), Quantiles::default());
    }

    #[test]
    fn edits_are_read_as_the_log_writes_them() {
        let read: Vec<_> = edits("fence=1, trailing_comma=3, other=12").collect();
        assert_eq!(read, [("fence", 1), ("trailing_comma", 3), ("other", 12)]);
        assert_eq!(edits("").count(), 0);
    }
}
