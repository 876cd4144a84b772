//! The mock over real sockets: what goes over the wire, and what its log says of it.
#![cfg(test)]

#[cfg(test)]
mod case;
#[cfg(test)]
mod client;
#[cfg(test)]
mod damages;
#[cfg(test)]
mod failures;
#[cfg(test)]
mod replies;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod table;
#[cfg(test)]
mod tools;
#[cfg(test)]
mod truth;
