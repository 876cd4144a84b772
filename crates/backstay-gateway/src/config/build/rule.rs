//! A route's schema, rules and last resort: the parts the engine has to judge.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use backstay::policy::{LastResort, RuleText};
use serde_json::Value;

use super::Loading;
use crate::config::file::{LastResortTable, RuleTable};
use crate::config::read_at_most;

/// The largest schema file, in bytes: providers refuse far smaller ones.
const MAX_SCHEMA: u64 = 1 << 20;

impl Loading<'_> {
    /// The schema in the file that the route `name` gives as `written`.
    pub(super) fn schema(&mut self, name: &str, written: &str) -> Option<Arc<Value>> {
        let path = ["routes", name, "schema"];
        let schema = match read_schema(&self.folder.join(Path::new(written))) {
            Ok(schema) => schema,
            Err(why) => {
                let message = format!("`{written}` cannot be used as a schema: {why}");
                self.wrong(&path, "bad-schema", message, "the path is relative to the config file");
                return None;
            }
        };
        if let Err(why) = (self.outside.checks.schema)(&schema) {
            let message = format!("`{written}` is not a schema that can be used: {why}");
            self.wrong(&path, "bad-schema", message, "");
            return None;
        }
        Some(Arc::new(schema))
    }

    /// The rules of the route `name` that are fit.
    pub(super) fn rules(&mut self, name: &str, tables: &[RuleTable]) -> Vec<RuleText> {
        let mut rules: Vec<RuleText> = Vec::new();
        let mut names = BTreeSet::new();
        for (index, table) in tables.iter().enumerate() {
            let index = index.to_string();
            let path = |key| ["routes", name, "rules", index.as_str(), key];
            let rule = RuleText {
                name: table.name.clone(),
                check: table.check.clone(),
                message: table.message.clone(),
                input: table.input.clone(),
            };
            if rule.name.trim().is_empty() {
                self.wrong(&path("name"), "bad-rule", "a rule needs a name".into(), "");
            }
            if !names.insert(table.name.as_str()) {
                let message = format!("two rules are named `{}`", rule.name);
                self.wrong(&path("name"), "bad-rule", message, "tell them apart");
            }
            if rule.input.as_ref().is_some_and(|at| !at.is_empty() && !at.starts_with('/')) {
                let message = "`input` is not a JSON pointer".into();
                self.wrong(&path("input"), "bad-rule", message, "such as \"/messages/0/content\"");
            }
            if let Err(why) = (self.outside.checks.rule)(&rule) {
                let message = format!("the rule `{}` cannot be used: {why}", rule.name);
                self.wrong(&path("check"), "bad-rule", message, "it is a CEL expression");
            }
            rules.push(rule);
        }
        rules
    }

    /// The last resort of the route `name`, held against its schema.
    pub(super) fn last_resort(
        &mut self,
        name: &str,
        table: &LastResortTable,
        schema: Option<&Value>,
    ) -> Option<LastResort> {
        let path = |key| ["routes", name, "last_resort", key];
        let table_path = ["routes", name, "last_resort"];
        let written = match (&table.reply, &table.text) {
            (None, Some(text)) if schema.is_none() => return Some(LastResort::Text(text.clone())),
            (None, Some(_)) => {
                let message = "a `text` cannot fit the route's schema".into();
                let help = "write `reply = { … }` instead";
                self.wrong(&path("text"), "bad-last-resort", message, help);
                return None;
            }
            (Some(written), None) => written,
            (reply, _) => {
                let fault = if reply.is_some() { "both a `reply` and a" } else { "no `reply` or" };
                let message = format!("`last_resort` has {fault} `text`");
                let help = "`reply = { … }` for JSON, or `text = \"…\"`";
                let spoken_for = self.tree.has(&path("reply")) || self.tree.has(&path("text"));
                if reply.is_some() || !spoken_for {
                    self.wrong(&table_path, "bad-last-resort", message, help);
                }
                return None;
            }
        };
        let Some(reply) = json(written) else {
            let message = "`reply` has a date or a number that JSON has not".into();
            self.wrong(&path("reply"), "bad-last-resort", message, "put it in quotes");
            return None;
        };
        if let Some(Err(why)) = schema.map(|schema| (self.outside.checks.fits)(schema, &reply)) {
            let message = format!("`reply` does not fit the route's schema: {why}");
            let help = "what is handed out in an emergency must be valid too";
            self.wrong(&path("reply"), "bad-last-resort", message, help);
        }
        Some(LastResort::Json(Arc::new(reply)))
    }
}

/// The JSON object in a file, or why there is none.
fn read_schema(path: &Path) -> Result<Value, String> {
    let bytes = read_at_most(path, MAX_SCHEMA).map_err(|error| error.to_string())?;
    let schema: Value =
        serde_json::from_slice(&bytes).map_err(|error| format!("it is not JSON: {error}"))?;
    if schema.is_object() { Ok(schema) } else { Err("it is not a JSON object".into()) }
}

/// A TOML value as JSON. `None`: it has a date, or a number that is infinite or none.
pub(super) fn json(value: &toml::Value) -> Option<Value> {
    Some(match value {
        toml::Value::String(text) => Value::from(text.as_str()),
        toml::Value::Integer(number) => Value::from(*number),
        toml::Value::Float(number) => serde_json::Number::from_f64(*number)?.into(),
        toml::Value::Boolean(yes) => Value::from(*yes),
        toml::Value::Datetime(_) => return None,
        toml::Value::Array(items) => Value::Array(items.iter().map(json).collect::<Option<_>>()?),
        toml::Value::Table(table) => Value::Object(
            table
                .iter()
                .map(|(key, item)| Some((key.clone(), json(item)?)))
                .collect::<Option<_>>()?,
        ),
    })
}
