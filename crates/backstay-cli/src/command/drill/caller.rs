//! The drill's application: sends one request over HTTP and keeps everything that comes back.

use std::time::Duration;

use backstay::attempt::transport::Transport;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use super::file::DialectWord;
use super::judge::{self, BodyEnd, Outcome, Reply, Wanted};
use super::plan::{Case, Form};
use super::rules::Call;
use super::told;

/// What a caller waits beyond its deadline before it says that nothing came.
const GRACE: Duration = Duration::from_secs(1);
/// The most of a reply that is kept.
const MAX_BODY: usize = 16 << 20;

/// Where requests go.
#[derive(Debug)]
pub(super) struct Caller {
    transport: Transport,
    /// Without a slash at the end, such as `http://127.0.0.1:8080/v1`.
    base: String,
    /// Sent as a bearer token.
    key: Option<String>,
    /// The model asked for; `{case}` in it is the case's slug.
    model: String,
}

/// A reply as it came.
struct Raw {
    status: Option<u16>,
    headers: HeaderMap,
    body: Bytes,
    end: BodyEnd,
    first: Option<Duration>,
    took: Duration,
}

impl Caller {
    /// One that asks `base`, which ends before `/chat/completions`.
    pub(super) fn new(base: &str, key: Option<String>, model: &str) -> Self {
        let base = base.trim_end_matches('/').to_owned();
        Self { transport: Transport::new(), base, key, model: model.to_owned() }
    }

    /// Asks what `case` asks, and judges what comes back.
    pub(super) async fn ask(&self, case: &Case) -> Call {
        let raw = match self.request(case) {
            Ok(request) => self.exchange(request, case.ask.deadline + GRACE).await,
            Err(error) => Raw::broken(error.to_string(), Duration::ZERO),
        };
        judged(case, &raw)
    }

    fn request(&self, case: &Case) -> Result<Request<Full<Bytes>>, http::Error> {
        let path = match case.ask.dialect {
            DialectWord::OpenaiChat => "/chat/completions",
            DialectWord::Anthropic => "/messages",
        };
        let mut request = Request::post(format!("{}{path}", self.base))
            .header("content-type", "application/json")
            .header("x-backstay-deadline", format!("{}ms", case.ask.deadline.as_millis()));
        if let Some(key) = &self.key {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        let model = self.model.replace("{case}", &case.slug);
        request.body(Full::new(Bytes::from(body(case, &model).to_string())))
    }

    async fn exchange(&self, request: Request<Full<Bytes>>, patience: Duration) -> Raw {
        let began = Instant::now();
        let end = began + patience;
        let response = match timeout_at(end, self.transport.send(request, patience)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Raw::broken(error.to_string(), began.elapsed()),
            Err(_) => {
                return Raw { end: BodyEnd::Open, ..Raw::broken(String::new(), began.elapsed()) };
            }
        };
        let (parts, mut incoming) = response.into_parts();
        let (mut body, mut first) = (BytesMut::new(), None);
        let ended = loop {
            match timeout_at(end, incoming.frame()).await {
                Err(_) => break BodyEnd::Open,
                Ok(None) => break BodyEnd::Whole,
                Ok(Some(Err(error))) => break BodyEnd::Broken(error.to_string()),
                Ok(Some(Ok(frame))) => {
                    let piece = frame.into_data().unwrap_or_default();
                    first.get_or_insert_with(|| began.elapsed());
                    body.extend_from_slice(&piece);
                }
            }
            if body.len() > MAX_BODY {
                break BodyEnd::Broken(format!("over {MAX_BODY} bytes"));
            }
        };
        Raw {
            status: Some(parts.status.as_u16()),
            headers: parts.headers,
            body: body.freeze(),
            end: ended,
            first,
            took: began.elapsed(),
        }
    }
}

impl Raw {
    fn broken(why: String, took: Duration) -> Self {
        let end = BodyEnd::Broken(why);
        Self { status: None, headers: HeaderMap::new(), body: Bytes::new(), end, first: None, took }
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// The body of a request.
fn body(case: &Case, model: &str) -> Value {
    let ask = &case.ask;
    let mut body = json!({"model": model, "messages": [{"role": "user", "content": ask.prompt}]});
    if ask.form == Form::Stream {
        body["stream"] = true.into();
    }
    match ask.dialect {
        DialectWord::OpenaiChat => {
            if ask.form == Form::Stream {
                body["stream_options"] = json!({"include_usage": true});
            }
            if let Some(schema) = &ask.schema {
                let named = json!({"name": "answer", "schema": schema});
                body["response_format"] = json!({"type": "json_schema", "json_schema": named});
            }
        }
        DialectWord::Anthropic => {
            body["max_tokens"] = 1000.into();
            if let Some(schema) = &ask.schema {
                body["output_config"] =
                    json!({"format": {"type": "json_schema", "schema": schema}});
            }
        }
    }
    body
}

fn judged(case: &Case, raw: &Raw) -> Call {
    let streamed = case.ask.form == Form::Stream && raw.status == Some(200);
    let read = if streamed { told::streamed } else { told::whole };
    let told = read(case.ask.dialect, &raw.body);
    let reply = Reply {
        status: raw.status,
        code: raw.header("x-backstay-code"),
        end: &raw.end,
        took: raw.took,
        told: &told,
    };
    let wanted = Wanted {
        deadline: case.ask.deadline,
        answer: &case.ask.answer,
        right: &case.right,
        codes: &case.codes,
    };
    let outcome = judge::outcome(&reply, &wanted);
    Call {
        verdict: judge::verdict(&outcome, &wanted),
        status: raw.status,
        outcome: outcome.told(),
        took_ms: raw.took.as_secs_f64() * 1e3,
        first_byte_ms: raw.first.map(|first| first.as_secs_f64() * 1e3),
        cost: raw.header("x-backstay-cost").and_then(|cost| cost.parse().ok()),
        model: told.model,
        usage: told.usage,
        answered: outcome == Outcome::Answer,
    }
}
