//! `backstay demo`: the triage example against a provider that misbehaves, in one process.
//!
//! Real sockets all the way: tickets go over HTTP to the gateway, the gateway's calls over HTTP to
//! the mock. The faults are scripted and seeded; the mock's own log is the judge of what was sent.

mod cast;
mod client;
mod report;
mod tickets;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Context;
use backstay_gateway::auth::Callers;
use backstay_gateway::{Gateway, Running};
use backstay_mock::Mock;
use clap::Args;

use crate::{print, settings};
use client::{Client, Seen};
use tickets::Ticket;

const AFTER: &str = "Exit codes: 0 every ticket ended with a valid answer or a typed failure, and \
the provider's log agrees; 1 some did not; 2 it could not run.";

#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Demo {
    /// Tickets to send; there are about sixty
    #[arg(long, value_name = "NUMBER")]
    tickets: Option<usize>,
    /// Tickets under way at once
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    at_once: usize,
    /// Seed of the faults
    #[arg(long, value_name = "NUMBER", default_value_t = 7)]
    seed: u64,
    /// Keeps serving afterwards and prints how to call it
    #[arg(long)]
    stay: bool,
}

/// A demo set up: provider, gateway, tickets.
struct Stage {
    mock: Mock,
    running: Running,
    tickets: Vec<Ticket>,
}

pub(crate) fn run(demo: &Demo) -> ExitCode {
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            print::talk(&format!("error: no threads to run on: {error}"));
            return ExitCode::from(2);
        }
    };
    match runtime.block_on(play(demo)) {
        Ok(report::Verdict::Good) => ExitCode::SUCCESS,
        Ok(report::Verdict::Bad) => ExitCode::from(1),
        Err(error) => {
            print::talk(&format!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

async fn play(demo: &Demo) -> anyhow::Result<report::Verdict> {
    let stage = set_up(demo).await?;
    let address = stage.running.address();
    print::talk(&format!(
        "{} tickets to the gateway at {address}; behind it three tiers that misbehave ({} steps \
         scripted, seed {})",
        stage.tickets.len(),
        cast::STEPS,
        demo.seed
    ));
    let seen = send_all(demo, &stage).await;
    let engine = stage.running.gateway().engine().clone();
    let verdict = report::print(&seen, &stage.tickets, &stage.mock.log(), engine.call_log());
    if demo.stay {
        report::how_to_call(address);
        super::serve::signal().await;
    }
    stage.running.stop().await;
    stage.mock.stop().await;
    Ok(verdict)
}

async fn set_up(demo: &Demo) -> anyhow::Result<Stage> {
    let mut tickets = tickets::all()?;
    tickets.truncate(demo.tickets.unwrap_or(usize::MAX).max(1));
    let answers = super::mock::answers(tickets::TEXT)?;
    let settings =
        backstay_mock::Settings { seed: demo.seed, answers, ..backstay_mock::Settings::default() };
    let mock = Mock::start(settings).await.context("the mock provider cannot listen")?;
    cast::script(&mock, demo.seed);
    let settings = cast::settings(&mock)?;
    let engine = settings::engine(&settings)?;
    let gateway = Gateway::new(engine, Callers::new(&settings.keys), settings.server);
    let running = gateway.start().await.context("the gateway cannot listen")?;
    Ok(Stage { mock, running, tickets })
}

/// Sends every ticket, a few at a time, and shows how far it is.
async fn send_all(demo: &Demo, stage: &Stage) -> Vec<Seen> {
    let bar = print::bar(stage.tickets.len(), "tickets");
    let client = Arc::new(Client::new(stage.running.address()));
    let next = Arc::new(AtomicUsize::new(0));
    let tickets = Arc::new(stage.tickets.clone());
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..demo.at_once.clamp(1, 64) {
        let (client, next, tickets, bar) =
            (Arc::clone(&client), Arc::clone(&next), Arc::clone(&tickets), bar.clone());
        workers.spawn(async move {
            let mut seen = Vec::new();
            while let Some(ticket) = tickets.get(next.fetch_add(1, Ordering::Relaxed)) {
                seen.push(client.send(ticket).await);
                bar.inc(1);
            }
            seen
        });
    }
    let mut all: Vec<Seen> = workers.join_all().await.into_iter().flatten().collect();
    bar.finish_and_clear();
    all.sort_by(|a, b| a.ticket.cmp(&b.ticket));
    all
}
