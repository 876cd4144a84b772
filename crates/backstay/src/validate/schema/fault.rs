//! Why a schema cannot be used, each for whoever wrote the schema to mend.

/// Why a schema cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaFault {
    /// Too many bytes.
    #[error("the schema has {bytes} bytes, {most} are allowed")]
    TooLarge {
        /// Its size as compact JSON.
        bytes: usize,
        /// The limit.
        most: usize,
    },
    /// Nested too deeply.
    #[error("the schema is nested deeper than {most} levels")]
    TooDeep {
        /// The limit.
        most: usize,
    },
    /// Too many patterns.
    #[error("the schema has {count} patterns, {most} are allowed")]
    TooManyPatterns {
        /// How many it has.
        count: usize,
        /// The limit.
        most: usize,
    },
    /// Its references lead along too many or too long paths.
    #[error("the schema's references lead along too many paths; use fewer or flatter definitions")]
    TooEntangled,
    /// A reference leaves the document.
    #[error(
        "the schema refers to '{reference}' outside itself, and nothing is fetched; put it under $defs"
    )]
    ForeignReference {
        /// What it refers to.
        reference: String,
    },
    /// A reference leads nowhere inside the document.
    #[error("a reference of the schema cannot be followed: {problem}")]
    BrokenReference {
        /// What is wrong with it.
        problem: String,
    },
    /// `$schema` names something else than a known draft.
    #[error("$schema names '{uri}', which is no known draft of JSON Schema")]
    UnknownDraft {
        /// What it names.
        uri: String,
    },
    /// It breaks the rules of its draft, or holds a pattern that cannot run in linear time.
    #[error("the schema is not valid at '{pointer}': {problem}")]
    Invalid {
        /// Where, as a JSON pointer into the schema. Empty: the schema itself.
        pointer: String,
        /// What is wrong there.
        problem: String,
    },
    /// A value that it declares in the place of one that does not fit does not fit itself.
    #[error("the x-backstay-fallback at '{pointer}' does not fit there: {problem}")]
    Fallback {
        /// The schema it stands in, as a JSON pointer. Empty: the whole.
        pointer: String,
        /// What is wrong with it.
        problem: String,
    },
    /// The compiler failed in a way it does not name.
    #[error("the schema could not be compiled")]
    Failed,
}
