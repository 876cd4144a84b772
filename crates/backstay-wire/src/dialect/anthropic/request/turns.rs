//! The conversation in the order this dialect wants.

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::block::{self, Block, Input, ToolResult, ToolUse};
use super::write::{Content, is_foreign, part_fields};
use crate::chat::{Chat, Loss, Part, Role, Turn};
use crate::dialect::Dialect;

/// Said for the user where the dialect demands a user's turn and the caller has none.
const FILLER: &str = "(the conversation goes on)";

/// One message as it is written.
#[derive(Debug, Serialize)]
pub(super) struct Message {
    role: &'static str,
    content: Content,
}

/// The messages in the making.
pub(super) struct Conversation {
    source: Option<Dialect>,
    system: Vec<Block>,
    messages: Vec<(&'static str, Vec<Block>)>,
    losses: Vec<Loss>,
}

impl Conversation {
    pub(super) fn new(source: Option<Dialect>) -> Self {
        Self { source, system: Vec::new(), messages: Vec::new(), losses: Vec::new() }
    }

    /// Takes the system text and all turns of `chat`.
    pub(super) fn read(&mut self, chat: &Chat) {
        self.system = self.blocks(&chat.system, Role::System, "/system");
        for (at, turn) in chat.turns.iter().enumerate() {
            self.turn(turn, &format!("/messages/{at}"));
        }
    }

    /// Mends what the dialect demands of the whole; gives the system blocks and the messages.
    pub(super) fn close(mut self, losses: &mut Vec<Loss>) -> (Vec<Block>, Vec<Message>) {
        match self.messages.first() {
            None if !self.system.is_empty() => {
                self.lose("/system", "there is no message: said as the user");
                let system = std::mem::take(&mut self.system);
                self.messages.push(("user", system));
            }
            Some((role, _)) if *role == "assistant" => {
                self.lose("/messages/0", "the user must begin: a filler was put before it");
                self.messages.insert(0, ("user", vec![block::text(FILLER)]));
            }
            _ => {}
        }
        if is_foreign(self.source) {
            self.trim_last();
        }
        losses.append(&mut self.losses);
        let message = |(role, blocks): (&'static str, Vec<Block>)| Message {
            role,
            content: Content::of(blocks),
        };
        (self.system, self.messages.into_iter().map(message).collect())
    }

    fn lose(&mut self, path: &str, note: &str) {
        self.losses.push(Loss::new(path, note));
    }

    /// A conversation that ends with the assistant is continued here, and must not end in space.
    fn trim_last(&mut self) {
        let path = format!("/messages/{}", self.messages.len().saturating_sub(1));
        let Some(("assistant", blocks)) = self.messages.last_mut() else { return };
        if let Some(Block::Json(last)) = blocks.last_mut()
            && let Some(Value::String(words)) = last.get_mut("text")
        {
            words.truncate(words.trim_end().len());
        }
        self.lose(&path, "a last turn of the assistant is continued, or refused by newer models");
    }

    fn turn(&mut self, turn: &Turn, path: &str) {
        let blocks = self.blocks(&turn.parts, turn.role, &format!("{path}/content"));
        if blocks.is_empty() {
            if !turn.parts.is_empty() || turn.role == Role::User {
                self.lose(path, "a turn that says nothing is not taken; dropped");
            }
            return;
        }
        let role = match turn.role {
            Role::Assistant => "assistant",
            Role::User | Role::Tool => "user",
            Role::System if self.source == Some(Dialect::Anthropic) => "system",
            Role::System => {
                self.lose(path, "an instruction in mid-conversation is said as the user");
                "user"
            }
        };
        match self.messages.last_mut() {
            Some((last, said)) if *last == role => append(said, blocks),
            _ => self.messages.push((role, {
                let mut said = Vec::new();
                append(&mut said, blocks);
                said
            })),
        }
    }

    fn blocks(&mut self, parts: &[Part], role: Role, path: &str) -> Vec<Block> {
        let mut blocks = Vec::new();
        // Whether the part before was written: its further fields follow it.
        let mut written = false;
        for (at, part) in parts.iter().enumerate() {
            let path = format!("{path}/{at}");
            let found = match part {
                Part::Other(value) => match part_fields(value) {
                    Some(fields) => {
                        let last = blocks.last_mut().filter(|_| written);
                        self.further(fields, last, &path);
                        continue;
                    }
                    None => self.other(value, &path),
                },
                part => self.block(part, role, &path),
            };
            written = found.is_some();
            blocks.extend(found);
        }
        blocks
    }

    fn block(&mut self, part: &Part, role: Role, path: &str) -> Option<Block> {
        match part {
            Part::Text(words) if words.trim().is_empty() => None,
            Part::Text(words) => Some(block::text(words)),
            Part::Image { media_type, source } if matches!(role, Role::User | Role::Tool) => {
                let image = block::image(media_type.as_deref(), source);
                if image.is_none() {
                    self.lose(path, "a picture without a media type is not taken; dropped");
                }
                image
            }
            Part::ToolCall { id, name, arguments } if role == Role::Assistant => {
                let input = match block::input(arguments) {
                    Input::Object(raw) => raw,
                    Input::Wrapped(raw) => {
                        self.lose(path, "arguments that are no JSON object stand in _raw");
                        raw
                    }
                };
                let (id, name) = (tool_id(id), name.clone());
                Some(Block::ToolUse(ToolUse {
                    kind: "tool_use",
                    id,
                    name,
                    input,
                    rest: Map::new(),
                }))
            }
            Part::ToolResult { id, parts, failed } if role != Role::Assistant => {
                Some(Block::ToolResult(ToolResult {
                    kind: "tool_result",
                    tool_use_id: tool_id(id),
                    content: self.blocks(parts, Role::Tool, &format!("{path}/content")),
                    is_error: *failed,
                    rest: Map::new(),
                }))
            }
            Part::Thinking { text, signature: Some(signature) }
                if role == Role::Assistant && !is_foreign(self.source) =>
            {
                Some(Block::Json(serde_json::json!({
                    "type": "thinking", "thinking": text, "signature": signature,
                })))
            }
            Part::Thinking { .. } => {
                self.lose(path, "reasoning is bound to the provider that wrote it; dropped");
                None
            }
            Part::Refusal(words) if role == Role::Assistant && !words.trim().is_empty() => {
                self.lose(path, "a refusal is said as plain text");
                Some(block::text(words))
            }
            Part::Refusal(_)
            | Part::Image { .. }
            | Part::ToolCall { .. }
            | Part::ToolResult { .. }
            | Part::Other(_) => {
                self.lose(path, "a part that this role cannot say; dropped");
                None
            }
        }
    }

    /// Further fields of the block before; `last` is `None` where that was not written.
    fn further(&mut self, fields: &Map<String, Value>, mut last: Option<&mut Block>, path: &str) {
        for (name, field) in fields {
            let known = !is_foreign(self.source) || name == "cache_control";
            match &mut last {
                Some(block) if known => block.set(name, field),
                _ => self.lose(&format!("{path}/{name}"), "no such field; dropped"),
            }
        }
    }

    /// A block kept whole.
    fn other(&mut self, value: &Value, path: &str) -> Option<Block> {
        if !is_foreign(self.source) {
            return Some(Block::Json(value.clone()));
        }
        if let Some(Value::Object(fields)) = value.get("message_fields") {
            for name in fields.keys() {
                self.lose(&format!("{path}/{name}"), "no such field of a message; dropped");
            }
            return None;
        }
        let kind = value.get("type").and_then(Value::as_str).unwrap_or("without a type");
        let kind = block::short(kind);
        self.lose(path, &format!("a part of kind {kind} cannot be said; dropped"));
        None
    }
}

/// Adds blocks to a message; tool results go before everything that is no result.
fn append(said: &mut Vec<Block>, blocks: Vec<Block>) {
    for block in blocks {
        if matches!(block, Block::ToolResult(_)) {
            let at = said.iter().take_while(|b| matches!(b, Block::ToolResult(_))).count();
            said.insert(at, block);
        } else {
            said.push(block);
        }
    }
}

/// The id of a tool call in the letters this dialect takes. One that has others, or none at all,
/// gets a mark made of its bytes, so that two of them stay two and a call still meets its result.
fn tool_id(id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !id.is_empty() && id.chars().all(is_plain) {
        return id.to_owned();
    }
    // FNV-1a, 64 bits: small, and the same in every process.
    let mark = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let plain: String = id.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    format!("{plain}_{mark:016x}")
}
