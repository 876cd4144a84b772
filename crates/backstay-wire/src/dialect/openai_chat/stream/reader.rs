//! Reads the events of one streamed reply.

use std::collections::BTreeMap;

use serde_json::Value;

use super::super::error;
use super::super::logprobs;
use super::super::reply::{content_part, error_among, error_of_choice};
use super::super::wire::{self, Body, Choice, Content, Said};
use super::calls::Calls;
use crate::chat::{Delta, Part, Usage};
use crate::dialect::Malformed;
use crate::dialect::surroundings::Surroundings;
use crate::frame::sse::Event;

/// Names of events that only keep the connection alive.
const KEEP_ALIVE: &[&str] = &["ping", "heartbeat", "keepalive", "keep-alive"];

/// What one streamed reply has shown so far.
#[derive(Debug, Default)]
pub struct Reader {
    has_started: bool,
    first: Voice,
    /// Choice -> what it has shown, for those after the first.
    others: BTreeMap<u32, Voice>,
    /// Of the last text of the first choice.
    around: Surroundings,
}

/// What one choice has shown so far.
#[derive(Debug, Default)]
struct Voice {
    has_refused: bool,
    has_finished: bool,
    calls: Calls,
}

/// The most choices in one reply: `OpenAI` gives at most this many.
const MAX_CHOICES: usize = 128;

impl Reader {
    pub(crate) fn read(&mut self, event: &Event, out: &mut Vec<Delta>) -> Result<(), Malformed> {
        // Behind a finish a text means something else.
        if !self.first.has_finished
            && let Some(said) = self.around.read(event)
        {
            out.push(said);
            return Ok(());
        }
        let data = event.data.trim_ascii();
        if data == b"[DONE]" {
            self.first.end(out);
            for (choice, voice) in &mut self.others {
                let mut said = Vec::new();
                voice.end(&mut said);
                out.extend(said.into_iter().map(|delta| Delta::of_choice(*choice, delta)));
            }
            out.push(Delta::End);
            return Ok(());
        }
        if event.name == "error" {
            out.push(Delta::Error(error_event(data)));
            return Ok(());
        }
        if is_keep_alive(&event.name, data) {
            out.push(Delta::Alive);
            return Ok(());
        }
        let before = out.len();
        let read = wire::parse(data, |body| {
            self.chunk(data, &body, &event.name, out)?;
            if let [said] = out.get(before..).unwrap_or_default() {
                self.note(event, &body, said);
            }
            Ok(())
        });
        read.unwrap_or_else(|| match error::RULES.in_words(data) {
            Some(error) => {
                out.push(Delta::Error(error));
                Ok(())
            }
            None => Err(broken(data)),
        })?;
        if out.len() == before {
            out.push(Delta::Alive);
        }
        Ok(())
    }

    fn chunk(
        &mut self,
        data: &[u8],
        body: &Body<'_>,
        name: &str,
        out: &mut Vec<Delta>,
    ) -> Result<(), Malformed> {
        if body.is_error() {
            let value = serde_json::from_slice(data).unwrap_or_default();
            out.push(Delta::Error(error::RULES.in_band(&value)));
            return Ok(());
        }
        let choices = body.choices.as_deref().unwrap_or_default();
        if !choices.is_empty() {
            self.start(body, out);
        }
        for choice in choices {
            self.choice(choice, out)?;
        }
        if let Some(counts) = &body.usage {
            let usage = Usage::from(counts);
            if usage != Usage::default() {
                out.push(Delta::Usage(usage));
            }
        }
        let says_nothing = body.choices.is_none() && body.usage.is_none();
        if says_nothing && let Some(error) = error_among(data) {
            out.push(Delta::Error(error));
            return Ok(());
        }
        let kind = body.kind.text().filter(|kind| !KEEP_ALIVE.contains(kind));
        if says_nothing && let Some(kind) = kind.or((!name.is_empty()).then_some(name)) {
            out.push(Delta::Unknown(format!("event: {}", wire::bounded(kind))));
        }
        Ok(())
    }

    /// Notes what stands around the text of an event that says nothing but `said`.
    fn note(&mut self, event: &Event, body: &Body<'_>, said: &Delta) {
        let Some([Choice { delta: Some(delta), .. }]) = body.choices.as_deref() else { return };
        // What a piece of a call says depends on what was said of calls before.
        if !delta.tool_calls.is_empty() || delta.function_call.is_some() {
            return;
        }
        match (said, &delta.content) {
            (Delta::Text(_), Content::Text(text)) => self.around.note(event, text, Delta::Text),
            (Delta::Reasoning(_), _) => {
                let text = delta.reasoning().unwrap_or_default();
                self.around.note(event, text, Delta::Reasoning);
            }
            _ => {}
        }
    }

    fn start(&mut self, body: &Body<'_>, out: &mut Vec<Delta>) {
        if self.has_started {
            return;
        }
        self.has_started = true;
        let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
        out.push(Delta::Start { id: text(body.id.text()), model: text(body.model.text()) });
    }

    fn choice(&mut self, choice: &Choice<'_>, out: &mut Vec<Delta>) -> Result<(), Malformed> {
        let place = choice.index.whole().unwrap_or(0);
        let place = u32::try_from(place).map_err(|_| too_many_choices())?;
        if place == 0 {
            return self.first.choice(choice, out);
        }
        if self.others.len() + 1 >= MAX_CHOICES && !self.others.contains_key(&place) {
            return Err(too_many_choices());
        }
        let mut said = Vec::new();
        self.others.entry(place).or_default().choice(choice, &mut said)?;
        out.extend(said.into_iter().map(|delta| Delta::of_choice(place, delta)));
        Ok(())
    }
}

impl Voice {
    /// The stream is over: what follows is nobody's, and left out.
    fn end(&mut self, out: &mut Vec<Delta>) {
        self.calls.flush(out);
        self.has_finished = false;
    }

    fn choice(&mut self, choice: &Choice<'_>, out: &mut Vec<Delta>) -> Result<(), Malformed> {
        if let Some(told) = choice.logprobs.and_then(logprobs::read) {
            let reasons = choice.delta.as_ref().is_some_and(Said::only_reasons);
            out.push(Delta::Logprobs(if reasons { told.of_reasoning() } else { told }));
        }
        if let Some(delta) = &choice.delta {
            let before = out.len();
            self.said(delta, out)?;
            if self.has_finished && out.iter().skip(before).any(Delta::says_something) {
                return Err(Malformed::new("/choices/0/delta", "content after the finish reason"));
            }
        }
        if let Some(raw) = choice.error.filter(|raw| !wire::is_blank(raw.get())) {
            out.push(Delta::Error(error_of_choice(raw.get())));
            return Ok(());
        }
        if let Some(word) = choice.finish_word() {
            self.calls.flush(out);
            self.has_finished = true;
            let finish = wire::finish(Some(&word), self.has_refused);
            out.push(Delta::Finish { finish, word: Some(word) });
        }
        Ok(())
    }

    fn said(&mut self, said: &Said<'_>, out: &mut Vec<Delta>) -> Result<(), Malformed> {
        if let Some(text) = said.reasoning() {
            out.push(Delta::Reasoning(text.to_owned()));
        }
        match &said.content {
            Content::None => {}
            Content::Text(text) if text.is_empty() => {}
            Content::Text(text) => out.push(Delta::Text(text.clone().into_owned())),
            Content::Parts(items) => items.iter().for_each(|item| self.part(item, out)),
        }
        if let Some(words) = said.refusal.text() {
            self.has_refused = true;
            out.push(Delta::Refusal(words.to_owned()));
        }
        self.calls.take(&said.tool_calls, out)?;
        if let Some(function) = &said.function_call {
            self.calls.take_function(function, out)?;
        }
        out.extend(said.unknown.iter().map(|key| Delta::Unknown(format!("message field: {key}"))));
        Ok(())
    }

    /// One part of a content list, as Mistral streams its reasoning.
    fn part(&mut self, item: &Value, out: &mut Vec<Delta>) {
        let mut unknown = vec![];
        match content_part(item.clone(), &mut unknown) {
            Part::Text(text) if !text.is_empty() => out.push(Delta::Text(text)),
            Part::Thinking { text, .. } if !text.is_empty() => out.push(Delta::Reasoning(text)),
            Part::Refusal(words) if !words.is_empty() => {
                self.has_refused = true;
                out.push(Delta::Refusal(words));
            }
            _ => {}
        }
        out.extend(unknown.into_iter().map(Delta::Unknown));
    }
}

fn too_many_choices() -> Malformed {
    Malformed::new("/choices", format!("more than {MAX_CHOICES} choices in one reply"))
}

/// Signs of life in a data field: nothing, a comment that slipped into it, a bare word, `{}`.
fn is_keep_alive(name: &str, data: &[u8]) -> bool {
    data.is_empty()
        || data.starts_with(b":")
        || data == b"{}"
        || KEEP_ALIVE.contains(&name)
        || KEEP_ALIVE.iter().any(|word| word.as_bytes() == data)
}

/// An event named `error`: its data is an error object, bare or wrapped, or plain words.
fn error_event(data: &[u8]) -> crate::ProviderError {
    let words = || Value::from(String::from_utf8_lossy(data));
    error::RULES.in_band(&serde_json::from_slice(data).unwrap_or_else(|_| words()))
}

/// Says why an event could not be read, without quoting it.
fn broken(data: &[u8]) -> Malformed {
    let note = match serde_json::from_slice::<Value>(data) {
        Ok(Value::Object(_)) => "a stream event is not of the form of a chunk".to_owned(),
        Ok(_) => "a stream event is no JSON object".to_owned(),
        Err(error) if error.is_eof() => "a stream event ends in the middle".to_owned(),
        Err(error) => format!("a stream event is not valid JSON at column {}", error.column()),
    };
    Malformed::new("", note)
}
