//! Counts what a provider limits over all schemas of a request.

/// What the schemas of one request have used so far of the provider's limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tally {
    /// Optional properties.
    pub optional: usize,
    /// Unions, and types with `null`.
    pub unions: usize,
    /// Members of enums.
    pub members: usize,
    /// Strict tools.
    pub tools: usize,
}
