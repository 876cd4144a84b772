//! `[providers.NAME]`.

use std::collections::BTreeMap;
use std::time::Duration;

use backstay::policy::{CapField, CredentialSource, Provider};
use backstay_wire::Dialect;
use http::{HeaderName, HeaderValue, Uri};

use super::Loading;
use crate::config::file::ProviderTable;
use crate::config::words::{AuthWord, CapWord, DialectWord, KeyText, SubsetWord};

/// The host whose newer models refuse `max_tokens`.
const OPENAI_HOST: &str = "api.openai.com";

/// Headers that are the gateway's own to set: framing, and what a proxy must not hand on.
const OWN_HEADERS: [&str; 7] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "te",
    "upgrade",
    "accept-encoding",
];

/// Headers that carry a secret.
const SECRET_HEADERS: [&str; 4] = ["authorization", "x-api-key", "api-key", "proxy-authorization"];

/// The address that `text` is, or what is wrong with it.
pub(super) fn address(text: &str) -> Result<Uri, &'static str> {
    match text.parse::<Uri>() {
        Err(_) => Err("is not a URL"),
        Ok(uri) if !matches!(uri.scheme_str(), Some("http" | "https")) => {
            Err("does not begin with http:// or https://")
        }
        Ok(uri) if uri.host().is_none_or(str::is_empty) => Err("has no host"),
        Ok(uri) if uri.authority().is_some_and(|a| a.as_str().contains('@')) => {
            Err("has a user or a password in it")
        }
        Ok(uri) => Ok(uri),
    }
}

impl Loading<'_> {
    /// One provider. `None`: something is wrong, and noted.
    pub(super) fn provider(&mut self, name: &str, table: &ProviderTable) -> Option<Provider> {
        self.plain_name("providers", name);
        let dialect = table.dialect.map(|word| match word {
            DialectWord::OpenaiChat => Dialect::OpenaiChat,
            DialectWord::Anthropic => Dialect::Anthropic,
        });
        if dialect.is_none() {
            let example = "dialect = \"openai_chat\"` or `dialect = \"anthropic\"";
            self.missing(&["providers", name, "dialect"], example);
        }
        let base_url = self.base_url(name, table);
        let credentials = self.credentials(name, table);
        let headers = self.headers(&["providers", name, "headers"], &table.headers);
        let connect = table.connect.map_or(Provider::CONNECT, |length| length.0);
        self.timer(&["providers", name, "connect"], connect);
        let (dialect, base_url) = (dialect?, base_url?);
        let cap_field = self.cap_field(name, table, dialect, &base_url);
        let credentials = credentials?;
        self.lint_clear_text(name, &base_url, &credentials);
        let subset = table
            .schema_subset
            .map_or_else(|| Provider::usual_subset(dialect, &base_url), SubsetWord::subset);
        Some(Provider {
            name: name.into(),
            dialect,
            base_url,
            credentials,
            headers,
            cap_field,
            subset,
            connect,
        })
    }

    fn base_url(&mut self, name: &str, table: &ProviderTable) -> Option<Uri> {
        let path = ["providers", name, "base_url"];
        let Some(text) = &table.base_url else {
            self.missing(&path, "base_url = \"https://…\"");
            return None;
        };
        let mut trimmed = text.trim_end_matches('/');
        if matches!(table.dialect, Some(DialectWord::Anthropic)) {
            trimmed = trimmed.strip_suffix("/v1").unwrap_or(trimmed);
        }
        let wrong = match address(trimmed) {
            Ok(uri) if uri.query().is_some() || text.contains('#') => "has a query or a fragment",
            Ok(uri) => return Some(uri),
            Err(wrong) => wrong,
        };
        let help = "such as \"https://api.openai.com/v1\"; keys go into `api_keys`";
        self.wrong(&path, "bad-url", format!("`base_url` {wrong}"), help);
        None
    }

    fn credentials(&mut self, name: &str, table: &ProviderTable) -> Option<CredentialSource> {
        let guess = if table.api_keys.is_empty() { AuthWord::None } else { AuthWord::Own };
        let auth = table.auth.unwrap_or(guess);
        if auth != AuthWord::Own && !table.api_keys.is_empty() {
            let message = "`api_keys` would never be used: `auth` says otherwise".into();
            let help = "take out `api_keys`, or write `auth = \"own\"`";
            self.wrong(&["providers", name, "auth"], "idle-keys", message, help);
            return None;
        }
        match auth {
            AuthWord::Caller => return Some(CredentialSource::Caller),
            AuthWord::None => return Some(CredentialSource::Nobody),
            AuthWord::Own if table.api_keys.is_empty() => {
                let message = "`auth = \"own\"` needs a key".into();
                let help = "add `api_keys = [{ env = \"NAME\" }]`";
                self.wrong(&["providers", name, "auth"], "missing-key", message, help);
                return None;
            }
            AuthWord::Own => {}
        }
        let mut secrets = Vec::new();
        for (index, written) in table.api_keys.iter().enumerate() {
            let index = index.to_string();
            secrets.extend(self.secret(&["providers", name, "api_keys", &index], written));
        }
        (secrets.len() == table.api_keys.len()).then_some(CredentialSource::Own(secrets))
    }

    /// The headers of the table at `path`.
    pub(super) fn headers(
        &mut self,
        path: &[&str],
        table: &BTreeMap<String, KeyText>,
    ) -> Vec<(HeaderName, HeaderValue)> {
        let mut headers = Vec::new();
        for (key, written) in table {
            let path = [path, &[key.as_str()]].concat();
            let lower = key.to_ascii_lowercase();
            let Ok(header) = lower.parse::<HeaderName>() else {
                self.wrong(&path, "bad-header", format!("`{key}` is not the name of a header"), "");
                continue;
            };
            if OWN_HEADERS.contains(&lower.as_str()) {
                let message = format!("`{key}` is set by the gateway");
                self.wrong(&path, "bad-header", message, "take it out");
                continue;
            }
            if SECRET_HEADERS.contains(&lower.as_str()) && matches!(written, KeyText::Literal(_)) {
                let help = "files are read, copied and committed: write `{ env = \"NAME\" }`";
                self.doubt(&path, "literal-secret", "a secret stands in the file".into(), help);
            }
            let Some(text) = self.text(&path, written) else { continue };
            // Visible ASCII by now, so this holds.
            if let Ok(mut value) = HeaderValue::from_str(&text) {
                value.set_sensitive(SECRET_HEADERS.contains(&lower.as_str()));
                headers.push((header, value));
            }
        }
        headers
    }

    fn cap_field(
        &mut self,
        name: &str,
        table: &ProviderTable,
        dialect: Dialect,
        base_url: &Uri,
    ) -> CapField {
        if dialect == Dialect::Anthropic && table.cap_field.is_some() {
            let message = "`cap_field` means nothing to the dialect anthropic".into();
            self.doubt(&["providers", name, "cap_field"], "idle-key", message, "take it out");
        }
        match table.cap_field {
            Some(CapWord::MaxCompletionTokens) => CapField::MaxCompletionTokens,
            None if base_url.host() == Some(OPENAI_HOST) => CapField::MaxCompletionTokens,
            Some(CapWord::MaxTokens) | None => CapField::MaxTokens,
        }
    }

    /// Notes a limit of 0, which no attempt could keep.
    pub(super) fn timer(&mut self, path: &[&str], length: Duration) {
        if length.is_zero() {
            let key = path.last().copied().unwrap_or_default();
            let message = format!("`{key}` is 0, which nothing can keep");
            self.wrong(path, "out-of-range", message, "leave the key out for its default");
        }
    }

    /// Notes a name that would not survive in `provider/model`, a header or a metric.
    pub(super) fn plain_name(&mut self, section: &str, name: &str) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.len() > 100 || !name.chars().all(plain) {
            let message = format!("`{name}` cannot be a name in [{section}]");
            let help = "letters, digits, `-`, `_` and `.`, at most 100";
            let problem = super::Problem::error("bad-name", message);
            self.note(problem.at(self.tree.key(&[section, name])).help(help));
        }
    }
}
