//! Lists the Rust files to check: those git tracks, and new ones it does not ignore.

use std::path::Path;
use std::process::Command;

use anyhow::Context as _;

/// Where checked code lives.
pub(crate) const FOLDERS: [&str; 3] = ["crates", "xtask", "examples"];

/// Paths from `root`, sorted, each once. A tracked file that is deleted on disk is left out.
///
/// # Errors
/// When git is missing or `root` is not in a git repository.
pub(crate) fn list(root: &Path) -> anyhow::Result<Vec<String>> {
    let listing = Command::new("git")
        // A build machine may run as another user than the clone's owner; listing is harmless.
        .args(["-c", "safe.directory=*"])
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"])
        .args(FOLDERS)
        .current_dir(root)
        .output()
        .context("run git; tidy needs it to know which files are ours")?;
    anyhow::ensure!(
        listing.status.success(),
        "git ls-files failed: {}",
        String::from_utf8_lossy(&listing.stderr).trim()
    );
    let mut paths = rust_files(&String::from_utf8_lossy(&listing.stdout));
    paths.retain(|path| root.join(path).is_file());
    Ok(paths)
}

fn rust_files(listing: &str) -> Vec<String> {
    let is_rust = |path: &&str| Path::new(path).extension().is_some_and(|end| end == "rs");
    let mut paths: Vec<String> =
        listing.split('\0').filter(is_rust).map(ToOwned::to_owned).collect();
    paths.sort();
    paths.dedup();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_rust_files_are_kept_sorted_and_once() {
        let listing = "crates/b.rs\0crates/a.rs\0crates/b.rs\0crates/Cargo.toml\0crates/rs\0";
        assert_eq!(rust_files(listing), ["crates/a.rs", "crates/b.rs"]);
    }

    #[test]
    fn a_folder_outside_any_repository_is_an_error() {
        assert!(list(Path::new("/")).is_err());
    }
}
