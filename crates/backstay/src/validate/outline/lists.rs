//! The enums of one schema while its outline is built: each is read once, however many places
//! refer to it.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde_json::Value;

use super::Kinds;
use super::listing::{Listing, alike, size};

/// Members that are looked at to join enums. What is joined after says less.
const MAX_JOINED_MEMBERS: usize = 200_000;

/// One enum among [`Lists`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct List(usize);

/// All enums met so far.
#[derive(Debug)]
pub(super) struct Lists<'s> {
    inner: RefCell<Inner<'s>>,
}

#[derive(Debug)]
struct Inner<'s> {
    all: Vec<Entry<'s>>,
    /// By the address of the keyword's value.
    own: HashMap<usize, List>,
    both: HashMap<(List, List), List>,
    either: HashMap<(List, List), List>,
    null: Option<List>,
    left: usize,
}

#[derive(Debug)]
struct Entry<'s> {
    members: Vec<&'s Value>,
    kinds: Kinds,
    made: Option<Arc<Listing>>,
}

impl<'s> Lists<'s> {
    pub(super) fn new() -> Self {
        let inner = Inner {
            all: Vec::new(),
            own: HashMap::new(),
            both: HashMap::new(),
            either: HashMap::new(),
            null: None,
            left: MAX_JOINED_MEMBERS,
        };
        Self { inner: RefCell::new(inner) }
    }

    /// The members that stand at `keyword` in a schema, and their types.
    pub(super) fn own(&self, keyword: &'s Value, members: &'s [Value]) -> (List, Kinds) {
        let mut inner = self.inner.borrow_mut();
        let address = std::ptr::from_ref(keyword).addr();
        let known = inner.own.get(&address).copied();
        let list = known.unwrap_or_else(|| inner.add(members.iter().collect()));
        inner.own.insert(address, list);
        (list, inner.all.get(list.0).map_or(Kinds::ANY, |entry| entry.kinds))
    }

    /// Nothing but `null`.
    pub(super) fn null(&self) -> List {
        let mut inner = self.inner.borrow_mut();
        if let Some(list) = inner.null {
            return list;
        }
        let list = inner.add(vec![&Value::Null]);
        inner.null = Some(list);
        list
    }

    /// The members that both have; more where finding them takes too long.
    pub(super) fn both(&self, one: List, two: List) -> List {
        let mut inner = self.inner.borrow_mut();
        if one == two {
            return one;
        }
        if let Some(known) = inner.both.get(&(one, two)) {
            return *known;
        }
        if !inner.spend(one, two) {
            return one;
        }
        let members = met(inner.members(one), inner.members(two));
        let list = inner.add(members);
        inner.both.insert((one, two), list);
        list
    }

    /// The members that either has. `None`: finding them takes too long.
    pub(super) fn either(&self, one: List, two: List) -> Option<List> {
        let mut inner = self.inner.borrow_mut();
        if one == two {
            return Some(one);
        }
        if let Some(known) = inner.either.get(&(one, two)) {
            return Some(*known);
        }
        if !inner.spend(one, two) {
            return None;
        }
        let members = [inner.members(one), inner.members(two)].concat();
        let list = inner.add(members);
        inner.either.insert((one, two), list);
        Some(list)
    }

    /// The enum as it is kept, shared by all places it stands at.
    pub(super) fn made(&self, list: List) -> Arc<Listing> {
        let mut inner = self.inner.borrow_mut();
        let Some(entry) = inner.all.get_mut(list.0) else { return Arc::default() };
        let members = &entry.members;
        let made = entry.made.get_or_insert_with(|| Arc::new(Listing::of(members.iter().copied())));
        Arc::clone(made)
    }
}

impl<'s> Inner<'s> {
    fn add(&mut self, members: Vec<&'s Value>) -> List {
        let kinds = members.iter().fold(Kinds::NONE, |kinds, value| kinds.or(kind_of(value)));
        self.all.push(Entry { members, kinds, made: None });
        List(self.all.len() - 1)
    }

    fn members(&self, list: List) -> &[&'s Value] {
        self.all.get(list.0).map_or(&[], |entry| entry.members.as_slice())
    }

    /// Takes what joining the two costs off what is left. Says whether there was enough.
    fn spend(&mut self, one: List, two: List) -> bool {
        let composite = |value: &&&Value| value.is_array() || value.is_object();
        let (one, two) = (self.members(one), self.members(two));
        let pairs = one.iter().filter(composite).count() * two.iter().filter(composite).count();
        let cost = one.len() + two.len() + pairs;
        let Some(left) = self.left.checked_sub(cost) else { return false };
        self.left = left;
        true
    }
}

/// The values of `one` that may be the same as one of `two`.
fn met<'s>(one: &[&'s Value], two: &[&'s Value]) -> Vec<&'s Value> {
    let texts: HashSet<&str> = two.iter().filter_map(|value| value.as_str()).collect();
    let numbers = two.iter().filter(|value| value.is_number());
    let numbers: HashSet<u64> = numbers.map(|value| size(value.as_f64())).collect();
    let others = || two.iter().filter(|value| !value.is_string() && !value.is_number());
    let is_met = |value: &&&Value| match value {
        Value::String(text) => texts.contains(text.as_str()),
        Value::Number(number) => numbers.contains(&size(number.as_f64())),
        value => others().any(|other| alike(value, other)),
    };
    one.iter().filter(is_met).copied().collect()
}

fn kind_of(value: &Value) -> Kinds {
    match value {
        Value::Null => Kinds::NULL,
        Value::Bool(_) => Kinds::BOOLEAN,
        // `1.0` in a schema is `1` in a reply.
        Value::Number(_) => Kinds::NUMBER,
        Value::String(_) => Kinds::STRING,
        Value::Array(_) => Kinds::ARRAY,
        Value::Object(_) => Kinds::OBJECT,
    }
}
