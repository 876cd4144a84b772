//! What a caller's SDK would understand of a response: read here once for both dialects, plain and
//! streamed, and strictly.

use backstay_wire::Dialect;
use serde_json::Value;

use crate::client::Seen;

/// A reply as understood.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Told {
    pub text: String,
    /// Name and arguments of each tool call.
    pub calls: Vec<(String, String)>,
    pub refusal: String,
    /// The dialect's own word.
    pub finish: Option<String>,
    /// Tokens in and out.
    pub usage: Option<(u64, u64)>,
    /// Terminal events: `[DONE]`, `message_stop`.
    pub terminals: usize,
    /// Events after the first terminal one or the first error.
    pub late: usize,
    /// Errors in the stream.
    pub errors: Vec<Value>,
    /// Events that are no JSON or of no known form.
    pub broken: Vec<String>,
}

/// The ends of a stream: terminal events, errors, events behind the first of either, events of no known form.
pub(crate) type Ends = (usize, usize, usize, usize);

/// A stream that ends with its terminal event.
pub(crate) const WHOLE: Ends = (1, 0, 0, 0);
/// A stream that ends with one error.
pub(crate) const BROKEN: Ends = (0, 1, 0, 0);

impl Told {
    pub(crate) fn ends(&self) -> Ends {
        (self.terminals, self.errors.len(), self.late, self.broken.len())
    }
}

/// A plain reply.
pub(crate) fn plain(dialect: Dialect, body: &Value) -> Told {
    let mut told = Told::default();
    match dialect {
        Dialect::OpenaiChat => {
            let choice = &body["choices"][0];
            let message = &choice["message"];
            told.text = word(&message["content"]);
            told.refusal = word(&message["refusal"]);
            for part in message["content"].as_array().into_iter().flatten() {
                told.text.push_str(&word(&part["text"]));
                told.refusal.push_str(&word(&part["refusal"]));
            }
            told.finish = choice["finish_reason"].as_str().map(str::to_owned);
            for call in message["tool_calls"].as_array().into_iter().flatten() {
                let function = &call["function"];
                told.calls.push((word(&function["name"]), word(&function["arguments"])));
            }
            told.usage = usage(&body["usage"], "prompt_tokens", "completion_tokens");
        }
        Dialect::Anthropic => {
            for block in body["content"].as_array().into_iter().flatten() {
                match block["type"].as_str() {
                    Some("text") => told.text.push_str(&word(&block["text"])),
                    Some("tool_use") => {
                        told.calls.push((word(&block["name"]), block["input"].to_string()));
                    }
                    _ => {}
                }
            }
            told.finish = body["stop_reason"].as_str().map(str::to_owned);
            told.usage = usage(&body["usage"], "input_tokens", "output_tokens");
        }
    }
    told
}

/// A streamed reply.
pub(crate) fn stream(dialect: Dialect, seen: &Seen) -> Told {
    let mut told = Told::default();
    let text = seen.text().replace("\r\n", "\n").replace('\r', "\n");
    let mut over = false;
    for block in text.split("\n\n").filter(|block| !block.trim().is_empty()) {
        let Some((event, data)) = event(block) else { continue };
        told.late += usize::from(over);
        match dialect {
            Dialect::OpenaiChat => openai(&mut told, &data),
            Dialect::Anthropic => anthropic(&mut told, &event, &data),
        }
        over = told.terminals > 0 || !told.errors.is_empty();
    }
    told
}

/// Name and data of an event; `None` for a comment.
fn event(block: &str) -> Option<(String, String)> {
    let field = |name: &str| {
        let lines = block.lines().filter_map(|line| line.strip_prefix(name));
        let values: Vec<&str> =
            lines.map(|value| value.strip_prefix(' ').unwrap_or(value)).collect();
        (!values.is_empty()).then(|| values.join("\n"))
    };
    Some((field("event:").unwrap_or_default(), field("data:")?))
}

fn openai(told: &mut Told, data: &str) {
    if data == "[DONE]" {
        told.terminals += 1;
        return;
    }
    let Ok(chunk) = serde_json::from_str::<Value>(data) else {
        told.broken.push(data.to_owned());
        return;
    };
    if chunk.get("error").is_some_and(|error| !error.is_null()) {
        told.errors.push(chunk);
        return;
    }
    if let Some(usage) = usage(&chunk["usage"], "prompt_tokens", "completion_tokens") {
        told.usage = Some(usage);
    }
    let Some(choice) = chunk["choices"].get(0) else { return };
    let delta = &choice["delta"];
    told.text.push_str(&word(&delta["content"]));
    told.refusal.push_str(&word(&delta["refusal"]));
    for call in delta["tool_calls"].as_array().into_iter().flatten() {
        let at = usize::try_from(call["index"].as_u64().unwrap_or(0)).unwrap_or(0);
        told.calls.resize(told.calls.len().max(at + 1), Default::default());
        told.calls[at].0.push_str(&word(&call["function"]["name"]));
        told.calls[at].1.push_str(&word(&call["function"]["arguments"]));
    }
    if let Some(finish) = choice["finish_reason"].as_str() {
        told.finish = Some(finish.to_owned());
    }
}

fn anthropic(told: &mut Told, event: &str, data: &str) {
    let Ok(value) = serde_json::from_str::<Value>(data) else {
        told.broken.push(data.to_owned());
        return;
    };
    if value["type"] != event {
        told.broken.push(format!("event {event} with {data}"));
    }
    match event {
        "message_start" => {
            told.usage = usage(&value["message"]["usage"], "input_tokens", "output_tokens");
        }
        "content_block_start" if value["content_block"]["type"] == "tool_use" => {
            told.calls.push((word(&value["content_block"]["name"]), String::new()));
        }
        "content_block_delta" => {
            told.text.push_str(&word(&value["delta"]["text"]));
            if let Some(call) = told.calls.last_mut() {
                call.1.push_str(&word(&value["delta"]["partial_json"]));
            }
        }
        "message_delta" => {
            told.finish = value["delta"]["stop_reason"].as_str().map(str::to_owned);
            let input = value["usage"]["input_tokens"].as_u64();
            let input = input.or(told.usage.map(|(input, _)| input)).unwrap_or(0);
            if let Some(output) = value["usage"]["output_tokens"].as_u64() {
                told.usage = Some((input, output));
            }
        }
        "message_stop" => told.terminals += 1,
        "error" => told.errors.push(value),
        // A call without a fragment has the arguments of its start: none.
        "content_block_stop" => {
            if let Some((_, arguments)) = told.calls.last_mut().filter(|call| call.1.is_empty()) {
                arguments.push_str("{}");
            }
        }
        "content_block_start" | "ping" => {}
        other => told.broken.push(format!("event {other}")),
    }
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn usage(value: &Value, input: &str, output: &str) -> Option<(u64, u64)> {
    Some((value[input].as_u64()?, value[output].as_u64()?))
}

/// What is wrong with `seen` as a typed failure in `dialect`; empty: nothing.
pub(crate) fn not_typed(dialect: Dialect, seen: &Seen, status: u16, code: &str) -> Vec<String> {
    let mut wrongs = Vec::new();
    let mut check = |ok: bool, what: String| {
        if !ok {
            wrongs.push(what);
        }
    };
    check(seen.status == status, format!("status {} instead of {status}", seen.status));
    let kind = seen.header("content-type");
    check(kind == "application/json", format!("content-type {kind}"));
    check(seen.header("x-should-retry") == "false", "x-should-retry is not false".into());
    let after = seen.header("retry-after");
    let fits = after.is_empty() || after.parse::<u64>().is_ok_and(|s| (1..=60).contains(&s));
    check(fits, format!("retry-after: {after}"));
    wrongs.extend(not_an_error(dialect, &seen.json(), code));
    wrongs
}

/// What is wrong with `body` as an error object of `dialect` with `code`.
pub(crate) fn not_an_error(dialect: Dialect, body: &Value, code: &str) -> Vec<String> {
    let error = &body["error"];
    let mut wrongs = Vec::new();
    let mut check = |ok: bool, what: String| {
        if !ok {
            wrongs.push(what);
        }
    };
    let code = match (dialect, code) {
        // The dialect's own word, which agents look for.
        (Dialect::OpenaiChat, "context_exceeded" | "context_budget_exceeded") => {
            "context_length_exceeded"
        }
        (_, code) => code,
    };
    check(error["code"] == code, format!("code {} instead of {code}", error["code"]));
    let message = error["message"].as_str().unwrap_or_default();
    check(!message.is_empty(), format!("no message: {body}"));
    check(error["type"].is_string(), format!("no type: {body}"));
    match dialect {
        Dialect::OpenaiChat => {
            check(error.get("param").is_some(), "`param` is missing".into());
        }
        Dialect::Anthropic => {
            check(body["type"] == "error", format!("type {}", body["type"]));
            let known = [
                "invalid_request_error",
                "authentication_error",
                "permission_error",
                "not_found_error",
                "request_too_large",
                "rate_limit_error",
                "api_error",
                "overloaded_error",
                "timeout_error",
                "billing_error",
            ];
            let kind = error["type"].as_str().unwrap_or_default();
            check(known.contains(&kind), format!("error.type {kind}"));
        }
    }
    wrongs
}
