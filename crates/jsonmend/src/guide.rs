//! What a schema may tell the parser: which reading fits. It never supplies a value.

use std::fmt;

use crate::edit::Class;
use crate::tape::{Node, ValueKind as Kind};

/// A set of JSON types, as `type` in JSON Schema names them. A number that is whole is also an
/// integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types(u8);

impl Types {
    /// Any type.
    pub const ANY: Self = Self(0x7f);
    /// No type: nothing fits.
    pub const NONE: Self = Self(0);
    /// `null`.
    pub const NULL: Self = Self(1);
    /// `boolean`.
    pub const BOOLEAN: Self = Self(2);
    /// `integer`.
    pub const INTEGER: Self = Self(4);
    /// `number`, integers included.
    pub const NUMBER: Self = Self(4 | 8);
    /// `string`.
    pub const STRING: Self = Self(16);
    /// `array`.
    pub const ARRAY: Self = Self(32);
    /// `object`.
    pub const OBJECT: Self = Self(64);

    /// Types of either set.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Says whether every type of `other` is in this set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Says whether some type is in both sets.
    pub(crate) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    fn fits(self, node: Node<'_>) -> bool {
        let needed = match node.kind() {
            Kind::Null => Self::NULL,
            Kind::Boolean => Self::BOOLEAN,
            // Nobody computes here: it may be whole.
            Kind::Number if has_exponent(node.number().unwrap_or_default()) => {
                return self.meets(Self::NUMBER);
            }
            Kind::Number if is_whole(node.number().unwrap_or_default()) => Self::INTEGER,
            // The bit that only `NUMBER` has.
            Kind::Number => Self(8),
            Kind::String => Self::STRING,
            Kind::Array => Self::ARRAY,
            Kind::Object => Self::OBJECT,
        };
        self.has(needed)
    }
}

fn is_whole(digits: &str) -> bool {
    match digits.split_once('.') {
        Some((_, fraction)) => fraction.bytes().all(|digit| digit == b'0'),
        None => true,
    }
}

fn has_exponent(digits: &str) -> bool {
    digits.contains(['e', 'E'])
}

/// A place in a schema; what it means is the guide's own affair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place(pub u32);

/// What a schema says of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Member {
    /// Declared; its value is described there.
    Known(Place),
    /// Not declared, and not forbidden.
    Open,
    /// No member may have this key.
    Forbidden,
}

/// A view of a schema. Implement it over whatever holds schemas; every question may be answered
/// with the weakest answer.
pub trait Guide: fmt::Debug {
    /// The place of the whole document.
    fn root(&self) -> Place;
    /// The types allowed at a place.
    fn types(&self, at: Place) -> Types;
    /// What is said of a key of an object.
    fn member(&self, at: Place, key: &str) -> Member;
    /// The place of the element with this index; `None` if nothing is said.
    fn element(&self, at: Place, index: usize) -> Option<Place>;
    /// Keys an object must have.
    fn required(&self, at: Place) -> &[String];
    /// Says whether a string is among the members of an enum; [`Listed::Unsaid`] without one.
    fn listed(&self, at: Place, text: &str) -> Listed;
}

/// Whether a string is a member of an enum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Listed {
    /// There is no enum here.
    Unsaid,
    /// It is a member.
    Yes,
    /// It is not.
    No,
}

/// How many values of a document break the schema: 0 if it fits. Counts up to 100.
pub(crate) fn misfits(guide: &dyn Guide, root: Node<'_>, class: Class) -> usize {
    let mut count = 0;
    let mut open = vec![(root, guide.root())];
    while let Some((node, at)) = open.pop() {
        if count >= 100 {
            break;
        }
        if !guide.types(at).fits(node) {
            count += 1;
            continue;
        }
        match node.kind() {
            Kind::String => {
                let text = node.string().unwrap_or_default();
                count += usize::from(guide.listed(at, &text) == Listed::No);
            }
            Kind::Array => {
                let items = node.items().enumerate();
                open.extend(
                    items.filter_map(|(index, item)| Some((item, guide.element(at, index)?))),
                );
            }
            Kind::Object => {
                // What a cut took away is not held against a reading.
                if class != Class::Partial {
                    let missing = guide.required(at).iter().filter(|key| node.get(key).is_none());
                    count += missing.count();
                }
                for (key, value) in node.members() {
                    match guide.member(at, &key) {
                        Member::Known(place) => open.push((value, place)),
                        Member::Open => {}
                        Member::Forbidden => count += 1,
                    }
                }
            }
            Kind::Null | Kind::Boolean | Kind::Number => {}
        }
    }
    count
}

/// Says whether a document may be an attempt at the same answer as the accepted one. It is plainly
/// none if its root is of another kind, or if it is an object that shares no name with the schema
/// or the accepted document, whatever their case. An empty object may be one.
pub(crate) fn is_attempt(guide: &dyn Guide, other: Node<'_>, accepted: Node<'_>) -> bool {
    if other.kind() != accepted.kind() {
        return false;
    }
    if other.kind() != Kind::Object || other.members().next().is_none() {
        return true;
    }
    let root = guide.root();
    let is_known = |key: &str| matches!(guide.member(root, key), Member::Known(_));
    let names: Vec<String> = accepted.members().map(|(key, _)| key.to_lowercase()).collect();
    // A schema without names tells nothing from anything.
    let is_unnamed =
        guide.required(root).is_empty() && !accepted.members().any(|(key, _)| is_known(&key));
    is_unnamed
        || other.members().any(|(key, _)| {
            let lower = key.to_lowercase();
            is_known(&key)
                || is_known(&lower)
                || names.contains(&lower)
                || guide.required(root).iter().any(|name| name.to_lowercase() == lower)
        })
}
