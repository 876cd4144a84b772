//! Layer 2: whether a value fits a JSON Schema. The only file that knows the crate `jsonschema`.
//!
//! Draft 2020-12, unless `$schema` names another. Nothing is fetched: a reference that leaves the
//! document is a fault of the schema. Patterns run in linear time, so look-around and
//! back-references are refused. `format` says something and asserts nothing.
//!
//! A schema can make the check of a small value endless (sixty definitions that each refer twice to
//! the next are 2^60 checks), so the values are shown to the crate through [`Metered`] nodes, which
//! count every look on the [`meter`]. When that runs out, the reply is refused as too costly to
//! check.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use backstay_decide::fault::Fault;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::types::JsonType;
use jsonschema::{PatternOptions, ReferencingError, ValidationError, Validator};
use serde_json::{Map, Value};

use super::meter::{self, Spent, length, look};
pub use super::schema_cache::SchemaCache;
pub use super::schema_source::SchemaFault;
use super::schema_source::{self, Measured};
use super::violation::{Step, Violation, What, nearest, shown};
use super::{Layer, MAX_ERRORS, Unfit, clipped, deep};

/// The largest program of one pattern, in bytes, and the largest of its caches.
const PATTERN_BYTES: usize = 256 * 1024;

/// Looks at the value that every check may make; each takes about 10 ns.
const LOOKS: u64 = 1_000_000;

/// More looks for each node of a large value.
const LOOKS_A_NODE: u64 = 64;

/// The most nodes that looks are given for.
const MAX_NODES: u64 = 250_000;

/// Looks while the errors are listed, each of which may leave one error of 400 bytes.
const LISTING_LOOKS: u64 = 100_000;

/// Looks while the first error alone is sought, where listing them all took too many.
const FIRST_LOOKS: u64 = 200_000;

/// Errors that are put into words. More than are told, since they are sorted and doubles go.
const MAX_WORDED: usize = 1_000;

/// A compiled JSON Schema.
pub struct Schema {
    source: Value,
    hash: String,
    patterns: usize,
    compiled: Validator<Metered>,
}

impl Schema {
    /// Compiles `source` on a thread of its own. Takes from 0.3 ms for twenty lines: keep the result,
    /// or use [`SchemaCache`].
    ///
    /// # Errors
    ///
    /// See [`SchemaFault`]; all of them are for whoever wrote the schema to mend.
    pub fn compile(source: &Value) -> Result<Self, SchemaFault> {
        Self::compile_measured(source, &schema_source::measure(source)?)
    }

    pub(super) fn compile_measured(
        source: &Value,
        measured: &Measured,
    ) -> Result<Self, SchemaFault> {
        let compiled = deep(|| compiled(source)).ok_or(SchemaFault::Failed)??;
        let (hash, patterns) = (measured.hash(), measured.patterns);
        Ok(Self { source: source.clone(), hash, patterns, compiled })
    }

    /// The schema as it was given.
    pub fn source(&self) -> &Value {
        &self.source
    }

    /// The first 12 hex digits of the SHA-256 of the schema as canonical JSON: compact, keys
    /// sorted. The same for two schemas that differ in the order of keys only.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Checks `value` against the schema.
    ///
    /// # Errors
    ///
    /// What is wrong with it: structure first, then keys too many, then values.
    pub fn check(&self, value: &Value) -> Result<(), Unfit> {
        let looks = LOOKS + LOOKS_A_NODE * nodes(value).min(MAX_NODES);
        let errors = match self.metered(looks, || self.compiled.is_valid(Metered::root(value))) {
            Ok(true) => return Ok(()),
            Ok(false) => self.errors(value),
            Err(spent) => vec![spent.words().to_owned()],
        };
        Err(Unfit::new(Fault::SchemaError, Layer::Schema, errors))
    }

    /// Lists what is wrong with a value that does not fit. Never empty.
    fn errors(&self, value: &Value) -> Vec<String> {
        let all = self.metered(LISTING_LOOKS, || {
            let mut errors = self.compiled.iter_errors(Metered::root(value));
            let told = errors.by_ref().take(MAX_WORDED);
            let told = told.flat_map(|error| self.violations(&error)).collect::<Vec<_>>();
            (told, errors.count())
        });
        let Ok((mut told, untold)) = all else { return self.first_error(value) };
        told.sort_by_key(Violation::rank);
        let mut seen = HashSet::new();
        let mut words: Vec<String> = told.iter().map(Violation::words).collect();
        words.retain(|line| seen.insert(line.clone()));
        if words.len() + untold > MAX_ERRORS {
            let kept = words.len().min(MAX_ERRORS - 1);
            let rest = words.len() - kept + untold;
            words.truncate(kept);
            words.push(format!("and {rest} more errors"));
        }
        words
    }

    /// Where listing all errors costs too much: the first, and that there are more.
    fn first_error(&self, value: &Value) -> Vec<String> {
        let first = self.metered(FIRST_LOOKS, || {
            let error = self.compiled.validate(Metered::root(value)).err();
            error.map(|error| self.violations(&error)).unwrap_or_default()
        });
        let mut words: Vec<String> =
            first.unwrap_or_default().iter().map(Violation::words).collect();
        words.truncate(MAX_ERRORS - 1);
        words.push("does not fit the schema in too many places to list".to_owned());
        words
    }

    /// Puts one error into our terms. Several where the schema's alternatives hide them.
    fn violations(&self, error: &ValidationError<'_>) -> Vec<Violation> {
        let path = steps(error.instance_path());
        let one = |what| vec![Violation { path: path.clone(), what }];
        let unexpected = |keys: &[String]| {
            let keys = keys.iter().take(MAX_ERRORS + 1);
            keys.map(|key| Violation { path: path.clone(), what: What::Unexpected(key.clone()) })
                .collect()
        };
        let inner = |context: &[Vec<ValidationError<'_>>]| {
            let worded = |errors: &Vec<ValidationError<'_>>| {
                errors.iter().take(MAX_ERRORS).flat_map(|error| self.violations(error)).collect()
            };
            nearest(&path, context.iter().map(worded).collect())
        };
        match error.kind() {
            Kind::Required { property } => one(What::Missing(text(property))),
            Kind::Type { kind } => one(What::Type(type_names(kind))),
            Kind::AdditionalProperties { unexpected: keys }
            | Kind::UnevaluatedProperties { unexpected: keys } => unexpected(keys),
            Kind::Enum { .. } => {
                one(What::Choice(format!("{} not in enum", shown(error.instance()))))
            }
            Kind::Constant { expected_value } => {
                one(What::Choice(format!("should be {}", shown(expected_value))))
            }
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => inner(context),
            Kind::PropertyNames { error: inner } => {
                let name = shown(inner.instance());
                one(What::Says(format!("has a key that is not allowed: {name}")))
            }
            Kind::Minimum { limit } | Kind::Maximum { limit } => {
                one(What::Says(self.outside(error.schema_path(), limit)))
            }
            Kind::FalseSchema if is_about_keys(error.schema_path()) => {
                one(What::Says("has keys, none are allowed".to_owned()))
            }
            other => one(What::Says(plain(other))),
        }
    }

    /// `outside 1..4` where the schema has both limits side by side, else the one that is broken.
    fn outside(&self, broken: &Location, limit: &Value) -> String {
        let (around, keyword) = broken.as_str().rsplit_once('/').unwrap_or_default();
        let beside = |key| self.source.pointer(around).and_then(|schema| schema.get(key));
        match (beside("minimum"), beside("maximum")) {
            (Some(low), Some(high)) if low == limit || high == limit => {
                format!("outside {low}..{high}")
            }
            _ if keyword == "minimum" => format!("below {limit}"),
            _ => format!("above {limit}"),
        }
    }

    fn metered<T>(&self, looks: u64, check: impl FnOnce() -> T) -> Result<T, Spent> {
        let patterns = u64::try_from(self.patterns).unwrap_or(u64::MAX);
        meter::run(looks, 1 + patterns.saturating_mul(4), check)
    }
}

/// Prints the hash: schemas are long.
impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("hash", &self.hash).finish_non_exhaustive()
    }
}

fn compiled(source: &Value) -> Result<Validator<Metered>, SchemaFault> {
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    let options = jsonschema::options_for::<Metered>().offline().with_pattern_options(patterns);
    options.should_validate_formats(false).build(source).map_err(|error| fault(&error))
}

fn fault(error: &ValidationError<'_>) -> SchemaFault {
    let Kind::Referencing(reference) = error.kind() else {
        let pointer = clipped(error.instance_path().as_str(), 120);
        let problem = match error.kind() {
            Kind::Format { format } if format == "regex" => format!(
                "{} is no pattern that can be used; it must run in linear time, without look-around and back-references, and stay small",
                shown(error.instance())
            ),
            _ => clipped(&error.to_string(), 200),
        };
        return SchemaFault::Invalid { pointer, problem };
    };
    match reference {
        ReferencingError::Unretrievable { uri, .. } => {
            SchemaFault::ForeignReference { reference: clipped(uri, 200) }
        }
        ReferencingError::UnknownSpecification { specification } => {
            SchemaFault::UnknownDraft { uri: clipped(specification, 200) }
        }
        other => SchemaFault::BrokenReference { problem: clipped(&other.to_string(), 200) },
    }
}

/// The rest of a sentence that begins with the value's name, for what needs no more than the kind.
fn plain(kind: &Kind) -> String {
    match kind {
        Kind::MinLength { limit } => format!("shorter than {limit} chars"),
        Kind::MaxLength { limit } => format!("longer than {limit} chars"),
        Kind::MinItems { limit } => format!("has fewer than {limit} items"),
        Kind::MaxItems { limit } => format!("has more than {limit} items"),
        Kind::AdditionalItems { limit } => format!("has more than {limit} items"),
        Kind::MinProperties { limit } => format!("has fewer than {limit} keys"),
        Kind::MaxProperties { limit } => format!("has more than {limit} keys"),
        Kind::ExclusiveMinimum { limit } => format!("not above {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("not below {limit}"),
        Kind::MultipleOf { multiple_of } => format!("is not a multiple of {multiple_of}"),
        Kind::Pattern { pattern } => {
            format!("does not match the pattern {}", clipped(pattern, 100))
        }
        Kind::UniqueItems => "has the same item twice".to_owned(),
        Kind::Contains => "has too few or too many of the items it must contain".to_owned(),
        Kind::UnevaluatedItems { .. } => "has items that are not allowed".to_owned(),
        Kind::FalseSchema => "is not allowed".to_owned(),
        Kind::Not { .. } => "is of a form that is ruled out".to_owned(),
        Kind::OneOfMultipleValid { .. } => {
            "fits more than one alternative, must fit one".to_owned()
        }
        // The instance is in the crate's own sentence for some of the rest, so only the kind is
        // told.
        _ => "does not fit the schema".to_owned(),
    }
}

/// Whether a `false` in the schema rules out every key of the value, and not the value.
fn is_about_keys(path: &Location) -> bool {
    let keyword = path.as_str().rsplit('/').next();
    matches!(keyword, Some("additionalProperties" | "propertyNames"))
}

fn type_names(kind: &TypeKind) -> Vec<&'static str> {
    match kind {
        TypeKind::Single(one) => vec![type_name(*one)],
        TypeKind::Multiple(several) => several.iter().map(type_name).collect(),
    }
}

fn type_name(one: JsonType) -> &'static str {
    match one {
        JsonType::Null => "null",
        JsonType::Boolean => "bool",
        JsonType::Integer => "int",
        JsonType::Number => "number",
        JsonType::String => "str",
        JsonType::Array => "array",
        JsonType::Object => "object",
    }
}

fn steps(path: &Location) -> Vec<Step> {
    let step = |segment| match segment {
        LocationSegment::Property(key) => Step::Key(Cow::into_owned(key)),
        LocationSegment::Index(index) => Step::Index(index),
    };
    path.into_iter().map(step).collect()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Values in `value`, itself included. The parser bounds the depth.
fn nodes(value: &Value) -> u64 {
    let inside: u64 = match value {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(members) => members.values().map(nodes).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    };
    inside + 1
}

// --- the values as the crate sees them ---

/// JSON values that count how often they are looked at.
struct Metered;

impl Metered {
    fn root(value: &Value) -> Seen<'_> {
        Seen(value)
    }
}

#[derive(Clone, Copy)]
struct Seen<'a>(&'a Value);

#[derive(Clone, Copy)]
struct SeenMembers<'a>(&'a Map<String, Value>);

#[derive(Clone, Copy)]
struct SeenItems<'a>(&'a [Value]);

impl Json for Metered {
    type Node<'a> = Seen<'a>;
    type PreparedKey = String;
    type StringBuffer = ();

    const KEYS_PER_LOOKUP: usize = 2;
    const ACYCLIC: bool = true;

    fn prepare_key(key: &str) -> String {
        key.to_owned()
    }

    fn with_string_node<T>((): &mut (), string: &str, f: impl FnOnce(Seen<'_>) -> T) -> T {
        f(Seen(&Value::String(string.to_owned())))
    }
}

impl<'a> Node<'a, Metered> for Seen<'a> {
    type Object = SeenMembers<'a>;
    type Array = SeenItems<'a>;
    type Number = &'a serde_json::Number;

    fn as_object(&self) -> Option<SeenMembers<'a>> {
        look(1);
        self.0.as_object().map(SeenMembers)
    }

    fn as_array(&self) -> Option<SeenItems<'a>> {
        look(1);
        self.0.as_array().map(|items| SeenItems(items))
    }

    fn as_string(&self) -> Option<Cow<'a, str>> {
        let text = self.0.as_str();
        look(text.map_or(1, length));
        text.map(Cow::Borrowed)
    }

    fn as_number(&self) -> Option<&'a serde_json::Number> {
        look(1);
        match self.0 {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    fn as_boolean(&self) -> Option<bool> {
        look(1);
        self.0.as_bool()
    }

    fn is_null(&self) -> bool {
        look(1);
        self.0.is_null()
    }

    fn json_type(&self) -> JsonType {
        look(1);
        match self.0 {
            Value::Null => JsonType::Null,
            Value::Bool(_) => JsonType::Boolean,
            Value::Number(_) => JsonType::Number,
            Value::String(_) => JsonType::String,
            Value::Array(_) => JsonType::Array,
            Value::Object(_) => JsonType::Object,
        }
    }

    fn to_value(&self) -> Cow<'a, Value> {
        look(1);
        Cow::Borrowed(self.0)
    }

    fn identity(&self) -> Option<NodeIdentity> {
        look(1);
        Some(NodeIdentity::new(std::ptr::from_ref(self.0).addr()))
    }
}

impl<'a> Object<'a, Metered> for SeenMembers<'a> {
    type Node = Seen<'a>;
    type MemberName = &'a str;
    type MembersIter = Members<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, key: &String) -> Option<Seen<'a>> {
        look(1);
        self.0.get(key).map(Seen)
    }

    fn members(&self) -> Members<'a> {
        Members(self.0.iter())
    }
}

struct Members<'a>(serde_json::map::Iter<'a>);

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Seen<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let (key, value) = self.0.next()?;
        look(length(key).saturating_mul(meter::a_key()));
        Some((key, Seen(value)))
    }
}

impl<'a> Array<'a, Metered> for SeenItems<'a> {
    type Node = Seen<'a>;
    type ElementsIter = Items<'a>;

    fn len(&self) -> usize {
        self.0.len()
    }

    fn elements(&self) -> Items<'a> {
        Items(self.0.iter())
    }
}

struct Items<'a>(std::slice::Iter<'a, Value>);

impl<'a> Iterator for Items<'a> {
    type Item = Seen<'a>;

    fn next(&mut self) -> Option<Seen<'a>> {
        look(1);
        self.0.next().map(Seen)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn errors(schema: &Value, value: &Value) -> Vec<String> {
        let schema = Schema::compile(schema).unwrap();
        schema.check(value).err().map(|unfit| unfit.errors).unwrap_or_default()
    }

    fn fault(schema: &Value) -> SchemaFault {
        Schema::compile(schema).unwrap_err()
    }

    /// Definitions that each refer twice to the next, under `keyword`: 2^`count` paths.
    fn doubling(keyword: &str, count: usize, last: &Value) -> Value {
        let mut defs = Map::new();
        for n in 0..count {
            let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
            defs.insert(format!("d{n}"), json!({ keyword: [next.clone(), next] }));
        }
        defs.insert(format!("d{count}"), last.clone());
        json!({ "$defs": defs, "$ref": "#/$defs/d0" })
    }

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!({"z": 1}), |inner, _| json!({ "a": inner }))
    }

    #[test]
    fn every_kind_of_error_has_its_sentence() {
        let rows = [
            (json!({"required": ["a"]}), json!({}), "missing 'a'"),
            (
                json!({"additionalProperties": false}),
                json!({"b": 1}),
                "top level has keys, none are allowed",
            ),
            (
                json!({"properties": {"a": {}}, "additionalProperties": false}),
                json!({"b": 1}),
                "unexpected 'b'",
            ),
            (json!({"unevaluatedProperties": false}), json!({"b": 1}), "unexpected 'b'"),
            (json!({"type": "object"}), json!([1]), "top level is not an object"),
            (json!({"type": "array"}), json!(1), "top level should be array"),
            (json!({"minimum": 3}), json!(1), "top level below 3"),
        ];
        for (schema, value, expected) in rows {
            assert_eq!(errors(&schema, &value), [expected], "{schema}");
        }
        let of_a = [
            (json!({"type": "integer"}), json!("2"), "'a' should be int"),
            (json!({"type": "integer"}), json!(true), "'a' should be int"),
            (json!({"type": "integer"}), json!(2.5), "'a' should be int"),
            (json!({"type": "number"}), json!("2"), "'a' should be number"),
            (json!({"type": "string"}), json!(2), "'a' should be str"),
            (json!({"type": "boolean"}), json!("true"), "'a' should be bool"),
            (json!({"type": "object"}), json!([]), "'a' should be object"),
            (json!({"type": ["string", "null"]}), json!(1), "'a' should be null or str"),
            (json!({"enum": ["x", 2]}), json!("payments"), "a 'payments' not in enum"),
            (json!({"enum": ["x", 2]}), json!(3), "a 3 not in enum"),
            (json!({"const": "x"}), json!("y"), "a should be 'x'"),
            (json!({"minimum": 1, "maximum": 4}), json!(0), "a outside 1..4"),
            (json!({"minimum": 1, "maximum": 4}), json!(5), "a outside 1..4"),
            (json!({"maximum": 4}), json!(5), "a above 4"),
            (json!({"minimum": 1.5}), json!(1), "a below 1.5"),
            (json!({"exclusiveMinimum": 0}), json!(0), "a not above 0"),
            (json!({"exclusiveMaximum": 9}), json!(9), "a not below 9"),
            (json!({"multipleOf": 5}), json!(7), "a is not a multiple of 5"),
            (json!({"maxLength": 3}), json!("éééé"), "a longer than 3 chars"),
            (json!({"minLength": 1}), json!(""), "a shorter than 1 chars"),
            (json!({"pattern": "^x"}), json!("y"), "a does not match the pattern ^x"),
            (json!({"minItems": 2}), json!([1]), "a has fewer than 2 items"),
            (json!({"maxItems": 1}), json!([1, 2]), "a has more than 1 items"),
            (json!({"uniqueItems": true}), json!([1, 1.0]), "a has the same item twice"),
            (json!({"minProperties": 1}), json!({}), "a has fewer than 1 keys"),
            (json!({"not": {"type": "null"}}), json!(null), "a is of a form that is ruled out"),
            (json!(false), json!(1), "a is not allowed"),
            (
                json!({"propertyNames": {"maxLength": 1}}),
                json!({"bb": 1}),
                "a has a key that is not allowed: 'bb'",
            ),
        ];
        for (schema, value, expected) in of_a {
            let schema = json!({ "properties": { "a": schema } });
            assert_eq!(errors(&schema, &json!({ "a": value })), [expected], "{schema}");
        }
    }

    #[test]
    fn a_whole_number_written_with_a_point_is_an_integer_and_a_format_asserts_nothing() {
        let schema = json!({"properties": {"a": {"type": "integer"}, "b": {"format": "email"}}});
        assert_eq!(errors(&schema, &json!({"a": 2.0, "b": "no address"})), [""; 0]);
        let older =
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "format": "email"});
        assert_eq!(errors(&older, &json!("no address")), [""; 0]);
    }

    #[test]
    fn a_deeper_value_gets_its_pointer_in_front() {
        let item = json!({
            "type": "object",
            "properties": {"sku": {}, "qty": {"type": "integer", "minimum": 1, "maximum": 9}},
            "required": ["sku"],
            "additionalProperties": false
        });
        let schema = json!({
            "properties": {"items": {"items": {"$ref": "#/$defs/item"}}, "a/b": {"type": "string"}},
            "$defs": {"item": item}
        });
        let value = json!({
            "items": [{"qty": "1"}, {"sku": 1, "qty": 10, "x": 1}, 7],
            "a/b": 1
        });
        assert_eq!(
            errors(&schema, &value),
            [
                "/items/0/qty: 'qty' should be int",
                "/items/0: missing 'sku'",
                "/items/2: item 2 should be object",
                "'a/b' should be str",
                "/items/1: unexpected 'x'",
                "/items/1/qty: qty outside 1..9",
            ]
        );
    }

    #[test]
    fn alternatives_tell_the_one_that_was_meant() {
        let one = |n: &str, key: &str| json!({"properties": {"t": {"const": n}, key: {"type": "integer"}}, "required": ["t", key]});
        let nullable = json!({"anyOf": [{"type": "integer"}, {"type": "null"}]});
        let rows = [
            (nullable, json!("x"), vec!["'a' should be int or null"]),
            (
                json!({"anyOf": [one("x", "p"), {"type": "null"}]}),
                json!({"t": "x"}),
                vec!["/a: missing 'p'"],
            ),
            (
                json!({"oneOf": [one("x", "p"), one("y", "q")]}),
                json!({"t": "y", "q": "1"}),
                vec!["/a/q: 'q' should be int"],
            ),
            (
                json!({"anyOf": [{"required": ["p"]}, {"required": ["q", "r"]}]}),
                json!({}),
                vec!["a fits none of 2 alternatives; nearest: /a: missing 'p'"],
            ),
            (
                json!({"oneOf": [{"minimum": 1}, {"maximum": 9}]}),
                json!(5),
                vec!["a fits more than one alternative, must fit one"],
            ),
        ];
        for (schema, value, expected) in rows {
            let schema = json!({ "properties": { "a": schema } });
            assert_eq!(errors(&schema, &json!({ "a": value })), expected, "{schema}");
        }
    }

    #[test]
    fn the_same_errors_come_in_the_same_order_every_time() {
        let keys: Vec<String> = (0..12).map(|n| format!("k{}", n * 7 % 12)).collect();
        let schema = json!({
            "properties": keys.iter().map(|k| (k.clone(), json!({"type": "integer"}))).collect::<Map<_, _>>(),
            "required": ["z", "y", "x"],
        });
        let value: Value =
            keys.iter().rev().map(|k| (k.clone(), json!("no"))).collect::<Map<_, _>>().into();
        let first = errors(&schema, &value);
        assert_eq!(first.len(), 15);
        for _ in 0..20 {
            assert_eq!(errors(&schema, &value), first);
        }
    }

    #[test]
    fn a_thousand_errors_are_told_as_twenty_and_a_count() {
        let told = errors(&json!({"items": {"type": "string"}}), &json!(vec![1; 1_500]));
        assert_eq!(told.len(), MAX_ERRORS);
        assert_eq!(told[MAX_ERRORS - 1], "and 1481 more errors");
        let closed = json!({"properties": {"a": {}}, "additionalProperties": false});
        let one = errors(&closed, &json!({"k".repeat(100_000): 1}));
        assert!(one[0].len() <= 300 && one[0].ends_with("…'"), "{one:?}");
    }

    #[test]
    fn a_reference_that_leaves_the_document_is_named_and_not_followed() {
        for reference in ["http://127.0.0.1:9/x", "file:///etc/passwd", "other.json", "urn:x:y"] {
            let told = fault(&json!({"properties": {"a": {"$ref": reference}}}));
            let SchemaFault::ForeignReference { reference: told } = told else { panic!("{told}") };
            assert!(told.contains(reference), "{told}");
        }
        assert!(matches!(
            fault(&json!({"$ref": "#/$defs/x"})),
            SchemaFault::BrokenReference { .. }
        ));
        assert!(matches!(
            fault(&json!({"$schema": "http://x/y"})),
            SchemaFault::UnknownDraft { .. }
        ));
        assert!(
            Schema::compile(&json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}))
                .is_ok()
        );
    }

    #[test]
    fn a_schema_that_is_none_is_refused_with_the_place() {
        let told = fault(&json!({"properties": {"a": {"minimum": "x"}}}));
        assert!(
            matches!(&told, SchemaFault::Invalid { pointer, .. } if pointer == "/properties/a/minimum")
        );
        for schema in [json!(1), json!("x"), json!(null), json!([]), json!({"type": "strin"})] {
            assert!(matches!(fault(&schema), SchemaFault::Invalid { .. }), "{schema}");
        }
    }

    #[test]
    fn patterns_run_in_linear_time_or_not_at_all() {
        let long = json!("a".repeat(200_000) + "!");
        assert_eq!(errors(&json!({"pattern": "(a+)+$"}), &long).len(), 1);
        for pattern in ["(?=a)b", "(a)\\1", "((a{1,100}){1,100}){1,100}", "("] {
            let told = fault(&json!({ "pattern": pattern }));
            assert!(matches!(told, SchemaFault::Invalid { .. }), "{pattern}: {told}");
        }
        let many: Map<String, Value> = (0..65).map(|n| (format!("^a{n}"), json!(true))).collect();
        let told = fault(&json!({ "patternProperties": many }));
        assert!(matches!(told, SchemaFault::TooManyPatterns { count: 65, .. }));
    }

    #[test]
    fn references_in_a_circle_end() {
        for schema in [
            json!({"$ref": "#"}),
            json!({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}),
            json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}),
            json!({"$dynamicAnchor": "x", "allOf": [{"$dynamicRef": "#x"}, {"$dynamicRef": "#x"}]}),
        ] {
            errors(&schema, &json!({"a": 1}));
        }
        let tree = json!({"properties": {"a": {"$ref": "#"}, "z": {"type": "string"}}});
        assert_eq!(errors(&tree, &nested(100)).len(), 1);
    }

    #[test]
    fn a_check_that_doubles_with_every_step_is_cut_off() {
        let costly = ["too costly to check against its schema"];
        let last = json!({"type": "integer"});
        for keyword in ["allOf", "anyOf", "oneOf"] {
            assert!(!errors(&doubling(keyword, 60, &last), &json!("x")).is_empty(), "{keyword}");
        }
        assert_eq!(errors(&doubling("allOf", 60, &last), &json!(1)), costly);
        assert_eq!(errors(&doubling("allOf", 60, &json!(true)), &json!({"a": 1})), costly);
        let twice = json!([
            {"properties": {"a": {"$ref": "#"}, "z": {"type": "string"}}},
            {"properties": {"a": {"$ref": "#"}, "z": {"type": "string"}}, "minProperties": 1}
        ]);
        for keyword in ["allOf", "anyOf"] {
            let told = errors(&json!({ keyword: twice }), &nested(100));
            let last = told.last().map(String::as_str);
            assert_eq!(
                last,
                Some("does not fit the schema in too many places to list"),
                "{keyword}"
            );
        }
        // After a check was cut off the next one is whole again.
        assert_eq!(errors(&json!({"required": ["a"]}), &json!({})), ["missing 'a'"]);
    }

    #[test]
    fn a_check_that_goes_too_deep_is_cut_off_before_the_stack_ends() {
        // Two hundred references for each level of the value.
        let mut defs = Map::new();
        for n in 0..200 {
            let next = json!({ "$ref": format!("#/$defs/d{}", n + 1) });
            defs.insert(format!("d{n}"), json!({ "allOf": [next] }));
        }
        defs.insert("d200".to_owned(), json!({ "properties": { "a": { "$ref": "#/$defs/d0" } } }));
        let schema = json!({ "$defs": defs, "$ref": "#/$defs/d0" });
        assert_eq!(errors(&schema, &nested(3)), [""; 0]);
        assert_eq!(errors(&schema, &nested(120)), ["too costly to check against its schema"]);
        let mut defs = Map::new();
        for n in 0..450 {
            defs.insert(
                format!("d{n}"),
                json!({ "allOf": [{ "$ref": format!("#/$defs/d{}", n + 1) }] }),
            );
        }
        defs.insert("d450".to_owned(), json!({"type": "integer"}));
        let chain = json!({ "$defs": defs, "$ref": "#/$defs/d0" });
        assert_eq!(errors(&chain, &json!("x")), ["top level should be int"]);
    }

    #[test]
    fn a_large_list_is_checked_whole_and_told_short() {
        let schema = json!({"items": {"type": "integer"}, "uniqueItems": true});
        let value: Value = (0..100_000).collect::<Vec<u32>>().into();
        assert_eq!(errors(&schema, &value), [""; 0]);
        let told = errors(&json!({"items": {"type": "string"}}), &value);
        assert_eq!(
            told,
            ["/0: item 0 should be str", "does not fit the schema in too many places to list"]
        );
    }
}
