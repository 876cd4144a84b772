//! `OpenAI` Chat Completions, and every server that speaks it.

pub mod error;
mod fields;
pub mod reply;
pub mod request;
pub mod stream;
mod wire;
