//! `backstay serve`: the gateway, until it is told to stop.

use std::backtrace::Backtrace;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use backstay::record::Lines;
use backstay_gateway::Gateway;
use backstay_gateway::auth::Callers;
use backstay_gateway::config::Settings;
use backstay_gateway::server::Drained;
use clap::Args;

use crate::simulations::Simulations;
use crate::{print, settings};

const AFTER: &str = "With no file, and no backstay.toml here, the providers come from the \
environment: OPENAI_API_KEY, ANTHROPIC_API_KEY. Then `gpt-…` and `claude-…` names work as they are, \
and `openai/NAME`, `anthropic/NAME` always.

On Ctrl-C or SIGTERM no new connection is taken, calls under way may end (server.drain), and the \
rest is cut. A second signal stops at once.

Exit codes: 0 stopped in order; 1 the config is wrong; 2 it cannot be read, or the address or the \
call log cannot be used.";

/// How long threads may take to end after the stop.
const LINGER: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Serve {
    /// The config file [default: backstay.toml here, else the environment]
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Listens here instead of where the config says; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// Log lines as JSON
    #[arg(long)]
    log_json: bool,
}

pub(crate) fn run(serve: &Serve) -> ExitCode {
    let lines = match Lines::to(std::io::stderr()) {
        Ok(lines) => lines,
        Err(error) => {
            print::talk(&format!("error: no thread to log with: {error}"));
            return ExitCode::from(2);
        }
    };
    logging(&lines, serve.log_json);
    let code = logged(serve, &lines);
    lines.flush();
    code
}

/// Serves with all talk going where the log goes: who has stopped reading it holds nothing up.
fn logged(serve: &Serve, lines: &Lines) -> ExitCode {
    let mut settings = match settings::load(serve.config.as_deref()) {
        Ok(settings) => settings,
        Err(problems) => {
            for problem in &problems {
                lines.say(&problem.to_string());
            }
            lines.say("nothing is served; mend the config, or try `backstay demo`");
            return ExitCode::from(settings::exit_code(&problems));
        }
    };
    for warning in &settings.warnings {
        lines.say(&warning.to_string());
    }
    if let Some(listen) = serve.listen {
        if !listen.ip().is_loopback() && settings.keys.is_empty() {
            lines.say("error: a listen address outside this machine needs [keys] in the config");
            return ExitCode::from(1);
        }
        settings.server.listen = listen;
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            lines.say(&format!("error: no threads to run on: {error}"));
            return ExitCode::from(2);
        }
    };
    let served = runtime.block_on(until_stopped(settings, lines));
    // A name being looked up or a log being written may hold a thread; the process does not wait.
    runtime.shutdown_timeout(LINGER);
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            lines.say(&format!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

async fn until_stopped(settings: Settings, lines: &Lines) -> anyhow::Result<()> {
    let engine = settings::engine(&settings)?;
    engine.watch_lines(lines.clone());
    let callers = Callers::new(&settings.keys).with_admin(settings.admin_key.as_ref());
    let listen = settings.server.listen;
    let running = Gateway::new(engine, callers, settings.server)
        .with_simulator(Arc::new(Simulations::default()))
        .start()
        .await
        .map_err(|error| anyhow::anyhow!("{listen} cannot be listened on: {error}"))?;
    let listening = format!("listening on http://{}", running.address());
    // Not awaited: nobody may read it.
    tokio::task::spawn_blocking(move || print::line(&listening));
    signal().await;
    lines.say("stopping: calls under way may end; press Ctrl-C again to cut them");
    tokio::select! {
        drained = running.stop() => {
            if drained == Drained::Cut {
                lines.say("the drain time is over: calls still under way were cut");
            }
        }
        () = signal() => lines.say("cut"),
    }
    Ok(())
}

/// Ends at Ctrl-C or SIGTERM.
pub(crate) async fn signal() {
    let term = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut term) => {
                term.recv().await;
            }
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        () = term => {}
    }
}

/// Sends log lines, and what a panic says, to `lines`.
fn logging(lines: &Lines, json: bool) {
    use tracing_subscriber::EnvFilter;
    let filter = EnvFilter::try_from_env("BACKSTAY_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = lines.clone();
    let format =
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(move || lines.clone());
    if json {
        format.json().init();
    } else {
        format.with_ansi(false).init();
    }
    // The usual hook writes to standard error itself, and waits for its reader.
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = Backtrace::capture();
        tracing::error!(%panic, %backtrace, "a thread panicked");
    }));
}
