//! One way in which a value breaks its schema, and the sentence for it.
//!
//! | what | sentence |
//! |---|---|
//! | a key is missing | `missing 'needs_human'` |
//! | a key is not allowed | `unexpected 'confidence'` |
//! | another type | `'priority' should be int` |
//! | no member of the enum | `category 'payments' not in enum` |
//! | out of range | `priority outside 1..4`, `priority below 1`, `priority above 4` |
//! | too long | `summary longer than 200 chars` |
//!
//! Types are called int, number, str, bool, array, object and null. A value deeper than the first
//! level gets its JSON pointer in front: `/items/0/qty: 'qty' should be int`.

use std::fmt::Write as _;

use backstay_wire::pointer;
use serde_json::Value;

use super::super::clipped;

/// The most bytes of a pointer in front of a sentence.
const MAX_POINTER: usize = 120;

/// The most bytes of a name or a value inside a sentence.
const MAX_WORD: usize = 60;

/// One step down from the root of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// Where a value breaks its schema, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Breach {
    pub(super) at: Site,
    pub(super) what: What,
}

/// A place in the value, and the rule of the schema that is broken there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Site {
    /// The value that breaks it; for a missing or unexpected key the object around the key.
    pub(super) path: Vec<Step>,
    /// JSON Pointer to the keyword in the schema.
    pub(super) rule: String,
    pub(super) keyword: String,
}

impl Site {
    /// JSON Pointer to the value.
    pub(super) fn pointer(&self) -> String {
        let mut pointer = String::new();
        for step in &self.path {
            // Writing to a `String` cannot fail.
            let _ = match step {
                Step::Key(key) => write!(pointer, "/{}", pointer::escape(key)),
                Step::Index(index) => write!(pointer, "/{index}"),
            };
        }
        pointer
    }
}

/// How a value breaks its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A key the schema requires is not there.
    Missing(String),
    /// A key is there that the schema does not know.
    Unexpected(String),
    /// The value is of none of these types. Never empty.
    Type(Vec<&'static str>),
    /// It is not the one value that may stand here. The rest of a sentence that begins with the
    /// value's name.
    Constant(String),
    /// It is none of the values that may stand here. The rest of such a sentence.
    Choice(String),
    /// It fits none of several alternatives; the rest of a sentence that begins with its name.
    Alternatives(String),
    /// Anything else, as the rest of a sentence that begins with the value's name.
    Says(String),
}

impl Breach {
    /// Whether it is about the keys and types (0), about keys too many (1), or about values (2).
    /// Told in this order: a model that mends the structure often mends the rest with it.
    pub(super) fn rank(&self) -> u8 {
        match self.what {
            What::Missing(_) | What::Type(_) => 0,
            What::Unexpected(_) => 1,
            What::Constant(_) | What::Choice(_) | What::Alternatives(_) | What::Says(_) => 2,
        }
    }

    /// The sentence, on one line.
    pub(super) fn words(&self) -> String {
        let front = self.front();
        match &self.what {
            What::Missing(key) => format!("{front}missing '{}'", clipped(key, MAX_WORD)),
            What::Unexpected(key) => format!("{front}unexpected '{}'", clipped(key, MAX_WORD)),
            What::Type(types) => format!("{front}{}", self.wrong_type(types)),
            What::Constant(rest)
            | What::Choice(rest)
            | What::Alternatives(rest)
            | What::Says(rest) => format!("{front}{} {rest}", self.name()),
        }
    }

    fn wrong_type(&self, types: &[&str]) -> String {
        let wanted = types.join(" or ");
        match self.at.path.last() {
            Some(Step::Key(key)) => format!("'{}' should be {wanted}", clipped(key, MAX_WORD)),
            Some(Step::Index(_)) => format!("{} should be {wanted}", self.name()),
            None if wanted == "object" => "top level is not an object".to_owned(),
            None => format!("top level should be {wanted}"),
        }
    }

    fn name(&self) -> String {
        match self.at.path.last() {
            Some(Step::Key(key)) => clipped(key, MAX_WORD),
            Some(Step::Index(index)) => format!("item {index}"),
            None => "top level".to_owned(),
        }
    }

    /// The pointer to the value with a colon, where its name alone would not find it.
    fn front(&self) -> String {
        let around = matches!(self.what, What::Missing(_) | What::Unexpected(_));
        let plain = match self.at.path.as_slice() {
            [] => true,
            [Step::Key(_)] => !around,
            _ => false,
        };
        if plain {
            return String::new();
        }
        format!("{}: ", clipped(&self.at.pointer(), MAX_POINTER))
    }
}

/// A value as it stands in a sentence: text in single quotes, anything else as JSON, cut short.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{}'", clipped(text, MAX_WORD)),
        Value::Array(_) => "array".to_owned(),
        Value::Object(_) => "object".to_owned(),
        Value::Null | Value::Bool(_) | Value::Number(_) => clipped(&value.to_string(), MAX_WORD),
    }
}

/// A number as it stands in a sentence: as it was written, cut short.
pub(super) fn shown_number(digits: &str) -> String {
    clipped(digits, MAX_WORD)
}

/// What is told where a value fits none of several alternatives, each with its breaches. `at` is
/// the value, and the keyword that holds the alternatives.
///
/// One alternative is told where one was clearly meant: the only one of the value's type, or the
/// only one whose constants, or else whose enums, all match. Else the nearest stands in one sentence.
pub(super) fn nearest(at: &Site, mut alternatives: Vec<Vec<Breach>>) -> Vec<Breach> {
    let count = alternatives.len();
    if let Some(types) = only_types(&at.path, &alternatives) {
        return vec![Breach { at: at.clone(), what: What::Type(types) }];
    }
    let other_type = |v: &Breach| v.at.path == at.path && matches!(v.what, What::Type(_));
    retain_unless_all(&mut alternatives, other_type);
    retain_unless_all(&mut alternatives, |v| matches!(v.what, What::Constant(_)));
    retain_unless_all(&mut alternatives, |v| matches!(v.what, What::Choice(_)));
    if alternatives.len() == 1 {
        return alternatives.pop().unwrap_or_default();
    }
    let nearest = alternatives.into_iter().min_by_key(Vec::len).unwrap_or_default();
    // Alternatives inside alternatives: the innermost say where to look.
    if nearest.iter().any(|breach| matches!(breach.what, What::Alternatives(_))) {
        return nearest;
    }
    let told: Vec<String> = nearest.iter().take(3).map(Breach::words).collect();
    let rest = match told.as_slice() {
        [] => format!("fits none of {count} alternatives"),
        told => format!("fits none of {count} alternatives; nearest: {}", told.join(", ")),
    };
    vec![Breach { at: at.clone(), what: What::Alternatives(rest) }]
}

/// Drops the alternatives with a breach that `tells` they were not meant, unless that is all.
fn retain_unless_all(alternatives: &mut Vec<Vec<Breach>>, tells: impl Fn(&Breach) -> bool + Copy) {
    let meant = |alternative: &Vec<Breach>| !alternative.iter().any(tells);
    if alternatives.iter().any(meant) {
        alternatives.retain(meant);
    }
}

/// Every type that may stand at `at`, if the type is all that is wrong with each alternative.
fn only_types(at: &[Step], alternatives: &[Vec<Breach>]) -> Option<Vec<&'static str>> {
    let mut all = Vec::new();
    for alternative in alternatives {
        let [Breach { at: site, what: What::Type(types) }] = alternative.as_slice() else {
            return None;
        };
        if site.path != at {
            return None;
        }
        for name in types {
            if !all.contains(name) {
                all.push(*name);
            }
        }
    }
    (!all.is_empty()).then_some(all)
}
