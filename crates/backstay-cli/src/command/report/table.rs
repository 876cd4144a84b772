//! The sums as lines for people.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::sums::{Quantiles, Sums};

/// The report, without a line break at its end.
pub(super) fn of(sums: &Sums) -> String {
    let mut out = String::new();
    let _ = writeln!(out, "{} to {}", moment(sums.from_ms), moment(sums.until_ms));
    let _ = writeln!(out, "{} calls", grouped(sums.calls));
    parted(&mut out, "outcomes", &sums.outcomes, sums.calls);
    parted(&mut out, "failures by code", &sums.codes, sums.calls);
    parted(&mut out, "the last reply was", &sums.verdicts, sums.calls);
    parted(&mut out, "decided after a fault", &sums.decisions, sums.calls);
    listed(&mut out, "edits", &sums.edits);
    targets(&mut out, sums);
    let _ = writeln!(out, "\nmilliseconds {:>12} {:>9} {:>9} {:>9}", "p50", "p90", "p99", "max");
    quantiles(&mut out, "to the last byte", &sums.latency_ms);
    if sums.first_token_ms != Quantiles::default() {
        quantiles(&mut out, "to first content", &sums.first_token_ms);
    }
    let least = if sums.at_least > 0 { "at least " } else { "" };
    let (input, output) = (grouped(sums.input_tokens), grouped(sums.output_tokens));
    let _ = writeln!(out, "\ntokens: {least}{input} in, {output} out");
    if sums.skipped > 0 {
        let _ = writeln!(out, "targets passed over: {}", grouped(sums.skipped));
    }
    if sums.waited_ms > 0.0 {
        let _ = writeln!(out, "waited in all: {:.1} s", sums.waited_ms / 1_000.0);
    }
    if sums.simulated > 0 {
        let _ = writeln!(out, "left out, simulated: {}", grouped(sums.simulated));
    }
    watched(&mut out, sums);
    out.trim_end().to_owned()
}

/// What Backstay would have changed on routes that only watch.
fn watched(out: &mut String, sums: &Sums) {
    let all: u64 = sums.would.values().sum();
    if all == 0 {
        return;
    }
    let nothing = sums.would.get("nothing").copied().unwrap_or_default();
    let _ = writeln!(
        out,
        "\nwatched only (mode = \"shadow\"): of {} answers {} would have gone out as they are",
        grouped(all),
        grouped(nothing)
    );
    let rest = sums.would.iter().filter(|(word, _)| *word != "nothing");
    rows(out, rest, all);
}

/// A heading, and each word with its count and share.
fn parted(out: &mut String, title: &str, counts: &BTreeMap<String, u64>, all: u64) {
    if counts.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    rows(out, counts.iter(), all);
}

/// The most frequent first.
fn rows<'a>(out: &mut String, counts: impl Iterator<Item = (&'a String, &'a u64)>, all: u64) {
    for (word, count) in most_first(counts) {
        #[expect(clippy::cast_precision_loss, reason = "a share is shown with one digit")]
        let share = count as f64 / all.max(1) as f64 * 100.0;
        let _ = writeln!(out, "  {word:<34} {:>12} {share:>6.1} %", grouped(count));
    }
}

fn listed(out: &mut String, title: &str, counts: &BTreeMap<String, u64>) {
    if counts.is_empty() {
        return;
    }
    let _ = writeln!(out, "\n{title}");
    for (word, count) in most_first(counts.iter()) {
        let _ = writeln!(out, "  {word:<34} {:>12}", grouped(count));
    }
}

fn most_first<'a>(counts: impl Iterator<Item = (&'a String, &'a u64)>) -> Vec<(&'a str, u64)> {
    let mut all: Vec<_> = counts.map(|(word, count)| (word.as_str(), *count)).collect();
    all.sort_by(|(one, first), (other, second)| second.cmp(first).then(one.cmp(other)));
    all
}

fn targets(out: &mut String, sums: &Sums) {
    if sums.targets.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n{:<24} {:>10} {:>14} {:>14} {:>12}",
        "target", "requests", "tokens in", "tokens out", "cost"
    );
    for (name, target) in &sums.targets {
        let _ = writeln!(
            out,
            "{name:<24} {:>10} {:>14} {:>14} {:>12}",
            grouped(target.attempts),
            grouped(target.input_tokens),
            grouped(target.output_tokens),
            target.cost.as_deref().unwrap_or("-")
        );
        rows(out, target.faults.iter(), target.attempts);
    }
}

fn quantiles(out: &mut String, title: &str, of: &Quantiles) {
    let Quantiles { p50, p90, p99, max } = of;
    let _ = writeln!(out, "{title:<16} {p50:>8.1} {p90:>9.1} {p99:>9.1} {max:>9.1}");
}

/// With a comma at each thousand.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A moment to the second, in UTC.
fn moment(at_ms: u64) -> String {
    let seconds = i64::try_from(at_ms / 1_000).unwrap_or(i64::MAX);
    jiff::Timestamp::from_second(seconds).map_or_else(|_| "ever".to_owned(), |at| at.to_string())
}

#[cfg(test)]
mod tests {
    use super::{grouped, moment};

    #[test]
    fn numbers_and_moments_are_told_for_people() {
        assert_eq!(
            [0, 12, 999, 1_000, 1_234_567].map(grouped),
            ["0", "12", "999", "1,000", "1,234,567"]
        );
        assert_eq!(moment(1_000_500), "1970-01-01T00:16:40Z");
        assert_eq!(moment(u64::MAX), "ever");
    }
}
