//! Measures what each mode adds to the time to the first text, call by call against the upstream itself.
//!
//! Each lane has one kept-alive connection, whose first call is not counted.

use super::turn;
use crate::http::{Connection, Reply};
use crate::order::{self, Order};
use crate::report::Case;
use crate::window::Server;

/// Chunks of a stream here, of 12 bytes or three tokens each: 300 tokens, 5 ms apart.
const CHUNKS: u64 = 100;
const TEXT_BYTES: u64 = 1200;
const MODEL: &str = "healthy+n=100+gap=5ms+size=1200";

/// The routes; `run` names them in the gateway's configuration.
const ROUTES: [&str; 7] = [
    "passthrough",
    "gate",
    "gate-pace-32",
    "windowed-64",
    "windowed-256",
    "windowed-256-100ms",
    "buffered",
];

/// Calls of each lane for a round of CPU windows.
const CALLS: u32 = 5;

/// Milliseconds from the request on.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// To the first byte of the body.
    pub body: f64,
    /// To the first text.
    pub text: f64,
}

/// One way to the upstream.
#[derive(Debug)]
pub struct Lane {
    /// As printed.
    pub name: &'static str,
    /// In the order of the rounds; every lane has as many.
    pub moments: Vec<Moment>,
}

/// What was seen of the time to the first text.
#[derive(Debug, Default)]
pub struct Delays {
    /// The upstream itself first, then nginx, then the routes.
    pub lanes: Vec<Lane>,
    /// Calls that failed: with any, the figures do not count.
    pub failed: u64,
}

/// Calls every lane once a round.
pub async fn run(order: &Order) -> Delays {
    let case = Case { name: "first text", bytes: 1024, connections: 1, chunks: CHUNKS };
    let gateway = ROUTES.map(|route| (route, order.gateway, route));
    let ways: Vec<(&'static str, Server, &str)> =
        [("direct", order.upstream, MODEL), ("nginx", order.reference, MODEL)]
            .into_iter()
            .chain(gateway)
            .collect();
    let mut delays = Delays::default();
    let mut open = Vec::new();
    for (name, server, model) in ways {
        let Ok(connection) = Connection::open(server.port).await else {
            delays.failed += 1;
            return delays;
        };
        open.push((connection, order::request(model, &case)));
        delays.lanes.push(Lane { name, moments: Vec::new() });
    }
    let rounds = order.rounds * CALLS;
    for round in 0..=rounds {
        eprintln!("first text: round {round} of {rounds}");
        for step in 0..open.len() {
            let lane = turn(round, step, open.len());
            let (connection, request) = &mut open[lane];
            let reply = connection.call(request).await.ok();
            let Some(moment) = reply.and_then(|reply| moment(&reply)) else {
                delays.failed += 1;
                return delays; // a lane with a call less would shift the pairs
            };
            if round > 0 {
                delays.lanes[lane].moments.push(moment);
            }
        }
    }
    delays
}

fn moment(reply: &Reply) -> Option<Moment> {
    let text = reply.first_text?;
    // Not by events: what was held may come in fewer.
    let whole = reply.status == 200 && reply.done && reply.bytes > TEXT_BYTES;
    let millis = |time: std::time::Duration| time.as_secs_f64() * 1000.0;
    whole.then(|| Moment { body: millis(reply.first_byte), text: millis(text) })
}
