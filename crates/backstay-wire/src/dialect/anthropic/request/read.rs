//! Reads a request: each top-level field once, tool arguments with their bytes.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::super::block::{self, Fields, PART_FIELDS, parse, parse_whole};
use crate::chat::{Chat, Format, Part, Role, Tool, ToolChoice, Turn};
use crate::dialect::{Dialect, Malformed};

/// The name given to a schema, which has none in this dialect and needs one in others.
const SCHEMA_NAME: &str = "reply";

/// Reads a request.
pub(crate) fn read(body: &[u8]) -> Result<Chat, Malformed> {
    let fields: Fields<'_> = parse_whole(body)?;
    let mut chat = Chat { source: Some(Dialect::Anthropic), ..Chat::default() };
    let mut seen = Seen::default();
    for (name, raw) in &fields.0 {
        if raw.get() == "null" {
            continue;
        }
        read_field(&mut chat, &mut seen, name, raw)?;
    }
    for (there, name, what) in [
        (seen.model, "model", "the model to ask"),
        (seen.max_tokens, "max_tokens", "the most tokens the reply may have"),
        (seen.messages, "messages", "the conversation, a list of messages"),
    ] {
        if !there {
            return Err(Malformed::new(format!("/{name}"), format!("Field required: {what}")));
        }
    }
    if chat.turns.is_empty() {
        return Err(Malformed::new("/messages", "at least one message is required"));
    }
    Ok(chat)
}

/// The required fields that were met.
#[derive(Default)]
struct Seen {
    model: bool,
    max_tokens: bool,
    messages: bool,
}

fn read_field(
    chat: &mut Chat,
    seen: &mut Seen,
    name: &str,
    raw: &RawValue,
) -> Result<(), Malformed> {
    let path = format!("/{name}");
    let text = raw.get();
    match name {
        "model" => {
            chat.model = parse(text, &path)?;
            seen.model = true;
        }
        "max_tokens" => {
            chat.max_output_tokens = Some(parse(text, &path)?);
            seen.max_tokens = true;
        }
        "messages" => {
            chat.turns = read_messages(text)?;
            seen.messages = true;
        }
        "system" => chat.system = block::read_with_rest(raw, &path)?,
        "tools" => read_tools(chat, text)?,
        "tool_choice" => read_tool_choice(chat, text)?,
        "stop_sequences" => chat.stop = parse(text, &path)?,
        "temperature" => chat.temperature = Some(parse(text, &path)?),
        "top_p" => chat.top_p = Some(parse(text, &path)?),
        "stream" => chat.stream = parse(text, &path)?,
        "metadata" => {
            let mut metadata: Map<String, Value> = parse(text, &path)?;
            if let Some(Value::String(user)) = metadata.get("user_id") {
                chat.user = Some(user.clone());
                metadata.shift_remove("user_id");
            }
            keep(chat, name, metadata);
        }
        "output_config" => {
            let mut config: Map<String, Value> = parse(text, &path)?;
            if let Some(schema) = config.get_mut("format").and_then(take_schema) {
                chat.format = Some(schema);
                config.shift_remove("format");
            }
            keep(chat, name, config);
        }
        _ => {
            chat.extra.insert(name.to_owned(), parse(text, &path)?);
        }
    }
    Ok(())
}

/// Keeps what is left of an object, if anything is.
fn keep(chat: &mut Chat, name: &str, rest: Map<String, Value>) {
    if !rest.is_empty() {
        chat.extra.insert(name.to_owned(), Value::Object(rest));
    }
}

/// The schema of `{"type":"json_schema","schema":…}`; another form is left for the provider.
fn take_schema(format: &mut Value) -> Option<Format> {
    let plain = format.as_object().is_some_and(|f| f.keys().all(|k| k == "type" || k == "schema"));
    if !plain || format.get("type")? != "json_schema" {
        return None;
    }
    let schema = format.get_mut("schema")?.take();
    Some(Format::JsonSchema { name: SCHEMA_NAME.to_owned(), schema, strict: None })
}

#[derive(Deserialize)]
struct Message<'a> {
    role: String,
    #[serde(borrow)]
    content: &'a RawValue,
}

fn read_messages(text: &str) -> Result<Vec<Turn>, Malformed> {
    let messages: Vec<&RawValue> = parse(text, "/messages")?;
    let mut turns = Vec::with_capacity(messages.len());
    for (at, raw) in messages.into_iter().enumerate() {
        let path = format!("/messages/{at}");
        let message: Message<'_> = parse(raw.get(), &path)?;
        let parts = block::read_with_rest(message.content, &format!("{path}/content"))?;
        match message.role.as_str() {
            "user" => split_results(parts, &mut turns),
            "assistant" => turns.push(Turn { role: Role::Assistant, parts }),
            "system" => turns.push(Turn { role: Role::System, parts }),
            other => {
                let note = format!("`{other}` is no role: expected `user` or `assistant`");
                return Err(Malformed::new(format!("{path}/role"), note));
            }
        }
    }
    Ok(turns)
}

/// A user message as turns: each tool result is one, each run of other parts is one.
fn split_results(parts: Vec<Part>, turns: &mut Vec<Turn>) {
    if parts.is_empty() {
        turns.push(Turn { role: Role::User, parts });
        return;
    }
    let mut open = None;
    for part in parts {
        let of_last = matches!(&part, Part::Other(rest) if rest.get(PART_FIELDS).is_some());
        let role = match (&part, open) {
            (Part::ToolResult { .. }, _) => Role::Tool,
            (_, Some(role)) if of_last => role,
            _ => Role::User,
        };
        let is_new = matches!(part, Part::ToolResult { .. }) || open != Some(role);
        match turns.last_mut() {
            Some(turn) if !is_new => turn.parts.push(part),
            _ => turns.push(Turn { role, parts: vec![part] }),
        }
        open = Some(role);
    }
}

fn read_tools(chat: &mut Chat, text: &str) -> Result<(), Malformed> {
    let tools: Vec<Map<String, Value>> = parse(text, "/tools")?;
    let mut server_tools = Vec::new();
    for (at, mut tool) in tools.into_iter().enumerate() {
        let custom = tool.get("type").is_none_or(|kind| kind == "custom" || kind.is_null());
        if !custom {
            server_tools.push(Value::Object(tool));
            continue;
        }
        tool.shift_remove("type");
        let path = |field: &str| format!("/tools/{at}/{field}");
        let Some(Value::String(name)) = tool.shift_remove("name") else {
            return Err(Malformed::new(path("name"), "Field required: the tool's name, a string"));
        };
        let Some(parameters @ Value::Object(_)) = tool.shift_remove("input_schema") else {
            let note = "Field required: a JSON Schema of the tool's input, an object";
            return Err(Malformed::new(path("input_schema"), note));
        };
        let description = match tool.shift_remove("description") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(words)) => words,
            Some(_) => return Err(Malformed::new(path("description"), "expected a string")),
        };
        let strict = match tool.shift_remove("strict") {
            None | Some(Value::Null) => None,
            Some(Value::Bool(strict)) => Some(strict),
            Some(_) => return Err(Malformed::new(path("strict"), "expected true or false")),
        };
        chat.tools.push(Tool { name, description, parameters, strict, extra: tool });
    }
    if !server_tools.is_empty() {
        chat.extra.insert("tools".to_owned(), Value::Array(server_tools));
    }
    Ok(())
}

#[derive(Deserialize)]
struct Choice {
    r#type: String,
    name: Option<String>,
    disable_parallel_tool_use: Option<bool>,
}

fn read_tool_choice(chat: &mut Chat, text: &str) -> Result<(), Malformed> {
    let choice: Choice = parse(text, "/tool_choice")?;
    chat.tool_choice = match (choice.r#type.as_str(), choice.name) {
        ("auto", _) => Some(ToolChoice::Auto),
        ("any", _) => Some(ToolChoice::Required),
        ("none", _) => Some(ToolChoice::Never),
        ("tool", Some(name)) => Some(ToolChoice::Named(name)),
        ("tool", None) => {
            let note = "Field required: which tool must be called";
            return Err(Malformed::new("/tool_choice/name", note));
        }
        // A newer kind: left to the provider.
        _ => {
            chat.extra.insert("tool_choice".to_owned(), parse(text, "/tool_choice")?);
            return Ok(());
        }
    };
    chat.parallel_tools = choice.disable_parallel_tool_use.map(|disabled| !disabled);
    Ok(())
}
