//! Anthropic Messages: `POST /v1/messages`, version 2023-06-01.
//!
//! What a reply says and the neutral form has no place for is dropped when it is read: `citations`
//! of a text block, `caller` of a tool call, which `stop_sequence` matched, and in a stream the
//! blocks of server tools. A reply that stays in this dialect is passed on as its own bytes and
//! keeps them all. Of a request nothing is dropped: see [`request`].

pub(crate) mod block;
pub(crate) mod called;
pub mod error;
pub mod reply;
pub mod request;
pub mod stream;
pub(crate) mod usage;
