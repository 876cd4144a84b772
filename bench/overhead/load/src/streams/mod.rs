//! Compares streams in each of the gateway's modes: CPU a chunk, and the time to the first text.
//!
//! A round is one window of each lane between two windows of the reference proxy; every second round
//! goes through the lanes backwards, so that a machine that slows down favours none.

mod delay;
pub mod report;

pub use delay::Delays;

use crate::order::Order;
use crate::report::Case;
use crate::window::{self, Outcome};

/// Content chunks of a stream without gaps: so many that the call itself costs nothing beside them.
const BURST_CHUNKS: u64 = 5000;

/// Routes whose CPU is measured. `run` names them in the gateway's configuration, each with the
/// ending of a load; the first is what the others are held against.
const LANES: [&str; 5] = ["passthrough", "passthrough-guards", "gate", "gate-guards", "windowed"];

/// One way in which chunks come.
struct Flow {
    case: Case,
    /// Ending of the routes.
    ending: &'static str,
    /// What the mock plays.
    model: String,
}

/// All windows of one flow. `reference` has one more than each lane.
pub struct Load {
    case: Case,
    reference: Vec<Outcome>,
    /// [lane][round]
    lanes: [Vec<Outcome>; LANES.len()],
}

impl Load {
    /// Streams that failed anywhere, or were short.
    pub fn failed(&self) -> u64 {
        let windows = self.lanes.iter().flatten().chain(&self.reference);
        windows.map(|window| self.case.failed(window)).sum()
    }
}

fn flows(order: &Order) -> [Flow; 2] {
    let chunks = order.chunks;
    [
        Flow {
            case: Case { name: "10 ms gaps, 100 streams", bytes: 1024, connections: 100, chunks },
            ending: "gaps",
            model: format!("healthy+n={chunks}+gap=10ms"),
        },
        Flow {
            case: Case {
                name: "bursts, 16 streams",
                bytes: 1024,
                connections: 16,
                chunks: BURST_CHUNKS,
            },
            ending: "bursts",
            model: format!("healthy+n={BURST_CHUNKS}"),
        },
    ]
}

/// Runs all windows, then measures the time to the first text.
pub async fn run(order: &Order) -> (Vec<Load>, Delays) {
    let mut loads = Vec::new();
    for flow in flows(order) {
        loads.push(compare(order, flow).await);
    }
    (loads, delay::run(order).await)
}

async fn compare(order: &Order, flow: Flow) -> Load {
    let reference = order.plan(&flow.model, &flow.case);
    let plans = LANES.map(|lane| order.plan(&format!("{lane}-{}", flow.ending), &flow.case));
    let mut load = Load {
        case: flow.case,
        reference: vec![window::streams(order.reference, &reference).await],
        lanes: Default::default(),
    };
    for round in 0..order.rounds {
        eprintln!("{}: round {} of {}", flow.case.name, round + 1, order.rounds);
        for step in 0..LANES.len() {
            let lane = turn(round, step, LANES.len());
            load.lanes[lane].push(window::streams(order.gateway, &plans[lane]).await);
        }
        load.reference.push(window::streams(order.reference, &reference).await);
    }
    load
}

/// The lane whose turn it is: in order in even rounds, backwards in odd ones.
fn turn(round: u32, step: usize, lanes: usize) -> usize {
    if round.is_multiple_of(2) { step } else { lanes - 1 - step }
}
