//! Doubts that need more than one table to be seen.

use std::collections::BTreeSet;
use std::net::IpAddr;

use backstay::policy::CredentialSource;
use http::Uri;

use super::Loading;
use crate::config::file::File;
use crate::config::problem::Problem;
use crate::config::words::{AuthWord, SemanticWord, Tier};

impl Loading<'_> {
    /// Notes models that no route names and providers that no model names.
    pub(super) fn lint_unused(&mut self, file: &File) {
        let tiers = file.routes.values().flat_map(|route| route.tiers.iter().flatten());
        let used: BTreeSet<&String> = tiers.flat_map(Tier::names).collect();
        for name in file.models.keys().filter(|name| !used.contains(name)) {
            let problem =
                Problem::warning("unused-model", format!("no route names the model `{name}`"));
            let help = "name it in the `tiers` of a route, or take it out";
            self.note(problem.at(self.tree.key(&["models", name])).help(help));
        }
        let used: BTreeSet<&String> =
            file.models.values().filter_map(|model| model.provider.as_ref()).collect();
        for name in file.providers.keys().filter(|name| !used.contains(name)) {
            let message = format!("no model names the provider `{name}`");
            let problem = Problem::warning("unused-provider", message);
            let help = format!("only a caller who asks for `{name}/MODEL` reaches it");
            self.note(problem.at(self.tree.key(&["providers", name])).help(help));
        }
        if file.routes.is_empty() && file.providers.is_empty() {
            let problem = Problem::warning("no-provider", "this config names no provider");
            self.note(problem.help("add a [providers.NAME], a [models.NAME] and a [routes.NAME]"));
        }
    }

    /// Notes keys that are fine alone and not together.
    pub(super) fn lint_pairs(&mut self, file: &File) {
        let passed_on = |auth| matches!(auth, Some(AuthWord::Caller));
        for (name, _) in file.providers.iter().filter(|(_, table)| passed_on(table.auth)) {
            if !file.keys.is_empty() {
                let message = format!("callers' keys of this gateway would be sent to `{name}`");
                let help = "use `auth = \"own\"` with `api_keys`, or take out [keys]";
                self.doubt(&["providers", name, "auth"], "gateway-key-upstream", message, help);
            }
        }
        let human = |word| matches!(word, SemanticWord::Human);
        for (name, _) in file.routes.iter().filter(|(_, table)| human(table.on_semantic)) {
            if !self.tree.has(&["routes", name, "last_resort"]) {
                let message = "no person will see it: the route has no last resort".into();
                let help = "add a `last_resort` that marks the answer for a person";
                self.doubt(&["routes", name, "on_semantic"], "human-unseen", message, help);
            }
        }
    }

    /// Notes keys that would cross a network in clear text.
    pub(super) fn lint_clear_text(&mut self, name: &str, base_url: &Uri, from: &CredentialSource) {
        let far = !base_url.host().is_some_and(is_loopback);
        let with_key = !matches!(from, CredentialSource::Nobody);
        if far && with_key && base_url.scheme_str() == Some("http") {
            let message = "keys go to this address in clear text".into();
            self.doubt(&["providers", name, "base_url"], "clear-text", message, "use https://");
        }
    }
}

/// Whether a URL's host is this machine.
pub(super) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}
