//! Where the official JSON Schema test suite is, and its files.

#[path = "../../../../tests/shared.rs"]
mod shared;

use std::path::{Path, PathBuf};

use shared::shared;

/// The suite's folder. `None`: it is not there, which is told.
pub(crate) fn suite() -> Option<PathBuf> {
    shared("suites/JSON-Schema-Test-Suite")
}

/// The JSON files of `folder`, in order.
pub(crate) fn json_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "json"));
    files.sort();
    files
}
