//! Writes one streamed reply, chunk by chunk.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::super::error;
use super::super::reply::{REFUSAL_WITHOUT_WORDS, usage_json};
use super::super::wire;
use crate::chat::{Delta, Finish, Loss, ProviderError, Usage};
use crate::dialect::{ErrorOut, StreamPlace, UsageEvent};

/// What has been written of one reply.
#[derive(Debug)]
pub struct Writer {
    id: String,
    model: String,
    created: u64,
    usage_event: UsageEvent,
    usage: Usage,
    has_ended: bool,
    /// Choice -> what was said of it.
    voices: BTreeMap<u32, Voice>,
    losses: Vec<Loss>,
}

/// How far one choice is. It is there once it was opened.
#[derive(Debug, Default)]
struct Voice {
    has_refused: bool,
    has_finished: bool,
}

#[derive(Serialize)]
struct Chunk<'a> {
    id: &'a str,
    object: &'a str,
    created: u64,
    model: &'a str,
    choices: &'a [Choice<'a>],
    /// Null in every chunk but the last where usage was asked for, else left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
}

#[derive(Serialize)]
struct Choice<'a> {
    index: u32,
    delta: Said<'a>,
    logprobs: Option<()>,
    finish_reason: Option<&'a str>,
}

#[derive(Default, Serialize)]
struct Said<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_calls: Option<[Call<'a>; 1]>,
}

#[derive(Serialize)]
struct Call<'a> {
    index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'a str>,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    arguments: &'a str,
}

impl Writer {
    pub(crate) fn new(model: &str, usage_event: UsageEvent) -> Self {
        Self {
            id: String::new(),
            model: model.to_owned(),
            created: 0,
            usage_event,
            usage: Usage::default(),
            has_ended: false,
            voices: BTreeMap::new(),
            losses: vec![],
        }
    }

    /// A writer that goes on with a reply whose beginning was told as `place` says.
    pub(crate) fn going_on(place: &StreamPlace, usage_event: UsageEvent) -> Self {
        Self {
            id: place.id.clone(),
            created: place.created,
            voices: place.has_begun.then(|| (0, Voice::default())).into_iter().collect(),
            ..Self::new(&place.model, usage_event)
        }
    }

    /// Forgets what was used so far: another reply goes on.
    pub(crate) fn forget_usage(&mut self) {
        self.usage = Usage::default();
    }

    pub(crate) fn write(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        if self.has_ended {
            return;
        }
        match delta {
            // A reply that has begun keeps its name.
            Delta::Start { .. } if !self.voices.is_empty() => {}
            Delta::Start { id, model } => {
                id.clone_into(&mut self.id);
                if self.model.is_empty() {
                    model.clone_into(&mut self.model);
                }
                self.voice(0, out);
            }
            Delta::OtherChoice { choice, delta } => self.write_for(*choice, delta, out),
            Delta::Usage(usage) => self.usage.overwrite(*usage),
            Delta::Error(error) => self.fail(error, out),
            Delta::End => self.end(out),
            delta => self.write_for(0, delta, out),
        }
    }

    /// Writes what belongs to one choice.
    fn write_for(&mut self, choice: u32, delta: &Delta, out: &mut Vec<u8>) {
        match delta {
            Delta::Text(text) => {
                self.say(choice, Said { content: Some(text), ..Said::default() }, out);
            }
            Delta::Reasoning(text) => {
                self.say(choice, Said { reasoning_content: Some(text), ..Said::default() }, out);
            }
            Delta::Refusal(words) => {
                self.voice(choice, out).has_refused = true;
                self.say(choice, Said { refusal: Some(words), ..Said::default() }, out);
            }
            Delta::ToolStart { index, id, name } => {
                let function = Function { name: Some(name), arguments: "" };
                let (id, kind) = (Some(id.as_str()), Some("function"));
                self.call(choice, Call { index: *index, id, kind, function }, out);
            }
            Delta::ToolArguments { index, fragment } => {
                let function = Function { name: None, arguments: fragment };
                self.call(choice, Call { index: *index, id: None, kind: None, function }, out);
            }
            Delta::Finish { finish, word } => self.finish(choice, *finish, word.as_deref(), out),
            Delta::Signature(_) => self.lose("the reasoning's signature cannot be said"),
            Delta::Untold(what) | Delta::Unknown(what) => {
                self.lose(&format!("{what} cannot be said"));
            }
            // The stream's own, never a choice's; and odds belong to the events they came in.
            Delta::Start { .. }
            | Delta::Usage(_)
            | Delta::Error(_)
            | Delta::End
            | Delta::Alive
            | Delta::Logprobs(_)
            | Delta::Quirk(_)
            | Delta::OtherChoice { .. } => {}
        }
    }

    pub(crate) fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// A choice's state. Its first chunk says who speaks, and nothing else.
    fn voice(&mut self, choice: u32, out: &mut Vec<u8>) -> &mut Voice {
        if !self.voices.contains_key(&choice) {
            let said = Said { role: Some("assistant"), content: Some(""), ..Said::default() };
            self.chunk(choice, said, None, out);
        }
        self.voices.entry(choice).or_default()
    }

    fn say(&mut self, choice: u32, said: Said<'_>, out: &mut Vec<u8>) {
        self.voice(choice, out);
        self.chunk(choice, said, None, out);
    }

    fn call(&mut self, choice: u32, call: Call<'_>, out: &mut Vec<u8>) {
        self.say(choice, Said { tool_calls: Some([call]), ..Said::default() }, out);
    }

    fn finish(&mut self, choice: u32, finish: Finish, word: Option<&str>, out: &mut Vec<u8>) {
        let voice = self.voice(choice, out);
        if std::mem::replace(&mut voice.has_finished, true) {
            return;
        }
        if finish == Finish::Refused && !voice.has_refused {
            let refusal = Some(REFUSAL_WITHOUT_WORDS);
            self.chunk(choice, Said { refusal, ..Said::default() }, None, out);
        }
        self.chunk(choice, Said::default(), wire::finish_word(finish, word), out);
    }

    fn end(&mut self, out: &mut Vec<u8>) {
        self.has_ended = true;
        if self.usage_event == UsageEvent::Send
            && let Some(usage) = usage_json(&self.usage)
        {
            self.put(&[], Some(usage), out);
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    /// A failure ends the stream: no `[DONE]` may follow, it would look like success.
    fn fail(&mut self, error: &ProviderError, out: &mut Vec<u8>) {
        self.has_ended = true;
        out.extend_from_slice(&write_error(&ErrorOut {
            status: error.status.unwrap_or(500),
            code: error.code.as_deref().unwrap_or_else(|| error.class.word()),
            message: &error.message,
            param: error.param.as_deref(),
            call_id: "",
        }));
    }

    fn chunk(&self, index: u32, delta: Said<'_>, finish_reason: Option<&str>, out: &mut Vec<u8>) {
        self.put(&[Choice { index, delta, logprobs: None, finish_reason }], None, out);
    }

    fn put(&self, choices: &[Choice<'_>], usage: Option<Value>, out: &mut Vec<u8>) {
        let chunk = Chunk {
            id: &self.id,
            object: "chat.completion.chunk",
            created: self.created,
            model: &self.model,
            choices,
            usage: (self.usage_event == UsageEvent::Send).then(|| usage.unwrap_or(Value::Null)),
        };
        out.extend_from_slice(b"data: ");
        // Writing these types to memory cannot fail; if it ever did, the line would be cut and the
        // reader would say so.
        let _ = serde_json::to_writer(&mut *out, &chunk);
        out.extend_from_slice(b"\n\n");
    }

    fn lose(&mut self, note: &str) {
        if self.losses.iter().all(|loss| loss.note != note) && self.losses.len() < 32 {
            self.losses.push(Loss::new("", note));
        }
    }
}

/// Writes a failure as the event on which this dialect's SDKs raise. Nothing may follow it.
pub(crate) fn write_error(error: &ErrorOut<'_>) -> Vec<u8> {
    format!("data: {}\n\n", error::body(error)).into_bytes()
}
