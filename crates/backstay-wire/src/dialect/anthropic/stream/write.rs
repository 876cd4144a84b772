//! Writes a streamed reply from neutral deltas.
//!
//! ```text
//!  message_start                       held until something is said, so that it can carry the
//!  ( content_block_start               input tokens where they come first
//!    content_block_delta …
//!    content_block_stop ) …            one block at a time, in order
//!  message_delta                       held until the end, so that it can carry the usage
//!  message_stop                        once
//! ```
//!
//! The other dialect may mix the fragments of several tool calls. A call's block is closed when
//! something else is said and its arguments are whole; until then the rest is held.
//! A fragment that comes when its call is whole would make a lie of what was sent: the stream then
//! fails in-band and says no more.

use serde::Serialize;
use serde_json::{Value, json};

use super::super::error;
use super::super::reply::{finish_loss, stop_details, stop_reason};
use super::super::usage;
use crate::chat::{Delta, Finish, Loss, ProviderError, Usage};
use crate::dialect::whole::Json;
use crate::dialect::{ErrorOut, OpenBlock, StreamPlace};
use crate::frame::sse::write_event;

/// The most that is held for calls that wait, in bytes; beyond it the stream fails.
const MAX_HELD: usize = 16 << 20;
/// Distinct losses that are kept.
const MAX_LOSSES: usize = 64;

/// Writes one streamed reply.
#[derive(Debug)]
pub struct Writer {
    id: String,
    model: String,
    begun: bool,
    ended: bool,
    /// Ended by a failure of its own, told in the stream.
    broken: bool,
    block: Block,
    /// Blocks begun so far.
    blocks: u64,
    held: Vec<Delta>,
    held_bytes: usize,
    usage: Usage,
    finish: Option<(Finish, Option<String>)>,
    refusal: Option<String>,
    losses: Vec<Loss>,
}

/// The open block.
#[derive(Debug)]
enum Block {
    None,
    Text,
    Thinking,
    Tool { index: u32, arguments: Json },
}

/// A step inside a block, the one event that comes often.
#[derive(Serialize)]
struct PieceEvent<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    index: u64,
    delta: &'a Piece<'a>,
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum Piece<'a> {
    #[serde(rename = "text_delta")]
    Text { text: &'a str },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: &'a str },
    #[serde(rename = "signature_delta")]
    Signature { signature: &'a str },
    #[serde(rename = "input_json_delta")]
    Arguments { partial_json: &'a str },
}

impl Writer {
    /// A writer; `model` is named in the stream, or if it is empty what the reply names.
    pub(crate) fn new(model: &str) -> Self {
        Self {
            id: String::new(),
            model: model.to_owned(),
            begun: false,
            ended: false,
            broken: false,
            block: Block::None,
            blocks: 0,
            held: Vec::new(),
            held_bytes: 0,
            usage: Usage::default(),
            finish: None,
            refusal: None,
            losses: Vec::new(),
        }
    }

    /// A writer that goes on with a reply whose beginning was told as `place` says.
    pub(crate) fn going_on(place: &StreamPlace) -> Self {
        let block = match place.open {
            Some(OpenBlock::Text) => Block::Text,
            Some(OpenBlock::Thinking) => Block::Thinking,
            None => Block::None,
        };
        Self { begun: place.has_begun, block, blocks: place.blocks, ..Self::new(&place.model) }
    }

    /// Forgets what was used so far: another reply goes on.
    pub(crate) fn forget_usage(&mut self) {
        self.usage = Usage::default();
    }

    /// Appends the events that say `delta`.
    pub(crate) fn write(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        if self.ended {
            return;
        }
        if self.must_wait(delta) {
            self.hold(delta, out);
        } else {
            self.say(delta, out);
        }
        self.drain(out);
    }

    /// What could not be said so far; each kind once.
    pub(crate) fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// Whether `delta` belongs behind a tool call that is not whole yet.
    fn must_wait(&self, delta: &Delta) -> bool {
        let Block::Tool { index: open, arguments } = &self.block else { return false };
        let is_other = match delta {
            Delta::ToolStart { index, .. } | Delta::ToolArguments { index, .. } => index != open,
            Delta::Text(_) | Delta::Reasoning(_) | Delta::Signature(_) => true,
            _ => false,
        };
        is_other && !arguments.is_whole()
    }

    fn is_of_open_call(&self, delta: &Delta) -> bool {
        match (&self.block, delta) {
            (Block::Tool { index: open, .. }, Delta::ToolArguments { index, .. }) => open == index,
            _ => false,
        }
    }

    fn hold(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        self.held_bytes += 64
            + match delta {
                Delta::ToolStart { id, name, .. } => id.len() + name.len(),
                Delta::ToolArguments { fragment, .. } => fragment.len(),
                Delta::Text(text) | Delta::Reasoning(text) | Delta::Signature(text) => text.len(),
                _ => 0,
            };
        if self.held_bytes > MAX_HELD {
            self.fail("too many tool calls are mixed up to be told one after the other", out);
            return;
        }
        self.held.push(delta.clone());
    }

    fn say(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        match delta {
            // A reply that has begun keeps its name.
            Delta::Start { .. } if self.begun => {}
            Delta::Start { id, model } => {
                id.clone_into(&mut self.id);
                if self.model.is_empty() {
                    model.clone_into(&mut self.model);
                }
            }
            Delta::Text(text) => {
                if !matches!(self.block, Block::Text) {
                    self.open(Block::Text, &json!({ "type": "text", "text": "" }), out);
                }
                self.piece(&Piece::Text { text }, out);
            }
            Delta::Reasoning(text) => {
                self.open_thinking(out);
                self.piece(&Piece::Thinking { thinking: text }, out);
            }
            Delta::Signature(signature) => {
                self.open_thinking(out);
                self.piece(&Piece::Signature { signature }, out);
                // A signature ends its block: more reasoning is another one.
                self.close(out);
            }
            Delta::Refusal(words) => self.refusal.get_or_insert_default().push_str(words),
            Delta::ToolStart { index, id, name } => self.tool_start(*index, id, name, out),
            Delta::ToolArguments { index, fragment } => self.tool_piece(*index, fragment, out),
            Delta::Finish { finish, word } => {
                self.settle(out);
                self.finish = Some((*finish, word.clone()));
            }
            Delta::Usage(usage) => self.usage.overwrite(*usage),
            Delta::Error(error) => self.provider_error(error, out),
            Delta::End => self.end(out),
            Delta::Alive | Delta::Logprobs(_) | Delta::Quirk(_) => {}
            Delta::OtherChoice { .. } => self.lose("/choices/1", "only one answer can be given"),
            Delta::Untold(what) | Delta::Unknown(what) => {
                self.lose("", &format!("{what}: has no form here"));
            }
        }
    }

    fn tool_start(&mut self, index: u32, id: &str, name: &str, out: &mut Vec<u8>) {
        if matches!(self.block, Block::Tool { index: open, .. } if open == index) {
            return;
        }
        let head = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
        self.open(Block::Tool { index, arguments: Json::default() }, &head, out);
    }

    fn tool_piece(&mut self, index: u32, fragment: &str, out: &mut Vec<u8>) {
        match &mut self.block {
            Block::Tool { index: open, arguments } if *open == index && !arguments.is_whole() => {
                arguments.push(fragment);
                self.piece(&Piece::Arguments { partial_json: fragment }, out);
            }
            _ if fragment.trim().is_empty() => {}
            _ => self.fail("the provider sent more of a tool call that was whole", out),
        }
    }

    /// Says what is held and need not wait any more. A pass says all of one call, so there are as
    /// many passes as calls.
    fn drain(&mut self, out: &mut Vec<u8>) {
        let mut goes_on = !self.held.is_empty();
        while goes_on {
            goes_on = false;
            for next in std::mem::take(&mut self.held) {
                if self.ended {
                    return;
                }
                // What is said out of turn may only be more of the open call.
                let is_passed = !self.held.is_empty() && !self.is_of_open_call(&next);
                if is_passed || self.must_wait(&next) {
                    self.held.push(next);
                } else {
                    self.say(&next, out);
                    goes_on = true;
                }
            }
        }
        if self.held.is_empty() {
            self.held_bytes = 0;
        }
    }

    /// Says everything held, call after call: no more can come for any of them.
    fn settle(&mut self, out: &mut Vec<u8>) {
        while !self.held.is_empty() {
            self.close(out);
            self.drain(out);
        }
    }

    fn open_thinking(&mut self, out: &mut Vec<u8>) {
        if !matches!(self.block, Block::Thinking) {
            let head = json!({ "type": "thinking", "thinking": "", "signature": "" });
            self.open(Block::Thinking, &head, out);
        }
    }

    fn open(&mut self, block: Block, head: &Value, out: &mut Vec<u8>) {
        self.begin(out);
        self.close(out);
        self.block = block;
        self.blocks += 1;
        let event =
            json!({ "type": "content_block_start", "index": self.at(), "content_block": head });
        emit(out, "content_block_start", &event);
    }

    fn piece(&mut self, delta: &Piece<'_>, out: &mut Vec<u8>) {
        let event = PieceEvent { kind: "content_block_delta", index: self.at(), delta };
        emit(out, "content_block_delta", &event);
    }

    fn close(&mut self, out: &mut Vec<u8>) {
        if !matches!(std::mem::replace(&mut self.block, Block::None), Block::None) {
            let event = json!({ "type": "content_block_stop", "index": self.at() });
            emit(out, "content_block_stop", &event);
        }
    }

    /// The place of the block that was opened last.
    fn at(&self) -> u64 {
        self.blocks.saturating_sub(1)
    }

    fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let event = json!({
            "type": "message_start",
            "message": {
                "id": self.id,
                "type": "message",
                "role": "assistant",
                "model": self.model,
                "content": [],
                "stop_reason": null,
                "stop_sequence": null,
                "usage": usage::write(&self.usage),
            },
        });
        emit(out, "message_start", &event);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.settle(out);
        if self.ended {
            return;
        }
        self.begin(out);
        self.close(out);
        let (finish, word) = self.finish.take().unwrap_or_default();
        let (finish, word) = match &self.refusal {
            Some(_) => (Finish::Refused, None),
            None => (finish, word),
        };
        if let Some(loss) = finish_loss(finish) {
            self.lose(&loss.path, &loss.note);
        }
        if self.usage.input.is_none() || self.usage.output.is_none() {
            self.lose("/usage", "a count that is not known is written as 0");
        }
        let mut delta = json!({
            "stop_reason": stop_reason(finish, word.as_deref()),
            "stop_sequence": null,
        });
        if let (Some(words), Some(fields)) = (&self.refusal, delta.as_object_mut()) {
            fields.insert("stop_details".into(), stop_details(words));
        }
        let event =
            json!({ "type": "message_delta", "delta": delta, "usage": usage::write(&self.usage) });
        emit(out, "message_delta", &event);
        emit(out, "message_stop", &json!({ "type": "message_stop" }));
        self.ended = true;
    }

    /// Whether the writer gave up because the stream cannot be told in this dialect.
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// A provider's failure that nobody translated before; said in its own words.
    fn provider_error(&mut self, error: &ProviderError, out: &mut Vec<u8>) {
        let status = error.status.unwrap_or_else(|| error::status_of(error.class));
        self.error(status, error.class.word(), &error.message, out);
    }

    fn fail(&mut self, message: &str, out: &mut Vec<u8>) {
        self.error(502, "provider_stream_broken", message, out);
        self.broken = true;
    }

    fn error(&mut self, status: u16, code: &str, message: &str, out: &mut Vec<u8>) {
        let error = ErrorOut { status, code, message, param: None, call_id: "" };
        out.extend(super::write_error(&error));
        self.ended = true;
        self.held.clear();
    }

    fn lose(&mut self, path: &str, note: &str) {
        let is_new = !self.losses.iter().any(|loss| loss.path == path && loss.note == note);
        if is_new && self.losses.len() < MAX_LOSSES {
            self.losses.push(Loss::new(path, note));
        }
    }
}

fn emit(out: &mut Vec<u8>, name: &str, event: &impl Serialize) {
    write_event(out, name, &serde_json::to_vec(event).unwrap_or_default());
}
