//! Tells the caller which edits were made: counted for a header, one by one in the body.

use backstay_wire::Dialect;
use backstay_wire::frame::sse::{Decoder, Event, Frame, Limits, write_event};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Body, Call};
use crate::policy::Report;
use crate::validate::Edit;

/// The header by which a caller asks for the edits in the body.
const WISH: &str = "x-backstay-edits";

/// The most edits told in a body.
const MAX_TOLD: usize = 100;

impl Call {
    /// Whether the edits are told in the body.
    pub(crate) fn wants_report(&self) -> bool {
        let always = self.contract.route.mending.report == Report::Always;
        let asks = |wish: &http::HeaderValue| wish == "1" || wish == "true";
        always || self.contract.ask.headers.get(WISH).is_some_and(asks)
    }

    /// The body with the edits in it, where they are wanted: as `backstay.edits`, which is a list,
    /// empty when nothing was changed. Where there are several `choices`, each edit names its own.
    /// A stream tells them in the event that names the finish, of several choices the last one's:
    /// an event of its own would surprise clients that expect a choice in each.
    pub(super) fn with_report(&self, body: Body, choices: usize) -> Body {
        if !self.wants_report() {
            return body;
        }
        match body {
            Body::Whole(bytes) => {
                Body::Whole(extended(&bytes, &self.told_edits(choices)).unwrap_or(bytes))
            }
            Body::Told(bytes) => Body::Told(self.report_in(&bytes, choices).unwrap_or(bytes)),
            Body::Live(live) => Body::Live(live),
        }
    }

    /// `events`, told to the caller, with the edits in the last one that names a finish. `None`:
    /// none does.
    pub(crate) fn report_in(&self, events: &Bytes, choices: usize) -> Option<Bytes> {
        in_stream(self.contract.ask.dialect, events, &self.told_edits(choices))
    }

    fn told_edits(&self, choices: usize) -> Value {
        json!({ "edits": told(&self.edits, choices) })
    }
}

/// `events` with `backstay` as the last member of the last one that names a finish.
fn in_stream(dialect: Dialect, events: &Bytes, report: &Value) -> Option<Bytes> {
    let mut decoder = Decoder::new(Limits::default());
    decoder.push(events.clone());
    let (mut at, mut place) = (0, None);
    while let Some(frame) = decoder.next_frame().ok()? {
        let span = at..at + frame.raw().len();
        at = span.end;
        match frame {
            Frame::Event(event) if names_finish(dialect, &event) => place = Some((span, event)),
            Frame::Event(_) | Frame::Alive(_) | Frame::Cut(_) => {}
        }
    }
    let (span, event) = place?;
    let mut told = Vec::with_capacity(events.len() + 256);
    told.extend_from_slice(events.get(..span.start)?);
    write_event(&mut told, &event.name, &extended(&event.data, report)?);
    told.extend_from_slice(events.get(span.end..)?);
    Some(Bytes::from(told))
}

/// Whether `event` says why the model stopped.
fn names_finish(dialect: Dialect, event: &Event) -> bool {
    #[derive(Deserialize)]
    struct Chunk {
        choices: Vec<Choice>,
    }
    #[derive(Deserialize)]
    struct Choice {
        finish_reason: Option<serde::de::IgnoredAny>,
    }
    #[derive(Deserialize)]
    struct Step {
        r#type: String,
    }
    let has = |word: &[u8]| memchr::memmem::find(&event.data, word).is_some();
    match dialect {
        Dialect::OpenaiChat => {
            has(b"\"finish_reason\"")
                && serde_json::from_slice::<Chunk>(&event.data).is_ok_and(|chunk| {
                    chunk.choices.iter().any(|choice| choice.finish_reason.is_some())
                })
        }
        Dialect::Anthropic => {
            has(b"\"message_delta\"")
                && serde_json::from_slice::<Step>(&event.data)
                    .is_ok_and(|step| step.r#type == "message_delta")
        }
    }
}

/// `body`, a JSON object, with `backstay` as its last member. `None`: it is no object.
fn extended(body: &[u8], report: &Value) -> Option<Bytes> {
    let trimmed = body.trim_ascii();
    let inside = trimmed.strip_suffix(b"}")?.trim_ascii_end();
    let comma = if inside == b"{" { "" } else { "," };
    let mut told = Vec::with_capacity(body.len() + 64);
    told.extend_from_slice(inside);
    told.extend_from_slice(comma.as_bytes());
    told.extend_from_slice(format!("\"backstay\":{report}}}").as_bytes());
    trimmed.starts_with(b"{").then(|| Bytes::from(told))
}

fn told(edits: &[Edit], choices: usize) -> Value {
    let one = |edit: &Edit| {
        let mut told = Map::new();
        let mut put = |key: &str, value: Value| told.insert(key.to_owned(), value);
        put("kind", edit.kind.name().into());
        put("class", edit.kind.class().into());
        put("path", edit.path.as_str().into());
        if choices > 1 {
            put("choice", edit.choice.into());
        }
        if let Some(tool) = &edit.tool {
            put("tool", tool.as_str().into());
        }
        if let Some(place) = &edit.place {
            put("span", json!([place.span.start, place.span.end]));
            put("line", place.line.into());
            put("column", place.column.into());
        }
        put("before", edit.before.as_str().into());
        put("after", edit.after.as_str().into());
        Value::Object(told)
    };
    edits.iter().take(MAX_TOLD).map(one).collect()
}

/// How many edits of each kind there are, in the order of their first.
pub(super) fn tally(edits: &[Edit]) -> Vec<(&'static str, u32)> {
    let mut tally: Vec<(&'static str, u32)> = Vec::new();
    for edit in edits {
        let name = edit.kind.name();
        match tally.iter_mut().find(|(kind, _)| *kind == name) {
            Some((_, count)) => *count += 1,
            None => tally.push((name, 1)),
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use backstay_wire::Dialect::{Anthropic, OpenaiChat};
    use bytes::Bytes;
    use serde_json::json;

    use super::{extended, in_stream};

    #[test]
    fn the_report_is_the_last_member_and_nothing_else_changes() {
        let report = json!({"edits": []});
        for (body, told) in [
            ("{\"a\": 1.10 } \n", Some("{\"a\": 1.10,\"backstay\":{\"edits\":[]}}")),
            ("{ }", Some("{\"backstay\":{\"edits\":[]}}")),
            ("[1]", None),
            ("", None),
        ] {
            let made = extended(body.as_bytes(), &report);
            assert_eq!(made.as_deref(), told.map(str::as_bytes), "{body}");
        }
    }

    #[test]
    fn a_stream_tells_them_where_its_last_finish_is_and_keeps_every_other_byte() {
        let report = json!({"edits": []});
        let before = ": odd\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\\\"finish_reason\\\":1\"},\"finish_reason\":null}]}\n\n";
        let first = "data: {\"choices\":[{\"index\":0,\"finish_reason\":\"stop\"}]}\n\n";
        let last = "data: {\"choices\":[{\"index\":1,\"finish_reason\":\"stop\"}]";
        let after = "data: {\"choices\":[],\"usage\":{}}\r\n\r\ndata: [DONE]\n\n";
        let told = |dialect, events: String| in_stream(dialect, &Bytes::from(events), &report);
        assert_eq!(
            told(OpenaiChat, format!("{before}{first}{last}, \"n\": 1.10 }}\n\n{after}")).unwrap(),
            format!(
                "{before}{first}{last}, \"n\": 1.10,\"backstay\":{{\"edits\":[]}}}}\n\n{after}"
            )
        );
        let step = "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}";
        let stop = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
        assert_eq!(
            told(Anthropic, format!("{step}}}\n\n{stop}")).unwrap(),
            format!("{step},\"backstay\":{{\"edits\":[]}}}}\n\n{stop}")
        );
        assert_eq!(told(OpenaiChat, format!("{before}{after}")), None);
        assert_eq!(told(Anthropic, stop.to_owned()), None);
        assert_eq!(told(OpenaiChat, String::new()), None);
    }
}
