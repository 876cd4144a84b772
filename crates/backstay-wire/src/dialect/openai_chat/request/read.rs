//! Reads a request into the neutral form.

use serde_json::{Map, Value, json};

use super::{MESSAGE_FIELDS, PART_FIELDS};
use crate::chat::{Chat, Format, ImageSource, Part, Role, Tool, ToolChoice, Turn};
use crate::dialect::openai_chat::fields::{Fields, missing, wrong};
use crate::dialect::openai_chat::wire::bounded;
use crate::dialect::{Dialect, Malformed};
use crate::scan::{MAX_DEPTH, scan};

/// Reads a request body.
pub(crate) fn read(body: &[u8]) -> Result<Chat, Malformed> {
    let value: Value = serde_json::from_slice(body).map_err(|error| broken(body, &error))?;
    let mut fields = Fields::of(value, "")?;
    let mut chat = Chat {
        source: Some(Dialect::OpenaiChat),
        model: fields.need_text("model")?,
        // Where both stand, the new name counts.
        max_output_tokens: fields.unsigned("max_completion_tokens")?,
        temperature: fields.number("temperature")?,
        top_p: fields.number("top_p")?,
        stop: stop(&mut fields)?,
        stream: fields.boolean("stream")?.unwrap_or(false),
        parallel_tools: fields.boolean("parallel_tool_calls")?,
        user: fields.text("user")?,
        ..Chat::default()
    };
    let old_cap = fields.unsigned("max_tokens")?;
    chat.max_output_tokens = chat.max_output_tokens.or(old_cap);
    let messages = fields.list("messages")?.ok_or_else(|| missing("/messages", "an array"))?;
    for (index, message) in messages.into_iter().enumerate() {
        read_message(&mut chat, Fields::of(message, format!("/messages/{index}"))?)?;
    }
    read_stream_options(&mut chat, &mut fields)?;
    read_format(&mut chat, &mut fields)?;
    read_tools(&mut chat, &mut fields)?;
    read_tool_choice(&mut chat, &mut fields)?;
    for (key, value) in fields.rest() {
        chat.extra.insert(key, value);
    }
    Ok(chat)
}

/// The scanner says in words what `serde_json` found wrong.
fn broken(body: &[u8], error: &serde_json::Error) -> Malformed {
    let note = scan(body, MAX_DEPTH).err().map_or_else(
        || format!("the request body is not valid JSON: {error}"),
        |fault| fault.to_string(),
    );
    Malformed::new("", note)
}

fn stop(fields: &mut Fields) -> Result<Vec<String>, Malformed> {
    match fields.any("stop") {
        None => Ok(vec![]),
        Some(Value::String(word)) => Ok(vec![word]),
        Some(Value::Array(words)) => {
            let text = |(index, word): (usize, Value)| match word {
                Value::String(word) => Ok(word),
                other => Err(wrong(format!("/stop/{index}"), "a string", &other)),
            };
            words.into_iter().enumerate().map(text).collect()
        }
        Some(other) => Err(wrong("/stop", "a string or an array of strings", &other)),
    }
}

// --- messages ---

fn read_message(chat: &mut Chat, mut message: Fields) -> Result<(), Malformed> {
    let role = message.need_text("role")?;
    match role.as_str() {
        "system" | "developer" if chat.turns.is_empty() => {
            let parts = content(&mut message)?;
            chat.system.extend(parts);
            push_rest(&mut chat.system, message.rest(), MESSAGE_FIELDS);
            return Ok(());
        }
        "system" | "developer" => chat.turns.push(plain_turn(Role::System, message)?),
        "user" => chat.turns.push(plain_turn(Role::User, message)?),
        "assistant" => chat.turns.push(assistant_turn(message)?),
        "tool" => chat.turns.push(tool_turn(message)?),
        // Deprecated since 2023 and without an id: kept whole for the same dialect.
        "function" => {
            message.restore("role", Value::from(role));
            let whole = Part::Other(Value::Object(message.rest()));
            chat.turns.push(Turn { role: Role::Tool, parts: vec![whole] });
        }
        _ => {
            let roles = "one of system, developer, user, assistant, tool";
            let note = format!("expected {roles}, found \"{}\"", bounded(&role));
            return Err(Malformed::new(message.path("role"), note));
        }
    }
    Ok(())
}

fn plain_turn(role: Role, mut message: Fields) -> Result<Turn, Malformed> {
    let mut parts = content(&mut message)?;
    push_rest(&mut parts, message.rest(), MESSAGE_FIELDS);
    Ok(Turn { role, parts })
}

fn assistant_turn(mut message: Fields) -> Result<Turn, Malformed> {
    let mut parts = vec![];
    if let Some(text) = message.text("reasoning_content")?.filter(|text| !text.is_empty()) {
        parts.push(Part::Thinking { text, signature: None });
    }
    parts.extend(content(&mut message)?);
    if let Some(words) = message.text("refusal")?.filter(|words| !words.is_empty()) {
        parts.push(Part::Refusal(words));
    }
    let path = message.path("tool_calls");
    for (index, call) in message.list("tool_calls")?.unwrap_or_default().into_iter().enumerate() {
        tool_call(&mut parts, call, format!("{path}/{index}"))?;
    }
    push_rest(&mut parts, message.rest(), MESSAGE_FIELDS);
    Ok(Turn { role: Role::Assistant, parts })
}

fn tool_call(parts: &mut Vec<Part>, call: Value, path: String) -> Result<(), Malformed> {
    let mut fields = Fields::of(call, path)?;
    let is_function = fields.peek("type").is_none_or(|kind| kind == "function" || kind.is_null());
    if !is_function {
        parts.push(Part::Other(Value::Object(fields.rest())));
        return Ok(());
    }
    fields.any("type");
    let id = fields.text("id")?.unwrap_or_default();
    let path = fields.path("function");
    let mut function = fields.object("function")?.ok_or_else(|| missing(path, "an object"))?;
    let name = function.need_text("name")?;
    // Some clients send an object; as JSON text it means the same.
    let arguments = match function.any("arguments") {
        None => String::new(),
        Some(Value::String(text)) => text,
        Some(other) => other.to_string(),
    };
    parts.push(Part::ToolCall { id, name, arguments });
    let mut rest = fields.rest();
    insert_rest(&mut rest, "function", function.rest());
    push_rest(parts, rest, PART_FIELDS);
    Ok(())
}

fn tool_turn(mut message: Fields) -> Result<Turn, Malformed> {
    let id = message.need_text("tool_call_id")?;
    let parts = content(&mut message)?;
    let mut parts = vec![Part::ToolResult { id, parts, failed: false }];
    push_rest(&mut parts, message.rest(), MESSAGE_FIELDS);
    Ok(Turn { role: Role::Tool, parts })
}

/// A message's content: nothing, a text, or parts.
fn content(message: &mut Fields) -> Result<Vec<Part>, Malformed> {
    let path = message.path("content");
    let mut parts = vec![];
    match message.any("content") {
        None => {}
        Some(Value::String(text)) if text.is_empty() => {}
        Some(Value::String(text)) => parts.push(Part::Text(text)),
        Some(Value::Array(items)) => {
            for (index, item) in items.into_iter().enumerate() {
                content_part(&mut parts, item, format!("{path}/{index}"))?;
            }
        }
        Some(other) => return Err(wrong(path, "a string or an array of parts", &other)),
    }
    Ok(parts)
}

fn content_part(parts: &mut Vec<Part>, item: Value, path: String) -> Result<(), Malformed> {
    // Some servers take plain strings among the parts.
    if let Value::String(text) = item {
        parts.push(Part::Text(text));
        return Ok(());
    }
    let mut fields = Fields::of(item, path)?;
    let kind = fields.need_text("type")?;
    match kind.as_str() {
        "text" => parts.push(Part::Text(fields.need_text("text")?)),
        "refusal" => parts.push(Part::Refusal(fields.need_text("refusal")?)),
        "image_url" => {
            let path = fields.path("image_url");
            let mut image =
                fields.object("image_url")?.ok_or_else(|| missing(path, "an object"))?;
            parts.push(picture(image.need_text("url")?));
            let mut rest = fields.rest();
            insert_rest(&mut rest, "image_url", image.rest());
            push_rest(parts, rest, PART_FIELDS);
            return Ok(());
        }
        _ => {
            fields.restore("type", Value::from(kind));
            parts.push(Part::Other(Value::Object(fields.rest())));
            return Ok(());
        }
    }
    push_rest(parts, fields.rest(), PART_FIELDS);
    Ok(())
}

/// A picture's address, or its bytes if the address is a plain base64 data URL.
fn picture(url: String) -> Part {
    let data = url.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
    match data {
        Some((media_type, bytes)) if !media_type.contains(';') => Part::Image {
            media_type: (!media_type.is_empty()).then(|| media_type.to_owned()),
            source: ImageSource::Base64(bytes.to_owned()),
        },
        _ => Part::Image { media_type: None, source: ImageSource::Url(url) },
    }
}

/// Keeps the fields that nobody took, nulls excepted.
fn push_rest(parts: &mut Vec<Part>, mut rest: Map<String, Value>, key: &str) {
    rest.retain(|_, value| !value.is_null());
    if !rest.is_empty() {
        parts.push(Part::Other(json!({ key: rest })));
    }
}

fn insert_rest(into: &mut Map<String, Value>, key: &str, rest: Map<String, Value>) {
    if !rest.is_empty() {
        into.insert(key.to_owned(), Value::Object(rest));
    }
}

// --- options ---

fn read_stream_options(chat: &mut Chat, fields: &mut Fields) -> Result<(), Malformed> {
    let Some(mut options) = fields.object("stream_options")? else { return Ok(()) };
    chat.include_usage = options.boolean("include_usage")?.unwrap_or(false);
    insert_rest(&mut chat.extra, "stream_options", options.rest());
    Ok(())
}

fn read_format(chat: &mut Chat, fields: &mut Fields) -> Result<(), Malformed> {
    let Some(mut format) = fields.object("response_format")? else { return Ok(()) };
    let kind = format.need_text("type")?;
    match kind.as_str() {
        "text" => {}
        "json_object" => chat.format = Some(Format::JsonObject),
        "json_schema" if format.peek("json_schema").is_some_and(|s| !s.is_null()) => {
            if let Some(mut named) = format.object("json_schema")? {
                chat.format = Some(Format::JsonSchema {
                    name: named.text("name")?.unwrap_or_default(),
                    schema: named.any("schema").unwrap_or_else(|| json!({})),
                    strict: named.boolean("strict")?,
                });
                let named_rest = named.rest();
                let mut rest = format.rest();
                insert_rest(&mut rest, "json_schema", named_rest);
                insert_rest(&mut chat.extra, "response_format", rest);
            }
            return Ok(());
        }
        // A server's own kind, such as a grammar: kept whole.
        _ => format.restore("type", Value::from(kind)),
    }
    insert_rest(&mut chat.extra, "response_format", format.rest());
    Ok(())
}

fn read_tools(chat: &mut Chat, fields: &mut Fields) -> Result<(), Malformed> {
    let mut own_kinds = vec![];
    for (index, tool) in fields.list("tools")?.unwrap_or_default().into_iter().enumerate() {
        let mut tool = Fields::of(tool, format!("/tools/{index}"))?;
        if tool.peek("type").is_some_and(|kind| kind != "function") {
            own_kinds.push(Value::Object(tool.rest()));
            continue;
        }
        tool.any("type");
        let path = tool.path("function");
        let mut function = tool.object("function")?.ok_or_else(|| missing(path, "an object"))?;
        let name = function.need_text("name")?;
        let description = function.text("description")?.unwrap_or_default();
        let strict = function.boolean("strict")?;
        // Left out, it means a function without parameters.
        let no_parameters = || json!({"type": "object", "properties": {}});
        let parameters = function.any("parameters").unwrap_or_else(no_parameters);
        let mut extra = tool.rest();
        insert_rest(&mut extra, "function", function.rest());
        chat.tools.push(Tool { name, description, parameters, strict, extra });
    }
    if !own_kinds.is_empty() {
        chat.extra.insert("tools".to_owned(), Value::Array(own_kinds));
    }
    Ok(())
}

fn read_tool_choice(chat: &mut Chat, fields: &mut Fields) -> Result<(), Malformed> {
    let Some(choice) = fields.any("tool_choice") else { return Ok(()) };
    chat.tool_choice = match &choice {
        Value::String(word) => match word.as_str() {
            "auto" => Some(ToolChoice::Auto),
            "none" => Some(ToolChoice::Never),
            "required" => Some(ToolChoice::Required),
            _ => None,
        },
        Value::Object(map) if map.get("type").is_some_and(|kind| kind == "function") => {
            let name = choice.pointer("/function/name").and_then(Value::as_str);
            let path = "/tool_choice/function/name";
            Some(ToolChoice::Named(name.ok_or_else(|| missing(path, "a string"))?.to_owned()))
        }
        Value::Object(_) => None,
        other => return Err(wrong("/tool_choice", "a string or an object", other)),
    };
    // `allowed_tools`, `custom`, a server's own word: kept as it is.
    if chat.tool_choice.is_none() {
        chat.extra.insert("tool_choice".to_owned(), choice);
    }
    Ok(())
}
