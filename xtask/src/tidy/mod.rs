//! Reads every Rust file of the repository and lists where it leaves the house rules.
//!
//! A rule is a function from one [`Source`] to the [`Offence`]s in it. It sees syntax, never
//! types, so each rule can be tested on a few lines of text.

use std::fs;
use std::path::Path;

use anyhow::Context as _;

mod files;
mod offence;
mod rule;
mod source;

use offence::Offence;
use source::Source;

/// What a run found.
pub(crate) struct Report {
    /// How many files were read; never 0.
    pub(crate) files: usize,
    /// By path, then by line; empty when all is in order.
    pub(crate) offences: Vec<Offence>,
}

/// Checks every Rust file under the folders of [`files::FOLDERS`] of the repository at `root`.
///
/// # Errors
/// When git cannot list the files, when none is found, or when one cannot be read.
pub(crate) fn check(root: &Path) -> anyhow::Result<Report> {
    let paths = files::list(root)?;
    anyhow::ensure!(!paths.is_empty(), "no Rust file under {}", root.display());
    let mut offences = Vec::new();
    for path in &paths {
        let text = fs::read_to_string(root.join(path)).with_context(|| format!("read {path}"))?;
        match Source::parse(path, text) {
            Ok(source) => offences.extend(rule::ALL.iter().flat_map(|rule| rule(&source))),
            Err(offence) => offences.push(offence),
        }
    }
    offences.sort();
    Ok(Report { files: paths.len(), offences })
}
