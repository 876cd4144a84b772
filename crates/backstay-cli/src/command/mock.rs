//! `backstay mock`: the provider that misbehaves on request.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use backstay_mock::{Answer, GENERAL_PARAMS, behaviours};
use clap::Args;
use serde::Deserialize;
use serde_json::Value;

use crate::print;

const AFTER: &str = "The model's name picks the behaviour: NAME[+key=value]…, such as `healthy`, \
`status-503+times=2`, `slow-first+wait=3s`. `--list` prints them all.
Ground truth: GET /_mock/log, POST /_mock/reset, POST /_mock/script, POST /_mock/limits.

Exit codes: 0 stopped; 2 the address or the answers cannot be used.";

#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Mock {
    /// Prints every behaviour and ends
    #[arg(long)]
    list: bool,
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8090")]
    listen: SocketAddr,
    /// The same seed and requests give the same replies
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    seed: u64,
    /// Known answers, a JSON object a line: {"text": part of the message, "label": the reply}
    #[arg(long, value_name = "FILE")]
    answers: Option<PathBuf>,
}

/// One line of an answers file.
#[derive(Debug, Deserialize)]
struct Row {
    #[serde(alias = "contains")]
    text: String,
    #[serde(alias = "reply")]
    label: Value,
}

pub(crate) fn run(mock: &Mock) -> ExitCode {
    if mock.list {
        list();
        return ExitCode::SUCCESS;
    }
    match serve(mock) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            print::talk(&format!("error: {error:#}"));
            ExitCode::from(2)
        }
    }
}

fn list() {
    let mut family = "";
    for behaviour in behaviours() {
        if behaviour.family.name() != family {
            family = behaviour.family.name();
            print::line(&format!("\n{family}"));
        }
        print::line(&format!("  {:<22} {}", behaviour.name, behaviour.summary));
        for param in behaviour.params {
            print::line(&format!("  {:<22}   +{param}", ""));
        }
    }
    print::line("\nwith every behaviour");
    for (param, meaning) in GENERAL_PARAMS {
        print::line(&format!("  +{param:<21} {meaning}"));
    }
}

fn serve(mock: &Mock) -> anyhow::Result<()> {
    let answers = match &mock.answers {
        Some(path) => read(path)?,
        None => Vec::new(),
    };
    let settings = backstay_mock::Settings {
        listen: mock.listen,
        seed: mock.seed,
        answers,
        ..backstay_mock::Settings::default()
    };
    tokio::runtime::Runtime::new()?.block_on(async {
        let running = backstay_mock::Mock::start(settings)
            .await
            .with_context(|| format!("{} cannot be listened on", mock.listen))?;
        print::line(&format!("listening on {}", running.url()));
        print::talk(&format!("  OpenAI base URL     {}", running.openai_base()));
        print::talk(&format!("  Anthropic base URL  {}", running.anthropic_base()));
        print::talk("  behaviours          backstay mock --list");
        super::serve::signal().await;
        running.stop().await;
        Ok(())
    })
}

fn read(path: &Path) -> anyhow::Result<Vec<Answer>> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("{} cannot be read", path.display()))?;
    answers(&text).with_context(|| format!("in {}", path.display()))
}

/// Answers from JSON lines.
///
/// # Errors
/// A line is not of the form; its number is told.
pub(crate) fn answers(text: &str) -> anyhow::Result<Vec<Answer>> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            let row: Row = serde_json::from_str(line).with_context(|| {
                format!("line {}: not {{\"text\": …, \"label\": …}}", number + 1)
            })?;
            Ok(Answer { contains: row.text, reply: row.label, text: None })
        })
        .collect()
}
