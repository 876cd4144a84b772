//! What a schema says in so many words about each place of a value: types, members, enum, keys.
//!
//! The outline is weaker than the schema, never stronger: where several alternatives or conditions
//! apply it says less, and the whole schema is checked anyway. It has two readers. The mending
//! parser strikes readings that cannot fit (it takes no value from here), and alignment looks up
//! which type a value should have.

mod build;
mod choose;
mod draft;
mod listing;
mod lists;
mod parts;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use backstay_wire::pointer;
use jsonmend::{Guide, Listed, Member, Node, Place, Types, ValueKind};
use serde_json::Value;

pub(super) use listing::Listing;
pub(super) use parts::parts;

/// The key of a schema under which a value declares its fallback.
pub(super) const FALLBACK: &str = "x-backstay-fallback";

/// A schema as the parser and alignment see it.
#[derive(Debug)]
pub struct Outline {
    /// By place. The first stands for anything, the last is not special.
    spots: Vec<Spot>,
    root: Place,
}

/// What is said of one place.
#[derive(Clone, Debug)]
pub(super) struct Spot {
    /// The types a value may have.
    pub(super) kinds: Kinds,
    /// The members that are described.
    pub(super) members: HashMap<String, Place>,
    /// The members that are not.
    pub(super) rest: Rest,
    /// The first elements, where each has a description of its own.
    pub(super) prefix: Vec<Place>,
    /// All other elements.
    pub(super) items: Option<Place>,
    /// Keys that must be there.
    pub(super) required: Vec<String>,
    /// The only values allowed. `None`: no enum.
    pub(super) listed: Option<Arc<Listing>>,
    /// The schema's `default`.
    pub(super) default: Option<Value>,
    /// The declared fallback.
    pub(super) fallback: Option<Value>,
    /// What holds besides where one of several alternatives does, `null` among them. What is said
    /// of the place itself holds there too. Empty: there are none, or they cannot be told apart.
    pub(super) choices: Vec<Place>,
}

/// What holds of members that are not described.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    /// Anything.
    Open,
    /// They must not be there.
    Forbidden,
    /// Each is described there.
    Each(Place),
}

/// A set of JSON types; whole numbers and others are two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds(u8);

impl Kinds {
    pub(super) const NONE: Self = Self(0);
    pub(super) const NULL: Self = Self(1);
    pub(super) const BOOLEAN: Self = Self(2);
    pub(super) const INTEGER: Self = Self(4);
    /// Numbers that are not whole.
    pub(super) const FRACTION: Self = Self(8);
    pub(super) const NUMBER: Self = Self(12);
    pub(super) const STRING: Self = Self(16);
    pub(super) const ARRAY: Self = Self(32);
    pub(super) const OBJECT: Self = Self(64);
    pub(super) const ANY: Self = Self(127);

    pub(super) const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether some type is in both.
    pub(super) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The type of a value.
    pub(super) fn of(node: Node<'_>) -> Self {
        match node.kind() {
            ValueKind::Null => Self::NULL,
            ValueKind::Boolean => Self::BOOLEAN,
            ValueKind::Number => of_number(node.number().unwrap_or_default()),
            ValueKind::String => Self::STRING,
            ValueKind::Array => Self::ARRAY,
            ValueKind::Object => Self::OBJECT,
        }
    }

    fn types(self) -> Types {
        let pairs = [
            (Self::NULL, Types::NULL),
            (Self::BOOLEAN, Types::BOOLEAN),
            (Self::INTEGER, Types::INTEGER),
            (Self::FRACTION, Types::NUMBER),
            (Self::STRING, Types::STRING),
            (Self::ARRAY, Types::ARRAY),
            (Self::OBJECT, Types::OBJECT),
        ];
        let held = pairs.into_iter().filter(|(kind, _)| self.meets(*kind));
        held.fold(Types::NONE, |all, (_, one)| all.or(one))
    }
}

/// What a number is by its digits. `1e3` may be either: nobody computes here.
fn of_number(digits: &str) -> Kinds {
    match digits.split_once('.') {
        _ if digits.contains(['e', 'E']) => Kinds::NUMBER,
        Some((_, fraction)) if fraction.bytes().any(|digit| digit != b'0') => Kinds::FRACTION,
        Some(_) | None => Kinds::INTEGER,
    }
}

impl Spot {
    /// The place of which nothing is said.
    fn anything() -> Self {
        Self {
            kinds: Kinds::ANY,
            members: HashMap::new(),
            rest: Rest::Open,
            prefix: Vec::new(),
            items: None,
            required: Vec::new(),
            listed: None,
            default: None,
            fallback: None,
            choices: Vec::new(),
        }
    }
}

static ANYTHING: LazyLock<Outline> = LazyLock::new(|| Outline::of_root(Spot::anything()));

static OBJECT: LazyLock<Outline> =
    LazyLock::new(|| Outline::of_root(Spot { kinds: Kinds::OBJECT, ..Spot::anything() }));

impl Outline {
    /// The outline of a schema.
    pub fn of(schema: &Value) -> Self {
        build::build(schema)
    }

    /// Any value.
    pub fn anything() -> &'static Self {
        &ANYTHING
    }

    /// Any object.
    pub fn object() -> &'static Self {
        &OBJECT
    }

    fn of_root(root: Spot) -> Self {
        Self { spots: vec![Spot::anything(), root], root: Place(1) }
    }

    /// The first step of a JSON pointer, with those before it, that no value that fits can have. In
    /// the pointer `*` stands for any element.
    pub(super) fn lacking(&self, pointer: &str) -> Option<String> {
        let mut place = self.root;
        let mut path = String::new();
        for step in pointer.split('/').skip(1) {
            path = format!("{path}/{step}");
            let kinds = self.spot(place).kinds;
            let is_index = step == "*" || step.parse::<usize>().is_ok();
            let key = pointer::unescape(step);
            let takes_key = kinds.meets(Kinds::OBJECT);
            place = match self.member(place, &key) {
                _ if kinds.meets(Kinds::ARRAY) && is_index => {
                    let index = step.parse().unwrap_or_default();
                    self.element(place, index)
                        .filter(|_| !takes_key && step != "*")
                        .or_else(|| self.spot(place).items.filter(|_| !takes_key))
                        .unwrap_or(Place(0))
                }
                Member::Forbidden if step != "*" => return Some(path),
                _ if !takes_key => return Some(path),
                Member::Known(inner) if step != "*" => inner,
                Member::Known(_) | Member::Open | Member::Forbidden => Place(0),
            };
        }
        None
    }

    /// What is said of a place.
    pub(super) fn spot(&self, at: Place) -> &Spot {
        let index = usize::try_from(at.0).unwrap_or_default();
        self.spots.get(index).or_else(|| self.spots.first()).unwrap_or(&ANYTHING.spots[0])
    }

    /// The places of the values along a JSON pointer in the document of `root`, that of the root
    /// first, inside the alternatives that the values name. A value that is not there names none,
    /// and where `root` is not known none does.
    pub(super) fn along(&self, root: Option<Node<'_>>, pointer: &str) -> Vec<Place> {
        let chosen =
            |node: Option<Node<'_>>, at| node.map_or(at, |node: Node<'_>| self.chosen(node, at));
        let (mut place, mut node) = (chosen(root, self.root), root);
        let mut places = vec![place];
        for step in pointer.split('/').skip(1) {
            let key = pointer::unescape(step);
            let inside;
            (inside, node) = match step.parse() {
                Ok(index) if self.spot(place).kinds.meets(Kinds::ARRAY) => {
                    (self.element(place, index), node.and_then(|node| node.items().nth(index)))
                }
                _ => (self.inside(place, &key), node.and_then(|node| node.get(&key))),
            };
            place = chosen(node, inside.unwrap_or(Place(0)));
            places.push(place);
        }
        places
    }

    /// The place of a member. `None`: nothing is said of it, or it is forbidden.
    pub(super) fn inside(&self, at: Place, key: &str) -> Option<Place> {
        match self.member(at, key) {
            Member::Known(place) => Some(place),
            Member::Open | Member::Forbidden => None,
        }
    }
}

impl Guide for Outline {
    fn root(&self) -> Place {
        self.root
    }

    fn types(&self, at: Place) -> Types {
        self.spot(at).kinds.types()
    }

    fn member(&self, at: Place, key: &str) -> Member {
        let spot = self.spot(at);
        match (spot.members.get(key), spot.rest) {
            (Some(place), _) => Member::Known(*place),
            (None, Rest::Each(place)) => Member::Known(place),
            (None, Rest::Open) => Member::Open,
            (None, Rest::Forbidden) => Member::Forbidden,
        }
    }

    fn element(&self, at: Place, index: usize) -> Option<Place> {
        let spot = self.spot(at);
        spot.prefix.get(index).copied().or(spot.items)
    }

    fn required(&self, at: Place) -> &[String] {
        &self.spot(at).required
    }

    fn listed(&self, at: Place, text: &str) -> Listed {
        match &self.spot(at).listed {
            None => Listed::Unsaid,
            Some(members) if members.has_text(text) => Listed::Yes,
            Some(_) => Listed::No,
        }
    }
}

#[cfg(test)]
mod tests;
