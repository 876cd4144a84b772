//! Which keywords count in a schema, by its draft.

use serde_json::{Map, Value};

/// What a draft makes of the keywords that an outline reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rules {
    /// What stands beside a `$ref`.
    pub(super) siblings: Siblings,
    /// Where a reference may lead.
    pub(super) references: References,
    /// The keyword that gives a part an id.
    id: &'static str,
    has_const: bool,
    has_prefix_items: bool,
}

/// Whether the keywords beside a `$ref` count. They do since 2019-09.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Siblings {
    Count,
    Ignored,
}

/// Whether `#/…` leads into the whole document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum References {
    Followed,
    /// A part with an id of its own may be what is meant.
    Unknown,
}

impl Rules {
    const NEWEST: Self = Self {
        siblings: Siblings::Count,
        references: References::Followed,
        id: "$id",
        has_const: true,
        has_prefix_items: true,
    };

    /// The rules of `schema`. `None`: parts of it follow rules of their own, or ones not known.
    pub(super) fn of(schema: &Value) -> Option<Self> {
        let named = schema.get("$schema").and_then(Value::as_str);
        let rules = named.map_or(Some(Self::NEWEST), named_rules)?;
        let mut open = vec![schema];
        let mut references = References::Followed;
        while let Some(part) = open.pop() {
            match part {
                Value::Array(items) => open.extend(items),
                Value::Object(words) => {
                    let other = words.get("$schema").and_then(Value::as_str);
                    if other.is_some_and(|other| Some(other) != named) {
                        return None;
                    }
                    let has_id = words.get(rules.id).is_some_and(Value::is_string);
                    if has_id && !std::ptr::eq(part, schema) {
                        references = References::Unknown;
                    }
                    open.extend(words.values());
                }
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        Some(Self { references, ..rules })
    }

    /// The keyword, if this draft has it.
    pub(super) fn word<'s>(self, words: &'s Map<String, Value>, key: &str) -> Option<&'s Value> {
        let has = match key {
            "const" => self.has_const,
            "prefixItems" => self.has_prefix_items,
            _ => true,
        };
        words.get(key).filter(|_| has)
    }
}

fn named_rules(uri: &str) -> Option<Rules> {
    let uri = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"))?;
    let old = Rules { siblings: Siblings::Ignored, has_prefix_items: false, ..Rules::NEWEST };
    match uri.trim_end_matches('#') {
        "json-schema.org/draft/2020-12/schema" => Some(Rules::NEWEST),
        "json-schema.org/draft/2019-09/schema" => {
            Some(Rules { has_prefix_items: false, ..Rules::NEWEST })
        }
        "json-schema.org/draft-07/schema" | "json-schema.org/draft-06/schema" => Some(old),
        "json-schema.org/draft-04/schema" => Some(Rules { id: "id", has_const: false, ..old }),
        _ => None,
    }
}
