//! Every way a config can be wrong or doubtful, as its author sees it.
//!
//! Each `config/NAME.toml` is loaded and what is told of it compared with `config/NAME.txt`.
//! `BACKSTAY_UPDATE=1` writes those anew: read the difference before it is kept.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod config_world;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use backstay_gateway::config::{Problem, from_text};
use config_world::outside;

/// Every code a problem can have, but for those of files that cannot be read (`unreadable`,
/// `not-utf8`, `no-config`) and of too many (`more`), which have tests of their own.
const CODES: [&str; 55] = [
    "alias",
    "bad-address",
    "bad-field",
    "bad-header",
    "bad-last-resort",
    "bad-name",
    "bad-rule",
    "bad-schema",
    "bad-secret",
    "bad-stop",
    "bad-template",
    "bad-url",
    "cap-above-model",
    "ceiling-below-cap",
    "ceiling-without-cap",
    "clear-text",
    "duplicate-key",
    "empty-secret",
    "empty-tier",
    "gateway-key-upstream",
    "half-priced",
    "human-unseen",
    "idle-early-stop",
    "idle-finish",
    "idle-key",
    "idle-keys",
    "idle-reasks",
    "literal-secret",
    "longer-than-deadline",
    "longer-than-whole",
    "missing-key",
    "no-price",
    "no-provider",
    "not-allowed",
    "open-gateway",
    "out-of-range",
    "retired",
    "retires",
    "route-as-model",
    "same-model",
    "same-pattern",
    "same-token",
    "syntax",
    "unchecked-stream",
    "unknown-class",
    "unknown-key",
    "unknown-model",
    "unknown-provider",
    "unknown-route",
    "unknown-word",
    "unreachable-tier",
    "unset-variable",
    "unused-model",
    "unused-provider",
    "wrong-type",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config")
}

fn told(path: &Path) -> (Vec<Problem>, bool) {
    let text = fs::read_to_string(path).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    match from_text(&text, &name, &folder(), &outside()) {
        Ok(settings) => (settings.warnings, true),
        Err(problems) => (problems, false),
    }
}

#[test]
fn every_problem_is_told_with_its_place_and_its_cure() {
    let update = std::env::var_os("BACKSTAY_UPDATE").is_some_and(|value| value == "1");
    let mut codes = BTreeSet::new();
    let mut wrong = Vec::new();
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder()).unwrap().map(|e| e.unwrap().path()).collect();
    files.sort();
    for path in files.iter().filter(|path| path.extension().is_some_and(|end| end == "toml")) {
        let (problems, usable) = told(path);
        codes.extend(problems.iter().map(|problem| problem.code));
        let mut text = String::from(if usable { "usable\n" } else { "refused\n" });
        for problem in &problems {
            writeln!(text, "\n[{}] {problem}", problem.code).unwrap();
        }
        let expected = path.with_extension("txt");
        if update {
            fs::write(&expected, &text).unwrap();
        }
        if fs::read_to_string(&expected).unwrap_or_default() != text {
            wrong.push(format!("--- {}\n{text}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "not as recorded:\n{}", wrong.join("\n"));
    let all: BTreeSet<&str> = CODES.into_iter().collect();
    assert_eq!(codes, all, "a code without a fixture, or one that is not listed");
}
