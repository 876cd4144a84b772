//! How a byte stream is cut into messages.

pub mod sse;
