//! The mock over real sockets: what goes over the wire, and what its log says of it.

mod client;
mod table;
mod truth;
