//! Mends broken JSON in replies of language models, names every edit, and never invents.
mod edit;
mod guide;
mod hypothesis;
mod lex;
mod locate;
mod mend;
mod outcome;
mod parse;
mod policy;
mod tape;

pub use edit::{Class, Edit, Kind, KindSet, apply};
pub use guide::{Guide, Listed, Member, Place, Types};
pub use mend::Mender;
pub use outcome::{Ambiguity, Document, Doubtful, Outcome, Refusal};
pub use policy::{AtCut, BareNumber, DupKeys, Limits, Nan, Policy, Several, Status};
pub use tape::{Items, Kind as ValueKind, Members, Node, Tape};
