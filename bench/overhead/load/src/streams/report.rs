//! Turns the windows and moments of streams into tables and JSON.

use super::delay::{Delays, Lane};
use super::{LANES, Load};
use crate::report::{between, ratios, spread};
use crate::window::percentile;
use serde_json::{Value, json};
use std::fmt::Write as _;

/// What is measured against a limit, so that the limit stands beside it.
const LIMITS: [Limit; 4] = [
    Limit { load: 0, lane: 0, against: Against::Reference, most: 1.3 },
    Limit { load: 0, lane: 1, against: Against::First, most: 1.1 },
    Limit { load: 0, lane: 3, against: Against::First, most: 1.1 },
    Limit { load: 1, lane: 0, against: Against::Reference, most: 4.0 },
];

struct Limit {
    load: usize,
    lane: usize,
    against: Against,
    most: f64,
}

#[derive(Clone, Copy)]
enum Against {
    /// The mean of the reference's windows around the round.
    Reference,
    /// The first lane's window of the same round.
    First,
}

impl Load {
    /// Each window of a lane against its round.
    fn ratios(&self, lane: usize, against: Against) -> Vec<f64> {
        let yardstick = match against {
            Against::First => self.case.costs(&self.lanes[0]),
            Against::Reference => between(&self.case.costs(&self.reference)),
        };
        ratios(&self.case.costs(&self.lanes[lane]), &yardstick)
    }
}

fn shown(values: &[f64]) -> String {
    let (median, least, greatest) = spread(values);
    format!("{median:.2} [{least:.2}-{greatest:.2}]")
}

/// Both tables, for a reader.
pub fn table(loads: &[Load], delays: &Delays) -> String {
    let mut out = String::new();
    cost_table(&mut out, loads);
    delay_table(&mut out, delays);
    let failed = loads.iter().map(Load::failed).sum::<u64>() + delays.failed;
    let _ = writeln!(out, "\nfailed streams: {failed}");
    out
}

fn cost_table(out: &mut String, loads: &[Load]) {
    out.push_str("CPU µs a content chunk; median [min-max] of the windows\n\n");
    out.push_str("| load | through | CPU | / nginx | / passthrough | limit |\n");
    out.push_str("|---|---|---|---|---|---|\n");
    for (at, load) in loads.iter().enumerate() {
        let cost = shown(&load.case.costs(&load.reference));
        let _ = writeln!(out, "| {} | nginx | {cost} | | | |", load.case.name);
        for (lane, name) in LANES.iter().enumerate() {
            let _ = writeln!(
                out,
                "| {} | {name} | {} | {} | {} | {} |",
                load.case.name,
                shown(&load.case.costs(&load.lanes[lane])),
                shown(&load.ratios(lane, Against::Reference)),
                shown(&load.ratios(lane, Against::First)),
                verdict(at, load, lane),
            );
        }
    }
}

fn delay_table(out: &mut String, delays: &Delays) {
    let Some((direct, through)) = delays.lanes.split_first() else { return };
    out.push_str(
        "\nTime to the first text in ms, and what it is over the direct call of the same round;\n",
    );
    out.push_str("median [10th-90th percentile]\n\n");
    out.push_str("| through | first byte | first text | added |\n|---|---|---|---|\n");
    let row = |lane: &Lane, added: &str| {
        let bodies = tenths(lane.moments.iter().map(|moment| moment.body).collect());
        let texts = tenths(lane.moments.iter().map(|moment| moment.text).collect());
        format!("| {} | {bodies} | {texts} | {added} |\n", lane.name)
    };
    out.push_str(&row(direct, ""));
    for lane in through {
        out.push_str(&row(lane, &tenths(added(lane, direct))));
    }
}

fn verdict(at: usize, load: &Load, lane: usize) -> String {
    let Some(limit) = LIMITS.iter().find(|limit| limit.load == at && limit.lane == lane) else {
        return String::new();
    };
    let seen = spread(&load.ratios(lane, limit.against)).0;
    let of = match limit.against {
        Against::Reference => "nginx",
        Against::First => "passthrough",
    };
    let word = if seen <= limit.most { "met" } else { "not met" };
    format!("{} of {of}: {word}", limit.most)
}

fn added(lane: &Lane, direct: &Lane) -> Vec<f64> {
    lane.moments.iter().zip(&direct.moments).map(|(own, other)| own.text - other.text).collect()
}

fn tenths(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    let at = |share| percentile(&values, share);
    format!("{:.2} [{:.2}-{:.2}]", at(0.5), at(0.1), at(0.9))
}

/// The same for a program: every window, every moment.
pub fn json(loads: &[Load], delays: &Delays) -> String {
    let loads: Vec<Value> = loads.iter().map(load_json).collect();
    let delays: Vec<Value> = delays
        .lanes
        .iter()
        .map(|lane| {
            let texts: Vec<f64> = lane.moments.iter().map(|moment| moment.text).collect();
            json!({ "name": lane.name, "first_text_ms": texts })
        })
        .collect();
    let whole = json!({
        "unit": "CPU microseconds of the process tree per content chunk of a stream",
        "loads": loads,
        "first_text": delays,
    });
    format!("{whole:#}\n")
}

fn load_json(load: &Load) -> Value {
    let lanes: Vec<Value> = LANES
        .iter()
        .zip(&load.lanes)
        .map(|(name, windows)| json!({ "name": name, "cpu_us": load.case.costs(windows) }))
        .collect();
    json!({
        "name": load.case.name,
        "connections": load.case.connections,
        "chunks": load.case.chunks,
        "nginx_cpu_us": load.case.costs(&load.reference),
        "lanes": lanes,
    })
}
