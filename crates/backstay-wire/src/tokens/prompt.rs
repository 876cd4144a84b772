//! Measures everything of a request that a provider bills as input.

use serde_json::Value;

use crate::chat::{Chat, Format, ImageSource, Part};

/// Tokens a chat template may put around one message: role, separators, ids. Known ones need 3 to
/// 8.
const AROUND_MESSAGE: u64 = 16;
/// Tokens a template may add once: a default instruction, the frame of the tools.
const AROUND_PROMPT: u64 = 512;
/// Tokens of one picture whose bytes are not in the request. The dearest documented is about
/// 3,100 (a high-detail picture of 2,048 by 4,096).
const PER_LINKED_IMAGE: u64 = 4_096;

/// The size of a prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prompt {
    /// Bytes of every text that counts: messages, tool calls and results, tools, the schema.
    pub bytes: u64,
    /// Messages, the system's included.
    pub messages: u64,
    /// Pictures, by address or in base64.
    pub images: u64,
}

impl Prompt {
    /// Measures `chat`.
    pub fn of(chat: &Chat) -> Self {
        let mut prompt = Self { messages: u64::from(!chat.system.is_empty()), ..Self::default() };
        prompt.parts(&chat.system);
        for turn in &chat.turns {
            prompt.messages += 1;
            prompt.parts(&turn.parts);
        }
        for tool in &chat.tools {
            prompt.text(&tool.name);
            prompt.text(&tool.description);
            prompt.json(&tool.parameters);
        }
        if let Some(Format::JsonSchema { name, schema, .. }) = &chat.format {
            prompt.text(name);
            prompt.json(schema);
        }
        // Tools and formats of the provider's own kinds.
        for value in chat.extra.values() {
            prompt.json(value);
        }
        prompt
    }

    /// No byte-level vocabulary makes more tokens of it than this.
    pub fn bound(self) -> u64 {
        super::upper_bound(self.bytes)
            .saturating_add(self.messages.saturating_mul(AROUND_MESSAGE))
            .saturating_add(self.images.saturating_mul(PER_LINKED_IMAGE))
            .saturating_add(AROUND_PROMPT)
    }

    fn parts(&mut self, parts: &[Part]) {
        for part in parts {
            self.part(part);
        }
    }

    fn part(&mut self, part: &Part) {
        match part {
            Part::Text(text) | Part::Refusal(text) | Part::Thinking { text, .. } => self.text(text),
            Part::Image { source, .. } => {
                // A picture is billed by its pixels, not by the bytes that carry it.
                self.images += 1;
                if let ImageSource::Url(url) = source {
                    self.text(url);
                }
            }
            Part::ToolCall { id, name, arguments } => {
                self.text(id);
                self.text(name);
                self.text(arguments);
            }
            Part::ToolResult { id, parts, .. } => {
                self.text(id);
                self.messages += 1;
                self.parts(parts);
            }
            Part::Other(value) => self.json(value),
        }
    }

    fn text(&mut self, text: &str) {
        self.bytes = self.bytes.saturating_add(u64::try_from(text.len()).unwrap_or(u64::MAX));
    }

    fn json(&mut self, value: &Value) {
        self.text(&value.to_string());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dialect;

    fn measure(body: &str) -> Prompt {
        Prompt::of(&Dialect::OpenaiChat.read_request(body.as_bytes()).unwrap())
    }

    #[test]
    fn tool_calls_are_counted() {
        // https://github.com/odysseus-dev/odysseus/issues/2748: 4 tokens for 40 kB of arguments.
        let body = format!(
            r#"{{"model":"m","messages":[{{"role":"assistant","content":null,"tool_calls":
            [{{"id":"t1","type":"function","function":{{"name":"write","arguments":"{}"}}}}]}}]}}"#,
            "x".repeat(40_000)
        );
        assert!(measure(&body).bound() >= 40_000);
    }

    #[test]
    fn every_billed_field_counts() {
        let plain = measure(r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#);
        assert_eq!(plain, Prompt { bytes: 2, messages: 1, images: 0 });
        let rows = [
            r#""tools":[{"type":"function","function":{"name":"f","description":"d"}}]"#,
            r#""response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{}}}"#,
            r#""tools":[{"type":"custom","custom":{"name":"f"}}]"#,
        ];
        for extra in rows {
            let body =
                format!(r#"{{"model":"m","messages":[{{"role":"user","content":"hi"}}],{extra}}}"#);
            assert!(measure(&body).bytes > plain.bytes, "{extra}");
        }
        let picture = r#"{"model":"m","messages":[{"role":"user","content":[
            {"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}"#;
        assert_eq!(measure(picture), Prompt { bytes: 0, messages: 1, images: 1 });
    }

    #[test]
    fn the_bound_does_not_wrap() {
        let huge = Prompt { bytes: u64::MAX, messages: u64::MAX, images: u64::MAX };
        assert_eq!(huge.bound(), u64::MAX);
    }
}
