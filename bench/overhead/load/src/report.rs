//! Turns windows into ratios, and ratios into a table and JSON.

use crate::window::{Outcome, percentile};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// One kind of load.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// As printed.
    pub name: &'static str,
    /// Size of the request's body.
    pub bytes: usize,
    /// Connections at once.
    pub connections: usize,
    /// Content chunks in a streamed reply; 0 asks for a plain one.
    pub chunks: u64,
}

impl Case {
    /// CPU microseconds a request, or a content chunk of a stream.
    pub fn cost(&self, window: &Outcome) -> f64 {
        window.cpu_per_request() / self.chunks.max(1) as f64
    }

    /// `cost` of each.
    pub fn costs(&self, windows: &[Outcome]) -> Vec<f64> {
        windows.iter().map(|window| self.cost(window)).collect()
    }

    /// Requests that failed in a window. Streams with fewer events than chunks count as one.
    pub fn failed(&self, window: &Outcome) -> u64 {
        let short = window.ok == 0 || window.events < window.ok * self.chunks;
        window.failed + u64::from(short)
    }
}

/// All windows of one case. `reference` has one more than `gateway`.
#[derive(Debug)]
pub struct Row {
    /// The load.
    pub case: Case,
    /// The upstream without a proxy.
    pub direct: Outcome,
    /// Window i and i + 1 stand around `gateway[i]`.
    pub reference: Vec<Outcome>,
    /// The gateway's windows in the order run.
    pub gateway: Vec<Outcome>,
}

impl Row {
    /// Requests that failed anywhere. A stream with fewer events than chunks counts as failed.
    pub fn failed(&self) -> u64 {
        let windows = self.reference.iter().chain(&self.gateway).chain([&self.direct]);
        windows.map(|window| self.case.failed(window)).sum()
    }

    /// Each gateway window against the two reference windows around it.
    fn ratios(&self) -> Vec<f64> {
        ratios(&self.case.costs(&self.gateway), &between(&self.case.costs(&self.reference)))
    }
}

/// The mean of each two neighbours: one less than there are values.
pub fn between(values: &[f64]) -> Vec<f64> {
    values.windows(2).map(|around| f64::midpoint(around[0], around[1])).collect()
}

/// Each value by the other of its place; as many as the shorter list has.
pub fn ratios(own: &[f64], others: &[f64]) -> Vec<f64> {
    own.iter().zip(others).map(|(own, other)| own / other.max(f64::MIN_POSITIVE)).collect()
}

/// Median, least and greatest.
pub fn spread(values: &[f64]) -> (f64, f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    let median = match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    };
    (median, sorted.first().copied().unwrap_or(0.0), sorted.last().copied().unwrap_or(0.0))
}

fn millis(windows: &[Outcome], share: f64, of: fn(&Outcome) -> &Vec<u64>) -> f64 {
    let values: Vec<f64> =
        windows.iter().map(|w| percentile(of(w), share) as f64 / 1000.0).collect();
    spread(&values).0
}

fn latencies(window: &Outcome) -> &Vec<u64> {
    &window.latencies
}

fn first_bytes(window: &Outcome) -> &Vec<u64> {
    &window.first_bytes
}

/// The whole result for a reader.
pub fn table(rows: &[Row], idle_rss: u64, end_rss: u64, binary: u64) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "CPU µs per request (per content chunk for streams); median [min-max] of the windows\n"
    );
    let _ = writeln!(
        out,
        "| load | nginx | gateway | gateway / nginx | requests a second, nginx / gateway |"
    );
    let _ = writeln!(out, "|---|---|---|---|---|");
    for row in rows {
        let (reference, own) =
            (spread(&row.case.costs(&row.reference)), spread(&row.case.costs(&row.gateway)));
        let ratio = spread(&row.ratios());
        let _ = writeln!(
            out,
            "| {} | {:.1} [{:.1}-{:.1}] | {:.1} [{:.1}-{:.1}] | {:.2} [{:.2}-{:.2}] | {:.0} / {:.0} |",
            row.case.name,
            reference.0,
            reference.1,
            reference.2,
            own.0,
            own.1,
            own.2,
            ratio.0,
            ratio.1,
            ratio.2,
            rate(&row.reference),
            rate(&row.gateway),
        );
    }
    let _ = writeln!(
        out,
        "\nLatency in ms, p50 / p99 (streams: to the first byte); medians of the windows\n"
    );
    let _ = writeln!(out, "| load | direct | nginx | gateway |");
    let _ = writeln!(out, "|---|---|---|---|");
    for row in rows {
        let of = if row.case.chunks > 0 { first_bytes } else { latencies };
        let pair =
            |w: &[Outcome]| format!("{:.3} / {:.3}", millis(w, 0.5, of), millis(w, 0.99, of));
        let direct = pair(std::slice::from_ref(&row.direct));
        let _ = writeln!(
            out,
            "| {} | {direct} | {} | {} |",
            row.case.name,
            pair(&row.reference),
            pair(&row.gateway)
        );
    }
    let failed: u64 = rows.iter().map(Row::failed).sum();
    let megabytes = |bytes: u64| bytes as f64 / 1e6;
    let _ = writeln!(
        out,
        "\nfailed requests: {failed}\nresident memory of the gateway: {:.1} MB idle, {:.1} MB after the run\nstripped binary: {:.1} MB",
        megabytes(idle_rss),
        megabytes(end_rss),
        megabytes(binary),
    );
    out
}

fn rate(windows: &[Outcome]) -> f64 {
    let rates: Vec<f64> =
        windows.iter().map(|w| w.ok as f64 / w.wall.as_secs_f64().max(f64::MIN_POSITIVE)).collect();
    spread(&rates).0
}

/// The same for a program: every window, and the ratios.
pub fn json(rows: &[Row], idle_rss: u64, end_rss: u64, binary: u64) -> String {
    let cases: Vec<Value> = rows.iter().map(case_json).collect();
    let whole = json!({
        "unit": "CPU microseconds of the process tree per request, or per content chunk of a stream",
        "cases": cases,
        "idle_rss_bytes": idle_rss,
        "end_rss_bytes": end_rss,
        "stripped_binary_bytes": binary,
    });
    format!("{whole:#}\n")
}

fn case_json(row: &Row) -> Value {
    let (median, least, greatest) = spread(&row.ratios());
    let windows = |list: &[Outcome]| -> Vec<Value> {
        list.iter()
            .map(|w| {
                json!({
                    "cpu_us": row.case.cost(w),
                    "ok": w.ok,
                    "failed": w.failed,
                    "events": w.events,
                    "wall_ms": w.wall.as_millis() as u64,
                    "p50_us": percentile(&w.latencies, 0.5),
                    "p99_us": percentile(&w.latencies, 0.99),
                    "first_byte_p50_us": percentile(&w.first_bytes, 0.5),
                    "first_byte_p99_us": percentile(&w.first_bytes, 0.99),
                })
            })
            .collect()
    };
    json!({
        "name": row.case.name,
        "request_bytes": row.case.bytes,
        "connections": row.case.connections,
        "chunks": row.case.chunks,
        "ratio": { "median": median, "min": least, "max": greatest },
        "direct": windows(std::slice::from_ref(&row.direct)),
        "nginx": windows(&row.reference),
        "gateway": windows(&row.gateway),
    })
}
