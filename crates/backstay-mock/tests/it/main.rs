//! The mock over real sockets: what goes over the wire, and what its log says of it.
#![cfg(test)]

#[cfg(test)]
mod client;
#[cfg(test)]
mod table;
#[cfg(test)]
mod truth;
