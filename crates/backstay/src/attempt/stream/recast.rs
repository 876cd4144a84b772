//! Puts mended tool calls into a provider's own events and leaves every other field as it came.

use backstay_wire::frame::sse::{Decoder, Frame, Limits, write_event};
use backstay_wire::{Delta, Dialect};
use bytes::Bytes;
use serde_json::{Value, json};

use super::Piece;

/// A call as it is to be told.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    /// Its index in the stream.
    pub(crate) index: u32,
    /// The provider's id of it.
    pub(crate) id: String,
    /// The tool's name.
    pub(crate) name: String,
    /// All of its arguments, as JSON text.
    pub(crate) arguments: String,
}

/// `pieces` with `calls` in them: for Chat Completions all calls there are, for Messages those that
/// changed. `None`: a piece has a form in which there is no place for them.
pub(super) fn pieces(dialect: Dialect, pieces: Vec<Piece>, calls: &[Call]) -> Option<Vec<Piece>> {
    let mut is_first = true;
    let mut recast = Vec::with_capacity(pieces.len());
    for piece in pieces {
        if !piece.deltas.iter().any(Delta::is_call) {
            recast.push(piece);
            continue;
        }
        let raw = match dialect {
            Dialect::OpenaiChat => chunk(&piece, calls, is_first)?,
            Dialect::Anthropic => block(&piece, calls)?,
        };
        is_first = false;
        recast.push(Piece { raw, deltas: piece.deltas });
    }
    Some(recast)
}

/// A chunk with every call in the place of the first fragment, or with none. Empty: nothing is left
/// of it.
fn chunk(piece: &Piece, calls: &[Call], is_first: bool) -> Option<Bytes> {
    let (name, mut chunk) = event(&piece.raw)?;
    let has_usage = chunk.get("usage").is_some_and(|usage| !usage.is_null());
    let choice = chunk.get_mut("choices")?.get_mut(0)?;
    let has_finish = choice.get("finish_reason").is_some_and(|word| !word.is_null());
    let said = choice.get_mut("delta")?.as_object_mut()?;
    let is_old = said.remove("function_call").is_some();
    said.remove("tool_calls");
    if is_first {
        let (key, told) = if is_old { old_form(calls)? } else { new_form(calls) };
        said.insert(key.to_owned(), told);
    } else if said.values().all(Value::is_null) && !has_finish && !has_usage {
        return Some(Bytes::new());
    }
    Some(written(&name, &chunk))
}

/// The event that says a stream waits for its tools, where its provider did not. It is like the
/// events of `pieces`, which it follows. `output`: the tokens so far, where they are known.
pub(super) fn finish(dialect: Dialect, pieces: &[Piece], output: Option<u64>) -> Bytes {
    match dialect {
        Dialect::OpenaiChat => {
            let mut chunks = pieces.iter().rev().filter_map(|piece| event(&piece.raw));
            let like = chunks.find(|(_, chunk)| chunk.get("choices").is_some());
            let (name, mut chunk) = like.unwrap_or_default();
            chunk["choices"] = json!([{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]);
            if let Some(usage) = chunk.get_mut("usage") {
                *usage = Value::Null;
            }
            written(&name, &chunk)
        }
        Dialect::Anthropic => {
            let (kind, delta) = ("message_delta", json!({"stop_reason": "tool_use"}));
            let usage = json!({"output_tokens": output.unwrap_or(0)});
            written(kind, &json!({"type": kind, "delta": delta, "usage": usage}))
        }
    }
}

fn new_form(calls: &[Call]) -> (&'static str, Value) {
    let one = |call: &Call| {
        json!({"index": call.index, "id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": call.arguments}})
    };
    ("tool_calls", calls.iter().map(one).collect())
}

fn old_form(calls: &[Call]) -> Option<(&'static str, Value)> {
    let [call] = calls else { return None };
    Some(("function_call", json!({"name": call.name, "arguments": call.arguments})))
}

/// An event of a `tool_use` block: its start brings the arguments in one step, their old pieces go.
fn block(piece: &Piece, calls: &[Call]) -> Option<Bytes> {
    let (name, mut event) = event(&piece.raw)?;
    let changed = |wanted: u32| calls.iter().find(|call| call.index == wanted);
    let found = piece.deltas.iter().find_map(|delta| match delta {
        Delta::ToolStart { index, .. } | Delta::ToolArguments { index, .. } => changed(*index),
        _ => None,
    });
    let Some(call) = found else { return Some(piece.raw.clone()) };
    let kind = event.get("type").and_then(Value::as_str).unwrap_or(&name).to_owned();
    match kind.as_str() {
        "content_block_start" => {
            *event.get_mut("content_block")?.as_object_mut()?.get_mut("input")? = json!({});
            let delta = json!({"type": "input_json_delta", "partial_json": call.arguments});
            let at = event.get("index")?.clone();
            let step = json!({"type": "content_block_delta", "index": at, "delta": delta});
            let mut out = written(&kind, &event).to_vec();
            out.extend_from_slice(&written("content_block_delta", &step));
            Some(Bytes::from(out))
        }
        "content_block_delta" => Some(Bytes::new()),
        "content_block_stop" => Some(piece.raw.clone()),
        _ => None,
    }
}

/// Name and document of one event.
fn event(raw: &Bytes) -> Option<(String, Value)> {
    let mut decoder = Decoder::new(Limits::default());
    decoder.push(raw.clone());
    let frame = decoder.next_frame().ok()?;
    let Frame::Event(event) = frame.or_else(|| decoder.finish().ok()?)? else { return None };
    Some((event.name, serde_json::from_slice(&event.data).ok()?))
}

fn written(name: &str, event: &Value) -> Bytes {
    let mut out = Vec::new();
    write_event(&mut out, name, event.to_string().as_bytes());
    Bytes::from(out)
}
