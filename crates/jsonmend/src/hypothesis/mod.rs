//! Follows all likely readings side by side, and finds out whether the best one is the only one.
//!
//! ```text
//!              ┌─ quote ends the string ──── dies at the next letter
//!   reading ───┤
//!              └─ quote is text ──────────── goes on … meets, or wins
//! ```
//!
//! Always the reading that is furthest behind takes the next step, so all see the same bytes at
//! the same time. Readings that meet in the same state are one from there on: the cheaper stays,
//! and the other is kept as its rival if it was nearly as cheap.

use crate::edit::{Change, spliced};
use crate::parse::{Doubt, Expect, Parser, Reading, Rival, cost};

/// Readings alive at the same time.
const WIDTH: usize = 12;
/// Rivals kept of one document; more of them, and it is ambiguous without a look.
const MAX_RIVALS: usize = 16;

/// One reading of a whole document.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) changes: Vec<Change>,
    pub(crate) cost: u32,
    pub(crate) doubt: Doubt,
    /// Where the document ends in the text.
    pub(crate) end: usize,
    pub(crate) cut: bool,
}

/// What was found from one start.
#[derive(Debug, Default)]
pub(crate) struct Explored {
    /// The cheapest first, then all within the margin of it. Empty if none came to an end.
    pub(crate) readings: Vec<Ended>,
    /// How far the text was read.
    pub(crate) reached: usize,
    /// Whether a likely reading was given up for want of room.
    pub(crate) crowded: bool,
    /// Whether there were more changes than the limit.
    pub(crate) too_many: bool,
}

/// Reads the text from one start to the end of the document there.
pub(crate) fn explore(parser: &Parser<'_>, start: Reading) -> Explored {
    let mut beam = Beam { reached: start.at, ..Beam::default() };
    let mut budget = (parser.bytes.len() - start.at).saturating_mul(WIDTH) + 1024;
    beam.live.push(start);
    let mut next = Vec::new();
    while let Some(reading) = beam.furthest_behind() {
        beam.reached = beam.reached.max(reading.at);
        parser.step(reading, &mut next);
        for reading in next.drain(..) {
            beam.add(parser, reading);
        }
        beam.prune();
        beam.flush();
        budget = budget.saturating_sub(1);
        let limit = parser.policy.limits.edits;
        if budget == 0 || beam.settled.len() > limit {
            return Explored { too_many: true, reached: beam.reached, ..Explored::default() };
        }
    }
    beam.finish()
}

#[derive(Default)]
struct Beam {
    live: Vec<Reading>,
    done: Vec<Reading>,
    /// Changes that all readings share.
    settled: Vec<Change>,
    reached: usize,
    crowded: bool,
}

impl Beam {
    fn furthest_behind(&mut self) -> Option<Reading> {
        if self.live.len() <= 1 {
            return self.live.pop();
        }
        let places = self.live.iter().enumerate();
        let (first, _) = places.min_by_key(|(_, reading)| (reading.at, reading.cost))?;
        Some(self.live.swap_remove(first))
    }

    fn add(&mut self, parser: &Parser<'_>, reading: Reading) {
        if reading.expect == Expect::Done && reading.string.is_none() {
            self.done.push(reading);
            return;
        }
        let Some(place) = self.live.iter().position(|other| other.meets(&reading)) else {
            self.live.push(reading);
            return;
        };
        let met = self.live.swap_remove(place);
        let is_met_better = (met.cost, met.doubt) <= (reading.cost, reading.doubt);
        let (mut kept, left) = if is_met_better { (met, reading) } else { (reading, met) };
        let is_near = left.cost - kept.cost <= cost::MARGIN;
        if is_near && !is_same_text(parser, &kept.changes, &left.changes) {
            let replaced = kept.changes.len();
            let from = self.settled.len();
            kept.rivals.push(Rival {
                from,
                replaced,
                changes: left.changes.clone(),
                doubt: left.doubt,
                dearer: left.cost - kept.cost,
            });
            self.inherit(&mut kept, &left);
        }
        self.live.push(kept);
    }

    /// Rivals that only the reading left behind had are rivals of the one kept, too.
    fn inherit(&self, kept: &mut Reading, left: &Reading) {
        let from = self.settled.len();
        for rival in left.rivals.iter().filter(|rival| rival.from >= from) {
            let skip = rival.from - from;
            let mut changes = left.changes.get(..skip).unwrap_or_default().to_vec();
            changes.extend(rival.changes.iter().cloned());
            let behind = left.changes.get(skip + rival.replaced..).unwrap_or_default();
            changes.extend(behind.iter().cloned());
            let replaced = kept.changes.len();
            let dearer = rival.dearer + left.cost - kept.cost;
            kept.rivals.push(Rival { from, replaced, changes, doubt: rival.doubt, dearer });
        }
    }

    fn prune(&mut self) {
        if self.live.len() + self.done.len() <= 1 {
            return;
        }
        let costs = self.live.iter().chain(&self.done).map(|reading| reading.cost);
        let best = costs.min().unwrap_or(0);
        self.live.retain(|reading| reading.cost <= best + cost::HOPELESS);
        while self.live.len() > WIDTH {
            let places = self.live.iter().enumerate();
            let Some((dearest, _)) = places.max_by_key(|(_, reading)| reading.cost) else { return };
            let given_up = self.live.swap_remove(dearest);
            self.crowded |= given_up.cost <= best + 2 * cost::MARGIN;
        }
    }

    /// With one reading left, its changes are settled, but for those that a look back may undo.
    fn flush(&mut self) {
        let ([reading], true) = (self.live.as_mut_slice(), self.done.is_empty()) else { return };
        let horizon = reading.comma.min(reading.value_start);
        let sure = reading.changes.iter().take_while(|change| change.end <= horizon).count();
        // Rivals speak of places in the list, which stay right: changes move in order.
        self.settled.extend(reading.changes.drain(..sure));
        if reading.rivals.len() > MAX_RIVALS {
            self.crowded = true;
            reading.rivals.truncate(MAX_RIVALS);
        }
    }

    fn finish(mut self) -> Explored {
        self.done.sort_by_key(|reading| reading.cost);
        let best = self.done.first().map_or(0, |reading| reading.cost);
        let mut readings = Vec::new();
        for reading in &self.done {
            if reading.cost > best + cost::MARGIN {
                break;
            }
            let mut all = self.settled.clone();
            all.extend(reading.changes.iter().cloned());
            readings.push(ended(reading, all.clone(), reading.doubt));
            for rival in &reading.rivals {
                let mut other = all.get(..rival.from).unwrap_or_default().to_vec();
                other.extend(rival.changes.iter().cloned());
                let behind = all.get(rival.from + rival.replaced..).unwrap_or_default();
                other.extend(behind.iter().cloned());
                let mut other = ended(reading, other, rival.doubt.max(reading.doubt));
                other.cost += rival.dearer;
                readings.push(other);
            }
        }
        readings.sort_by_key(|ended| (ended.cost, ended.doubt));
        Explored { readings, reached: self.reached, crowded: self.crowded, too_many: false }
    }
}

fn ended(reading: &Reading, mut changes: Vec<Change>, doubt: Doubt) -> Ended {
    if let Some(from) = reading.dropped_from {
        let last = changes.pop();
        changes.retain(|change| change.end <= from);
        changes.extend(last);
    }
    changes.sort_by_key(|change| (change.start, change.end));
    Ended { changes, cost: reading.cost, doubt, end: reading.at, cut: reading.cut }
}

/// Says whether two lists of changes come to the same text.
fn is_same_text(parser: &Parser<'_>, one: &[Change], two: &[Change]) -> bool {
    let start = one.iter().chain(two).map(|change| change.start).min().unwrap_or(0);
    let end = one.iter().chain(two).map(|change| change.end).max().unwrap_or(0);
    let text = |changes: &[Change]| {
        let mut changes = changes.to_vec();
        changes.sort_by_key(|change| (change.start, change.end));
        for change in &mut changes {
            change.start -= start;
            change.end -= start;
        }
        spliced(parser.slice(start, end), &changes)
    };
    text(one) == text(two)
}
