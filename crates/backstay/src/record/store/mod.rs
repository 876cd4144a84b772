//! Where records are kept.

#[cfg(feature = "sqlite")]
mod brief;
pub mod memory;
#[cfg(feature = "sqlite")]
mod packed;
#[cfg(feature = "sqlite")]
pub mod sqlite;

/// A store that cannot be opened, read or written.
#[derive(Debug, thiserror::Error)]
#[error("the call log at {place} cannot be {doing}: {cause}")]
pub struct StoreFault {
    /// The file.
    pub place: String,
    /// `opened`, `read`, `written`.
    pub doing: &'static str,
    /// The store's own words.
    pub cause: String,
}
