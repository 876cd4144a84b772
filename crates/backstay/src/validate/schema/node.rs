//! Values as the crate `jsonschema` sees them: on a tape or as a `Value`, and counted at every look.
//!
//! One compiled schema checks both, with the same verdict but for numbers, of which a tape has every
//! digit. A tape of `jsonmend` has no key twice in one object. Should one come, the last counts where
//! a key is looked up, as in [`jsonmend::Node::to_value`], and each is checked where all are.

use std::borrow::Cow;

use jsonmend::ValueKind;
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object};
use jsonschema::types::JsonType;
use serde_json::{Map, Value};

use super::equal;
use super::meter::{self, charge, length, look};
use super::number::Numeral;

/// The most characters of a text that an error keeps: more than are told.
const ERROR_CHARS: usize = 80;

/// The values that `jsonschema` is given.
pub(super) struct Metered;

/// One value. It is handed about at every step of a check, so it is kept to two words: a value on a
/// tape is a place in a document.
#[derive(Clone, Copy)]
pub(super) enum Seen<'a> {
    /// On a tape: a node of its document, and the value's own place there.
    Tape(&'a jsonmend::Node<'a>, u32),
    /// In memory.
    Value(&'a Value),
    /// A key, checked by itself.
    Name(&'a &'a str),
}

/// The items of an array.
#[derive(Clone, Copy)]
pub(super) enum SeenItems<'a> {
    Tape(&'a jsonmend::Node<'a>, u32),
    Value(&'a Vec<Value>),
}

/// The members of an object.
#[derive(Clone, Copy)]
pub(super) enum SeenMembers<'a> {
    Tape(&'a jsonmend::Node<'a>, u32),
    Value(&'a Map<String, Value>),
}

/// The node at a place of a document.
#[inline]
fn node_at<'a>(document: &jsonmend::Node<'a>, place: u32) -> jsonmend::Node<'a> {
    document.seek(place as usize)
}

#[inline]
fn place_of(node: jsonmend::Node<'_>) -> u32 {
    u32::try_from(node.place()).unwrap_or(u32::MAX)
}

// --- what it is, without a count ---

impl<'a> Seen<'a> {
    pub(super) fn on_tape(node: &'a jsonmend::Node<'a>) -> Self {
        Self::Tape(node, place_of(*node))
    }

    #[inline]
    pub(super) fn items(self) -> Option<SeenItems<'a>> {
        match self {
            Self::Tape(document, place) => (node_at(document, place).kind() == ValueKind::Array)
                .then_some(SeenItems::Tape(document, place)),
            Self::Value(Value::Array(items)) => Some(SeenItems::Value(items)),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn members(self) -> Option<SeenMembers<'a>> {
        match self {
            Self::Tape(document, place) => (node_at(document, place).kind() == ValueKind::Object)
                .then_some(SeenMembers::Tape(document, place)),
            Self::Value(Value::Object(members)) => Some(SeenMembers::Value(members)),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn text(self) -> Option<Cow<'a, str>> {
        match self {
            Self::Tape(document, place) => node_at(document, place).string(),
            Self::Value(value) => value.as_str().map(Cow::Borrowed),
            Self::Name(name) => Some(Cow::Borrowed(name)),
        }
    }

    #[inline]
    pub(super) fn numeral(self) -> Option<Numeral<'a>> {
        match self {
            Self::Tape(document, place) => node_at(document, place).number().map(Numeral::Written),
            Self::Value(Value::Number(number)) => Some(Numeral::Held(number)),
            _ => None,
        }
    }

    pub(super) fn truth(self) -> Option<bool> {
        match self {
            Self::Tape(document, place) => node_at(document, place).boolean(),
            Self::Value(value) => value.as_bool(),
            Self::Name(_) => None,
        }
    }

    pub(super) fn is_nothing(self) -> bool {
        self.kind() == JsonType::Null
    }

    #[inline]
    fn kind(self) -> JsonType {
        match self {
            Self::Tape(document, place) => match node_at(document, place).kind() {
                ValueKind::Null => JsonType::Null,
                ValueKind::Boolean => JsonType::Boolean,
                ValueKind::Number => JsonType::Number,
                ValueKind::String => JsonType::String,
                ValueKind::Array => JsonType::Array,
                ValueKind::Object => JsonType::Object,
            },
            Self::Value(Value::Null) => JsonType::Null,
            Self::Value(Value::Bool(_)) => JsonType::Boolean,
            Self::Value(Value::Number(_)) => JsonType::Number,
            Self::Value(Value::String(_)) | Self::Name(_) => JsonType::String,
            Self::Value(Value::Array(_)) => JsonType::Array,
            Self::Value(Value::Object(_)) => JsonType::Object,
        }
    }
}

impl<'a> SeenItems<'a> {
    #[inline]
    pub(super) fn count(self) -> usize {
        match self {
            Self::Tape(document, place) => node_at(document, place).len(),
            Self::Value(items) => items.len(),
        }
    }

    #[inline]
    pub(super) fn each(self) -> Items<'a> {
        match self {
            Self::Tape(document, place) => Items::Tape(document, node_at(document, place).items()),
            Self::Value(items) => Items::Value(items.iter()),
        }
    }
}

impl<'a> SeenMembers<'a> {
    #[inline]
    pub(super) fn count(self) -> usize {
        match self {
            Self::Tape(document, place) => node_at(document, place).len(),
            Self::Value(members) => members.len(),
        }
    }

    #[inline]
    pub(super) fn each(self) -> Members<'a> {
        match self {
            Self::Tape(document, place) => {
                Members::Tape(document, node_at(document, place).members())
            }
            Self::Value(members) => Members::Value(members.iter()),
        }
    }

    /// The member of this name. A tape is searched through: a look for each eight members.
    pub(super) fn find(self, name: &str) -> Option<Seen<'a>> {
        match self {
            Self::Tape(document, place) => {
                let node = node_at(document, place);
                look(1 + u64::try_from(node.len() / 8).unwrap_or(u64::MAX));
                let named = node.members().filter(|(key, _)| key == name);
                named.last().map(|(_, member)| Seen::Tape(document, place_of(member)))
            }
            Self::Value(members) => {
                look(1);
                members.get(name).map(Seen::Value)
            }
        }
    }
}

// --- what the crate asks for ---

impl Json for Metered {
    type Node<'a> = Seen<'a>;
    type PreparedKey = String;
    type StringBuffer = ();

    // A look-up on a tape is a pass over the members itself.
    const KEYS_PER_LOOKUP: usize = 16;
    const ACYCLIC: bool = true;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>((): &mut (), string: &str, f: impl FnOnce(Seen<'_>) -> T) -> T {
        f(Seen::Name(&string))
    }
}

impl<'a> Node<'a, Metered> for Seen<'a> {
    type Object = SeenMembers<'a>;
    type Array = SeenItems<'a>;
    type Number = Numeral<'a>;

    #[inline]
    fn as_object(&self) -> Option<SeenMembers<'a>> {
        look(1);
        self.members()
    }

    #[inline]
    fn as_array(&self) -> Option<SeenItems<'a>> {
        look(1);
        self.items()
    }

    #[inline]
    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.text();
        look(text.as_deref().map_or(1, length));
        text
    }

    #[inline]
    fn as_number(&self) -> Option<Numeral<'a>> {
        let number = self.numeral();
        look(match number {
            Some(Numeral::Written(digits)) => length(digits),
            Some(Numeral::Held(_)) | None => 1,
        });
        number
    }

    fn as_boolean(&self) -> Option<bool> {
        look(1);
        self.truth()
    }

    #[inline]
    fn is_null(&self) -> bool {
        look(1);
        self.is_nothing()
    }

    fn is_number(&self) -> bool {
        self.json_type() == JsonType::Number
    }

    #[inline]
    fn json_type(&self) -> JsonType {
        look(1);
        self.kind()
    }

    #[inline]
    fn is_string(&self) -> bool {
        self.json_type() == JsonType::String
    }

    #[inline]
    fn string_length_within(&self, min: u64, max: u64) -> Option<bool> {
        // A character takes one to four bytes, as an escape up to twelve: that decides most texts.
        let (bytes, fewest) = match self {
            Self::Tape(document, place) => {
                let node = node_at(document, *place);
                if node.kind() != ValueKind::String {
                    return None;
                }
                (node.bytes(), node.bytes().div_ceil(12))
            }
            Self::Value(Value::String(text)) => (text.len(), text.len().div_ceil(4)),
            Self::Name(name) => (name.len(), name.len().div_ceil(4)),
            Self::Value(_) => return None,
        };
        look(1);
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let fewest = u64::try_from(fewest).unwrap_or(u64::MAX);
        if bytes < min || fewest > max {
            return Some(false);
        }
        if min <= fewest && bytes <= max {
            return Some(true);
        }
        let count = self.as_string()?.chars().count();
        Some((min..=max).contains(&u64::try_from(count).unwrap_or(u64::MAX)))
    }

    fn equals_value(&self, expected: &Value) -> bool {
        equal::equals(*self, expected)
    }

    /// Asked for where an error is made, and no verdict hangs on it: scalars only, texts cut short.
    fn to_value(&self) -> Cow<'a, Value> {
        look(1 + meter::long_keys());
        if let Self::Value(value @ (Value::Null | Value::Bool(_) | Value::Number(_))) = self {
            return Cow::Borrowed(value);
        }
        Cow::Owned(match self.kind() {
            JsonType::Array => Value::Array(Vec::new()),
            JsonType::Object => Value::Object(Map::new()),
            _ => match (self.text(), *self) {
                (Some(text), _) => Value::String(text.chars().take(ERROR_CHARS).collect()),
                (None, Self::Tape(document, place)) => node_at(document, place).to_value(),
                (None, Self::Value(_) | Self::Name(_)) => Value::Null,
            },
        })
    }

    fn identity(&self) -> Option<NodeIdentity> {
        look(1);
        Some(match self {
            Self::Tape(_, place) => NodeIdentity::tagged(TAPE, *place),
            Self::Value(value) => NodeIdentity::new(std::ptr::from_ref::<Value>(value).addr()),
            Self::Name(name) => NodeIdentity::new(name.as_ptr().addr()),
        })
    }
}

/// Stands for the address of what is on the tape; nothing can have this one.
const TAPE: usize = usize::MAX;

impl<'a> Object<'a, Metered> for SeenMembers<'a> {
    type Node = Seen<'a>;
    type MemberName = Cow<'a, str>;
    type MembersIter = Members<'a>;

    #[inline]
    fn len(&self) -> usize {
        self.count()
    }

    fn get(&self, key: &String) -> Option<Seen<'a>> {
        self.find(key)
    }

    #[inline]
    fn members(&self) -> Members<'a> {
        self.each()
    }
}

/// The members one by one, each with a look.
pub(super) enum Members<'a> {
    Tape(&'a jsonmend::Node<'a>, jsonmend::Members<'a>),
    Value(serde_json::map::Iter<'a>),
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, Seen<'a>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (key, member) = match self {
            Self::Tape(document, members) => {
                let (key, member) = members.next()?;
                (key, Seen::Tape(document, place_of(member)))
            }
            Self::Value(members) => {
                let (key, member) = members.next()?;
                (Cow::Borrowed(key.as_str()), Seen::Value(member))
            }
        };
        meter::look_at_key(&key);
        Some((key, member))
    }
}

impl<'a> Array<'a, Metered> for SeenItems<'a> {
    type Node = Seen<'a>;
    type ElementsIter = Items<'a>;

    #[inline]
    fn len(&self) -> usize {
        self.count()
    }

    #[inline]
    fn elements(&self) -> Items<'a> {
        self.each()
    }

    fn is_unique(&self) -> bool {
        equal::all_differ(*self)
    }
}

/// The items one by one, each with a look.
pub(super) enum Items<'a> {
    Tape(&'a jsonmend::Node<'a>, jsonmend::Items<'a>),
    Value(std::slice::Iter<'a, Value>),
}

impl<'a> Iterator for Items<'a> {
    type Item = Seen<'a>;

    #[inline]
    fn next(&mut self) -> Option<Seen<'a>> {
        charge(1);
        match self {
            Self::Tape(document, items) => {
                items.next().map(|item| Seen::Tape(document, place_of(item)))
            }
            Self::Value(items) => items.next().map(Seen::Value),
        }
    }
}
