//! Layer 2: whether a value fits a JSON Schema. The only file that knows the crate `jsonschema`.
//!
//! Draft 2020-12, unless `$schema` names another. Nothing is fetched: a reference that leaves the
//! document is a fault of the schema. Patterns run in linear time, so look-around and
//! back-references are refused. `format` says something and asserts nothing.
//!
//! A schema can make the check of a small value endless (sixty definitions that each refer twice to
//! the next are 2^60 checks), so the values are shown to the crate through [`Metered`] nodes, which
//! count every look. When the count or the stack runs out, the check is unwound and the reply is
//! refused as too costly to check. A program built to abort on panics aborts instead.

use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use backstay_decide::fault::Fault;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::json::{Array, Json, Node, NodeIdentity, Object};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::types::JsonType;
use jsonschema::{PatternOptions, ReferencingError, ValidationError, Validator};
use serde_json::{Map, Value};

pub use super::schema_cache::SchemaCache;
pub use super::schema_source::SchemaFault;
use super::schema_source::{self, Measured};
use super::violation::{Step, Violation, What, nearest, shown};
use super::{Layer, MAX_ERRORS, Unfit, clipped};

/// The largest program of one pattern, in bytes, and the largest of its caches.
const PATTERN_BYTES: usize = 256 * 1024;

/// The stack of the thread that compiles. 32 MiB: four times what the deepest schema that is let
/// through needs in a debug build. Pages not used are not taken.
const COMPILE_STACK: usize = 32 * 1024 * 1024;

/// The most stack that one check may use, out of the 2 MiB of a worker thread.
const CHECK_STACK: usize = 1024 * 1024;

/// Looks at the value that every check may make; each takes about 10 ns.
const LOOKS: u64 = 2_000_000;

/// More looks for each node of a large value.
const LOOKS_A_NODE: u64 = 64;

/// The most nodes that looks are given for.
const MAX_NODES: u64 = 250_000;

/// Looks while the errors are listed, each of which may leave one error of 400 bytes.
const LISTING_LOOKS: u64 = 100_000;

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
    /// Compiles `source`. Takes about 5 ms, and runs on a thread of its own: keep the result, or
    /// use [`super::SchemaCache`].
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
        let compiled = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(COMPILE_STACK);
            let thread = thread.spawn_scoped(scope, || compiled(source));
            // An error is a panic of the compiler, or no thread to be had.
            thread.ok().and_then(|thread| thread.join().ok())
        });
        let compiled = compiled.ok_or(SchemaFault::Failed)??;
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
    pub(super) fn check(&self, value: &Value) -> Result<(), Unfit> {
        let looks = LOOKS + LOOKS_A_NODE * nodes(value).min(MAX_NODES);
        let errors = match self.metered(looks, || self.compiled.is_valid(Metered::root(value))) {
            Ok(true) => return Ok(()),
            Ok(false) => self.errors(value, looks),
            Err(spent) => vec![spent.words().to_owned()],
        };
        Err(Unfit::new(Fault::SchemaError, Layer::Schema, errors))
    }

    /// Lists what is wrong with a value that does not fit. Never empty.
    fn errors(&self, value: &Value, looks: u64) -> Vec<String> {
        let all = self.metered(LISTING_LOOKS, || {
            let mut errors = self.compiled.iter_errors(Metered::root(value));
            let told = errors.by_ref().take(MAX_WORDED);
            let told = told.flat_map(|error| self.violations(&error)).collect::<Vec<_>>();
            (told, errors.count())
        });
        let Ok((mut told, untold)) = all else { return self.first_error(value, looks) };
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
    fn first_error(&self, value: &Value, looks: u64) -> Vec<String> {
        let first = self.metered(looks, || {
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

    /// Runs `check` with at most `looks` looks at the value.
    fn metered<T>(&self, looks: u64, check: impl FnOnce() -> T) -> Result<T, Spent> {
        let here = 0_u8;
        let meter = Meter {
            left: looks,
            a_key: 1 + u64::try_from(self.patterns).unwrap_or(u64::MAX) * 4,
            stack: std::ptr::from_ref(&here).addr(),
        };
        METER.set(Some(meter));
        let outcome = catch_unwind(AssertUnwindSafe(check));
        METER.set(None);
        outcome.map_err(|payload| payload.downcast::<Spent>().map_or(Spent::Failed, |spent| *spent))
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
                "{} is no pattern that runs in linear time (look-around and back-references do not)",
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

// --- the meter ---

/// What ran out before a check was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spent {
    Looks,
    Stack,
    /// The crate panicked.
    Failed,
}

impl Spent {
    fn words(self) -> &'static str {
        match self {
            Self::Looks | Self::Stack => "too costly to check against its schema",
            Self::Failed => "could not be checked against its schema",
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Meter {
    left: u64,
    /// What a key costs: every pattern may be tried on it.
    a_key: u64,
    /// An address in the stack where the check began.
    stack: usize,
}

thread_local! {
    // The crate builds some nodes itself, from a name alone; so the meter cannot go with the node.
    static METER: Cell<Option<Meter>> = const { Cell::new(None) };
}

/// Takes `cost` looks off the meter, if one runs; unwinds out of the check when it is empty.
fn look(cost: u64) {
    let Some(mut meter) = METER.get() else { return };
    let here = 0_u8;
    if std::ptr::from_ref(&here).addr().abs_diff(meter.stack) > CHECK_STACK {
        // Not a panic: the hook is not run, and `metered` catches it.
        resume_unwind(Box::new(Spent::Stack));
    }
    let Some(left) = meter.left.checked_sub(cost) else { resume_unwind(Box::new(Spent::Looks)) };
    meter.left = left;
    METER.set(Some(meter));
}

/// The cost of going over a text once or twice.
fn length(text: &str) -> u64 {
    1 + u64::try_from(text.len() / 32).unwrap_or(u64::MAX)
}

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
        look(length(key).saturating_mul(METER.get().map_or(1, |meter| meter.a_key)));
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
