//! Why a schema cannot be lowered.

/// Why a schema cannot be lowered. The schema then goes to the model as text, and the reply is
/// checked in full all the same. The pointers are into the source schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CannotLower {
    /// It is neither an object nor a boolean.
    #[error("{0:?} is no schema")]
    NotASchema(String),
    /// It nests deeper than it is read, or than the provider takes.
    #[error("the schema nests deeper than {0} levels")]
    TooDeep(usize),
    /// Lowered it is larger than what is sent: references that multiply do that.
    #[error("the lowered schema is too large")]
    TooLarge,
    /// More properties than the provider takes.
    #[error("the schema has {0} properties, more than the provider takes")]
    TooManyProperties(usize),
    /// More characters of names and enums than the provider takes.
    #[error("the schema has {0} characters of names and enums, more than the provider takes")]
    TooMuchText(usize),
    /// More unions than the provider takes in a request.
    #[error("the schema has more than {0} unions, counting optional properties made nullable")]
    TooManyUnions(usize),
    /// A place without a type, where the provider wants one.
    #[error("{0:?} may be any value, and the provider wants a type")]
    AnyValue(String),
    /// Nothing can stand there.
    #[error("nothing fits {0:?}")]
    Never(String),
    /// A reference that leaves the document or names nothing.
    #[error("the reference at {0:?} cannot be followed")]
    Reference(String),
    /// A recursion that must go deeper than it is unrolled.
    #[error("the recursion at {0:?} has no end within the levels it is unrolled to")]
    Recursion(String),
    /// Two branches of a union that would be one: a map, and a list of what its entries become.
    #[error("a map and a list at {0:?} would be sent as the same schema")]
    Ambiguous(String),
}
