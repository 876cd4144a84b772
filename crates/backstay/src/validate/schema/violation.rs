//! One way in which a reply breaks its schema, for programs: where, which rule, and the sentence.

use backstay_wire::pointer;

use super::super::Problem;
use super::breach::{Breach, What};

/// The longest pointer kept. A longer one would be no pointer once it is cut.
const MAX_POINTER: usize = 4 * 1024;

/// Where a value breaks its schema, by which rule, and what is told of it. Two replies with the
/// same violations made the same mistakes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Violation {
    /// JSON Pointer to the value; empty for the whole reply. For a key that is missing or not
    /// allowed it is the object around the key. `None` where it has over 4 KiB.
    pub pointer: Option<String>,
    /// The key that is missing or not allowed, for a violation about one; at most 4 KiB, else
    /// `None`.
    pub key: Option<String>,
    /// JSON Pointer to the keyword in the schema that holds the rule, references resolved; in a
    /// document of its own where the rule stands in one. For alternatives the keyword around them,
    /// unless one of them was clearly meant.
    pub schema_path: String,
    /// The keyword, such as `enum`; `falseSchema` for a `false` in place of a schema.
    pub keyword: String,
    /// The sentence for the model, as it is among the errors.
    pub message: String,
}

impl Violation {
    pub(super) fn new(breach: Breach, message: String) -> Self {
        let key = match breach.what {
            What::Missing(key) | What::Unexpected(key) => Some(key),
            What::Type(_)
            | What::Constant(_)
            | What::Choice(_)
            | What::Alternatives(_)
            | What::Says(_) => None,
        };
        Self {
            pointer: Some(breach.at.pointer()).filter(|pointer| pointer.len() <= MAX_POINTER),
            key: key.filter(|key| key.len() <= MAX_POINTER),
            schema_path: breach.at.rule,
            keyword: breach.at.keyword,
            message,
        }
    }

    /// The same as a problem of the reply, at the missing or unexpected key itself.
    pub(super) fn problem(&self) -> Problem {
        let mut at = self.pointer.clone().unwrap_or_default();
        if let Some(key) = &self.key {
            at.push('/');
            at.push_str(&pointer::escape(key));
        }
        Problem::new(at, self.keyword.clone(), self.message.clone())
    }
}
