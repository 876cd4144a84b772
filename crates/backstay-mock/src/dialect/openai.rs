//! OpenAI Chat Completions: the completion, and its chunks.

use bytes::Bytes;

use super::Tag;
use crate::ask::{Ask, Form};
use crate::said::{Finish, Said};
use crate::strip::{Event, Part, Strip, number, pieces, quote};

/// `created` is fixed (2026-11-29), so that the same seed gives the same bytes.
const CREATED: &[u8] = b"1795953600";
/// The terminator.
pub(crate) const DONE: &str = "data: [DONE]\n\n";
/// A comment, which clients must skip.
pub(crate) const COMMENT: &str = ": keep-alive\n\n";

/// The finish value as it stands in JSON.
fn finish(finish: Finish) -> &'static [u8] {
    match finish {
        Finish::Stop | Finish::Refusal => b"\"stop\"",
        Finish::Length => b"\"length\"",
        Finish::ToolUse => b"\"tool_calls\"",
        Finish::Filter => b"\"content_filter\"",
        Finish::Unknown => b"\"flux_exhausted\"",
        Finish::Null => b"null",
    }
}

pub(crate) fn body(ask: &Ask, said: &Said, tag: Tag) -> Bytes {
    let mut b = Vec::with_capacity(said.written() + 768);
    b.extend_from_slice(b"{\"id\":\"");
    b.extend_from_slice(tag.id("chatcmpl-").as_bytes());
    b.extend_from_slice(b"\",\"object\":\"chat.completion\",\"created\":");
    b.extend_from_slice(CREATED);
    b.extend_from_slice(b",\"model\":");
    quote(&mut b, &ask.model);
    b.extend_from_slice(
        b",\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":",
    );
    if said.refusal.is_some() || (!said.calls.is_empty() && said.text.is_empty()) {
        b.extend_from_slice(b"null");
    } else {
        quote(&mut b, &said.text);
    }
    b.extend_from_slice(b",\"refusal\":");
    match &said.refusal {
        Some(refusal) => quote(&mut b, refusal),
        None => b.extend_from_slice(b"null"),
    }
    if !said.calls.is_empty() {
        b.extend_from_slice(b",\"tool_calls\":[");
        for (at, call) in said.calls.iter().enumerate() {
            if at > 0 {
                b.push(b',');
            }
            b.extend_from_slice(b"{\"id\":\"");
            b.extend_from_slice(call_id(tag, at).as_bytes());
            b.extend_from_slice(b"\",\"type\":\"function\",\"function\":{\"name\":");
            quote(&mut b, &call.name);
            b.extend_from_slice(b",\"arguments\":");
            quote(&mut b, &call.arguments);
            b.extend_from_slice(b"}}");
        }
        b.push(b']');
    }
    b.extend_from_slice(b",\"annotations\":[]},\"logprobs\":null,\"finish_reason\":");
    b.extend_from_slice(finish(said.finish));
    b.extend_from_slice(b"}],\"usage\":");
    usage(&mut b, said);
    b.extend_from_slice(b",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_mock\"}");
    Bytes::from(b)
}

fn call_id(tag: Tag, at: usize) -> String {
    Tag(tag.0.wrapping_add(u64::try_from(at).unwrap_or(0))).id("call_")
}

fn usage(b: &mut Vec<u8>, said: &Said) {
    b.extend_from_slice(b"{\"prompt_tokens\":");
    number(b, said.prompt_tokens);
    b.extend_from_slice(b",\"completion_tokens\":");
    number(b, said.completion_tokens);
    b.extend_from_slice(b",\"total_tokens\":");
    number(b, said.prompt_tokens.saturating_add(said.completion_tokens));
    b.extend_from_slice(
        b",\"prompt_tokens_details\":{\"cached_tokens\":0,\"audio_tokens\":0},\
        \"completion_tokens_details\":{\"reasoning_tokens\":0,\"audio_tokens\":0,\
        \"accepted_prediction_tokens\":0,\"rejected_prediction_tokens\":0}}",
    );
}

/// Writes chunks that share everything but their delta and finish.
struct Chunks {
    strip: Strip,
    head: Vec<u8>,
    tail: &'static [u8],
}

impl Chunks {
    fn new(ask: &Ask, tag: Tag, room: usize) -> Self {
        let mut head = Vec::with_capacity(256);
        head.extend_from_slice(b"data: {\"id\":\"");
        head.extend_from_slice(tag.id("chatcmpl-").as_bytes());
        head.extend_from_slice(b"\",\"object\":\"chat.completion.chunk\",\"created\":");
        head.extend_from_slice(CREATED);
        head.extend_from_slice(b",\"model\":");
        quote(&mut head, &ask.model);
        head.extend_from_slice(
            b",\"service_tier\":\"default\",\"system_fingerprint\":\"fp_mock\",\"choices\":[",
        );
        // With usage asked for, every chunk but the last says `usage: null`.
        let tail: &[u8] = match ask.form {
            Form::Stream { usage: true } => b"],\"usage\":null}\n\n",
            Form::Stream { usage: false } | Form::Whole => b"]}\n\n",
        };
        Self { strip: Strip::with_capacity(room), head, tail }
    }

    /// One chunk; `write` writes the fields of its delta.
    fn chunk(&mut self, part: Part, end: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        let b = self.strip.buffer();
        b.extend_from_slice(&self.head);
        b.extend_from_slice(b"{\"index\":0,\"delta\":{");
        write(b);
        b.extend_from_slice(b"},\"logprobs\":null,\"finish_reason\":");
        b.extend_from_slice(end);
        b.push(b'}');
        b.extend_from_slice(self.tail);
        self.strip.mark(part);
    }

    fn text(&mut self, key: &[u8], text: &str) {
        self.chunk(Part::Content, b"null", |b| {
            b.extend_from_slice(key);
            quote(b, text);
        });
    }
}

pub(crate) fn events(ask: &Ask, said: &Said, tag: Tag, chunks: usize) -> Vec<Event> {
    let mut out = Chunks::new(ask, tag, said.written() + (chunks + 6) * 290);
    out.chunk(Part::Open, b"null", |b| {
        b.extend_from_slice(b"\"role\":\"assistant\",\"content\":\"\",\"refusal\":null");
    });
    if let Some(refusal) = &said.refusal {
        for piece in pieces(refusal, chunks) {
            out.text(b"\"refusal\":", piece);
        }
    } else {
        for piece in pieces(&said.text, chunks) {
            out.text(b"\"content\":", piece);
        }
    }
    for (at, call) in said.calls.iter().enumerate() {
        let place = at.to_string();
        let id = call_id(tag, at);
        out.chunk(Part::Open, b"null", |b| {
            b.extend_from_slice(b"\"tool_calls\":[{\"index\":");
            b.extend_from_slice(place.as_bytes());
            b.extend_from_slice(b",\"id\":\"");
            b.extend_from_slice(id.as_bytes());
            b.extend_from_slice(b"\",\"type\":\"function\",\"function\":{\"name\":");
            quote(b, &call.name);
            b.extend_from_slice(b",\"arguments\":\"\"}}]");
        });
        for piece in pieces(&call.arguments, chunks) {
            out.chunk(Part::Content, b"null", |b| {
                b.extend_from_slice(b"\"tool_calls\":[{\"index\":");
                b.extend_from_slice(place.as_bytes());
                b.extend_from_slice(b",\"function\":{\"arguments\":");
                quote(b, piece);
                b.extend_from_slice(b"}}]");
            });
        }
    }
    if said.finish != Finish::Null {
        out.chunk(Part::Finish, finish(said.finish), |_| {});
    }
    if ask.form == (Form::Stream { usage: true }) {
        let b = out.strip.buffer();
        b.extend_from_slice(&out.head);
        b.extend_from_slice(b"],\"usage\":");
        usage(b, said);
        b.extend_from_slice(b"}\n\n");
        out.strip.mark(Part::Usage);
    }
    out.strip.event(Part::Done, DONE);
    out.strip.cut()
}
