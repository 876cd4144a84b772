//! Takes a reply through its stages: strict parse, locate, read, choose, check, report.
//!
//! What is strict JSON ends at the first stage. What a policy forbids ends at the last one, so
//! a stricter policy never sees another value than a laxer one, only fewer of them.

mod candidate;
mod choose;
mod doubt;
mod duplicate;
mod escaped;
mod settle;

use crate::edit::{Class, KindSet};
use crate::guide::Guide;
use crate::outcome::{Document, Outcome, Refusal};
use crate::parse::Parser;
use crate::policy::{Policy, Status};
use crate::tape::build::{Builder, Reach, Step};

/// Mends replies under one policy.
#[derive(Clone, Copy, Debug)]
pub struct Mender<'g> {
    pub(crate) policy: Policy,
    pub(crate) guide: Option<&'g dyn Guide>,
}

impl Mender<'static> {
    /// A mender without a schema.
    pub fn new(policy: Policy) -> Self {
        Self { policy, guide: None }
    }
}

impl<'g> Mender<'g> {
    /// Lets a schema choose among readings. It adds nothing to any of them.
    pub fn guided(policy: Policy, guide: &'g dyn Guide) -> Self {
        Self { policy, guide: Some(guide) }
    }

    /// Reads a reply that is not known to be UTF-8.
    pub fn mend_bytes(&self, raw: &[u8], status: Status) -> Outcome {
        match std::str::from_utf8(raw) {
            Ok(text) => self.mend(text, status),
            Err(error) => Outcome::Rejected(Refusal::NotUtf8(error.valid_up_to())),
        }
    }

    /// Reads a whole reply that ended with `status`.
    pub fn mend(&self, raw: &str, status: Status) -> Outcome {
        if raw.len() > self.policy.limits.input {
            return Outcome::Rejected(Refusal::TooLarge);
        }
        let mut builder = Builder::new(self.policy.limits.depth);
        let step = builder.run(raw.as_bytes(), Reach::Whole);
        self.conclude(raw, status, builder, step)
    }

    /// Goes on from a strict parse that came to `step`.
    pub(crate) fn conclude(
        &self,
        raw: &str,
        status: Status,
        builder: Builder,
        step: Step,
    ) -> Outcome {
        match step {
            Step::Done if builder.twice(raw).is_empty() => Outcome::Valid(Document {
                tape: builder.into_tape(),
                mended: None,
                changes: Vec::new(),
                long: Vec::new(),
                kinds: KindSet::NONE,
                class: Class::Valid,
            }),
            Step::TooDeep(_) => Outcome::Rejected(Refusal::TooDeep),
            Step::Done => settle::settle(self, raw, (Vec::new(), &[]), Class::Valid),
            Step::More | Step::Broken(_) => self.tolerant(raw, status, builder),
        }
    }

    #[cold]
    fn tolerant(&self, raw: &str, status: Status, strict: Builder) -> Outcome {
        if crate::locate::start_of_text(raw) >= raw.len() {
            return Outcome::Rejected(Refusal::Empty);
        }
        let parser = Parser::new(raw, status, &self.policy);
        let found = candidate::gather(self, &parser, Some(strict));
        choose::choose(self, &parser, found)
    }
}
