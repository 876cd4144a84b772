//! What is done about a reply that was not good enough.
//!
//! The decision itself is one pure table, `backstay_decide::recover`; here is what it takes to
//! carry it out: the turns of a re-ask.

pub mod reask;
