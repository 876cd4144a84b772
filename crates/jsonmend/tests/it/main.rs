//! What the crate promises, tested through its public face.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::panic,
    clippy::string_slice,
    clippy::disallowed_methods,
    reason = "tests print what they count, read the clock, and fail by panic"
)]

mod corpus;
mod damage;
mod generate;
mod kinds;
mod policy;
mod property;
mod reason;
mod schema;
mod stream;
mod suite;
mod time;
mod typed;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
