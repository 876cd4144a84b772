//! Compares what two proxies cost in front of the same upstream, in one run.
//!
//! What is compared is CPU time, not requests a second: client, proxies and upstream share the same
//! cores.

mod cpu;
mod http;
mod order;
mod report;
mod requests;
mod streams;
mod window;

use order::{Order, Subject};
use report::Row;
use std::process::ExitCode;

/// What a run shows: the table for a reader, the same for a program, and how much failed.
struct Findings {
    table: String,
    json: String,
    failed: u64,
}

fn main() -> ExitCode {
    let order = match Order::read(std::env::args().skip(1)) {
        Ok(order) => order,
        Err(wrong) => {
            eprintln!("{wrong}; {}", order::USAGE);
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
    let findings = runtime.block_on(findings(&order));
    print!("{}", findings.table);
    if let Some(path) = &order.json
        && let Err(refused) = std::fs::write(path, findings.json)
    {
        eprintln!("{path}: {refused}");
        return ExitCode::FAILURE;
    }
    if findings.failed > 0 {
        eprintln!("{} requests failed: the figures above do not count", findings.failed);
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

async fn findings(order: &Order) -> Findings {
    match order.subject {
        Subject::Requests => {
            let rows = requests::run(order).await;
            let end_rss = cpu::resident(order.gateway.pid);
            Findings {
                table: report::table(&rows, order.idle_rss, end_rss, order.binary),
                json: report::json(&rows, order.idle_rss, end_rss, order.binary),
                failed: rows.iter().map(Row::failed).sum(),
            }
        }
        Subject::Streams => {
            let (loads, delays) = streams::run(order).await;
            Findings {
                table: streams::report::table(&loads, &delays),
                json: streams::report::json(&loads, &delays),
                failed: loads.iter().map(streams::Load::failed).sum::<u64>() + delays.failed,
            }
        }
    }
}
