//! A small HTTP/1.1 client that sees every byte, when it came, and how the connection ended.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

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
    /// 0: no head came.
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    pub ended: Ended,
    /// From the request's first byte to the response's last.
    pub took: Duration,
    /// From the request's first byte to the response's first.
    pub first_byte: Duration,
}

impl Seen {
    pub(crate) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON; null when it is none.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// What the gateway says of its attempts.
    pub(crate) fn attempts(&self) -> usize {
        self.header("x-backstay-attempts").parse().unwrap_or(0)
    }

    /// Requests sent again without being counted, as it says.
    pub(crate) fn resent(&self) -> usize {
        usize::from(self.header("x-backstay-notes").contains("sent again"))
    }
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Line {
    pub socket: TcpStream,
    came: Vec<u8>,
}

/// Longer than any call here takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(12);

impl Line {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).await.expect("a connection to the gateway");
        socket.set_nodelay(true).expect("no delay");
        Self { socket, came: Vec::new() }
    }

    /// Sends a request with its length.
    pub(crate) async fn ask(
        &mut self,
        start: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> std::io::Result<()> {
        let mut head = format!(
            "{start} HTTP/1.1\r\nhost: gateway\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        let mut all = head.into_bytes();
        all.extend_from_slice(body);
        self.socket.write_all(&all).await
    }

    /// Reads one response to its end, or until nothing has come for `patience`.
    pub(crate) async fn read(&mut self, patience: Duration) -> Seen {
        let began = Instant::now();
        let mut first_byte = None;
        let mut buffer = vec![0; 64 << 10];
        loop {
            if let Some((mut seen, used)) = parse(&self.came) {
                self.came.drain(..used);
                seen.took = began.elapsed();
                seen.first_byte = first_byte.unwrap_or_default();
                return seen;
            }
            let got = tokio::time::timeout(patience, self.socket.read(&mut buffer)).await;
            let ended = match got {
                Err(_) => Ended::Quiet,
                Ok(Err(_)) => Ended::Reset,
                Ok(Ok(0)) => Ended::Closed,
                Ok(Ok(size)) => {
                    first_byte.get_or_insert_with(|| began.elapsed());
                    self.came.extend_from_slice(&buffer[..size]);
                    continue;
                }
            };
            let mut seen = so_far(&self.came, ended);
            seen.took = began.elapsed();
            seen.first_byte = first_byte.unwrap_or_default();
            return seen;
        }
    }

    /// Reads until `mark` was seen.
    pub(crate) async fn read_until(&mut self, mark: &str) {
        let mut buffer = vec![0; 64 << 10];
        while memchr::memmem::find(&self.came, mark.as_bytes()).is_none() {
            let size = self.socket.read(&mut buffer).await.expect("bytes");
            assert!(size > 0, "the connection closed before {mark:?}: {:?}", self.so_far());
            self.came.extend_from_slice(&buffer[..size]);
        }
    }

    /// What came and was not read as a response.
    pub(crate) fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.came).into_owned()
    }
}

/// One request on its own connection.
pub(crate) async fn call(
    address: SocketAddr,
    start: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Seen {
    let mut line = Line::open(address).await;
    line.ask(start, headers, body).await.expect("sent");
    line.read(PATIENCE).await
}

struct Head {
    status: u16,
    headers: Vec<(String, String)>,
    length: usize,
}

fn head(raw: &[u8]) -> Option<Head> {
    let length = memchr::memmem::find(raw, b"\r\n\r\n")? + 4;
    let text = String::from_utf8_lossy(&raw[..length]).into_owned();
    let mut lines = text.split("\r\n");
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    Some(Head { status, headers, length })
}

/// A whole response and its length in `raw`.
fn parse(raw: &[u8]) -> Option<(Seen, usize)> {
    let head = head(raw)?;
    let value = |name: &str| {
        let found = head.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.clone())
    };
    let rest = &raw[head.length..];
    let (body, used) = if value("transfer-encoding").is_some_and(|v| v.contains("chunked")) {
        let (body, used, whole) = chunks(rest);
        if !whole {
            return None;
        }
        (body, used)
    } else {
        let length: usize = value("content-length")?.parse().ok()?;
        (rest.get(..length)?.to_vec(), length)
    };
    let seen = Seen {
        status: head.status,
        headers: head.headers,
        body,
        ended: Ended::Clean,
        took: Duration::ZERO,
        first_byte: Duration::ZERO,
    };
    Some((seen, head.length + used))
}

/// The chunks there are, their length, and whether the last one is among them.
fn chunks(raw: &[u8]) -> (Vec<u8>, usize, bool) {
    let mut body = Vec::new();
    let mut at = 0;
    while let Some(line) = memchr::memmem::find(&raw[at..], b"\r\n") {
        let size = String::from_utf8_lossy(&raw[at..at + line]).into_owned();
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else { break };
        let from = at + line + 2;
        let Some(piece) = raw.get(from..from + size) else { break };
        if raw.len() < from + size + 2 {
            break;
        }
        body.extend_from_slice(piece);
        at = from + size + 2;
        if size == 0 {
            return (body, at, true);
        }
    }
    (body, at, false)
}

fn so_far(raw: &[u8], ended: Ended) -> Seen {
    let nothing = Head { status: 0, headers: Vec::new(), length: raw.len() };
    let head = head(raw).unwrap_or(nothing);
    let rest = raw.get(head.length..).unwrap_or_default();
    let chunked = head.headers.iter().any(|(name, _)| name == "transfer-encoding");
    let body = if chunked { chunks(rest).0 } else { rest.to_vec() };
    Seen {
        status: head.status,
        headers: head.headers,
        body,
        ended,
        took: Duration::ZERO,
        first_byte: Duration::ZERO,
    }
}
