//! A drill against another gateway: where it has to send its calls, and one case after the other.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use clap::Args;
use http::Uri;
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
    /// Seconds to wait before each case until healthy calls go to the first member again
    #[arg(long, value_name = "SECONDS", default_value_t = 180, requires = "against")]
    wait: u64,
}

/// The first port of a fleet that has no address given: the other gateway's config has to name them.
const FIRST_PORT: u16 = 9101;

/// The pause between two healthy calls: a gateway that lets a share of them through must see enough.
const BETWEEN: Duration = Duration::from_millis(100);

/// Healthy calls in a row that go to the first member alone: by chance, at a share of a half, one of a
/// million times.
const STEADY: u32 = 20;

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
    let uri: Uri = url.parse().with_context(|| format!("`{url}` is no URL"))?;
    ensure!(
        matches!(uri.scheme_str(), Some("http" | "https")),
        "`{url}` does not begin with http:// or https://"
    );
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

/// Waits until healthy calls go to who is to be asked first, and to nobody else: a breaker that the
/// case before left open would hide the fault, and one that comes back in steps part of it. Where that
/// takes too long the case is played all the same, and its card says who was not asked.
///
/// # Errors
/// The last healthy call was answered by nobody.
async fn recovered(
    case: &Case,
    caller: &Caller,
    fleet: &Fleet,
    wait: Duration,
) -> anyhow::Result<()> {
    let end = Instant::now() + wait;
    let mut in_a_row = 0;
    while in_a_row < STEADY {
        fleet.rest();
        let Call { status, outcome, answered, .. } = caller.ask(case).await;
        let is_first = answered && fleet.was_only_asked(&case.tiers);
        in_a_row = if is_first { in_a_row + 1 } else { 0 };
        if Instant::now() > end {
            if answered {
                return Ok(());
            }
            let status = status.map_or_else(|| "no status".to_owned(), |status| status.to_string());
            bail!("the gateway did not answer a healthy call: {status} {outcome}");
        }
        tokio::time::sleep(BETWEEN).await;
    }
    Ok(())
}
