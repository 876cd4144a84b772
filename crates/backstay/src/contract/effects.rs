//! What a request has its provider do beside answering: such a call is not made just to try a target.

use super::Contract;
use serde_json::Value;

/// Fields by which a provider keeps something, goes on with something kept, or acts by itself.
const FIELDS: [&str; 7] = [
    "store",
    "background",
    "conversation",
    "previous_response_id",
    "web_search_options",
    "mcp_servers",
    "container",
];

impl Contract {
    /// The part of the request that has effects at the provider; worked out when first needed.
    /// `None`: it only wants an answer.
    pub(crate) fn effect(&self) -> Option<&'static str> {
        *self.effect.get_or_init(|| {
            let asks = |field: &&str| {
                let raw = self.head.raw(&self.ask.body, field);
                !matches!(raw, None | Some(b"null" | b"false" | b"[]"))
            };
            FIELDS.into_iter().find(asks).or_else(|| self.has_server_tools().then_some("tools"))
        })
    }

    /// Whether a tool may run at the provider. A tool of the caller's is a function, custom, or in a
    /// Messages request of no kind.
    pub(crate) fn has_server_tools(&self) -> bool {
        let raw = self.head.raw(&self.ask.body, "tools").unwrap_or(b"null");
        if raw == b"null" {
            return false;
        }
        let tools: Vec<Value> = serde_json::from_slice(raw).unwrap_or_default();
        let is_callers =
            |kind: &Value| kind.is_null() || matches!(kind.as_str(), Some("function" | "custom"));
        !tools.iter().filter_map(|tool| tool.get("type")).all(is_callers)
    }
}

#[cfg(test)]
mod tests {
    use backstay_wire::Dialect::{self, Anthropic, OpenaiChat};

    use crate::contract::tools::tests::settled;

    #[test]
    fn what_acts_at_the_provider_is_named_and_tools_of_the_callers_own_do_not() {
        let effect = |dialect: Dialect, fields: &str| {
            let body = format!(r#"{{"model":"p/m","messages":[{{}}],"max_tokens":9{fields}}}"#);
            settled(dialect, body).1.effect()
        };
        let rows = [
            (OpenaiChat, "", None),
            (OpenaiChat, r#","store":false,"tools":[],"conversation":null"#, None),
            (OpenaiChat, r#","store":true"#, Some("store")),
            (OpenaiChat, r#","conversation":"conv_1""#, Some("conversation")),
            (OpenaiChat, r#","background":true"#, Some("background")),
            (OpenaiChat, r#","web_search_options":{}"#, Some("web_search_options")),
            (OpenaiChat, r#","tools":[{"type":"function","function":{"name":"f"}}]"#, None),
            (OpenaiChat, r#","tools":[{"type":"web_search"}]"#, Some("tools")),
            (Anthropic, r#","tools":[{"name":"f","input_schema":{}}]"#, None),
            (
                Anthropic,
                r#","tools":[{"name":"f"},{"type":"web_search_20250305","name":"web_search"}]"#,
                Some("tools"),
            ),
            (Anthropic, r#","mcp_servers":[{"name":"x"}]"#, Some("mcp_servers")),
            (Anthropic, r#","mcp_servers":[]"#, None),
        ];
        for (dialect, fields, named) in rows {
            assert_eq!(effect(dialect, fields), named, "{fields}");
        }
    }
}
