//! The same tool call again and again.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::signal::Finding;

/// How often it is made before it is told.
const TOLD: u32 = 5;

/// The last call, and how often it was made in a row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SameCalls {
    last: u64,
    times: u32,
}

impl SameCalls {
    /// Whether there was a call at all.
    pub(super) fn any(&self) -> bool {
        self.times > 0
    }

    /// Takes note of a whole call. The arguments are compared without blanks.
    pub(super) fn note(&mut self, tool: &str, arguments: &str) -> Option<Finding> {
        let mut hasher = DefaultHasher::new();
        tool.hash(&mut hasher);
        for byte in arguments.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
            hasher.write_u8(byte);
        }
        let call = hasher.finish();
        self.times = if call == self.last { self.times.saturating_add(1) } else { 1 };
        self.last = call;
        (self.times >= TOLD).then_some(Finding::SameCall { times: self.times })
    }
}
