//! A provider that keeps to its limits: so many requests in any window, and a 429 for each one over.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;

const REPLY: &str = r#"{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}],"usage":{"prompt_tokens":20,"completion_tokens":5,"total_tokens":25}}"#;

const REFUSAL: &str =
    r#"{"error":{"message":"Rate limit reached","type":"requests","code":"rate_limit_exceeded"}}"#;

/// What it allows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allows {
    pub requests: usize,
    pub window: Duration,
    /// How long each reply takes.
    pub takes: Duration,
}

/// What it saw.
#[derive(Debug, Default)]
struct Count {
    recent: VecDeque<Instant>,
    answered: usize,
    refused: usize,
}

/// Runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Metered {
    address: SocketAddr,
    count: Arc<Mutex<Count>>,
    _tasks: JoinSet<()>,
}

impl Metered {
    pub(crate) async fn start(allows: Allows) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let count = Arc::new(Mutex::new(Count::default()));
        let mut tasks = JoinSet::new();
        tasks.spawn(accept(listener, Arc::clone(&count), allows));
        Self { address, count, _tasks: tasks }
    }

    /// Requests answered, and answered 429.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let count = self.count.lock();
        (count.answered, count.refused)
    }

    /// Its table in a config, with more lines.
    pub(crate) fn provider(&self, name: &str, more: &str) -> String {
        let base = self.address;
        format!(
            "[providers.{name}]\ndialect = \"openai_chat\"\nbase_url = \"http://{base}/v1\"\n{more}"
        )
    }
}

async fn accept(listener: TcpListener, count: Arc<Mutex<Count>>, allows: Allows) {
    let mut tasks = JoinSet::new();
    while let Ok((mut socket, _)) = listener.accept().await {
        let count = Arc::clone(&count);
        tasks.spawn(async move {
            let mut buffer = vec![0; 64 << 10];
            // Requests here are small: each comes in one piece.
            while let Ok(size @ 1..) = socket.read(&mut buffer).await {
                assert!(size < buffer.len(), "a request of many pieces");
                let is_in = count.lock().take(allows);
                let answer = if is_in {
                    tokio::time::sleep(allows.takes).await;
                    answer("200 OK", REPLY)
                } else {
                    answer("429 Too Many Requests", REFUSAL)
                };
                if socket.write_all(answer.as_bytes()).await.is_err() {
                    return;
                }
            }
        });
    }
}

fn answer(status: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

impl Count {
    fn take(&mut self, allows: Allows) -> bool {
        let now = Instant::now();
        while self.recent.front().is_some_and(|at| now - *at >= allows.window) {
            self.recent.pop_front();
        }
        if self.recent.len() >= allows.requests {
            self.refused += 1;
            return false;
        }
        self.recent.push_back(now);
        self.answered += 1;
        true
    }
}
