//! Deals with keys that an object has twice.

use crate::edit::{Change, Kind};
use crate::policy::DupKeys;
use crate::tape::build::Builder;
use crate::tape::{Node, Word};

/// What is to be done about the keys given twice.
#[derive(Debug)]
pub(super) enum Verdict {
    /// Nothing: no key stands twice.
    Unique,
    /// Leave these members out; in offsets of the text the builder read.
    Drop(Vec<Change>),
    /// The policy does not say which counts; values of a key beside its first and its last.
    Doubtful(usize),
}

pub(super) fn judge(builder: &Builder, text: &str, policy: DupKeys) -> Verdict {
    let twice = builder.twice(text);
    if twice.is_empty() {
        return Verdict::Unique;
    }
    let words = builder.words();
    let mut drops = Vec::new();
    for group in twice.chunk_by(|one, two| one.first == two.first) {
        let mut keys: Vec<usize> = group.iter().map(|pair| pair.again).collect();
        keys.extend(group.first().map(|pair| pair.first));
        keys.sort_unstable();
        let values = keys.iter().filter_map(|key| Node::at(words, text, key + 1));
        let values: Vec<Node<'_>> = values.collect();
        let is_same = values.windows(2).all(|pair| match pair {
            [one, two] => one.same(*two),
            _ => true,
        });
        let (Some(first), Some(last)) = (keys.first(), keys.last()) else { continue };
        let (kept, kind) = match (is_same, policy) {
            (_, DupKeys::Reject) | (false, DupKeys::SameOnly) => {
                return Verdict::Doubtful(others(&values));
            }
            (true, _) => (*first, Kind::DupSame),
            (false, DupKeys::First) => (*first, Kind::DupKey),
            (false, DupKeys::Last) => (*last, Kind::DupKey),
        };
        for key in keys.iter().filter(|key| **key != kept) {
            let Some((start, end)) = member(words, text, *key, *key != *first) else {
                return Verdict::Doubtful(0);
            };
            drops.push(Change::new(kind, start..end, ""));
        }
    }
    drops.sort_by_key(|drop| (drop.start(), std::cmp::Reverse(drop.end())));
    let mut end = 0;
    drops.retain(|drop| {
        let is_outer = drop.start() >= end;
        if is_outer {
            end = drop.end();
        }
        is_outer
    });
    Verdict::Drop(drops)
}

/// Values that are neither the first nor the last.
fn others(values: &[Node<'_>]) -> usize {
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return 0 };
    values.iter().filter(|value| !value.same(*first) && !value.same(*last)).count()
}

/// The span of a member with the comma before it, or with the one behind it.
fn member(words: &[Word], text: &str, key: usize, comma_before: bool) -> Option<(usize, usize)> {
    let start = words.get(key)?.span().0 - 1;
    let value = words.get(key)?.span().1 + 1;
    let end = value_end(text.as_bytes(), value)?;
    if comma_before {
        return Some((text.get(..start)?.rfind(',')?, end));
    }
    let behind = text.get(end..)?;
    Some((start, end + behind.find(',')? + 1))
}

/// Where the value ends whose colon comes at or behind `at`, in strict text.
fn value_end(bytes: &[u8], mut at: usize) -> Option<usize> {
    let mut depth = 0_usize;
    at += bytes.get(at..)?.iter().position(|byte| *byte == b':')? + 1;
    let mut in_string = false;
    loop {
        match (in_string, bytes.get(at)?) {
            (true, b'\\') => at += 1,
            (_, b'"') => in_string = !in_string,
            (false, b'{' | b'[') => depth += 1,
            (false, b'}' | b']') if depth > 0 => depth -= 1,
            (false, b',' | b'}' | b']') if depth == 0 => break,
            _ => {}
        }
        at += 1;
    }
    let before = bytes.get(..at)?;
    let spaces = before.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
    Some(at - spaces)
}
