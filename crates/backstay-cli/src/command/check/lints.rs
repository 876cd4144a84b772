//! Lints of schemas as problems with their place in the schema's file.

use std::path::PathBuf;

use backstay::contract::lint::{self, Finding, Lint, Usage};
use backstay::policy::{Route, Structured};
use backstay::validate::{Schema, SchemaFault};
use backstay_gateway::config::{Place, Problem, Settings, Severity};

use backstay_wire::lower::Subset;

use crate::source::{self, SchemaFile, Unread};

/// What is doubtful about the schemas of all routes.
pub(super) fn of_routes(settings: &Settings, allowed: &[Lint]) -> Result<Vec<Problem>, Unread> {
    let mut problems = Vec::new();
    for route in &settings.policy.routes {
        let Some(path) = settings.schema_files.get(&route.name) else { continue };
        let file = source::schema_file(path)?;
        let rules: Vec<&str> = route.rules.iter().map(|rule| rule.check.as_str()).collect();
        let subsets = subsets(route);
        let usage = Usage { rules: Some(&rules), cap: cap(route), subsets: &subsets };
        let found = lint::lint(&file.value, &usage);
        let of_route = |mut problem: Problem| {
            problem.message = format!("route `{}`: {}", route.name, problem.message);
            problem
        };
        problems.extend(told(&file, found, allowed).map(of_route));
    }
    Ok(problems)
}

/// What the targets that are sent the schema hold their models to, each once.
fn subsets(route: &Route) -> Vec<Subset> {
    let mut subsets = Vec::new();
    for target in route.tiers.iter().flatten() {
        let subset = target.subset();
        if target.structured == Structured::JsonSchema && !subsets.contains(&subset) {
            subsets.push(subset);
        }
    }
    subsets
}

/// The most tokens a reply of the route may take at last: the raised cap, else the cap, else what
/// its smallest model writes.
fn cap(route: &Route) -> Option<u64> {
    let models = route.tiers.iter().flatten().filter_map(|target| target.max_output_tokens);
    route.max_output_tokens_ceiling.max(route.max_output_tokens).or_else(|| models.min())
}

/// What is wrong with a schema, and what is doubtful about it.
pub(super) fn of_schema(file: &SchemaFile, usage: &Usage<'_>, allowed: &[Lint]) -> Vec<Problem> {
    if let Err(fault) = Schema::with_fallbacks(&file.value) {
        let pointer = match &fault {
            SchemaFault::Invalid { pointer, .. } | SchemaFault::Fallback { pointer, .. } => pointer,
            _ => "",
        };
        return vec![Problem {
            severity: Severity::Error,
            code: "bad-schema",
            message: fault.to_string(),
            span: None,
            place: place(file, pointer),
            label: String::new(),
            help: None,
        }];
    }
    told(file, lint::lint(&file.value, usage), allowed).collect()
}

fn told(
    file: &SchemaFile,
    findings: Vec<Finding>,
    allowed: &[Lint],
) -> impl Iterator<Item = Problem> {
    let kept = findings.into_iter().filter(|finding| !allowed.contains(&finding.lint));
    kept.map(|Finding { lint, pointer, message }| Problem {
        severity: Severity::Warning,
        code: lint.name(),
        message,
        span: None,
        place: place(file, &pointer),
        label: lint.why().to_owned(),
        help: Some(format!("{} ({})", lint.remedy(), lint.name())),
    })
}

/// Where a pointer leads in the schema's file.
pub(super) fn place(file: &SchemaFile, pointer: &str) -> Option<Place> {
    let span = lint::place(&file.text, pointer)?;
    Some(Place::new(&file.name, &file.text, span, &[]))
}

/// The file of the schema that is held against an older one: that of the route, or of the only
/// route that has one.
pub(super) fn schema_of(settings: &Settings, route: Option<&str>) -> Result<PathBuf, Unread> {
    let files = &settings.schema_files;
    let named = match route {
        Some(name) => files.get(name),
        None if files.len() == 1 => files.values().next(),
        None => None,
    };
    let why = || match route {
        Some(name) => format!("no route `{name}` with a schema"),
        None if files.is_empty() => "no route has a schema".to_owned(),
        None => {
            let names: Vec<&str> = files.keys().map(String::as_str).collect();
            format!("several routes have a schema; name one with --route: {}", names.join(", "))
        }
    };
    named.cloned().ok_or_else(|| Unread::new("the config", why()))
}
