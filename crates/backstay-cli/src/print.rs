//! The only place that writes to the terminal: results to standard output, talk to standard error.
use std::io::Write;

/// A line of the result. A closed pipe ends the output, not the program.
pub(crate) fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// A line of talk: progress, hints, errors. Nobody may be listening; that is no reason to stop.
pub(crate) fn talk(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}
