//! The same tool call again and again.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::signal::Finding;

/// How often it is made in a row before it is told.
pub(super) const TOLD: u32 = 5;
/// Calls of one reply that are looked at.
const MOST: usize = 64;

/// The last whole call, how often it was made in a row, and the calls of a reply that is coming.
#[derive(Clone, Debug, Default)]
pub(super) struct SameCalls {
    last: u64,
    times: u32,
    coming: Vec<Coming>,
}

/// A call whose arguments come. They are compared without blanks, and none are an empty object.
#[derive(Clone, Debug)]
struct Coming {
    number: u32,
    hasher: DefaultHasher,
    has_arguments: bool,
}

impl SameCalls {
    /// Whether the reply calls a tool.
    pub(super) fn any(&self) -> bool {
        !self.coming.is_empty()
    }

    /// Call `number` of the reply begins.
    pub(super) fn begin(&mut self, number: u32, tool: &str) {
        if self.coming.len() < MOST {
            self.coming.push(Coming::of(number, tool));
        }
    }

    /// Takes the next piece of the arguments of call `number`.
    pub(super) fn feed(&mut self, number: u32, piece: &str) {
        if let Some(call) = self.coming.iter_mut().rfind(|call| call.number == number) {
            call.feed(piece);
        }
    }

    /// Takes note of a whole call from before the reply.
    pub(super) fn before(&mut self, tool: &str, arguments: &str) {
        let mut call = Coming::of(0, tool);
        call.feed(arguments);
        self.count(call);
    }

    /// What the calls of the reply come to, now that they are whole: the longest row of the same.
    pub(super) fn finish(&mut self) -> Option<Finding> {
        let mut most = 0;
        for call in std::mem::take(&mut self.coming) {
            most = most.max(self.count(call));
        }
        (most >= TOLD).then_some(Finding::SameCall { times: most })
    }

    /// How often the same call was made in a row, with this one.
    fn count(&mut self, call: Coming) -> u32 {
        let call = call.digest();
        self.times = if call == self.last { self.times.saturating_add(1) } else { 1 };
        self.last = call;
        self.times
    }
}

impl Coming {
    fn of(number: u32, tool: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        tool.hash(&mut hasher);
        Self { number, hasher, has_arguments: false }
    }

    fn feed(&mut self, piece: &str) {
        for byte in piece.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
            self.hasher.write_u8(byte);
            self.has_arguments = true;
        }
    }

    fn digest(mut self) -> u64 {
        if !self.has_arguments {
            self.feed("{}");
        }
        self.hasher.finish()
    }
}
