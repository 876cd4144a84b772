//! `backstay report`: a stretch of the call log, summed up.

mod span;
mod sums;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use backstay::clock::Clock;
use backstay::policy::Policy;
use backstay::record::store::sqlite;
use clap::Args;

use crate::{print, settings};
use span::Edge;
use sums::Sums;

pub(crate) use sums::nearest_rank;

const AFTER: &str = "Examples:
  backstay report                              the last 24 hours
  backstay report --since 7d --route triage    a week of one route
  backstay report --since 2026-11-01 --until 2026-12-01 --json

--since and --until take a length of time back from now (90m, 24h, 7d), a day (2026-11-30, from its \
midnight UTC) or a moment (2026-11-30T14:00:00Z).

What it says: how the calls ended and with which codes; by target its requests, faults and tokens, \
with the cost where the config has prices; what was mended; retries, re-asks and changes of target; \
how long it took. For a route that only watches (mode = \"shadow\") it says what Backstay would have \
changed.

Exit codes: 0 told; 1 no call in that time; 2 the call log or the config cannot be read, or bad \
arguments.";

#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Report {
    /// The call log [default: as the config says, else backstay.sqlite here]
    #[arg(value_name = "LOG")]
    log: Option<PathBuf>,
    /// From when
    #[arg(long, value_name = "WHEN", default_value = "24h")]
    since: Edge,
    /// Until when, exclusive [default: now]
    #[arg(long, value_name = "WHEN")]
    until: Option<Edge>,
    /// Only calls of this route; `direct` for targets asked for by name
    #[arg(long, value_name = "ROUTE")]
    route: Option<String>,
    /// The config file that names the call log and has the prices [default: backstay.toml here]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The sums as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(report: &Report) -> ExitCode {
    let (path, policy) = match place(report) {
        Ok(place) => place,
        Err(problems) => {
            for problem in &problems {
                print::talk(&problem.to_string());
            }
            print::talk("the config names the call log; mend it, or name the log itself");
            return ExitCode::from(2);
        }
    };
    if !path.exists() {
        print::talk(&format!("error: there is no call log at {}; name one", path.display()));
        return ExitCode::from(2);
    }
    let now = Clock::start().wall_ms();
    let from = report.since.at(now);
    let until = report.until.map_or(now.saturating_add(1), |until| until.at(now));
    let mut sums = Sums::new(from, until);
    let read = sqlite::each(&path, (from, until), |row| {
        if report.route.as_ref().is_none_or(|route| *route == row.route) {
            sums.add(&row);
        }
    });
    if let Err(fault) = read {
        print::talk(&format!("error: {fault}"));
        return ExitCode::from(2);
    }
    if sums.calls == 0 {
        print::talk(&format!("no call in {} in that time; see --since", path.display()));
        return ExitCode::from(1);
    }
    sums.finish(&policy);
    if report.json {
        print::line(&serde_json::to_string_pretty(&sums).unwrap_or_default());
    } else {
        print::line(&table::of(&sums));
    }
    ExitCode::SUCCESS
}

/// The call log's file, and the policy with the prices; an empty one without a config.
fn place(report: &Report) -> Result<(PathBuf, Policy), Vec<backstay_gateway::config::Problem>> {
    let has_file = report.config.is_some()
        || report.log.is_none() && Path::new(settings::DEFAULT_FILE).exists();
    let config = report.config.as_deref();
    let settings = has_file.then(|| settings::load(config)).transpose()?;
    let log = settings::call_log(report.log.as_deref(), settings.as_ref());
    Ok((log, settings.map(|settings| settings.policy).unwrap_or_default()))
}
