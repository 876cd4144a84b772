//! Measures jsonmend against serde_json, jiter and jsonrepair-rs: valid text to tape, broken text
//! of several families to a value, and a stream in small pieces. Prints MB/s and ratios.
//!
//! `bench/jsonmend/run` runs it beside the peers of other languages; `cargo run --release` in this
//! folder runs it alone. A word behind either picks the rows that have it in their name. Times are
//! the best of several runs, taken in turns with the peer's.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

use mimalloc::MiMalloc;

use jsonmend::{Limits, Mender, Policy, Status, Stream};

/// As the shipped binary has it; for all alike.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() {
    let policy = Policy {
        limits: Limits { edits: usize::MAX, input: 1 << 28, ..Limits::default() },
        ..Policy::standard()
    };
    let mender = Mender::new(policy);
    let mut words = std::env::args().skip(1);
    let mut wanted = words.next().unwrap_or_default();
    if wanted == "--write" {
        write_texts(&words.next().unwrap_or_default());
        return;
    }
    let mut others = String::new();
    if wanted == "--peers" {
        others = std::fs::read_to_string(words.next().unwrap_or_default()).unwrap_or_default();
        wanted = words.next().unwrap_or_default();
    }
    println!("valid JSON to a value, MB/s (ratio to serde_json Value)");
    println!("{:<22} {:>10} {:>10} {:>10}", "text", "serde_json", "jiter", "jsonmend");
    for (name, text) in [
        ("pretty 1 MB", document(1 << 20, Style::Pretty)),
        ("compact 1 MB", document(1 << 20, Style::Compact)),
        ("compact 100 kB", document(100_000, Style::Compact)),
        ("compact 2 kB", document(2_000, Style::Compact)),
    ] {
        if !name.contains(&wanted) {
            continue;
        }
        let mut strict = || {
            black_box(serde_json::from_str::<serde_json::Value>(&text).is_ok());
        };
        let mut partial = || {
            black_box(jiter::JsonValue::parse(text.as_bytes(), false).is_ok());
        };
        let mut mend = || {
            black_box(mender.mend(&text, Status::Stopped));
        };
        // Three times in turns.
        let (mut serde, mut jiter, mut ours) = (0.0_f64, 0.0_f64, 0.0_f64);
        for _ in 0..3 {
            serde = serde.max(rate(&text, &mut strict));
            jiter = jiter.max(rate(&text, &mut partial));
            ours = ours.max(rate(&text, &mut mend));
        }
        println!(
            "{name:<22} {serde:>10.0} {jiter:>10.0} {ours:>10.0}   x{:.2} of serde_json, x{:.2} of jiter",
            ours / serde,
            ours / jiter
        );
    }
    println!(
        "\nbroken JSON, MB/s: to text, jsonmend to a tape; 1 MB, json_repair and jsonrepair 100 kB"
    );
    println!(
        "{:<18} {:>12} {:>12} {:>14} {:>10}",
        "damage", "json_repair", "jsonrepair", "jsonrepair-rs", "jsonmend"
    );
    for (name, text) in families(1 << 20) {
        if !name.contains(&wanted) {
            continue;
        }
        let outcome = mender.mend(&text, Status::Unknown);
        let (theirs, ours) = in_turns(
            &text,
            || {
                black_box(jsonrepair_rs::jsonrepair(&text).is_ok());
            },
            || {
                black_box(mender.mend(&text, Status::Unknown));
            },
        );
        println!(
            "{name:<18} {:>12} {:>12} {theirs:>14.0} {ours:>10.0}   x{:.2}  ({})",
            other(&others, name, "json_repair"),
            other(&others, name, "jsonrepair"),
            ours / theirs,
            outcome.name()
        );
    }
    if !"stream".contains(&wanted) {
        return;
    }
    stream(mender);
}

/// Writes the broken texts of 100 kB for the peers of other languages.
fn write_texts(folder: &str) {
    for (name, text) in families(100_000) {
        let path = std::path::Path::new(folder).join(name.replace(' ', "_"));
        if let Err(error) = std::fs::write(&path, text) {
            println!("cannot write {}: {error}", path.display());
        }
    }
}

/// What another peer's file of rates has for a text.
fn other(rates: &str, name: &str, peer: &str) -> String {
    let name = name.replace(' ', "_");
    let rate = rates.lines().find_map(|line| {
        let mut fields = line.split('\t');
        let is_it = fields.next() == Some(&name) && fields.next() == Some(peer);
        is_it.then(|| fields.next()).flatten()
    });
    match rate.map(str::parse::<f64>) {
        Some(Ok(rate)) => format!("{rate:.1}"),
        Some(Err(_)) => "refused".to_owned(),
        None => "-".to_owned(),
    }
}

/// A reply of 20 kB in pieces of 4 bytes, with a snapshot after each.
fn stream(mender: Mender<'static>) {
    let text = document(20_000, Style::Pretty);
    let best = |run: &dyn Fn()| {
        (0..5)
            .map(|_| {
                let start = Instant::now();
                run();
                start.elapsed()
            })
            .min()
            .unwrap_or_default()
    };
    let theirs = best(&|| {
        for end in (4..text.len()).step_by(4) {
            let part = &text.as_bytes()[..end];
            let mode = jiter::PartialMode::TrailingStrings;
            black_box(jiter::JsonValue::parse_with_config(part, false, mode).is_ok());
        }
    });
    let ours = best(&|| {
        let mut stream = Stream::new(mender);
        for piece in text.as_bytes().chunks(4) {
            stream.feed(piece);
            black_box(stream.snapshot().root());
        }
        black_box(stream.finish(Status::Stopped));
    });
    println!(
        "\nstream of 20 kB in 4-byte pieces: jiter again each time {theirs:.1?}, jsonmend {ours:.1?}, x{:.0}",
        theirs.as_secs_f64() / ours.as_secs_f64()
    );
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Pretty,
    Compact,
}

/// A list of records like those of a support queue, of about `size` bytes.
fn document(size: usize, style: Style) -> String {
    let mut items = Vec::new();
    let mut length = 2;
    for number in 0.. {
        let item = serde_json::json!({
            "id": number,
            "title": format!("Ticket {number}: the printer on floor {} does not answer", number % 9),
            "tags": ["urgent", "hardware", format!("t{}", number % 17)],
            "score": f64::from(number) * 0.25 + 0.1,
            "open": number % 2 == 0,
            "owner": {"name": "Alex Müller", "mail": "alex@example.test", "team": null},
            "notes": "First line\nsecond line with a \"quote\" in it; nothing else to say about it.",
        });
        length += item.to_string().len() + 1;
        items.push(item);
        if length >= size {
            break;
        }
    }
    match style {
        Style::Pretty => serde_json::to_string_pretty(&items).unwrap_or_default(),
        Style::Compact => serde_json::to_string(&items).unwrap_or_default(),
    }
}

/// The families of damage of the survey, each on a text of about `size` bytes.
fn families(size: usize) -> Vec<(&'static str, String)> {
    let pretty = document(size, Style::Pretty);
    let cut = pretty.floor_char_boundary(pretty.len() * 93 / 100);
    let mut bare = String::new();
    for line in pretty.lines() {
        let indent = line.len() - line.trim_start().len();
        let (space, rest) = line.split_at(indent);
        match rest.strip_prefix('"').and_then(|rest| rest.split_once("\":")) {
            Some((key, value)) => {
                let _ = writeln!(bare, "{space}{key}:{value}");
            }
            None => {
                let _ = writeln!(bare, "{line}");
            }
        }
    }
    let python = pretty
        .replace('\'', "\\'")
        .replace("\\\"", "\u{1}")
        .replace('"', "'")
        .replace('\u{1}', "\"")
        .replace("true", "True")
        .replace("false", "False")
        .replace("null", "None");
    vec![
        ("fence and prose", format!("Here it is:\n\n```json\n{pretty}\n```\nDone.")),
        ("cut at 93 %", pretty[..cut].to_owned()),
        ("trailing commas", pretty.replace("\n  }", ",\n  }").replace("\n    ]", ",\n    ]")),
        ("python repr", python),
        ("missing commas", pretty.replace("\",\n", "\"\n")),
        ("inner quotes", pretty.replace("\\\"", "\"")),
        ("unquoted keys", bare),
        ("raw newlines", pretty.replace("\\n", "\n")),
    ]
}

/// Best rates of both, each run after the other: what disturbs one disturbs both.
fn in_turns(text: &str, mut one: impl FnMut(), mut two: impl FnMut()) -> (f64, f64) {
    let mut best = (f64::MAX, f64::MAX);
    for _ in 0..60 {
        let start = Instant::now();
        one();
        best.0 = best.0.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        two();
        best.1 = best.1.min(start.elapsed().as_secs_f64());
    }
    (text.len() as f64 / best.0 / 1e6, text.len() as f64 / best.1 / 1e6)
}

/// Best rate of several runs, in MB/s.
fn rate(text: &str, mut run: impl FnMut()) -> f64 {
    let rounds = (2_000_000 / text.len()).clamp(1, 1000);
    let mut best = f64::MAX;
    for _ in 0..15 {
        let start = Instant::now();
        for _ in 0..rounds {
            run();
        }
        best = best.min(start.elapsed().as_secs_f64() / rounds as f64);
    }
    text.len() as f64 / best / 1e6
}
