//! Content blocks: what a turn or a reply is made of.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::chat::{ImageSource, Part};
use crate::dialect::Malformed;

/// Text of a JSON string, borrowed where it holds no escape.
#[derive(Debug, Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// Key of a [`Part::Other`]: further fields of the block before it, such as `cache_control`. The
/// other dialect keeps them the same way.
pub(crate) const PART_FIELDS: &str = "part_fields";

/// Block types that are known but have no neutral part: they become [`Part::Other`].
const KNOWN: &[&str] = &[
    "redacted_thinking",
    "document",
    "search_result",
    "server_tool_use",
    "web_search_tool_result",
    "web_fetch_tool_result",
    "code_execution_tool_result",
    "bash_code_execution_tool_result",
    "text_editor_code_execution_tool_result",
    "tool_search_tool_result",
    "tool_reference",
    "container_upload",
    "mcp_tool_use",
    "mcp_tool_result",
    "advisor_tool_result",
];

/// Whether a block of this type is a known one without a neutral part.
pub(crate) fn is_known_other(kind: &str) -> bool {
    KNOWN.contains(&kind)
}

/// A provider's word, short enough for a log: at most 100 bytes.
pub(crate) fn short(word: &str) -> &str {
    word.get(..word.floor_char_boundary(100)).unwrap_or_default()
}

#[derive(Deserialize)]
struct Typed<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
}

#[derive(Deserialize)]
struct TextBlock {
    text: String,
}

#[derive(Deserialize)]
struct ImageBlock {
    source: Source,
}

#[derive(Deserialize)]
struct Source {
    #[serde(rename = "type")]
    kind: String,
    media_type: Option<String>,
    data: Option<String>,
    url: Option<String>,
}

#[derive(Deserialize)]
struct ThinkingBlock {
    #[serde(default)]
    thinking: Option<String>,
    #[serde(default)]
    signature: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct ToolUseBlock<'a> {
    #[serde(default)]
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) name: String,
    #[serde(borrow)]
    pub(crate) input: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ToolResultBlock<'a> {
    tool_use_id: String,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    is_error: Option<bool>,
}

/// Reads a list of blocks, or a string that stands for one text block. `null` is an empty list.
pub(crate) fn read_all(raw: &RawValue, path: &str) -> Result<Vec<Part>, Malformed> {
    match raw.get().as_bytes().first() {
        Some(b'"') => Ok(vec![Part::Text(parse(raw.get(), path)?)]),
        Some(b'n') => Ok(Vec::new()),
        Some(b'[') => {
            let blocks: Vec<&RawValue> = parse(raw.get(), path)?;
            let read = |(at, block): (usize, &&RawValue)| read(block, &format!("{path}/{at}"));
            blocks.iter().enumerate().map(read).collect()
        }
        _ => Err(Malformed::new(path, "expected a string or a list of content blocks")),
    }
}

/// The `type` of a block.
pub(crate) fn kind_of<'a>(raw: &'a RawValue, path: &str) -> Result<Cow<'a, str>, Malformed> {
    parse::<Typed<'a>>(raw.get(), path).map(|typed| typed.kind.0)
}

/// Reads the blocks of a request: as [`read_all`], and what a block says beside its part follows
/// it as an `Other` part.
pub(crate) fn read_with_rest(raw: &RawValue, path: &str) -> Result<Vec<Part>, Malformed> {
    let parts = read_all(raw, path)?;
    if !raw.get().starts_with('[') {
        return Ok(parts);
    }
    let blocks: Vec<Fields<'_>> = parse(raw.get(), path)?;
    let mut kept = Vec::with_capacity(parts.len());
    for (part, block) in parts.into_iter().zip(blocks) {
        let known = fields_of(&part);
        kept.push(part);
        let mut rest = Map::new();
        for (name, raw) in block.0 {
            let is_rest = known.is_some_and(|known| !known.contains(&name.as_str()));
            if is_rest && raw.get() != "null" {
                let value = parse(raw.get(), path)?;
                rest.insert(name, value);
            }
        }
        if !rest.is_empty() {
            kept.push(Part::Other(json!({ PART_FIELDS: rest })));
        }
    }
    Ok(kept)
}

/// The fields that a part says by itself. `None`: it keeps its block whole.
fn fields_of(part: &Part) -> Option<&'static [&'static str]> {
    match part {
        Part::Text(_) => Some(&["type", "text"]),
        Part::Image { .. } => Some(&["type", "source"]),
        Part::ToolCall { .. } => Some(&["type", "id", "name", "input"]),
        Part::ToolResult { .. } => Some(&["type", "tool_use_id", "content", "is_error"]),
        Part::Thinking { .. } => Some(&["type", "thinking", "signature"]),
        Part::Refusal(_) | Part::Other(_) => None,
    }
}

/// Reads one block. A type that is not known is kept whole as [`Part::Other`].
pub(crate) fn read(raw: &RawValue, path: &str) -> Result<Part, Malformed> {
    let text = raw.get();
    match kind_of(raw, path)?.as_ref() {
        "text" => Ok(Part::Text(parse::<TextBlock>(text, path)?.text)),
        "image" => read_image(text, path),
        "thinking" => {
            let block: ThinkingBlock = parse(text, path)?;
            let signature = block.signature.filter(|signature| !signature.is_empty());
            Ok(Part::Thinking { text: block.thinking.unwrap_or_default(), signature })
        }
        "tool_use" => {
            let block: ToolUseBlock<'_> = parse(text, path)?;
            let arguments = block.input.map_or("{}", RawValue::get).to_owned();
            Ok(Part::ToolCall { id: block.id, name: block.name, arguments })
        }
        "tool_result" => {
            let block: ToolResultBlock<'_> = parse(text, path)?;
            let inner = format!("{path}/content");
            let parts = block.content.map(|content| read_with_rest(content, &inner)).transpose()?;
            Ok(Part::ToolResult {
                id: block.tool_use_id,
                parts: parts.unwrap_or_default(),
                failed: block.is_error.unwrap_or(false),
            })
        }
        _ => Ok(Part::Other(parse(text, path)?)),
    }
}

fn read_image(text: &str, path: &str) -> Result<Part, Malformed> {
    let block: ImageBlock = parse(text, path)?;
    let source = match (block.source.kind.as_str(), block.source.data, block.source.url) {
        ("base64", Some(data), _) => ImageSource::Base64(data),
        ("url", _, Some(url)) => ImageSource::Url(url),
        // A file of the provider's own store, or a source that is not known.
        _ => return Ok(Part::Other(parse(text, path)?)),
    };
    Ok(Part::Image { media_type: block.source.media_type, source })
}

/// Parses JSON text that stands at `path`.
pub(crate) fn parse<'a, T: Deserialize<'a>>(text: &'a str, path: &str) -> Result<T, Malformed> {
    serde_json::from_str(text).map_err(|error| Malformed::new(path, reason(&error)))
}

/// Parses a whole body or event.
pub(crate) fn parse_whole<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Malformed> {
    crate::json::read(bytes).map_err(|error| {
        // A position in the body helps; serde's words on its grammar quote nothing.
        let note = if error.is_data() { reason(&error) } else { format!("not JSON: {error}") };
        Malformed::new("", note)
    })
}

/// What is wrong, without the position, which counts from the inner text, and without the value
/// that was found, which may be a prompt.
fn reason(error: &serde_json::Error) -> String {
    let told = error.to_string();
    let what = told.rsplit_once(" at line ").map_or(told.as_str(), |(what, _)| what);
    match what.rsplit_once(", expected ") {
        Some((_, expected)) => format!("expected {expected}"),
        None => what.replacen("missing field", "Field required:", 1),
    }
}

/// A block as it is written. A known name among its further fields would be written twice; the
/// readers never put one there.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Block {
    Json(Value),
    ToolUse(ToolUse),
    ToolResult(ToolResult),
}

#[derive(Debug, Serialize)]
pub(crate) struct ToolUse {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: Box<RawValue>,
    /// Further fields, such as `cache_control`.
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

#[derive(Debug, Serialize)]
pub(crate) struct ToolResult {
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) tool_use_id: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) content: Vec<Block>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_error: bool,
    /// Further fields, such as `cache_control`.
    #[serde(flatten)]
    pub(crate) rest: Map<String, Value>,
}

impl Block {
    /// Sets a further field.
    pub(crate) fn set(&mut self, name: &str, value: &Value) {
        match self {
            Self::Json(Value::Object(fields)) => {
                fields.insert(name.to_owned(), value.clone());
            }
            Self::Json(_) => {}
            Self::ToolUse(block) => {
                block.rest.insert(name.to_owned(), value.clone());
            }
            Self::ToolResult(block) => {
                block.rest.insert(name.to_owned(), value.clone());
            }
        }
    }
}

/// A text block.
pub(crate) fn text(words: &str) -> Block {
    Block::Json(json!({ "type": "text", "text": words }))
}

/// An image block. Base64 without a media type is called PNG by no one: `None`.
pub(crate) fn image(media_type: Option<&str>, source: &ImageSource) -> Option<Block> {
    let source = match source {
        ImageSource::Base64(data) => {
            json!({ "type": "base64", "media_type": media_type?, "data": data })
        }
        ImageSource::Url(url) => match split_data_url(url) {
            Some((found, data)) => {
                json!({ "type": "base64", "media_type": found, "data": data })
            }
            None if url.starts_with("data:") => return None,
            None => json!({ "type": "url", "url": url }),
        },
    };
    Some(Block::Json(json!({ "type": "image", "source": source })))
}

/// `data:image/png;base64,AAAA` -> its media type and its base64 text.
fn split_data_url(url: &str) -> Option<(&str, &str)> {
    let (head, data) = url.strip_prefix("data:")?.split_once(',')?;
    let kind = head.strip_suffix(";base64")?;
    let kind = kind.split(';').next().unwrap_or(kind);
    (!kind.is_empty()).then_some((kind, data))
}

/// The arguments of a tool call as the `input` this dialect wants.
pub(crate) enum Input {
    /// A JSON object, as it was.
    Object(Box<RawValue>),
    /// Not an object; the text is kept under `_raw`.
    Wrapped(Box<RawValue>),
}

/// Turns argument text into an `input` object.
///
/// Blank text is `{}`. Text that is no JSON object, cut or broken or another value, becomes
/// `{"_raw": "<the text>"}`: the dialect demands an object, `{}` would say that there were no
/// arguments, and a tool's schema refuses the wrapped form. The caller reports it as a loss.
pub(crate) fn input(arguments: &str) -> Input {
    let trimmed = arguments.trim();
    let source = if trimmed.is_empty() { "{}" } else { trimmed };
    let raw = match RawValue::from_string(source.to_owned()) {
        Ok(raw) if source.starts_with('{') => return Input::Object(raw),
        Ok(_) | Err(_) => serde_json::value::to_raw_value(&json!({ "_raw": arguments })),
    };
    Input::Wrapped(raw.unwrap_or_default())
}

/// An object's fields in order, values unread. Of a repeated name the last one counts.
pub(crate) struct Fields<'a>(pub(crate) Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields: Vec<(String, &'de RawValue)> = Vec::new();
                while let Some((name, raw)) = map.next_entry::<String, &'de RawValue>()? {
                    fields.push((name, raw));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(Collect)
    }
}
