//! What a lowering changed, one entry each.

use std::fmt;

/// The rule a change was made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Rule {
    /// An optional property is required and may be `null`; such a `null` is dropped from the reply.
    OptionalNullable,
    /// A `null` of such a property stays, since the schema may allow it: the property may be missing.
    NullKept,
    /// The root is wrapped in `{"value": …}`; the reply is unwrapped.
    RootWrapped,
    /// A map is an array of `{"key", "value"}`; the reply's is made a map again.
    MapToEntries,
    /// The further keys of an object are such an array in a member of its own.
    ExtraEntries,
    /// A reply may be of two branches of a union whose undoing differs: it is left as it is.
    Ambiguous,
    /// `oneOf` is `anyOf`.
    OneOf,
    /// The parts of an `allOf` are one schema.
    AllOfMerged,
    /// Of an `allOf` that cannot be one schema, the first object is kept.
    AllOfFirst,
    /// What stood beside a union stands in each of its branches.
    UnionSpread,
    /// `const` is an `enum` of one.
    Const,
    /// An `enum` is left out.
    EnumDropped,
    /// Members of an `enum` that cannot stand in one are said otherwise.
    EnumSplit,
    /// A definition stands where it was referred to.
    RefInlined,
    /// A recursion is unrolled, and ends.
    Unrolled,
    /// An object is closed.
    Closed,
    /// A type that was meant is said.
    TypeAdded,
    /// Several types are a union, or `null` is `nullable`.
    TypeSplit,
    /// A tuple is an array of any of its items.
    Tuple,
    /// A keyword is left out, and told in words.
    Dropped,
    /// A keyword is sent with a weaker value, and told in words.
    Weakened,
    /// A pattern is anchored.
    Anchored,
    /// A default or an annotation is left out.
    Annotation,
    /// The order of the properties is said.
    Ordering,
}

impl Rule {
    /// The name in logs and reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OptionalNullable => "optional_nullable",
            Self::NullKept => "null_kept",
            Self::RootWrapped => "root_wrapped",
            Self::MapToEntries => "map_to_entries",
            Self::ExtraEntries => "extra_entries",
            Self::Ambiguous => "ambiguous",
            Self::OneOf => "one_of",
            Self::AllOfMerged => "all_of_merged",
            Self::AllOfFirst => "all_of_first",
            Self::UnionSpread => "union_spread",
            Self::Const => "const",
            Self::EnumDropped => "enum_dropped",
            Self::EnumSplit => "enum_split",
            Self::RefInlined => "ref_inlined",
            Self::Unrolled => "unrolled",
            Self::Closed => "closed",
            Self::TypeAdded => "type_added",
            Self::TypeSplit => "type_split",
            Self::Tuple => "tuple",
            Self::Dropped => "dropped",
            Self::Weakened => "weakened",
            Self::Anchored => "anchored",
            Self::Annotation => "annotation",
            Self::Ordering => "ordering",
        }
    }

    /// Whether a constraint of the schema is not enforced any more by the provider.
    pub const fn loosens(self) -> bool {
        matches!(
            self,
            Self::Dropped
                | Self::Weakened
                | Self::EnumDropped
                | Self::AllOfFirst
                | Self::OneOf
                | Self::Tuple
        )
    }
}

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// By which rule.
    pub rule: Rule,
    /// Where in the source schema: a JSON Pointer.
    pub pointer: String,
    /// The keyword, or the property's name where the rule is about one.
    pub keyword: String,
    /// What was done, in few words.
    pub what: String,
    /// What the provider does not enforce, as the model is told. `None`: nothing is lost.
    pub residual: Option<String>,
}

impl Change {
    /// The change without a value of the schema, for logs.
    pub fn brief(&self) -> String {
        let what = match self.rule {
            Rule::Weakened => format!("`{}` weakened", self.keyword),
            Rule::Anchored => format!("`{}` anchored", self.keyword),
            _ if self.residual.is_some() => format!("`{}` left out", self.keyword),
            _ => self.what.clone(),
        };
        let pointer = if self.pointer.is_empty() { "root" } else { &self.pointer };
        format!("{pointer}: {what}")
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let pointer = if self.pointer.is_empty() { "root" } else { &self.pointer };
        write!(f, "{pointer}: {}", self.what)
    }
}
