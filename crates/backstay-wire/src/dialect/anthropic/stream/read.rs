//! Reads the events of a streamed reply.
//!
//! Tool calls are counted among themselves: their neutral index is not the block's. A call whose
//! block ends without any argument text has the arguments its block began with, mostly `{}`.
//! Blocks of server tools and redacted thinking are signs of life only: a stream in this dialect
//! passes them on as bytes, and another dialect cannot say them.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::super::block::{self, Text, ToolUseBlock, parse, parse_whole};
use super::super::error;
use super::super::reply::{explanation, finish_of, note_finish, word};
use super::super::usage::Counters;
use crate::chat::{Delta, Part, Quirk};
use crate::dialect::surroundings::Surroundings;
use crate::dialect::{Malformed, is_error_body};
use crate::frame::sse::Event;

/// Blocks that may be open at once. The protocol opens one after the other; more is an attack.
const MAX_OPEN_BLOCKS: usize = 1_024;

/// The kinds of delta whose fields are read.
const DELTAS: &[&str] = &["text_delta", "input_json_delta", "thinking_delta", "signature_delta"];

/// Reads one streamed reply.
#[derive(Debug, Default)]
pub struct Reader {
    started: bool,
    has_finished: bool,
    counters: Counters,
    /// Block index -> what it is, from its start to its stop.
    open: HashMap<u64, Open>,
    /// Tool calls begun so far.
    tools: u32,
    /// Of the last text of an open block.
    around: Surroundings,
}

/// An open block.
#[derive(Debug)]
enum Open {
    Text,
    Tool {
        index: u32,
        /// Arguments the block began with; used if no fragment comes.
        whole: String,
        fragments: bool,
    },
    /// A block without a neutral part; its deltas are signs of life.
    Other,
}

#[derive(Deserialize)]
struct Wire<'a> {
    #[serde(rename = "type", borrow)]
    kind: Option<Text<'a>>,
    index: Option<u64>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    #[serde(borrow)]
    text: Option<Text<'a>>,
    #[serde(borrow)]
    partial_json: Option<Text<'a>>,
    #[serde(borrow)]
    thinking: Option<Text<'a>>,
    #[serde(borrow)]
    signature: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Begin<'a> {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(default)]
    usage: Value,
}

#[derive(Deserialize)]
struct Closing {
    #[serde(default)]
    stop_reason: Value,
    #[serde(default)]
    stop_details: Value,
}

impl Reader {
    /// Appends what `event` says; at least one delta.
    pub(crate) fn read(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<(), Malformed> {
        // Behind a finish a text means something else.
        if !self.has_finished
            && let Some(said) = self.around.read(event)
        {
            out.push(said);
            return Ok(());
        }
        let data = event.data.trim_ascii();
        // Blank data, comments in a data field, and the other dialect's terminator are sent by
        // proxies; none says anything here.
        if data.is_empty() || data.starts_with(b":") || data == b"[DONE]" {
            out.push(Delta::Alive);
            return Ok(());
        }
        let wire: Wire<'_> = match parse_whole(data) {
            Ok(wire) => wire,
            Err(_) if event.name == "error" => {
                out.push(Delta::Error(error::RULES.read(200, data)));
                return Ok(());
            }
            Err(fault) => {
                out.push(Delta::Error(error::RULES.in_words(data).ok_or(fault)?));
                return Ok(());
            }
        };
        let kind = wire.kind.as_ref().map_or(event.name.as_str(), |kind| kind.0.as_ref());
        let is_error = kind == "error" || event.name == "error" || wire.error.is_some();
        if is_error || kind.is_empty() {
            let value: Value = serde_json::from_slice(data).unwrap_or_default();
            if kind == "error" || event.name == "error" || is_error_body(&value) {
                out.push(Delta::Error(error::RULES.in_band(&value)));
                return Ok(());
            }
        }
        let (before, has_finished) = (out.len(), self.has_finished);
        self.event(event, kind, &wire, out)?;
        if has_finished && out.iter().skip(before).any(Delta::says_something) {
            return Err(Malformed::new("/delta", "content after the stop reason"));
        }
        Ok(())
    }

    fn event(
        &mut self,
        event: &Event,
        kind: &str,
        wire: &Wire<'_>,
        out: &mut Vec<Delta>,
    ) -> Result<(), Malformed> {
        match kind {
            "message_start" => self.message_start(wire, out),
            "content_block_start" => self.block_start(wire, out),
            "content_block_delta" => self.block_delta(event, wire, out),
            "content_block_stop" => {
                self.block_stop(wire.index, out);
                Ok(())
            }
            "message_delta" => self.message_delta(wire, out),
            "message_stop" => {
                // What follows is of no message, and left out.
                self.has_finished = false;
                out.push(Delta::End);
                Ok(())
            }
            "ping" => {
                out.push(Delta::Alive);
                Ok(())
            }
            "" => Err(Malformed::new("/type", "Field required: the kind of the event")),
            other => {
                out.push(Delta::Unknown(format!("event: {}", block::short(other))));
                Ok(())
            }
        }
    }

    /// A second start is sent by some proxies; it begins nothing.
    fn message_start(&mut self, wire: &Wire<'_>, out: &mut Vec<Delta>) -> Result<(), Malformed> {
        let begin: Begin<'_> = parse(need(wire.message, "/message")?.get(), "/message")?;
        if self.started {
            out.push(Delta::Alive);
        } else {
            let (id, model) = (begin.id.unwrap_or_default(), begin.model.unwrap_or_default());
            out.push(Delta::Start { id, model });
        }
        if begin.usage.is_object() {
            self.counters.overwrite(&begin.usage);
            out.push(Delta::Usage(self.counters.neutral()));
        }
        // A turn that goes on after a server tool begins with blocks that are whole.
        let content = begin.content.filter(|_| !self.started);
        self.started = true;
        for part in content.map_or(Ok(vec![]), |raw| block::read_all(raw, "/message/content"))? {
            self.whole_part(part, out);
        }
        Ok(())
    }

    fn whole_part(&mut self, part: Part, out: &mut Vec<Delta>) {
        match part {
            Part::Text(text) => out.extend(some(text).map(Delta::Text)),
            Part::Thinking { text, signature } => {
                out.extend(some(text).map(Delta::Reasoning));
                out.extend(signature.map(Delta::Signature));
            }
            Part::ToolCall { id, name, arguments } => {
                let index = self.next_tool();
                out.push(Delta::ToolStart { index, id, name });
                out.push(Delta::ToolArguments { index, fragment: arguments });
            }
            Part::Other(whole) => {
                let kind = whole.get("type").and_then(Value::as_str).unwrap_or_default();
                out.push(other_block(kind));
            }
            Part::Image { .. } | Part::ToolResult { .. } | Part::Refusal(_) => {
                out.push(Delta::Alive);
            }
        }
    }

    fn next_tool(&mut self) -> u32 {
        let index = self.tools;
        self.tools = self.tools.saturating_add(1);
        index
    }

    fn block_start(&mut self, wire: &Wire<'_>, out: &mut Vec<Delta>) -> Result<(), Malformed> {
        self.around.forget();
        let at = wire.index.ok_or_else(|| Malformed::new("/index", "Field required"))?;
        let raw = need(wire.content_block, "/content_block")?;
        let kind = block::kind_of(raw, "/content_block")?;
        let open = match kind.as_ref() {
            "text" | "thinking" => {
                let before = out.len();
                self.whole_part(block::read(raw, "/content_block")?, out);
                if out.len() == before {
                    out.push(Delta::Alive);
                }
                Open::Text
            }
            "tool_use" => {
                let tool: ToolUseBlock<'_> = parse(raw.get(), "/content_block")?;
                let index = self.next_tool();
                out.push(Delta::ToolStart { index, id: tool.id, name: tool.name });
                let whole = tool.input.map_or("{}", RawValue::get).to_owned();
                Open::Tool { index, whole, fragments: false }
            }
            other => {
                out.push(other_block(other));
                Open::Other
            }
        };
        if let Some(Open::Tool { index, whole, fragments }) = self.open.insert(at, open) {
            out.push(Delta::Quirk(Quirk::IndexShared));
            // Its stop would have said so.
            if !fragments {
                out.push(Delta::ToolArguments { index, fragment: whole });
            }
        }
        if self.open.len() > MAX_OPEN_BLOCKS {
            return Err(Malformed::new("/index", "too many content blocks are open at once"));
        }
        Ok(())
    }

    fn block_delta(
        &mut self,
        event: &Event,
        wire: &Wire<'_>,
        out: &mut Vec<Delta>,
    ) -> Result<(), Malformed> {
        let raw = need(wire.delta, "/delta")?;
        let piece: Piece<'_> = match parse(raw.get(), "/delta") {
            Ok(piece) => piece,
            // A kind that is not known may have fields of any form.
            Err(fault) => match block::kind_of(raw, "/delta")?.as_ref() {
                known if DELTAS.contains(&known) => return Err(fault),
                other => {
                    out.push(Delta::Unknown(format!("content delta: {}", block::short(other))));
                    return Ok(());
                }
            },
        };
        let open = wire.index.and_then(|at| self.open.get_mut(&at));
        let is_other = matches!(open, Some(Open::Other));
        let delta = match piece.kind.0.as_ref() {
            "text_delta" | "thinking_delta" | "signature_delta" | "input_json_delta"
                if is_other =>
            {
                None
            }
            "text_delta" => {
                self.around.note(event, text_of(piece.text.as_ref()), Delta::Text);
                said(piece.text).map(Delta::Text)
            }
            "thinking_delta" => {
                self.around.note(event, text_of(piece.thinking.as_ref()), Delta::Reasoning);
                said(piece.thinking).map(Delta::Reasoning)
            }
            "signature_delta" => said(piece.signature).map(Delta::Signature),
            "input_json_delta" => {
                // Arguments of a call that never began belong to nothing that can be run.
                let Some(Open::Tool { index, fragments, .. }) = open else {
                    let note = "tool arguments for a block that is no open tool call";
                    return Err(Malformed::new("/index", note));
                };
                let fragment = said(piece.partial_json);
                *fragments |= fragment.is_some();
                let index = *index;
                fragment.map(|fragment| Delta::ToolArguments { index, fragment })
            }
            "citations_delta" => Some(Delta::Untold("content delta: citations_delta".into())),
            other => Some(Delta::Unknown(format!("content delta: {}", block::short(other)))),
        };
        out.push(delta.unwrap_or(Delta::Alive));
        Ok(())
    }

    fn block_stop(&mut self, index: Option<u64>, out: &mut Vec<Delta>) {
        self.around.forget();
        let open = index.and_then(|at| self.open.remove(&at));
        out.push(match open {
            Some(Open::Tool { index, whole, fragments: false }) => {
                Delta::ToolArguments { index, fragment: whole }
            }
            _ => Delta::Alive,
        });
    }

    fn message_delta(&mut self, wire: &Wire<'_>, out: &mut Vec<Delta>) -> Result<(), Malformed> {
        if let Some(raw) = wire.usage {
            let usage: Value = parse(raw.get(), "/usage")?;
            self.counters.overwrite(&usage);
            out.push(Delta::Usage(self.counters.neutral()));
        }
        let closing: Closing = match wire.delta {
            Some(raw) => parse(raw.get(), "/delta")?,
            None => Closing { stop_reason: Value::Null, stop_details: Value::Null },
        };
        let words = explanation(&closing.stop_details);
        out.extend(some(words.to_owned()).map(Delta::Refusal));
        match word(&closing.stop_reason) {
            Some(word) => {
                self.has_finished = true;
                let finish = finish_of(Some(&word));
                let mut unknown = Vec::new();
                note_finish(finish, Some(&word), &mut unknown);
                out.extend(unknown.into_iter().map(Delta::Unknown));
                out.push(Delta::Finish { finish, word: Some(word) });
            }
            None => out.push(Delta::Alive),
        }
        Ok(())
    }
}

/// A block without a neutral part, which only the provider's own bytes say.
fn other_block(kind: &str) -> Delta {
    let what = format!("content block: {}", block::short(kind));
    if block::is_known_other(kind) { Delta::Untold(what) } else { Delta::Unknown(what) }
}

fn need<'a>(found: Option<&'a RawValue>, path: &str) -> Result<&'a RawValue, Malformed> {
    found.ok_or_else(|| Malformed::new(path, "Field required"))
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

fn text_of<'a>(text: Option<&'a Text<'_>>) -> &'a str {
    text.map_or("", |text| text.0.as_ref())
}

fn said(text: Option<Text<'_>>) -> Option<String> {
    text.map(|text| match text.0 {
        Cow::Borrowed(text) => text.to_owned(),
        Cow::Owned(text) => text,
    })
    .filter(|text| !text.is_empty())
}
