//! The demo's table, its judgement, and the calls worth reading.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use backstay::record::{CallLog, Row, Step};
use backstay_mock::Entry;

use super::client::{End, Seen};
use super::tickets::Ticket;
use crate::command::explain::timeline;
use crate::command::report::nearest_rank;
use crate::print;

/// Whether the promise held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Every ticket valid or typed, and the provider's log agrees.
    Good,
    /// Something is wrong; it was printed.
    Bad,
}

/// Calls explained at the end.
const EXPLAINED: usize = 3;

/// Prints everything and judges.
pub(super) fn print(seen: &[Seen], tickets: &[Ticket], log: &[Entry], calls: &CallLog) -> Verdict {
    print::line(&table(seen, tickets));
    let rows: Vec<Row> =
        seen.iter().filter_map(|s| calls.find(&s.call_id).ok().flatten()).collect();
    for row in instructive(&rows) {
        print::line(&format!("\n{}", timeline(row)));
    }
    let wrongs = wrongs(seen, &rows, log);
    if wrongs.is_empty() {
        print::line(&format!(
            "\nok: {} tickets, each ended with a valid answer or a typed failure; the provider's \
             own log agrees ({} requests)",
            seen.len(),
            log.len()
        ));
        return Verdict::Good;
    }
    for wrong in &wrongs {
        print::line(&format!("WRONG: {wrong}"));
    }
    Verdict::Bad
}

fn table(seen: &[Seen], tickets: &[Ticket]) -> String {
    let mut out = vec![String::new()];
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    let mut tiers: BTreeMap<&str, usize> = BTreeMap::new();
    let mut attempts: BTreeMap<usize, usize> = BTreeMap::new();
    for one in seen {
        *outcomes.entry(outcome(one)).or_default() += 1;
        if matches!(one.end, End::Valid(_)) {
            *tiers.entry(&one.tier).or_default() += 1;
        }
        *attempts.entry(one.attempts).or_default() += 1;
    }
    out.push(format!("{:<44} {:>7}", "outcome", "tickets"));
    out.extend(outcomes.iter().map(|(name, count)| format!("{name:<44} {count:>7}")));
    out.push(String::new());
    let tiers = tiers.iter().map(|(tier, count)| format!("tier {tier}: {count}"));
    out.push(format!("answered by   {}", tiers.collect::<Vec<_>>().join(", ")));
    let attempts = attempts.iter().map(|(n, count)| format!("{n}: {count}"));
    out.push(format!("attempts      {}", attempts.collect::<Vec<_>>().join(", ")));
    let mut took: Vec<Duration> = seen.iter().map(|one| one.took).collect();
    took.sort();
    out.push(format!(
        "time          p50 {:.0?}, p95 {:.0?}, longest {:.0?} (deadline 10 s)",
        nearest_rank(&took, 50),
        nearest_rank(&took, 95),
        took.last().copied().unwrap_or_default()
    ));
    out.push(format!("as labelled   {}", labelled(seen, tickets)));
    out.join("\n")
}

fn outcome(one: &Seen) -> String {
    match &one.end {
        End::Valid(_) => format!("valid, {}", one.outcome),
        End::Refused => "refused, with the provider's reason".into(),
        End::Typed(code) => format!("typed failure: {code}"),
        End::Neither(note) => format!("NEITHER: {note}"),
    }
}

/// The share of valid answers whose category is the label's. The mock knows the labels, so this
/// says that nothing was garbled on the way, not that a model is clever.
fn labelled(seen: &[Seen], tickets: &[Ticket]) -> String {
    let label = |id: &str| tickets.iter().find(|t| t.id == id).map(|t| &t.label["category"]);
    let valid: Vec<bool> = seen
        .iter()
        .filter_map(|one| match &one.end {
            End::Valid(value) => Some(label(&one.ticket) == Some(&value["category"])),
            End::Refused | End::Typed(_) | End::Neither(_) => None,
        })
        .collect();
    let right = valid.iter().filter(|right| **right).count();
    format!("{right} of {} valid answers have the label's category", valid.len())
}

/// The calls with the most different things in them, no two alike.
fn instructive(rows: &[Row]) -> Vec<&Row> {
    let mut ranked: Vec<(BTreeSet<String>, &Row)> =
        rows.iter().map(|row| (lessons(row), row)).collect();
    ranked.sort_by_key(|(lessons, row)| std::cmp::Reverse((lessons.len(), row.attempts)));
    let mut known = BTreeSet::new();
    let mut chosen = Vec::new();
    for (lessons, row) in ranked {
        if chosen.len() < EXPLAINED && !lessons.is_subset(&known) {
            known.extend(lessons);
            chosen.push(row);
        }
    }
    chosen
}

/// What can be learnt from a call: its faults and decisions.
fn lessons(row: &Row) -> BTreeSet<String> {
    let lesson = |step: &Step| match step {
        Step::Came { fault, .. } => fault.as_ref().map(ToString::to_string),
        Step::Judged { verdict, .. } if verdict != "ok" => Some(verdict.to_string()),
        Step::Decided { next, .. } => Some(format!("then {next}")),
        _ => None,
    };
    row.trail.notes.iter().filter_map(|note| lesson(&note.step)).collect()
}

/// Everything that breaks the promise.
fn wrongs(seen: &[Seen], rows: &[Row], log: &[Entry]) -> Vec<String> {
    let mut wrongs = Vec::new();
    for one in seen {
        if let End::Neither(note) = &one.end {
            wrongs.push(format!("ticket {}: {note}", one.ticket));
        }
        if one.took > Duration::from_millis(10_050) {
            wrongs.push(format!("ticket {} took {:?}", one.ticket, one.took));
        }
    }
    if rows.len() != seen.len() {
        wrongs.push(format!("{} calls are in the call log, {} were made", rows.len(), seen.len()));
    }
    let told: usize = seen.iter().map(|one| one.attempts).sum();
    if told != log.len() {
        wrongs.push(format!("the gateway says {told} requests, the provider saw {}", log.len()));
    }
    wrongs
}

/// How to call a demo that stays.
pub(super) fn how_to_call(address: SocketAddr) {
    print::line(&format!(
        "\nstill serving on http://{address}; every model behaviour can be asked for by name\n\n\
         curl -s http://{address}/v1/chat/completions -H 'content-type: application/json' \\\n  \
         -d '{{\"model\": \"triage\", \"messages\": [{{\"role\": \"user\", \"content\": \"My card was \
         charged twice for order 1182.\"}}]}}'\n\n\
         from openai import OpenAI\n\
         client = OpenAI(base_url=\"http://{address}/v1\", api_key=\"none\")\n\
         print(client.chat.completions.create(model=\"openai/fenced\", messages=[\n    \
         {{\"role\": \"user\", \"content\": \"hello\"}}]))\n\n\
         Ctrl-C ends it."
    ));
}
