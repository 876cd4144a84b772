//! Compares what two proxies cost in front of the same upstream, in one run.
//!
//! Every window on the gateway stands between two windows on the reference proxy, so that a change
//! of the machine's mood hits both. What is compared is CPU time, not requests a second: client,
//! proxies and upstream share the same cores.

mod cpu;
mod http;
mod report;
mod window;

use report::{Case, Row};
use std::process::ExitCode;
use std::time::Duration;
use window::{Outcome, Plan, Server};

/// What the command line said.
struct Order {
    upstream: Server,
    reference: Server,
    gateway: Server,
    /// Gateway windows per case, 1 to 50.
    rounds: u32,
    /// Length of one window of plain requests.
    window: Duration,
    /// Content chunks the upstream sends in a stream.
    chunks: u64,
    /// Resident bytes of the gateway before any load.
    idle_rss: u64,
    /// Size of the stripped binary.
    binary: u64,
    /// Where the JSON goes; none prints the table alone.
    json: Option<String>,
}

fn main() -> ExitCode {
    let order = match read_order() {
        Ok(order) => order,
        Err(wrong) => {
            eprintln!(
                "{wrong}; usage: load --upstream PORT:PID --reference PORT:PID --gateway PORT:PID [--rounds N] [--seconds S] [--chunks N] [--binary BYTES] [--json FILE]"
            );
            return ExitCode::from(2);
        }
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(refused) => {
            eprintln!("no runtime: {refused}");
            return ExitCode::FAILURE;
        }
    };
    let rows: Vec<Row> =
        cases(&order).iter().map(|case| runtime.block_on(compare(&order, case))).collect();
    let end_rss = cpu::resident(order.gateway.pid);
    print!("{}", report::table(&rows, order.idle_rss, end_rss, order.binary));
    if let Some(path) = &order.json {
        let text = report::json(&rows, order.idle_rss, end_rss, order.binary);
        if let Err(refused) = std::fs::write(path, text) {
            eprintln!("{path}: {refused}");
            return ExitCode::FAILURE;
        }
    }
    let failed: u64 = rows.iter().map(Row::failed).sum();
    if failed > 0 {
        eprintln!("{failed} requests failed: the figures above do not count");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

fn read_order() -> Result<Order, String> {
    let mut words = std::env::args().skip(1);
    let (mut upstream, mut reference, mut gateway) = (None, None, None);
    let (mut rounds, mut seconds, mut chunks, mut binary, mut json) = (4_u64, 2_u64, 200, 0, None);
    while let Some(name) = words.next() {
        let value = words.next().ok_or_else(|| format!("{name} needs a value"))?;
        match name.as_str() {
            "--upstream" => upstream = Some(server(&value)?),
            "--reference" => reference = Some(server(&value)?),
            "--gateway" => gateway = Some(server(&value)?),
            "--rounds" => rounds = number(&value)?.clamp(1, 50),
            "--seconds" => seconds = number(&value)?.clamp(1, 60),
            "--chunks" => chunks = number(&value)?.max(1),
            "--binary" => binary = number(&value)?,
            "--json" => json = Some(value),
            _ => return Err(format!("unknown option {name}")),
        }
    }
    let gateway = gateway.ok_or("--gateway is missing")?;
    Ok(Order {
        upstream: upstream.ok_or("--upstream is missing")?,
        reference: reference.ok_or("--reference is missing")?,
        gateway,
        rounds: rounds as u32,
        window: Duration::from_secs(seconds),
        chunks,
        idle_rss: cpu::resident(gateway.pid),
        binary,
        json,
    })
}

fn number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{text} is not a number"))
}

fn server(text: &str) -> Result<Server, String> {
    let (port, pid) = text.split_once(':').ok_or_else(|| format!("{text} is not PORT:PID"))?;
    let port = port.parse().map_err(|_| format!("{port} is not a port"))?;
    let pid = pid.parse().map_err(|_| format!("{pid} is not a process id"))?;
    Ok(Server { port, pid })
}

fn cases(order: &Order) -> Vec<Case> {
    vec![
        Case { name: "1 KB, c=64", bytes: 1024, connections: 64, chunks: 0 },
        Case { name: "50 KB, c=64", bytes: 51_200, connections: 64, chunks: 0 },
        Case { name: "1 KB, c=1", bytes: 1024, connections: 1, chunks: 0 },
        Case { name: "50 KB, c=1", bytes: 51_200, connections: 1, chunks: 0 },
        Case { name: "stream, 100 at once", bytes: 1024, connections: 100, chunks: order.chunks },
    ]
}

/// The windows of one case: reference, gateway, reference, gateway, and so on, reference last.
async fn compare(order: &Order, case: &Case) -> Row {
    let mut row =
        Row { case: *case, direct: Outcome::default(), reference: Vec::new(), gateway: Vec::new() };
    row.direct = measure(order, order.upstream, case).await;
    row.reference.push(measure(order, order.reference, case).await);
    for round in 1..=order.rounds {
        eprintln!("{}: round {round} of {}", case.name, order.rounds);
        row.gateway.push(measure(order, order.gateway, case).await);
        row.reference.push(measure(order, order.reference, case).await);
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
    let plan = Plan {
        request: http::request("/v1/chat/completions", &body(&model, case)),
        connections: case.connections,
        warm_up: Duration::from_millis(500),
        window: order.window,
    };
    match case.chunks {
        0 => window::requests(server, &plan).await,
        _ => window::streams(server, &plan).await,
    }
}

/// A chat request of `case.bytes` bytes, filled up with words.
fn body(model: &str, case: &Case) -> String {
    let stream = if case.chunks > 0 {
        "\"stream\":true,\"stream_options\":{\"include_usage\":true},"
    } else {
        ""
    };
    let frame = |filler: &str| {
        format!(
            "{{\"model\":\"{model}\",{stream}\"max_tokens\":256,\"temperature\":0,\"messages\":[\
             {{\"role\":\"system\",\"content\":\"Answer in one line.\"}},\
             {{\"role\":\"user\",\"content\":\"{filler}\"}}]}}"
        )
    };
    let room = case.bytes.saturating_sub(frame("").len());
    let filler: String =
        "The parcel has not arrived and nobody answers. ".chars().cycle().take(room).collect();
    frame(&filler)
}
