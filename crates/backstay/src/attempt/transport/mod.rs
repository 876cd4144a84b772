//! Sends requests to providers over pooled connections: the one place that knows the HTTP client.
//!
//! A dropped response cancels the provider at once: it closes its connection under HTTP/1.1, and
//! resets its stream under HTTP/2, where other calls go on.
//! Redirects are not followed: a base URL comes from config, and only from there.

mod driven;
mod incoming;
mod kept;

use std::collections::HashMap;
use std::error::Error as StdError;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::{Builder, Client};
use hyper_util::rt::TokioTimer;
use parking_lot::Mutex;

use driven::Background;
pub use incoming::Incoming;
use kept::{Kept, Turns};

/// A connection unused for this long is closed: below the 60 s after which common load balancers
/// drop theirs in silence.
const IDLE: Duration = Duration::from_secs(50);

/// Most idle connections kept a host.
const IDLE_PER_HOST: usize = 256;

/// Silence after which an HTTP/2 connection is pinged. Many calls share one, and a dead one would
/// fail each of them by its own timer.
const PING_AFTER: Duration = Duration::from_secs(10);

/// Longest wait for the answer to a ping.
const PING_TIMEOUT: Duration = Duration::from_secs(5);

/// When a silent connection is probed by the system, how often, and how many probes may go
/// unanswered: a peer that vanished is found within a minute under HTTP/1.1 too.
const PROBE_AFTER: Duration = Duration::from_secs(30);
const PROBE_EVERY: Duration = Duration::from_secs(10);
const PROBES: u32 = 3;

type Pooled = Client<WithinTime<HttpsConnector<HttpConnector>>, Full<Bytes>>;

/// The pools of connections, one for each connect limit in use.
#[derive(Clone)]
pub struct Transport {
    connector: HttpsConnector<HttpConnector>,
    pools: Arc<Mutex<HashMap<Duration, Arc<Pooled>>>>,
}

/// Why no response came.
#[derive(Debug, thiserror::Error)]
pub enum SendFault {
    /// No connection: refused, no such host, TLS, or too slow. Nothing was sent.
    #[error("no connection to {host}: {cause}")]
    Connect {
        /// The host and port.
        host: String,
        /// The innermost cause.
        cause: String,
    },
    /// A connection kept from earlier requests broke before the first byte of an answer: the other
    /// side closed it while it lay idle, or as the request came.
    #[error("the kept connection to {host} was closed: {cause}")]
    Stale {
        /// The host and port.
        host: String,
        /// The innermost cause.
        cause: String,
    },
    /// The connection broke before the response began. The provider may have done the work.
    #[error("the connection to {host} broke before the answer: {cause}")]
    Lost {
        /// The host and port.
        host: String,
        /// The innermost cause.
        cause: String,
    },
}

impl Transport {
    /// Pools with nothing in them, and the TLS roots that come with the program.
    ///
    /// # Panics
    /// Never: the built-in TLS provider has the protocol versions asked for.
    pub fn new() -> Self {
        let mut http = HttpConnector::new();
        http.set_nodelay(true);
        http.enforce_http(false);
        http.set_keepalive(Some(PROBE_AFTER));
        http.set_keepalive_interval(Some(PROBE_EVERY));
        http.set_keepalive_retries(Some(PROBES));
        let tls = rustls::crypto::aws_lc_rs::default_provider();
        let connector = hyper_rustls::HttpsConnectorBuilder::new()
            .with_provider_and_webpki_roots(tls)
            .map(|builder| builder.https_or_http().enable_all_versions().wrap_connector(http));
        #[expect(clippy::expect_used, reason = "the provider is built in and has safe defaults")]
        let connector = connector.expect("the built-in TLS provider supports TLS 1.2 and 1.3");
        Self { connector, pools: Arc::default() }
    }

    /// Pools of their own, with the same TLS roots and sessions.
    #[must_use]
    pub fn with_own_pools(&self) -> Self {
        Self { connector: self.connector.clone(), pools: Arc::default() }
    }

    /// Sends `request` and waits for the head of the response. `connect` bounds the wait for a new
    /// connection, name lookup and TLS included; the caller bounds the rest.
    ///
    /// # Errors
    /// [`SendFault::Connect`] when nothing was sent, [`SendFault::Lost`] when something may have
    /// been, [`SendFault::Stale`] when the connection was a kept one.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
        connect: Duration,
    ) -> Result<Response<Incoming>, SendFault> {
        let pool = self.pool(connect);
        let authority = request.uri().authority().cloned();
        pool.request(request).await.map(Incoming::of).map_err(|error| {
            let host = authority.map(|authority| authority.to_string()).unwrap_or_default();
            let cause = innermost(&error);
            if error.is_connect() {
                return SendFault::Connect { host, cause };
            }
            if error.connect_info().is_some_and(Turns::broke_while_kept) {
                return SendFault::Stale { host, cause };
            }
            SendFault::Lost { host, cause }
        })
    }

    fn pool(&self, connect: Duration) -> Arc<Pooled> {
        let mut pools = self.pools.lock();
        if let Some(pool) = pools.get(&connect) {
            return Arc::clone(pool);
        }
        // Limits come from config, so they are few; only many reloads can make more.
        if pools.len() >= 64 {
            pools.clear();
        }
        let connector = WithinTime { inner: self.connector.clone(), limit: connect };
        let pool = Arc::new(pooling().build(connector));
        pools.insert(connect, Arc::clone(&pool));
        pool
    }
}

/// How connections are kept and watched.
fn pooling() -> Builder {
    let mut pooling = Client::builder(Background);
    pooling
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(IDLE_PER_HOST)
        .http2_keep_alive_interval(PING_AFTER)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true);
    pooling
}

impl Default for Transport {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Transport({} pools)", self.pools.lock().len())
    }
}

/// The sentence of the innermost cause: hyper's own layers say only "client error".
pub(crate) fn innermost(error: &dyn StdError) -> String {
    let mut cause = error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

/// A connector that gives up after `limit`, and whose connections know their turns.
#[derive(Clone)]
struct WithinTime<C> {
    inner: C,
    limit: Duration,
}

type Connecting<T> = Pin<Box<dyn Future<Output = Result<T, BoxError>> + Send>>;
type BoxError = Box<dyn StdError + Send + Sync>;

impl<C> tower_service::Service<Uri> for WithinTime<C>
where
    C: tower_service::Service<Uri>,
    C::Error: Into<BoxError>,
    C::Future: Send + 'static,
    C::Response: Send,
{
    type Response = Kept<C::Response>;
    type Error = BoxError;
    type Future = Connecting<Kept<C::Response>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let limit = self.limit;
        let connecting = self.inner.call(uri);
        Box::pin(async move {
            match tokio::time::timeout(limit, connecting).await {
                Ok(done) => done.map(Kept::new).map_err(Into::into),
                Err(_) => Err(format!("no connection within {limit:?}").into()),
            }
        })
    }
}

/// The body of a response to a server that says `answer` and no more, and that server's socket.
#[cfg(test)]
pub(super) async fn answered(answer: &str) -> (Incoming, tokio::net::TcpStream) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let transport = Transport::new();
    let request = Request::get(uri).body(Full::<Bytes>::default()).unwrap();
    let sending = transport.send(request, Duration::from_secs(1));
    let serving = async {
        let (mut socket, _) = listener.accept().await.unwrap();
        assert!(socket.read(&mut vec![0; 4_096]).await.unwrap() > 0);
        socket.write_all(answer.as_bytes()).await.unwrap();
        socket
    };
    let (sent, socket) = tokio::join!(sending, serving);
    (sent.unwrap().into_body(), socket)
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_http2_connection_that_does_not_answer_pings_is_lost_in_fifteen_seconds() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}/", listener.local_addr().unwrap());
        let client = pooling().http2_only(true).build(HttpConnector::new());
        let began = Instant::now();
        let sending = client.request(Request::get(uri).body(Full::<Bytes>::default()).unwrap());
        // The listener's backlog takes the connection; nothing ever reads from it.
        let sent = tokio::time::timeout(Duration::from_mins(2), sending).await;
        assert!(sent.unwrap().is_err());
        assert_eq!(began.elapsed().as_secs(), (PING_AFTER + PING_TIMEOUT).as_secs());
    }
}
