//! The promises, kept over real sockets: every behaviour of the mock provider through the gateway,
//! seen from the caller's side and from the provider's.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, and its steps stand outside of test functions too"
)]

mod admin;
mod alerts;
mod bad_input;
mod breaker;
mod calls;
mod canary;
mod choices;
mod client;
mod cost;
mod doors;
mod drain;
mod early_stop;
mod edits;
mod endings;
mod explained;
mod failures;
mod fixed;
mod guards;
mod hang_up;
mod in_band;
mod levels;
mod library;
mod limits;
mod lowered;
mod mending;
mod metered;
mod modes;
mod pairs;
mod patience;
mod queue;
mod quirks;
mod rates;
mod reask;
mod reported;
mod rescue;
mod retries;
mod shadow;
#[path = "../../../../tests/shared.rs"]
mod shared;
mod signals;
mod simulate;
mod spend;
mod streams;
mod structure;
mod sweep;
mod timers;
mod told;
mod world;
