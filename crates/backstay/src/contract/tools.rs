//! The tools that a request offers, looked up when a reply calls one.

use std::sync::Arc;

use backstay_wire::Dialect;
use serde_json::Value;

use super::Contract;
use crate::engine::Engine;
use crate::validate::Schema;

impl Contract {
    /// The parameters of the tool named `name`, compiled. `None`: the request offers no such tool,
    /// it says nothing of its parameters, or what it says is no schema that can be used; then its
    /// arguments need only be JSON, as the provider sees to them.
    pub(crate) fn tool(&self, name: &str, engine: &Engine) -> Option<Arc<Schema>> {
        let raw = ["tools", "functions"].iter().find_map(|f| self.head.raw(&self.ask.body, f))?;
        let tools: Value = serde_json::from_slice(raw).ok()?;
        let parameters = tools.as_array()?.iter().find_map(|tool| {
            let (tool, key) = match self.ask.dialect {
                Dialect::OpenaiChat => (tool.get("function").unwrap_or(tool), "parameters"),
                Dialect::Anthropic => (tool, "input_schema"),
            };
            if tool.get("name")? == name { tool.get(key) } else { None }
        })?;
        match engine.schemas().get(parameters) {
            Ok(schema) => Some(schema),
            Err(fault) => {
                tracing::debug!(%fault, "the parameters of a tool cannot be checked");
                None
            }
        }
    }
}
