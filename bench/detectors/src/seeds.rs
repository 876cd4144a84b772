//! Loops made by dice from normal text, each with a seed of its own.

use fastrand::Rng;

use crate::corpus::Text;
use crate::sample::{Sample, split};

/// Loops of each kind.
pub const EACH: u64 = 200;
/// Tokens of a loop at least, and copies.
const LONG: usize = 1200;
const COPIES: usize = 6;

/// Its blocks are longer than others'.
const ANSWER: &str = "the whole answer again";

/// A kind of loop, and how it is made of a block.
pub type Kind = (&'static str, fn(&str, usize, &mut Rng) -> String);

pub const KINDS: [Kind; 9] = [
    ("exact", |block, copies, _| block.repeat(copies)),
    ("1 % of the words left out or doubled", |block, copies, dice| {
        words(&block.repeat(copies), |word, all| match dice.u32(0..200) {
            0 => {}
            1 => all.extend([word, word]),
            _ => all.push_str(word),
        })
    }),
    ("3 % of the words changed", |block, copies, dice| {
        words(&block.repeat(copies), |word, all| match dice.u32(0..100) {
            0..3 => all.push_str([" other", " thing", " where", " some"][dice.usize(0..4)]),
            _ => all.push_str(word),
        })
    }),
    ("with a counter at its end", |block, copies, _| {
        (1..=copies).map(|number| format!("{block} {number}.")).collect()
    }),
    ("as a numbered list", |block, copies, _| {
        let line = block.replace('\n', " ");
        (1..=copies).map(|number| format!("{number}. {}\n", line.trim())).collect()
    }),
    ("line ends", |_, _, dice| ["\n", "\n\n", "\n \n", " \n"][dice.usize(0..4)].repeat(1200)),
    ("the same item of a JSON array", |block, copies, _| {
        let item = serde_json::json!({ "id": 7, "text": block }).to_string();
        format!("[{}", format!("{item}, ").repeat(copies))
    }),
    ("the same item of a JSON array, numbered", |block, copies, _| {
        let item = |id: usize| serde_json::json!({ "id": id, "text": block }).to_string() + ",\n";
        format!("[{}", (1..=copies).map(item).collect::<String>())
    }),
    (ANSWER, |answer, copies, _| format!("{answer}\n\n").repeat(copies)),
];

/// A loop of `kind`, after some normal text.
pub fn make(kind: Kind, seed: u64, texts: &[&Text]) -> Sample {
    let mut dice = Rng::with_seed(seed);
    let before = slice(texts, 100, &mut dice);
    // Periods of 1 to 200 tokens, short ones as often as long ones; an answer has more.
    let long = if kind.0 == ANSWER { 80.0 + 600.0 * dice.f64() } else { 0.0 };
    let size = 200_f64.powf(dice.f64()).max(long).round() as usize;
    let block = loop {
        let block = slice(texts, size, &mut dice);
        if block.chars().any(char::is_alphabetic) {
            break block;
        }
    };
    // Parts of words join to fewer tokens than they are.
    let mut copies = (LONG / size).max(COPIES);
    while split(&block.repeat(copies)).len() < LONG {
        copies *= 2;
    }
    let (begins, text) = (before.len(), kind.1(&block, copies, &mut dice));
    Sample::new(before + &text, begins)
}

/// So many tokens from anywhere in `texts`.
fn slice(texts: &[&Text], size: usize, dice: &mut Rng) -> String {
    loop {
        let text = &texts[dice.usize(0..texts.len())].text;
        let mut from = dice.usize(0..text.len());
        while !text.is_char_boundary(from) {
            from -= 1;
        }
        let part: String = text[from..].chars().take(size * 12).collect();
        let tokens = split(&part);
        if tokens.len() > size {
            return part[..tokens[size - 1].1].to_owned();
        }
    }
}

/// `text`, with each word and the space before it taken through `take`.
fn words(text: &str, mut take: impl FnMut(&str, &mut String)) -> String {
    let (mut all, mut from) = (String::new(), 0);
    for (_, end) in split(text) {
        take(&text[from..end], &mut all);
        from = end;
    }
    all
}
