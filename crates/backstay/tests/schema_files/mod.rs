//! Where the official JSON Schema test suite is, and its files.

use std::path::{Path, PathBuf};

/// The suite's folder. `None`: it is not there, which is told, and fails where nothing may be left
/// out.
pub(crate) fn suite() -> Option<PathBuf> {
    let folder = "../../../shared/suites/JSON-Schema-Test-Suite";
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    if folder.is_dir() {
        return Some(folder);
    }
    let wanted = std::env::var("BACKSTAY_REQUIRE").is_ok_and(|value| value == "all");
    assert!(!wanted, "no ../shared, and BACKSTAY_REQUIRE=all");
    println!("skipped: no ../shared");
    None
}

/// The JSON files of `folder`, in order.
pub(crate) fn json_files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "json"));
    files.sort();
    files
}
