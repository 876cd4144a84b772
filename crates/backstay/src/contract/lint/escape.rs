//! Whether a closed set has a member for the case that none of the others fits.

use serde_json::Value;

/// Words that say so, alone or in a name such as `other_reason`.
const WORDS: [&str; 24] = [
    "other",
    "others",
    "none",
    "unknown",
    "unspecified",
    "unclear",
    "unsure",
    "undetermined",
    "undefined",
    "uncategorized",
    "uncategorised",
    "unclassified",
    "unrelated",
    "misc",
    "miscellaneous",
    "neither",
    "else",
    "na",
    "null",
    "nothing",
    "general",
    "abstain",
    "ambiguous",
    "undecided",
];

/// The texts that the schema allows, if it is a closed set of two or more.
pub(super) fn closed_set(schema: &Value) -> Option<Vec<&str>> {
    let members: Vec<&Value> = match schema.get("enum").and_then(Value::as_array) {
        Some(members) => members.iter().collect(),
        None => constants(schema)?,
    };
    let texts: Vec<&str> = members.iter().filter_map(|member| member.as_str()).collect();
    (texts.len() > 1).then_some(texts)
}

/// The alternatives of `anyOf` or `oneOf`, if every one of them is a constant.
fn constants(schema: &Value) -> Option<Vec<&Value>> {
    let branches = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    branches.iter().map(|branch| branch.get("const")).collect()
}

/// Whether the set, or what is said beside it, has a member for "none of these".
pub(super) fn has_escape(schema: &Value, set: &[&str]) -> bool {
    let members = schema.get("enum").and_then(Value::as_array);
    let has_null = members.is_some_and(|members| members.contains(&Value::Null));
    has_null
        || schema.get("x-backstay-fallback").is_some()
        || set.iter().any(|text| is_escape(text))
}

fn is_escape(text: &str) -> bool {
    let plain = text.to_lowercase();
    let words = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let is_no_answer = ["n/a", "no_match", "not_applicable", "not_sure", "not_found", "not_stated"]
        .contains(&plain.replace([' ', '-'], "_").as_str());
    is_no_answer || text.is_empty() || words.into_iter().any(|word| WORDS.contains(&word))
}

/// Whether an alternative beside a closed set is a way out of it: null, or free text.
pub(super) fn offers_way_out(branch: &Value) -> bool {
    let is = |name: &str| match branch.get("type") {
        Some(Value::String(only)) => only == name,
        Some(Value::Array(names)) => names.iter().any(|named| named == name),
        _ => false,
    };
    let is_free = branch.get("enum").is_none() && branch.get("const").is_none();
    is("null")
        || branch.get("const") == Some(&Value::Null)
        || is("string") && is_free
        || closed_set(branch).is_some_and(|set| has_escape(branch, &set))
        || branch.get("const").and_then(Value::as_str).is_some_and(is_escape)
}
