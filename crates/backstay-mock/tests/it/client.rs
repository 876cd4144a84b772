//! A small HTTP/1.1 client that sees every byte and how the connection ended.

use std::collections::BTreeMap;
use std::time::Duration;

use backstay_mock::{End, Entry, Mock, Settings};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The two dialects the mock speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    OpenAi,
    Anthropic,
}

pub(crate) const BOTH: [Dialect; 2] = [Dialect::OpenAi, Dialect::Anthropic];

pub(crate) const TICKET: &str = "I was charged twice for order 1182, please refund one of them.";

/// How the reading of a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The body ended as its framing says.
    Clean,
    /// The connection closed before that.
    Closed,
    /// The connection was reset.
    Reset,
    /// Nothing came for the time allowed.
    Quiet,
}

/// A response as far as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// 0 when no head came.
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
    pub(crate) ended: Ended,
    /// Reads that brought bytes.
    pub(crate) reads: usize,
}

impl Seen {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).expect("UTF-8")
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("no JSON ({e}): {:?}", String::from_utf8_lossy(&self.body)))
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }
}

pub(crate) async fn mock() -> Mock {
    Mock::start(Settings::default()).await.expect("a mock")
}

pub(crate) fn schema() -> Value {
    json!({"type": "object", "additionalProperties": false,
        "required": ["category", "priority", "summary", "evidence", "needs_human"],
        "properties": {
            "category": {"type": "string", "enum": ["billing", "shipping", "technical", "other"]},
            "priority": {"type": "integer", "minimum": 1, "maximum": 4},
            "summary": {"type": "string"},
            "evidence": {"type": "string"},
            "needs_human": {"type": "boolean"}}})
}

/// A request for a triage of [`TICKET`], with a cap of 1,000 tokens.
pub(crate) fn request(dialect: Dialect, model: &str) -> Value {
    let mut body = plain(dialect, model);
    match dialect {
        Dialect::OpenAi => {
            body["response_format"] = json!({"type": "json_schema",
                "json_schema": {"name": "triage", "strict": true, "schema": schema()}});
        }
        Dialect::Anthropic => {
            body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema()}});
        }
    }
    body
}

/// A request for prose.
pub(crate) fn plain(dialect: Dialect, model: &str) -> Value {
    let message = json!([{"role": "user", "content": TICKET}]);
    match dialect {
        Dialect::OpenAi => {
            json!({"model": model, "messages": message, "max_completion_tokens": 1000})
        }
        Dialect::Anthropic => json!({"model": model, "messages": message, "max_tokens": 1000}),
    }
}

pub(crate) fn streamed(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    body
}

pub(crate) fn path(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenAi => "/v1/chat/completions",
        Dialect::Anthropic => "/v1/messages?beta=true",
    }
}

/// Sends a request head and body on a new connection.
pub(crate) async fn open(mock: &Mock, method: &str, path: &str, body: &[u8]) -> TcpStream {
    let mut socket = TcpStream::connect(mock.addr()).await.expect("a connection");
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: mock\r\ncontent-type: application/json\r\n\
        authorization: Bearer sk-test\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    socket.write_all(head.as_bytes()).await.expect("written");
    socket.write_all(body).await.expect("written");
    socket
}

/// Reads the response until it ends, or until nothing has come for `patience`.
pub(crate) async fn read(socket: &mut TcpStream, patience: Duration) -> Seen {
    let mut raw = Vec::new();
    let mut reads = 0;
    let mut buffer = vec![0; 64 << 10];
    loop {
        if let Some(seen) = parse(&raw, Ended::Clean, reads)
            && seen.ended == Ended::Clean
        {
            return seen;
        }
        let got = tokio::time::timeout(patience, socket.read(&mut buffer)).await;
        let ended = match got {
            Err(_) => Ended::Quiet,
            Ok(Err(_)) => Ended::Reset,
            Ok(Ok(0)) => Ended::Closed,
            Ok(Ok(size)) => {
                reads += 1;
                raw.extend_from_slice(&buffer[..size]);
                continue;
            }
        };
        let nothing = Seen { status: 0, headers: BTreeMap::new(), body: Vec::new(), ended, reads };
        return parse(&raw, ended, reads).unwrap_or(nothing);
    }
}

/// Reads what has come of a response. `ended` stands where the framing says there is more.
fn parse(raw: &[u8], ended: Ended, reads: usize) -> Option<Seen> {
    let split = raw.windows(4).position(|w| w == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&raw[..split]).expect("an ASCII head");
    let mut lines = head.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let rest = &raw[split + 4..];
    let partial = if ended == Ended::Clean { Ended::Quiet } else { ended };
    let (body, whole) = if let Some(length) = headers.get("content-length") {
        let length: usize = length.parse().expect("a length");
        (rest[..rest.len().min(length)].to_vec(), rest.len() >= length)
    } else {
        dechunk(rest)
    };
    Some(Seen { status, headers, body, ended: if whole { Ended::Clean } else { partial }, reads })
}

fn dechunk(mut rest: &[u8]) -> (Vec<u8>, bool) {
    let mut body = Vec::new();
    loop {
        let Some(line) = rest.windows(2).position(|w| w == b"\r\n") else { return (body, false) };
        let size = std::str::from_utf8(&rest[..line]).expect("a chunk size");
        let size = usize::from_str_radix(size, 16).expect("a chunk size");
        rest = &rest[line + 2..];
        if size == 0 {
            return (body, rest.starts_with(b"\r\n"));
        }
        if rest.len() < size + 2 {
            body.extend_from_slice(&rest[..rest.len().min(size)]);
            return (body, false);
        }
        body.extend_from_slice(&rest[..size]);
        rest = &rest[size + 2..];
    }
}

/// Longer than any answer takes on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// How long to wait for more: not long where silence is what is expected.
fn patience(body: &Value) -> Duration {
    let model = body["model"].as_str().unwrap_or("");
    let silent =
        ["silence", "hang-body", "stream-stall"].iter().any(|name| model.starts_with(name));
    if silent && !model.contains("hold=") { Duration::from_millis(200) } else { PATIENCE }
}

/// Sends one request and reads its response, giving up when nothing more comes.
pub(crate) async fn call(mock: &Mock, method: &str, path: &str, body: &Value) -> Seen {
    let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let mut socket = open(mock, method, path, &bytes).await;
    read(&mut socket, patience(body)).await
}

/// Sends a chat request in a dialect.
pub(crate) async fn ask(mock: &Mock, dialect: Dialect, body: &Value) -> Seen {
    call(mock, "POST", path(dialect), body).await
}

/// The newest entry of the log, once it has ended.
pub(crate) async fn newest(mock: &Mock) -> Entry {
    for _ in 0..2_000 {
        let entry = mock.log().pop().expect("an entry");
        if entry.end != End::Pending {
            return entry;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    mock.log().pop().expect("an entry")
}

/// The reply's text and finish in a whole body.
pub(crate) fn reply(dialect: Dialect, body: &Value) -> (String, Value) {
    let (text, finish) = match dialect {
        Dialect::OpenAi => ("/choices/0/message/content", "/choices/0/finish_reason"),
        Dialect::Anthropic => ("/content/0/text", "/stop_reason"),
    };
    let text = body.pointer(text).and_then(Value::as_str).unwrap_or("").to_owned();
    (text, body.pointer(finish).cloned().unwrap_or(json!("absent")))
}

/// The events of a stream: their `data`, as text, in order. Comments are left out.
pub(crate) fn data(body: &str) -> Vec<String> {
    let body = body.replace("\r\n", "\n");
    body.split("\n\n")
        .filter_map(|event| event.lines().find_map(|l| l.strip_prefix("data: ")))
        .map(str::to_owned)
        .collect()
}

/// A stream folded: its text, finish (null when there is none), and whether it was terminated.
pub(crate) fn fold(dialect: Dialect, body: &str) -> (String, Value, bool) {
    let (mut text, mut finish, mut done) = (String::new(), Value::Null, false);
    for data in data(body) {
        if data == "[DONE]" {
            done = true;
            continue;
        }
        let Ok(event) = serde_json::from_str::<Value>(&data) else { continue };
        done |= event["type"] == "message_stop";
        let (piece, end) = match dialect {
            Dialect::OpenAi => ("/choices/0/delta/content", "/choices/0/finish_reason"),
            Dialect::Anthropic => ("/delta/text", "/delta/stop_reason"),
        };
        text.push_str(event.pointer(piece).and_then(Value::as_str).unwrap_or(""));
        if let Some(end) = event.pointer(end)
            && !end.is_null()
        {
            finish = end.clone();
        }
    }
    (text, finish, done)
}
