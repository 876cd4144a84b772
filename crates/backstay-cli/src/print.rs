//! The only place that writes to the terminal: results to standard output, talk to standard error.
#![expect(clippy::print_stderr, reason = "this is where printing is done")]

use std::io::Write;

/// A line of the result. A closed pipe ends the output, not the program.
pub(crate) fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// A line of talk: progress, hints, errors.
pub(crate) fn talk(text: &str) {
    eprintln!("{text}");
}
