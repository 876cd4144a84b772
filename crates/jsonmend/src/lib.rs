//! Mends broken JSON in replies of language models, names every edit, and never invents.
#[cfg(feature = "serde")]
mod de;
mod edit;
mod guide;
mod hypothesis;
mod lex;
mod locate;
mod mend;
mod outcome;
mod parse;
mod policy;
mod stream;
mod tape;

#[cfg(feature = "serde")]
pub use de::Mismatch;
pub use edit::{Class, Edit, Kind, KindSet, apply};
pub use guide::{Guide, Listed, Member, Place, Types};
pub use mend::Mender;
pub use outcome::{Ambiguity, Document, Doubtful, Outcome, Refusal};
pub use policy::{AtCut, BareNumber, DupKeys, Limits, Nan, Policy, Several, Status};
pub use stream::{Finished, Snapshot, Stream};
pub use tape::{Items, Members, Node, Tape, ValueKind};
