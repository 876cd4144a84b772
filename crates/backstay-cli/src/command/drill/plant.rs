//! Our own gateway for a drill: its config, written from the file, and the gateway in this process.

use std::path::Path;

use anyhow::{Context, anyhow};
use backstay_gateway::auth::Callers;
use backstay_gateway::{Gateway, Running};
use toml::{Table, Value};

use super::file::RowTable;
use super::fleet::{Fleet, model};
use super::plan::{Case, Drill};
use crate::settings;

/// Starts a gateway set up as `row` says, in front of `fleet`. A case's route has the case's slug.
///
/// # Errors
/// The config has errors, which are told, or the gateway cannot listen.
pub(super) async fn start(drill: &Drill, row: &RowTable, fleet: &Fleet) -> anyhow::Result<Running> {
    let text = toml::to_string(&config(drill, row, fleet))?;
    let settings = settings::from_text(&text, Path::new(".")).map_err(|problems| {
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        anyhow!("the gateway's config is wrong:\n{}", told.join("\n"))
    })?;
    let engine = settings::engine(&settings)?;
    let gateway = Gateway::new(engine, Callers::new(&settings.keys), settings.server);
    gateway.start().await.context("the gateway cannot listen")
}

/// The config. What the file itself says wins over what is filled in.
fn config(drill: &Drill, row: &RowTable, fleet: &Fleet) -> Table {
    let mut config = drill.gateway.clone();
    put(&mut config, "server", "listen", "127.0.0.1:0");
    put(&mut config, "server", "call_log", "memory");
    for member in &drill.fleet {
        let provider = Table::from_iter([
            ("dialect".to_owned(), member.dialect.word().into()),
            ("base_url".to_owned(), fleet.base_url(&member.name, member.dialect).into()),
            ("auth".to_owned(), "none".into()),
        ]);
        put(&mut config, "providers", &member.name, provider);
        for case in &drill.cases {
            let name = model(&case.slug, &member.name);
            let mut table = member.model.clone();
            table.insert("provider".into(), member.name.clone().into());
            table.insert("model".into(), name.clone().into());
            table.insert("pinned".into(), true.into());
            put(&mut config, "models", &name, table);
        }
    }
    for case in &drill.cases {
        put(&mut config, "routes", &case.slug, route(case, row));
    }
    config
}

fn route(case: &Case, row: &RowTable) -> Table {
    let mut route = row.route.clone();
    route.extend(case.route.clone());
    let tiers = case.tiers.iter().map(|member| Value::from(model(&case.slug, member)));
    route.insert("tiers".into(), Value::Array(tiers.collect()));
    route
}

/// Puts `value` under `name` into the table `table`, unless something is there.
fn put(config: &mut Table, table: &str, name: &str, value: impl Into<Value>) {
    let inner = config.entry(table).or_insert_with(|| Table::new().into());
    // What is no table is told by the reader of the config.
    if let Some(inner) = inner.as_table_mut() {
        inner.entry(name).or_insert_with(|| value.into());
    }
}
