//! Chores of this repository: `cargo xtask tidy` checks the house rules that clippy cannot see.

use std::env;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

mod tidy;

const USAGE: &str = "usage: cargo xtask tidy\n\n  tidy   check the house rules on every Rust file of the repository\n\nexit codes: 0 all in order, 1 something to mend, 2 wrong use or the check could not run\n";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["tidy"] => settle(tidy_repository()),
        ["--help" | "-h" | "help"] => settle(say(USAGE).map(|()| ExitCode::SUCCESS)),
        _ => {
            // Nothing better can be done when even the complaint cannot be written.
            let _ = io::stderr().write_all(USAGE.as_bytes());
            ExitCode::from(2)
        }
    }
}

fn settle(outcome: anyhow::Result<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        let _ = writeln!(io::stderr(), "xtask: {error:#}");
        ExitCode::from(2)
    })
}

fn tidy_repository() -> anyhow::Result<ExitCode> {
    let report = tidy::check(&root())?;
    for offence in &report.offences {
        say(&format!("{offence}\n"))?;
    }
    let (files, count) = (report.files, report.offences.len());
    if count == 0 {
        say(&format!("tidy: {files} files in order\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    say(&format!("tidy: {count} to mend in {files} files\n"))?;
    Ok(ExitCode::FAILURE)
}

fn say(text: &str) -> anyhow::Result<()> {
    Ok(io::stdout().write_all(text.as_bytes())?)
}

/// The repository's root: cargo names this crate's folder, and the root is the one above it.
fn root() -> PathBuf {
    let here = env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from);
    here.as_deref().and_then(Path::parent).map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}
