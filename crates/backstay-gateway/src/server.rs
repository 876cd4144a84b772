//! The socket: accepts, limits, answers, drains.
//!
//! A stop comes in three steps: no new connection is accepted and `/health/ready` says so; calls
//! under way go on until they end or the drain time is over; then what is left is cut, which
//! cancels it upstream.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use backstay::attempt::notify::deliver;
use backstay::contract::Contract;
use backstay::engine::Engine;
use backstay::fault::CallError;
use backstay_decide::Local;
use futures_util::FutureExt;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::api;
use crate::auth::Callers;
use crate::body::Sent;
use crate::canned::Worded;
use crate::carry::{Carrier, Carriers};
use crate::config::{Runtime, Server};
use crate::patience::{Patience, REST};
use crate::respond;
use crate::room::{ROOM, Room, WAIT};
use crate::simulate::Simulator;
use crate::stalled::{STALLED, Unstalled};
use crate::turn::{Ticket, Ticketed, Turn};
use crate::workers::Workers;

/// Pause after a failed accept: the process is out of file descriptors, and trying at once again
/// would only burn the processor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How often models are looked at for their retirement.
const DAY: Duration = Duration::from_hours(24);

/// A gateway: the engine with its callers and limits.
#[derive(Debug)]
pub struct Gateway {
    engine: Engine,
    house: Arc<House>,
}

/// What all runtimes of a gateway share.
#[derive(Debug)]
struct House {
    callers: Callers,
    /// `None`: faults cannot be asked for.
    simulator: Option<Arc<dyn Simulator>>,
    server: Server,
    room: Room,
    carriers: Arc<Carriers>,
    draining: AtomicBool,
}

/// A gateway that serves. Dropping it stops it without a drain.
#[derive(Debug)]
pub struct Running {
    address: SocketAddr,
    stop: CancellationToken,
    cut: CancellationToken,
    tasks: TaskTracker,
    gateway: Arc<Gateway>,
    workers: Option<Arc<Workers>>,
}

/// Who serves what is accepted, and until when.
struct Crew {
    gateway: Arc<Gateway>,
    workers: Option<Arc<Workers>>,
    tasks: TaskTracker,
    stop: CancellationToken,
    cut: CancellationToken,
}

impl Gateway {
    /// A gateway in front of `engine`.
    pub fn new(engine: Engine, callers: Callers, server: Server) -> Self {
        // A body of the largest size has to fit.
        let room = Room::new(ROOM.max(server.max_body_bytes.saturating_add(1 << 10)), WAIT);
        let house = House {
            callers,
            simulator: None,
            server,
            room,
            carriers: Carriers::new(),
            draining: AtomicBool::new(false),
        };
        Self { engine, house: Arc::new(house) }
    }

    /// The same gateway, whose developers can ask for faults that `simulator` plays. It has to be set
    /// before the gateway starts.
    #[must_use]
    pub fn with_simulator(mut self, simulator: Arc<dyn Simulator>) -> Self {
        if let Some(house) = Arc::get_mut(&mut self.house) {
            house.simulator = Some(simulator);
        }
        self
    }

    /// Who plays the faults that callers ask for.
    pub(crate) fn simulator(&self) -> Option<&dyn Simulator> {
        self.house.simulator.as_deref()
    }

    /// The same gateway with connections to providers of its own.
    pub(crate) fn with_own_connections(&self) -> Self {
        Self { engine: self.engine.with_own_connections(), house: Arc::clone(&self.house) }
    }

    /// Who carries a call of `contract` on when its caller leaves. `None`: nobody.
    pub(crate) fn carrier(&self, contract: &Contract) -> Option<Carrier> {
        self.house.carriers.of(contract)
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// Who is let in.
    pub fn callers(&self) -> &Callers {
        &self.house.callers
    }

    /// The largest request body, in bytes.
    pub fn max_body(&self) -> u64 {
        self.house.server.max_body_bytes
    }

    /// The memory that request bodies share.
    pub(crate) fn room(&self) -> &Room {
        &self.house.room
    }

    /// Whether it is shutting down.
    pub fn is_draining(&self) -> bool {
        self.house.draining.load(Ordering::Relaxed)
    }

    /// Binds the configured address and serves until [`Running::stop`].
    ///
    /// # Errors
    /// The address cannot be bound.
    pub async fn start(self) -> std::io::Result<Running> {
        let listener = TcpListener::bind(self.house.server.listen).await?;
        let address = listener.local_addr()?;
        let workers = match self.house.server.runtime {
            Runtime::Shared => None,
            Runtime::PerCore => Some(Workers::start(&self)?),
        };
        // Calls that are carried on end as connections do: they are waited for and cut together.
        let Carriers { tasks, cut, .. } = &*self.house.carriers;
        let running = Running {
            address,
            stop: CancellationToken::new(),
            cut: cut.clone(),
            tasks: tasks.clone(),
            gateway: Arc::new(self),
            workers: workers.map(Arc::new),
        };
        running.tasks.spawn(accept(listener, running.crew()));
        let engine = running.gateway.engine.clone();
        running.tasks.spawn(tell_operators(engine, running.stop.clone()));
        Ok(running)
    }
}

impl Running {
    fn crew(&self) -> Crew {
        Crew {
            gateway: Arc::clone(&self.gateway),
            workers: self.workers.clone(),
            tasks: self.tasks.clone(),
            stop: self.stop.clone(),
            cut: self.cut.clone(),
        }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The gateway.
    pub fn gateway(&self) -> &Gateway {
        &self.gateway
    }

    /// Stops: at most the configured drain time for calls under way, then cuts what is left.
    /// Returns whether all ended by themselves.
    pub async fn stop(self) -> Drained {
        self.gateway.house.draining.store(true, Ordering::Relaxed);
        self.stop.cancel();
        self.tasks.close();
        let drain = self.gateway.house.server.drain;
        let drained = tokio::time::timeout(drain, self.tasks.wait()).await.is_ok();
        self.cut.cancel();
        if !drained {
            let _ = tokio::time::timeout(Duration::from_secs(1), self.tasks.wait()).await;
        }
        let log = self.gateway.engine.call_log().clone();
        let _ = tokio::task::spawn_blocking(move || log.flush()).await;
        if drained { Drained::Whole } else { Drained::Cut }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.cancel();
        self.cut.cancel();
    }
}

/// How a stop went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Every call under way ended by itself.
    Whole,
    /// Some were cut at the end of the drain time.
    Cut,
}

/// Delivers alerts, and looks once a day for models about to be retired, until the stop. An alert on
/// its way then is lost; the log has it.
async fn tell_operators(engine: Engine, stop: CancellationToken) {
    let mut delivery = std::pin::pin!(deliver(&engine));
    loop {
        engine.tell_retirements();
        tokio::select! {
            () = stop.cancelled() => return,
            () = &mut delivery => return,
            () = tokio::time::sleep(DAY) => {}
        }
    }
}

async fn accept(listener: TcpListener, crew: Crew) {
    let most = crew.gateway.house.server.max_connections;
    let most = usize::try_from(most).unwrap_or(Semaphore::MAX_PERMITS);
    let places = Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS)));
    loop {
        // A cancelled accept loses nothing: the connection stays in the kernel's queue.
        let place = tokio::select! {
            () = crew.stop.cancelled() => return,
            place = Arc::clone(&places).acquire_owned() => place,
        };
        let Ok(place) = place else { return };
        let accepted = tokio::select! {
            () = crew.stop.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        let served = accepted.and_then(|(socket, _)| crew.serve(socket, place));
        if let Err(error) = served {
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(ACCEPT_PAUSE).await;
        }
    }
}

impl Crew {
    /// Serves `socket` on the runtime at hand, or on that of the worker with the fewest.
    fn serve(&self, socket: TcpStream, place: OwnedSemaphorePermit) -> std::io::Result<()> {
        let (stop, cut) = (self.stop.clone(), self.cut.clone());
        let Some(worker) = self.workers.as_ref().and_then(|workers| workers.idlest()) else {
            let gateway = Arc::clone(&self.gateway);
            self.tasks.spawn(async move {
                connection(socket, gateway, stop, cut).await;
                drop(place);
            });
            return Ok(());
        };
        // A socket belongs to the runtime that watches it, so it is taken off the one that accepted.
        let socket = socket.into_std()?;
        let (gateway, seat) = (worker.gateway(), worker.place());
        let serve = async move {
            match TcpStream::from_std(socket) {
                Ok(socket) => connection(socket, gateway, stop, cut).await,
                Err(error) => tracing::warn!(%error, "a connection could not be accepted"),
            }
            drop((seat, place));
        };
        self.tasks.spawn_on(serve, worker.runtime());
        Ok(())
    }
}

/// Serves one connection until it closes, the drain ends, or the gateway is dropped.
async fn connection(
    socket: TcpStream,
    gateway: Arc<Gateway>,
    stop: CancellationToken,
    cut: CancellationToken,
) {
    // Without it a small answer waits 40 ms for the caller's acknowledgement.
    let _ = socket.set_nodelay(true);
    let limits = &gateway.house.server;
    let mut http = http1::Builder::new();
    // The library's own limit counts the rest before a head to the head, and sets a timer for each
    // request. `patience` has one for each connection.
    http.header_read_timeout(None)
        .max_buf_size(usize::try_from(limits.max_header_bytes).unwrap_or(64 << 10).max(8_192));
    // Up to 100 the library parses on its stack; more costs an allocation a request.
    if limits.max_headers > 100 {
        http.max_headers(usize::try_from(limits.max_headers).unwrap_or(100));
    }
    let served = Arc::clone(&gateway);
    let turn = Arc::new(Turn::default());
    let patience = Patience::new(limits.header_timeout, REST);
    let socket = Worded::new(Unstalled::new(socket, STALLED), Arc::clone(&turn), patience);
    let service = service_fn(move |request| {
        let ticket = Turn::answer(&turn);
        guarded(Arc::clone(&served), request, ticket)
    });
    let socket = TokioIo::new(socket);
    let mut connection = std::pin::pin!(http.serve_connection(socket, service));
    tokio::select! {
        () = cut.cancelled() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
        _ = connection.as_mut() => return,
    }
    tokio::select! {
        () = cut.cancelled() => {}
        _ = connection => {}
    }
}

/// Answers a request; a panic becomes a 500, and the connection lives on.
async fn guarded(
    gateway: Arc<Gateway>,
    request: Request<Incoming>,
    ticket: Ticket,
) -> Result<Response<Ticketed<Sent>>, Infallible> {
    let dialect = api::dialect_of(request.uri().path(), request.headers().get(&api::VERSION));
    let answered = AssertUnwindSafe(api::serve(gateway, request)).catch_unwind().await;
    let response = answered.unwrap_or_else(|_| {
        tracing::error!("a call panicked; please report this");
        let note = "the gateway failed inside; this is a bug of Backstay, please report it";
        respond::failure(dialect, &CallError::local(Local::Internal, note))
    });
    Ok(response.map(|body| Ticketed::new(body, ticket)))
}
