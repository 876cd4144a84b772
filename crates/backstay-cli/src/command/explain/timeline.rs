//! Draws a call's trail as lines of time.

use std::fmt::Write;

use backstay::record::{Note, Row, Step, Word};

/// The story of `row`, one step a line.
pub(crate) fn timeline(row: &Row) -> String {
    let mut out = String::new();
    let code = if row.code.is_empty() { String::new() } else { format!(" ({})", row.code) };
    let _ = writeln!(out, "call {}", row.call_id);
    let _ = writeln!(
        out,
        "  model {} on route {}, {}{}",
        row.model,
        row.route,
        row.dialect,
        if row.streamed { ", streamed" } else { "" }
    );
    let _ = writeln!(
        out,
        "  {}{code} after {:.1} ms, {} attempt{}",
        row.outcome,
        row.latency_ms,
        row.attempts,
        if row.attempts == 1 { "" } else { "s" }
    );
    let least = if row.at_least { "at least " } else { "" };
    let _ = writeln!(out, "  tokens: {least}{} in, {} out", row.input_tokens, row.output_tokens);
    if !row.cost.is_empty() {
        let least = if row.cost_at_least { "at least " } else { "" };
        let key =
            if row.caller.is_empty() { String::new() } else { format!(", key {}", row.caller) };
        let _ = writeln!(out, "  cost: {least}{}{key}", row.cost);
    }
    if !row.simulated.is_empty() {
        let _ = writeln!(out, "  simulated: {}", row.simulated);
    }
    if !row.would.is_empty() {
        let _ = writeln!(out, "  watched only: it went through untouched; else: {}", row.would);
    }
    for note in &row.trail.notes {
        step(&mut out, note);
    }
    out.trim_end().to_owned()
}

fn step(out: &mut String, note: &Note) {
    let (mark, lines) = told(&note.step);
    let mut lines = lines.into_iter();
    let first = lines.next().unwrap_or_default();
    let _ = writeln!(out, "{:>9.1} ms  {mark:<9} {first}", note.at_ms);
    for line in lines.filter(|line| !line.is_empty()) {
        let _ = writeln!(out, "{:>12}  {:<9} {line}", "", "");
    }
}

/// A step's mark and its lines.
fn told(step: &Step) -> (&'static str, Vec<String>) {
    match step {
        Step::Settled { route, deadline_ms, deadline_from, bytes, cap_of, cap, fingerprint } => {
            let cap = cap.map_or_else(|| "the provider's".to_owned(), |cap| cap.to_string());
            let first = format!("route {route}, deadline {deadline_ms} ms (from {deadline_from})");
            let second = format!(
                "{bytes} bytes, output cap {cap} (set by {cap_of}), fingerprint {fingerprint}"
            );
            ("contract", vec![first, second])
        }
        Step::Skipped { target, why } => ("skipped", vec![format!("{target}: {why}")]),
        Step::Sent {
            attempt,
            target,
            tier,
            form,
            fingerprint,
            limits_ms,
            limits_from,
            budget,
            losses,
            lowered,
        } => {
            let first =
                format!("attempt {attempt} to {target} (tier {tier}), {form}, {fingerprint}");
            let [connect, first_token, gap, total] = limits_ms;
            let [first_from, gap_from, total_from] = limits_from.each_ref().map(from);
            let limits = format!(
                "at most {connect} ms to connect, {first_token} ms to the first token{first_from}, \
                 {gap} ms between two{gap_from}, {total} ms in all{total_from}"
            );
            let mut lines = vec![first, limits];
            lines.extend(budget.map(|[prompt, cap, allowed]| {
                let need = prompt.saturating_add(cap);
                format!("prompt~{prompt} + output cap {cap} = {need} vs allowed {allowed}")
            }));
            lines.extend(losses.iter().map(|loss| format!("lost {loss}")));
            lines.extend(lowered.iter().cloned());
            ("sent", lines)
        }
        Step::Came { .. } => ("came", vec![came(step)]),
        Step::Judged { verdict, errors } => {
            let mut lines = vec![verdict.to_string()];
            lines.extend(errors.iter().map(|error| format!("- {error}")));
            ("judged", lines)
        }
        Step::Decided { next, why } => ("decided", vec![format!("{next}: {why}")]),
        Step::Waited { ms, why } => ("waits", vec![format!("{ms:.1} ms {why}")]),
        Step::Turned { target, change } => ("breaker", vec![format!("{target}: {change}")]),
        Step::Ended { outcome, code, note } => {
            let code = code.as_ref().map(|code| format!(" ({code})")).unwrap_or_default();
            ("ended", vec![format!("{outcome}{code}"), note.clone()])
        }
    }
}

/// Where a limit comes from, behind it.
fn from(word: &Word) -> String {
    if word.is_empty() { String::new() } else { format!(" ({word})") }
}

fn came(step: &Step) -> String {
    let Step::Came { status, fault, note, took_ms, first_token_ms, finish, usage, .. } = step
    else {
        return String::new();
    };
    let mut parts = vec![match status {
        Some(status) => format!("status {status}"),
        None => "no response".to_owned(),
    }];
    parts.extend(fault.as_ref().map(|fault| format!("{fault}: {note}")));
    parts.extend(finish.as_ref().map(|finish| format!("finish {finish}")));
    parts.extend(first_token_ms.map(|first| format!("first content after {first:.1} ms")));
    if let Some((Some(input), Some(output))) = usage {
        parts.push(format!("{input} + {output} tokens"));
    }
    format!("after {took_ms:.1} ms: {}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use backstay::record::Row;

    use super::timeline;

    #[test]
    fn a_call_that_was_only_watched_says_so_and_no_other_does() {
        let row = Row { outcome: "watched".into(), would: "reasked".into(), ..Row::default() };
        let told = timeline(&row);
        assert!(told.contains("watched only: it went through untouched; else: reasked"), "{told}");
        assert!(!timeline(&Row::default()).contains("watched only"));
    }
}
