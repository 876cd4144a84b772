//! Who has to leave so that a call fits.

use super::{Ask, MOST_SHED, Queue, Ticket};

/// The room there would be for a call.
pub(super) struct Room<'a> {
    queue: &'a Queue,
    /// Calls and bytes with the arrival, and without those that leave for it.
    count: usize,
    bytes: u64,
    /// Whether the arrival takes no more than what is kept for its class.
    pub(super) under_its_share: bool,
    pub(super) shed: Vec<Ticket>,
}

impl<'a> Room<'a> {
    pub(super) fn of(queue: &'a Queue, ask: &Ask) -> Self {
        let lane = &queue.lanes[ask.class];
        let under_its_share = lane.count() < queue.kept_count(ask.class)
            && lane.bytes.saturating_add(ask.bytes) <= queue.kept_bytes(ask.class);
        Self {
            queue,
            count: queue.count() + 1,
            bytes: queue.bytes().saturating_add(ask.bytes),
            under_its_share,
            shed: Vec::new(),
        }
    }

    pub(super) fn fits(&self) -> bool {
        self.count <= self.queue.rules.count && self.bytes <= self.queue.rules.bytes
    }

    /// Sheds a class from its newest call on, until it is down to its share or the arrival fits.
    pub(super) fn shed(&mut self, class: usize) {
        let lane = &self.queue.lanes[class];
        let (mut count, mut bytes) = (lane.count(), lane.bytes);
        let (kept_count, kept_bytes) = (self.queue.kept_count(class), self.queue.kept_bytes(class));
        for (number, waiting) in lane.newest() {
            let too_many = self.count > self.queue.rules.count;
            let may_go = if too_many { count > kept_count } else { bytes > kept_bytes };
            if self.fits() || !may_go || self.shed.len() >= MOST_SHED {
                return;
            }
            count -= 1;
            bytes = bytes.saturating_sub(waiting.bytes);
            self.count -= 1;
            self.bytes = self.bytes.saturating_sub(waiting.bytes);
            self.shed.push(Ticket { class, number });
        }
    }
}

impl Queue {
    /// Calls that are kept for a class.
    pub(super) fn kept_count(&self, class: usize) -> usize {
        let share = u128::from(self.rules.classes[class].share);
        let kept = self.rules.count as u128 * share / u128::from(self.shares);
        usize::try_from(kept).unwrap_or(usize::MAX)
    }

    /// Bytes that are kept for a class.
    pub(super) fn kept_bytes(&self, class: usize) -> u64 {
        let share = u128::from(self.rules.classes[class].share);
        let kept = u128::from(self.rules.bytes) * share / u128::from(self.shares);
        u64::try_from(kept).unwrap_or(u64::MAX)
    }
}
