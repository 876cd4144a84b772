//! What is done about a reply that was not good enough.
//!
//! The decision itself is one pure table, `backstay_decide::recover`; here is what it takes to
//! carry it out: the turns of a re-ask, their wording, and the part of the reply they show.

mod complaint;
mod excerpt;
pub mod reask;
mod template;

pub use complaint::Complaint;
pub use template::{Template, TemplateFault};
