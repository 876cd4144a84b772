//! Where a stream stands that a caller got in the provider's own bytes: what a writer has to know to go
//! on with the same message.

use std::borrow::Cow;

use serde::Deserialize;

use super::Dialect;
use crate::chat::Delta;
use crate::frame::sse::{Decoder, Event, Frame, Limits};

/// What was said of a message beside its content.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamPlace {
    /// The message's id.
    pub id: String,
    /// The model's name.
    pub model: String,
    /// When it began, in seconds since the Unix epoch; 0 where the dialect does not say.
    pub created: u64,
    /// Blocks begun; 0 in a dialect without blocks.
    pub blocks: u64,
    /// The block that is open.
    pub open: Option<OpenBlock>,
    /// Whether the message was named. If not, the next reply's name is its name.
    pub has_begun: bool,
}

/// A block that more can be written into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenBlock {
    /// Of the answer's text.
    Text,
    /// Of the model's reasoning.
    Thinking,
}

#[derive(Deserialize)]
struct Chunk<'a> {
    #[serde(borrow, default)]
    id: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    model: Option<Cow<'a, str>>,
    #[serde(default)]
    created: Option<serde_json::Number>,
}

#[derive(Deserialize)]
struct Step<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Cow<'a, str>>,
    #[serde(default)]
    index: Option<u64>,
    #[serde(borrow, default)]
    message: Option<Chunk<'a>>,
    #[serde(borrow, default)]
    content_block: Option<Kind<'a>>,
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Cow<'a, str>>,
}

impl StreamPlace {
    /// Takes note of an event that the caller got as these bytes, which mean `deltas`. An event that is
    /// not understood changes nothing.
    pub fn pass(&mut self, dialect: Dialect, raw: &[u8], deltas: &[Delta]) {
        let is_news = match dialect {
            Dialect::OpenaiChat => deltas.iter().any(|delta| matches!(delta, Delta::Start { .. })),
            // Its blocks begin and end in events without content.
            Dialect::Anthropic => !deltas.iter().any(Delta::is_content),
        };
        if !is_news {
            return;
        }
        let Some(event) = event(raw) else { return };
        match dialect {
            Dialect::OpenaiChat => self.chunk(serde_json::from_slice(&event.data).ok()),
            Dialect::Anthropic => self.step(serde_json::from_slice(&event.data).ok()),
        }
    }

    fn chunk(&mut self, chunk: Option<Chunk<'_>>) {
        let Some(chunk) = chunk else { return };
        self.has_begun = true;
        self.id = chunk.id.unwrap_or_default().into_owned();
        self.model = chunk.model.unwrap_or_default().into_owned();
        self.created = chunk.created.and_then(|created| created.as_u64()).unwrap_or_default();
    }

    fn step(&mut self, step: Option<Step<'_>>) {
        let Some(step) = step else { return };
        match step.kind.as_deref() {
            Some("message_start") if !self.has_begun => self.chunk(step.message),
            Some("content_block_start") => {
                let next = step.index.map_or(self.blocks, |index| index).saturating_add(1);
                self.blocks = self.blocks.max(next);
                let kind = step.content_block.and_then(|block| block.kind);
                self.open = match kind.as_deref() {
                    Some("text") => Some(OpenBlock::Text),
                    Some("thinking") => Some(OpenBlock::Thinking),
                    Some(_) | None => None,
                };
            }
            Some("content_block_stop") => self.open = None,
            Some(_) | None => {}
        }
    }
}

/// The one event that `raw` is.
fn event(raw: &[u8]) -> Option<Event> {
    let mut decoder = Decoder::new(Limits::default());
    decoder.push(bytes::Bytes::copy_from_slice(raw));
    match decoder.next_frame().ok()?? {
        Frame::Event(event) | Frame::Cut(event) => Some(event),
        Frame::Alive(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::UsageEvent;

    /// Where a stream of `events` stands, and what a writer says that goes on with ` more`.
    fn gone_on(dialect: Dialect, events: &[&str]) -> (StreamPlace, String) {
        let (mut place, mut reader) = (StreamPlace::default(), dialect.stream_reader());
        for raw in events {
            let mut deltas = Vec::new();
            reader.read(&event(raw.as_bytes()).unwrap(), &mut deltas).unwrap();
            place.pass(dialect, raw.as_bytes(), &deltas);
        }
        let mut writer = dialect.stream_writer_from(&place, UsageEvent::Omit);
        let mut out = Vec::new();
        writer.write(&Delta::Start { id: "other".into(), model: "other".into() }, &mut out);
        writer.write(&Delta::Text(" more".into()), &mut out);
        (place, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_chat_goes_on_under_its_own_id_model_and_date_without_a_second_role() {
        let (_, said) = gone_on(
            Dialect::OpenaiChat,
            &["data: {\"id\":\"c1\",\"object\":\"chat.completion.chunk\",\"created\":17,\
               \"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\
               \"content\":\"a\"}}]}\n\n"],
        );
        assert_eq!(said.matches("data:").count(), 1, "{said}");
        let chunk: serde_json::Value =
            serde_json::from_str(said.strip_prefix("data: ").unwrap()).unwrap();
        assert_eq!(
            (&chunk["id"], &chunk["model"], &chunk["created"]),
            (&"c1".into(), &"m".into(), &17.into())
        );
        assert_eq!(chunk["choices"][0]["delta"], serde_json::json!({"content": " more"}));
    }

    #[test]
    fn a_message_goes_on_in_its_open_block_and_else_in_the_next() {
        let start = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\
                     \"model\":\"m\",\"content\":[],\"usage\":{\"input_tokens\":1}}}\n\n";
        let open = "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\
                    \"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n";
        let piece = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\
                     \"delta\":{\"type\":\"text_delta\",\"text\":\"a\"}}\n\n";
        let stop =
            "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n";
        let (place, said) = gone_on(Dialect::Anthropic, &[start, open, piece]);
        assert_eq!((place.id.as_str(), place.model.as_str()), ("m1", "m"));
        assert!(said.starts_with("event: content_block_delta\n") && said.contains("\"index\":0"));
        let (_, said) = gone_on(Dialect::Anthropic, &[start, open, piece, stop]);
        assert!(said.starts_with("event: content_block_start\n") && said.contains("\"index\":1"));
        assert!(!said.contains("message_start"));
    }
}
