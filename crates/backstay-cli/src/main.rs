//! The command `backstay`.

fn main() {}
