//! Finds a key that an object has twice, at a cost of a few nanoseconds for each key.

use std::borrow::Cow;

use super::word::{Tag, Word};
use crate::lex::escape;

/// The keys of all open objects, innermost last.
#[derive(Clone, Debug, Default)]
pub(super) struct Keys {
    hashes: Vec<u32>,
    /// Index of each key on the tape.
    places: Vec<u32>,
    /// The keys of closed objects in which two have the same hash.
    suspects: Vec<Vec<u32>>,
}

/// One key that stands in its object twice: the tape indices of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Twice {
    pub(crate) first: usize,
    pub(crate) again: usize,
}

/// Up to this many keys every pair of hashes is compared; above it they are sorted.
const PAIRWISE: usize = 24;

impl Keys {
    /// Every key that stands twice in its object.
    pub(super) fn twice(&self, words: &[Word], text: &str) -> Vec<Twice> {
        let mut found = Vec::new();
        for places in &self.suspects {
            repeated(places, words, text, &mut found);
        }
        // An object that was closed, opened again and closed again was kept twice.
        found.sort_unstable_by_key(|pair: &Twice| (pair.first, pair.again));
        found.dedup();
        found
    }

    pub(super) fn len(&self) -> usize {
        self.hashes.len()
    }

    /// Forgets all keys of open objects, and what was kept of objects that reach to this word.
    pub(super) fn forget_from(&mut self, word: usize) {
        self.hashes.clear();
        self.places.clear();
        let is_before =
            |places: &Vec<u32>| places.last().is_some_and(|last| (*last as usize) < word);
        self.suspects.retain(is_before);
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a tape has fewer than 2^28 words")]
    pub(super) fn push(&mut self, inside: &[u8], escaped: Escaped, place: usize) {
        let hash = match escaped {
            Escaped::No => hash(inside),
            Escaped::Yes => {
                let text = std::str::from_utf8(inside).unwrap_or_default();
                hash(escape::decode(text).as_bytes())
            }
        };
        self.hashes.push(hash);
        self.places.push(place as u32);
    }

    /// Forgets the keys from `base` on, which belong to the object that just closed. If it may
    /// have one of them twice, its keys are kept to be compared by [`Keys::twice`].
    #[inline]
    pub(super) fn close(&mut self, base: usize) {
        let hashes = self.hashes.get(base..).unwrap_or_default();
        if may_repeat(hashes) {
            self.suspects.push(self.places.get(base..).unwrap_or_default().to_vec());
        }
        self.hashes.truncate(base);
        self.places.truncate(base);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Escaped {
    No,
    Yes,
}

/// Whether two of the hashes may be the same: not where each has a bit of its own.
#[inline]
fn may_repeat(hashes: &[u32]) -> bool {
    let mut seen = [0_u64; 8];
    for hash in hashes {
        let [low, high, ..] = hash.to_le_bytes();
        let bits = &mut seen[usize::from(high % 8)];
        let bit = 1 << (low % 64);
        if *bits & bit != 0 {
            return repeats(hashes);
        }
        *bits |= bit;
    }
    false
}

fn repeats(hashes: &[u32]) -> bool {
    if hashes.len() > PAIRWISE {
        return repeats_sorted(hashes);
    }
    let mut rest = hashes;
    while let Some((first, others)) = rest.split_first() {
        if others.contains(first) {
            return true;
        }
        rest = others;
    }
    false
}

#[cold]
fn repeats_sorted(hashes: &[u32]) -> bool {
    let mut sorted = hashes.to_vec();
    sorted.sort_unstable();
    sorted.array_windows().any(|[one, two]| one == two)
}

/// Compares the keys themselves. Sorted by text, so that keys made to collide cost no more.
#[cold]
fn repeated(places: &[u32], words: &[Word], text: &str, found: &mut Vec<Twice>) {
    let mut keys: Vec<(Cow<'_, str>, usize)> =
        places.iter().map(|place| (key(words, text, *place as usize), *place as usize)).collect();
    keys.sort();
    for pair in keys.chunk_by(|one, two| one.0 == two.0) {
        let Some(((_, first), rest)) = pair.split_first() else { continue };
        found.extend(rest.iter().map(|(_, again)| Twice { first: *first, again: *again }));
    }
}

fn key<'t>(words: &[Word], text: &'t str, place: usize) -> Cow<'t, str> {
    let Some(word) = words.get(place) else { return Cow::Borrowed("") };
    let (start, end) = word.span();
    let inside = text.get(start..end).unwrap_or_default();
    if word.tag() == Tag::Escaped { escape::decode(inside) } else { Cow::Borrowed(inside) }
}

#[inline]
fn hash(key: &[u8]) -> u32 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let mix = |sum: u64, word: u64| (sum.rotate_left(5) ^ word).wrapping_mul(MIX);
    let mut sum = key.len() as u64;
    if let Some(last) = key.last_chunk() {
        // What is left behind the whole words, with what stands before it.
        for word in key.as_chunks().0 {
            sum = mix(sum, u64::from_le_bytes(*word));
        }
        sum = mix(sum, u64::from_le_bytes(*last));
    } else if let (Some(first), Some(last)) = (key.first_chunk(), key.last_chunk()) {
        let (first, last) = (u32::from_le_bytes(*first), u32::from_le_bytes(*last));
        sum = mix(sum, u64::from(first) << 32 | u64::from(last));
    } else {
        sum = mix(sum, key.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    }
    (sum >> 32) as u32
}
