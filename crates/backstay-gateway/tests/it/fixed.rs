//! A provider that always says the same, for replies the mock does not give.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backstay_wire::Dialect;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

/// Long enough for a piece to arrive by itself.
const PAUSE: Duration = Duration::from_millis(100);

/// The requests of all connections.
type Heard = Arc<Mutex<Vec<String>>>;

/// Runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Fixed {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
    heard: Heard,
    _tasks: JoinSet<()>,
}

impl Fixed {
    /// Answers every request with `body` and status 200.
    pub(crate) async fn start(body: &str) -> Self {
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        Self::raw(vec![answer]).await
    }

    /// Answers every request with these bytes, with a pause between two pieces.
    pub(crate) async fn raw(pieces: Vec<String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let heard = Heard::default();
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&connections), Arc::clone(&heard), pieces));
        Self { address, connections, heard, _tasks: tasks }
    }

    /// Connections made so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// The last request, head and body.
    pub(crate) async fn last_request(&self) -> String {
        self.heard.lock().await.last().cloned().unwrap_or_default()
    }

    /// Every request so far.
    pub(crate) async fn requests(&self) -> Vec<String> {
        self.heard.lock().await.clone()
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/hook?to=on-call", self.address)
    }

    /// Its table in a config.
    pub(crate) fn provider(&self, name: &str) -> String {
        self.provider_in(name, Dialect::OpenaiChat)
    }

    /// The same for a provider of this dialect.
    pub(crate) fn provider_in(&self, name: &str, dialect: Dialect) -> String {
        let below = match dialect {
            Dialect::OpenaiChat => "/v1",
            Dialect::Anthropic => "",
        };
        let (base, dialect) = (self.address, dialect.name());
        format!(
            "[providers.{name}]\ndialect = \"{dialect}\"\nbase_url = \"http://{base}{below}\"\n\
             auth = \"none\""
        )
    }
}

async fn accept(
    listener: TcpListener,
    connections: Arc<AtomicUsize>,
    heard: Heard,
    pieces: Vec<String>,
) {
    let mut tasks = JoinSet::new();
    while let Ok((mut socket, _)) = listener.accept().await {
        connections.fetch_add(1, Ordering::Relaxed);
        let (pieces, heard) = (pieces.clone(), Arc::clone(&heard));
        tasks.spawn(async move {
            let mut buffer = vec![0; 64 << 10];
            // Requests here are small: each comes in one piece.
            while let Ok(size @ 1..) = socket.read(&mut buffer).await {
                assert!(size < buffer.len(), "a request of many pieces");
                heard.lock().await.push(String::from_utf8_lossy(&buffer[..size]).into_owned());
                for (index, piece) in pieces.iter().enumerate() {
                    if index > 0 {
                        tokio::time::sleep(PAUSE).await;
                    }
                    if socket.write_all(piece.as_bytes()).await.is_err() {
                        return;
                    }
                }
            }
        });
    }
}
