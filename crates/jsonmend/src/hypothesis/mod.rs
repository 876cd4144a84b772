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

use crate::draft::Draft;
use crate::edit::Change;
use crate::parse::{Doubt, Parser, Reading, Rival, cost};
use trail::Trail;

/// Readings alive at the same time.
const WIDTH: usize = 12;
/// Rivals kept of one document; more of them, and it is ambiguous without a look.
const MAX_RIVALS: usize = 8;
/// Rivals looked at when it is clear that there are too many.
const SHOWN: usize = 3;

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
    /// Text and tape of the reading, if there is one only.
    pub(crate) draft: Option<Draft>,
}

/// Reads the text from one start to the end of the document there.
pub(crate) fn explore(parser: &Parser<'_>, start: Reading, mut draft: Draft) -> Explored {
    let mut beam = Beam { reached: start.at, ..Beam::default() };
    let mut budget = (parser.bytes.len() - start.at).saturating_mul(WIDTH) + 1024;
    beam.add(parser, start);
    let mut next = Vec::new();
    while let Some(mut reading) = beam.furthest_behind() {
        if beam.live.is_empty() && beam.done.is_empty() {
            let trail = &beam.trail;
            draft.catch_up(parser, &mut reading, |from, to| trail.between(from, to));
            parser.skim(&mut reading, &mut draft);
        }
        beam.reached = beam.reached.max(reading.at);
        beam.step(parser, reading, &mut next);
        beam.prune();
        budget = budget.saturating_sub(1);
        if budget == 0 || parser.many.get() || beam.has_too_many(parser.policy.limits.edits) {
            return Explored { too_many: true, reached: beam.reached, ..Explored::default() };
        }
    }
    beam.finish(draft)
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

    /// One step of one reading. As long as there is one only, its changes stay with it; they go to
    /// the trail when it parts, so that no part has to copy them.
    fn step(&mut self, parser: &Parser<'_>, mut reading: Reading, next: &mut Vec<Reading>) {
        let is_alone = self.live.is_empty() && self.done.is_empty();
        let before = std::mem::take(&mut reading.changes);
        let tail = reading.tail;
        parser.step(reading, next);
        if let ([only], true) = (next.as_mut_slice(), is_alone)
            && only.undo.is_none()
        {
            let made = std::mem::replace(&mut only.changes, before);
            only.changes.extend(made);
            let place = if only.is_done() { &mut self.done } else { &mut self.live };
            place.append(next);
            return;
        }
        let tail = self.trail.extend(tail, before);
        for mut reading in next.drain(..) {
            reading.tail = tail;
            self.add(parser, reading);
        }
    }

    fn add(&mut self, parser: &Parser<'_>, mut reading: Reading) {
        self.trail.take(&mut reading);
        if reading.is_done() {
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
        // Readings given up stay on the trail, so it has a bound of its own.
        if self.trail.len() > limit.saturating_mul(64) {
            return true;
        }
        match self.live.as_slice() {
            [reading] => self.trail.depth(reading.tail) + reading.changes.len() > limit,
            _ => false,
        }
    }

    fn finish(mut self, mut draft: Draft) -> Explored {
        self.done.sort_by_key(|reading| (reading.cost, reading.doubt));
        let best = self.done.first().map_or(0, |reading| reading.cost);
        let mut readings = Vec::new();
        for mut reading in std::mem::take(&mut self.done) {
            if draft.is_ahead_of(&reading) {
                draft.drop();
            }
            if reading.cost > best + cost::MARGIN || readings.len() > MAX_RIVALS {
                break;
            }
            let own = std::mem::take(&mut reading.changes);
            let mut rivals = Vec::new();
            let shown = if self.crowded { SHOWN } else { MAX_RIVALS };
            for rival in reading.rivals.iter().take(shown) {
                let mut changes = self.trail.back(reading.tail, &rival.turns);
                changes.extend_from_slice(&own);
                let mut other = ended(&reading, changes, rival.doubt.max(reading.doubt));
                other.cost += rival.dearer;
                rivals.push(other);
            }
            let changes = if reading.tail == 0 {
                own
            } else {
                let mut changes = self.trail.back(reading.tail, &[]);
                changes.extend(own);
                changes
            };
            readings.push(ended(&reading, changes, reading.doubt));
            readings.append(&mut rivals);
        }
        readings.sort_by_key(|ended| (ended.cost, ended.doubt));
        let draft = (readings.len() == 1 && draft.is_sound()).then_some(draft);
        let (reached, crowded) = (self.reached, self.crowded);
        Explored { readings, reached, crowded, too_many: false, draft }
    }
}

fn ended(reading: &Reading, mut changes: Vec<Change>, doubt: Doubt) -> Ended {
    if let Some(from) = reading.dropped_from {
        let last = changes.pop();
        changes.retain(|change| change.end() <= from);
        changes.extend(last);
    }
    let order = |change: &Change| (change.start(), change.end());
    if !changes.is_sorted_by_key(order) {
        changes.sort_by_key(order);
    }
    Ended { changes, cost: reading.cost, doubt, end: reading.at, cut: reading.cut }
}
