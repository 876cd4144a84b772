//! What a reply says, read as a careful caller would read it: by the protocol, not by our own code.

use serde::Serialize;
use serde_json::Value;

use super::file::DialectWord;

/// What a reply says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Told {
    /// All text, in order.
    pub text: String,
    /// The last finish that was sent.
    pub finish: Option<String>,
    /// A refusal in its own field.
    pub refusal: Option<String>,
    pub error: Option<Error>,
    /// Terminal events; of a plain body 1.
    pub terminators: usize,
    /// The first thing that cannot be read.
    pub odd: Option<String>,
    pub model: Option<String>,
    pub usage: Option<Usage>,
}

/// An error in the caller's format.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Error {
    /// Its code and its type, where they are words; never empty.
    pub words: Vec<String>,
}

/// Tokens that were reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Usage {
    pub input: u64,
    pub output: u64,
}

/// Reads a whole body.
pub(super) fn whole(dialect: DialectWord, body: &[u8]) -> Told {
    let Ok(value) = serde_json::from_slice::<Value>(body) else {
        return Told { odd: Some("a body that is not JSON".into()), ..Told::default() };
    };
    let mut told = Told { terminators: 1, ..Told::default() };
    told.error = error(&value);
    told.named(&value);
    match dialect {
        DialectWord::OpenaiChat => {
            let choice = value.pointer("/choices/0").unwrap_or(&Value::Null);
            told.message(choice.get("message").unwrap_or(&Value::Null));
            told.finish = word(choice, "/finish_reason");
        }
        DialectWord::Anthropic => {
            let blocks = value.get("content").and_then(Value::as_array);
            for block in blocks.into_iter().flatten() {
                told.text.push_str(block.get("text").and_then(Value::as_str).unwrap_or(""));
            }
            told.finish = word(&value, "/stop_reason");
        }
    }
    told
}

/// Reads a stream of events.
pub(super) fn streamed(dialect: DialectWord, body: &[u8]) -> Told {
    let mut told = Told::default();
    let Ok(text) = std::str::from_utf8(body) else {
        return Told { odd: Some("a stream that is not UTF-8".into()), ..told };
    };
    for payload in payloads(text) {
        if payload == "[DONE]" {
            told.terminators += 1;
            continue;
        }
        let Ok(event) = serde_json::from_str::<Value>(&payload) else {
            told.odd.get_or_insert_with(|| "an event that is not JSON".into());
            continue;
        };
        if let Some(error) = error(&event) {
            told.error.get_or_insert(error);
            continue;
        }
        match dialect {
            DialectWord::OpenaiChat => told.chunk(&event),
            DialectWord::Anthropic => told.event(&event),
        }
    }
    told
}

/// The data of each event, its lines joined.
fn payloads(text: &str) -> Vec<String> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let blocks = text.split("\n\n").filter(|block| !block.trim().is_empty());
    let payload = |block: &str| {
        let lines = block.lines().filter_map(|line| line.strip_prefix("data:"));
        let lines: Vec<&str> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    };
    blocks.filter_map(payload).collect()
}

impl Told {
    fn chunk(&mut self, event: &Value) {
        self.named(event);
        let Some(choice) = event.pointer("/choices/0") else { return };
        self.message(choice.get("delta").unwrap_or(&Value::Null));
        if let Some(finish) = word(choice, "/finish_reason") {
            self.finish = Some(finish);
        }
    }

    fn event(&mut self, event: &Value) {
        self.named(event.get("message").unwrap_or(event));
        match event.get("type").and_then(Value::as_str) {
            Some("content_block_delta") => {
                let piece = event.pointer("/delta/text").and_then(Value::as_str);
                self.text.push_str(piece.unwrap_or(""));
            }
            Some("message_delta") => self.finish = word(event, "/delta/stop_reason"),
            Some("message_stop") => self.terminators += 1,
            _ => {}
        }
    }

    fn message(&mut self, message: &Value) {
        self.text.push_str(message.get("content").and_then(Value::as_str).unwrap_or(""));
        if let Some(refusal) = message.get("refusal").and_then(Value::as_str) {
            self.refusal.get_or_insert_default().push_str(refusal);
        }
    }

    /// Takes note of the model and the usage, which overwrite what was there.
    fn named(&mut self, value: &Value) {
        if let Some(model) = word(value, "/model") {
            self.model = Some(model);
        }
        let Some(usage) = value.get("usage").filter(|usage| usage.is_object()) else { return };
        let count = |names: [&str; 2]| {
            names.iter().find_map(|name| usage.get(name)).and_then(Value::as_u64)
        };
        let known = self.usage.unwrap_or_default();
        self.usage = Some(Usage {
            input: count(["prompt_tokens", "input_tokens"]).unwrap_or(known.input),
            output: count(["completion_tokens", "output_tokens"]).unwrap_or(known.output),
        });
    }
}

fn word(value: &Value, at: &str) -> Option<String> {
    value.pointer(at).and_then(Value::as_str).map(str::to_owned)
}

/// The error of a body or an event: an object that says which, by a code or a type.
fn error(value: &Value) -> Option<Error> {
    let error = value.get("error").filter(|error| error.is_object())?;
    let words: Vec<String> = ["/code", "/type"]
        .iter()
        .filter_map(|at| word(error, at))
        .filter(|w| !w.is_empty())
        .collect();
    (!words.is_empty()).then_some(Error { words })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPENAI: DialectWord = DialectWord::OpenaiChat;
    const ANTHROPIC: DialectWord = DialectWord::Anthropic;

    #[test]
    fn a_stream_of_each_dialect_is_added_up() {
        let openai = b"data: {\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n: hi\n\n\
            data: {\"choices\":[{\"delta\":{\"content\":\"b\"},\"finish_reason\":\"stop\"}]}\r\n\r\n\
            data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n\
            data: [DONE]\n\n";
        let anthropic = b"event: message_start\ndata: {\"type\":\"message_start\",\"message\":\
            {\"model\":\"m\",\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n\
            data: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"ab\"}}\n\n\
            data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"stop\"},\"usage\":\
            {\"output_tokens\":2}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
        for told in [streamed(OPENAI, openai), streamed(ANTHROPIC, anthropic)] {
            assert_eq!(
                told,
                Told {
                    text: "ab".into(),
                    finish: Some("stop".into()),
                    terminators: 1,
                    model: Some("m".into()),
                    usage: Some(Usage { input: 3, output: 2 }),
                    ..Told::default()
                }
            );
        }
    }

    #[test]
    fn errors_are_found_where_each_dialect_puts_them() {
        let event = b"data: {\"error\":{\"code\":\"c\",\"type\":\"t\"}}\n\n";
        assert_eq!(streamed(OPENAI, event).error.unwrap().words, ["c", "t"]);
        let event = b"event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"t\"}}\n\n";
        assert_eq!(streamed(ANTHROPIC, event).error.unwrap().words, ["t"]);
        assert_eq!(whole(OPENAI, b"{\"error\":{\"message\":\"untyped\"}}").error, None);
        assert_eq!(whole(OPENAI, b"<html>").odd.unwrap(), "a body that is not JSON");
        assert!(streamed(OPENAI, b"data: {\"half\":\n\n").odd.is_some());
    }

    #[test]
    fn whole_bodies_are_read_with_their_refusals() {
        let body = br#"{"model":"m","choices":[{"message":{"content":null,"refusal":"no"},
            "finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
        let told = whole(OPENAI, body);
        assert_eq!((told.refusal.as_deref(), told.text.as_str()), (Some("no"), ""));
        let body = br#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],
            "stop_reason":"end_turn"}"#;
        let told = whole(ANTHROPIC, body);
        assert_eq!((told.text.as_str(), told.finish.as_deref()), ("ab", Some("end_turn")));
    }
}
