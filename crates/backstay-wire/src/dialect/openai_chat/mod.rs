//! Placeholder of the dialect's four files.

pub mod error;
pub mod reply;
pub mod request;
pub mod stream;
