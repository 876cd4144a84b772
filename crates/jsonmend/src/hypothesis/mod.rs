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
use crate::edit::{Change, Kind};
use crate::parse::{Doubt, Parser, Reading, Rival, Stuck, cost};
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
    /// Where it was first doubted.
    pub(crate) doubt_at: usize,
    /// Where the document ends in the text.
    pub(crate) end: usize,
    pub(crate) cut: bool,
}

/// What was found from one start.
#[derive(Debug, Default)]
pub(crate) struct Explored {
    /// The cheapest first, then all within the margin of it. Empty if none came to an end.
    pub(crate) readings: Vec<Ended>,
    /// The next one, if the only one above is doubted: to be shown beside it.
    pub(crate) beyond: Option<Ended>,
    /// The furthest place where a reading could not go on.
    pub(crate) stuck: Option<Stuck>,
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
pub(crate) fn explore(parser: &Parser<'_>, start: Reading, draft: Draft) -> Explored {
    let mut search = Search::new(parser, start, draft);
    search.advance(parser);
    search.finish()
}

/// The readings of a document, on their way through the text.
#[derive(Debug)]
pub(crate) struct Search {
    beam: Beam,
    draft: Draft,
    next: Vec<Reading>,
    /// Bytes of the text when steps were counted last, and the steps left.
    length: usize,
    budget: usize,
    too_many: bool,
}

impl Search {
    pub(crate) fn new(parser: &Parser<'_>, start: Reading, draft: Draft) -> Self {
        let mut beam = Beam { reached: start.at, ..Beam::default() };
        let length = start.at;
        beam.add(parser, start);
        Self { beam, draft, next: Vec::new(), length, budget: 1024, too_many: false }
    }

    /// Reads on as far as the parser lets it.
    pub(crate) fn advance(&mut self, parser: &Parser<'_>) {
        let more = parser.bytes.len().saturating_sub(self.length);
        self.length = parser.bytes.len();
        self.budget = self.budget.saturating_add(more.saturating_mul(WIDTH));
        self.draft.hide_open();
        while let Some(mut reading) = self.beam.furthest_behind() {
            if self.beam.is_empty() && parser.guide.is_none() {
                self.catch_up(parser, &mut reading);
                parser.skim(&mut reading, &mut self.draft);
                // What is shown must be in the text.
                if parser.is_part() {
                    self.catch_up(parser, &mut reading);
                }
            }
            self.beam.reached = self.beam.reached.max(reading.at);
            if reading.at >= parser.until {
                if self.beam.is_empty() {
                    self.draft.show_open(parser, &reading);
                }
                self.beam.live.push(reading);
                return;
            }
            self.beam.step(parser, reading, &mut self.next);
            self.beam.prune();
            self.budget = self.budget.saturating_sub(1);
            let is_over = self.budget == 0 || parser.many.get();
            if is_over || self.beam.has_too_many(parser.policy.limits.edits) {
                self.too_many = true;
                self.beam = Beam { reached: self.beam.reached, ..Beam::default() };
            }
        }
        if let ([only], true) = (self.beam.done.as_mut_slice(), parser.is_part()) {
            let trail = &self.beam.trail;
            self.draft.catch_up(parser, only, |from, to| trail.between(from, to));
        }
    }

    fn catch_up(&mut self, parser: &Parser<'_>, reading: &mut Reading) {
        let trail = &self.beam.trail;
        self.draft.catch_up(parser, reading, |from, to| trail.between(from, to));
    }

    /// Says whether it can still say something of a text that is growing.
    pub(crate) fn is_alive(&self) -> bool {
        let is_cut = self.beam.done.iter().any(|reading| reading.cut);
        self.draft.is_sound() && !is_cut && !(self.beam.is_empty())
    }

    /// Text and tape of what is beyond doubt so far.
    pub(crate) fn draft(&self) -> &Draft {
        &self.draft
    }

    pub(crate) fn finish(self) -> Explored {
        if self.too_many {
            // The beam was given up, and with it where it was stuck.
            return Explored { too_many: true, reached: self.beam.reached, ..Explored::default() };
        }
        self.beam.finish(self.draft)
    }
}

#[derive(Debug, Default)]
struct Beam {
    live: Vec<Reading>,
    done: Vec<Reading>,
    trail: Trail,
    reached: usize,
    stuck: Option<Stuck>,
    crowded: bool,
}

impl Beam {
    fn is_empty(&self) -> bool {
        self.live.is_empty() && self.done.is_empty()
    }

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
        let is_alone = self.is_empty();
        let before = std::mem::take(&mut reading.changes);
        let tail = reading.tail;
        let stuck = Stuck::of(&reading);
        parser.step(reading, next);
        if next.is_empty() && self.stuck.is_none_or(|other| stuck.is_beyond(&other)) {
            self.stuck = Some(stuck);
        }
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
        let mut beyond = None;
        for mut reading in std::mem::take(&mut self.done) {
            if draft.is_ahead_of(&reading) {
                draft.drop();
            }
            if reading.cost > best + cost::MARGIN || readings.len() > MAX_RIVALS {
                if let [Ended { doubt: Doubt::Always, .. }] = readings.as_slice() {
                    let mut changes = self.trail.back(reading.tail, &[]);
                    changes.append(&mut reading.changes);
                    beyond = ended(&reading, changes, reading.doubt);
                }
                break;
            }
            let own = std::mem::take(&mut reading.changes);
            let mut rivals = Vec::new();
            let shown = if self.crowded { SHOWN } else { MAX_RIVALS };
            for rival in reading.rivals.iter().take(shown) {
                let mut changes = self.trail.back(reading.tail, &rival.turns);
                changes.extend_from_slice(&own);
                let other = ended(&reading, changes, rival.doubt.max(reading.doubt));
                rivals
                    .extend(other.map(|other| Ended { cost: other.cost + rival.dearer, ..other }));
            }
            let changes = if reading.tail == 0 {
                own
            } else {
                let mut changes = self.trail.back(reading.tail, &[]);
                changes.extend(own);
                changes
            };
            readings.extend(ended(&reading, changes, reading.doubt));
            readings.append(&mut rivals);
        }
        readings.sort_by_key(|ended| (ended.cost, ended.doubt));
        let draft = (readings.len() == 1 && draft.is_sound()).then_some(draft);
        let (reached, stuck, crowded) = (self.reached, self.stuck, self.crowded);
        Explored { readings, beyond, stuck, reached, crowded, too_many: false, draft }
    }
}

/// `None` if two changes are at odds: then it is no reading.
fn ended(reading: &Reading, mut changes: Vec<Change>, doubt: Doubt) -> Option<Ended> {
    if let Some(from) = reading.dropped_from {
        let last = changes.pop();
        // A comma that was put before what is dropped goes with it.
        let is_kept = |change: &Change| {
            change.end() <= from && (change.kind != Kind::MissingComma || change.start() < from)
        };
        changes.retain(is_kept);
        changes.extend(last);
    }
    let is_in_order =
        |changes: &[Change]| changes.array_windows().all(|[one, two]| one.end() <= two.start());
    if !is_in_order(&changes) {
        changes.sort_by_key(|change| (change.start(), change.end()));
        is_in_order(&changes).then_some(())?;
    }
    let (doubt_at, end) = (reading.doubt_at, reading.at);
    Some(Ended { changes, cost: reading.cost, doubt, doubt_at, end, cut: reading.cut })
}
