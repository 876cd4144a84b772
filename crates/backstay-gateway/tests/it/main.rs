//! The promises, kept over real sockets: every behaviour of the mock provider through the gateway,
//! seen from the caller's side and from the provider's.

mod client;
mod failures;
mod hang_up;
mod pairs;
mod streams;
mod structure;
mod told;
mod world;
