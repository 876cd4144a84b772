//! A model provider that misbehaves on request, over real sockets.
//!
//! The model name picks the behaviour: `healthy`, `status-429+after=7+times=1`,
//! `stream-cut+at=3`. [`behaviours`] lists them all. The mock speaks OpenAI Chat Completions and
//! Anthropic Messages, is deterministic in its seed, and keeps a log of the truth: what was
//! asked, what was sent, and how each call ended.
//!
//! ```
//! # async fn example() -> std::io::Result<()> {
//! use backstay_mock::{Mock, Settings};
//!
//! let mock = Mock::start(Settings::default()).await?;
//! // Point a client at `mock.openai_base()` or `mock.anthropic_base()`, then look at the truth:
//! assert!(mock.log().is_empty());
//! mock.stop().await;
//! # Ok(())
//! # }
//! ```

mod ask;
mod behaviour;
mod clock;
mod content;
mod control;
mod damage;
mod dialect;
mod dice;
mod instance;
mod limits;
mod log;
mod memory;
mod order;
mod plan;
mod prose;
mod reel;
mod said;
mod server;
mod snag;
mod stage;
mod strip;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::OnceLock;

use tokio::net::TcpSocket;

pub use behaviour::{Behaviour, Family, GENERAL_PARAMS, behaviours};
pub use limits::Limit;
pub use log::{End, Entry};

/// A host name that never resolves (RFC 6761 reserves `.invalid`).
pub const UNRESOLVABLE: &str = "backstay-mock.invalid";

/// How a mock is set up.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where to listen. Port 0 takes a free one; the default is 127.0.0.1:0.
    pub listen: SocketAddr,
    /// Seed of every choice. The same seed and the same requests give the same replies.
    pub seed: u64,
    /// Known answers; the first that fits is given.
    pub answers: Vec<Answer>,
    /// Most bytes of a request body kept in the log. 0 keeps none; the default is 64 KiB.
    pub log_bodies: usize,
}

impl Default for Settings {
    fn default() -> Self {
        let listen = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Self { listen, seed: 0, answers: Vec::new(), log_bodies: 64 << 10 }
    }
}

/// The answer a healthy model gives to a message.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Fits when the last user message contains this. Empty: fits always.
    pub contains: String,
    /// The reply; also what the structural behaviours damage.
    pub reply: serde_json::Value,
    /// The reply as text, where it is not to be the compact JSON of `reply`.
    pub text: Option<String>,
}

/// A running mock. Dropped, it stops without waiting.
#[derive(Debug)]
pub struct Mock {
    server: server::Server,
}

impl Mock {
    /// Starts a mock on the current tokio runtime.
    ///
    /// # Errors
    /// When the address cannot be bound.
    pub async fn start(settings: Settings) -> std::io::Result<Self> {
        Ok(Self { server: server::Server::start(settings).await? })
    }

    /// Where it listens.
    pub fn addr(&self) -> SocketAddr {
        self.server.addr
    }

    /// `http://127.0.0.1:PORT`, without a slash at the end.
    pub fn url(&self) -> String {
        format!("http://{}", self.server.addr)
    }

    /// The base URL for an OpenAI client.
    pub fn openai_base(&self) -> String {
        self.url() + "/v1"
    }

    /// The base URL for an Anthropic client.
    pub fn anthropic_base(&self) -> String {
        self.url()
    }

    /// Every call since the last reset, in order of arrival; the newest 20,000. The mock's own
    /// paths (`/_mock/…`) are not in it.
    pub fn log(&self) -> Vec<Entry> {
        self.server.stage.log.entries()
    }

    /// Forgets the log and every count; scripts begin again.
    pub fn reset(&self) {
        self.server.stage.reset();
    }

    /// Makes `model` play these behaviours, one a call; the last repeats. The model `*` is every one
    /// without a script of its own. A step that names no behaviour is answered as an unknown model.
    pub fn script(&self, model: &str, steps: &[&str]) {
        let steps = steps.iter().map(|step| (*step).to_owned()).collect();
        self.server.stage.memory.lock().script(model.to_owned(), steps);
    }

    /// Whether `order` can be played: a behaviour, with parameters.
    ///
    /// # Errors
    /// A sentence that says what is wrong; for an unknown name, with the nearest one.
    pub fn can_play(order: &str) -> Result<(), String> {
        order::Order::read(order).map(|_| ()).map_err(|bad| bad.to_string())
    }

    /// Limits what `model` may be asked in any minute; a limit of nothing takes it away. A request over
    /// it is answered 429, with the time to wait; every reply says what is left.
    pub fn limit(&self, model: &str, limit: Limit) {
        self.server.stage.limits.lock().set(model, limit);
    }

    /// Closes the listener and every connection; returns when all are closed. A response under
    /// way is logged as cut.
    pub async fn stop(&self) {
        self.server.stop().await;
    }
}

/// A loopback address that refuses connections, for as long as the process lives: its port is
/// held by a socket that never listens.
pub fn refused_address() -> SocketAddr {
    static HELD: OnceLock<Option<(TcpSocket, SocketAddr)>> = OnceLock::new();
    let held = HELD.get_or_init(|| {
        let socket = TcpSocket::new_v4().ok()?;
        socket.bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).ok()?;
        let addr = socket.local_addr().ok()?;
        Some((socket, addr))
    });
    // Without a socket to spare, port 1 (tcpmux) is as good as closed everywhere.
    held.as_ref().map_or_else(|| SocketAddr::from((Ipv4Addr::LOCALHOST, 1)), |(_, addr)| *addr)
}
