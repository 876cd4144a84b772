//! What may be done to a reply that is not quite what was asked for: its syntax, its values, and
//! the fields for which something else holds.

use std::sync::Arc;

use serde_json::Value;

/// The deepest nesting of a reply: what parsers of callers read by default.
const MAX_DEPTH: usize = 127;

/// How a route mends and aligns replies. The default mends what has one reading, and changes no
/// value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Mending {
    /// What of the syntax may be mended.
    pub syntax: Syntax,
    /// Which values may be brought to the schema's form.
    pub align: Align,
    /// Fields with a rule of their own. The first that matches a place counts.
    pub fields: Vec<Field>,
    /// Whether the edits stand in the body of every answer.
    pub report: Report,
}

/// What of a reply's syntax may be mended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Syntax {
    /// The parser's own policy.
    pub policy: jsonmend::Policy,
    /// What becomes of a reply that lost something.
    pub partial: Partial,
}

/// What becomes of a reply of which something was cut off or dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Partial {
    /// It is a fault like any other broken reply.
    #[default]
    Refuse,
    /// It is handed on as `partial`, if it passes every other check. Never arguments of a tool.
    Accept,
}

/// Whether the edits stand in the body of every answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Report {
    /// Only where the caller asks by a header.
    #[default]
    OnRequest,
    /// Always, as `backstay.edits`.
    Always,
}

/// Which values may be brought to the schema's form. Only a reply that breaks its schema is
/// looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Align {
    /// Which types may become which others. Empty: none.
    pub coerce: Vec<Coercion>,
    /// What becomes of a value that is no member of its enum.
    pub enums: Enums,
    /// What becomes of a key that the schema forbids.
    pub extra: Extra,
    /// What becomes of a required key that is not there.
    pub missing: Missing,
    /// What becomes of a document inside a string.
    pub encoded: Encoded,
}

/// A change of type that loses nothing: the same text in another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coercion {
    /// `"2"` to `2`; never `"2.5"`.
    StrInt,
    /// `"2.5"` to `2.5`.
    StrNum,
    /// `"true"` to `true`.
    StrBool,
    /// `2.50` to `"2.50"`.
    NumStr,
    /// `"a"` to `["a"]`.
    ScalarArray,
    /// `["a"]` to `"a"`.
    ArrayScalar,
    /// `"{\"a\": 1}"` to `{"a": 1}`; lists too.
    JsonObject,
}

impl Align {
    /// The same for arguments of tools: only changes of type and notation. A call is an effect, and
    /// what the model did not write, or did write, may not be another one.
    #[must_use]
    pub fn of_calls(&self) -> Self {
        Self { coerce: self.coerce.clone(), encoded: self.encoded, ..Self::default() }
    }
}

/// What becomes of a value that is no member of its enum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Enums {
    /// It is an error.
    #[default]
    Exact,
    /// It becomes the one member that is the same but for case, width, `-`, `_` and spaces.
    Fold,
    /// As fold; else it becomes the field's declared fallback, at once and marked.
    Fallback,
}

/// What becomes of a key that the schema forbids.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Extra {
    /// It is an error.
    #[default]
    Reject,
    /// It is left out.
    Drop,
}

/// What becomes of a required key that is not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// It is an error.
    #[default]
    Reject,
    /// It takes the schema's `default`, if there is one.
    SchemaDefault,
}

/// What becomes of a reply that is a JSON text inside a JSON string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoded {
    /// It is a string.
    #[default]
    Keep,
    /// It is what is inside, where the schema wants no string.
    Decode,
}

/// A field with a rule of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Where it is.
    pub at: FieldPath,
    /// What happens when it breaks the schema.
    pub on_fail: OnFail,
    /// The value it takes when nothing better is to be had. `None`: there is none.
    pub fallback: Option<Arc<Value>>,
}

/// What happens when a field breaks the schema.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum OnFail {
    /// The model is asked again; when that is spent, the field takes its fallback, if it has one.
    #[default]
    Reask,
    /// The field takes its fallback at once.
    Fallback,
    /// The call fails.
    Reject,
    /// The reply passes as it is, and is marked.
    Flag,
}

/// A JSON pointer in which `*` stands for any one step.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FieldPath(String);

impl Mending {
    /// The rule of the field at `pointer`, if it has one of its own.
    pub fn field(&self, pointer: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.at.matches(pointer))
    }
}

impl Align {
    /// Whether anything may be done at all.
    pub fn allows_any(&self) -> bool {
        *self != Self::default()
    }
}

impl Syntax {
    /// The parser's policy, no deeper than callers read.
    pub fn of(policy: jsonmend::Policy, partial: Partial) -> Self {
        let limits = jsonmend::Limits { depth: MAX_DEPTH, ..policy.limits };
        Self { policy: jsonmend::Policy { limits, ..policy }, partial }
    }

    /// Nothing is mended: a reply is strict JSON or none.
    pub fn off() -> Self {
        let policy = jsonmend::Policy::strict().allowing(&[]);
        Self::of(policy, Partial::Refuse)
    }

    /// Mends only these kinds.
    pub fn only(kinds: &[jsonmend::Kind]) -> Self {
        Self::of(jsonmend::Policy::standard().allowing(kinds), Partial::Refuse)
    }
}

impl Default for Syntax {
    fn default() -> Self {
        Self::of(jsonmend::Policy::standard(), Partial::Refuse)
    }
}

impl Coercion {
    /// Every coercion.
    pub const ALL: [Self; 7] = [
        Self::StrInt,
        Self::StrNum,
        Self::StrBool,
        Self::NumStr,
        Self::ScalarArray,
        Self::ArrayScalar,
        Self::JsonObject,
    ];
}

impl FieldPath {
    /// The path that `text` says. `None`: it is neither empty nor begins with `/`.
    pub fn parse(text: &str) -> Option<Self> {
        (text.is_empty() || text.starts_with('/')).then(|| Self(text.to_owned()))
    }

    /// The path as it was written.
    pub fn text(&self) -> &str {
        &self.0
    }

    /// Whether the value at `pointer` is meant.
    pub fn matches(&self, pointer: &str) -> bool {
        let (mut pattern, mut steps) = (self.0.split('/'), pointer.split('/'));
        loop {
            match (pattern.next(), steps.next()) {
                (None, None) => return true,
                (Some(want), Some(step)) if want == "*" || want == step => {}
                _ => return false,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::FieldPath;

    #[test]
    fn a_star_stands_for_one_step_and_the_rest_is_meant_to_the_letter() {
        for (path, pointer, yes) in [
            ("/status", "/status", true),
            ("/status", "/status/x", false),
            ("/items/*/status", "/items/0/status", true),
            ("/items/*/status", "/items/status", false),
            ("/*", "/a~1b", true),
            ("", "", true),
            ("", "/a", false),
        ] {
            assert_eq!(FieldPath::parse(path).unwrap().matches(pointer), yes, "{path} {pointer}");
        }
        assert_eq!(FieldPath::parse("status"), None);
    }
}
