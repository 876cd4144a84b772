//! Anthropic Messages: the message, and its events.

use bytes::Bytes;
use serde_json::{Value, json};

use super::Tag;
use crate::ask::Ask;
use crate::said::{Call, Finish, Said};
use crate::strip::{Event, Part, Strip, number, pieces, quote};

/// The terminator.
pub(crate) const STOP: &str = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
/// The keep-alive.
pub(crate) const PING: &str = "event: ping\ndata: {\"type\":\"ping\"}\n\n";

const STOP_DETAILS: &[u8] =
    b",\"stop_details\":{\"type\":\"refusal\",\"category\":\"general_harms\",\
    \"explanation\":\"This request was blocked by the mock's usage policy.\"}";

/// The stop reason as it stands in JSON.
fn finish(finish: Finish) -> &'static [u8] {
    match finish {
        Finish::Stop => b"\"end_turn\"",
        Finish::Length => b"\"max_tokens\"",
        Finish::ToolUse => b"\"tool_use\"",
        Finish::Filter | Finish::Refusal => b"\"refusal\"",
        Finish::Unknown => b"\"flux_exhausted\"",
        Finish::Null => b"null",
    }
}

fn refused(said: &Said) -> bool {
    matches!(said.finish, Finish::Filter | Finish::Refusal)
}

/// `"usage":{…}` with `output` tokens.
fn usage(b: &mut Vec<u8>, input: u64, output: u64) {
    b.extend_from_slice(b"\"usage\":{\"input_tokens\":");
    number(b, input);
    b.extend_from_slice(
        b",\"cache_creation_input_tokens\":0,\"cache_read_input_tokens\":0,\"cache_creation\":\
        {\"ephemeral_5m_input_tokens\":0,\"ephemeral_1h_input_tokens\":0},\"output_tokens\":",
    );
    number(b, output);
    b.extend_from_slice(b",\"service_tier\":\"standard\"}");
}

/// The opening fields of a message, up to its content.
fn opening(b: &mut Vec<u8>, ask: &Ask, tag: Tag) {
    b.extend_from_slice(b"{\"model\":");
    quote(b, &ask.model);
    b.extend_from_slice(b",\"id\":\"");
    b.extend_from_slice(tag.id("msg_01").as_bytes());
    b.extend_from_slice(b"\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[");
}

pub(crate) fn body(ask: &Ask, said: &Said, tag: Tag) -> Bytes {
    let mut b = Vec::with_capacity(said.written() + 768);
    opening(&mut b, ask, tag);
    let mut comma = false;
    // A refusal has no content; an empty text still is a block.
    if said.refusal.is_none() && (said.calls.is_empty() || !said.text.is_empty()) {
        b.extend_from_slice(b"{\"type\":\"text\",\"text\":");
        quote(&mut b, &said.text);
        b.push(b'}');
        comma = true;
    }
    for (at, call) in said.calls.iter().enumerate() {
        if comma {
            b.push(b',');
        }
        comma = true;
        start_of_call(&mut b, tag, at, call);
        b.extend_from_slice(input(&call.arguments).to_string().as_bytes());
        b.push(b'}');
    }
    b.extend_from_slice(b"],\"stop_reason\":");
    b.extend_from_slice(finish(said.finish));
    b.extend_from_slice(b",\"stop_sequence\":null");
    if refused(said) {
        b.extend_from_slice(STOP_DETAILS);
    }
    b.push(b',');
    usage(&mut b, said.prompt_tokens, said.completion_tokens);
    b.push(b'}');
    Bytes::from(b)
}

/// A tool's input: arguments that are no JSON object are wrapped, since the field must be one.
fn input(arguments: &str) -> Value {
    match serde_json::from_str(arguments) {
        Ok(value @ Value::Object(_)) => value,
        Ok(_) | Err(_) => json!({"INVALID_JSON": arguments}),
    }
}

fn start_of_call(b: &mut Vec<u8>, tag: Tag, at: usize, call: &Call) {
    let id = Tag(tag.0.wrapping_add(u64::try_from(at).unwrap_or(0))).id("toolu_01");
    b.extend_from_slice(b"{\"type\":\"tool_use\",\"id\":\"");
    b.extend_from_slice(id.as_bytes());
    b.extend_from_slice(b"\",\"name\":");
    quote(b, &call.name);
    b.extend_from_slice(b",\"input\":");
}

/// Writes events with their block's index.
struct Blocks {
    strip: Strip,
    index: u64,
}

impl Blocks {
    fn open(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let index = self.index;
        let b = self.strip.buffer();
        b.extend_from_slice(
            b"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":",
        );
        number(b, index);
        b.extend_from_slice(b",\"content_block\":");
        write(b);
        b.extend_from_slice(b"}\n\n");
        self.strip.mark(Part::Open);
    }

    /// One delta; `kind` is its JSON up to the text.
    fn delta(&mut self, kind: &[u8], text: &str) {
        let index = self.index;
        let b = self.strip.buffer();
        b.extend_from_slice(
            b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":",
        );
        number(b, index);
        b.extend_from_slice(b",\"delta\":{");
        b.extend_from_slice(kind);
        quote(b, text);
        b.extend_from_slice(b"}}\n\n");
        self.strip.mark(Part::Content);
    }

    fn close(&mut self) {
        let index = self.index;
        let b = self.strip.buffer();
        b.extend_from_slice(
            b"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":",
        );
        number(b, index);
        b.extend_from_slice(b"}\n\n");
        self.strip.mark(Part::Close);
        self.index += 1;
    }
}

pub(crate) fn events(ask: &Ask, said: &Said, tag: Tag, chunks: usize) -> Vec<Event> {
    let mut strip = Strip::with_capacity(said.written() + (chunks + 8) * 140 + 1024);
    start(&mut strip, ask, said, tag);
    let mut out = Blocks { strip, index: 0 };
    if said.refusal.is_none() && (said.calls.is_empty() || !said.text.is_empty()) {
        out.open(|b| b.extend_from_slice(b"{\"type\":\"text\",\"text\":\"\"}"));
        out.strip.event(Part::Ping, PING);
        for piece in pieces(&said.text, chunks) {
            out.delta(b"\"type\":\"text_delta\",\"text\":", piece);
        }
        out.close();
    }
    for (at, call) in said.calls.iter().enumerate() {
        out.open(|b| {
            start_of_call(b, tag, at, call);
            b.extend_from_slice(b"{}}");
        });
        for piece in pieces(&call.arguments, chunks) {
            out.delta(b"\"type\":\"input_json_delta\",\"partial_json\":", piece);
        }
        out.close();
    }
    let b = out.strip.buffer();
    b.extend_from_slice(
        b"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":",
    );
    b.extend_from_slice(finish(said.finish));
    b.extend_from_slice(b",\"stop_sequence\":null");
    if refused(said) {
        b.extend_from_slice(STOP_DETAILS);
    }
    b.extend_from_slice(b"},");
    usage(b, said.prompt_tokens, said.completion_tokens);
    b.extend_from_slice(b"}\n\n");
    out.strip.mark(Part::Finish);
    out.strip.event(Part::Done, STOP);
    out.strip.cut()
}

fn start(strip: &mut Strip, ask: &Ask, said: &Said, tag: Tag) {
    let b = strip.buffer();
    b.extend_from_slice(b"event: message_start\ndata: {\"type\":\"message_start\",\"message\":");
    opening(b, ask, tag);
    b.extend_from_slice(b"],\"stop_reason\":null,\"stop_sequence\":null,");
    usage(b, said.prompt_tokens, said.completion_tokens.min(1));
    b.extend_from_slice(b"}}\n\n");
    strip.mark(Part::Open);
}
