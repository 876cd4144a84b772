//! The engine behind HTTP: what an SDK sees when its base URL points at Backstay.
//!
//! ```text
//!  socket ─▶ server (limits, drain) ─▶ api (path, method) ─▶ auth ─▶ body (bounded)
//!                                        │
//!            POST /v1/chat/completions ──┤ chat ─▶ backstay::call::answer ─▶ respond
//!            POST /v1/messages ──────────┘
//!            GET /v1/models, /health/*, /metrics
//!            /admin/* ─▶ the operator's view and orders, behind a key of its own
//!            any other path of a provider ─▶ handed through raw
//! ```

pub mod api;
pub mod auth;
pub mod body;
mod canned;
pub mod carry;
pub mod config;
mod door;
pub mod hold;
mod patience;
pub mod respond;
mod room;
pub mod server;
pub mod simulate;
mod stalled;
mod turn;
mod workers;

pub use server::{Drained, Gateway, Running};
