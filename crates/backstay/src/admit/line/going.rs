//! A call whose turn came.

use std::time::Duration;

use backstay_decide::queue::Running;

use super::{Gate, Line};

/// A call that goes. When it is dropped the next may.
#[derive(Debug)]
pub struct Going<G: Gate> {
    line: Line<G>,
    /// `None` while it is dropped only.
    running: Option<Running>,
    /// `None` while it is dropped only.
    pass: Option<G::Pass>,
    /// What it took. `None`: what it said on entry.
    took: Option<u64>,
    waited: Duration,
}

impl<G: Gate> Going<G> {
    pub(super) fn new(line: Line<G>, running: Running, pass: G::Pass) -> Self {
        let waited = running.waited;
        Self { line, running: Some(running), pass: Some(pass), took: None, waited }
    }

    /// How long it waited.
    pub fn waited(&self) -> Duration {
        self.waited
    }

    /// Corrects what its class is charged to what it took.
    pub fn took(&mut self, cost: u64) {
        self.took = Some(cost);
    }
}

impl<G: Gate> Drop for Going<G> {
    fn drop(&mut self) {
        // The gate has it back before the next one asks.
        drop(self.pass.take());
        let Some(running) = self.running.take() else { return };
        let shared = &*self.line.shared;
        let mut state = shared.state.lock();
        let cost = running.cost();
        state.queue.done(running, self.took.unwrap_or(cost));
        state.running = state.running.saturating_sub(1);
        state.drain.count(cost);
        if state.slots.is_empty() {
            return;
        }
        drop(state);
        self.line.look();
    }
}
