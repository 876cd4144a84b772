//! Says what about a schema will hurt later, though it compiles: lints, and what a new version of
//! it breaks.
//!
//! A schema is a contract twice: with the model, which must have a good answer for every input, and
//! with whoever reads the answers. [`lint`] looks at the first, [`against`] at the second. Both are
//! plain functions of the schema and what is said beside it; nothing is compiled, fetched or
//! changed.
//!
//! | lint | what it finds |
//! |---|---|
//! | `schema-no-escape` | a closed set of texts without a member for "none of these" |
//! | `schema-optional-key` | a key that may be missing, where null would say "nothing found" |
//! | `schema-open-object` | an object that lets unknown keys through |
//! | `schema-unchecked` | nothing in the reply that a rule holds against the input |
//! | `schema-cap-too-low` | an output cap that cuts the longest reply the schema allows |
//! | `schema-no-longest` | a cap, and no bound on what the schema allows |
//! | `schema-keyword-dropped` | what a provider does not hold the model to |

mod against;
mod checkable;
mod dropped;
mod escape;
mod length;
mod place;
mod walk;

use std::fmt::Write as _;

use backstay_wire::lower::Subset;
use backstay_wire::pointer;
use serde_json::Value;

pub use against::{Breaks, Change, ChangeKind, MAX_CHANGES, Side, against};
pub use length::{CHARS_A_TOKEN, Lacks, Longest, Reason, longest};
pub use place::place;
use walk::{Found, Schemas};

/// The most findings of one schema. A thousand places with the same fault are one habit.
pub const MAX_FINDINGS: usize = 100;

/// One kind of fault that a schema may have though it compiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Lint {
    /// A closed set of texts without an escape.
    NoEscape,
    /// A key that may be missing.
    OptionalKey,
    /// An object that lets unknown keys through.
    OpenObject,
    /// Nothing is held against the input.
    Unchecked,
    /// The output cap cuts the longest reply.
    CapTooLow,
    /// There is no longest reply.
    NoLongest,
    /// A provider does not enforce something.
    KeywordDropped,
}

impl Lint {
    /// Every lint, in the order of the reference.
    pub const ALL: [Self; 7] = [
        Self::NoEscape,
        Self::OptionalKey,
        Self::OpenObject,
        Self::Unchecked,
        Self::CapTooLow,
        Self::NoLongest,
        Self::KeywordDropped,
    ];

    /// The stable name, such as `schema-no-escape`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoEscape => "schema-no-escape",
            Self::OptionalKey => "schema-optional-key",
            Self::OpenObject => "schema-open-object",
            Self::Unchecked => "schema-unchecked",
            Self::CapTooLow => "schema-cap-too-low",
            Self::NoLongest => "schema-no-longest",
            Self::KeywordDropped => "schema-keyword-dropped",
        }
    }

    /// The lint of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lint| lint.name() == name)
    }

    /// Why it hurts, in one sentence.
    pub const fn why(self) -> &'static str {
        match self {
            Self::NoEscape => {
                "where nothing fits the model must still choose, and no check can tell a forced choice from a good one"
            }
            Self::OptionalKey => {
                "a missing key may mean that nothing was found, or that the reply is broken; null says the first"
            }
            Self::OpenObject => {
                "a model that begins to add fields has changed, and nobody hears of it"
            }
            Self::Unchecked => "a reply may fit the schema and be made up from end to end",
            Self::CapTooLow => "a legitimate reply is cut off, and asking again cuts it again",
            Self::NoLongest => "no cap is enough for every reply, and a cut reply is of no use",
            Self::KeywordDropped => {
                "the model is told in words and the reply is checked, so a breach costs a re-ask instead of being ruled out"
            }
        }
    }

    /// What to do about it, in one sentence.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::NoEscape => "add a member such as \"other\", or allow null",
            Self::OptionalKey => "list it under `required` and let its type be null too",
            Self::OpenObject => "set `additionalProperties` to false",
            Self::Unchecked => {
                "ask for a quote or an identifier from the input, and compare it in a rule: `input.contains(reply.evidence)`"
            }
            Self::CapTooLow => "raise the cap, or ask for less",
            Self::NoLongest => {
                "set `maxLength` and `maxItems`; they are checked here if a provider drops them"
            }
            Self::KeywordDropped => {
                "say it in keywords that are enforced, such as an `enum`, or do without it; where a re-ask is cheap, allow this"
            }
        }
    }
}

/// One fault of a schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Its kind.
    pub lint: Lint,
    /// Where in the schema, as a JSON pointer; empty for the whole.
    pub pointer: String,
    /// What is there, in one sentence.
    pub message: String,
}

/// What is known about the use of a schema, beside the schema.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage<'a> {
    /// The CEL expressions that a reply must satisfy. `None`: nobody knows, so only a schema in
    /// which nothing could be compared is told of.
    pub rules: Option<&'a [&'a str]>,
    /// The most output tokens a reply may take at last. `None`: not known.
    pub cap: Option<u64>,
    /// What the providers that may answer take of JSON Schema.
    pub subsets: &'a [Subset],
}

/// What will hurt later, in the order of the schema; at most [`MAX_FINDINGS`] and
/// three about the whole and one for each subset.
pub fn lint(schema: &Value, usage: &Usage<'_>) -> Vec<Finding> {
    let schemas = Schemas::of(schema);
    let mut findings = Vec::new();
    for found in schemas.places() {
        findings.extend(no_escape(found));
        findings.extend(optional_keys(found));
        findings.extend(open_object(found));
        findings.truncate(MAX_FINDINGS);
    }
    findings.extend(checkable::unchecked(&schemas, usage.rules));
    findings.extend(usage.cap.and_then(|cap| capped(schema, cap)));
    findings.extend(usage.subsets.iter().filter_map(|subset| dropped::dropped(schema, *subset)));
    findings
}

fn no_escape(found: &Found<'_>) -> Option<Finding> {
    let set = escape::closed_set(found.schema)?;
    if found.has_way_out || escape::has_escape(found.schema, &set) {
        return None;
    }
    let shown = listed(set.iter().map(|text| format!("\"{text}\"")));
    let message = format!("{} may only be {shown}", found.name());
    Some(Finding { lint: Lint::NoEscape, pointer: found.pointer.clone(), message })
}

fn optional_keys(found: &Found<'_>) -> Option<Finding> {
    let properties = found.schema.get("properties")?.as_object()?;
    let required = found.schema.get("required").and_then(Value::as_array);
    let is_required =
        |key: &str| required.is_some_and(|keys| keys.iter().any(|named| named == key));
    let optional = |(key, schema): &(&String, &Value)| {
        !is_required(key) && schema.get("default").is_none() && **schema != Value::Bool(false)
    };
    let keys: Vec<&String> = properties.iter().filter(optional).map(|(key, _)| key).collect();
    let pointer = format!("{}/properties/{}", found.pointer, pointer::escape(keys.first()?));
    let shown = listed(keys.iter().map(|key| format!("`{key}`")));
    let message = format!("{shown} may be missing in {}", found.name());
    Some(Finding { lint: Lint::OptionalKey, pointer, message })
}

fn open_object(found: &Found<'_>) -> Option<Finding> {
    if found.is_part || !walk::is_object(found.schema) {
        return None;
    }
    let schema = found.schema;
    let closes = |key| schema.get(key) == Some(&Value::Bool(false));
    let is_map = schema
        .get("additionalProperties")
        .is_some_and(|rest| rest.as_object().is_some_and(|rest| !rest.is_empty()));
    if closes("additionalProperties") || closes("unevaluatedProperties") || is_map {
        return None;
    }
    let message = match schema.get("additionalProperties") {
        Some(_) => format!("{} allows any other key", found.name()),
        None => format!("{} does not rule out other keys", found.name()),
    };
    Some(Finding { lint: Lint::OpenObject, pointer: found.pointer.clone(), message })
}

fn capped(schema: &Value, cap: u64) -> Option<Finding> {
    match longest(schema) {
        Longest::Chars(chars) => {
            let tokens = chars.div_ceil(CHARS_A_TOKEN);
            (tokens > cap).then(|| Finding {
                lint: Lint::CapTooLow,
                pointer: String::new(),
                message: format!(
                    "the longest reply has about {chars} characters, {tokens} tokens; the cap is {cap}"
                ),
            })
        }
        Longest::Unbounded(reasons) => {
            let first = reasons.first()?;
            let mut message = format!("the cap is {cap} tokens, and {}", first.words());
            if reasons.len() > 1 {
                let _ = write!(message, "; as have {} more places", reasons.len() - 1);
            }
            Some(Finding { lint: Lint::NoLongest, pointer: first.pointer.clone(), message })
        }
    }
}

/// The first few of several names.
fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    const SHOWN: usize = 5;
    let rest = names.len().saturating_sub(SHOWN);
    let mut text = names.take(SHOWN).map(|name| clipped(&name)).collect::<Vec<_>>().join(", ");
    if rest > 0 {
        let _ = write!(text, " and {rest} more");
    }
    text
}

/// At most 60 characters of a name.
fn clipped(name: &str) -> String {
    const MOST: usize = 60;
    let mut text: String = name.chars().take(MOST).collect();
    if name.chars().nth(MOST).is_some() {
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests;
