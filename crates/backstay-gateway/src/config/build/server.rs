//! `[server]` and `[keys.NAME]`.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use backstay::policy::{Money, Queueing, Secret};

use super::Loading;
use crate::config::file::{File, KeyTable, ServerTable};
use crate::config::{CallLog, CallerKey, Server};

impl Loading<'_> {
    /// The gateway itself. `None`: something is wrong, and noted.
    pub(super) fn server(
        &mut self,
        table: &ServerTable,
        keys: &BTreeMap<String, KeyTable>,
    ) -> Option<Server> {
        self.server_limits(table);
        let call_log = self.call_log(&table.call_log)?;
        Some(Server {
            listen: self.listen(&table.listen, keys.is_empty())?,
            max_body_bytes: table.max_body_bytes,
            max_connections: table.max_connections,
            max_headers: table.max_headers,
            max_header_bytes: table.max_header_bytes,
            header_timeout: table.header_timeout.0,
            drain: table.drain.0,
            call_log,
            runtime: table.runtime.runtime(),
        })
    }

    fn server_limits(&mut self, table: &ServerTable) {
        let limits = [
            ("max_body_bytes", table.max_body_bytes, 1_024..=u64::MAX),
            ("max_connections", table.max_connections.into(), 1..=u64::MAX),
            ("max_headers", table.max_headers.into(), 1..=1_000),
            ("max_header_bytes", table.max_header_bytes.into(), 8_192..=1 << 20),
        ];
        for (key, value, range) in limits {
            self.in_range(&["server", key], value, range);
        }
        if table.header_timeout.0 < Duration::from_millis(100) {
            let message = "no client sends a head in less than 100ms".into();
            self.wrong(&["server", "header_timeout"], "out-of-range", message, "10s is usual");
        }
    }

    fn listen(&mut self, text: &str, open: bool) -> Option<SocketAddr> {
        let path = ["server", "listen"];
        // The one name that needs no look-up.
        let written = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        let Ok(listen) = written.as_deref().unwrap_or(text).parse::<SocketAddr>() else {
            let message = "`listen` is not an address and a port".into();
            self.wrong(
                &path,
                "bad-address",
                message,
                "such as \"127.0.0.1:8080\" or \"[::1]:8080\"",
            );
            return None;
        };
        if open && !listen.ip().is_loopback() {
            let message =
                format!("{} can be reached by others, and there are no keys", listen.ip());
            let help = "add a [keys.NAME] with a token, or listen on 127.0.0.1";
            self.wrong(&path, "open-gateway", message, help);
            return None;
        }
        Some(listen)
    }

    fn call_log(&mut self, text: &str) -> Option<CallLog> {
        let path = std::path::Path::new(text);
        let file = path.extension().is_some_and(|end| end == "sqlite" || end == "db");
        match text {
            "sqlite" => Some(CallLog::Sqlite(self.folder.join("backstay.sqlite"))),
            "memory" => Some(CallLog::Memory),
            "off" => Some(CallLog::Off),
            _ if file => Some(CallLog::Sqlite(self.folder.join(path))),
            _ => {
                let message = "`call_log` is neither a choice nor a database file".into();
                let help =
                    "\"sqlite\", \"memory\", \"off\", or a path ending in `.sqlite` or `.db`";
                self.wrong(&["server", "call_log"], "unknown-word", message, help);
                None
            }
        }
    }

    /// The callers, each with a token of its own.
    pub(super) fn callers(&mut self, file: &File, queue: &Queueing) -> Vec<CallerKey> {
        let mut callers: Vec<CallerKey> = Vec::new();
        let mut tokens: BTreeMap<String, &str> = BTreeMap::new();
        for (name, table) in &file.keys {
            let path = ["keys", name, "token"];
            let Some(written) = &table.token else {
                self.missing(&path, "token = { env = \"APP_KEY\" }");
                continue;
            };
            let Some(token) = self.secret(&path, written) else { continue };
            if let Some(twin) = tokens.insert(token.expose().to_owned(), name) {
                let message = format!("`{name}` has the same token as `{twin}`");
                self.wrong(&path, "same-token", message, "give each caller its own");
                continue;
            }
            let tenant = table.tenant.clone().unwrap_or_else(|| name.clone());
            let (class, classes) = self.key_classes(name, table, queue);
            let allowance = self.allowance(name, table, file);
            let reach = self.reach(name, table, file);
            callers.push(CallerKey {
                name: name.clone(),
                token,
                tenant,
                class,
                classes,
                allowance,
                dev: table.dev,
                reach,
            });
        }
        callers
    }

    /// The key of the admin API, which is no caller's.
    pub(super) fn admin_key(
        &mut self,
        table: &ServerTable,
        callers: &[CallerKey],
    ) -> Option<Secret> {
        let path = ["server", "admin_key"];
        let key = self.secret(&path, table.admin_key.as_ref()?)?;
        let twin = callers.iter().find(|caller| caller.token.expose() == key.expose());
        if let Some(twin) = twin {
            let message = format!("the admin key is the token of `{}`", twin.name);
            self.wrong(&path, "same-token", message, "give operators a key of their own");
            return None;
        }
        Some(key)
    }

    /// Notes a number that is out of its range.
    pub(super) fn in_range(
        &mut self,
        path: &[&str],
        value: u64,
        range: std::ops::RangeInclusive<u64>,
    ) {
        if range.contains(&value) {
            return;
        }
        let key = path.last().copied().unwrap_or_default();
        let message = match *range.end() {
            u64::MAX => format!("`{key}` must be at least {}", range.start()),
            end => format!("`{key}` must be from {} to {end}", range.start()),
        };
        self.wrong(path, "out-of-range", message, "");
    }

    /// The sum of money at `path`. `None`: there is no such sum, which is noted with `help`.
    pub(super) fn money(&mut self, path: &[&str], units: f64, help: &str) -> Option<Money> {
        let money = Money::of(units);
        if money.is_none() {
            let key = path.last().copied().unwrap_or_default();
            let message = format!("`{key}` is {units}; 0 to 1000000 is allowed");
            self.wrong(path, "out-of-range", message, help);
        }
        money
    }
}
