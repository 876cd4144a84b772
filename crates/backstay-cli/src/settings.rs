//! Loads the settings for the commands that need them, and builds an engine of them.

use std::path::{Path, PathBuf};

use backstay::clock::Clock;
use backstay::engine::Engine;
use backstay::policy::RuleText;
use backstay::record::CallLog;
use backstay::recover::Template;
use backstay::validate::rules::Rule;
use backstay::validate::schema::Schema;
use backstay_gateway::config::{self, Checks, Outside, Problem, Settings};
use serde_json::Value;

/// The config file looked for when none is named.
pub(crate) const DEFAULT_FILE: &str = "backstay.toml";

/// Rows kept when the call log is in memory.
const MEMORY_ROWS: usize = 10_000;

/// Settings from `file`; with no file from `backstay.toml` when it is there, else from the keys in
/// the environment.
///
/// # Errors
/// Everything wrong with them.
pub(crate) fn load(file: Option<&Path>) -> Result<Settings, Vec<Problem>> {
    outside(|outside| match file {
        Some(path) => config::load(path, outside),
        None if Path::new(DEFAULT_FILE).exists() => config::load(Path::new(DEFAULT_FILE), outside),
        None => config::from_environment(outside),
    })
}

/// Problems that mean there was nothing to read.
const UNREAD: [&str; 2] = ["unreadable", "no-config"];

/// What a command exits with when the settings have these problems: 2 where there was nothing to
/// read, else 1.
pub(crate) fn exit_code(problems: &[Problem]) -> u8 {
    if problems.iter().any(|problem| UNREAD.contains(&problem.code)) { 2 } else { 1 }
}

/// Settings from `text`, whose relative paths begin at `folder`.
///
/// # Errors
/// Everything wrong with them.
pub(crate) fn from_text(text: &str, folder: &Path) -> Result<Settings, Vec<Problem>> {
    outside(|outside| config::from_text(text, "demo.toml", folder, outside))
}

fn outside<T>(then: impl FnOnce(&Outside<'_>) -> T) -> T {
    then(&Outside {
        env: &|name| std::env::var(name).ok(),
        today: Clock::start().today(),
        checks: checks(),
    })
}

/// What the engine says about schemas and rules.
pub(crate) fn checks() -> Checks<'static> {
    Checks {
        schema: &schema_compiles,
        rule: &rule_compiles,
        fits: &value_fits,
        template: &template_compiles,
    }
}

fn schema_compiles(schema: &Value) -> Result<(), String> {
    Schema::with_fallbacks(schema).map(|_| ()).map_err(|fault| fault.to_string())
}

fn rule_compiles(rule: &RuleText) -> Result<(), String> {
    Rule::compile(&rule.name, &rule.check, rule.message.as_deref(), rule.input.as_deref())
        .map(|_| ())
        .map_err(|fault| fault.to_string())
}

fn template_compiles(source: &str) -> Result<(), String> {
    Template::compile(source).map(|_| ()).map_err(|fault| fault.to_string())
}

fn value_fits(schema: &Value, value: &Value) -> Result<(), String> {
    let schema = Schema::compile(schema).map_err(|fault| fault.to_string())?;
    schema.check(value).map_err(|unfit| unfit.errors.join("; "))
}

/// An engine for `settings`, with its call log opened.
///
/// # Errors
/// The log cannot be opened, or the policy does not compile.
pub(crate) fn engine(settings: &Settings) -> anyhow::Result<Engine> {
    let log = match &settings.server.call_log {
        config::CallLog::Sqlite(path) => CallLog::sqlite(path)?,
        config::CallLog::Memory => CallLog::memory(MEMORY_ROWS),
        config::CallLog::Off => CallLog::off(),
    };
    let engine = Engine::new(settings.policy.clone(), log)?;
    engine.resume_spend(&settings.allowances())?;
    Ok(engine)
}

/// The call log's file: `named`, else as `settings` say, else the default beside us.
pub(crate) fn call_log(named: Option<&Path>, settings: Option<&Settings>) -> PathBuf {
    let named = named.map(Path::to_owned).or_else(|| settings.and_then(log_file));
    named.unwrap_or_else(|| PathBuf::from("backstay.sqlite"))
}

/// The call log's file of `settings`, if it is one.
fn log_file(settings: &Settings) -> Option<PathBuf> {
    match &settings.server.call_log {
        config::CallLog::Sqlite(path) => Some(path.clone()),
        config::CallLog::Memory | config::CallLog::Off => None,
    }
}
