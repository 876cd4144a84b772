//! What is taken for a loop in normal text.

use std::collections::BTreeMap;

use backstay_decide::detectors::{Channel, Guards, Level, Limits, Signal};

use crate::corpus::Text;
use crate::rules::RULES;
use crate::sample::Sample;

/// Files that do repeat themselves: digest, name, why.
const PERIODIC: &str = include_str!("../periodic.tsv");
/// Texts of each kind that all rules are compared on, and what is read of each: two of the rules take
/// time with the longest period they look for.
const COMPARED: usize = 120;
const COMPARED_BYTES: usize = 24_000;

/// Runs the guards over all texts. Returns whether there is at most one hit in 10 MB, listed files not counted.
pub fn judge(texts: &[Text]) -> bool {
    let mut kinds: BTreeMap<&str, [usize; 5]> = BTreeMap::new();
    let mut hits = Vec::new();
    for text in texts {
        let signals = signals(&text.text);
        let hard = signals.iter().find(|signal| signal.level == Level::Hard);
        let listed = is_listed(text);
        if listed && hard.is_none() {
            eprintln!("listed, and no hit: {}", text.name);
        }
        let listed = listed && hard.is_some();
        let row = kinds.entry(text.kind).or_default();
        row[0] += 1;
        row[1] += text.text.len();
        row[2] += usize::from(hard.is_some() && !listed);
        row[3] += usize::from(listed);
        row[4] += usize::from(signals.iter().any(|signal| signal.level == Level::Soft));
        if let Some(hard) = hard.filter(|_| !listed) {
            hits.push(format!("{}\t{}\t{hard}", text.digest(), text.name));
        }
    }
    println!("Normal text, the first 128 kB of each file.\n");
    println!(
        "| kind | files | MB | hard | hard, and truly periodic | with a soft sign, % |\n|---|---|---|---|---|---|"
    );
    let mut sums = [0; 5];
    for (kind, row) in &kinds {
        print(kind, *row);
        for (sum, number) in sums.iter_mut().zip(row) {
            *sum += number;
        }
    }
    print("all", sums);
    println!();
    for hit in &hits {
        eprintln!("hit: {hit}");
    }
    sums[2] * 10_000_000 <= sums[1]
}

fn is_listed(text: &Text) -> bool {
    PERIODIC.lines().any(|line| line.starts_with(&text.digest()))
}

fn print(kind: &str, [files, bytes, hard, listed, soft]: [usize; 5]) {
    let (megabytes, soft) = (bytes as f64 / 1e6, soft as f64 * 100.0 / files as f64);
    println!("| {kind} | {files} | {megabytes:.1} | {hard} | {listed} | {soft:.1} |");
}

fn signals(text: &str) -> Vec<Signal> {
    let mut guards = Guards::new(Limits::default());
    guards.feed(Channel::Text, text);
    guards.finish();
    guards.signals().to_vec()
}

/// The share of normal texts that each rule takes for loops. Listed files are left out.
pub fn compare(texts: &[Text]) {
    let mut kinds: BTreeMap<&str, Vec<Sample>> = BTreeMap::new();
    for text in texts {
        let samples = kinds.entry(text.kind).or_default();
        if samples.len() < COMPARED && !is_listed(text) {
            let mut end = text.text.len().min(COMPARED_BYTES);
            while !text.text.is_char_boundary(end) {
                end -= 1;
            }
            samples.push(Sample::new(text.text[..end].to_owned(), 0));
        }
    }
    kinds.retain(|_, samples| samples.len() >= 20);
    println!(
        "Share of normal files that a rule takes for a loop, %: up to {COMPARED} of a kind, their first 24 kB.\n"
    );
    println!(
        "| rule |{}",
        kinds.iter().map(|(kind, all)| format!(" {kind} ({}) |", all.len())).collect::<String>()
    );
    println!("|---|{}", "---|".repeat(kinds.len()));
    for (name, rule) in RULES {
        let cell = |samples: &Vec<Sample>| {
            let hits = samples.iter().filter(|sample| rule(sample).is_some()).count();
            format!(" {:.0} |", hits as f64 * 100.0 / samples.len() as f64)
        };
        println!("| {name} |{}", kinds.values().map(cell).collect::<String>());
    }
    println!();
}
