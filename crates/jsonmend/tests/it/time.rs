//! Time grows with the text and no faster, on texts made to be hard; and nothing of any size hangs
//! or panics. `cargo test --release -p jsonmend --test it time -- --ignored` goes to 8 and 16 MiB.

use std::time::{Duration, Instant};

use crate::stream::damaged_replies;
use jsonmend::{Limits, Mender, Outcome, Policy, Refusal, Status, Stream};

/// Texts of about `size` bytes that a careless parser reads again and again.
fn families(size: usize) -> Vec<(&'static str, String)> {
    let fill = |part: &str| part.repeat(size / part.len());
    vec![
        ("open brackets", fill("[")),
        ("open braces", fill("{\"a\":")),
        ("brackets in turn", fill("[{\"a\":[")),
        ("quotes", format!("{{\"a\": {}", fill("\""))),
        ("quotes in text", format!("{{\"a\": \"{}\"}}", fill("x \"y\" z "))),
        ("quotes and commas", format!("[\"{}\"]", fill("a\", b\", \"c "))),
        ("quotes and closers", format!("{{\"a\": \"{}\"}}", fill("x\"} y\"]}, "))),
        ("no closing quote", format!("{{\"a\": \"{}", fill("lorem, ipsum: {dolor} "))),
        ("missing commas", format!("[{}]", fill("{\"a\": 1 \"b\": 2} "))),
        ("trailing commas", format!("[{} 1]", fill("[1,2,],"))),
        ("double commas", format!("[{} 1]", fill("1,,,,"))),
        ("bare words", format!("[{} x]", fill("word, "))),
        ("bare keys", format!("[{} 1]", fill("{abc: 1, d: e},"))),
        ("single quotes", format!("[{} 1]", fill("'it's', "))),
        ("raw lines", format!("{{\"a\": \"{}\"}}", fill("line\n"))),
        ("bad escapes", format!("{{\"a\": \"{}\"}}", fill("C:\\q\\x "))),
        ("comments", format!("[{} 1]", fill("1 /* c */, // d\n"))),
        ("open comments", format!("[1, {}", fill("/* "))),
        ("odd spaces", format!("[1,{} 2]", fill("\u{a0}\u{3000}"))),
        ("spaces", format!("[1{}2]", fill("  \n"))),
        ("fences", fill("```json\n{\"a\": \n```\n")),
        ("placeholders", fill("use {name} and [x] ")),
        ("documents", fill("{\"a\": 1}\n")),
        ("think tags", fill("<think> { ")),
        ("wrong closers", format!("{}1{}", "[".repeat(100), fill("}"))),
        ("colons", format!("{{\"a\"{} 1}}", fill(":"))),
        ("odd numbers", format!("[{} 1]", fill("007, 1e, 1/3, "))),
        ("one long number", format!("[{}]", fill("1"))),
        ("one long word", format!("[{}]", fill("w"))),
        ("one long key", format!("{{\"{}\": 1,}}", fill("k"))),
        ("same keys", format!("{{{} \"z\": 1}}", fill("\"k\": 1, "))),
        ("escaped document", format!("{{\\\"a\\\": [{} 1]}}", fill("\\\"b\\\", "))),
        ("concatenations", format!("{{\"a\": {} \"z\"}}", fill("\"b\" + "))),
        ("smart quotes", format!("[{} 1]", fill("“a ” b”, "))),
        ("tuples", format!("[{} 1]", fill("(1, 2), "))),
        ("doubled quotes", format!("[{} 1]", fill("\"\"a\"\", "))),
        ("triple quotes", format!("[{} 1]", fill("\"\"\"a\", "))),
        ("lost openers", format!("[{} 1]", fill("a\", b c\", "))),
        ("lost closing quotes", format!("[{} 1]", fill("\"a, \"b\", "))),
        ("closers and commas", format!("{{\"a\": \"x\"{}", fill("], "))),
        ("ticks in one line", fill("`a` ")),
        ("fences in one line", fill("``` ")),
        ("think blocks", fill("<think>x</think>\n")),
        ("triple single quotes", format!("[{} 1]", fill("'''a', "))),
    ]
}

fn numbered(count: usize) -> String {
    let documents: Vec<String> = (0..count).map(|n| format!("{{\"a\": 1{n:04}}}\n")).collect();
    documents.concat()
}

/// Texts of many documents.
fn crowds(size: usize) -> Vec<(&'static str, String)> {
    let fill = |part: &str| part.repeat(size / part.len());
    vec![
        ("documents", fill("{\"a\": 1}\n")),
        ("other documents", numbered(size / 13)),
        ("fenced documents", fill("```json\n{\"a\": 1}\n```\n")),
        ("open fences", fill("```json\n{\"a\": \n```\n")),
        ("inline documents", fill("say {\"a\": 1} or ")),
        ("thoughts and documents", fill("<think>x</think>\n{\"a\": 1}\n")),
        ("placeholders", fill("use {name} and [x] ")),
    ]
}

fn wide() -> Policy {
    let limits = Limits { input: 64 << 20, edits: usize::MAX, candidates: 16, depth: 128 };
    Policy { limits, ..Policy::lenient() }
}

fn took(text: &str, policy: Policy) -> Duration {
    let mender = Mender::new(policy);
    let once = || {
        let start = Instant::now();
        for status in [Status::Unknown, Status::Stopped] {
            std::hint::black_box(mender.mend(text, status));
        }
        start.elapsed()
    };
    let first = once();
    // Short runs are mostly noise: the best of several.
    if first < Duration::from_millis(200) { (0..3).map(|_| once()).min().unwrap() } else { first }
}

fn grows_linearly(texts: fn(usize) -> Vec<(&'static str, String)>, size: usize, policy: Policy) {
    let mut bad = Vec::new();
    for ((name, one), (_, two)) in texts(size).into_iter().zip(texts(2 * size)) {
        let (mut short, mut long) = (took(&one, policy), took(&two, policy));
        // A busy machine may double any one time, so what looks bad is tried again.
        for _ in 0..6 {
            if long.as_secs_f64() <= 2.4 * short.as_secs_f64() {
                break;
            }
            (short, long) = (took(&one, policy), took(&two, policy).min(long));
        }
        let ratio = long.as_secs_f64() / short.as_secs_f64().max(1e-5);
        println!("{name:<24} {short:>9.2?} {long:>9.2?}  x{ratio:.2}");
        if ratio > 2.5 && long > Duration::from_millis(5) {
            bad.push((name, ratio));
        }
    }
    assert!(bad.is_empty(), "{bad:?}");
}

#[test]
#[ignore = "measures time: run it alone, on a quiet machine"]
fn twice_the_text_takes_no_more_than_about_twice_the_time() {
    grows_linearly(families, 20_000, wide());
}

#[test]
#[ignore = "minutes in a debug build; run it in release"]
fn twice_the_text_takes_twice_the_time_up_to_8_mib() {
    grows_linearly(families, 4 << 20, wide());
}

#[test]
#[ignore = "measures time: run it in release, on a quiet machine"]
fn twice_as_many_documents_take_twice_the_time_with_the_limit_raised() {
    let limits = Limits { candidates: usize::MAX, ..wide().limits };
    grows_linearly(crowds, 1 << 20, Policy { limits, ..wide() });
}

#[test]
#[ignore = "measures time: run it alone, on a quiet machine"]
fn a_damaged_stream_in_small_pieces_takes_time_in_proportion() {
    let took = |text: &str| {
        let once = || {
            let start = Instant::now();
            let mut stream = Stream::new(Mender::new(wide()));
            for piece in text.as_bytes().chunks(4) {
                stream.feed(piece);
                std::hint::black_box(stream.snapshot().root());
            }
            std::hint::black_box(stream.finish(Status::Unknown));
            start.elapsed()
        };
        (0..20).map(|_| once()).min().unwrap()
    };
    // Short enough to be done within one slice of the scheduler's.
    let twice = damaged_replies(160);
    for ((name, text), (_, twice)) in damaged_replies(80).into_iter().zip(twice) {
        let (once, more) = (took(&text), took(&twice));
        let ratio = more.as_secs_f64() / once.as_secs_f64();
        println!("{name:<24} {} bytes {once:>10.1?}, twice {more:>10.1?}, x{ratio:.2}", text.len());
        assert!(ratio < 2.5, "{name}: {once:?} and {more:?}");
    }
}

#[test]
fn a_million_brackets_are_refused_and_not_a_crash() {
    for mark in ["[", "{", "{\"a\":", "[{\"a\":", "]", "}", "\"", "(", "'", "`", "“", "\\"] {
        let text = mark.repeat(1_000_000);
        let outcome = Mender::new(Policy::standard()).mend(&text, Status::Unknown);
        assert!(outcome.document().is_none(), "{mark}");
    }
    let text = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
    let outcome = Mender::new(Policy::standard()).mend(&text, Status::Unknown);
    assert!(matches!(outcome, Outcome::Rejected(Refusal::TooDeep)));
}

#[test]
#[ignore = "16 MiB each; run it in release"]
fn sixteen_mib_of_anything_end_in_an_answer() {
    for (name, text) in families(16 << 20) {
        let start = Instant::now();
        let limits = Limits { input: 64 << 20, ..Limits::default() };
        let policy = Policy { limits, ..Policy::standard() };
        let outcome = Mender::new(policy).mend(&text, Status::Unknown);
        println!("{name:<24} {:<10} {:.2?}", outcome.name(), start.elapsed());
    }
}

#[test]
fn a_text_above_the_limit_is_refused_at_once() {
    let text = " ".repeat((16 << 20) + 1);
    let outcome = Mender::new(Policy::standard()).mend(&text, Status::Unknown);
    assert!(matches!(outcome, Outcome::Rejected(Refusal::TooLarge)));
}
