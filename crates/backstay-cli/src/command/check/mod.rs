//! `backstay check`: reads a config, says what is wrong with it, and what it says; and the same of a
//! schema alone.

mod changes;
mod lints;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use backstay::contract::lint::{Lint, Usage};
use backstay::policy::{CredentialSource, Pinning, Provider, Route, StreamMode, Target, Timer};
use backstay_gateway::config::{CallLog, Problem, Settings, Severity};
use backstay_wire::lower::Subset;
use clap::Args;
use serde_json::{Value, json};

use crate::source::{self, Unread};
use crate::{print, settings};
use changes::Compared;

const AFTER: &str = "Every problem comes with its line and what to do about it. Nothing is asked of \
any provider; the variables the config names must be set.

The schema of each route is looked at too: docs/reference/schema_lint.md has every lint. They are \
warnings; `--allow` silences one by its name.

Examples:
  backstay check -c backstay.toml                    a config with its schemas
  backstay check --schema new.json --cap 300 --target anthropic
                                                     one schema, with a cap and a provider
  backstay check --schema new.json --against old.json
                                                     what the new one breaks, and for whom
  backstay check -c backstay.toml --route triage --against old.json

Exit codes: 0 fine (warnings allowed, but for --strict); 1 it cannot be used, or it breaks those who \
hold the old schema; 2 a file cannot be read.";

#[derive(Debug, Args)]
#[command(after_help = AFTER)]
pub(crate) struct Check {
    /// The config file [default: backstay.toml here, else the environment]
    #[arg(short, long, value_name = "FILE", conflicts_with = "schema")]
    config: Option<PathBuf>,
    /// Looks at this JSON Schema alone, and at no config
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// The most output tokens of a reply, for `--schema`
    #[arg(long, value_name = "TOKENS", requires = "schema")]
    cap: Option<u64>,
    /// What the providers take of JSON Schema, for `--schema`: `openai_strict`, `anthropic`, …
    #[arg(long, value_name = "SUBSET,…", requires = "schema", value_delimiter = ',', value_parser = subset)]
    target: Vec<Subset>,
    /// An older version of the schema: says what changed since, and whom it breaks
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
    /// The route whose schema is held against the older one, where several have one
    #[arg(long, value_name = "NAME", requires = "against", conflicts_with = "schema")]
    route: Option<String>,
    /// Does not warn of these; the names are those in the warnings
    #[arg(long, value_name = "LINT,…", value_delimiter = ',', value_parser = lint)]
    allow: Vec<Lint>,
    /// Prints one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Takes warnings for errors
    #[arg(long, visible_alias = "deny-warnings")]
    strict: bool,
}

/// What was read: settings with warnings, or problems of which one at least is an error.
type Read = Result<Settings, Vec<Problem>>;

pub(crate) fn run(check: &Check) -> ExitCode {
    let ran = match &check.schema {
        Some(path) => schema_alone(check, path),
        None => config(check),
    };
    ran.map_or_else(
        |unread| {
            print::talk(&format!("error: {unread}"));
            ExitCode::from(2)
        },
        ExitCode::from,
    )
}

/// Checks a config with the schemas it names.
fn config(check: &Check) -> Result<u8, Unread> {
    let mut read = settings::load(check.config.as_deref());
    let mut compared = None;
    if let Ok(settings) = &mut read {
        let found = lints::of_routes(settings, &check.allow)?;
        settings.warnings.extend(found);
        if let Some(old) = &check.against {
            let new = source::schema_file(&lints::schema_of(settings, check.route.as_deref())?)?;
            compared = Some(Compared::new(source::schema_file(old)?, new));
        }
    }
    let breaking = compared.as_ref().is_some_and(Compared::is_breaking);
    let code = exit_code(&read, check.strict).max(u8::from(breaking));
    if check.json {
        print::line(&format!("{:#}", report_json(&read, compared.as_ref())));
        return Ok(code);
    }
    if let Some(compared) = &compared {
        print::line(&format!("{}\n", compared.text()));
    }
    print::line(&report(&read));
    if let Some(next) = next_step(check, code).filter(|_| !breaking) {
        print::talk(&next);
    }
    Ok(code)
}

/// Checks one schema.
fn schema_alone(check: &Check, path: &Path) -> Result<u8, Unread> {
    let file = source::schema_file(path)?;
    let usage = Usage { rules: None, cap: check.cap, subsets: &check.target };
    let problems = lints::of_schema(&file, &usage, &check.allow);
    let usable = problems.iter().all(|problem| problem.severity == Severity::Warning);
    let old = check.against.as_deref().map(source::schema_file).transpose()?;
    let compared = old.map(|old| Compared::new(old, file));
    let breaking = compared.as_ref().is_some_and(Compared::is_breaking);
    let code = u8::from(!usable || breaking || check.strict && !problems.is_empty());
    if check.json {
        let mut told = json!({
            "usable": usable,
            "problems": problems.iter().map(problem_json).collect::<Vec<_>>(),
        });
        if let (Some(compared), Some(told)) = (&compared, told.as_object_mut()) {
            told.insert("changes".into(), compared.json());
        }
        print::line(&format!("{told:#}"));
        return Ok(code);
    }
    if let Some(compared) = &compared {
        print::line(&format!("{}\n", compared.text()));
    }
    let mut parts: Vec<String> = problems.iter().map(|problem| format!("{problem}\n")).collect();
    parts.push(verdict(&problems));
    print::line(&parts.join("\n"));
    Ok(code)
}

/// A provider's part of JSON Schema by its name.
fn subset(name: &str) -> Result<Subset, String> {
    Subset::ALL.into_iter().find(|subset| subset.name() == name.trim()).ok_or_else(|| {
        let names: Vec<&str> = Subset::ALL.into_iter().map(Subset::name).collect();
        format!("not known; there are {}", names.join(", "))
    })
}

/// A lint by its name.
fn lint(name: &str) -> Result<Lint, String> {
    Lint::from_name(name.trim()).ok_or_else(|| {
        let names: Vec<&str> = Lint::ALL.into_iter().map(Lint::name).collect();
        format!("no lint of that name; they are {}", names.join(", "))
    })
}

fn exit_code(read: &Read, strict: bool) -> u8 {
    match read {
        Ok(settings) => u8::from(strict && !settings.warnings.is_empty()),
        Err(problems) => settings::exit_code(problems),
    }
}

/// What to do now, where the problems do not say it.
fn next_step(check: &Check, code: u8) -> Option<String> {
    let named = check.config.as_deref().map(Path::display);
    match (code, named) {
        (0, Some(file)) => Some(format!("serve it: backstay serve -c {file}")),
        (0, None) => Some("serve it: backstay serve".into()),
        (1, _) => Some("every key, with its default: docs/reference/config.md".into()),
        _ => None,
    }
}

// --- as text ---

fn report(read: &Read) -> String {
    let problems = match read {
        Ok(settings) => &settings.warnings,
        Err(problems) => problems,
    };
    let mut parts: Vec<String> = problems.iter().map(|problem| format!("{problem}\n")).collect();
    if let Ok(settings) = read {
        parts.push(format!("{}\n", summary(settings)));
    }
    parts.push(verdict(problems));
    parts.join("\n")
}

fn verdict(problems: &[Problem]) -> String {
    let errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let warnings = problems.len() - errors;
    match (errors, warnings) {
        (0, 0) => "fine".into(),
        (0, _) => format!("fine, with warnings: {warnings}"),
        (_, 0) => format!("not usable; errors: {errors}"),
        _ => format!("not usable; errors: {errors}, warnings: {warnings}"),
    }
}

/// What the config says, a line for each of its parts.
fn summary(settings: &Settings) -> String {
    let policy = &settings.policy;
    let mut rows: Vec<(String, String)> = Vec::new();
    let server = &settings.server;
    let log = match &server.call_log {
        CallLog::Sqlite(path) => path.display().to_string(),
        CallLog::Memory => "memory".into(),
        CallLog::Off => "off".into(),
    };
    let keys = settings.keys.len();
    rows.push(("server".into(), format!("{}, caller keys {keys}, call log {log}", server.listen)));
    rows.extend(policy.providers.values().map(|p| (format!("provider {}", p.name), provider(p))));
    rows.extend(policy.targets.values().map(|t| (format!("model {}", t.id), target(t))));
    rows.extend(policy.routes.iter().map(|r| (format!("route {}", r.name), route(r))));
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0).min(40);
    let lines: Vec<String> =
        rows.iter().map(|(name, text)| format!("{name:width$}  {text}")).collect();
    lines.join("\n")
}

fn provider(provider: &Provider) -> String {
    let credentials = match &provider.credentials {
        CredentialSource::Own(keys) => format!("own keys {}", keys.len()),
        CredentialSource::Caller => "the caller's key".into(),
        CredentialSource::Nobody => "no key".into(),
    };
    format!("{} at {}, {credentials}", provider.dialect.name(), provider.base_url)
}

fn target(target: &Target) -> String {
    let model = target.model.as_deref().unwrap_or("the caller's word");
    let kind = match (target.pinning, &target.model) {
        (Pinning::Pinned, _) => ", pinned",
        (Pinning::Alias, Some(_)) => ", an alias",
        (Pinning::Alias, None) => "",
    };
    let window = target.context_tokens.map_or(String::new(), |most| format!(", window {most}"));
    format!("{model} at {}{kind}{window}", target.provider.name)
}

fn route(route: &Route) -> String {
    let tiers: Vec<String> = route
        .tiers
        .iter()
        .map(|tier| tier.iter().map(|target| target.id.as_str()).collect::<Vec<_>>().join(" | "))
        .collect();
    let mut parts = vec![
        tiers.join(" > "),
        format!("deadline {:?}", route.deadline),
        format!("attempts {}", route.max_attempts),
        format!("re-asks {}", route.reasks),
    ];
    if let Some(cap) = route.max_output_tokens {
        let ceiling = route.max_output_tokens_ceiling.filter(|ceiling| *ceiling > cap);
        parts.push(match ceiling {
            Some(ceiling) => format!("cap {cap} to {ceiling}"),
            None => format!("cap {cap}"),
        });
    }
    if route.schema.is_some() {
        parts.push("schema".into());
    }
    if !route.rules.is_empty() {
        parts.push(format!("rules {}", route.rules.len()));
    }
    if route.last_resort.is_some() {
        parts.push("last resort".into());
    }
    parts.push(format!("revision {}", route.revision));
    parts.join(", ")
}

// --- as JSON ---

fn report_json(read: &Read, compared: Option<&Compared>) -> Value {
    let (settings, problems) = match read {
        Ok(settings) => (Some(settings), &settings.warnings),
        Err(problems) => (None, problems),
    };
    let mut told = json!({
        "usable": settings.is_some(),
        "problems": problems.iter().map(problem_json).collect::<Vec<_>>(),
        "settings": settings.map(settings_json),
    });
    if let (Some(compared), Some(told)) = (compared, told.as_object_mut()) {
        told.insert("changes".into(), compared.json());
    }
    told
}

fn problem_json(problem: &Problem) -> Value {
    let place = problem.place.as_ref();
    json!({
        "severity": problem.severity.to_string(),
        "code": problem.code,
        "message": problem.message,
        "label": problem.label,
        "help": problem.help,
        "file": place.map(|place| &place.file),
        "line": place.map(|place| place.line),
        "column": place.map(|place| place.column),
    })
}

fn settings_json(settings: &Settings) -> Value {
    let policy = &settings.policy;
    json!({
        "listen": settings.server.listen.to_string(),
        "callers": settings.keys.iter().map(|key| &key.name).collect::<Vec<_>>(),
        "providers": policy.providers.values().map(|provider| json!({
            "name": provider.name,
            "dialect": provider.dialect.name(),
            "base_url": provider.base_url.to_string(),
            "connect_ms": millis(provider.connect),
        })).collect::<Vec<_>>(),
        "models": policy.targets.values().map(|target| json!({
            "name": target.id,
            "provider": target.provider.name,
            "model": target.model,
            "pinned": target.pinning == Pinning::Pinned,
            "retires": target.retires.map(|day| day.to_string()),
            "context_tokens": target.context_tokens,
        })).collect::<Vec<_>>(),
        "routes": policy.routes.iter().map(|route| route_json(route)).collect::<Vec<_>>(),
    })
}

fn millis(length: Duration) -> Option<u64> {
    u64::try_from(length.as_millis()).ok()
}

fn route_json(route: &Route) -> Value {
    let tiers: Vec<Vec<&str>> =
        route.tiers.iter().map(|tier| tier.iter().map(|t| t.id.as_str()).collect()).collect();
    let limits = route.timeouts;
    let timers =
        [("first_token", limits.first_token), ("gap", limits.gap), ("total", limits.total)];
    let derived: Vec<&str> = timers
        .iter()
        .filter(|(_, timer)| matches!(timer, Timer::Auto(_)))
        .map(|(name, _)| *name)
        .collect();
    json!({
        "name": route.name,
        "tiers": tiers,
        "deadline_ms": millis(route.deadline),
        "connect_ms": limits.connect.and_then(millis),
        "first_token_ms": millis(limits.first_token.most()),
        "gap_ms": millis(limits.gap.most()),
        "total_ms": millis(limits.total.most()),
        "derived": derived,
        "max_attempts": route.max_attempts,
        "reasks": route.reasks,
        "max_output_tokens": route.max_output_tokens,
        "max_output_tokens_ceiling": route.max_output_tokens_ceiling,
        "prompt_version": route.prompt_version,
        "schema": route.schema.is_some(),
        "rules": route.rules.iter().map(|rule| &rule.name).collect::<Vec<_>>(),
        "stream": route.stream.map(StreamMode::name),
        "last_resort": route.last_resort.is_some(),
        "revision": route.revision,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FINE: &str = "
        [server]
        call_log = \"memory\"
        [providers.here]
        dialect = \"openai_chat\"
        base_url = \"http://127.0.0.1:8081/v1\"
        [models.a]
        provider = \"here\"
        model = \"small\"
        context_tokens = 4096
        [models.b]
        provider = \"here\"
        model = \"large\"
        [routes.triage]
        tiers = [\"a\", [\"a\", \"b\"]]
        deadline = \"1500ms\"
        max_output_tokens = 300
        max_output_tokens_ceiling = 600
        rules = [{ name = \"short\", check = \"size(reply.x) < 10\" }]
        last_resort = { reply = { x = \"\" } }";

    fn read(text: &str) -> Read {
        settings::from_text(text, Path::new(""))
    }

    #[test]
    fn a_config_is_told_in_a_line_for_each_part() {
        let once = FINE.replace("[\"a\", \"b\"]", "\"b\"");
        let told = report(&read(&once));
        let revision = read(&once).unwrap().policy.routes[0].revision.clone();
        let expected = format!(
            "server         127.0.0.1:8080, caller keys 0, call log memory\n\
             provider here  openai_chat at http://127.0.0.1:8081/v1, no key\n\
             model a        small at here, pinned, window 4096\n\
             model b        large at here, pinned\n\
             route triage   a > b, deadline 1.5s, attempts 4, re-asks 2, cap 300 to 600, rules 1, \
             last resort, revision {revision}\n\nfine"
        );
        assert_eq!(told, expected);
    }

    #[test]
    fn the_exit_code_tells_right_doubtful_wrong_and_unread_apart() {
        let fine = FINE.replace("[\"a\", \"b\"]", "\"b\"");
        let unread = settings::load(Some(Path::new("/nowhere/backstay.toml")));
        for (read, relaxed, strict) in
            [(read(&fine), 0, 0), (read(FINE), 0, 1), (read("[servr]"), 1, 1), (unread, 2, 2)]
        {
            assert_eq!((exit_code(&read, false), exit_code(&read, true)), (relaxed, strict));
        }
    }

    #[test]
    fn a_wrong_config_is_told_by_its_problems_and_their_number() {
        let told = report(&read("[servr]\n[models.a]\nprovider = \"x\"\nmodel = \"m\"\n"));
        assert!(told.starts_with("error: unknown key `servr`\n --> demo.toml:1:2\n"), "{told}");
        assert!(told.ends_with("\n\nnot usable; errors: 2"), "{told}");
    }

    #[test]
    fn programs_get_the_same_as_json() {
        let told = report_json(&read(FINE), None);
        assert_eq!(told["usable"], true);
        assert_eq!(told["problems"][0]["code"], "same-model");
        assert_eq!(told["problems"][0]["line"], 15);
        assert_eq!(told["settings"]["routes"][0]["tiers"], json!([["a"], ["a", "b"]]));
        assert_eq!(told["settings"]["routes"][0]["deadline_ms"], 1_500);
        let told = report_json(&read("[servr]"), None);
        assert_eq!((&told["usable"], &told["settings"]), (&Value::Bool(false), &Value::Null));
        assert_eq!(told["problems"][0]["severity"], "error");
    }
}
