//! Makes a document of a reading: splices the text, parses it strictly and asks the policy.

use super::Mender;
use super::doubt::Twice;
use super::duplicate::{Verdict, judge};
use crate::edit::{Change, Class, KindSet, spliced};
use crate::halt::Halt;
use crate::outcome::{Document, Outcome, Refusal};
use crate::tape::Node;
use crate::tape::build::{Builder, Reach, Step};

/// A document that was made, or why there is none.
#[derive(Debug)]
pub(super) enum Made {
    Document(Document),
    DuplicateKey(Twice),
    Refused(Refusal),
}

/// Makes the document that the changes lead to, and judges it by the policy.
pub(super) fn settle(
    mender: &Mender<'_>,
    raw: &str,
    changes: (Vec<Change>, &[Box<str>]),
    least: Class,
) -> Outcome {
    match make(mender, raw, changes, least) {
        Made::Document(document) => judge_by_policy(mender, document),
        Made::DuplicateKey(twice) => twice.outcome(),
        Made::Refused(refusal) => Outcome::Rejected(refusal),
    }
}

/// As [`settle`], for a document whose text and tape were made while it was read.
pub(super) fn settle_made(
    mender: &Mender<'_>,
    raw: &str,
    (changes, long): (Vec<Change>, &[Box<str>]),
    least: Class,
    (text, builder): (String, Builder),
) -> Outcome {
    debug_assert!(is_tape_of(&builder, &text), "the tape is not what the text says: {raw}");
    let is_plain = changes.len() <= mender.policy.limits.edits && builder.twice(&text).is_empty();
    if !is_plain {
        return settle(mender, raw, (changes, long), least);
    }
    let kinds = kinds(&changes);
    let class = kinds.class().max(least);
    let mended = Some(text).filter(|_| !changes.is_empty());
    let tape = builder.into_tape();
    judge_by_policy(mender, Document { tape, mended, changes, long: long.to_vec(), kinds, class })
}

fn kinds(changes: &[Change]) -> KindSet {
    changes.iter().fold(KindSet::NONE, |all, change| all.with(change.kind))
}

fn is_tape_of(builder: &Builder, text: &str) -> bool {
    let mut strict = Builder::new(1024);
    let step = strict.run(text.as_bytes(), Reach::Whole);
    let same = match (Node::root(strict.words(), text), Node::root(builder.words(), text)) {
        (Some(one), Some(two)) => one.same(two),
        _ => false,
    };
    step == Step::Done && same && strict.words().len() == builder.words().len()
}

/// Whatever a reading claims, its text is parsed strictly, and that parse is the value.
pub(super) fn make(
    mender: &Mender<'_>,
    raw: &str,
    (mut changes, long): (Vec<Change>, &[Box<str>]),
    least: Class,
) -> Made {
    // Members left out may uncover others inside; three rounds see more than any reply has.
    for _ in 0..3 {
        if changes.len() > mender.policy.limits.edits {
            return Made::Refused(Refusal::TooManyEdits);
        }
        let text = (!changes.is_empty()).then(|| spliced(raw, &changes, long));
        let mut builder = Builder::new(mender.policy.limits.depth);
        let step = builder.run(text.as_deref().unwrap_or(raw).as_bytes(), Reach::Whole);
        match step {
            Step::Done => {}
            Step::TooDeep(_) => return Made::Refused(Refusal::TooDeep),
            Step::More | Step::Broken(_) => {
                let at = changes.first().map_or(0, |change| change.start());
                return Made::Refused(Refusal::NoDocument(Box::new(Halt::at(raw, at))));
            }
        }
        let verdict = judge(&builder, text.as_deref().unwrap_or(raw), mender.policy.dup_keys);
        let kinds = kinds(&changes);
        let class = kinds.class().max(least);
        let document = |tape| Document {
            tape,
            mended: text.clone(),
            changes: changes.clone(),
            long: long.to_vec(),
            kinds,
            class,
        };
        match verdict {
            Verdict::Unique => {
                return Made::Document(Document {
                    tape: builder.into_tape(),
                    mended: text,
                    long: long.to_vec(),
                    kinds,
                    class,
                    changes,
                });
            }
            Verdict::Doubtful(more) => {
                let whole = document(builder.into_tape());
                let parts = (changes.as_slice(), long);
                return Made::DuplicateKey(Twice::of(mender, raw, parts, least, (whole, more)));
            }
            Verdict::Drop(drops) => changes = composed(&changes, drops),
        }
    }
    Made::Refused(Refusal::TooManyEdits)
}

pub(super) fn judge_by_policy(mender: &Mender<'_>, document: Document) -> Outcome {
    let policy = &mender.policy;
    if !document.kinds.is_within(policy.allow)
        && let Some(kind) = document.kinds().find(|kind| !policy.allow.has(*kind))
    {
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
        let start = walk.raw_offset(drop.start(), Edge::Start, &mut all);
        let kept = all.len();
        let end = walk.raw_offset(drop.end(), Edge::End, &mut all);
        // What was changed inside is left out with it.
        all.truncate(kept);
        all.push(Change::new(drop.kind, start..end, drop.after));
    }
    all.extend_from_slice(changes.get(walk.next..).unwrap_or_default());
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
            let now = change.start().saturating_add_signed(self.shift);
            let after = now + change.after.len();
            if offset < now || (offset == now && edge == Edge::Start) {
                break;
            }
            let is_inside = offset < after;
            if is_inside && edge == Edge::Start {
                // The change goes with what is dropped.
                return change.start();
            }
            self.shift += change.growth();
            self.next += 1;
            all.push(*change);
            if is_inside {
                return change.end();
            }
        }
        offset.saturating_add_signed(-self.shift)
    }
}
