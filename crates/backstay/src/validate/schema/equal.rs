//! When two values are the same by JSON Schema: `1` and `1.0` are, and the order of keys is nothing.

use std::borrow::Cow;
use std::collections::HashSet;

use serde_json::{Map, Value};

use super::meter::{length, look};
use super::node::{Seen, SeenItems, SeenMembers};

/// Whether `seen` is the value that stands in the schema. Goes as deep as the schema's value.
pub(super) fn equals(seen: Seen<'_>, expected: &Value) -> bool {
    look(1);
    match expected {
        Value::Null => seen.is_nothing(),
        Value::Bool(expected) => seen.truth() == Some(*expected),
        Value::Number(expected) => seen.numeral().is_some_and(|number| number.equals(expected)),
        Value::String(expected) => {
            look(length(expected));
            seen.text().is_some_and(|text| text == expected.as_str())
        }
        Value::Array(expected) => seen.items().is_some_and(|items| {
            items.count() == expected.len()
                && items.each().zip(expected).all(|(item, expected)| equals(item, expected))
        }),
        Value::Object(expected) => {
            seen.members().is_some_and(|members| equal_members(members, expected))
        }
    }
}

/// Members in the same order are compared in passing; else each is looked up.
fn equal_members(members: SeenMembers<'_>, expected: &Map<String, Value>) -> bool {
    if members.count() != expected.len() {
        return false;
    }
    let mut pairs = members.each().zip(expected);
    if pairs.all(|((key, _), (name, _))| key == *name) {
        let mut pairs = members.each().zip(expected.values());
        return pairs.all(|((_, member), expected)| equals(member, expected));
    }
    expected
        .iter()
        .all(|(name, expected)| members.find(name).is_some_and(|member| equals(member, expected)))
}

/// Texts in one array that are compared pair by pair; more are hashed.
const PAIRWISE: usize = 16;

/// Whether no item is there twice. Takes time and memory in proportion to the text.
pub(super) fn all_differ(items: SeenItems<'_>) -> bool {
    if items.count() <= PAIRWISE
        && let Some(differ) = few_texts_differ(items)
    {
        return differ;
    }
    let mut text = Vec::new();
    let mut ends = Vec::with_capacity(items.count());
    for item in items.each() {
        write(item, &mut text);
        ends.push(text.len());
    }
    let mut seen = HashSet::with_capacity(ends.len());
    let mut start = 0;
    ends.into_iter().all(|end| {
        let item = text.get(start..end);
        start = end;
        seen.insert(item)
    })
}

/// The same for at most [`PAIRWISE`] items that are all texts without an escape, without memory of
/// its own. `None` for others.
fn few_texts_differ(items: SeenItems<'_>) -> Option<bool> {
    let mut texts = [""; PAIRWISE];
    for (count, item) in items.each().enumerate() {
        let Some(Cow::Borrowed(text)) = item.text() else { return None };
        look(length(text));
        if texts.get(..count)?.contains(&text) {
            return Some(false);
        }
        *texts.get_mut(count)? = text;
    }
    Some(true)
}

/// Writes a value so that equal values give equal bytes, and others do not. The parser bounds the
/// depth.
fn write(seen: Seen<'_>, out: &mut Vec<u8>) {
    look(1);
    if let Some(text) = seen.text() {
        return write_text(&text, out);
    }
    if let Some(number) = seen.numeral() {
        return number.write(out);
    }
    if let Some(items) = seen.items() {
        out.push(b'[');
        for item in items.each() {
            write(item, out);
            out.push(b',');
        }
        return out.push(b']');
    }
    if let Some(members) = seen.members() {
        let mut members: Vec<(Cow<'_, str>, Seen<'_>)> = members.each().collect();
        members.sort_by(|one, other| one.0.cmp(&other.0));
        out.push(b'{');
        for (key, member) in members {
            write_text(&key, out);
            write(member, out);
        }
        return out.push(b'}');
    }
    out.extend_from_slice(match seen.truth() {
        Some(true) => b"t",
        Some(false) => b"f",
        None => b"n",
    });
}

/// Its length goes in front, so that no text can look like the end of itself.
fn write_text(text: &str, out: &mut Vec<u8>) {
    look(length(text));
    out.push(b'"');
    out.extend_from_slice(&text.len().to_le_bytes());
    out.extend_from_slice(text.as_bytes());
}
