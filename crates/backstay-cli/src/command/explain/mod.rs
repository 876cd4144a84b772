//! `backstay explain`: one call as a timeline.

mod timeline;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use backstay::record::Row;
use backstay::record::store::sqlite;
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
    let path = log_path(explain);
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
fn log_path(explain: &Explain) -> PathBuf {
    if let Some(path) = &explain.log {
        return path.clone();
    }
    let has_file = explain.config.is_some() || Path::new(settings::DEFAULT_FILE).exists();
    let settings = has_file.then(|| settings::load(explain.config.as_deref()).ok()).flatten();
    let named = settings.as_ref().and_then(settings::log_file);
    named.unwrap_or_else(|| PathBuf::from("backstay.sqlite"))
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
