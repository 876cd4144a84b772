//! The tools that a request offers, read once and looked up when a reply calls one.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use backstay_wire::Dialect;
use serde_json::Value;

use super::Contract;
use crate::engine::Engine;
use crate::validate::{Schema, SchemaFault, Tool};

/// The most bytes of a tool's name in a note.
const MAX_NAME: usize = 60;

/// The most bytes of a schema's fault in a note: it may quote a value of any length.
const MAX_WHY: usize = 200;

/// All tools of a request.
#[derive(Debug, Default)]
pub(super) struct Offered {
    /// By name; the first of two with the same one.
    tools: HashMap<String, Offer>,
    /// Whether there are tools of another kind: which calls those bring is not known.
    open: bool,
}

/// One tool.
#[derive(Debug)]
struct Offer {
    /// `None`: nothing is said of them, or nothing about their form.
    parameters: Option<Value>,
    compiled: OnceLock<Result<Arc<Schema>, SchemaFault>>,
}

impl Contract {
    /// What the request says of the tool named `name`. Parameters that cannot be used as a schema
    /// do not stop a request that its provider takes: the arguments are an object then, and
    /// [`Contract::unchecked`] says that nothing more is known of them.
    pub(crate) fn tool(&self, name: &str, engine: &Engine) -> Tool {
        let offered = self.offered();
        let Some(offer) = offered.tools.get(name) else {
            let is_closed = !offered.open && !offered.tools.is_empty();
            return if is_closed { Tool::NotOffered } else { Tool::Object };
        };
        let Some(parameters) = &offer.parameters else { return Tool::Object };
        let compile = || {
            let compiled = engine.schemas().get(parameters);
            if let Err(fault) = &compiled {
                tracing::warn!(%fault, "the parameters of a tool cannot be checked");
            }
            compiled
        };
        match offer.compiled.get_or_init(compile) {
            Ok(schema) => Tool::Takes(Arc::clone(schema)),
            Err(_) => Tool::Object,
        }
    }

    /// Why the arguments of this tool could only be held to be an object, if a look-up found that
    /// its parameters cannot be used.
    pub(crate) fn unchecked(&self, name: &str) -> Option<String> {
        let fault = self.offered().tools.get(name)?.compiled.get()?.as_ref().err()?;
        let short =
            |text: &str, most| text.get(..text.floor_char_boundary(most)).map(str::to_owned);
        let name = short(name, MAX_NAME).unwrap_or_default();
        let why = short(&fault.to_string(), MAX_WHY).unwrap_or_default();
        Some(format!(
            "arguments of tool '{name}' not checked: its parameters cannot be used: {why}"
        ))
    }

    fn offered(&self) -> &Offered {
        self.offered.get_or_init(|| {
            let mut offered = Offered::default();
            for field in ["tools", "functions"] {
                let raw = self.head.raw(&self.ask.body, field).unwrap_or(b"null");
                let tools: Value = serde_json::from_slice(raw).unwrap_or_default();
                for tool in tools.as_array().into_iter().flatten() {
                    offered.add(tool, self.ask.dialect, field == "functions");
                }
            }
            offered
        })
    }
}

impl Offered {
    /// Adds one entry of a request's list; `bare` where it is the function itself.
    fn add(&mut self, tool: &Value, dialect: Dialect, bare: bool) {
        let kind = tool.get("type").and_then(Value::as_str);
        let (function, key, is_plain) = match dialect {
            Dialect::OpenaiChat => {
                let inner = tool.get("function");
                (inner.unwrap_or(tool), "parameters", bare || inner.is_some())
            }
            Dialect::Anthropic => (tool, "input_schema", matches!(kind, None | Some("custom"))),
        };
        let name = function.get("name").and_then(Value::as_str);
        self.open |= !is_plain || name.is_none();
        let Some(name) = name else { return };
        let says_nothing = |value: &Value| {
            value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty)
        };
        let parameters = function.get(key).filter(|value| !says_nothing(value)).cloned();
        let offer = Offer { parameters, compiled: OnceLock::new() };
        self.tools.entry(name.to_owned()).or_insert(offer);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use backstay_wire::Dialect::{self, Anthropic, OpenaiChat};
    use serde_json::{Value, json};

    use crate::contract::{Ask, Contract, settle};
    use crate::engine::Engine;
    use crate::policy::{Policy, Provider};
    use crate::record::CallLog;
    use crate::validate::Tool;

    /// A request at a provider of its own dialect, and its engine.
    pub(in crate::contract) fn settled(dialect: Dialect, body: String) -> (Engine, Contract) {
        let address = "http://127.0.0.1:9".parse().unwrap();
        let policy = Policy::of([Provider::at("p", dialect, address, None)]);
        let engine = Engine::new(policy, CallLog::memory(1)).unwrap();
        let contract = settle(&engine, Ask::new(dialect, body, engine.now())).unwrap();
        (engine, contract)
    }

    /// What a request with `tools` under `field` says of the tool `name`, and why it is unchecked.
    fn told(dialect: Dialect, field: &str, tools: &Value, name: &str) -> (&'static str, String) {
        let body = json!({"model": "p/m", "max_tokens": 9, field: tools,
            "messages": [{"role": "user", "content": "x"}]});
        let (engine, contract) = settled(dialect, body.to_string());
        assert_eq!(contract.unchecked(name), None, "nobody looked yet");
        let tool = match contract.tool(name, &engine) {
            Tool::Takes(_) => "takes",
            Tool::Object => "object",
            Tool::NotOffered => "not offered",
        };
        (tool, contract.unchecked(name).unwrap_or_default())
    }

    #[test]
    fn a_tool_is_known_by_what_its_request_says_of_it() {
        let function = |name: &str, parameters: Value| json!({"type": "function", "function": {"name": name, "parameters": parameters}});
        let a = function("a", json!({"type": "object"}));
        let search = json!({"type": "web_search"});
        for (tools, name, expected) in [
            (json!([a]), "a", "takes"),
            (json!([a]), "b", "not offered"),
            (json!([a, search]), "b", "object"),
            (json!([function("a", json!({}))]), "a", "object"),
            (json!([{"type": "function", "function": {"name": "a"}}]), "a", "object"),
            (json!([]), "a", "object"),
        ] {
            let told = told(OpenaiChat, "tools", &tools, name);
            assert_eq!(told, (expected, String::new()), "{tools}");
        }
        let bare = json!([{"name": "a", "parameters": {"type": "object"}}]);
        assert_eq!(told(OpenaiChat, "functions", &bare, "a").0, "takes");
        assert_eq!(told(OpenaiChat, "functions", &bare, "b").0, "not offered");
        let named = json!({"name": "a", "input_schema": {"type": "object"}});
        let bash = json!({"type": "bash_20250124", "name": "bash"});
        assert_eq!(told(Anthropic, "tools", &json!([named]), "a").0, "takes");
        assert_eq!(told(Anthropic, "tools", &json!([named]), "b").0, "not offered");
        assert_eq!(told(Anthropic, "tools", &json!([named, bash]), "bash").0, "object");
    }

    #[test]
    fn parameters_that_are_no_schema_leave_an_object_and_a_word_why() {
        for parameters in [json!({"type": "objekt"}), json!({"$ref": "https://example.com/s.json"})]
        {
            let tool = json!([{"type": "function",
                "function": {"name": "a", "parameters": parameters}}]);
            let (tool, why) = told(OpenaiChat, "tools", &tool, "a");
            assert_eq!(tool, "object", "{parameters}");
            assert!(why.starts_with("arguments of tool 'a' not checked: "), "{why}");
        }
    }
}
