//! A provider that plays a list of exchanges in order, and notes what it was asked.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backstay_wire::Dialect;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// One request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Heard {
    pub at: Instant,
    pub body: Value,
    /// Requests this connection had carried before.
    pub before: usize,
}

/// Runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Played {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<Heard>>>,
    said: Arc<AtomicUsize>,
    _tasks: JoinSet<()>,
}

impl Played {
    /// Plays `exchanges`, one a request, over all connections; the last one for ever.
    ///
    /// An exchange is `{"status", "headers", "body"}`, or `{"transport": WORD}`: the connection ends
    /// after the request, without a byte; or `{"sse": {"http_status", "transport": STEPS}}`.
    pub(crate) async fn start(exchanges: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let (heard, said) = (Arc::<Mutex<Vec<Heard>>>::default(), Arc::<AtomicUsize>::default());
        let play = Play {
            exchanges: exchanges.into(),
            heard: Arc::clone(&heard),
            said: Arc::clone(&said),
        };
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, play));
        Self { address, heard, said, _tasks: tasks }
    }

    /// What it was asked so far.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().clone()
    }

    /// Steps of streams it wrote so far, over all requests.
    pub(crate) fn said(&self) -> usize {
        self.said.load(Ordering::Relaxed)
    }

    /// Its table in a config.
    pub(crate) fn provider(&self, name: &str) -> String {
        self.provider_in(name, Dialect::OpenaiChat)
    }

    /// The same for a provider of this dialect.
    pub(crate) fn provider_in(&self, name: &str, dialect: Dialect) -> String {
        let below = if dialect == Dialect::OpenaiChat { "/v1" } else { "" };
        let (address, dialect) = (self.address, dialect.name());
        format!(
            "[providers.{name}]\ndialect = \"{dialect}\"\nbase_url = \"http://{address}{below}\"\n\
             auth = \"none\"\n"
        )
    }
}

/// What its connections share.
#[derive(Clone)]
struct Play {
    exchanges: Arc<[Value]>,
    heard: Arc<Mutex<Vec<Heard>>>,
    said: Arc<AtomicUsize>,
}

async fn accept(listener: TcpListener, shared: Play) {
    let mut tasks = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        tasks.spawn(serve(socket, shared.clone()));
    }
}

async fn serve(mut socket: TcpStream, shared: Play) {
    let Play { exchanges, heard, said } = shared;
    let mut came = Vec::new();
    for before in 0.. {
        let Some(body) = request(&mut socket, &mut came).await else { return };
        let turn = {
            let mut heard = heard.lock();
            heard.push(Heard { at: Instant::now(), body, before });
            heard.len() - 1
        };
        let Some(exchange) = exchanges.get(turn).or(exchanges.last()) else { return };
        if exchange.get("transport").is_some() {
            return;
        }
        if let Some(stream) = exchange.get("sse") {
            if play(&mut socket, stream, &said).await.is_none() {
                return;
            }
            continue;
        }
        if socket.write_all(&response(exchange)).await.is_err() {
            return;
        }
    }
}

/// The body of the next request; `None`: the connection ended.
async fn request(socket: &mut TcpStream, came: &mut Vec<u8>) -> Option<Value> {
    let mut buffer = vec![0; 16 << 10];
    loop {
        if let Some(end) = memchr::memmem::find(came, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&came[..end]).to_ascii_lowercase();
            let length = head.split("content-length:").nth(1)?.split("\r\n").next()?;
            let whole = end + 4 + length.trim().parse::<usize>().ok()?;
            if came.len() >= whole {
                let body = serde_json::from_slice(&came[end + 4..whole]).unwrap_or_default();
                came.drain(..whole);
                return Some(body);
            }
        }
        match socket.read(&mut buffer).await {
            Ok(size @ 1..) => came.extend_from_slice(&buffer[..size]),
            _ => return None,
        }
    }
}

/// So that two steps are two reads.
const SETTLE: Duration = Duration::from_millis(2);

/// Plays the steps of a stream. `None`: the connection is over.
async fn play(socket: &mut TcpStream, stream: &Value, said: &AtomicUsize) -> Option<()> {
    let status = stream["http_status"].as_u64().unwrap_or(200);
    let kind = "content-type: text/event-stream\r\ntransfer-encoding: chunked";
    socket.write_all(format!("HTTP/1.1 {status} Said\r\n{kind}\r\n\r\n").as_bytes()).await.ok()?;
    for step in stream["transport"].as_array().expect("steps") {
        if let Some(wait) = step["wait_ms"].as_u64() {
            // Whoever has hung up is not waited for.
            let closed = tokio::time::timeout(Duration::from_millis(wait), socket.read_u8()).await;
            if closed.is_ok() {
                return None;
            }
        } else if let Some(how) = step["close"].as_str() {
            if how == "clean" {
                return socket.write_all(b"0\r\n\r\n").await.ok();
            }
            tokio::time::sleep(SETTLE).await;
            socket.set_zero_linger().ok()?;
            return None;
        } else {
            let bytes = bytes(step);
            let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
            chunk.extend_from_slice(&bytes);
            chunk.extend_from_slice(b"\r\n");
            socket.write_all(&chunk).await.ok()?;
            said.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(SETTLE).await;
        }
    }
    // Nothing was said of an end: the stream hangs until the other side closes it.
    while socket.read_u8().await.is_ok() {}
    None
}

/// The bytes of a step of text or of hex digits.
pub(super) fn bytes(step: &Value) -> Vec<u8> {
    if let Some(text) = step["text"].as_str() {
        return text.as_bytes().to_vec();
    }
    let digits: Vec<u8> = step["hex"].as_str().expect("a step that is known").bytes().collect();
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a digit");
    let byte = |pair: &[u8]| u8::try_from(digit(pair[0]) * 16 + digit(pair[1])).expect("a byte");
    digits.chunks(2).map(byte).collect()
}

fn response(exchange: &Value) -> Vec<u8> {
    let status = exchange["status"].as_u64().expect("a status");
    let body = exchange["body"].to_string();
    let mut head = format!("HTTP/1.1 {status} Said\r\ncontent-length: {}\r\n", body.len());
    let headers = exchange["headers"].as_object();
    for (name, value) in headers.into_iter().flatten() {
        let _ = write!(head, "{name}: {}\r\n", value.as_str().expect("a header"));
    }
    head.push_str("\r\n");
    head.push_str(&body);
    head.into_bytes()
}
