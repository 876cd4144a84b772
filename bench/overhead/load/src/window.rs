//! Runs one measured window against one server, and says what it cost.

use crate::cpu;
use crate::http::Connection;
use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;
use tokio::time::sleep_until;

/// A server under load: where it listens, and the process whose CPU is counted.
#[derive(Clone, Copy, Debug)]
pub struct Server {
    /// Port on 127.0.0.1.
    pub port: u16,
    /// Root of its process tree.
    pub pid: u32,
}

/// What to send, and for how long.
#[derive(Debug)]
pub struct Plan {
    /// The whole request, head and body.
    pub request: Vec<u8>,
    /// Connections open at once, each with one request at a time.
    pub connections: usize,
    /// Load before the window that is not counted.
    pub warm_up: Duration,
    /// The window itself.
    pub window: Duration,
}

/// What one window showed. Latencies are sorted, in microseconds.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Requests, or whole streams, that ended well inside the window.
    pub ok: u64,
    /// Those that failed in any way, warm-up included.
    pub failed: u64,
    /// Events of all streams; 0 for plain requests.
    pub events: u64,
    /// CPU time of the server's process tree, in nanoseconds.
    pub cpu: u64,
    /// Length of the window.
    pub wall: Duration,
    /// Whole exchanges.
    pub latencies: Vec<u64>,
    /// To the first byte of each body.
    pub first_bytes: Vec<u64>,
}

impl Outcome {
    /// CPU microseconds a request.
    pub fn cpu_per_request(&self) -> f64 {
        self.cpu as f64 / 1000.0 / self.ok.max(1) as f64
    }
}

/// The value below which `share` of a sorted list lies; 0 for an empty one.
pub fn percentile<T: Copy + Default>(sorted: &[T], share: f64) -> T {
    let last = sorted.len().saturating_sub(1);
    sorted.get((last as f64 * share).round() as usize).copied().unwrap_or_default()
}

/// Sends plain requests on kept-alive connections until the window is over.
pub async fn requests(server: Server, plan: &Plan) -> Outcome {
    let begin = Instant::now() + plan.warm_up;
    let end = begin + plan.window;
    let tally = Rc::new(RefCell::new(Outcome::default()));
    let local = LocalSet::new();
    for _ in 0..plan.connections {
        let (tally, request) = (Rc::clone(&tally), plan.request.clone());
        local.spawn_local(
            async move { one_client(server.port, &request, begin, end, &tally).await },
        );
    }
    let (mut before, mut after) = (0, 0);
    local
        .run_until(async {
            sleep_until(begin.into()).await;
            before = cpu::run_time(server.pid);
            sleep_until(end.into()).await;
            after = cpu::run_time(server.pid);
        })
        .await;
    local.await;
    let mut outcome = tally.take();
    outcome.cpu = after.saturating_sub(before);
    outcome.wall = plan.window;
    outcome.latencies.sort_unstable();
    outcome.first_bytes.sort_unstable();
    outcome
}

async fn one_client(
    port: u16,
    request: &[u8],
    begin: Instant,
    end: Instant,
    tally: &RefCell<Outcome>,
) {
    let Ok(mut connection) = Connection::open(port).await else {
        tally.borrow_mut().failed += 1;
        return;
    };
    // Bounded by `end`, and each call by its own patience.
    while Instant::now() < end {
        let sent = Instant::now();
        let reply = connection.call(request).await;
        let now = Instant::now();
        let mut tally = tally.borrow_mut();
        match reply {
            Ok(reply) if reply.status == 200 => {
                if sent >= begin && now <= end {
                    tally.ok += 1;
                    tally.latencies.push((now - sent).as_micros() as u64);
                    tally.first_bytes.push(reply.first_byte.as_micros() as u64);
                }
            }
            Ok(_) => tally.failed += 1,
            Err(_) => {
                // A broken connection is not reopened: the failure alone makes the run invalid.
                tally.failed += 1;
                return;
            }
        }
    }
}

/// Opens `plan.connections` streams at once and reads each to its end. The CPU counted is that of
/// the whole run, and is divided by the events that arrived.
pub async fn streams(server: Server, plan: &Plan) -> Outcome {
    let tally = Rc::new(RefCell::new(Outcome::default()));
    let local = LocalSet::new();
    let before = cpu::run_time(server.pid);
    let began = Instant::now();
    for _ in 0..plan.connections {
        let (tally, request) = (Rc::clone(&tally), plan.request.clone());
        local.spawn_local(async move { one_stream(server.port, &request, &tally).await });
    }
    local.await;
    let mut outcome = tally.take();
    outcome.wall = began.elapsed();
    outcome.cpu = cpu::run_time(server.pid).saturating_sub(before);
    outcome.latencies.sort_unstable();
    outcome.first_bytes.sort_unstable();
    outcome
}

async fn one_stream(port: u16, request: &[u8], tally: &RefCell<Outcome>) {
    let sent = Instant::now();
    let reply = match Connection::open(port).await {
        Ok(mut connection) => connection.call(request).await,
        Err(refused) => Err(refused),
    };
    let mut tally = tally.borrow_mut();
    match reply {
        Ok(reply) if reply.status == 200 && reply.done => {
            tally.ok += 1;
            tally.events += reply.events;
            tally.latencies.push(sent.elapsed().as_micros() as u64);
            tally.first_bytes.push(reply.first_byte.as_micros() as u64);
        }
        _ => tally.failed += 1,
    }
}
