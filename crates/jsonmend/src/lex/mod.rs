//! Reads the small things of JSON: plain stretches of strings, escapes, numbers and white space.

pub(crate) mod escape;
pub(crate) mod number;
pub(crate) mod plain;
pub(crate) mod space;
