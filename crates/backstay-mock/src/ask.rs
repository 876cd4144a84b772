//! Reads a request body: what is asked, in either dialect, and what the provider would refuse.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::content::Content;
use crate::dice::digest;

/// Which provider the mock plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    OpenAi,
    Anthropic,
}

/// The paths that take a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Chat,
    Messages,
    Embeddings,
    CountTokens,
}

impl Endpoint {
    pub(crate) fn dialect(self) -> Dialect {
        match self {
            Self::Chat | Self::Embeddings => Dialect::OpenAi,
            Self::Messages | Self::CountTokens => Dialect::Anthropic,
        }
    }
}

/// Whether the reply is to be a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Whole,
    Stream { usage: bool },
}

/// A tool the caller offers.
#[derive(Clone, Debug)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) schema: Value,
}

/// One request, as far as the mock looks into it.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) endpoint: Endpoint,
    pub(crate) model: String,
    pub(crate) form: Form,
    /// How many messages; 0 for embeddings.
    pub(crate) messages: usize,
    pub(crate) max_tokens: Option<u64>,
    pub(crate) schema: Option<Value>,
    pub(crate) tools: Vec<Tool>,
    /// The tool the caller insists on, as an index into `tools`.
    pub(crate) forced: Option<usize>,
    /// The text of the user message the answer is about: the last that has text, with structured
    /// output the first. May be empty.
    pub(crate) last_user: String,
    /// Digest of `last_user`.
    pub(crate) last_digest: u64,
    /// Digest of the text of the first such message.
    pub(crate) first_digest: u64,
    /// The last message, where it is the assistant's: the beginning of the reply.
    pub(crate) prefill: Option<String>,
    /// The last message is a tool's result.
    pub(crate) after_tool: bool,
    /// A quarter of the request's bytes, at least 1.
    pub(crate) prompt_tokens: u64,
    pub(crate) embed: Option<Embed>,
}

/// What an embeddings request asks for.
#[derive(Clone, Debug)]
pub(crate) struct Embed {
    pub(crate) inputs: Vec<String>,
    pub(crate) dimensions: usize,
    pub(crate) base64: bool,
}

/// A request the provider would refuse with 400.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Invalid {
    pub(crate) message: String,
    /// OpenAI's `code`.
    pub(crate) code: Option<&'static str>,
    /// OpenAI's `param`.
    pub(crate) param: Option<&'static str>,
}

/// Longer model names are refused; they are kept in tables.
const MAX_MODEL: usize = 512;
/// OpenAI's own limit on the inputs of one embeddings request.
const MAX_INPUTS: usize = 2_048;
const MAX_DIMENSIONS: usize = 4_096;

#[derive(Deserialize)]
struct Body<'a> {
    #[serde(borrow)]
    model: Option<Cow<'a, str>>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    #[serde(borrow)]
    messages: Option<Vec<Message<'a>>>,
    max_tokens: Option<u64>,
    max_completion_tokens: Option<u64>,
    #[serde(borrow)]
    response_format: Option<&'a RawValue>,
    #[serde(borrow)]
    output_config: Option<&'a RawValue>,
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_choice: Option<&'a RawValue>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    dimensions: Option<usize>,
    #[serde(borrow)]
    encoding_format: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    content: Option<Content<'a>>,
}

impl Ask {
    /// Reads `bytes` as a request to `endpoint`.
    pub(crate) fn read(endpoint: Endpoint, bytes: &[u8]) -> Result<Self, Invalid> {
        let body: Body<'_> =
            serde_json::from_slice(bytes).map_err(|e| unreadable(endpoint.dialect(), &e))?;
        let model = body.model.as_deref().unwrap_or("").to_owned();
        check(endpoint, &body, &model)?;
        let messages = body.messages.as_deref().unwrap_or(&[]);
        let tools = tools(endpoint.dialect(), body.tools);
        let forced = forced(body.tool_choice, &tools);
        let schema = schema(body.response_format, body.output_config);
        let (first_digest, last_user) = users(messages, schema.is_some());
        let last_digest = digest(last_user.as_bytes());
        Ok(Self {
            endpoint,
            model,
            form: form(&body),
            messages: messages.len(),
            max_tokens: body.max_completion_tokens.or(body.max_tokens),
            schema,
            forced,
            tools,
            first_digest: first_digest.unwrap_or(last_digest),
            last_digest,
            last_user,
            prefill: messages.last().and_then(begun),
            after_tool: messages.last().is_some_and(is_tool_result),
            prompt_tokens: u64::try_from(bytes.len() / 4).unwrap_or(1).max(1),
            embed: (endpoint == Endpoint::Embeddings).then(|| embed(&body)),
        })
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.endpoint.dialect()
    }

    /// Whether structured output is asked for, by format or by a forced tool.
    pub(crate) fn has_schema(&self) -> bool {
        self.schema.is_some() || self.forced.is_some()
    }
}

fn form(body: &Body<'_>) -> Form {
    if body.stream != Some(true) {
        return Form::Whole;
    }
    let usage = body.stream_options.as_ref().and_then(|o| o.include_usage) == Some(true);
    Form::Stream { usage }
}

fn unreadable(dialect: Dialect, error: &serde_json::Error) -> Invalid {
    let message = match dialect {
        Dialect::OpenAi => format!("We could not parse the JSON body of your request: {error}"),
        Dialect::Anthropic => format!("The request body is not valid JSON: {error}"),
    };
    Invalid { message, code: None, param: None }
}

fn check(endpoint: Endpoint, body: &Body<'_>, model: &str) -> Result<(), Invalid> {
    let missing = |param: &'static str| Invalid {
        message: match endpoint.dialect() {
            Dialect::OpenAi => format!("Missing required parameter: '{param}'."),
            Dialect::Anthropic => format!("{param}: Field required"),
        },
        code: Some("missing_required_parameter"),
        param: Some(param),
    };
    if model.is_empty() {
        return Err(missing("model"));
    }
    if model.len() > MAX_MODEL {
        let message = format!("model: at most {MAX_MODEL} bytes");
        return Err(Invalid { message, code: Some("invalid_value"), param: Some("model") });
    }
    if endpoint == Endpoint::Embeddings {
        return if body.input.is_some() { Ok(()) } else { Err(missing("input")) };
    }
    if body.messages.as_ref().is_none_or(Vec::is_empty) {
        return Err(missing("messages"));
    }
    if endpoint == Endpoint::Messages && body.max_tokens.is_none() {
        return Err(missing("max_tokens"));
    }
    Ok(())
}

fn schema(openai: Option<&RawValue>, anthropic: Option<&RawValue>) -> Option<Value> {
    let parse = |raw: &RawValue| serde_json::from_str::<Value>(raw.get()).ok();
    if let Some(format) = openai.and_then(parse) {
        return format.pointer("/json_schema/schema").cloned();
    }
    anthropic.and_then(parse)?.pointer("/format/schema").cloned()
}

fn tools(dialect: Dialect, raw: Option<&RawValue>) -> Vec<Tool> {
    let Some(Ok(Value::Array(list))) = raw.map(|r| serde_json::from_str(r.get())) else {
        return Vec::new();
    };
    let (name, schema) = match dialect {
        Dialect::OpenAi => ("/function/name", "/function/parameters"),
        Dialect::Anthropic => ("/name", "/input_schema"),
    };
    list.iter()
        .filter_map(|tool| {
            let name = tool.pointer(name)?.as_str()?.to_owned();
            Some(Tool { name, schema: tool.pointer(schema).cloned().unwrap_or_default() })
        })
        .collect()
}

/// OpenAI: `required` or `{function:{name}}`. Anthropic: `{type:any}` or `{type:tool,name}`.
fn forced(raw: Option<&RawValue>, tools: &[Tool]) -> Option<usize> {
    let choice: Value = serde_json::from_str(raw?.get()).ok()?;
    let any = choice == "required" || choice.get("type").is_some_and(|kind| kind == "any");
    if any {
        return (!tools.is_empty()).then_some(0);
    }
    let name = choice.pointer("/function/name").or_else(|| choice.get("name"))?.as_str()?;
    tools.iter().position(|tool| tool.name == name)
}

/// The digest of the first user text, where that is not also the last; and the text the answer is
/// about: the last, but where structured output is asked for the first, since what follows an
/// assistant's turn there is a correction of its form.
fn users(messages: &[Message<'_>], structured: bool) -> (Option<u64>, String) {
    if structured && let Some(first) = messages.iter().find_map(user_text) {
        return (None, first);
    }
    let last = messages.iter().enumerate().rev().find_map(|(at, m)| Some((at, user_text(m)?)));
    let Some((last_at, last)) = last else { return (None, String::new()) };
    let earlier = messages.get(..last_at).unwrap_or(&[]);
    let first = earlier.iter().find_map(user_text);
    (first.map(|text| digest(text.as_bytes())), last)
}

/// The text of a user message; none for another role, or when it has no text.
fn user_text(message: &Message<'_>) -> Option<String> {
    if message.role != "user" {
        return None;
    }
    message.content.as_ref()?.text()
}

fn begun(message: &Message<'_>) -> Option<String> {
    if message.role != "assistant" {
        return None;
    }
    message.content.as_ref().and_then(Content::text)
}

fn is_tool_result(message: &Message<'_>) -> bool {
    // Anthropic has no role for it: a tool's result is a block in a user message.
    message.role == "tool" || message.content.as_ref().is_some_and(Content::has_tool_result)
}

fn embed(body: &Body<'_>) -> Embed {
    let input = body.input.and_then(|raw| serde_json::from_str::<Value>(raw.get()).ok());
    let inputs = match input {
        Some(Value::Array(list)) if list.iter().all(Value::is_number) => {
            vec![Value::Array(list).to_string()]
        }
        Some(Value::Array(list)) => list
            .iter()
            .take(MAX_INPUTS)
            .map(|v| v.as_str().map_or_else(|| v.to_string(), str::to_owned))
            .collect(),
        Some(Value::String(text)) => vec![text],
        Some(other) => vec![other.to_string()],
        None => Vec::new(),
    };
    Embed {
        inputs,
        dimensions: body.dimensions.unwrap_or(256).clamp(1, MAX_DIMENSIONS),
        base64: body.encoding_format.as_deref() == Some("base64"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chat(body: &str) -> Ask {
        Ask::read(Endpoint::Chat, body.as_bytes()).expect("a request")
    }

    #[test]
    fn the_first_and_last_user_texts_are_found() {
        let ask = chat(
            r#"{"model":"m","messages":[{"role":"user","content":"one"},
            {"role":"assistant","content":null},
            {"role":"user","content":[{"type":"text","text":"two"},{"type":"text","text":"three"}]},
            {"role":"assistant","content":"x"}]}"#,
        );
        assert_eq!((ask.first_digest, ask.last_digest), (digest(b"one"), digest(b"two\nthree")));
        assert_eq!(ask.last_user, "two\nthree");
        assert_eq!((ask.messages, ask.form, ask.after_tool), (4, Form::Whole, false));
        assert_eq!(ask.prefill.as_deref(), Some("x"));
    }

    #[test]
    fn a_schema_is_found_in_both_dialects() {
        let ask = chat(
            r#"{"model":"m","messages":[{"role":"user","content":"x"}],"response_format":
            {"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}}}"#,
        );
        assert_eq!(ask.schema, Some(serde_json::json!({"type":"object"})));
        let body = r#"{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}],
            "output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}}"#;
        let ask = Ask::read(Endpoint::Messages, body.as_bytes()).expect("a request");
        assert_eq!(ask.schema, Some(serde_json::json!({"type":"object"})));
        assert_eq!(ask.max_tokens, Some(9));
    }

    #[test]
    fn a_forced_tool_counts_as_a_schema() {
        let ask = chat(
            r#"{"model":"m","messages":[{"role":"user","content":"x"}],
            "tools":[{"type":"function","function":{"name":"a"}},
                     {"type":"function","function":{"name":"b","parameters":{"type":"object"}}}],
            "tool_choice":{"type":"function","function":{"name":"b"}}}"#,
        );
        assert_eq!(ask.forced, Some(1));
        assert!(ask.has_schema());
    }

    #[test]
    fn a_request_without_its_required_parts_is_refused() {
        for (endpoint, body, param) in [
            (Endpoint::Chat, "{}", Some("model")),
            (Endpoint::Chat, r#"{"model":"m"}"#, Some("messages")),
            (Endpoint::Chat, r#"{"model":"m","messages":[]}"#, Some("messages")),
            (
                Endpoint::Messages,
                r#"{"model":"m","messages":[{"role":"user"}]}"#,
                Some("max_tokens"),
            ),
            (Endpoint::Embeddings, r#"{"model":"m"}"#, Some("input")),
            (Endpoint::Chat, r#"{"model":5}"#, None),
            (Endpoint::Chat, "[[[[", None),
            (Endpoint::Chat, "\u{0}", None),
        ] {
            let invalid = Ask::read(endpoint, body.as_bytes()).expect_err(body);
            assert_eq!(invalid.param, param, "{body}");
        }
        let deep = "[".repeat(100_000);
        assert!(Ask::read(Endpoint::Chat, deep.as_bytes()).is_err());
    }
}
