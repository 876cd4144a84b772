//! Every decision of Backstay as a plain value: no clock, no socket, no lock, no task.
//!
//! A decision here has the shape `(state, event, now, dice) -> state, action`. The engine reads the
//! clock and rolls the dice, asks, and does what the answer says; so every rule is a plain unit
//! test, and the same inputs always give the same answer.
//!
//! | question | module |
//! |---|---|
//! | what went wrong, and whose turn is it to act? | [`fault`], [`refusal`] |
//! | what now: again, elsewhere, re-ask, hand on, or end? | [`recover`] |
//! | who answers next? | [`tiers`] |
//! | may this target be called? | [`breaker`] |
//! | how fast, and how much at once? | [`pacing`], [`aimd`] |
//! | may it be tried once more, or take another's load? | [`extra`] |
//! | who waits, who goes next, who leaves? | [`queue`] |
//! | how long to wait? | [`backoff`], [`retry_after`] |
//! | how much time is there? | [`deadline`], [`timers`], [`latency`], [`usual`] |
//! | does the request fit? | [`budget`] |
//! | may it be asked once more? | [`recover::reask`] |
//! | what does it cost, and may the key pay it? | [`money`], [`spend`] |
//! | does a reply go wrong while it comes? | [`detectors`] |
//! | what can the limits carry? | [`capacity`] |
//! | what is an operator told of, and how often? | [`alert`], [`shift`] |

pub mod aimd;
pub mod alert;
pub mod backoff;
pub mod breaker;
pub mod budget;
pub mod capacity;
pub mod deadline;
pub mod detectors;
pub mod dice;
pub mod extra;
pub mod fault;
pub mod latency;
pub mod money;
pub mod pacing;
pub mod queue;
pub mod recover;
pub mod refusal;
pub mod retry_after;
pub mod shift;
pub mod span;
pub mod spend;
pub mod tiers;
pub mod time;
pub mod timers;
pub mod usual;

pub use backoff::Backoff;
pub use breaker::{Breaker, Verdict};
pub use dice::{Dice, Scripted, Seeded};
pub use fault::{Fault, Side};
pub use money::{Money, Price, Prices};
pub use refusal::Local;
pub use time::Moment;
