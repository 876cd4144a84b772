//! How many tokens a text may be: an upper bound first, a better count near the limit.

/// An upper bound of the tokens in a text of `bytes` bytes.
pub fn upper_bound(bytes: u64) -> u64 {
    bytes
}
