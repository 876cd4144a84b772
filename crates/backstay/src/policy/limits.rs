//! What the load on a target is kept within.

use backstay_decide::aimd::Bounds;

/// What the load on a target is kept within.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits {
    /// Calls and bytes at once.
    pub places: Bounds,
}
