//! A provider that plays a list of exchanges in order, and notes what it was asked.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use backstay_wire::Dialect;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// One request as it came.
#[derive(Clone, Debug)]
pub(super) struct Heard {
    pub at: Instant,
    pub body: Value,
    /// Requests this connection had carried before.
    pub before: usize,
}

/// Runs until it is dropped.
#[derive(Debug)]
pub(super) struct Played {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<Heard>>>,
    _tasks: JoinSet<()>,
}

impl Played {
    /// Plays `exchanges`, one a request, over all connections; the last one for ever.
    ///
    /// An exchange is `{"status", "headers", "body"}`, or `{"transport": WORD}`: the connection ends
    /// after the request, without a byte.
    pub(super) async fn start(exchanges: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let heard = Arc::<Mutex<Vec<Heard>>>::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::from(exchanges), Arc::clone(&heard)));
        Self { address, heard, _tasks: tasks }
    }

    /// What it was asked so far.
    pub(super) fn heard(&self) -> Vec<Heard> {
        self.heard.lock().clone()
    }

    /// Its table in a config.
    pub(super) fn provider(&self, name: &str) -> String {
        self.provider_in(name, Dialect::OpenaiChat)
    }

    /// The same for a provider of this dialect.
    pub(super) fn provider_in(&self, name: &str, dialect: Dialect) -> String {
        let below = if dialect == Dialect::OpenaiChat { "/v1" } else { "" };
        let (address, dialect) = (self.address, dialect.name());
        format!(
            "[providers.{name}]\ndialect = \"{dialect}\"\nbase_url = \"http://{address}{below}\"\n\
             auth = \"none\"\n"
        )
    }
}

async fn accept(listener: TcpListener, exchanges: Arc<[Value]>, heard: Arc<Mutex<Vec<Heard>>>) {
    let mut tasks = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        tasks.spawn(serve(socket, Arc::clone(&exchanges), Arc::clone(&heard)));
    }
}

async fn serve(mut socket: TcpStream, exchanges: Arc<[Value]>, heard: Arc<Mutex<Vec<Heard>>>) {
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
