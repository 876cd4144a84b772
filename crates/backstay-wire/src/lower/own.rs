//! Takes our own annotations, the members `x-backstay-…` of a schema, out on the way to a provider.
//!
//! They are for us alone: a provider that refuses what it does not know would refuse the request.
//! A property of such a name stays, and so does whatever stands in a value: an `enum`, a `default`.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use super::refs::{LIST, NAMED, ONE, step};

/// What the names of our annotations begin with.
const OWN: &str = "x-backstay-";

/// How deep a text is read. 256: twice what a request may nest.
const DEPTH: usize = 256;

/// `schema` without our annotations. `None`: it has none.
pub fn without_own(schema: &Value) -> Option<Value> {
    if !has_own(schema, Place::Schema, 0) {
        return None;
    }
    let mut schema = schema.clone();
    strip(&mut schema, Place::Schema, 0);
    Some(schema)
}

/// What the annotation `name` says in `schema` and in each schema inside it, with the JSON pointer to
/// the schema it stands in. What only looks like one, such as a property of that name, is none.
pub fn own_values<'s>(schema: &'s Value, name: &str) -> Vec<(String, &'s Value)> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), schema, Place::Schema, 0)];
    while let Some((at, value, place, depth)) = open.pop() {
        if depth > DEPTH || matches!(place, Place::Value) {
            continue;
        }
        match value {
            Value::Array(items) => open.extend(
                items
                    .iter()
                    .enumerate()
                    .map(|(index, item)| (format!("{at}/{index}"), item, place.item(), depth + 1)),
            ),
            Value::Object(members) => {
                for (key, inner) in members {
                    if place.cuts(key) && key == name {
                        found.push((at.clone(), inner));
                    } else {
                        open.push((step(&at, key), inner, place.member(key), depth + 1));
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found.sort_by(|one, two| one.0.cmp(&two.0));
    found
}

/// The JSON `text` without our annotations in the schemas that stand at `path`, and every other byte
/// as it was. A step of the path is the name of a member, or `*` for every item. `None`: there are
/// none, or the text cannot be read.
pub fn cut_own(text: &str, path: &[&str]) -> Option<String> {
    // Cheaper than a walk; a name may be written with escapes.
    if !text.contains(OWN) && !text.contains("\\u") {
        return None;
    }
    let mut walker = Walker { text, at: 0, cuts: Vec::new() };
    walker.value(Place::of(path), 0)?;
    if walker.cuts.is_empty() {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    walker.cuts.sort_by_key(|cut| cut.start);
    for cut in walker.cuts {
        // A cut inside another one is done with it.
        if cut.start >= from {
            out.push_str(text.get(from..cut.start)?);
        }
        from = from.max(cut.end);
    }
    out.push_str(text.get(from..)?);
    Some(out)
}

/// What a value stands for.
#[derive(Clone, Copy)]
enum Place<'p> {
    /// These steps above a schema.
    Path(&'p [&'p str]),
    /// A schema, or a list of them.
    Schema,
    /// Schemas by name.
    Named,
    /// A value of its own.
    Value,
}

impl<'p> Place<'p> {
    fn of(path: &'p [&'p str]) -> Self {
        if path.is_empty() { Self::Schema } else { Self::Path(path) }
    }

    fn member(self, key: &str) -> Self {
        match self {
            Self::Path([step, rest @ ..]) if *step == key => Self::of(rest),
            Self::Named => Self::Schema,
            Self::Schema if NAMED.contains(&key) || key == "dependencies" => Self::Named,
            Self::Schema if ONE.contains(&key) || LIST.contains(&key) => Self::Schema,
            Self::Schema | Self::Path(_) | Self::Value => Self::Value,
        }
    }

    fn item(self) -> Self {
        match self {
            Self::Path(["*", rest @ ..]) => Self::of(rest),
            Self::Schema => Self::Schema,
            Self::Path(_) | Self::Named | Self::Value => Self::Value,
        }
    }

    fn cuts(self, key: &str) -> bool {
        matches!(self, Self::Schema) && key.starts_with(OWN)
    }
}

fn has_own(value: &Value, place: Place<'_>, depth: usize) -> bool {
    match value {
        _ if depth > DEPTH || matches!(place, Place::Value) => false,
        Value::Array(items) => items.iter().any(|item| has_own(item, place.item(), depth + 1)),
        Value::Object(members) => members
            .iter()
            .any(|(key, inner)| place.cuts(key) || has_own(inner, place.member(key), depth + 1)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn strip(value: &mut Value, place: Place<'_>, depth: usize) {
    match value {
        _ if depth > DEPTH || matches!(place, Place::Value) => {}
        Value::Array(items) => {
            for item in items {
                strip(item, place.item(), depth + 1);
            }
        }
        Value::Object(members) => {
            members.retain(|key, _| !place.cuts(key));
            for (key, inner) in members {
                strip(inner, place.member(key), depth + 1);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Walks over the bytes of a JSON text; `None` anywhere: it is none.
struct Walker<'t> {
    text: &'t str,
    at: usize,
    /// What is to be cut out: members with the comma that goes with them.
    cuts: Vec<Range<usize>>,
}

impl<'t> Walker<'t> {
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..)?;
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        self.text.as_bytes().get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn value(&mut self, place: Place<'_>, depth: usize) -> Option<()> {
        if depth > DEPTH {
            return None;
        }
        match self.peek()? {
            b'{' => self.object(place, depth),
            b'[' => self.array(place, depth),
            b'"' => self.string().map(|_| ()),
            _ => {
                let rest = self.text.as_bytes().get(self.at..)?;
                let ends = |byte: &u8| b",]} \t\r\n".contains(byte);
                let length = rest.iter().position(ends).unwrap_or(rest.len());
                self.at += length;
                (length > 0).then_some(())
            }
        }
    }

    fn array(&mut self, place: Place<'_>, depth: usize) -> Option<()> {
        self.take(b'[')?;
        if self.peek()? == b']' {
            return self.take(b']');
        }
        loop {
            self.value(place.item(), depth + 1)?;
            match self.peek()? {
                b',' => self.take(b',')?,
                _ => return self.take(b']'),
            }
        }
    }

    fn object(&mut self, place: Place<'_>, depth: usize) -> Option<()> {
        self.take(b'{')?;
        if self.peek()? == b'}' {
            return self.take(b'}');
        }
        // Where the last member that stays ends, and where what is cut behind it begins and ends.
        let mut kept: Option<usize> = None;
        let mut cut: Option<Range<usize>> = None;
        loop {
            self.peek()?;
            let start = self.at;
            let key = self.string()?;
            if !place.cuts(&key)
                && let Some(cut) = cut.take()
            {
                self.cuts.push(cut.start..start);
            }
            self.take(b':')?;
            self.value(place.member(&key), depth + 1)?;
            if place.cuts(&key) {
                cut = Some(cut.map_or(start, |cut| cut.start)..self.at);
            } else {
                kept = Some(self.at);
            }
            match self.peek()? {
                b',' => self.take(b',')?,
                _ => break,
            }
        }
        if let Some(cut) = cut {
            self.cuts.push(kept.unwrap_or(cut.start)..cut.end);
        }
        self.take(b'}')
    }

    /// A string, decoded where it has escapes.
    fn string(&mut self) -> Option<Cow<'t, str>> {
        self.take(b'"')?;
        let start = self.at;
        loop {
            let rest = self.text.as_bytes().get(self.at..)?;
            self.at += memchr::memchr2(b'"', b'\\', rest)?;
            if self.text.as_bytes().get(self.at) == Some(&b'"') {
                break;
            }
            self.at += 2;
        }
        let inner = self.text.get(start..self.at)?;
        self.at += 1;
        if !inner.contains('\\') {
            return Some(Cow::Borrowed(inner));
        }
        let whole = self.text.get(start - 1..self.at)?;
        serde_json::from_str(whole).ok().map(Cow::Owned)
    }
}
