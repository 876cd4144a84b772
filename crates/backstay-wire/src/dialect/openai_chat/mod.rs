//! `OpenAI` Chat Completions, and every server that speaks it.

pub(crate) mod called;
pub mod error;
mod fields;
mod logprobs;
pub mod reply;
pub mod request;
pub mod stream;
mod wire;
