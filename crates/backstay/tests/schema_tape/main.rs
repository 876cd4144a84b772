//! Schemas against values on the tape of `jsonmend`: the official suite, and the same verdict and
//! words as for a `Value`.

#![expect(clippy::unwrap_used, reason = "tests fail by panicking, and report")]

mod property;
#[path = "../schema_files/mod.rs"]
mod schema_files;
mod suite;

use backstay::validate::{Schema, Unfit};
use jsonmend::{Mender, Outcome, Policy, Status};

/// What the schema says of `text`, which must be strict JSON and stay untouched.
fn checked(schema: &Schema, text: &str) -> Result<(), Unfit> {
    let outcome = Mender::new(Policy::strict()).mend(text, Status::Stopped);
    assert!(matches!(outcome, Outcome::Valid(_)), "{text} is {}", outcome.name());
    let document = outcome.document().unwrap();
    schema.check_node(document.root(text).unwrap())
}
