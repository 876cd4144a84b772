//! How long the longest reply is that a schema allows, as compact JSON.

use std::collections::{BTreeMap, HashMap};

use backstay_wire::pointer;
use serde_json::Value;

use super::walk::{is_object, list, target};

/// Characters that a token of JSON has, on the short side: words and marks are short, and scripts
/// other than Latin have fewer still.
pub const CHARS_A_TOKEN: u64 = 3;

/// The deepest nesting that is followed.
const MAX_DEPTH: usize = 128;

/// The most reasons that are told.
const MAX_REASONS: usize = 20;

/// The digits of a number without bounds: those of `u64`, a sign, a fraction.
const NUMBER_WIDTH: u64 = 24;

/// Texts of a format that have a longest form.
const FORMATS: [(&str, u64); 8] = [
    ("date-time", 35),
    ("date", 10),
    ("time", 24),
    ("uuid", 36),
    ("ipv4", 15),
    ("ipv6", 45),
    ("email", 254),
    ("hostname", 253),
];

/// How long a reply can get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Longest {
    /// The characters of the longest one, without white space between its tokens.
    Chars(u64),
    /// There is none, for these reasons, in the order of the schema. Never empty; at most 20.
    Unbounded(Vec<Reason>),
}

/// Why there is no longest value at one place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// Where, as a JSON pointer into the schema.
    pub pointer: String,
    /// What is missing.
    pub lacks: Lacks,
}

/// What is missing for a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lacks {
    /// A text has no `maxLength`.
    MaxLength,
    /// A list has no `maxItems`.
    MaxItems,
    /// A map has no `maxProperties`, or its keys have no longest.
    MaxProperties,
    /// It refers to itself.
    End,
    /// Nothing is said about the value.
    Type,
}

impl Reason {
    /// It in words: "`/properties/evidence` has no `maxLength`".
    pub fn words(&self) -> String {
        let place = if self.pointer.is_empty() { "/" } else { &self.pointer };
        let lacks = match self.lacks {
            Lacks::MaxLength => "has no `maxLength`",
            Lacks::MaxItems => "has no `maxItems`",
            Lacks::MaxProperties => "is a map without bounds",
            Lacks::End => "refers to itself",
            Lacks::Type => "has no `type`",
        };
        format!("`{}` {lacks}", super::clipped(place))
    }
}

/// The longest reply that `schema` allows. An estimate from above: escapes inside texts and white
/// space are not counted, keys that the schema does not name neither.
pub fn longest(schema: &Value) -> Longest {
    let mut measure = Measure { root: schema, known: HashMap::new(), reasons: BTreeMap::new() };
    if let Some(chars) = measure.value(schema, "", 0) {
        return Longest::Chars(chars);
    }
    let mut reasons: Vec<(usize, Reason)> =
        measure.reasons.into_iter().map(|(reason, at)| (at, reason)).collect();
    reasons.sort();
    Longest::Unbounded(reasons.into_iter().map(|(_, reason)| reason).collect())
}

struct Measure<'s> {
    root: &'s Value,
    /// By pointer.
    known: HashMap<String, Progress>,
    /// With the order in which they were found.
    reasons: BTreeMap<Reason, usize>,
}

#[derive(Clone, Copy)]
enum Progress {
    /// Under way: who comes here again has been led in a circle.
    Begun,
    Done(Option<u64>),
}

impl Measure<'_> {
    /// The longest value at a place; `None`: there is none, and a reason was noted.
    fn value(&mut self, schema: &Value, at: &str, depth: usize) -> Option<u64> {
        match self.known.get(at) {
            Some(Progress::Done(chars)) => return *chars,
            Some(Progress::Begun) => return self.lacking(at, Lacks::End),
            None if depth > MAX_DEPTH => return self.lacking(at, Lacks::End),
            None => {}
        }
        self.known.insert(at.to_owned(), Progress::Begun);
        let chars = self.measured(schema, at, depth);
        self.known.insert(at.to_owned(), Progress::Done(chars));
        chars
    }

    fn measured(&mut self, schema: &Value, at: &str, depth: usize) -> Option<u64> {
        if *schema == Value::Bool(false) {
            return Some(0);
        }
        if let Some(constant) = schema.get("const") {
            return Some(written(constant));
        }
        if let Some(members) = schema.get("enum").and_then(Value::as_array) {
            return Some(members.iter().map(written).max().unwrap_or(0));
        }
        let mut bounds = Vec::new();
        let types = types(schema);
        if !types.is_empty() {
            bounds.push(self.widest(&types, schema, at, depth));
        }
        if let Some((pointer, there)) = target(self.root, schema) {
            bounds.push(self.value(there, &pointer, depth + 1));
        }
        for keyword in ["anyOf", "oneOf"] {
            let branches = self.branches(schema, at, keyword, depth);
            if !branches.is_empty() {
                let widest = |most: u64, one: Option<u64>| one.map(|one| most.max(one));
                bounds.push(branches.into_iter().try_fold(0, widest));
            }
        }
        bounds.extend(self.branches(schema, at, "allOf", depth));
        let has_object = list(schema, "allOf").iter().any(is_object) || is_object(schema);
        match bounds.as_slice() {
            [] => self.lacking(at, Lacks::Type),
            // Parts of one object each add their keys.
            all if has_object => all.iter().copied().try_fold(0, |sum, one| add(Some(sum), one)),
            // All of them hold, so the tightest does.
            all => all.iter().flatten().min().copied(),
        }
    }

    /// The bound of each alternative.
    fn branches(
        &mut self,
        schema: &Value,
        at: &str,
        keyword: &str,
        depth: usize,
    ) -> Vec<Option<u64>> {
        let branches = list(schema, keyword).iter().enumerate();
        branches
            .map(|(index, one)| self.value(one, &format!("{at}/{keyword}/{index}"), depth + 1))
            .collect()
    }

    /// The longest value of any of these types.
    fn widest(&mut self, types: &[&str], schema: &Value, at: &str, depth: usize) -> Option<u64> {
        types.iter().try_fold(0, |most: u64, name| {
            let one = match *name {
                "null" => Some(4),
                "boolean" => Some(5),
                "integer" | "number" => Some(number(schema)),
                "string" => self.text(schema, at),
                "array" => self.array(schema, at, depth),
                "object" => self.object(schema, at, depth),
                _ => Some(0),
            };
            one.map(|one| most.max(one))
        })
    }

    fn text(&mut self, schema: &Value, at: &str) -> Option<u64> {
        let format = schema.get("format").and_then(Value::as_str);
        let by_format =
            FORMATS.iter().find(|(name, _)| Some(*name) == format).map(|(_, most)| *most);
        let most = schema.get("maxLength").and_then(Value::as_u64).or(by_format);
        most.map_or_else(|| self.lacking(at, Lacks::MaxLength), |most| Some(most.saturating_add(2)))
    }

    fn array(&mut self, schema: &Value, at: &str, depth: usize) -> Option<u64> {
        let first = list(schema, "prefixItems");
        let mut sum = Some(2_u64);
        for (index, item) in first.iter().enumerate() {
            let chars = self.value(item, &format!("{at}/prefixItems/{index}"), depth + 1);
            sum = add(sum, chars.map(|chars| chars.saturating_add(1)));
        }
        let none = Value::Bool(true);
        let items = schema.get("items").unwrap_or(&none);
        if *items == Value::Bool(false) {
            return sum;
        }
        let one = self.value(items, &format!("{at}/items"), depth + 1);
        let distinct = items.get("enum").and_then(Value::as_array).map(Vec::len);
        let is_set = schema.get("uniqueItems") == Some(&Value::Bool(true));
        let most = schema.get("maxItems").and_then(Value::as_u64);
        let most = match (most, distinct.filter(|_| is_set)) {
            (Some(most), Some(distinct)) => most.min(distinct as u64),
            (Some(most), None) => most,
            (None, Some(distinct)) => distinct as u64,
            (None, None) => return self.lacking(at, Lacks::MaxItems),
        };
        if most == 0 {
            return Some(2);
        }
        let rest = most.saturating_sub(first.len() as u64);
        add(sum, one.map(|one| one.saturating_add(1).saturating_mul(rest)))
    }

    fn object(&mut self, schema: &Value, at: &str, depth: usize) -> Option<u64> {
        let mut sum = Some(2_u64);
        for (key, member) in
            schema.get("properties").and_then(Value::as_object).into_iter().flatten()
        {
            if *member == Value::Bool(false) {
                continue;
            }
            let chars =
                self.value(member, &format!("{at}/properties/{}", pointer::escape(key)), depth + 1);
            // The key with its quotes, a colon, a comma.
            let named = key.chars().count() as u64 + 4;
            sum = add(sum, chars.map(|chars| chars.saturating_add(named)));
        }
        match schema.get("additionalProperties") {
            Some(rest @ Value::Object(said)) if !said.is_empty() => {
                add(sum, self.map(schema, rest, at, depth))
            }
            _ => sum,
        }
    }

    /// The members of a map.
    fn map(&mut self, schema: &Value, rest: &Value, at: &str, depth: usize) -> Option<u64> {
        let one = self.value(rest, &format!("{at}/additionalProperties"), depth + 1);
        let most = schema.get("maxProperties").and_then(Value::as_u64);
        let key = schema.get("propertyNames").and_then(|names| {
            let listed = names.get("enum").and_then(Value::as_array);
            let longest = listed.and_then(|names| names.iter().map(written).max());
            longest.or_else(|| Some(names.get("maxLength")?.as_u64()?.saturating_add(2)))
        });
        match (most, key) {
            (Some(most), Some(key)) => {
                one.map(|one| one.saturating_add(key).saturating_add(2).saturating_mul(most))
            }
            _ => self.lacking(at, Lacks::MaxProperties),
        }
    }

    fn lacking(&mut self, at: &str, lacks: Lacks) -> Option<u64> {
        let order = self.reasons.len();
        if order < MAX_REASONS {
            let reason = Reason { pointer: at.to_owned(), lacks };
            self.reasons.entry(reason).or_insert(order);
        }
        None
    }
}

/// The types that a schema names, or whose keywords it uses. Empty: it says nothing.
fn types(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ if is_object(schema) => vec!["object"],
        _ if schema.get("items").is_some() => vec!["array"],
        _ if schema.get("maxLength").is_some() => vec!["string"],
        _ => Vec::new(),
    }
}

fn add(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    Some(one?.saturating_add(other?))
}

/// The characters of a value as compact JSON.
fn written(value: &Value) -> u64 {
    value.to_string().chars().count() as u64
}

/// The digits of the widest whole number between the bounds.
fn number(schema: &Value) -> u64 {
    let width = |keys: [&str; 2]| {
        let bound = keys.iter().find_map(|key| schema.get(key)?.as_f64())?;
        Some(format!("{:.0}", bound.trunc()).len() as u64)
    };
    let low = width(["minimum", "exclusiveMinimum"]);
    let high = width(["maximum", "exclusiveMaximum"]);
    // A fraction may go on for as long as a float has digits.
    let fraction = if schema.get("type").is_some_and(|name| name == "integer") { 0 } else { 18 };
    match (low, high) {
        (Some(low), Some(high)) => low.max(high).saturating_add(fraction).min(NUMBER_WIDTH),
        _ => NUMBER_WIDTH,
    }
}
