//! Compares whole requests, and one kind of stream, through one route of the gateway.
//!
//! Every window on the gateway stands between two windows on the reference proxy, so that a change
//! of the machine's mood hits both.

use crate::order::Order;
use crate::report::{Case, Row};
use crate::window::{self, Outcome, Server};

fn cases(order: &Order) -> Vec<Case> {
    vec![
        Case { name: "1 KB, c=64", bytes: 1024, connections: 64, chunks: 0 },
        Case { name: "50 KB, c=64", bytes: 51_200, connections: 64, chunks: 0 },
        Case { name: "1 KB, c=1", bytes: 1024, connections: 1, chunks: 0 },
        Case { name: "50 KB, c=1", bytes: 51_200, connections: 1, chunks: 0 },
        Case { name: "stream, 100 at once", bytes: 1024, connections: 100, chunks: order.chunks },
    ]
}

/// Runs all windows of all cases.
pub async fn run(order: &Order) -> Vec<Row> {
    let mut rows = Vec::new();
    for case in cases(order) {
        rows.push(compare(order, case).await);
    }
    rows
}

/// The windows of one case: reference, gateway, reference, gateway, and so on, reference last.
async fn compare(order: &Order, case: Case) -> Row {
    let mut row =
        Row { case, direct: Outcome::default(), reference: Vec::new(), gateway: Vec::new() };
    row.direct = measure(order, order.upstream, &case).await;
    row.reference.push(measure(order, order.reference, &case).await);
    for round in 1..=order.rounds {
        eprintln!("{}: round {round} of {}", case.name, order.rounds);
        row.gateway.push(measure(order, order.gateway, &case).await);
        row.reference.push(measure(order, order.reference, &case).await);
    }
    row
}

async fn measure(order: &Order, server: Server, case: &Case) -> Outcome {
    let model = match (server.port == order.gateway.port, case.chunks) {
        (true, 0) => "bench".to_owned(),
        (true, _) => "bench-stream".to_owned(),
        (false, 0) => "healthy".to_owned(),
        (false, chunks) => format!("healthy+n={chunks}+gap=10ms"),
    };
    let plan = order.plan(&model, case);
    match case.chunks {
        0 => window::requests(server, &plan).await,
        _ => window::streams(server, &plan).await,
    }
}
