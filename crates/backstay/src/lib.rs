//! A checked answer from a model, or a typed failure, inside the caller's deadline.
//!
//! The folders stand in the order of a call: [`contract`] settles what is asked, [`admit`] lets it
//! in, [`route`] chooses who answers, [`attempt`] asks, [`validate`] judges the reply, [`recover`]
//! decides what to do about a bad one, [`record`] writes down what happened. [`call`] is the spine
//! that strings them together.

pub mod admit;
pub mod attempt;
pub mod call;
pub mod clock;
pub mod contract;
pub mod engine;
pub mod fault;
pub mod policy;
pub mod record;
pub mod recover;
pub mod route;
pub mod units;
pub mod validate;
