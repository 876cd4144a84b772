//! Prints what the guards of a stream catch, what they take for a loop wrongly, and what they cost, beside rules of
//! other programs: the tables of docs/detectors.md.

mod corpus;
mod normal;
mod real;
mod rules;
mod sample;
mod seeds;
mod speed;

use std::path::PathBuf;
use std::process::ExitCode;

use corpus::Text;
use rules::RULES;
use sample::Sample;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(detectors), folders) = (arguments.next(), arguments.collect::<Vec<_>>()) else {
        eprintln!("usage: detectors-bench DETECTORS FOLDER…");
        return ExitCode::from(2);
    };
    let texts = corpus::read(&folders);
    if texts.is_empty() {
        eprintln!("no text in {folders:?}");
        return ExitCode::from(2);
    }
    let exact = loops(&texts);
    delays();
    let normal = normal::judge(&texts);
    normal::compare(&texts);
    let real = real::judge(&detectors);
    let speed = speed::measure(&texts);
    let held = [
        ("exact loops caught, at least 98 %", exact),
        ("normal text, at most one hit in 10 MB", normal),
        ("real replies that are no loops, none cut", real),
        ("at most 200 ns a token", speed),
    ];
    println!("| bound | held |\n|---|---|");
    for (bound, held) in held {
        println!("| {bound} | {} |", if held { "yes" } else { "**no**" });
    }
    ExitCode::from(u8::from(held.iter().any(|(_, held)| !held)))
}

/// What each rule catches of each kind of loop. Returns whether ours is good enough at exact ones.
fn loops(texts: &[Text]) -> bool {
    let prose: Vec<&Text> = texts
        .iter()
        .filter(|text| matches!(text.kind, "md" | "rst" | "txt" | "rs" | "json"))
        .collect();
    println!(
        "Loops made by dice, {} of a kind: caught %, in brackets the tokens until then (median, 95 %).\n",
        seeds::EACH
    );
    println!("| rule |{}", seeds::KINDS.map(|(name, _)| format!(" {name} |")).concat());
    println!("|---|{}", "---|".repeat(seeds::KINDS.len()));
    let samples = seeds::KINDS.map(|kind| {
        (0..seeds::EACH).map(|seed| seeds::make(kind, seed, &prose)).collect::<Vec<_>>()
    });
    let mut held = false;
    for (at, (name, rule)) in RULES.into_iter().enumerate() {
        let cells: Vec<(usize, String)> =
            samples.iter().map(|samples| caught(rule, samples)).collect();
        held |= at == 0 && cells[0].0 * 100 >= samples[0].len() * 98;
        println!(
            "| {name} |{}",
            cells.iter().map(|(_, cell)| format!(" {cell} |")).collect::<String>()
        );
    }
    println!();
    held
}

fn caught(rule: rules::Rule, samples: &[Sample]) -> (usize, String) {
    let mut delays: Vec<usize> = samples
        .iter()
        .filter_map(|sample| {
            rule(sample).filter(|at| *at > sample.begins).map(|at| sample.delay(at))
        })
        .collect();
    delays.sort_unstable();
    let share = delays.len() as f64 * 100.0 / samples.len() as f64;
    if delays.is_empty() {
        return (0, "0".to_owned());
    }
    let (middle, late) = (delays[delays.len() / 2], delays[delays.len() * 95 / 100]);
    (delays.len(), format!("{share:.0} ({middle}, {late})"))
}

/// How many copies of a period of so many tokens it takes.
fn delays() {
    println!("| period, tokens | copies until the hard signal | tokens |\n|---|---|---|");
    for period in [1, 2, 4, 8, 16, 32, 64, 65, 128, 256, 512, 1024, 2000] {
        let mut dice = fastrand::Rng::with_seed(period);
        let word = |_| format!(" {}", (0..5).map(|_| dice.lowercase()).collect::<String>());
        let block: String = (0..period).map(word).collect();
        let copies = (600 / period).max(6) as usize;
        let sample = Sample::new(block.repeat(copies), 0);
        let Some(at) = rules::hard(&sample) else {
            println!("| {period} | never | |");
            continue;
        };
        let tokens = sample.delay(at);
        println!("| {period} | {:.1} | {tokens} |", tokens as f64 / period as f64);
    }
    println!();
}
