//! The pass over a schema: each schema is taken apart and put together from what the subset has.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::change::{Change, Rule};
use super::fault::CannotLower;
use super::merge::{self, ANNOTATIONS};
use super::refs::{self, Refs, step};
use super::subset::{Refs as RefRule, Rules};
use super::tally::Tally;
use super::{MAX_DEPTH, MAX_SPENT, UNROLL};

/// Why a schema has no lowered form where it stands.
#[derive(Debug)]
pub(super) enum Stop {
    /// Nothing can stand here, so what holds it ends here: a recursion that is at its end.
    Cut(CannotLower),
    /// The whole schema cannot be lowered.
    Cannot(CannotLower),
}

pub(super) type Lowers = Result<Map<String, Value>, Stop>;

/// The state of one pass.
#[derive(Debug)]
pub(super) struct Pass<'s> {
    pub root: &'s Value,
    pub rules: &'static Rules,
    pub refs: Refs,
    pub changes: Vec<Change>,
    pub tally: Tally,
    /// Definitions that are referred to: pointer to name.
    names: HashMap<String, String>,
    /// Their lowered bodies by name; null while they wait.
    pub defs: Map<String, Value>,
    /// Definitions named and not yet lowered.
    waiting: Vec<(String, String)>,
    /// Definitions being put in, outermost first.
    inside: Vec<String>,
    /// Definitions lowered to be compared, by reference.
    pub bodies: HashMap<String, Value>,
    /// Whether the branches of unions are compared.
    pub tells: bool,
    spent: usize,
}

impl<'s> Pass<'s> {
    pub(super) fn new(
        root: &'s Value,
        rules: &'static Rules,
        tally: Tally,
    ) -> Result<Self, CannotLower> {
        Ok(Self {
            root,
            rules,
            refs: Refs::of(root)?,
            changes: Vec::new(),
            tally,
            names: HashMap::new(),
            defs: Map::new(),
            waiting: Vec::new(),
            inside: vec![String::new()],
            bodies: HashMap::new(),
            tells: true,
            spent: 0,
        })
    }

    pub(super) fn note(&mut self, rule: Rule, at: &str, keyword: &str, what: impl Into<String>) {
        self.changes.push(Change {
            rule,
            pointer: at.to_owned(),
            keyword: keyword.to_owned(),
            what: what.into(),
            residual: None,
        });
    }

    /// Notes something that is not enforced any more, and gives back its words.
    pub(super) fn loose(&mut self, rule: Rule, at: &str, keyword: &str, words: String) -> String {
        let what = match rule {
            Rule::Weakened => format!("`{keyword}` weakened: {words}"),
            _ => format!("`{keyword}` left out: {words}"),
        };
        self.note(rule, at, keyword, what);
        if let Some(change) = self.changes.last_mut() {
            change.residual = Some(words.clone());
        }
        words
    }

    /// Lowers the root, and every definition that is still referred to.
    pub(super) fn all(&mut self) -> Lowers {
        let root = self.root;
        let mut lowered = match root {
            // A reference at the root is put in: the root must say what it is.
            Value::Object(map) if map.contains_key("$ref") && self.rules.root_object => {
                self.put_in(map, "", 0)
            }
            _ => self.schema(root, "", 0),
        }?;
        while let Some((at, name)) = self.waiting.pop() {
            let body = self.root.pointer(&at).cloned().unwrap_or_default();
            self.inside = vec![at.clone()];
            let body = self.schema(&body, &at, 0)?;
            self.defs.insert(name, Value::Object(body));
        }
        lowered.shift_remove("$defs");
        Ok(lowered)
    }

    /// Lowers the schema at `at`.
    pub(super) fn schema(&mut self, schema: &Value, at: &str, depth: usize) -> Lowers {
        if depth > MAX_DEPTH {
            return Err(Stop::Cannot(CannotLower::TooDeep(MAX_DEPTH)));
        }
        self.spend(64)?;
        match schema {
            Value::Bool(true) => self.plain(&Map::new(), at, depth),
            Value::Bool(false) => Err(Stop::Cut(CannotLower::Never(at.to_owned()))),
            Value::Object(map) if map.contains_key("$ref") => self.reference(map, at, depth),
            Value::Object(map) if map.contains_key("allOf") => self.all_of(map, at, depth),
            Value::Object(map) if map.contains_key("anyOf") || map.contains_key("oneOf") => {
                self.union(map, at, depth)
            }
            Value::Object(map) => self.plain(map, at, depth),
            _ => Err(Stop::Cannot(CannotLower::NotASchema(at.to_owned()))),
        }
    }

    // --- references ---

    fn reference(&mut self, map: &Map<String, Value>, at: &str, depth: usize) -> Lowers {
        let to = self.target(map, at)?;
        let circular = self.refs.circular.contains(&to);
        let must_go = match self.rules.refs {
            RefRule::Keep => false,
            RefRule::NoCycles => circular,
            RefRule::OptionalCycles => self.refs.forced.contains(&to),
            RefRule::Inline => true,
        };
        let is_alone = map.keys().all(|key| key == "$ref" || is_definitions(key));
        if must_go || (!is_alone && !circular) {
            return self.put_in(map, at, depth);
        }
        for key in map.keys().filter(|key| *key != "$ref" && !is_definitions(key)) {
            let rule =
                if ANNOTATIONS.contains(&key.as_str()) { Rule::Annotation } else { Rule::Dropped };
            self.note(rule, at, key, format!("`{key}` beside a recursive reference left out"));
        }
        let mut out = Map::new();
        out.insert("$ref".into(), Value::from(self.named(&to)));
        Ok(out)
    }

    fn target(&self, map: &Map<String, Value>, at: &str) -> Result<String, Stop> {
        let reference = map.get("$ref").and_then(Value::as_str);
        let to = reference.and_then(|reference| self.refs.pointer(reference));
        to.filter(|to| self.root.pointer(to).is_some())
            .ok_or_else(|| Stop::Cannot(CannotLower::Reference(at.to_owned())))
    }

    /// The source of a definition that a kept reference names.
    pub(super) fn source_of(&self, reference: &str) -> Option<&Value> {
        let name = reference.strip_prefix("#/$defs/");
        let Some(name) = name else { return (reference == "#").then_some(self.root) };
        let at = self.names.iter().find(|(_, known)| known.as_str() == name)?.0;
        self.root.pointer(at)
    }

    /// The value of a `$ref` to the definition at `to`.
    fn named(&mut self, to: &str) -> String {
        if to.is_empty() {
            return "#".into();
        }
        if let Some(name) = self.names.get(to) {
            return format!("#/$defs/{name}");
        }
        let name = refs::name(to, &self.defs);
        self.names.insert(to.to_owned(), name.clone());
        self.defs.insert(name.clone(), Value::Null);
        self.waiting.push((to.to_owned(), name.clone()));
        format!("#/$defs/{name}")
    }

    /// Puts a definition in the place of a reference, with what stands beside the reference.
    fn put_in(&mut self, map: &Map<String, Value>, at: &str, depth: usize) -> Lowers {
        let to = self.target(map, at)?;
        let deep = self.inside.iter().filter(|inside| **inside == to).count();
        let circular = self.refs.circular.contains(&to);
        if deep >= UNROLL {
            return Err(Stop::Cut(CannotLower::Recursion(at.to_owned())));
        }
        let root = self.root;
        let body = root.pointer(&to).unwrap_or(&Value::Null);
        let beside: Map<String, Value> =
            map.iter().filter(|(key, _)| *key != "$ref" && !is_definitions(key)).map(own).collect();
        if !at.is_empty() || circular {
            let (rule, what) = if circular {
                (Rule::Unrolled, format!("recursion unrolled, level {} of {UNROLL}", deep + 1))
            } else {
                (Rule::RefInlined, "definition put in its place".to_owned())
            };
            self.note(rule, at, "$ref", what);
        }
        self.inside.push(to.clone());
        let lowered = match body {
            _ if beside.is_empty() => self.schema(body, &to, depth + 1),
            Value::Object(body) => {
                let parts = Value::Array(vec![Value::Object(body.clone())]);
                let mut whole = beside;
                whole.insert("allOf".into(), parts);
                self.parts(&whole, &to, depth + 1)
            }
            other => self.schema(other, &to, depth + 1),
        };
        self.inside.pop();
        lowered
    }

    // --- allOf ---

    fn all_of(&mut self, map: &Map<String, Value>, at: &str, depth: usize) -> Lowers {
        self.note(Rule::AllOfMerged, at, "allOf", "the parts of `allOf` made one schema");
        self.parts(map, at, depth)
    }

    /// Makes one schema of `map` and the parts of its `allOf`, and lowers it.
    fn parts(&mut self, map: &Map<String, Value>, at: &str, depth: usize) -> Lowers {
        let mut whole: Map<String, Value> =
            map.iter().filter(|(key, _)| *key != "allOf").map(own).collect();
        let Some(Value::Array(parts)) = map.get("allOf") else {
            return Err(Stop::Cannot(CannotLower::NotASchema(step(at, "allOf"))));
        };
        let mut apart = Apart::default();
        for part in parts {
            let flat = match part {
                Value::Bool(true) => continue,
                Value::Bool(false) => {
                    return Err(Stop::Cut(CannotLower::Never(at.to_owned())));
                }
                part => self.flat(part, at, depth, &mut apart)?,
            };
            self.spend(whole.values().map(size).sum())?;
            match merge::both(&whole, &flat) {
                Some(both) => whole = both,
                None if !has_shape(&whole) && has_shape(&flat) => {
                    apart.left.push(std::mem::replace(&mut whole, flat));
                }
                None => apart.left.push(flat),
            }
        }
        let before = self.inside.len();
        self.inside.extend(apart.names);
        let lowered = self.schema(&Value::Object(whole), at, depth + 1);
        self.inside.truncate(before);
        let mut lowered = lowered?;
        for part in apart.left {
            let words = super::words::constraint("also fits", &Value::Object(part));
            let words = self.loose(Rule::AllOfFirst, at, "allOf", words);
            say(&mut lowered, words);
        }
        Ok(lowered)
    }

    /// A part of an `allOf` with what it refers to, and its own parts, put in at its top.
    fn flat(&mut self, part: &Value, at: &str, depth: usize, apart: &mut Apart) -> Lowers {
        if depth > MAX_DEPTH {
            return Err(Stop::Cannot(CannotLower::TooDeep(MAX_DEPTH)));
        }
        let Value::Object(map) = part else {
            return Err(Stop::Cannot(CannotLower::NotASchema(at.to_owned())));
        };
        self.spend(size(part))?;
        let mut map = map.clone();
        if map.contains_key("$ref") {
            let to = self.target(&map, at)?;
            let inside = self.inside.iter().chain(&apart.names);
            if inside.filter(|inside| **inside == to).count() >= UNROLL {
                return Err(Stop::Cut(CannotLower::Recursion(at.to_owned())));
            }
            map.shift_remove("$ref");
            apart.names.push(to.clone());
            let root = self.root;
            let body = self.flat(root.pointer(&to).unwrap_or(root), &to, depth + 1, apart)?;
            if let Some(both) = merge::both(&map, &body) {
                map = both;
            } else {
                apart.left.push(map);
                map = body;
            }
        }
        if let Some(Value::Array(parts)) = map.shift_remove("allOf") {
            for part in &parts {
                let flat = self.flat(part, at, depth + 1, apart)?;
                match merge::both(&map, &flat) {
                    Some(both) => map = both,
                    None => apart.left.push(flat),
                }
            }
        }
        Ok(map)
    }

    /// Counts work done and bytes written, so that references that multiply come to an end.
    pub(super) fn spend(&mut self, bytes: usize) -> Result<(), Stop> {
        self.spent = self.spent.saturating_add(bytes + 1);
        if self.spent > MAX_SPENT {
            return Err(Stop::Cannot(CannotLower::TooLarge));
        }
        Ok(())
    }
}

/// What is found while the parts of an `allOf` are put together.
#[derive(Default)]
struct Apart {
    /// Definitions that were put in.
    names: Vec<String>,
    /// Parts that could not be put in, to be told in words.
    left: Vec<Map<String, Value>>,
}

/// About how many bytes a value takes, to a depth that bounds the count itself.
pub(super) fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
        Value::String(text) => text.len() + 8,
        Value::Array(values) => values.iter().map(size).sum::<usize>() + 8,
        Value::Object(members) => {
            members.iter().map(|(key, value)| key.len() + size(value) + 8).sum::<usize>() + 8
        }
    }
}

fn own((key, value): (&String, &Value)) -> (String, Value) {
    (key.clone(), value.clone())
}

pub(super) fn is_definitions(key: &str) -> bool {
    matches!(key, "$defs" | "definitions")
}

/// Whether a schema says what an object holds.
fn has_shape(map: &Map<String, Value>) -> bool {
    map.contains_key("properties") || map.get("type").is_some_and(|kind| kind == "object")
}

/// Puts words behind the description of a lowered schema.
pub(super) fn say(lowered: &mut Map<String, Value>, words: String) {
    let before = lowered.get("description").and_then(Value::as_str);
    if let Some(text) = super::words::described(before, &[words]) {
        lowered.insert("description".into(), Value::from(text));
    }
}
