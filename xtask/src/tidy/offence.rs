//! One place that breaks a rule, and how to mend it.

use std::fmt;

/// Printed as `path:line: what: how to mend`, which editors and terminals turn into a link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Offence {
    /// From the repository's root, with `/`.
    pub(crate) path: String,
    /// From 1.
    pub(crate) line: usize,
    pub(crate) what: String,
    pub(crate) mend: String,
}

impl fmt::Display for Offence {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}: {}", self.path, self.line, self.what, self.mend)
    }
}
