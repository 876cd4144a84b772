//! The changes of all readings in one place, so that a reading can part from another at no cost.
//!
//! Each change knows the one before it. A reading is the last change it made, and two readings
//! share what they did before they parted.

use crate::edit::{Change, spliced};
use crate::parse::{Parser, Reading};

/// How many changes two ways may have to be compared by their text, and how long that may be.
const COMPARED: usize = 64;
const COMPARED_TEXT: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Trail {
    steps: Vec<Step>,
}

#[derive(Debug)]
struct Step {
    change: Change,
    /// The step before, as [`Reading::tail`] counts: 0 is the start.
    before: u32,
    depth: u32,
}

impl Trail {
    fn step(&self, tail: u32) -> Option<&Step> {
        self.steps.get((tail as usize).checked_sub(1)?)
    }

    /// How many changes all readings together made.
    pub(super) fn len(&self) -> usize {
        self.steps.len()
    }

    /// How many changes lead to this one.
    pub(super) fn depth(&self, tail: u32) -> usize {
        self.step(tail).map_or(0, |step| step.depth as usize)
    }

    /// Takes over the changes a reading made, and takes back what it undid.
    pub(super) fn take(&mut self, reading: &mut Reading) {
        if let Some(offset) = reading.undo.take() {
            while let Some(step) = self.step(reading.tail)
                && step.change.end() > offset
            {
                reading.tail = step.before;
            }
        }
        let changes = std::mem::take(&mut reading.changes);
        reading.tail = self.extend(reading.tail, changes);
    }

    /// Adds changes behind this one and returns the last of them.
    pub(super) fn extend(&mut self, tail: u32, changes: Vec<Change>) -> u32 {
        let mut before = tail;
        for change in changes {
            let depth = self.step(before).map_or(0, |step| step.depth) + 1;
            self.steps.push(Step { change, before, depth });
            before = u32::try_from(self.steps.len()).unwrap_or(u32::MAX);
        }
        before
    }

    /// The changes that lead to this one, in the order they were made, with these turns.
    pub(super) fn back(&self, mut tail: u32, turns: &[(u32, u32)]) -> Vec<Change> {
        let mut turns = turns.iter();
        let mut turn = turns.next();
        let mut changes = Vec::with_capacity(self.depth(tail));
        loop {
            if let Some((from, to)) = turn
                && *from == tail
            {
                tail = *to;
                turn = turns.next();
                continue;
            }
            let Some(step) = self.step(tail) else { break };
            changes.push(step.change);
            tail = step.before;
        }
        changes.reverse();
        changes
    }

    /// The changes behind the first place up to the second, in order; `None` if the one does not
    /// lead to the other.
    pub(super) fn between(&self, first: u32, mut tail: u32) -> Option<Vec<Change>> {
        let mut changes = Vec::new();
        while tail != first {
            let step = self.step(tail)?;
            changes.push(step.change);
            tail = step.before;
        }
        changes.reverse();
        Some(changes)
    }

    /// Says whether two ways come to the same text.
    pub(super) fn is_same_text(&self, parser: &Parser<'_>, one: u32, two: u32) -> bool {
        let (mut ones, mut twos) = (Vec::new(), Vec::new());
        let (mut one, mut two) = (one, two);
        while one != two {
            if ones.len() + twos.len() > COMPARED {
                return false;
            }
            let (side, all) = if self.depth(one) >= self.depth(two) {
                (&mut one, &mut ones)
            } else {
                (&mut two, &mut twos)
            };
            let Some(step) = self.step(*side) else { return false };
            all.push(step.change);
            *side = step.before;
        }
        ones.reverse();
        twos.reverse();
        let start = ones.iter().chain(&twos).map(|change| change.start()).min().unwrap_or(0);
        let end = ones.iter().chain(&twos).map(|change| change.end()).max().unwrap_or(0);
        if end - start > COMPARED_TEXT {
            return false;
        }
        let text = |mut changes: Vec<Change>| {
            changes.sort_by_key(|change| (change.start(), change.end()));
            for change in &mut changes {
                *change = change.within(start);
            }
            spliced(parser.slice(start, end), &changes, &parser.long.borrow())
        };
        text(ones) == text(twos)
    }
}
