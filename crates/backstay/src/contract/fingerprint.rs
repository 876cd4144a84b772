//! What a contract hashes to: everything that can change the answer, and nothing else.
//!
//! The same request, prompt version, schema, rules and route revision give the same fingerprint,
//! whatever the timeouts, trace ids and form of delivery. It labels logs and keys caches. The hash
//! runs over the bytes of each top-level field, fields in order of name, so two requests that
//! differ only in the order of their fields are one; white space inside a field tells them apart.

use backstay_wire::scan::Scanned;

use super::Ask;
use crate::policy::Route;

/// Fields that say how an answer is delivered, billed or traced, not what it is.
const DELIVERY: [&str; 9] = [
    "stream",
    "stream_options",
    "user",
    "metadata",
    "safety_identifier",
    "store",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_retention",
];

/// Bytes above which a value is hashed by itself: two chunks.
const LONG: usize = 2_048;

/// A fingerprint; printed as its first 12 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of one attempt: this contract, sent to `target` with `edits`. The bytes
    /// sent follow from the three.
    #[must_use]
    pub fn attempt(&self, target: &str, edits: &[u8]) -> Self {
        let mut hash = blake3::Hasher::new();
        hash.update(&self.0);
        field(&mut hash, "target", target.as_bytes());
        field(&mut hash, "edits", edits);
        Self(*hash.finalize().as_bytes())
    }
}

impl Fingerprint {
    /// The first 12 hexadecimal digits. Written by hand: it is told three times a call, and the
    /// general formatter takes longer than the hash.
    pub fn label(&self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |half: u8| char::from(DIGITS[usize::from(half & 15)]);
        let mut label = String::with_capacity(12);
        label.extend(self.0.iter().take(6).flat_map(|byte| [digit(byte >> 4), digit(*byte)]));
        label
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.label())
    }
}

impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// The fingerprint of a request under a route.
pub(super) fn of(head: &Scanned, ask: &Ask, route: &Route) -> Fingerprint {
    let (body, dialect) = (&ask.body, ask.dialect);
    let mut fields: Vec<(&str, &[u8])> = head
        .keys()
        .filter(|(key, _)| !DELIVERY.contains(key))
        .map(|(key, span)| (key, body.get(span.clone()).unwrap_or_default()))
        .collect();
    fields.sort_by_key(|(key, _)| *key);
    let mut hash = blake3::Hasher::new();
    field(&mut hash, "dialect", dialect.name().as_bytes());
    field(&mut hash, "route", route.revision.as_bytes());
    field(&mut hash, "prompt", route.prompt_version.as_deref().unwrap_or_default().as_bytes());
    for (key, value) in fields {
        field(&mut hash, key, value);
    }
    Fingerprint(*hash.finalize().as_bytes())
}

/// Adds a named value so that no two sequences of fields run together.
fn field(hash: &mut blake3::Hasher, name: &str, value: &[u8]) {
    hash.update(&(name.len() as u64).to_le_bytes());
    hash.update(name.as_bytes());
    hash.update(&(value.len() as u64).to_le_bytes());
    // A long value is hashed by itself: from the start of a chunk the hash runs sixteen wide, in
    // the middle of one it cannot.
    if value.len() > LONG {
        hash.update(blake3::hash(value).as_bytes());
    } else {
        hash.update(value);
    }
}
