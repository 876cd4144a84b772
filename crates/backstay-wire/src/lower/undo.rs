//! Takes a lowering back on a reply.
//!
//! The text is written anew from the reply's own pieces: numbers keep their digits, strings their
//! escapes. Where a reply does not have the lowered form, it is left as it is, for the full check to
//! judge.

use std::collections::HashSet;

use jsonmend::{Node, ValueKind};
use serde_json::Value;

use super::Lowering;
use super::form::Form;
use super::kinds::Types;
use super::refs::step;

/// The most places of a reply looked at to tell which branch of a union it is, over the whole reply.
/// Past that a branch is taken by its outermost type.
const MAX_LOOKS: usize = 1_000_000;

/// The most events kept of one reply: what jsonmend keeps of edits.
const MAX_EVENTS: usize = 1_000;

/// A reply in the form of the source schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The JSON text.
    pub text: String,
    /// What was undone, in the order of the text; the first 1,000.
    pub events: Vec<Event>,
}

/// One thing undone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// What.
    pub kind: EventKind,
    /// Where, as a JSON Pointer into the undone text.
    pub pointer: String,
}

/// What was undone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// A `null` that stood for no member.
    NullDropped,
    /// The root was unwrapped.
    ValueUnwrapped,
    /// Entries were made a map.
    MapRebuilt,
}

impl EventKind {
    /// The name in reports, headers and metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NullDropped => "lowered_null_dropped",
            Self::ValueUnwrapped => "lowered_value_unwrapped",
            Self::MapRebuilt => "lowered_map_rebuilt",
        }
    }
}

/// A key that two entries of a map have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{pointer}: key '{key}' comes twice")]
pub struct RepeatedKey {
    /// The map, as a JSON Pointer into the source's form.
    pub pointer: String,
    /// The key.
    pub key: String,
}

impl Lowering {
    /// Whether a reply may have to be changed back.
    pub fn acts(&self) -> bool {
        !self.forms.is_empty()
    }

    /// The reply as the source schema has it. `None`: there is nothing to undo in it.
    ///
    /// # Errors
    /// Two entries of a map have the same key: which was meant cannot be known.
    pub fn undo(&self, reply: Node<'_>) -> Result<Option<Undone>, RepeatedKey> {
        if !self.acts() {
            return Ok(None);
        }
        let mut undo = Undo {
            forms: &self.forms,
            out: String::new(),
            events: Vec::new(),
            changed: false,
            looks: 0,
        };
        undo.value(0, reply, "")?;
        Ok(undo.changed.then_some(Undone { text: undo.out, events: undo.events }))
    }
}

struct Undo<'f> {
    forms: &'f [Form],
    out: String,
    events: Vec<Event>,
    changed: bool,
    looks: usize,
}

impl<'f> Undo<'f> {
    fn form(&self, at: usize) -> Option<&'f Form> {
        self.forms.get(at)
    }

    fn event(&mut self, kind: EventKind, pointer: &str) {
        self.changed = true;
        if self.events.len() < MAX_EVENTS {
            self.events.push(Event { kind, pointer: pointer.to_owned() });
        }
    }

    fn value(&mut self, at: usize, node: Node<'_>, pointer: &str) -> Result<(), RepeatedKey> {
        let Some(form) = self.form(at).filter(|form| form.acts) else {
            self.copy(node);
            return Ok(());
        };
        if !form.branches.is_empty() {
            let Some(branch) = self.branch(form, node) else {
                self.copy(node);
                return Ok(());
            };
            return self.value(branch, node, pointer);
        }
        match node.kind() {
            ValueKind::Object if form.wrapped => self.unwrapped(form, node),
            ValueKind::Object => self.object(form, node, pointer),
            ValueKind::Array if form.map => self.map(form, node, pointer),
            ValueKind::Array => self.array(form, node, pointer),
            _ => {
                self.copy(node);
                Ok(())
            }
        }
    }

    fn unwrapped(&mut self, form: &'f Form, node: Node<'_>) -> Result<(), RepeatedKey> {
        let value = node.get("value").filter(|_| node.len() == 1);
        let (Some(value), Some(member)) = (value, form.members.first()) else {
            self.copy(node);
            return Ok(());
        };
        self.event(EventKind::ValueUnwrapped, "");
        self.value(member.form, value, "")
    }

    fn object(&mut self, form: &'f Form, node: Node<'_>, at: &str) -> Result<(), RepeatedKey> {
        self.out.push('{');
        let mut first = true;
        for (key, value) in node.members() {
            let member = form.names.get(&*key).and_then(|at| form.members.get(*at));
            if member.is_some_and(|member| member.optional) && value.kind() == ValueKind::Null {
                self.event(EventKind::NullDropped, &step(at, &key));
                continue;
            }
            if form.extra.as_deref() == Some(&*key)
                && let Some((list, entries)) = member.and_then(|m| self.entries(m.form, value))
            {
                let taken = node.members().filter(|(name, value)| {
                    let member = form.names.get(&**name).and_then(|at| form.members.get(*at));
                    let dropped = value.kind() == ValueKind::Null
                        && member.is_some_and(|member| member.optional);
                    name != &key && !dropped
                });
                let taken = taken.map(|(name, _)| name.into_owned()).collect();
                self.event(EventKind::MapRebuilt, at);
                self.spliced((list, entries), taken, at, &mut first)?;
                continue;
            }
            self.key(&key, &mut first);
            match member.map(|member| member.form).or(form.rest) {
                Some(inner) => self.value(inner, value, &step(at, &key))?,
                None => self.copy(value),
            }
        }
        self.out.push('}');
        Ok(())
    }

    fn map(&mut self, form: &'f Form, node: Node<'_>, at: &str) -> Result<(), RepeatedKey> {
        let list = form.items;
        let Some(entries) = entries_of(node) else {
            self.copy(node);
            return Ok(());
        };
        self.event(EventKind::MapRebuilt, at);
        self.out.push('{');
        self.spliced((list, entries), HashSet::new(), at, &mut true)?;
        self.out.push('}');
        Ok(())
    }

    /// Writes entries as members; `taken` are the keys that the object has already.
    fn spliced(
        &mut self,
        (list, entries): (Option<usize>, Vec<(Node<'_>, Node<'_>)>),
        mut taken: HashSet<String>,
        at: &str,
        first: &mut bool,
    ) -> Result<(), RepeatedKey> {
        let entry = list.and_then(|at| self.form(at));
        let inner = entry.and_then(|entry| {
            entry.members.get(*entry.names.get("value")?).map(|member| member.form)
        });
        for (key, value) in entries {
            let name = key.string().unwrap_or_default().into_owned();
            let here = step(at, &name);
            if !taken.insert(name.clone()) {
                return Err(RepeatedKey { pointer: at.to_owned(), key: name });
            }
            self.comma(first);
            self.copy(key);
            self.out.push(':');
            match inner {
                Some(inner) => self.value(inner, value, &here)?,
                None => self.copy(value),
            }
        }
        Ok(())
    }

    /// The entries of the array at a member, with the form of one.
    #[expect(clippy::type_complexity, reason = "a pair of what the two callers take apart at once")]
    fn entries<'n>(
        &self,
        form: usize,
        node: Node<'n>,
    ) -> Option<(Option<usize>, Vec<(Node<'n>, Node<'n>)>)> {
        Some((self.form(form)?.items, entries_of(node)?))
    }

    fn array(&mut self, form: &'f Form, node: Node<'_>, at: &str) -> Result<(), RepeatedKey> {
        self.out.push('[');
        let mut first = true;
        for (index, item) in node.items().enumerate() {
            self.comma(&mut first);
            match form.prefix.get(index).copied().or(form.items) {
                Some(inner) => self.value(inner, item, &format!("{at}/{index}"))?,
                None => self.copy(item),
            }
        }
        self.out.push(']');
        Ok(())
    }

    // --- writing ---

    fn comma(&mut self, first: &mut bool) {
        if !std::mem::replace(first, false) {
            self.out.push(',');
        }
    }

    fn key(&mut self, key: &str, first: &mut bool) {
        self.comma(first);
        self.out.push_str(&Value::from(key).to_string());
        self.out.push(':');
    }

    /// Writes a value as it is, without the white space between its pieces.
    fn copy(&mut self, node: Node<'_>) {
        match node.kind() {
            ValueKind::Object => {
                self.out.push('{');
                let mut first = true;
                for (key, value) in node.members() {
                    self.key(&key, &mut first);
                    self.copy(value);
                }
                self.out.push('}');
            }
            ValueKind::Array => {
                self.out.push('[');
                let mut first = true;
                for item in node.items() {
                    self.comma(&mut first);
                    self.copy(item);
                }
                self.out.push(']');
            }
            ValueKind::String => {
                self.out.push('"');
                self.out.push_str(node.lexeme());
                self.out.push('"');
            }
            ValueKind::Null | ValueKind::Boolean | ValueKind::Number => {
                self.out.push_str(node.lexeme());
            }
        }
    }

    // --- which branch of a union ---

    /// The branch that `node` is of: of those that fit the first that leaves the reply as it is, else
    /// the first; where none fits, the first of its type.
    fn branch(&mut self, form: &'f Form, node: Node<'_>) -> Option<usize> {
        let mut fitting = Vec::new();
        for at in &form.branches {
            if self.fits(*at, node, 0) {
                fitting.push(*at);
            }
        }
        let acts = |at: &&usize| self.form(**at).is_some_and(|form| form.acts);
        let found = fitting.iter().find(|at| !acts(at)).or(fitting.first());
        if let Some(at) = found {
            return Some(*at);
        }
        let kind = kind_of(node);
        let is_of = |at: &&usize| {
            self.forms.get(**at).is_some_and(|form| form.types.is_none_or(|t| t.has(kind)))
        };
        form.branches.iter().find(is_of).copied()
    }

    fn fits(&mut self, at: usize, node: Node<'_>, depth: usize) -> bool {
        self.looks += 1;
        let Some(form) = self.form(at) else { return true };
        if self.looks > MAX_LOOKS || depth > 4 * super::MAX_DEPTH {
            return false;
        }
        if form.types.is_some_and(|types| !types.has(kind_of(node))) {
            return false;
        }
        if form.values.as_ref().is_some_and(|values| !values.iter().any(|v| same(node, v))) {
            return false;
        }
        if !form.branches.is_empty()
            && !form.branches.iter().any(|at| self.fits(*at, node, depth + 1))
        {
            return false;
        }
        match node.kind() {
            ValueKind::Object => self.object_fits(form, node, depth),
            ValueKind::Array => node.items().enumerate().all(|(index, item)| {
                match form.prefix.get(index).copied().or(form.items) {
                    Some(inner) => self.fits(inner, item, depth + 1),
                    None => true,
                }
            }),
            _ => true,
        }
    }

    fn object_fits(&mut self, form: &'f Form, node: Node<'_>, depth: usize) -> bool {
        let mut present = HashSet::new();
        for (key, value) in node.members() {
            let member = form.names.get(&*key).and_then(|at| form.members.get(*at));
            let fits = match member.map(|member| member.form).or(form.rest) {
                Some(inner) => self.fits(inner, value, depth + 1),
                None => !form.closed || form.branches.len() > 1,
            };
            if !fits {
                return false;
            }
            present.insert(key);
        }
        form.required.iter().all(|name| present.contains(name.as_str()))
    }
}

/// Keys and values of an array of entries. `None`: it is none.
fn entries_of(node: Node<'_>) -> Option<Vec<(Node<'_>, Node<'_>)>> {
    if node.kind() != ValueKind::Array {
        return None;
    }
    let entry = |item: Node<'_>| item.len() == 2 && item.kind() == ValueKind::Object;
    node.items()
        .map(|item| {
            let key = item.get("key").filter(|key| key.kind() == ValueKind::String)?;
            entry(item).then_some((key, item.get("value")?))
        })
        .collect()
}

/// A node's type; a number of whole digits is an integer.
fn kind_of(node: Node<'_>) -> Types {
    match node.kind() {
        ValueKind::Null => Types::NULL,
        ValueKind::Boolean => Types::BOOLEAN,
        // JSON Schema: 1.0 is an integer too.
        ValueKind::Number => match node.number().unwrap_or_default() {
            digits if !digits.contains(['.', 'e', 'E']) => Types::INTEGER.or(Types::NUMBER),
            digits if digits.parse().is_ok_and(|n: f64| n.fract() == 0.0) => {
                Types::INTEGER.or(Types::NUMBER)
            }
            _ => Types::NUMBER,
        },
        ValueKind::String => Types::STRING,
        ValueKind::Array => Types::ARRAY,
        ValueKind::Object => Types::OBJECT,
    }
}

/// Whether a node and a value of a schema are the same.
fn same(node: Node<'_>, value: &Value) -> bool {
    match value {
        Value::Null => node.kind() == ValueKind::Null,
        Value::Bool(value) => node.boolean() == Some(*value),
        Value::String(value) => node.string().is_some_and(|text| text == *value),
        Value::Number(value) => node.number().is_some_and(|digits| {
            digits == value.to_string() || digits.parse().ok() == value.as_f64()
        }),
        Value::Array(values) => {
            node.kind() == ValueKind::Array
                && node.len() == values.len()
                && node.items().zip(values).all(|(item, value)| same(item, value))
        }
        Value::Object(members) => {
            node.kind() == ValueKind::Object
                && node.len() == members.len()
                && members
                    .iter()
                    .all(|(key, value)| node.get(key).is_some_and(|inner| same(inner, value)))
        }
    }
}
