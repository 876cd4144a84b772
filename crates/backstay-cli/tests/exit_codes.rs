//! What the commands exit with when the config cannot be used: the same for all, as `--help` says.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

/// Exit code and standard error of `backstay COMMAND -c FILE`, with no variable set.
fn run(command: &str, file: &Path) -> (Option<i32>, String) {
    let mut backstay = Command::new(env!("CARGO_BIN_EXE_backstay"));
    let output = backstay.args([command, "-c"]).arg(file).env_clear().output().unwrap();
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_config_that_cannot_be_read_is_told_apart_from_a_wrong_one() {
    let folder = std::env::temp_dir().join(format!("backstay-exit-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let wrong = folder.join("wrong.toml");
    std::fs::write(&wrong, "[server]\nlisten = 5\n").unwrap();
    let seen: Vec<_> = ["check", "serve"]
        .into_iter()
        .flat_map(|command| {
            [(folder.join("none.toml"), 2), (folder.clone(), 2), (wrong.clone(), 1)]
                .map(|(file, code)| (command, code, run(command, &file)))
        })
        .collect();
    std::fs::remove_dir_all(&folder).unwrap();
    for (command, expected, (code, words)) in seen {
        assert_eq!(code, Some(expected), "{command}: {words}");
    }
}
