//! The only place that writes to the terminal: results to standard output, talk to standard error.

use std::io::Write;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A line of the result. A closed pipe ends the output, not the program.
pub(crate) fn line(text: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}

/// A line of talk: progress, hints, errors. Nobody may be listening; that is no reason to stop.
pub(crate) fn talk(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// A bar that shows how many of `length` things are done, on standard error; on something that is no
/// terminal it shows nothing.
pub(crate) fn bar(length: usize, things: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(length as u64), ProgressDrawTarget::stderr());
    let template = format!("  [{{bar:40}}] {{pos}}/{{len}} {things}  {{elapsed}}");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar
}
