//! The accept loop and its connections.

use std::net::SocketAddr;
use std::sync::Arc;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Settings;
use crate::reel::Verdict;
use crate::stage::Stage;

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) stage: Arc<Stage>,
    pub(crate) addr: SocketAddr,
    tasks: TaskTracker,
    stop: CancellationToken,
}

impl Server {
    pub(crate) async fn start(settings: Settings) -> std::io::Result<Self> {
        let listener = TcpListener::bind(settings.listen).await?;
        let addr = listener.local_addr()?;
        let stop = CancellationToken::new();
        let stage = Arc::new(Stage::new(settings, stop.clone()));
        let tasks = TaskTracker::new();
        tasks.spawn(accept(listener, Arc::clone(&stage), tasks.clone()));
        Ok(Self { stage, addr, tasks, stop })
    }

    /// Closes the listener and every connection, and waits until all are closed.
    pub(crate) async fn stop(&self) {
        self.hang_up();
        self.tasks.close();
        self.tasks.wait().await;
    }

    fn hang_up(&self) {
        self.stage.log.stopping();
        self.stop.cancel();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.hang_up();
    }
}

async fn accept(listener: TcpListener, stage: Arc<Stage>, tasks: TaskTracker) {
    let stop = stage.stop.clone();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        // An error here is the client's (it hung up in the queue) or a lack of descriptors;
        // yielding lets connections close before the next try.
        let Ok((socket, _)) = accepted else {
            tokio::task::yield_now().await;
            continue;
        };
        // Failing to set it costs speed only.
        let _ = socket.set_nodelay(true);
        tasks.spawn(connection(socket, Arc::clone(&stage)));
    }
}

/// Serves one connection to its end. Dropped when the mock stops: the socket closes at once.
async fn connection(socket: TcpStream, stage: Arc<Stage>) {
    let verdict = Verdict::default();
    let stop = stage.stop.clone();
    // Boxed because `poll_without_shutdown` wants a future that can move.
    let service =
        service_fn(|request| Box::pin(Arc::clone(&stage).answer(request, verdict.clone())));
    // Without half-close, hyper reads while a response is pending and so sees a client hang up
    // at once; it then drops the response, and the log entry's pen notes it.
    let mut connection =
        http1::Builder::new().half_close(false).serve_connection(TokioIo::new(socket), service);
    let served = std::future::poll_fn(|cx| connection.poll_without_shutdown(cx));
    let Some(_ended) = stop.run_until_cancelled(served).await else { return };
    let socket = connection.into_parts().io.into_inner();
    if verdict.is_reset() {
        // With zero linger, closing sends RST instead of FIN. Failing to set it leaves a FIN.
        let _ = socket.set_zero_linger();
    }
}
