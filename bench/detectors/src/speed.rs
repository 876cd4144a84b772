//! What the guards cost.

use std::hint::black_box;
use std::time::Instant;

use backstay_decide::detectors::{Channel, Guards, Limits};

use crate::corpus::Text;

/// Each text is measured so often, and the best time taken: another program's turn does not count.
const ROUNDS: usize = 9;
const BYTES: usize = 8 << 20;
/// Bytes of a piece of a stream: about a token.
const PIECE: usize = 5;

/// What is measured of a text, whole and in pieces.
type Work = fn(&str, &[&str]) -> usize;

const WORKS: [(&str, Work); 5] = [
    ("all guards, in pieces", |_, pieces| fed(pieces)),
    ("all guards, the text in one piece", |text, _| fed(&[text])),
    ("a whole reply", |text, _| whole(text)),
    ("the pieces joined", |_, pieces| pieces.concat().len()),
    ("memchr for line ends", |text, _| memchr::memchr_iter(b'\n', text.as_bytes()).count()),
];

/// Measures the time a token takes. Returns whether it is within its bound.
pub fn measure(texts: &[Text]) -> bool {
    let (mut bytes, mut tokens, mut count) = (0, 0, 0);
    let mut seconds = [0.0; WORKS.len()];
    for text in texts.iter().map(|text| text.text.as_str()) {
        if bytes > BYTES {
            break;
        }
        let pieces = cut(text);
        bytes += text.len();
        tokens += fed(&[text]);
        count += pieces.len();
        for ((_, work), seconds) in WORKS.iter().zip(&mut seconds) {
            let best = (0..ROUNDS).map(|_| time(|| work(black_box(text), black_box(&pieces))));
            *seconds += best.fold(f64::MAX, f64::min);
        }
    }
    println!(
        "Time, the best of {ROUNDS} rounds for each of the first texts, {} MB, {tokens} tokens.\n",
        bytes / 1_000_000
    );
    println!("| what | ns a token | ns a piece of {PIECE} bytes |\n|---|---|---|");
    for ((what, _), seconds) in WORKS.iter().zip(seconds) {
        println!(
            "| {what} | {:.1} | {:.1} |",
            seconds * 1e9 / tokens as f64,
            seconds * 1e9 / count as f64
        );
    }
    println!();
    seconds[0] * 1e9 / tokens as f64 <= 200.0
}

fn time(run: impl FnOnce() -> usize) -> f64 {
    let began = Instant::now();
    black_box(run());
    began.elapsed().as_secs_f64()
}

fn fed(pieces: &[&str]) -> usize {
    let mut guards = Guards::new(Limits::default());
    for piece in pieces {
        guards.feed(Channel::Text, black_box(piece));
    }
    guards.tokens()
}

fn whole(text: &str) -> usize {
    let mut guards = Guards::new(Limits::default());
    guards.whole(Channel::Text, black_box(text));
    guards.tokens()
}

fn cut(text: &str) -> Vec<&str> {
    let (mut pieces, mut rest) = (Vec::new(), text);
    while !rest.is_empty() {
        let end = (PIECE..)
            .find(|end| *end >= rest.len() || rest.is_char_boundary(*end))
            .unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end.min(rest.len()));
        pieces.push(piece);
        rest = after;
    }
    pieces
}
