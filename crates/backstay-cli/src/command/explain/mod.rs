//! `backstay explain`: one call as a timeline.

mod timeline;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use backstay::record::Row;
use backstay::record::store::sqlite;
use backstay_gateway::config::Problem;
use clap::Args;

use crate::{print, settings};

pub(crate) use timeline::timeline;

const AFTER: &str = "CALL is a call's id (header x-backstay-call-id) or the beginning of one, or \
`last`. Without it the newest calls are listed.

Exit codes: 0 told; 1 no such call; 2 the call log cannot be read.";

#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Explain {
    /// The call's id, the beginning of one, or `last`
    call: Option<String>,
    /// The config file that names the call log [default: backstay.toml here]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The call log itself [default: as the config says, else backstay.sqlite here]
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// The row as JSON
    #[arg(long)]
    json: bool,
}

/// Calls listed when none is named.
const LISTED: u32 = 15;

pub(crate) fn run(explain: &Explain) -> ExitCode {
    let path = match log_path(explain) {
        Ok(path) => path,
        Err(problems) => {
            for problem in &problems {
                print::talk(&problem.to_string());
            }
            print::talk("the config names the call log; mend it, or name the log with --log");
            return ExitCode::from(2);
        }
    };
    if !path.exists() {
        print::talk(&format!(
            "error: there is no call log at {}; name one with --log, or a config with -c",
            path.display()
        ));
        return ExitCode::from(2);
    }
    let told = match explain.call.as_deref() {
        None => sqlite::newest(&path, LISTED).map(|rows| list(&rows)),
        Some("last") => sqlite::newest(&path, 1).map(|rows| tell(rows.first(), explain, &path)),
        Some(id) => sqlite::find(&path, id).map(|row| tell(row.as_ref(), explain, &path)),
    };
    told.unwrap_or_else(|fault| {
        print::talk(&format!("error: {fault}"));
        ExitCode::from(2)
    })
}

/// The call log's file: as named, as the config says, else the default beside us.
///
/// # Errors
/// The config cannot be read: the default might be another service's log.
fn log_path(explain: &Explain) -> Result<PathBuf, Vec<Problem>> {
    let has_file = explain.log.is_none()
        && (explain.config.is_some() || Path::new(settings::DEFAULT_FILE).exists());
    let settings = has_file.then(|| settings::load(explain.config.as_deref())).transpose()?;
    Ok(settings::call_log(explain.log.as_deref(), settings.as_ref()))
}

fn tell(row: Option<&Row>, explain: &Explain, path: &Path) -> ExitCode {
    let Some(row) = row else {
        let id = explain.call.as_deref().unwrap_or_default();
        print::talk(&format!(
            "no call in {} begins with `{id}`; `backstay explain` lists the newest",
            path.display()
        ));
        return ExitCode::from(1);
    };
    if explain.json {
        print::line(&serde_json::to_string_pretty(row).unwrap_or_default());
    } else {
        print::line(&timeline(row));
    }
    ExitCode::SUCCESS
}

fn list(rows: &[Row]) -> ExitCode {
    if rows.is_empty() {
        print::talk("the call log is empty");
        return ExitCode::SUCCESS;
    }
    print::line(&format!(
        "{:<37} {:<14} {:<12} {:<28} {:>8} {:>9}",
        "call", "route", "outcome", "code or target", "attempts", "ms"
    ));
    for row in rows {
        let what = if row.code.is_empty() { row.target.as_str() } else { &row.code };
        print::line(&format!(
            "{:<37} {:<14} {:<12} {:<28} {:>8} {:>9.1}",
            row.call_id, row.route, row.outcome, what, row.attempts, row.latency_ms
        ));
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Explain, log_path};

    fn explain(config: Option<PathBuf>, log: Option<PathBuf>) -> Explain {
        Explain { call: None, config, log, json: false }
    }

    #[test]
    fn a_config_that_cannot_be_read_is_told_and_no_other_log_is_opened() {
        let config = std::env::temp_dir().join(format!("backstay-{}.toml", std::process::id()));
        std::fs::write(&config, "[server]\ncall_lgo = \"a.sqlite\"\n").unwrap();
        let problems = log_path(&explain(Some(config.clone()), None)).unwrap_err();
        assert!(problems.iter().any(|p| p.to_string().contains("call_lgo")), "{problems:?}");
        // Where the log itself is named, the config does not matter.
        let named = log_path(&explain(Some(config.clone()), Some("b.sqlite".into()))).unwrap();
        assert_eq!(named, PathBuf::from("b.sqlite"));
        let missing = log_path(&explain(Some(config.with_extension("missing")), None));
        assert!(missing.is_err());
        std::fs::remove_file(&config).unwrap();
    }
}
