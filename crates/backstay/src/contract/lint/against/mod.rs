//! What a new version of a schema breaks, for those who read replies and for replies that are kept.
//!
//! Two parties hold an old version. A **reader** was written for it and now gets replies of the new
//! one: what the new one allows and the old one did not may break it. A **stored reply** was valid
//! and is now held against the new one: what the new one forbids breaks it. A key that is added and
//! may be missing breaks nobody: readers are taken to pass over keys they do not know.
//!
//! Schemas are compared as they are written, keyword by keyword, with references followed. Two that
//! say the same in different ways may be told to differ; what breaks is not overlooked, but under
//! keywords that cannot be compared it is only told that they changed.

mod bound;
mod object;
mod shape;

use std::collections::HashSet;

use serde_json::Value;

use super::walk::target;

/// The most changes that are told.
pub const MAX_CHANGES: usize = 200;

/// The deepest nesting that is compared.
const MAX_DEPTH: usize = 128;

/// The most pairs of places that are compared.
const MAX_PAIRS: usize = 20_000;

/// One difference between two versions of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What changed.
    pub kind: ChangeKind,
    /// The version in which it can be seen.
    pub side: Side,
    /// Where in that version, as a JSON pointer; empty for the whole.
    pub pointer: String,
    /// What changed, in one sentence.
    pub message: String,
    /// Whom it breaks.
    pub breaks: Breaks,
}

/// A version of a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The one that was.
    Old,
    /// The one that comes.
    New,
}

/// Whom a change breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Breaks {
    /// Nobody.
    Nobody,
    /// Those who read replies and were written for the old version.
    Readers,
    /// Replies of the old version that are kept and checked again.
    Stored,
    /// Both.
    Both,
}

impl Breaks {
    /// Whether it breaks somebody.
    pub const fn anybody(self) -> bool {
        !matches!(self, Self::Nobody)
    }

    /// Who, as a list of stable words: `readers`, `stored_replies`.
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Nobody => &[],
            Self::Readers => &["readers"],
            Self::Stored => &["stored_replies"],
            Self::Both => &["readers", "stored_replies"],
        }
    }
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident, $word:literal;)*) => {
        /// What changed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ChangeKind { $($(#[$doc])* $name,)* }

        impl ChangeKind {
            /// Every kind, in the order of the reference.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The stable name, such as `property-removed`.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }
        }
    };
}

kinds! {
    /// A key is gone.
    PropertyRemoved, "property-removed";
    /// A key is gone, and another one says the same.
    PropertyRenamed, "property-renamed";
    /// A key is new.
    PropertyAdded, "property-added";
    /// A key must be there now.
    RequiredAdded, "required-added";
    /// A key may be missing now.
    RequiredDropped, "required-dropped";
    /// No type is left that was allowed.
    TypeChanged, "type-changed";
    /// A type is not allowed any more.
    TypeNarrowed, "type-narrowed";
    /// A type is allowed that was not.
    TypeWidened, "type-widened";
    /// A value is not in the enum any more.
    MemberRemoved, "enum-member-removed";
    /// A value is in the enum that was not.
    MemberAdded, "enum-member-added";
    /// Values outside a list were allowed.
    EnumAdded, "enum-added";
    /// Values outside the list are allowed.
    EnumDropped, "enum-dropped";
    /// Keys that are not described are ruled out now.
    ObjectClosed, "object-closed";
    /// Keys that are not described are let through now.
    ObjectOpened, "object-opened";
    /// A limit leaves less.
    Tightened, "constraint-tightened";
    /// A limit leaves more.
    Loosened, "constraint-loosened";
    /// An alternative is gone.
    AlternativeRemoved, "alternative-removed";
    /// An alternative is new.
    AlternativeAdded, "alternative-added";
    /// A keyword changed of which it cannot be told whether it leaves more or less.
    RuleChanged, "rule-changed";
}

/// What is different in `new`, in the order of the schema; at most [`MAX_CHANGES`].
pub fn against(old: &Value, new: &Value) -> Vec<Change> {
    let mut compare =
        Compare { old_root: old, new_root: new, seen: HashSet::new(), changes: Vec::new() };
    let root = Spot { schema: old, at: String::new() };
    compare.spots(&root, &Spot { schema: new, at: String::new() }, 0);
    compare.changes
}

/// A subschema and where it stands.
#[derive(Clone)]
struct Spot<'s> {
    schema: &'s Value,
    at: String,
}

impl<'s> Spot<'s> {
    fn get(&self, keyword: &str) -> Option<&'s Value> {
        self.schema.get(keyword)
    }

    fn under(&self, keyword: &str, schema: &'s Value) -> Self {
        Self { schema, at: format!("{}/{keyword}", self.at) }
    }
}

struct Compare<'s> {
    old_root: &'s Value,
    new_root: &'s Value,
    /// Pairs of pointers that were compared.
    seen: HashSet<(String, String)>,
    changes: Vec<Change>,
}

impl<'s> Compare<'s> {
    /// Compares two subschemas and all inside them.
    fn spots(&mut self, old: &Spot<'s>, new: &Spot<'s>, depth: usize) {
        let (old, new) = (followed(self.old_root, old), followed(self.new_root, new));
        let is_full = depth > MAX_DEPTH || self.seen.len() >= MAX_PAIRS;
        if is_full || !self.seen.insert((old.at.clone(), new.at.clone())) {
            return;
        }
        let (was, is) = (shape::alternatives(&old), shape::alternatives(&new));
        match (was.as_slice(), is.as_slice()) {
            ([was], [is]) if was.at == old.at && is.at == new.at => self.same_place(was, is, depth),
            // The only alternative is the place itself in other words.
            ([was], [is]) => self.spots(was, is, depth + 1),
            _ => self.alternatives(&new.at, was, is, depth),
        }
    }

    /// Pairs alternatives: the equal ones first, then those of one type, then as they stand.
    fn alternatives(
        &mut self,
        at: &str,
        mut was: Vec<Spot<'s>>,
        mut is: Vec<Spot<'s>>,
        depth: usize,
    ) {
        let take = |was: &mut Vec<Spot<'s>>,
                    is: &mut Vec<Spot<'s>>,
                    fits: &dyn Fn(&Spot<'s>, &Spot<'s>) -> bool| {
            let mut pairs = Vec::new();
            was.retain(|one| match is.iter().position(|other| fits(one, other)) {
                Some(found) => {
                    pairs.push((one.clone(), is.remove(found)));
                    false
                }
                None => true,
            });
            pairs
        };
        let _equal = take(&mut was, &mut is, &|one, other| one.schema == other.schema);
        let mut pairs = take(&mut was, &mut is, &|one, other| {
            shape::tag(one).is_some() && shape::tag(one) == shape::tag(other)
        });
        pairs.extend(take(&mut was, &mut is, &|one, other| {
            shape::types(one).is_some() && shape::types(one) == shape::types(other)
        }));
        for (one, other) in pairs {
            self.spots(&one, &other, depth + 1);
        }
        for gone in &was {
            let (kind, message) = match shape::types(gone) {
                Some(types) if shape::is_plain(gone) => (
                    ChangeKind::TypeNarrowed,
                    format!("{} is not allowed any more", shape::words(types)),
                ),
                _ => (ChangeKind::AlternativeRemoved, "an alternative is gone".to_owned()),
            };
            self.note(kind, Breaks::Stored, (Side::Old, &gone.at), message);
        }
        for added in &is {
            let (kind, message) = match shape::types(added) {
                Some(types) if shape::is_plain(added) => {
                    (ChangeKind::TypeWidened, format!("{} is allowed now", shape::words(types)))
                }
                _ => (ChangeKind::AlternativeAdded, "an alternative is new".to_owned()),
            };
            let place = if added.at.is_empty() { at } else { &added.at };
            self.note(kind, Breaks::Readers, (Side::New, place), message);
        }
    }

    /// Compares two subschemas keyword by keyword.
    fn same_place(&mut self, old: &Spot<'s>, new: &Spot<'s>, depth: usize) {
        if old.schema == new.schema && old.get("$ref").is_none() && !has_reference(old.schema) {
            return;
        }
        if self.types(old, new) == Same::No {
            return;
        }
        self.members(old, new);
        self.bounds(old, new);
        self.object(old, new, depth);
        self.array(old, new, depth);
        self.parts(old, new, depth);
        self.rules(old, new);
    }

    fn note(&mut self, kind: ChangeKind, breaks: Breaks, at: (Side, &str), message: String) {
        if self.changes.len() < MAX_CHANGES {
            let (side, pointer) = (at.0, at.1.to_owned());
            self.changes.push(Change { kind, side, pointer, message, breaks });
        }
    }
}

/// Whether two subschemas have anything in common.
#[derive(PartialEq, Eq)]
enum Same {
    Yes,
    No,
}

/// Where a subschema's references inside the document lead.
fn followed<'s>(root: &'s Value, spot: &Spot<'s>) -> Spot<'s> {
    let mut spot = spot.clone();
    // More steps than that lead in a circle, or might as well.
    for _ in 0..16 {
        match target(root, spot.schema) {
            Some((at, schema)) => spot = Spot { schema, at },
            None => break,
        }
    }
    spot
}

/// Whether anything inside refers to somewhere else: equal texts may then differ in what they say.
fn has_reference(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => {
            members.contains_key("$ref") || members.values().any(has_reference)
        }
        Value::Array(items) => items.iter().any(has_reference),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests;
