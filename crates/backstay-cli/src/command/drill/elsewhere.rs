//! A drill against another gateway: where it has to send its calls, and one case after the other.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use indicatif::ProgressBar;
use tokio::time::Instant;

use super::Command;
use super::caller::Caller;
use super::file::DialectWord;
use super::fleet::{Fleet, Names};
use super::judge::Verdict;
use super::plan::{Case, Drill};
use super::rules::Call;
use super::scorecard::RowCard;
use crate::print;

#[derive(Debug, Args)]
pub(super) struct Options {
    /// Drills the gateway at this base URL, which ends before /chat/completions, and not our own
    #[arg(long, value_name = "URL")]
    pub against: Option<String>,
    /// The environment variable with the key it wants
    #[arg(long, value_name = "NAME", requires = "against")]
    key_env: Option<String>,
    /// The model asked for; {case} in it is the name of the case, in lower case with hyphens
    #[arg(long, value_name = "NAME", default_value = "drill", requires = "against")]
    model: String,
    /// Seconds to wait until it answers a healthy call
    #[arg(long, value_name = "SECONDS", default_value_t = 30, requires = "against")]
    wait: u64,
}

/// The first port of a fleet that has no address given: the other gateway's config has to name them.
const FIRST_PORT: u16 = 9101;

/// What holds of another gateway: nothing false, nothing that hangs.
const ALLOWED: [Verdict; 3] = [Verdict::Pass, Verdict::Partial, Verdict::Safe];

/// Plays every case at `url`, one after the other: one model name stands for all of them.
pub(super) async fn play(
    drill: &Drill,
    url: &str,
    command: &Command,
    bar: &ProgressBar,
) -> anyhow::Result<RowCard> {
    let options = &command.elsewhere;
    let key = options
        .key_env
        .as_deref()
        .map(|name| std::env::var(name).with_context(|| format!("{name} is not set")));
    let caller = Arc::new(Caller::new(url, key.transpose()?, &options.model));
    let addresses = addresses(&command.listen, drill.fleet.len());
    let fleet = Fleet::start(drill, &addresses, Names::Any).await?;
    instruct(drill, &fleet, &options.model);
    let wait = Duration::from_secs(options.wait.min(3_600));
    if let Some(case) = drill.cases.first() {
        reachable(case, &caller, &fleet, wait).await?;
    }
    let mut cards = Vec::new();
    for case in &drill.cases {
        cards.push(super::one(case, &ALLOWED, &caller, &fleet, bar).await);
    }
    bar.finish_and_clear();
    fleet.stop().await;
    Ok(RowCard::new(url, cards))
}

/// Those given, then ports in a row from 9101.
fn addresses(given: &[SocketAddr], members: usize) -> Vec<SocketAddr> {
    let usual = (FIRST_PORT..).map(|port| SocketAddr::from(([127, 0, 0, 1], port)));
    given.iter().copied().chain(usual.skip(given.len())).take(members).collect()
}

/// Says how the other gateway has to be set up.
fn instruct(drill: &Drill, fleet: &Fleet, model: &str) {
    print::talk(&format!("model `{model}` of the gateway must lead, in this order, to"));
    for (at, member) in drill.fleet.iter().enumerate() {
        let dialect = match member.dialect {
            DialectWord::OpenaiChat => "OpenAI",
            DialectWord::Anthropic => "Anthropic",
        };
        let url = fleet.base_url(&member.name, member.dialect);
        print::talk(&format!(
            "  {}. {:<12} {url}  ({dialect}, any key, any model)",
            at + 1,
            member.name
        ));
    }
}

/// Waits until a healthy call is answered.
async fn reachable(
    case: &Case,
    caller: &Caller,
    fleet: &Fleet,
    wait: Duration,
) -> anyhow::Result<()> {
    let end = Instant::now() + wait;
    loop {
        fleet.rest();
        let Call { status, outcome, answered, .. } = caller.ask(case).await;
        if answered {
            return Ok(());
        }
        if Instant::now() > end {
            let status = status.map_or_else(|| "no status".to_owned(), |status| status.to_string());
            bail!("the gateway did not answer a healthy call: {status} {outcome}");
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}
