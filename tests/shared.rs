//! Where the data stands that lies beside the repository: cases, suites, recorded bodies. A test that reads
//! it takes this file in by `#[path]`.

#![expect(clippy::print_stdout, reason = "what is left out has to be told")]

use std::path::{Path, PathBuf};

/// The file or folder `path` of `../shared`. `None`: it is not there, which is told, and fails where
/// nothing may be left out.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let found = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(path);
    if found.exists() {
        return Some(found);
    }
    let required = std::env::var("BACKSTAY_REQUIRE").is_ok_and(|what| what == "all");
    assert!(!required, "no ../shared/{path}, and BACKSTAY_REQUIRE=all");
    println!("skipped: no ../shared");
    None
}
