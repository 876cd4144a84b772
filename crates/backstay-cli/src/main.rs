//! The command `backstay`.

mod command;
mod print;
mod settings;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const ABOUT: &str = "A checked answer from a model, or a typed failure, inside your deadline.

Backstay stands between your application and the model APIs it calls. Point the base URL of an
OpenAI or Anthropic SDK at it; nothing else changes.";

const AFTER: &str = "First steps:
  backstay demo                    see it work: no key, no service
  backstay serve                   serve, with OPENAI_API_KEY or ANTHROPIC_API_KEY set
  backstay check -c backstay.toml  read a config and say what is wrong with it
  backstay explain last            the newest call, step by step

Exit codes:
  0  done
  1  it ran and found something wrong (a config error, a demo that failed)
  2  it could not run (bad arguments, a file that cannot be read, an address in use)";

#[derive(Debug, Parser)]
#[command(name = "backstay", version, about = ABOUT, after_help = AFTER)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves the gateway
    Serve(command::serve::Serve),
    /// Reads a config and says what is wrong with it
    Check(command::check::Check),
    /// Runs the triage example against a misbehaving provider: no key, no service
    Demo(command::demo::Demo),
    /// Runs a model provider that misbehaves on request
    Mock(command::mock::Mock),
    /// Tells one call as a timeline: waits, attempts, every decision with its numbers
    Explain(command::explain::Explain),
}

fn main() -> ExitCode {
    match Arguments::parse().command {
        Command::Serve(serve) => command::serve::run(&serve),
        Command::Check(check) => command::check::run(&check),
        Command::Demo(demo) => command::demo::run(&demo),
        Command::Mock(mock) => command::mock::run(&mock),
        Command::Explain(explain) => command::explain::run(&explain),
    }
}
