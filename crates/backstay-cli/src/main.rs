//! The command `backstay`.

mod command;
mod print;
mod settings;
mod simulations;
mod source;

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
  backstay report --since 24h      a day of calls, summed up
  backstay mend < reply.txt        the JSON in a model's reply, mended, with every edit named

Exit codes:
  0  done
  1  it ran and found something wrong (a config error, a demo or a drill that failed)
  2  it could not run (bad arguments, a file that cannot be read, an address in use)
`backstay mend` and `backstay check` have more of them: see their --help.";

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
    /// Plays faults from a file against our gateway or another one, and says what held
    Drill(command::drill::Command),
    /// Runs a model provider that misbehaves on request
    Mock(command::mock::Mock),
    /// Mends the JSON of a model's reply and names every edit
    Mend(command::mend::Mend),
    /// Tells one call as a timeline: waits, attempts, every decision with its numbers
    Explain(command::explain::Explain),
    /// Sums up a stretch of the call log: how calls ended, what went wrong where, what was mended
    Report(command::report::Report),
}

fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // 2 is a result of `mend`, so its bad arguments end with another code.
        Err(error) if error.use_stderr() && first_argument_is("mend") => {
            let _ = error.print();
            return ExitCode::from(command::mend::BAD_USE);
        }
        Err(error) => error.exit(),
    };
    match arguments.command {
        Command::Serve(serve) => command::serve::run(&serve),
        Command::Check(check) => command::check::run(&check),
        Command::Demo(demo) => command::demo::run(&demo),
        Command::Drill(drill) => command::drill::run(&drill),
        Command::Mock(mock) => command::mock::run(&mock),
        Command::Mend(mend) => command::mend::run(&mend),
        Command::Explain(explain) => command::explain::run(&explain),
        Command::Report(report) => command::report::run(&report),
    }
}

fn first_argument_is(word: &str) -> bool {
    std::env::args_os().nth(1).is_some_and(|argument| argument == word)
}
