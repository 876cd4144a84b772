//! Writes a neutral request: the fields around the conversation.

use serde::Serialize;
use serde_json::{Map, Number, Value, json};

use super::super::block::{Block, PART_FIELDS};
use super::turns::{Conversation, Message};
use crate::chat::{Chat, Format, Loss, Tool, ToolChoice};
use crate::dialect::{Dialect, Written};

/// The cap that is written when the chat has none: the dialect demands one. It is the smallest
/// output limit among the models this API has had; the engine normally sets a cap before.
const DEFAULT_MAX_TOKENS: u64 = 4_096;

/// Top-level fields of this dialect that have no neutral place.
const OWN: &[&str] = &[
    "cache_control",
    "container",
    "context_management",
    "inference_geo",
    "mcp_servers",
    "metadata",
    "output_config",
    "service_tier",
    "speed",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
];

/// Those of them that callers of the other dialect send under the same name and meaning.
const SHARED: &[&str] = &["cache_control", "thinking", "top_k"];

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<Content>,
    messages: Vec<Message>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<&'a Number>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Value>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

/// One plain text is a string, as every server reads it; anything else is a list of blocks.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Content {
    Text(String),
    Blocks(Vec<Block>),
}

impl Content {
    pub(super) fn of(mut blocks: Vec<Block>) -> Self {
        if let [Block::Json(Value::Object(block))] = blocks.as_mut_slice()
            && block.len() == 2
            && block.get("type").is_some_and(|kind| kind == "text")
            && let Some(Value::String(text)) = block.get_mut("text")
        {
            return Self::Text(std::mem::take(text));
        }
        Self::Blocks(blocks)
    }
}

/// Writes a request.
pub(crate) fn write(chat: &Chat) -> Written {
    let mut losses = Vec::new();
    let mut extra = keep_extra(chat, &mut losses);
    let mut conversation = Conversation::new(chat.source);
    conversation.read(chat);
    let (system, messages) = conversation.close(&mut losses);
    let mut tools: Vec<Value> = chat.tools.iter().map(|tool| tool_json(tool, chat)).collect();
    for (at, tool) in chat.tools.iter().enumerate() {
        lose_fields(tool, chat, at, &mut losses);
    }
    if let Some(Value::Array(server)) = extra.shift_remove("tools") {
        tools.extend(server);
    }
    let tool_choice = match extra.shift_remove("tool_choice") {
        Some(choice) => Some(choice),
        None => tool_choice(chat, tools.is_empty(), &mut losses),
    };
    let body = Body {
        model: &chat.model,
        max_tokens: chat.max_output_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
        system: (!system.is_empty()).then(|| Content::of(system)),
        messages,
        tools,
        tool_choice,
        stop_sequences: stop_sequences(chat, &mut losses),
        temperature: temperature(chat, &mut losses),
        top_p: chat.top_p.as_ref(),
        output_config: output_config(chat, extra.shift_remove("output_config"), &mut losses),
        metadata: metadata(chat, extra.shift_remove("metadata")),
        stream: chat.stream,
        extra,
    };
    Written { bytes: serde_json::to_vec(&body).unwrap_or_default(), losses }
}

/// Whether what the chat keeps aside is foreign to this dialect.
pub(super) fn is_foreign(source: Option<Dialect>) -> bool {
    matches!(source, Some(Dialect::OpenaiChat))
}

fn keep_extra(chat: &Chat, losses: &mut Vec<Loss>) -> Map<String, Value> {
    let mut kept = Map::new();
    for (name, value) in &chat.extra {
        let is_known = match chat.source {
            Some(Dialect::Anthropic) => true,
            Some(Dialect::OpenaiChat) => SHARED.contains(&name.as_str()),
            None => OWN.contains(&name.as_str()),
        };
        if is_known {
            kept.insert(name.clone(), value.clone());
        } else if !value.is_null() {
            losses.push(Loss::new(format!("/{name}"), "no such field in this dialect; dropped"));
        }
    }
    kept
}

fn tool_json(tool: &Tool, chat: &Chat) -> Value {
    let mut json = Map::new();
    json.insert("name".into(), tool.name.as_str().into());
    if !tool.description.is_empty() {
        json.insert("description".into(), tool.description.as_str().into());
    }
    let foreign = is_foreign(chat.source);
    let schema = if foreign { input_schema(&tool.parameters) } else { tool.parameters.clone() };
    json.insert("input_schema".into(), schema);
    if let Some(strict) = tool.strict {
        json.insert("strict".into(), strict.into());
    }
    if !foreign {
        json.extend(tool.extra.clone());
    }
    Value::Object(json)
}

/// The schema as it is, with the `type` the dialect demands. A tool without a schema takes nothing.
fn input_schema(parameters: &Value) -> Value {
    let Value::Object(schema) = parameters else {
        return json!({ "type": "object", "properties": {} });
    };
    let mut schema = schema.clone();
    if !schema.contains_key("type") {
        schema.insert("type".into(), "object".into());
    }
    Value::Object(schema)
}

fn lose_fields(tool: &Tool, chat: &Chat, at: usize, losses: &mut Vec<Loss>) {
    if is_foreign(chat.source) {
        for name in tool.extra.keys() {
            let path = format!("/tools/{at}/{name}");
            losses.push(Loss::new(path, "no such field of a tool; dropped"));
        }
    }
}

fn tool_choice(chat: &Chat, no_tools: bool, losses: &mut Vec<Loss>) -> Option<Value> {
    if no_tools {
        if chat.tool_choice.as_ref().is_some_and(|choice| *choice != ToolChoice::Never) {
            losses.push(Loss::new("/tool_choice", "there are no tools to choose from; dropped"));
        }
        return None;
    }
    let mut choice = match &chat.tool_choice {
        None if chat.parallel_tools.is_none() => return None,
        None | Some(ToolChoice::Auto) => json!({ "type": "auto" }),
        Some(ToolChoice::Never) => return Some(json!({ "type": "none" })),
        Some(ToolChoice::Required) => json!({ "type": "any" }),
        Some(ToolChoice::Named(name)) => json!({ "type": "tool", "name": name }),
    };
    if let (Some(parallel), Some(fields)) = (chat.parallel_tools, choice.as_object_mut()) {
        fields.insert("disable_parallel_tool_use".into(), (!parallel).into());
    }
    Some(choice)
}

/// The provider refuses a stop sequence without a visible character.
fn stop_sequences<'a>(chat: &'a Chat, losses: &mut Vec<Loss>) -> Vec<&'a str> {
    let mut kept = Vec::new();
    for (at, word) in chat.stop.iter().enumerate() {
        if word.trim().is_empty() && is_foreign(chat.source) {
            let note = "a stop sequence of white space is not taken; dropped";
            losses.push(Loss::new(format!("/stop/{at}"), note));
        } else {
            kept.push(word.as_str());
        }
    }
    kept
}

/// This dialect's scale ends at 1, the other's at 2.
fn temperature(chat: &Chat, losses: &mut Vec<Loss>) -> Option<Number> {
    let asked = chat.temperature.as_ref()?;
    if is_foreign(chat.source) && asked.as_f64().is_some_and(|t| t > 1.0) {
        losses.push(Loss::new("/temperature", "the highest temperature here is 1; set to 1"));
        return Some(1.into());
    }
    Some(asked.clone())
}

fn output_config(chat: &Chat, kept: Option<Value>, losses: &mut Vec<Loss>) -> Option<Value> {
    let mut config = match kept {
        Some(Value::Object(config)) => config,
        _ => Map::new(),
    };
    match &chat.format {
        None => {}
        Some(Format::JsonObject) => {
            let note = "JSON without a schema cannot be asked for; dropped";
            losses.push(Loss::new("/response_format", note));
        }
        Some(Format::JsonSchema { schema, .. }) => {
            config.insert("format".into(), json!({ "type": "json_schema", "schema": schema }));
        }
    }
    (!config.is_empty()).then_some(Value::Object(config))
}

fn metadata(chat: &Chat, kept: Option<Value>) -> Option<Value> {
    let mut metadata = match kept {
        Some(Value::Object(metadata)) => metadata,
        _ => Map::new(),
    };
    if let Some(user) = &chat.user {
        metadata.insert("user_id".into(), user.as_str().into());
    }
    (!metadata.is_empty()).then_some(Value::Object(metadata))
}

/// The further fields of the block before, if that is what `value` holds.
pub(super) fn part_fields(value: &Value) -> Option<&Map<String, Value>> {
    value.get(PART_FIELDS)?.as_object()
}
