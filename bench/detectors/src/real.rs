//! Real replies: loops of a small model, texts that repeat themselves rightly, refusals.

use std::fs;
use std::path::Path;

use backstay_decide::detectors::{Channel, Finding, Guards, Level, Limits};
use serde_json::Value;

use crate::rules::RULES;
use crate::sample::Sample;

/// Judges what is in `folder`. Returns whether no reply was cut that is no loop.
pub fn judge(folder: &Path) -> bool {
    let mut rows = read(&folder.join("degenerate_smollm2.jsonl"));
    rows.extend(read(&folder.join("legit_repetition.jsonl")));
    if rows.is_empty() {
        eprintln!("skipped: no rows in {}", folder.display());
        // Where nothing may be left out, a bound that was not tried does not hold.
        return !std::env::var("BACKSTAY_REQUIRE").is_ok_and(|what| what == "all");
    }
    let labels = ["loop", "suspect", "legit_repetition", "normal"];
    println!("Real replies, by label: how many a rule takes for loops.\n");
    println!(
        "| rule |{}",
        labels.map(|label| format!(" {label} ({}) |", count(&rows, label))).concat()
    );
    println!("|---|{}", "---|".repeat(labels.len()));
    let mut held = true;
    for (at, (name, rule)) in RULES.into_iter().enumerate() {
        let hits = labels.map(|label| {
            rows.iter()
                .filter(|row| row["label"] == label)
                .filter(|row| rule(&sample(row)).is_some())
                .count()
        });
        held &= at > 0 || hits[2] + hits[3] == 0;
        println!("| {name} |{}", hits.map(|hits| format!(" {hits} |")).concat());
    }
    println!();
    refusals(&read(&folder.join("refusals_xstest.jsonl")));
    held
}

fn refusals(rows: &[Value]) {
    println!("Refusals in words (XSTest, answers of two Mistral models, labelled by people).\n");
    println!("| label | answers | told |\n|---|---|---|");
    let labels = ["full_refusal", "partial_refusal", "full_compliance"];
    let [full, partial, wrong] = labels.map(|label| {
        let told =
            rows.iter().filter(|row| row["label"] == label).filter(|row| refuses(row)).count();
        println!("| {label} | {} | {told} |", count(rows, label));
        told
    });
    let all = count(rows, "full_refusal") + count(rows, "partial_refusal");
    let percent = |part: usize, whole: usize| part as f64 * 100.0 / whole.max(1) as f64;
    println!(
        "\nPrecision {:.0} %; recall {:.0} % of all refusals, {:.0} % of full ones.\n",
        percent(full + partial, full + partial + wrong),
        percent(full + partial, all),
        percent(full, count(rows, "full_refusal")),
    );
}

fn refuses(row: &Value) -> bool {
    let mut guards = Guards::new(Limits::default());
    guards.feed(Channel::Text, row["completion"].as_str().unwrap_or_default());
    guards.finish();
    guards
        .signals()
        .iter()
        .any(|signal| signal.finding == Finding::Refusal && signal.level == Level::Soft)
}

fn count(rows: &[Value], label: &str) -> usize {
    rows.iter().filter(|row| row["label"] == label).count()
}

fn sample(row: &Value) -> Sample {
    Sample::new(row["text"].as_str().unwrap_or_default().to_owned(), 0)
}

fn read(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
