//! `[routes.NAME]`.

use std::sync::Arc;

use backstay::policy::{AfterRelease, OnDisconnect, Pattern, Route, Target};

use super::revision::revision;
use super::{Loading, Named};
use crate::config::file::{File, RouteTable};
use crate::config::problem::Problem;
use crate::config::words::{AfterReleaseWord, DisconnectWord};

/// The most attempts a call may make at all.
const MAX_ATTEMPTS: u32 = 6;
/// The most re-asks of one target: a model that is wrong six times stays wrong.
const MAX_REASKS: u32 = 5;

impl Loading<'_> {
    /// All routes, in the order they are tried: exact names, then patterns, the longest first.
    pub(super) fn routes(&mut self, file: &File, targets: &Named<Target>) -> Vec<Arc<Route>> {
        self.same_pattern(file);
        let mut routes: Vec<Arc<Route>> = file
            .routes
            .iter()
            .filter_map(|(name, table)| self.route(name, table, file, targets))
            .map(Arc::new)
            .collect();
        routes.sort_by_key(|route| {
            (route.pattern.is_glob(), std::cmp::Reverse(route.name.len()), route.name.clone())
        });
        routes
    }

    /// Notes patterns that are written differently and mean the same.
    fn same_pattern(&mut self, file: &File) {
        let mut seen = std::collections::BTreeMap::new();
        for name in file.routes.keys() {
            if let Some(first) = seen.insert(collapsed(name), name) {
                let message = format!("the routes `{first}` and `{name}` have the same pattern");
                let problem = Problem::error("same-pattern", message);
                self.note(problem.at(self.tree.key(&["routes", name])).help("keep one of them"));
            }
        }
    }

    fn route(
        &mut self,
        name: &str,
        table: &RouteTable,
        file: &File,
        targets: &Named<Target>,
    ) -> Option<Route> {
        self.route_name(name);
        let schema = table.schema.as_ref().and_then(|written| self.schema(name, written));
        let rules = self.rules(name, &table.rules);
        let last_resort =
            table.last_resort.as_ref().and_then(|t| self.last_resort(name, t, schema.as_deref()));
        let mending = self.mending(name, table, schema.as_deref());
        self.counts(name, table);
        self.stops(name, &table.stop);
        let tiers = self.tiers(name, table, file, targets)?;
        let timeouts = self.timeouts(name, table);
        self.lint_caps(name, table, &tiers);
        let max_attempts = self.attempts(name, table, tiers.len());
        let stream = self.stream(name, table);
        let guards = self.guards(name, table, mending.syntax.policy.several);
        let reask = self.reask(name, table, &tiers);
        let mut route = Route {
            name: name.into(),
            pattern: Pattern(collapsed(name)),
            mode: table.mode.mode(),
            deadline: table.deadline.0,
            timeouts,
            max_attempts,
            reasks: table.reasks,
            reask,
            max_output_tokens: table.max_output_tokens,
            max_output_tokens_ceiling: table.max_output_tokens_ceiling,
            stop: table.stop.clone(),
            prompt_version: table.prompt_version.clone(),
            schema,
            rules,
            mending,
            upstream: table.upstream.upstream(),
            stream,
            holding: self.holding(name, table),
            after_release: self.after_release(name, table, &tiers),
            guards,
            on_refusal: table.on_refusal.on_refusal(),
            on_disconnect: self.on_disconnect(name, table),
            on_semantic: table.on_semantic.on_semantic(),
            last_resort,
            tiers,
            revision: String::new(),
        };
        route.revision = revision(&route);
        Some(route)
    }

    /// What a broken stream leads to; a rule that nothing of the route can follow is doubted.
    fn after_release(
        &mut self,
        name: &str,
        table: &RouteTable,
        tiers: &[Vec<Arc<Target>>],
    ) -> AfterRelease {
        let path = ["routes", name, "after_release"];
        let rule = match table.after_release {
            AfterReleaseWord::Error => return AfterRelease::Error,
            AfterReleaseWord::Restart => AfterRelease::Restart,
            AfterReleaseWord::Continue => AfterRelease::Continue,
        };
        let takes = tiers.iter().flatten().any(|target| target.prefill.is_some());
        if rule == AfterRelease::Continue && !takes {
            let message = "no model of this route goes on with a reply".into();
            let help = "set `prefill` for one that does, or write \"restart\"";
            self.doubt(&path, "idle-continue", message, help);
        }
        rule
    }

    fn on_disconnect(&mut self, name: &str, table: &RouteTable) -> OnDisconnect {
        let path = ["routes", name, "finish_within"];
        self.timer(&path, table.finish_within.0);
        match table.on_disconnect {
            DisconnectWord::Finish => OnDisconnect::Finish { within: table.finish_within.0 },
            DisconnectWord::Cancel => {
                if self.tree.has(&path) {
                    let message = "calls are cancelled when their callers leave".into();
                    let help = "set `on_disconnect = \"finish\"`, or take this out";
                    self.doubt(&path, "idle-finish", message, help);
                }
                OnDisconnect::Cancel
            }
        }
    }

    fn route_name(&mut self, name: &str) {
        if name.is_empty() || name.len() > 200 || name.chars().any(char::is_control) {
            let problem = Problem::error("bad-name", "this cannot be the name of a route");
            let help = "what callers send as `model`: 1 to 200 characters";
            self.note(problem.at(self.tree.key(&["routes", name])).help(help));
        }
    }

    /// Checks the numbers that stand alone or against each other.
    fn counts(&mut self, name: &str, table: &RouteTable) {
        let path = |key| ["routes", name, key];
        self.in_range(&path("reasks"), table.reasks.into(), 0..=MAX_REASKS.into());
        let (cap, ceiling) = (table.max_output_tokens, table.max_output_tokens_ceiling);
        self.in_range(&path("max_output_tokens"), cap.unwrap_or(1), 1..=u64::MAX);
        match (cap, ceiling) {
            (Some(cap), Some(ceiling)) if ceiling < cap => {
                let message = format!("the ceiling ({ceiling}) is below the cap ({cap})");
                let help = "the cap is raised to the ceiling after an answer was cut";
                self.wrong(&path("max_output_tokens_ceiling"), "ceiling-below-cap", message, help);
            }
            (None, Some(_)) if !self.tree.has(&path("max_output_tokens")) => {
                let message = "there is no cap of the route's own to raise".into();
                let help = "set `max_output_tokens` too, or take this out";
                self.wrong(
                    &path("max_output_tokens_ceiling"),
                    "ceiling-without-cap",
                    message,
                    help,
                );
            }
            _ => {}
        }
    }

    fn attempts(&mut self, name: &str, table: &RouteTable, tiers: usize) -> u32 {
        let tiers = u32::try_from(tiers).unwrap_or(u32::MAX);
        let attempts = table.max_attempts.unwrap_or(tiers.saturating_add(2).min(MAX_ATTEMPTS));
        let path = ["routes", name, "max_attempts"];
        self.in_range(&path, attempts.into(), 1..=MAX_ATTEMPTS.into());
        if attempts < tiers {
            let message = format!("`max_attempts` is {attempts}, and there are {tiers} tiers");
            let key = if table.max_attempts.is_some() { path } else { ["routes", name, "tiers"] };
            self.doubt(&key, "unreachable-tier", message, "the last tiers are never asked");
        }
        if table.reasks >= attempts && self.tree.has(&["routes", name, "reasks"]) {
            let message = format!("`reasks` is {}, `max_attempts` only {attempts}", table.reasks);
            let path = ["routes", name, "reasks"];
            self.doubt(&path, "idle-reasks", message, "a re-ask is an attempt too");
        }
        attempts
    }

    fn stops(&mut self, name: &str, stop: &[String]) {
        for (index, text) in stop.iter().enumerate() {
            if text.is_empty() {
                let index = index.to_string();
                let path = ["routes", name, "stop", &index];
                let message = "an empty stop sequence stops everything".into();
                self.wrong(&path, "bad-stop", message, "take it out");
            }
        }
    }

    /// Notes caps that no target of the route can keep.
    fn lint_caps(&mut self, name: &str, table: &RouteTable, tiers: &[Vec<Arc<Target>>]) {
        let keys = [
            ("max_output_tokens", table.max_output_tokens),
            ("max_output_tokens_ceiling", table.max_output_tokens_ceiling),
        ];
        for (key, cap) in keys {
            let Some(cap) = cap else { continue };
            let small = tiers.iter().flatten().find(|target| {
                let most = target.max_output_tokens.or(target.context_tokens);
                most.is_some_and(|most| cap > most)
            });
            if let Some(target) = small {
                let message = format!("`{}` cannot write {cap} tokens", target.id);
                let path = ["routes", name, key];
                self.doubt(
                    &path,
                    "cap-above-model",
                    message,
                    "lower the cap, or leave the model out",
                );
            }
        }
    }
}

/// A pattern with each run of stars as one.
fn collapsed(name: &str) -> String {
    let mut pattern = String::with_capacity(name.len());
    for c in name.chars() {
        if c != '*' || !pattern.ends_with('*') {
            pattern.push(c);
        }
    }
    pattern
}
