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
use crate::guide::{Guide, misfits};
use crate::outcome::{Document, Outcome, Refusal};
use crate::parse::Parser;
use crate::policy::{Policy, Status};
use crate::tape::build::{Builder, Reach, Step};

/// The longest reply that is looked at again with a schema, which takes every token by itself.
const MAX_SECOND_LOOK: usize = 1 << 20;

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
        let outcome = choose::choose(self, &parser, found);
        match self.guide.filter(|_| raw.len() <= MAX_SECOND_LOOK) {
            Some(guide) if is_doubtful(&outcome) || !fits(guide, &outcome, raw) => {
                self.look_again(raw, status, guide).unwrap_or(outcome)
            }
            Some(_) | None => outcome,
        }
    }

    /// Reads again, asking the schema about every reading on the way. Only what fits it is taken.
    fn look_again(&self, raw: &str, status: Status, guide: &dyn Guide) -> Option<Outcome> {
        let parser = Parser::new(raw, status, &self.policy).guided(guide);
        let found = candidate::gather(self, &parser, None);
        let outcome = choose::choose(self, &parser, found);
        (!is_doubtful(&outcome) && fits(guide, &outcome, raw)).then_some(outcome)
    }
}

/// Says whether there is a document and it fits the schema.
fn fits(guide: &dyn Guide, outcome: &Outcome, raw: &str) -> bool {
    let document = outcome.document();
    let root = document.and_then(|document| Some((document.root(raw)?, document.class)));
    root.is_some_and(|(root, class)| misfits(guide, root, class) == 0)
}

/// Says whether a schema may see more in the reply: it has two readings, or none.
fn is_doubtful(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Ambiguous(_) | Outcome::Rejected(Refusal::NoDocument(_)) => true,
        // A knob of the policy decided.
        Outcome::Mended(document) | Outcome::Partial(document) => {
            document.class == Class::Ambiguous
        }
        Outcome::Valid(_) | Outcome::Rejected(_) => false,
    }
}
