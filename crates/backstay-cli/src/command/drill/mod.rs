//! `backstay drill`: plays faults from a file against a gateway, and says what held.
//!
//! ```text
//! file ─waits─▶ plan ─▶ fleet (mocks) + plant (our gateway, or a URL) ─load─▶ calls, hits
//!                                                                  judge, rules ─▶ scorecard
//! ```
//!
//! Real sockets all the way. The judge reads replies by itself, and believes the providers' own logs
//! rather than what the gateway says of itself.

mod caller;
mod elsewhere;
mod file;
mod fleet;
mod judge;
mod load;
mod plan;
mod plant;
mod rules;
mod scorecard;
mod told;
mod waits;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::print;
use caller::Caller;
use file::RowTable;
use fleet::{Fleet, Names};
use plan::{Case, Drill};
use scorecard::{Card, CaseCard, RowCard};
use waits::Pace;

const AFTER: &str = "Verdicts: pass, the right end inside the deadline; partial, text and then an \
error; safe, a typed failure and nothing false; fail, a false success, a hang, or a failure without \
a type. docs/reference/drill.md tells what a file can say.

Exit codes: 0 all holds; 1 something does not; 2 the file or the arguments are wrong, or it could \
not run.";

#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Command {
    /// The drill, such as drills/public16.toml
    file: PathBuf,
    /// Takes the short one of each wait, for every build
    #[arg(long)]
    fast: bool,
    /// Only cases whose name has this in it; may be given more than once
    #[arg(long, value_name = "TEXT")]
    case: Vec<String>,
    /// Only the row of this name
    #[arg(long, value_name = "NAME")]
    row: Option<String>,
    /// Cases under way at once; against a URL always 1
    #[arg(long, value_name = "NUMBER", default_value_t = 8)]
    at_once: usize,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Also writes the result as JSON into this file
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Addresses of the fleet, in its order; free ports where they end
    #[arg(long, value_name = "ADDRESS")]
    listen: Vec<SocketAddr>,
    #[command(flatten)]
    elsewhere: elsewhere::Options,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

pub(crate) fn run(command: &Command) -> ExitCode {
    let played = tokio::runtime::Runtime::new()
        .context("no threads to run on")
        .and_then(|runtime| runtime.block_on(play(command)));
    match played.and_then(|card| told(command, &card)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            print::talk(&format!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

/// Prints the card; gives whether all holds.
fn told(command: &Command, card: &Card) -> anyhow::Result<bool> {
    let json = serde_json::to_string_pretty(card)?;
    if let Some(path) = &command.json {
        std::fs::write(path, &json).with_context(|| path.display().to_string())?;
    }
    print::line(&if command.format == Format::Json { json } else { card.text() });
    Ok(card.held)
}

async fn play(command: &Command) -> anyhow::Result<Card> {
    let pace = if command.fast { Pace::Fast } else { Pace::Real };
    let drill = chosen(plan::load(&command.file, pace)?, command)?;
    let calls: usize = drill.cases.iter().map(|case| case.ask.requests).sum();
    if let Some(url) = &command.elsewhere.against {
        let bar = print::bar(calls, "calls");
        let row = elsewhere::play(&drill, url, command, &bar).await?;
        return Ok(Card::new(&drill.title, url, command.fast, vec![row]));
    }
    let bar = print::bar(calls * drill.rows.len(), "calls");
    let mut rows = Vec::new();
    for row in &drill.rows {
        rows.push(embedded(&drill, row, command, &bar).await?);
    }
    bar.finish_and_clear();
    Ok(Card::new(&drill.title, "embedded", command.fast, rows))
}

/// The drill without what was not asked for.
fn chosen(mut drill: Drill, command: &Command) -> anyhow::Result<Drill> {
    let wanted = |name: &str| command.case.iter().any(|text| name.contains(text.as_str()));
    drill.cases.retain(|case| command.case.is_empty() || wanted(&case.name));
    drill.rows.retain(|row| command.row.as_ref().is_none_or(|name| *name == row.name));
    ensure!(!drill.cases.is_empty(), "no case has that in its name");
    ensure!(!drill.rows.is_empty(), "no row has that name");
    Ok(drill)
}

/// One row against our own gateway, cases side by side.
async fn embedded(
    drill: &Drill,
    row: &RowTable,
    command: &Command,
    bar: &ProgressBar,
) -> anyhow::Result<RowCard> {
    let fleet = Arc::new(Fleet::start(drill, &command.listen, Names::OfCases).await?);
    let running = plant::start(drill, row, &fleet).await?;
    let base = format!("http://{}/v1", running.address());
    let caller = Arc::new(Caller::new(&base, None, "{case}"));
    let places = Arc::new(Semaphore::new(command.at_once.clamp(1, 64)));
    let mut playing = JoinSet::new();
    for (nth, case) in drill.cases.iter().enumerate() {
        let (case, caller, fleet, places) =
            (Arc::clone(case), Arc::clone(&caller), Arc::clone(&fleet), Arc::clone(&places));
        let (bar, allow) = (bar.clone(), row.allow.clone());
        playing.spawn(async move {
            let _place = places.acquire().await;
            (nth, one(&case, &allow, &caller, &fleet, &bar).await)
        });
    }
    let mut cards = playing.join_all().await;
    cards.sort_by_key(|(nth, _)| *nth);
    running.stop().await;
    fleet.stop().await;
    Ok(RowCard::new(&row.name, cards.into_iter().map(|(_, card)| card).collect()))
}

/// One case.
async fn one(
    case: &Arc<Case>,
    allow: &[judge::Verdict],
    caller: &Arc<Caller>,
    fleet: &Fleet,
    bar: &ProgressBar,
) -> CaseCard {
    let calls = load::play(case, caller, fleet, bar).await;
    let seen = fleet.seen(case).await;
    CaseCard::new(case, allow, calls, seen)
}
