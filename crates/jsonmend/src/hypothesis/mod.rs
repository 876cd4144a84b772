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

mod trail;

use crate::edit::Change;
use crate::parse::{Doubt, Expect, Parser, Reading, Rival, cost};
use trail::Trail;

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
    beam.add(parser, start);
    let mut next = Vec::new();
    while let Some(mut reading) = beam.furthest_behind() {
        if beam.live.is_empty() && beam.done.is_empty() {
            parser.skim(&mut reading);
        }
        beam.reached = beam.reached.max(reading.at);
        parser.step(reading, &mut next);
        for reading in next.drain(..) {
            beam.add(parser, reading);
        }
        beam.prune();
        budget = budget.saturating_sub(1);
        if budget == 0 || beam.has_too_many(parser.policy.limits.edits) {
            return Explored { too_many: true, reached: beam.reached, ..Explored::default() };
        }
    }
    beam.finish()
}

#[derive(Default)]
struct Beam {
    live: Vec<Reading>,
    done: Vec<Reading>,
    trail: Trail,
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

    fn add(&mut self, parser: &Parser<'_>, mut reading: Reading) {
        self.trail.take(&mut reading);
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
        let dearer = left.cost - kept.cost;
        if dearer <= cost::MARGIN && !self.trail.is_same_text(parser, kept.tail, left.tail) {
            let turn = (kept.tail, left.tail);
            kept.rivals.push(Rival { turns: vec![turn], doubt: left.doubt, dearer });
            // What rivalled the reading left behind rivals the one kept, too.
            for rival in left.rivals.iter().filter(|rival| rival.dearer + dearer <= cost::MARGIN) {
                let mut turns = vec![turn];
                turns.extend(&rival.turns);
                let dearer = rival.dearer + dearer;
                kept.rivals.push(Rival { turns, doubt: rival.doubt, dearer });
            }
            if kept.rivals.len() > MAX_RIVALS {
                self.crowded = true;
                kept.rivals.truncate(MAX_RIVALS);
            }
        }
        self.live.push(kept);
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

    fn has_too_many(&self, limit: usize) -> bool {
        match self.live.as_slice() {
            [reading] => self.trail.depth(reading.tail) > limit,
            _ => false,
        }
    }

    fn finish(mut self) -> Explored {
        self.done.sort_by_key(|reading| (reading.cost, reading.doubt));
        let best = self.done.first().map_or(0, |reading| reading.cost);
        let mut readings = Vec::new();
        for reading in &self.done {
            if reading.cost > best + cost::MARGIN || readings.len() > MAX_RIVALS {
                break;
            }
            readings.push(ended(reading, self.trail.back(reading.tail, &[]), reading.doubt));
            for rival in &reading.rivals {
                let changes = self.trail.back(reading.tail, &rival.turns);
                let mut other = ended(reading, changes, rival.doubt.max(reading.doubt));
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
