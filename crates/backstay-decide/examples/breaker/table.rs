//! The tables of docs/breaker.md, from fixed seeds: the same on every run.

use std::fmt::Write as _;
use std::time::Duration;

use backstay_decide::breaker::{Limits, Rules, Separation};

use crate::simulate::{self, Mixed, Traffic};

/// How much is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Effort {
    /// Days of each row of calm traffic.
    pub(crate) days: u32,
    /// Outages of each row, of which the median is told; odd.
    pub(crate) trials: u32,
}

/// The rules that are compared, by name.
pub(crate) fn rules() -> [(&'static str, Limits); 4] {
    let least = Limits { min_calls: 20, ..Limits::COMBINED };
    [
        ("over 15 % (S1)", Limits::COMBINED),
        ("and 20 calls", least),
        ("and surely", Limits { z: 1.28, ..least }),
        ("the default", Limits::AVAILABILITY),
    ]
}

const RATES: [f64; 3] = [0.2, 1.0, 5.0];

/// Openings a day of each rule where `failing` of the calls fail all the time.
pub(crate) fn false_openings(traffic: Traffic, effort: Effort) -> [f64; 4] {
    let length = Duration::from_hours(24) * effort.days;
    rules().map(|(_, limits)| {
        f64::from(simulate::openings(&limits, traffic, length, 7)) / f64::from(effort.days)
    })
}

/// Seconds each rule takes to open when `failing` of the calls begin to fail. `None`: over an hour.
pub(crate) fn times_to_open(rate: f64, failing: f64, effort: Effort) -> [Option<f64>; 4] {
    let (normal, outage) = (Traffic { rate, failing: 0.01 }, Traffic { rate, failing });
    rules().map(|(_, limits)| {
        let time = simulate::time_to_open(&limits, (normal, outage), effort.trials, 11);
        time.map(|time| time.as_secs_f64())
    })
}

/// All tables.
pub(crate) fn all(effort: Effort) -> String {
    format!("{}\n{}\n{}", false_table(effort), time_table(effort), planes_table(effort))
}

fn head(first: &str) -> String {
    let names = rules().map(|(name, _)| name);
    format!("| {first} | {} |\n|---|---|---|---|---|\n", names.join(" | "))
}

fn false_table(effort: Effort) -> String {
    let mut out = head("openings a day, nothing being wrong");
    for rate in RATES {
        for failing in [0.02, 0.05, 0.08, 0.10] {
            let cells =
                false_openings(Traffic { rate, failing }, effort).map(|n| format!("{n:.1}"));
            let _ = writeln!(
                out,
                "| {rate} calls/s, {:.0} % fail | {} |",
                failing * 100.0,
                cells.join(" | ")
            );
        }
    }
    out
}

fn time_table(effort: Effort) -> String {
    let mut out = head("seconds to open, median");
    for failing in [1.0, 0.5, 0.3] {
        for rate in RATES {
            let cells = times_to_open(rate, failing, effort).map(|time| {
                time.map_or_else(|| "over an hour".to_owned(), |time| format!("{time:.1}"))
            });
            let _ = writeln!(
                out,
                "| {rate} calls/s, {:.0} % fail | {} |",
                failing * 100.0,
                cells.join(" | ")
            );
        }
    }
    out
}

fn planes_table(effort: Effort) -> String {
    let combined = Rules { separation: Separation::Combined, ..Rules::DEFAULT };
    let rows = [
        (
            "1 % 5xx, 5 % 429, 6 % bad answers",
            Mixed { rate: 1.0, down: 0.01, throttled: 0.05, bad: 0.06 },
        ),
        (
            "1 % 5xx, 1 % 429, 60 % bad answers",
            Mixed { rate: 1.0, down: 0.01, throttled: 0.01, bad: 0.6 },
        ),
        ("50 % 5xx", Mixed { rate: 1.0, down: 0.5, throttled: 0.0, bad: 0.0 }),
    ];
    let mut out = String::from(
        "| one call a second for a schema | separate: openings a day | turned away | combined (S1): openings a day | turned away |\n|---|---|---|---|---|\n",
    );
    let length = Duration::from_hours(24) * effort.days;
    for (name, mixed) in rows {
        let cells = [Rules::DEFAULT, combined].map(|rules| {
            let days = simulate::days(&rules, mixed, length, 13);
            let openings = f64::from(days.openings) / f64::from(effort.days);
            let share = f64::from(days.turned_away) / f64::from(days.calls) * 100.0;
            format!("{openings:.1} | {share:.1} %")
        });
        let _ = writeln!(out, "| {name} | {} |", cells.join(" | "));
    }
    out
}
