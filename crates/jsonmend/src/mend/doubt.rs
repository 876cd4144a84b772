//! Reports an ambiguous reply: its readings, and where they part.

use super::Mender;
use super::settle::{Made, make};
use crate::edit::{Change, Class, Kind};
use crate::outcome::{Ambiguity, Document, Doubtful, Outcome, Spot};
use crate::policy::{DupKeys, Policy};

/// Readings shown with an ambiguous reply.
const SHOWN: usize = 4;

/// A document with a key that stands twice with two values.
#[derive(Debug)]
pub(super) struct Twice {
    /// With the first member, and with the last; or as it stands, if one cannot be left out.
    pub(super) readings: Vec<Document>,
    /// Members with that key and another value than those two.
    pub(super) more: usize,
    /// The second member.
    spot: Option<Spot>,
}

impl Twice {
    /// `whole` has both members.
    pub(super) fn of(
        mender: &Mender<'_>,
        raw: &str,
        (changes, long): (&[Change], &[Box<str>]),
        least: Class,
        (whole, more): (Document, usize),
    ) -> Self {
        let mut readings: Vec<Document> = Vec::new();
        for dup_keys in [DupKeys::First, DupKeys::Last] {
            let decided = Mender { policy: Policy { dup_keys, ..mender.policy }, ..*mender };
            if mender.policy.dup_keys != dup_keys
                && let Made::Document(document) =
                    make(&decided, raw, (changes.to_vec(), long), least)
            {
                add(&mut readings, document, raw);
            }
        }
        let spot = readings.first().and_then(|first| again(raw, &whole, first));
        if readings.is_empty() {
            readings.push(whole);
        }
        Self { readings, more, spot }
    }

    pub(super) fn outcome(self) -> Outcome {
        let Self { readings, more, spot } = self;
        Outcome::Ambiguous(Ambiguity { reason: Doubtful::DuplicateKey, readings, more, spot })
    }
}

/// The place of the member that the reading with the first one leaves out.
fn again(raw: &str, whole: &Document, first: &Document) -> Option<Spot> {
    let edits = first.edits(raw);
    let edit = edits.iter().find(|edit| matches!(edit.kind, Kind::DupKey | Kind::DupSame))?;
    let is_key = |letter: char| letter != ',' && !letter.is_whitespace();
    let start = edit.span.start + edit.before.find(is_key)?;
    Some(Spot { span: start..edit.span.end, ..whole.spot(raw, start) })
}

/// Readings that another is compared with; beyond them all count as different.
const COMPARED: usize = 64;

/// Adds a document unless one with its value is there.
pub(super) fn add(readings: &mut Vec<Document>, document: Document, raw: &str) {
    let is_known =
        readings.iter().take(COMPARED).any(|other| match (other.root(raw), document.root(raw)) {
            (Some(one), Some(two)) => one.same(two),
            _ => false,
        });
    if !is_known {
        readings.push(document);
    }
}

/// `at` is an offset of the doubt in the raw text, for when the readings do not show it.
pub(super) fn ambiguous(
    raw: &str,
    reason: Doubtful,
    mut readings: Vec<Document>,
    at: Option<usize>,
) -> Outcome {
    let more = readings.len().saturating_sub(SHOWN);
    readings.truncate(SHOWN);
    let is_one_document = reason != Doubtful::Candidates;
    let parting = match readings.as_slice() {
        [one, two, ..] if is_one_document => parting(raw, one, two),
        _ => None,
    };
    let spot = parting.or_else(|| {
        let at = at?;
        Some(match readings.first().filter(|_| is_one_document) {
            Some(reading) => reading.spot(raw, at),
            None => Spot::bare(raw, at),
        })
    });
    Outcome::Ambiguous(Ambiguity { reason, readings, more, spot })
}

/// The offset where two readings part.
pub(super) fn parting_at(raw: &str, one: &Document, two: &Document) -> Option<usize> {
    parting(raw, one, two).map(|spot| spot.span.start)
}

/// Where two readings of one text part: at the first change that only one of them has.
fn parting(raw: &str, one: &Document, two: &Document) -> Option<Spot> {
    let (edits, others) = (one.edits(raw), two.edits(raw));
    let same = edits.iter().zip(&others).take_while(|(one, two)| one == two).count();
    let candidates = [edits.get(same), others.get(same)];
    let first = candidates.into_iter().flatten().min_by_key(|edit| edit.span.start)?;
    Some(Spot {
        span: first.span.clone(),
        line: first.line,
        column: first.column,
        path: first.path.clone(),
    })
}
