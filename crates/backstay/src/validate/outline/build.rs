//! Reads an outline off a schema.
//!
//! A place of the value may be spoken of by several schemas: `allOf`, a reference and its
//! siblings, the one alternative beside `null`. Their facts are joined. Bounded: a schema may come
//! from anyone, and may refer to itself.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};

use jsonmend::Place;
use serde_json::{Map, Value};

use super::{FALLBACK, Kinds, Outline, Rest, Spot};

/// The most places; what lies beyond counts as anything. A schema of 256 KiB has fewer.
const MAX_PLACES: usize = 10_000;

/// References and alternatives followed at one place.
const MAX_HOPS: u32 = 24;

/// Schemas looked at for one outline: alternatives that refer to themselves double with each hop.
/// What comes after counts as anything.
const MAX_LOOKS: u32 = 50_000;

/// The most schemas that are joined at one place.
const MAX_JOINED: usize = 64;

/// What schemas say of one place, with the schemas of the places inside.
#[derive(Clone, Debug)]
struct Facts<'s> {
    kinds: Kinds,
    members: BTreeMap<&'s str, Vec<&'s Value>>,
    rest: Others<'s>,
    prefix: Vec<&'s Value>,
    items: Option<&'s Value>,
    required: Vec<&'s str>,
    listed: Option<Vec<&'s Value>>,
    default: Option<&'s Value>,
    fallback: Option<&'s Value>,
}

#[derive(Clone, Copy, Debug)]
enum Others<'s> {
    Open,
    Forbidden,
    Each(&'s Value),
}

/// The outline of `schema`.
pub(super) fn build(schema: &Value) -> Outline {
    let mut building = Building {
        root: schema,
        spots: vec![Spot::anything()],
        places: HashMap::new(),
        open: Vec::new(),
        looks: Cell::new(MAX_LOOKS),
    };
    let root = building.place(&[schema]);
    while let Some((place, schemas)) = building.open.pop() {
        building.fill(place, &schemas);
    }
    Outline { spots: building.spots, root }
}

struct Building<'s> {
    root: &'s Value,
    spots: Vec<Spot>,
    /// By the addresses of the schemas that speak of a place.
    places: HashMap<Vec<usize>, Place>,
    open: Vec<(usize, Vec<&'s Value>)>,
    looks: Cell<u32>,
}

impl<'s> Building<'s> {
    /// The place that these schemas speak of together; a new one is filled later.
    fn place(&mut self, schemas: &[&'s Value]) -> Place {
        let key: Vec<usize> =
            schemas.iter().map(|schema| std::ptr::from_ref(*schema).addr()).collect();
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        let index = self.spots.len();
        let Some(place) = u32::try_from(index).ok().map(Place).filter(|_| index < MAX_PLACES)
        else {
            return Place(0);
        };
        self.spots.push(Spot::anything());
        self.places.insert(key, place);
        self.open.push((index, schemas.to_vec()));
        place
    }

    fn fill(&mut self, index: usize, schemas: &[&'s Value]) {
        let mut facts = Facts::none();
        for schema in schemas.iter().take(MAX_JOINED) {
            facts = facts.and(self.facts(schema, MAX_HOPS));
        }
        let members = facts.members.iter();
        let members =
            members.map(|(key, schemas)| ((*key).to_owned(), self.place(schemas))).collect();
        let spot = Spot {
            kinds: facts.kinds,
            members,
            rest: match facts.rest {
                Others::Open => Rest::Open,
                Others::Forbidden => Rest::Forbidden,
                Others::Each(schema) => Rest::Each(self.place(&[schema])),
            },
            prefix: facts.prefix.iter().map(|schema| self.place(&[schema])).collect(),
            items: facts.items.map(|schema| self.place(&[schema])),
            required: facts.required.iter().map(|key| (*key).to_owned()).collect(),
            listed: facts.listed.map(|listed| listed.into_iter().cloned().collect()),
            default: facts.default.cloned(),
            fallback: facts.fallback.cloned(),
        };
        if let Some(place) = self.spots.get_mut(index) {
            *place = spot;
        }
    }

    /// What one schema says of its place.
    fn facts(&self, schema: &'s Value, hops: u32) -> Facts<'s> {
        let Value::Object(words) = schema else {
            let kinds = if schema == &Value::Bool(false) { Kinds::NONE } else { Kinds::ANY };
            return Facts { kinds, ..Facts::none() };
        };
        let Some(looks) = self.looks.get().checked_sub(1) else { return Facts::none() };
        self.looks.set(looks);
        let mut facts = Facts::own(words);
        let Some(hops) = hops.checked_sub(1) else { return facts };
        if let Some(target) = words.get("$ref").and_then(|reference| self.target(reference)) {
            facts = facts.and(self.facts(target, hops));
        }
        for schema in list(words, "allOf").iter().take(MAX_JOINED) {
            facts = facts.and(self.facts(schema, hops));
        }
        for key in ["anyOf", "oneOf"] {
            let branches = list(words, key);
            if !branches.is_empty() {
                facts = facts.and(self.either(branches, hops));
            }
        }
        facts
    }

    /// What alternatives say together: all of it where only one is not `null`, else types and
    /// members of enums.
    fn either(&self, branches: &'s [Value], hops: u32) -> Facts<'s> {
        // With many alternatives inside each other, looking at all takes too long.
        if branches.len() > MAX_JOINED {
            return Facts::none();
        }
        let all: Vec<Facts<'s>> = branches.iter().map(|branch| self.facts(branch, hops)).collect();
        let (nulls, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|facts| facts.kinds == Kinds::NULL);
        let null = if nulls.is_empty() { Kinds::NONE } else { Kinds::NULL };
        let mut others = others.into_iter();
        let Some(first) = others.next() else {
            return Facts { kinds: Kinds::NULL, ..Facts::none() };
        };
        let joined = others.fold(first, Facts::or);
        let mut listed = joined.listed;
        if let Some(listed) = listed.as_mut().filter(|_| null != Kinds::NONE) {
            listed.push(&Value::Null);
        }
        Facts { kinds: joined.kinds.or(null), listed, ..joined }
    }

    /// Where a reference inside the document leads.
    fn target(&self, reference: &Value) -> Option<&'s Value> {
        let pointer = reference.as_str()?.strip_prefix('#')?;
        if pointer.contains('%') { None } else { self.root.pointer(pointer) }
    }
}

impl<'s> Facts<'s> {
    fn none() -> Self {
        Self {
            kinds: Kinds::ANY,
            members: BTreeMap::new(),
            rest: Others::Open,
            prefix: Vec::new(),
            items: None,
            required: Vec::new(),
            listed: None,
            default: None,
            fallback: None,
        }
    }

    /// What a schema's own keywords say.
    fn own(words: &'s Map<String, Value>) -> Self {
        let (types, listed) = (declared(words), listed(words));
        let within = listed.as_ref().map_or(Kinds::ANY, |listed| {
            listed.iter().fold(Kinds::NONE, |kinds, value| kinds.or(kind_of(value)))
        });
        let members = words.get("properties").and_then(Value::as_object);
        let members = members.into_iter().flatten();
        let items = words.get("items");
        let (old, items) = match items {
            Some(Value::Array(prefix)) => (prefix.as_slice(), words.get("additionalItems")),
            items => (&[][..], items),
        };
        let required = list(words, "required").iter().filter_map(Value::as_str);
        Self {
            kinds: types.and(within),
            members: members.map(|(key, schema)| (key.as_str(), vec![schema])).collect(),
            rest: others(words),
            prefix: list(words, "prefixItems").iter().chain(old).collect(),
            items,
            required: required.collect(),
            listed,
            default: words.get("default"),
            fallback: words.get(FALLBACK),
        }
    }

    /// Both hold.
    fn and(mut self, other: Self) -> Self {
        for (key, schemas) in other.members {
            self.members.entry(key).or_default().extend(schemas);
        }
        for key in other.required {
            if !self.required.contains(&key) {
                self.required.push(key);
            }
        }
        let listed = match (self.listed, other.listed) {
            (Some(one), Some(two)) => {
                Some(one.into_iter().filter(|value| two.contains(value)).collect())
            }
            (one, two) => one.or(two),
        };
        Self {
            kinds: self.kinds.and(other.kinds),
            rest: match (self.rest, other.rest) {
                (Others::Forbidden, _) | (_, Others::Forbidden) => Others::Forbidden,
                (Others::Each(schema), _) | (_, Others::Each(schema)) => Others::Each(schema),
                (Others::Open, Others::Open) => Others::Open,
            },
            prefix: if self.prefix.is_empty() { other.prefix } else { self.prefix },
            items: self.items.or(other.items),
            listed,
            default: self.default.or(other.default),
            fallback: self.fallback.or(other.fallback),
            members: self.members,
            required: self.required,
        }
    }

    /// One of the two holds: what is said of the value itself, and nothing of what is inside.
    fn or(self, other: Self) -> Self {
        let listed = match (self.listed, other.listed) {
            (Some(one), Some(two)) => Some(one.into_iter().chain(two).collect()),
            _ => None,
        };
        Self { kinds: self.kinds.or(other.kinds), listed, ..Self::none() }
    }
}

fn list<'s>(words: &'s Map<String, Value>, key: &str) -> &'s [Value] {
    words.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// What `type` allows.
fn declared(words: &Map<String, Value>) -> Kinds {
    match words.get("type") {
        Some(Value::String(name)) => named(name),
        Some(Value::Array(names)) => {
            let names = names.iter().filter_map(Value::as_str);
            names.fold(Kinds::NONE, |kinds, name| kinds.or(named(name)))
        }
        _ => Kinds::ANY,
    }
}

fn named(name: &str) -> Kinds {
    match name {
        "null" => Kinds::NULL,
        "boolean" => Kinds::BOOLEAN,
        "integer" => Kinds::INTEGER,
        "number" => Kinds::NUMBER,
        "string" => Kinds::STRING,
        "array" => Kinds::ARRAY,
        "object" => Kinds::OBJECT,
        _ => Kinds::ANY,
    }
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

fn listed(words: &Map<String, Value>) -> Option<Vec<&Value>> {
    match (words.get("const"), words.get("enum")) {
        (Some(only), _) => Some(vec![only]),
        (None, Some(Value::Array(members))) => Some(members.iter().collect()),
        _ => None,
    }
}

fn others(words: &Map<String, Value>) -> Others<'_> {
    match words.get("additionalProperties") {
        _ if words.contains_key("patternProperties") => Others::Open,
        Some(Value::Bool(false)) => Others::Forbidden,
        Some(schema @ Value::Object(_)) => Others::Each(schema),
        _ => Others::Open,
    }
}
