//! The neutral form: what a chat request and its reply mean, in no provider's words.

mod delta;
mod error;
mod fold;
mod logprobs;
mod quirk;
mod reply;
mod request;
mod tell;

pub use delta::Delta;
pub use error::{ErrorClass, ProviderError};
pub use fold::{Fold, FoldEnd, FoldFault, Terminator};
pub use logprobs::{Logprobs, Odds};
pub use quirk::Quirk;
pub use reply::{Choice, Finish, Reply, Usage};
pub use request::{Chat, Format, ImageSource, Part, Role, Tool, ToolChoice, Turn};

/// Something one dialect said and another cannot say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Where it stood, as a JSON pointer into the source, such as `/logit_bias`.
    pub path: String,
    /// What happened to it, in one plain sentence for the log.
    pub note: String,
}

impl Loss {
    /// A loss at `path` with a `note` for the log.
    pub fn new(path: impl Into<String>, note: impl Into<String>) -> Self {
        Self { path: path.into(), note: note.into() }
    }
}
