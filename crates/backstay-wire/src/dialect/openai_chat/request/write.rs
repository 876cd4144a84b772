//! Writes a neutral request.

use serde_json::{Map, Value, json};

use super::{CapField, MESSAGE_FIELDS, PART_FIELDS};
use crate::chat::{Chat, Format, ImageSource, Loss, Part, Role, Tool, ToolChoice, Turn};
use crate::dialect::openai_chat::fields::merge;
use crate::dialect::{Dialect, Written};

/// Top-level fields of this dialect that another dialect may have under the same name and meaning.
const SHARED: &[&str] = &["service_tier"];

/// Top-level fields that only Anthropic Messages has; a hand-built chat may carry them.
const FOREIGN: &[&str] = &[
    "anthropic_beta",
    "anthropic_version",
    "cache_control",
    "container",
    "context_management",
    "mcp_servers",
    "output_config",
    "stop_sequences",
];

/// Writes a request with the cap under its default name.
pub(crate) fn write(chat: &Chat) -> Written {
    write_capped(chat, CapField::default())
}

/// Writes a request with the cap under `cap`'s name.
pub(crate) fn write_capped(chat: &Chat, cap: CapField) -> Written {
    let mut writer = Writer { body: Map::new(), losses: vec![], source: chat.source };
    writer.set("model", json!(chat.model));
    writer.messages(chat);
    writer.options(chat, cap);
    writer.tools(chat);
    writer.extra(chat);
    Written { bytes: Value::Object(writer.body).to_string().into_bytes(), losses: writer.losses }
}

struct Writer {
    body: Map<String, Value>,
    losses: Vec<Loss>,
    source: Option<Dialect>,
}

/// One message in the making.
#[derive(Default)]
struct Message {
    content: Vec<Value>,
    calls: Vec<Value>,
    reasoning: String,
    refusal: Option<String>,
    fields: Map<String, Value>,
}

/// Which list of a message the last part went to, so that its further fields find it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Slot {
    Content,
    Calls,
    Nowhere,
}

impl Writer {
    fn set(&mut self, key: &str, value: Value) {
        self.body.insert(key.to_owned(), value);
    }

    fn lose(&mut self, path: &str, note: &str) {
        self.losses.push(Loss::new(path, note));
    }

    /// Whether what the chat keeps aside was put there by this dialect's reader, or by hand.
    fn is_own(&self) -> bool {
        !matches!(self.source, Some(Dialect::Anthropic))
    }

    // --- messages ---

    fn messages(&mut self, chat: &Chat) {
        let mut messages = vec![];
        if !chat.system.is_empty() {
            let message = self.message(&chat.system, Role::System, "/system");
            messages.push(message.into_json(Role::System));
        }
        for (index, turn) in chat.turns.iter().enumerate() {
            self.turn(turn, &format!("/messages/{index}"), &mut messages);
        }
        self.set("messages", Value::Array(messages));
    }

    /// One turn is one message, but each tool result stands in a message of its own, before what
    /// else the turn says.
    fn turn(&mut self, turn: &Turn, path: &str, messages: &mut Vec<Value>) {
        let mut others = vec![];
        let mut tool_at = None;
        for part in &turn.parts {
            match part {
                Part::ToolResult { id, parts, failed } => {
                    if *failed {
                        self.lose(path, "that a tool failed cannot be said; its answer is kept");
                    }
                    let message = self.message(parts, Role::Tool, path);
                    let mut json = message.into_json(Role::Tool);
                    merge(&mut json, json!({ "tool_call_id": id }));
                    tool_at = Some(messages.len());
                    messages.push(json);
                }
                Part::Other(Value::Object(map)) if self.is_own() && map.contains_key("role") => {
                    messages.push(Value::Object(map.clone()));
                }
                Part::Other(Value::Object(map))
                    if tool_at.is_some() && self.is_own() && map.contains_key(MESSAGE_FIELDS) =>
                {
                    let message = tool_at.and_then(|at| messages.get_mut(at));
                    if let (Some(message), Some(rest)) = (message, map.get(MESSAGE_FIELDS)) {
                        merge(message, rest.clone());
                    }
                }
                other => others.push(other.clone()),
            }
        }
        let is_spoken = !others.is_empty() || turn.parts.is_empty();
        if is_spoken && turn.role != Role::Tool {
            let message = self.message(&others, turn.role, path);
            messages.push(message.into_json(turn.role));
        } else if is_spoken && !others.is_empty() {
            // What a tool turn says beside its results can only be said by the user.
            let message = self.message(&others, Role::User, path);
            messages.push(message.into_json(Role::User));
        }
    }

    fn message(&mut self, parts: &[Part], role: Role, path: &str) -> Message {
        let mut message = Message::default();
        let mut slot = Slot::Nowhere;
        for (index, part) in parts.iter().enumerate() {
            let path = format!("{path}/content/{index}");
            if let Part::Other(Value::Object(map)) = part
                && self.is_own()
                && let Some(rest) = map.get(PART_FIELDS)
            {
                message.extend_last(slot, rest);
                continue;
            }
            slot = self.part(&mut message, part, role, &path);
        }
        message
    }

    fn part(&mut self, message: &mut Message, part: &Part, role: Role, path: &str) -> Slot {
        match part {
            Part::Text(text) => message.say(json!({ "type": "text", "text": text })),
            Part::Image { media_type, source } if role == Role::User => {
                let url = image_url(media_type.as_deref(), source);
                message.say(json!({ "type": "image_url", "image_url": { "url": url } }))
            }
            Part::ToolCall { id, name, arguments } if role == Role::Assistant => {
                message.calls.push(json!({
                    "id": id,
                    "type": "function",
                    "function": { "name": name, "arguments": arguments },
                }));
                Slot::Calls
            }
            Part::Refusal(words) if role == Role::Assistant => {
                message.refusal.get_or_insert_default().push_str(words);
                Slot::Nowhere
            }
            Part::Thinking { text, signature: None }
                if role == Role::Assistant && self.is_own() =>
            {
                message.reasoning.push_str(text);
                Slot::Nowhere
            }
            Part::Thinking { .. } => {
                self.lose(path, "reasoning is bound to the provider that wrote it; dropped");
                Slot::Nowhere
            }
            Part::Other(value) if self.is_own() => message.say_other(value),
            Part::Other(value) => {
                self.lose(path, &format!("{} cannot be said; dropped", foreign_name(value)));
                Slot::Nowhere
            }
            Part::Image { .. } => {
                self.lose(path, "a picture can stand only in a user message; dropped");
                Slot::Nowhere
            }
            Part::ToolCall { .. } | Part::ToolResult { .. } | Part::Refusal(_) => {
                self.lose(path, "a part that this role cannot say; dropped");
                Slot::Nowhere
            }
        }
    }

    // --- options ---

    fn options(&mut self, chat: &Chat, cap: CapField) {
        if let Some(tokens) = chat.max_output_tokens {
            self.set(cap.key(), json!(tokens));
        }
        if let Some(temperature) = &chat.temperature {
            self.set("temperature", Value::Number(temperature.clone()));
        }
        if let Some(top_p) = &chat.top_p {
            self.set("top_p", Value::Number(top_p.clone()));
        }
        match chat.stop.as_slice() {
            [] => {}
            [word] => self.set("stop", json!(word)),
            words => self.set("stop", json!(words)),
        }
        if chat.stream {
            self.set("stream", json!(true));
        }
        if chat.include_usage {
            self.set("stream_options", json!({ "include_usage": true }));
        }
        if let Some(user) = &chat.user {
            self.set("user", json!(user));
        }
        match &chat.format {
            None => {}
            Some(Format::JsonObject) => {
                self.set("response_format", json!({ "type": "json_object" }));
            }
            Some(Format::JsonSchema { name, schema, strict }) => {
                // The name is required; 64 letters, digits, `_` and `-` at most.
                let name = if name.is_empty() { "reply" } else { name };
                let mut named = json!({ "name": name, "schema": schema });
                if let Some(strict) = strict {
                    merge(&mut named, json!({ "strict": strict }));
                }
                let format = json!({ "type": "json_schema", "json_schema": named });
                self.set("response_format", format);
            }
        }
    }

    fn tools(&mut self, chat: &Chat) {
        let tools: Vec<Value> =
            chat.tools.iter().enumerate().filter_map(|(i, tool)| self.tool(i, tool)).collect();
        if !tools.is_empty() {
            self.set("tools", Value::Array(tools));
        }
        let choice = chat.tool_choice.as_ref().map(|choice| match choice {
            ToolChoice::Auto => json!("auto"),
            ToolChoice::Never => json!("none"),
            ToolChoice::Required => json!("required"),
            ToolChoice::Named(name) => {
                json!({ "type": "function", "function": { "name": name } })
            }
        });
        if let Some(choice) = choice {
            self.set("tool_choice", choice);
        }
        if let Some(parallel) = chat.parallel_tools {
            self.set("parallel_tool_calls", json!(parallel));
        }
    }

    fn tool(&mut self, index: usize, tool: &Tool) -> Option<Value> {
        let is_plain = tool.extra.get("type").is_none_or(|k| k == "custom" || k == "function");
        if !self.is_own() && !is_plain {
            let note = "a tool that the provider runs itself cannot be said; dropped";
            self.lose(&format!("/tools/{index}"), note);
            return None;
        }
        let mut function = json!({ "name": tool.name });
        if !tool.description.is_empty() {
            merge(&mut function, json!({ "description": tool.description }));
        }
        merge(&mut function, json!({ "parameters": tool.parameters }));
        if let Some(strict) = tool.strict {
            merge(&mut function, json!({ "strict": strict }));
        }
        let mut json = json!({ "type": "function", "function": function });
        if self.is_own() {
            merge(&mut json, Value::Object(tool.extra.clone()));
        } else {
            for key in tool.extra.keys().filter(|key| *key != "type") {
                self.lose(&format!("/tools/{index}/{key}"), "no such field of a tool; dropped");
            }
        }
        Some(json)
    }

    /// What the neutral form has no place for. Fields that are set already win over it.
    fn extra(&mut self, chat: &Chat) {
        for (key, value) in &chat.extra {
            let is_known = match chat.source {
                Some(Dialect::OpenaiChat) => true,
                None => !FOREIGN.contains(&key.as_str()),
                Some(Dialect::Anthropic) => SHARED.contains(&key.as_str()),
            };
            if !is_known {
                self.lose(&format!("/{key}"), "no such field in this dialect; dropped");
                continue;
            }
            match self.body.get_mut(key) {
                Some(Value::Array(own)) => {
                    own.extend(value.as_array().into_iter().flatten().cloned());
                }
                Some(own) => merge(own, value.clone()),
                None => self.set(key, value.clone()),
            }
        }
    }
}

impl Message {
    fn say(&mut self, part: Value) -> Slot {
        self.content.push(part);
        Slot::Content
    }

    /// Something this dialect's reader kept whole.
    fn say_other(&mut self, value: &Value) -> Slot {
        if let Some(Value::Object(fields)) = value.get(MESSAGE_FIELDS) {
            self.fields.extend(fields.clone());
            return Slot::Nowhere;
        }
        // Tool calls have an id, content parts do not.
        if value.get("id").is_some() {
            self.calls.push(value.clone());
            return Slot::Calls;
        }
        self.say(value.clone())
    }

    fn extend_last(&mut self, slot: Slot, rest: &Value) {
        let last = match slot {
            Slot::Content => self.content.last_mut(),
            Slot::Calls => self.calls.last_mut(),
            Slot::Nowhere => None,
        };
        if let Some(part) = last {
            merge(part, rest.clone());
        }
    }

    fn into_json(self, role: Role) -> Value {
        let word = match role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        let has_content = !self.content.is_empty();
        let mut json = json!({ "role": word, "content": joined(self.content) });
        if !self.reasoning.is_empty() {
            merge(&mut json, json!({ "reasoning_content": self.reasoning }));
        }
        if let Some(words) = &self.refusal {
            merge(&mut json, json!({ "refusal": words }));
        }
        let is_silent = !has_content && (!self.calls.is_empty() || self.refusal.is_some());
        if is_silent && let Some(content) = json.get_mut("content") {
            *content = Value::Null;
        }
        if !self.calls.is_empty() {
            merge(&mut json, json!({ "tool_calls": self.calls }));
        }
        merge(&mut json, Value::Object(self.fields));
        json
    }
}

/// What a part is that another dialect kept aside, in words for the log.
fn foreign_name(value: &Value) -> String {
    let fields = value.get(PART_FIELDS).or_else(|| value.get(MESSAGE_FIELDS));
    if let Some(Value::Object(fields)) = fields {
        let keys: Vec<&str> = fields.keys().map(String::as_str).collect();
        return format!("field {}", keys.join(", "));
    }
    let kind = value.get("type").and_then(Value::as_str).unwrap_or("without a type");
    format!("a block of kind {kind}")
}

/// One plain text is a string, as every server reads it; anything else is a list of parts.
fn joined(mut content: Vec<Value>) -> Value {
    if content.is_empty() {
        return json!("");
    }
    let is_plain = |part: &Value| {
        part.get("type").is_some_and(|kind| kind == "text")
            && part.as_object().is_some_and(|map| map.len() == 2)
    };
    if let [part] = content.as_mut_slice()
        && is_plain(part)
        && let Some(text) = part.get_mut("text")
    {
        return text.take();
    }
    Value::Array(content)
}

fn image_url(media_type: Option<&str>, source: &ImageSource) -> String {
    match source {
        ImageSource::Url(url) => url.clone(),
        ImageSource::Base64(bytes) => {
            format!("data:{};base64,{bytes}", media_type.unwrap_or_default())
        }
    }
}
