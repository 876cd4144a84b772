//! Reads an outline off a schema.
//!
//! A place of the value may be spoken of by several schemas: `allOf`, a reference and its
//! siblings, the one alternative beside `null`. Their facts are joined. Bounded: a schema may come
//! from anyone, and may refer to itself.

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap, HashSet};

use jsonmend::Place;
use serde_json::{Map, Value};

use super::draft::{References, Rules, Siblings};
use super::lists::{List, Lists};
use super::{FALLBACK, Kinds, Outline, Rest, Spot};

/// The most places; what lies beyond counts as anything. A schema of 256 KiB has fewer.
const MAX_PLACES: usize = 10_000;

/// References and alternatives followed at one place.
const MAX_HOPS: u32 = 24;

/// Schemas looked at for one outline, each with eight of its keys: alternatives that refer to
/// themselves double with each hop.
/// What comes after counts as anything.
const MAX_LOOKS: u32 = 50_000;

/// The most schemas that are joined at one place.
const MAX_JOINED: usize = 64;

/// The most places that alternatives have of their own. 2,000: forty unions of fifty.
const MAX_CHOICES: usize = 2_000;

/// How many unions may stand in each other at one place.
const MAX_UNIONS: usize = 4;

/// What schemas say of one place, with the schemas of the places inside.
#[derive(Clone, Debug)]
struct Facts<'s> {
    kinds: Kinds,
    members: BTreeMap<&'s str, Vec<&'s Value>>,
    rest: Others<'s>,
    prefix: Vec<&'s Value>,
    items: Option<&'s Value>,
    required: Vec<&'s str>,
    listed: Option<List>,
    default: Option<&'s Value>,
    fallback: Option<&'s Value>,
    /// Alternatives of which more than one is not `null`, each list once.
    unions: Vec<&'s [Value]>,
}

/// The schemas that speak of one place together.
#[derive(Clone, Debug)]
struct Speakers<'s> {
    schemas: Vec<&'s Value>,
    /// Unions that are settled there: one of their alternatives is among the schemas.
    settled: Vec<&'s [Value]>,
}

#[derive(Clone, Copy, Debug)]
enum Others<'s> {
    Open,
    Forbidden,
    Each(&'s Value),
}

/// The outline of `schema`; of anything where the rules of its parts are not known.
pub(super) fn build(schema: &Value) -> Outline {
    let Some(rules) = Rules::of(schema) else { return Outline::of_root(Spot::anything()) };
    let mut building = Building {
        root: schema,
        rules,
        lists: Lists::new(),
        spots: vec![Spot::anything()],
        places: HashMap::new(),
        choices: 0,
        open: Vec::new(),
        looks: Cell::new(MAX_LOOKS),
    };
    let root = building.place(&[schema]);
    while let Some((place, speakers)) = building.open.pop() {
        building.fill(place, &speakers);
    }
    Outline { spots: building.spots, root }
}

struct Building<'s> {
    root: &'s Value,
    rules: Rules,
    lists: Lists<'s>,
    spots: Vec<Spot>,
    /// By the addresses of the schemas that speak of a place, and of the unions settled there.
    places: HashMap<(Vec<usize>, Vec<usize>), Place>,
    /// Places of alternatives so far.
    choices: usize,
    open: Vec<(usize, Speakers<'s>)>,
    looks: Cell<u32>,
}

impl<'s> Building<'s> {
    /// The place that these schemas speak of together; a new one is filled later.
    fn place(&mut self, schemas: &[&'s Value]) -> Place {
        self.place_of(Speakers { schemas: schemas.to_vec(), settled: Vec::new() })
    }

    fn place_of(&mut self, speakers: Speakers<'s>) -> Place {
        let Speakers { schemas, settled } = &speakers;
        let schemas = schemas.iter().map(|schema| std::ptr::from_ref(*schema).addr()).collect();
        let settled = settled.iter().map(|union| union.as_ptr().addr()).collect();
        let key = (schemas, settled);
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
        self.open.push((index, speakers));
        place
    }

    fn fill(&mut self, index: usize, speakers: &Speakers<'s>) {
        let mut facts = Facts::none();
        for schema in speakers.schemas.iter().take(MAX_JOINED) {
            let said = self.facts(schema, (MAX_HOPS, &speakers.settled));
            facts = facts.and(said, &self.lists);
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
            listed: facts.listed.map(|list| self.lists.made(list)),
            default: facts.default.cloned(),
            fallback: facts.fallback.cloned(),
            choices: self.choices_of(speakers, &facts.unions),
        };
        if let Some(place) = self.spots.get_mut(index) {
            *place = spot;
        }
    }

    /// A place for each alternative of the one union there is. Of several that hold together none is
    /// taken up.
    fn choices_of(&mut self, speakers: &Speakers<'s>, unions: &[&'s [Value]]) -> Vec<Place> {
        let [union] = unions else { return Vec::new() };
        let count = self.choices + union.len();
        if count > MAX_CHOICES || speakers.settled.len() >= MAX_UNIONS {
            return Vec::new();
        }
        self.choices = count;
        let mut places = Vec::with_capacity(union.len());
        for branch in *union {
            let mut chosen = speakers.clone();
            chosen.schemas.push(branch);
            chosen.settled.push(union);
            places.push(self.place_of(chosen));
        }
        // One that could not be had would be missed when they are told apart.
        if places.contains(&Place(0)) { Vec::new() } else { places }
    }

    /// What one schema says of its place, following so many references, where these unions are
    /// settled.
    fn facts(&self, schema: &'s Value, (hops, settled): (u32, &[&'s [Value]])) -> Facts<'s> {
        let Value::Object(words) = schema else {
            let kinds = if schema == &Value::Bool(false) { Kinds::NONE } else { Kinds::ANY };
            return Facts { kinds, ..Facts::none() };
        };
        let keys = size(words, "properties") + list(words, "required").len();
        let cost = u32::try_from(1 + keys / 8).unwrap_or(u32::MAX);
        let Some(looks) = self.looks.get().checked_sub(cost) else { return Facts::none() };
        self.looks.set(looks);
        let reference = words.get("$ref").filter(|reference| reference.is_string());
        let alone = reference.is_some() && self.rules.siblings == Siblings::Ignored;
        let mut facts = if alone { Facts::notes(words) } else { self.own(words) };
        let Some(hops) = hops.checked_sub(1) else { return facts };
        if let Some(target) = reference.and_then(|reference| self.target(reference)) {
            facts = facts.and(self.facts(target, (hops, settled)), &self.lists);
        }
        if alone {
            return facts;
        }
        for schema in list(words, "allOf").iter().take(MAX_JOINED) {
            facts = facts.and(self.facts(schema, (hops, settled)), &self.lists);
        }
        for key in ["anyOf", "oneOf"] {
            let branches = list(words, key);
            if !branches.is_empty() && !settled.iter().any(|union| std::ptr::eq(*union, branches)) {
                facts = facts.and(self.either(branches, (hops, settled)), &self.lists);
            }
        }
        facts
    }

    /// What a schema's own keywords say.
    fn own(&self, words: &'s Map<String, Value>) -> Facts<'s> {
        let listed = self.rules.word(words, "const").map(|only| (only, std::slice::from_ref(only)));
        let listed = listed.or_else(|| {
            let members = words.get("enum")?;
            Some((members, members.as_array()?.as_slice()))
        });
        let (listed, within) = match listed {
            Some((keyword, members)) => {
                let (list, kinds) = self.lists.own(keyword, members);
                (Some(list), kinds)
            }
            None => (None, Kinds::ANY),
        };
        let members = words.get("properties").and_then(Value::as_object);
        let members = members.into_iter().flatten();
        let (old, items) = match words.get("items") {
            Some(Value::Array(prefix)) => (prefix.as_slice(), words.get("additionalItems")),
            items => (&[][..], items),
        };
        let prefix = self.rules.word(words, "prefixItems").and_then(Value::as_array);
        let required = list(words, "required").iter().filter_map(Value::as_str);
        Facts {
            kinds: declared(words).and(within),
            members: members.map(|(key, schema)| (key.as_str(), vec![schema])).collect(),
            rest: others(words),
            prefix: prefix.into_iter().flatten().chain(old).collect(),
            items,
            required: required.collect(),
            listed,
            ..Facts::notes(words)
        }
    }

    /// What alternatives say together: all of it where only one is not `null`, else types and
    /// members of enums.
    fn either(&self, branches: &'s [Value], left: (u32, &[&'s [Value]])) -> Facts<'s> {
        // With many alternatives inside each other, looking at all takes too long.
        if branches.len() > MAX_JOINED {
            return Facts::none();
        }
        let all: Vec<Facts<'s>> = branches.iter().map(|branch| self.facts(branch, left)).collect();
        let (nulls, others): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|facts| facts.kinds == Kinds::NULL);
        let null = if nulls.is_empty() { Kinds::NONE } else { Kinds::NULL };
        let mut others = others.into_iter();
        let Some(first) = others.next() else {
            return Facts { kinds: Kinds::NULL, ..Facts::none() };
        };
        let mut others = others.peekable();
        // A word says by itself where it belongs.
        let is_union = others.peek().is_some();
        let mut joined = others.fold(first, |one, two| one.or(&two, &self.lists));
        if is_union && joined.kinds.meets(Kinds::OBJECT.or(Kinds::ARRAY)) {
            joined.unions.push(branches);
        }
        let mut listed = joined.listed;
        if null != Kinds::NONE {
            listed = listed.and_then(|list| self.lists.either(list, self.lists.null()));
        }
        Facts { kinds: joined.kinds.or(null), listed, ..joined }
    }

    /// Where a reference inside the document leads.
    fn target(&self, reference: &Value) -> Option<&'s Value> {
        let pointer = reference.as_str()?.strip_prefix('#')?;
        let is_known = self.rules.references == References::Followed && !pointer.contains('%');
        self.root.pointer(pointer).filter(|_| is_known)
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
            unions: Vec::new(),
        }
    }

    /// What a schema says that asserts nothing.
    fn notes(words: &'s Map<String, Value>) -> Self {
        let (default, fallback) = (words.get("default"), words.get(FALLBACK));
        Self { default, fallback, ..Self::none() }
    }

    /// Both hold.
    fn and(mut self, other: Self, lists: &Lists<'s>) -> Self {
        for (key, schemas) in other.members {
            self.members.entry(key).or_default().extend(schemas);
        }
        if !other.required.is_empty() {
            let known: HashSet<&str> = self.required.iter().copied().collect();
            self.required.extend(other.required.into_iter().filter(|key| !known.contains(key)));
        }
        for union in other.unions {
            if !self.unions.iter().any(|known| std::ptr::eq(*known, union)) {
                self.unions.push(union);
            }
        }
        // The first elements and the others go together: what is first for one may not be for the
        // other.
        let says_items = !self.prefix.is_empty() || self.items.is_some();
        let (prefix, items) =
            if says_items { (self.prefix, self.items) } else { (other.prefix, other.items) };
        Self {
            kinds: self.kinds.and(other.kinds),
            rest: match (self.rest, other.rest) {
                (Others::Forbidden, _) | (_, Others::Forbidden) => Others::Forbidden,
                (Others::Each(schema), _) | (_, Others::Each(schema)) => Others::Each(schema),
                (Others::Open, Others::Open) => Others::Open,
            },
            prefix,
            items,
            listed: match (self.listed, other.listed) {
                (Some(one), Some(two)) => Some(lists.both(one, two)),
                (one, two) => one.or(two),
            },
            default: self.default.or(other.default),
            fallback: self.fallback.or(other.fallback),
            members: self.members,
            required: self.required,
            unions: self.unions,
        }
    }

    /// One of the two holds: what is said of the value itself, and nothing of what is inside.
    fn or(self, other: &Self, lists: &Lists<'s>) -> Self {
        let listed = match (self.listed, other.listed) {
            (Some(one), Some(two)) => lists.either(one, two),
            _ => None,
        };
        Self { kinds: self.kinds.or(other.kinds), listed, ..Self::none() }
    }
}

fn list<'s>(words: &'s Map<String, Value>, key: &str) -> &'s [Value] {
    words.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn size(words: &Map<String, Value>, key: &str) -> usize {
    words.get(key).and_then(Value::as_object).map_or(0, Map::len)
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

fn others(words: &Map<String, Value>) -> Others<'_> {
    match words.get("additionalProperties") {
        _ if words.contains_key("patternProperties") => Others::Open,
        Some(Value::Bool(false)) => Others::Forbidden,
        Some(schema @ Value::Object(_)) => Others::Each(schema),
        _ => Others::Open,
    }
}
