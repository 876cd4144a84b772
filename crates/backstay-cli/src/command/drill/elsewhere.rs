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
    /// Seconds to wait before each case until a healthy call goes to the first member again
    #[arg(long, value_name = "SECONDS", default_value_t = 90, requires = "against")]
    wait: u64,
}

/// The first port of a fleet that has no address given: the other gateway's config has to name them.
const FIRST_PORT: u16 = 9101;

/// The pause between two healthy calls: a share of calls must be enough to find a way back.
const BETWEEN: Duration = Duration::from_millis(250);

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
    let mut cards = Vec::new();
    for case in &drill.cases {
        recovered(case, &caller, &fleet, wait).await?;
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

/// Waits until a healthy call is answered by who is to be asked first: a breaker that the case before
/// left open would hide the fault. Where that takes too long the case is played all the same, and its
/// card says who was not asked.
///
/// # Errors
/// No healthy call was answered by anybody.
async fn recovered(
    case: &Case,
    caller: &Caller,
    fleet: &Fleet,
    wait: Duration,
) -> anyhow::Result<()> {
    let end = Instant::now() + wait;
    fleet.rest();
    loop {
        let Call { status, outcome, answered, .. } = caller.ask(case).await;
        let is_over = Instant::now() > end;
        if !answered && is_over {
            let status = status.map_or_else(|| "no status".to_owned(), |status| status.to_string());
            bail!("the gateway did not answer a healthy call: {status} {outcome}");
        }
        if answered && (is_over || fleet.was_asked(&case.tiers)) {
            return Ok(());
        }
        tokio::time::sleep(BETWEEN).await;
    }
}
