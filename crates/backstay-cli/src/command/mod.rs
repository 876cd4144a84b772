//! One file a subcommand.

pub(crate) mod check;
pub(crate) mod demo;
pub(crate) mod drill;
pub(crate) mod explain;
pub(crate) mod mend;
pub(crate) mod mock;
pub(crate) mod report;
pub(crate) mod serve;
