//! How many calls run at once, and who waits in which order.

use backstay_decide::queue::Rules;

/// Calls that may run at once by default. Each may hold a body of 32 MiB at most; typical ones hold
/// some kilobytes.
pub const SEATS: u32 = 20_000;

/// The gateway's seats and the queue in front of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queueing {
    /// Calls that may run at once. 0: none, every call waits until its time is over.
    pub seats: u32,
    /// Classes, the highest first, and how much may wait. At least one class.
    pub rules: Rules,
}

impl Default for Queueing {
    fn default() -> Self {
        Self { seats: SEATS, rules: Rules::default() }
    }
}

impl Queueing {
    /// The place of a class among the others.
    pub fn class(&self, name: &str) -> Option<usize> {
        self.rules.classes.iter().position(|class| &*class.name == name)
    }

    /// The name of the class at a place; of the last where there is none. Empty: there are none.
    pub fn name(&self, class: usize) -> &str {
        let classes = &self.rules.classes;
        classes.get(class).or(classes.last()).map_or("", |class| &class.name)
    }
}
