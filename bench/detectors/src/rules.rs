//! The rules by which other programs find loops, from their descriptions, for comparison.

use std::collections::{HashMap, HashSet};

use backstay_decide::detectors::{Channel, Guards, Level, Limits};

use crate::sample::{Sample, hash};

/// A rule: where in the text it takes it for a loop, if it does.
pub type Rule = fn(&Sample) -> Option<usize>;

/// All rules, ours first.
pub const RULES: [(&str, Rule); 7] = [
    ("**backstay, hard**", hard),
    ("backstay, a soft sign", soft),
    ("vLLM `repetition_detection`, 1 to 64 × 8", vllm),
    ("vLLM #40097, 1 to 20 × 3", vllm_short),
    ("vllm-mlx #723, 1 to 128 × 3, 48 tokens", vllm_mlx),
    ("llama.cpp #26039, 16 to 1,024 × 4", llama_cpp),
    ("gemini-cli, 50 characters × 10", gemini_cli),
];

pub fn hard(sample: &Sample) -> Option<usize> {
    ours(sample, Level::Hard)
}

fn soft(sample: &Sample) -> Option<usize> {
    ours(sample, Level::Soft)
}

/// Fed in pieces of eight bytes or a few more, so that the place is known.
fn ours(sample: &Sample, level: Level) -> Option<usize> {
    let mut guards = Guards::new(Limits::default());
    let mut from = 0;
    while from < sample.text.len() {
        let mut to = (from + 8).min(sample.text.len());
        while !sample.text.is_char_boundary(to) {
            to += 1;
        }
        let signal = guards.feed(Channel::Text, &sample.text[from..to]);
        if signal.is_some_and(|signal| signal.level >= level) {
            return Some(to);
        }
        from = to;
    }
    guards.finish().filter(|signal| signal.level >= level).map(|_| sample.text.len())
}

fn vllm(sample: &Sample) -> Option<usize> {
    tail(sample, 1..=64, 8, 0)
}

fn vllm_short(sample: &Sample) -> Option<usize> {
    tail(sample, 1..=20, 3, 0)
}

fn vllm_mlx(sample: &Sample) -> Option<usize> {
    tail(sample, 1..=128, 3, 48)
}

fn llama_cpp(sample: &Sample) -> Option<usize> {
    tail(sample, 16..=1024, 4, 0)
}

/// A block of one of `periods` tokens stands `copies` times at the end, and takes `least` tokens.
fn tail(
    sample: &Sample,
    periods: std::ops::RangeInclusive<usize>,
    copies: usize,
    least: usize,
) -> Option<usize> {
    let tokens: Vec<u64> = sample.tokens.iter().map(|(token, _)| *token).collect();
    let first = |period: usize| {
        let asked = (period * copies).max(least) - period;
        let mut run = 0;
        (period..tokens.len()).find(|at| {
            run = if tokens[*at] == tokens[at - period] { run + 1 } else { 0 };
            run >= asked
        })
    };
    periods.filter_map(first).min().map(|at| sample.tokens[at].1)
}

/// The same 50 characters ten times, at most 250 apart on average, with at most five different texts between;
/// forgotten at fences, tables, lists and headings, and off in fenced code.
fn gemini_cli(sample: &Sample) -> Option<usize> {
    const CHUNK: usize = 50;
    let (mut fenced, mut at, mut run) = (false, 0, String::new());
    for line in sample.text.split_inclusive('\n') {
        let start = line.trim_start();
        let fence = start.starts_with("```");
        let structure = start.starts_with(['|', '#', '>', '-', '*', '+'])
            || start.trim_start_matches(|letter: char| letter.is_ascii_digit()).starts_with(". ");
        at += line.len();
        if fence {
            fenced = !fenced;
        }
        if fence || structure || fenced {
            if let Some(end) = chunks(&run, CHUNK) {
                return Some(at - line.len() - run.len() + end);
            }
            run.clear();
            continue;
        }
        run.push_str(line);
    }
    chunks(&run, CHUNK).map(|end| at - run.len() + end)
}

fn chunks(text: &str, size: usize) -> Option<usize> {
    const TIMES: usize = 10;
    let letters: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
    let mut seen: HashMap<u64, Vec<usize>> = HashMap::new();
    for from in 0..letters.len().saturating_sub(size) {
        let places = seen.entry(hash(&text[letters[from]..letters[from + size]])).or_default();
        places.push(from);
        let Some(last) = places.len().checked_sub(TIMES).map(|first| &places[first..]) else {
            continue;
        };
        if last[TIMES - 1] - last[0] > 5 * size * (TIMES - 1) {
            continue;
        }
        let between: HashSet<&str> =
            last.windows(2).map(|pair| &text[letters[pair[0]]..letters[pair[1]]]).collect();
        if between.len() <= 5 {
            return Some(letters[from + size]);
        }
    }
    None
}
