//! Turns tables as written into the values they mean, and notes every problem on the way.
//!
//! Each section has a file. A part that is wrong is left out and the rest goes on, so that one run
//! tells all that is wrong; settings are handed out only when nothing was.

mod alerts;
mod breaker;
mod limits;
mod lint;
mod mending;
mod model;
mod provider;
mod queue;
mod reask;
mod revision;
mod rights;
mod route;
mod rule;
mod secret;
mod server;
mod stream;
mod tiers;
mod timeouts;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use backstay::policy::{Policy, Provider, Target};

use super::breaker_words::BreakerTable;
use super::file::{File, RouteTable};
use super::nearest::nearest;
use super::problem::{Problem, Severity};
use super::tree::{MAX_TOLD, Tree};
use super::{Outside, Settings};

/// A config on its way from tables to values.
#[derive(Debug)]
pub(super) struct Loading<'a> {
    tree: &'a Tree<'a>,
    folder: &'a Path,
    outside: Outside<'a>,
    problems: Vec<Problem>,
}

/// Named parts that are built, in the order of their names.
type Named<T> = BTreeMap<String, Arc<T>>;

impl<'a> Loading<'a> {
    /// Begins with the problems found so far.
    pub(super) fn new(
        tree: &'a Tree<'a>,
        folder: &'a Path,
        outside: Outside<'a>,
        problems: Vec<Problem>,
    ) -> Self {
        Self { tree, folder, outside, problems }
    }

    /// Builds everything.
    ///
    /// # Errors
    /// All problems, at least one of them an error.
    pub(super) fn settings(mut self, file: &File) -> Result<Settings, Vec<Problem>> {
        let queue = self.queue(&file.queue);
        let keys = self.callers(file, &queue);
        let admin_key = self.admin_key(&file.server, &keys);
        let server = self.server(&file.server, &file.keys);
        self.breaker_ranges(&["breaker"], &file.breaker, &BreakerTable::default());
        self.retry_parts(&["retries"], &file.retries);
        let providers = self.providers(file);
        let targets = self.targets(file, &providers);
        let built = self.routes(file, &targets);
        let alerts = file.alerts.as_ref().map(|table| Arc::new(self.alerts(table)));
        if self.problems.iter().all(|problem| problem.severity == Severity::Warning) {
            self.lint_unused(file);
            self.lint_pairs(file);
            self.lint_combined(file);
        }
        let schema_of = |table: &RouteTable| Some(self.folder.join(table.schema.as_ref()?));
        let routes = file.routes.iter();
        let schema_files =
            routes.filter_map(|(name, table)| Some((name.clone(), schema_of(table)?))).collect();
        let wrong = self.problems.iter().any(|problem| problem.severity == Severity::Error);
        let told = self.tree.told(self.problems);
        match server {
            Some(server) if !wrong => {
                let policy = Policy { providers, targets, routes: built, alerts, queue };
                Ok(Settings { server, keys, admin_key, policy, schema_files, warnings: told })
            }
            _ => Err(told),
        }
    }

    fn providers(&mut self, file: &File) -> Named<Provider> {
        let mut built = Named::new();
        for (name, table) in &file.providers {
            if let Some(provider) = self.provider(name, table) {
                built.insert(name.clone(), Arc::new(provider));
            }
        }
        built
    }

    fn targets(&mut self, file: &File, providers: &Named<Provider>) -> Named<Target> {
        let mut built = Named::new();
        for (name, table) in &file.models {
            if let Some(target) = self.target(name, table, file, providers) {
                built.insert(name.clone(), Arc::new(target));
            }
        }
        built
    }

    fn note(&mut self, problem: Problem) {
        self.problems.push(problem);
    }

    /// Notes that the key `path` ends in is missing, unless it is there and has been complained
    /// about. `example` is a line that would do.
    fn missing(&mut self, path: &[&str], example: &str) {
        let Some((key, table)) = path.split_last() else { return };
        if self.tree.has(path) {
            return;
        }
        let header = table.join(".");
        let problem = Problem::error("missing-key", format!("[{header}] has no `{key}`"));
        self.note(problem.at(self.tree.key(table)).help(format!("add `{example}`")));
    }

    /// Notes an error at the value of `path`.
    fn wrong(&mut self, path: &[&str], code: &'static str, message: String, help: &str) {
        let problem = Problem::error(code, message).at(self.tree.value(path));
        self.note(if help.is_empty() { problem } else { problem.help(help) });
    }

    /// Notes a doubt at the value of `path`.
    fn doubt(&mut self, path: &[&str], code: &'static str, message: String, help: &str) {
        let problem = Problem::warning(code, message).at(self.tree.value(path));
        self.note(if help.is_empty() { problem } else { problem.help(help) });
    }

    /// Notes that `name`, the value at `path`, is not among the `names` of `section`.
    fn unknown<T>(
        &mut self,
        path: &[&str],
        section: Section,
        name: &str,
        names: &BTreeMap<String, T>,
    ) {
        let (what, header, code) = match section {
            Section::Models => ("model", "models", "unknown-model"),
            Section::Providers => ("provider", "providers", "unknown-provider"),
            Section::Routes => ("route", "routes", "unknown-route"),
            Section::Classes => ("class", "queue.classes", "unknown-class"),
        };
        let plural = header.rsplit('.').next().unwrap_or(header);
        let mut problem = Problem::error(code, format!("no {what} is named `{name}`"));
        // Looking for the name that was meant takes time, so not for what is not told.
        if self.problems.len() < MAX_TOLD {
            let names: Vec<&str> = names.keys().map(String::as_str).take(MAX_NAMES).collect();
            problem = problem.label(match nearest(name, names.iter().copied()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("no [{header}.{name}] in this file"),
            });
            problem = problem.help(if names.is_empty() {
                format!("add a [{header}.{name}]")
            } else {
                format!("the {plural} here are {}", ticked(&names))
            });
        }
        self.note(problem.at(self.tree.value(path)));
    }
}

/// A section that others name entries of.
#[derive(Clone, Copy, Debug)]
enum Section {
    Models,
    Providers,
    Routes,
    Classes,
}

/// Names that a wrong one is compared with.
const MAX_NAMES: usize = 500;

/// Names in ticks with commas between; many are cut.
fn ticked(names: &[&str]) -> String {
    const MOST: usize = 12;
    let mut list: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
    if names.len() > MOST {
        list.push("…".into());
    }
    list.join(", ")
}
