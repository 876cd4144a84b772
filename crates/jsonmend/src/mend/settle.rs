//! Makes a document of a reading: splices the text, parses it strictly and asks the policy.

use super::Mender;
use super::duplicate::{Verdict, judge};
use crate::edit::{Change, Class, spliced};
use crate::outcome::{Ambiguity, Document, Doubtful, Outcome, Refusal};
use crate::tape::build::{Builder, Reach, Step};

/// A document that was made, or why there is none.
#[derive(Debug)]
pub(super) enum Made {
    Document(Document),
    DuplicateKey(Document),
    Refused(Refusal),
}

/// Makes the document that the changes lead to, and judges it by the policy.
pub(super) fn settle(
    mender: &Mender<'_>,
    raw: &str,
    changes: Vec<Change>,
    least: Class,
) -> Outcome {
    match make(mender, raw, changes, least) {
        Made::Document(document) => judge_by_policy(mender, document),
        Made::DuplicateKey(document) => Outcome::Ambiguous(Ambiguity {
            reason: Doubtful::DuplicateKey,
            readings: vec![document],
        }),
        Made::Refused(refusal) => Outcome::Rejected(refusal),
    }
}

/// Whatever a reading claims, its text is parsed strictly, and that parse is the value.
pub(super) fn make(mender: &Mender<'_>, raw: &str, mut changes: Vec<Change>, least: Class) -> Made {
    // Members left out may uncover others inside; three rounds see more than any reply has.
    for _ in 0..3 {
        if changes.len() > mender.policy.limits.edits {
            return Made::Refused(Refusal::TooManyEdits);
        }
        let text = (!changes.is_empty()).then(|| spliced(raw, &changes));
        let mut builder = Builder::new(mender.policy.limits.depth);
        builder.expect_text_of(raw.len());
        let step = builder.run(text.as_deref().unwrap_or(raw), Reach::Whole);
        match step {
            Step::Done => {}
            Step::TooDeep(_) => return Made::Refused(Refusal::TooDeep),
            Step::More | Step::Broken(_) => {
                let at = changes.first().map_or(0, |change| change.start);
                return Made::Refused(Refusal::NoDocument(at));
            }
        }
        let verdict = judge(&builder, text.as_deref().unwrap_or(raw), mender.policy.dup_keys);
        let class = changes.iter().map(|change| change.kind.class()).max();
        let document = |tape| Document {
            tape,
            mended: text.clone(),
            changes: changes.clone(),
            class: class.unwrap_or(Class::Valid).max(least),
        };
        match verdict {
            Verdict::Unique => {
                return Made::Document(Document {
                    tape: builder.into_tape(),
                    mended: text,
                    class: class.unwrap_or(Class::Valid).max(least),
                    changes,
                });
            }
            Verdict::Doubtful => return Made::DuplicateKey(document(builder.into_tape())),
            Verdict::Drop(drops) => changes = composed(&changes, drops),
        }
    }
    Made::Refused(Refusal::TooManyEdits)
}

pub(super) fn judge_by_policy(mender: &Mender<'_>, document: Document) -> Outcome {
    let policy = &mender.policy;
    let forbidden = document.kinds().find(|kind| !policy.allow.has(*kind));
    if let Some(kind) = forbidden {
        return Outcome::Rejected(Refusal::NotAllowed(kind));
    }
    match document.class {
        Class::Valid => Outcome::Valid(document),
        Class::Partial if policy.worst < Class::Partial => {
            Outcome::Rejected(Refusal::WorseClass(Class::Partial))
        }
        Class::Unique if policy.worst < Class::Unique => {
            Outcome::Rejected(Refusal::WorseClass(Class::Unique))
        }
        Class::Lossless if policy.worst < Class::Lossless => {
            Outcome::Rejected(Refusal::WorseClass(Class::Lossless))
        }
        Class::Partial => Outcome::Partial(document),
        // What only a knob of the policy can make is accepted by that knob.
        Class::Lossless | Class::Unique | Class::Ambiguous => Outcome::Mended(document),
    }
}

/// Changes and then deletions in the text they make, as changes of the raw text. Both are in
/// order, so one walk over both is enough.
fn composed(changes: &[Change], drops: Vec<Change>) -> Vec<Change> {
    let mut all: Vec<Change> = Vec::with_capacity(changes.len() + drops.len());
    let mut walk = Walk { changes, next: 0, shift: 0 };
    for drop in drops {
        let start = walk.raw_offset(drop.start, Edge::Start, &mut all);
        let kept = all.len();
        let end = walk.raw_offset(drop.end, Edge::End, &mut all);
        // What was changed inside is left out with it.
        all.truncate(kept);
        all.push(Change { start, end, ..drop });
    }
    all.extend(changes.get(walk.next..).unwrap_or_default().iter().cloned());
    all
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Edge {
    Start,
    End,
}

struct Walk<'c> {
    changes: &'c [Change],
    next: usize,
    shift: isize,
}

impl Walk<'_> {
    /// The raw offset of an offset in the mended text; passed changes go to `all`. Inside what a
    /// change put there, it is that change's start or end.
    fn raw_offset(&mut self, offset: usize, edge: Edge, all: &mut Vec<Change>) -> usize {
        while let Some(change) = self.changes.get(self.next) {
            let now = change.start.saturating_add_signed(self.shift);
            let after = now + change.after.len();
            if offset < now || (offset == now && edge == Edge::Start) {
                break;
            }
            let is_inside = offset < after;
            if is_inside && edge == Edge::Start {
                // The change goes with what is dropped.
                return change.start;
            }
            self.shift += change.after.len().cast_signed();
            self.shift -= (change.end - change.start).cast_signed();
            self.next += 1;
            all.push(change.clone());
            if is_inside {
                return change.end;
            }
        }
        offset.saturating_add_signed(-self.shift)
    }
}
