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

/// Bytes above which a value is hashed by itself: two chunks of the hash. From the start of a chunk it runs
/// sixteen wide, in the middle of one it cannot. With another number every fingerprint is another.
const LONG: usize = 2_048;

/// Bytes that are gathered before they are hashed: all of a usual request.
const GATHERED: usize = 4_096;

/// A fingerprint; printed as its first 12 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of one attempt: this contract, sent to `target` with `edits`. The bytes
    /// sent follow from the three.
    #[must_use]
    pub fn attempt(&self, target: &str, edits: &[u8]) -> Self {
        let mut text = Text::default();
        text.add(&self.0);
        text.field("target", target.as_bytes());
        text.field("edits", edits);
        text.fingerprint()
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
    let mut text = Text::default();
    text.field("dialect", dialect.name().as_bytes());
    text.field("route", route.revision.as_bytes());
    text.field("prompt", route.prompt_version.as_deref().unwrap_or_default().as_bytes());
    for (key, value) in fields {
        text.field(key, value);
    }
    text.fingerprint()
}

/// What is hashed. Small pieces are gathered first: one by one they take the hash longer than they are worth.
struct Text {
    hash: blake3::Hasher,
    gathered: Vec<u8>,
}

impl Default for Text {
    fn default() -> Self {
        Self { hash: blake3::Hasher::new(), gathered: Vec::with_capacity(GATHERED) }
    }
}

impl Text {
    /// Adds a named value so that no two sequences of fields run together.
    fn field(&mut self, name: &str, value: &[u8]) {
        self.add(&(name.len() as u64).to_le_bytes());
        self.add(name.as_bytes());
        self.add(&(value.len() as u64).to_le_bytes());
        if value.len() > LONG {
            self.add(blake3::hash(value).as_bytes());
        } else {
            self.add(value);
        }
    }

    fn add(&mut self, piece: &[u8]) {
        if self.gathered.len() + piece.len() > GATHERED {
            self.hash.update(&self.gathered);
            self.gathered.clear();
        }
        if piece.len() > GATHERED {
            self.hash.update(piece);
        } else {
            self.gathered.extend_from_slice(piece);
        }
    }

    fn fingerprint(mut self) -> Fingerprint {
        self.hash.update(&self.gathered);
        Fingerprint(*self.hash.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash of the fields one after the other, without gathering.
    fn plainly(fields: &[(String, Vec<u8>)]) -> Fingerprint {
        let mut all = Vec::new();
        for (name, value) in fields {
            all.extend_from_slice(&(name.len() as u64).to_le_bytes());
            all.extend_from_slice(name.as_bytes());
            all.extend_from_slice(&(value.len() as u64).to_le_bytes());
            match value.len() {
                0..=2_048 => all.extend_from_slice(value),
                _ => all.extend_from_slice(blake3::hash(value).as_bytes()),
            }
        }
        Fingerprint(*blake3::hash(&all).as_bytes())
    }

    #[test]
    fn it_is_the_same_however_much_of_it_is_gathered() {
        for lengths in [
            &[0][..],
            &[1, 2_047, 2_048, 2_049],
            &[2_048, 2_048, 2_048],
            &[100_000, 1],
            &[4_000, 90, 1, 7, 2_000, 2_000],
        ] {
            let field = |length: &usize| ("n".repeat(*length), vec![b'v'; *length]);
            let fields: Vec<_> = lengths.iter().map(field).collect();
            let mut text = Text::default();
            for (name, value) in &fields {
                text.field(name, value);
            }
            assert_eq!(text.fingerprint(), plainly(&fields), "{lengths:?}");
        }
    }

    #[test]
    fn an_attempt_keeps_the_fingerprint_it_always_had() {
        let labels = [0, 100, 3_000]
            .map(|length| Fingerprint([7; 32]).attempt("a/b", &vec![b'x'; length]).label());
        assert_eq!(labels, LABELS);
    }

    const LABELS: [&str; 3] = ["375415772056", "4a915efff58e", "179c41a4c3d1"];
}
