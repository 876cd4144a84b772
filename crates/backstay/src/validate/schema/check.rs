//! Checks a value under the meter, and lists what is wrong with one that does not fit.

use std::borrow::{Borrow, Cow};
use std::cell::Cell;
use std::collections::HashSet;

use backstay_decide::fault::Fault;
use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::types::JsonType;
use serde_json::Value;

use super::super::{Layer, MAX_ERRORS, Unfit, clipped};
use super::Schema;
use super::breach::{Breach, Site, Step, What, nearest, shown, shown_number};
use super::format;
use super::meter::{self, Spent};
use super::node::Seen;
use super::number::Numeral;
use super::violation::Violation;

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

/// Errors that are put into words: more than are told, since a route may have a rule for each. Where
/// there are still more, the list is cut.
const MAX_WORDED: usize = 5_000;

impl Schema {
    /// Checks a value of that many nodes.
    pub(super) fn check_seen(&self, root: Seen<'_>, nodes: u64) -> Result<(), Unfit> {
        let looks = LOOKS + LOOKS_A_NODE * nodes.min(MAX_NODES);
        let told = match self.metered(looks, || self.compiled.is_valid(root)) {
            Ok(true) => return Ok(()),
            Ok(false) => Listing { schema: self, root, cut: &Cell::new(false) }.told(),
            Err(spent) => Told { violations: Vec::new(), rest: Some(spent.words().to_owned()) },
        };
        Err(told.unfit())
    }

    fn metered<T>(&self, looks: u64, check: impl FnOnce() -> T) -> Result<T, Spent> {
        let patterns = u64::try_from(self.patterns).unwrap_or(u64::MAX);
        meter::run(looks, 1 + patterns.saturating_mul(4), check)
    }
}

/// What is known of a value that does not fit: never nothing.
struct Told {
    violations: Vec<Violation>,
    /// A last line, where some of what is wrong is not listed.
    rest: Option<String>,
}

impl Told {
    fn unfit(mut self) -> Unfit {
        let problems = self.violations.iter().map(Violation::problem).collect();
        // Without its pointer nobody can say what the route wants done about it.
        let lost = self.violations.iter().any(|violation| violation.pointer.is_none());
        let rest = self.rest.or_else(|| lost.then(|| "at places too deep to name".to_owned()));
        let unfit = Unfit::of(Fault::SchemaError, Layer::Schema, problems);
        if self.violations.len() > MAX_ERRORS {
            self.violations.truncate(MAX_ERRORS - 1);
        }
        let unfit = Unfit { violations: self.violations, ..unfit };
        match rest {
            Some(rest) => unfit.and_cut(&rest),
            None => unfit,
        }
    }
}

/// A value that does not fit.
#[derive(Clone, Copy)]
struct Listing<'s> {
    schema: &'s Schema,
    root: Seen<'s>,
    /// Whether some of what is wrong was left out.
    cut: &'s Cell<bool>,
}

impl<'s> Listing<'s> {
    fn told(self) -> Told {
        let all = self.schema.metered(LISTING_LOOKS, || {
            let mut errors = self.schema.compiled.iter_errors(self.root);
            let found = self.breaches_of(errors.by_ref());
            (found, errors.count())
        });
        let Ok((mut found, untold)) = all else { return self.first() };
        found.sort_by_key(Breach::rank);
        let violations = worded(found);
        let left = violations.len().saturating_sub(MAX_ERRORS - 1) + untold;
        let rest = (untold > 0 || self.cut.get()).then(|| match left {
            0 => "and more errors".to_owned(),
            left => format!("and {left} more errors"),
        });
        Told { violations, rest }
    }

    /// The first errors in our terms, as many as are put into words.
    fn breaches_of<'e>(
        self,
        errors: impl Iterator<Item = impl Borrow<ValidationError<'e>>>,
    ) -> Vec<Breach> {
        let mut found = Vec::new();
        for error in errors.take(MAX_WORDED) {
            found.extend(self.breaches(error.borrow()));
            if found.len() > MAX_WORDED {
                self.cut.set(true);
                found.truncate(MAX_WORDED);
                break;
            }
        }
        found
    }

    /// Where listing all errors costs too much: the first, and that there are more.
    fn first(self) -> Told {
        let first = self.schema.metered(FIRST_LOOKS, || {
            let error = self.schema.compiled.validate(self.root).err();
            error.map(|error| self.breaches(&error)).unwrap_or_default()
        });
        let mut violations = worded(first.unwrap_or_default());
        violations.truncate(MAX_ERRORS - 1);
        let rest = "does not fit the schema in too many places to list".to_owned();
        Told { violations, rest: Some(rest) }
    }

    /// Puts one error into our terms. Several where the schema's alternatives hide them.
    fn breaches(self, error: &ValidationError<'_>) -> Vec<Breach> {
        let at = site(error);
        let one = |what| vec![Breach { at: at.clone(), what }];
        let unexpected = |keys: &[String]| {
            self.cut.set(self.cut.get() || keys.len() > MAX_WORDED);
            let keys = keys.iter().take(MAX_WORDED);
            keys.map(|key| Breach { at: at.clone(), what: What::Unexpected(key.clone()) }).collect()
        };
        let inner = |context: &[Vec<ValidationError<'_>>]| {
            let worded = |errors: &Vec<ValidationError<'_>>| {
                self.cut.set(self.cut.get() || errors.len() > MAX_WORDED);
                self.breaches_of(errors.iter())
            };
            nearest(&at, context.iter().map(worded).collect())
        };
        match error.kind() {
            Kind::Required { property } => one(What::Missing(text(property))),
            Kind::Type { kind } => one(What::Type(type_names(kind))),
            Kind::AdditionalProperties { unexpected: keys }
            | Kind::UnevaluatedProperties { unexpected: keys } => unexpected(keys),
            Kind::Enum { options } => {
                let rest = format!("{} not in enum", self.shown(error));
                let is_one = options.as_array().is_some_and(|options| options.len() == 1);
                one(if is_one { What::Constant(rest) } else { What::Choice(rest) })
            }
            Kind::Constant { expected_value } => {
                one(What::Constant(format!("should be {}", shown(expected_value))))
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

    /// The value that is wrong; a number as it was written.
    fn shown(self, error: &ValidationError<'_>) -> String {
        let value = error.instance();
        let written = value.is_number().then(|| self.found(error.instance_path())).flatten();
        match written.and_then(Seen::numeral) {
            Some(Numeral::Written(digits)) => shown_number(digits),
            Some(Numeral::Held(_)) | None => shown(value),
        }
    }

    fn found(self, path: &Location) -> Option<Seen<'s>> {
        path.into_iter().try_fold(self.root, |seen, step| match step {
            LocationSegment::Property(key) => seen.members()?.find(&key),
            LocationSegment::Index(index) => seen.items()?.each().nth(index),
        })
    }

    /// `outside 1..4` where the schema has both limits side by side, else the one that is broken.
    fn outside(self, broken: &Location, limit: &Value) -> String {
        let (around, keyword) = broken.as_str().rsplit_once('/').unwrap_or_default();
        let around = self.schema.source.pointer(around);
        let beside = |key| around.and_then(|schema| schema.get(key));
        match (beside("minimum"), beside("maximum")) {
            (Some(low), Some(high)) if low == limit || high == limit => {
                format!("outside {low}..{high}")
            }
            _ if keyword == "minimum" => format!("below {limit}"),
            _ => format!("above {limit}"),
        }
    }
}

/// A violation for each breach, the first of those with the same sentence about the same place. A
/// sentence alone may be cut short, and stand for two places.
fn worded(breaches: Vec<Breach>) -> Vec<Violation> {
    let mut seen = HashSet::new();
    let violations = breaches.into_iter().map(|breach| {
        let words = breach.words();
        Violation::new(breach, words)
    });
    let place = |one: &Violation| (one.pointer.clone(), one.key.clone(), one.message.clone());
    violations.filter(|violation| seen.insert(place(violation))).collect()
}

fn site(error: &ValidationError<'_>) -> Site {
    Site {
        path: steps(error.instance_path()),
        rule: error.schema_path().as_str().to_owned(),
        keyword: error.kind().keyword().to_owned(),
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
        Kind::Format { format } => format::words(format).to_owned(),
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
