//! Chooses the answer among documents and readings, or says that there is no choosing.

use super::Mender;
use super::candidate::{Candidate, Found};
use super::doubt::{add, ambiguous, parting_at};
use super::settle::{Made, judge_by_policy, make, settle, settle_made};
use crate::draft::Draft;
use crate::edit::{Change, Class, Kind};
use crate::guide::{is_attempt, misfits};
use crate::halt::Halt;
use crate::hypothesis::Ended;
use crate::locate::{Tier, after, before, depth_of, holds_members, start_of_text};
use crate::outcome::{Document, Doubtful, Outcome, Refusal};
use crate::parse::{Doubt, Parser, cost};
use crate::policy::Several;
use crate::tape::Node;

pub(super) fn choose(mender: &Mender<'_>, parser: &Parser<'_>, mut found: Found) -> Outcome {
    let Some(tier) = found.candidates.iter().map(|candidate| candidate.site.tier).max() else {
        return Outcome::Rejected(nothing(parser, &found));
    };
    if found.crowd {
        return Outcome::Rejected(Refusal::TooManyCandidates);
    }
    if found.broken.is_some_and(|broken| broken >= tier) {
        let at = found.stuck.as_ref().map(|stuck| stuck.at);
        return ambiguous(parser.raw, Doubtful::Candidates, Vec::new(), at);
    }
    // A reply that begins with a document means it, whatever fences come behind.
    let first = start_of_text(parser.raw);
    let is_best =
        |candidate: &&Candidate| candidate.site.tier == tier || candidate.site.start == first;
    let mut only = found.candidates.iter_mut().filter(|candidate| is_best(&&**candidate));
    let own = match (only.next(), only.next(), mender.guide) {
        // The usual case: what it changes need not be kept for a second look.
        (Some(Candidate { readings, draft, .. }), None, None) if readings.len() == 1 => {
            readings.first_mut().map(|ended| (std::mem::take(&mut ended.changes), draft.take()))
        }
        _ => None,
    };
    let best: Vec<&Candidate> = found.candidates.iter().filter(is_best).collect();
    let stage = Stage { mender, parser, found: &found };
    if let (Some((own, draft)), [only]) = (own, best.as_slice()) {
        return stage.alone(only, own, draft);
    }
    match best.as_slice() {
        [only] => stage.one(only, &[], Kind::OtherCandidate),
        several => stage.several(several),
    }
}

fn nothing(parser: &Parser<'_>, found: &Found) -> Refusal {
    if parser.deep.get() {
        return Refusal::TooDeep;
    }
    if found.too_many {
        return Refusal::TooManyEdits;
    }
    if found.crowd {
        return Refusal::TooManyCandidates;
    }
    let halt = match &found.stuck {
        Some(stuck) => parser.halt(stuck),
        None => Halt::at(parser.raw, start_of_text(parser.raw)),
    };
    Refusal::NoDocument(Box::new(halt))
}

struct Stage<'s, 'r> {
    mender: &'s Mender<'s>,
    parser: &'s Parser<'r>,
    found: &'s Found,
}

impl Stage<'_, '_> {
    /// One document, read in one way.
    fn alone(&self, candidate: &Candidate, own: Vec<Change>, draft: Option<Draft>) -> Outcome {
        let Some(ended) = candidate.readings.first() else {
            return self.nothing_at(candidate);
        };
        let changes = self.around(candidate, ended, own);
        if self.has_strange_rest(&changes, candidate) {
            return ambiguous(self.parser.raw, Doubtful::Rest, Vec::new(), Some(candidate.end()));
        }
        let raw = self.parser.raw;
        let long = self.parser.long.borrow();
        let made = draft.and_then(|draft| draft.finish(self.parser, &changes));
        let outcome = match made {
            Some(made) => settle_made(self.mender, raw, (changes, &long), least(ended), made),
            None => settle(self.mender, raw, (changes, &long), least(ended)),
        };
        match (outcome.document(), ended.doubt, candidate.crowded) {
            (None, ..) | (_, Doubt::None, false) => outcome,
            (Some(document), ..) => self.doubted(candidate, ended, document),
        }
    }

    fn nothing_at(&self, candidate: &Candidate) -> Outcome {
        let halt = Halt::at(self.parser.raw, candidate.site.start);
        Outcome::Rejected(Refusal::NoDocument(Box::new(halt)))
    }

    /// One reading and a doubt: it is shown with the next one, if there is another value.
    fn doubted(&self, candidate: &Candidate, ended: &Ended, document: &Document) -> Outcome {
        let mut shown = vec![document.clone()];
        self.add_beyond(candidate, &mut shown);
        ambiguous(self.parser.raw, Doubtful::Value, shown, Some(ended.doubt_at))
    }

    fn add_beyond(&self, candidate: &Candidate, shown: &mut Vec<Document>) {
        let Some(beyond) = candidate.beyond.as_ref().filter(|_| shown.len() == 1) else { return };
        let raw = self.parser.raw;
        let changes = self.around(candidate, beyond, beyond.changes.clone());
        let long = self.parser.long.borrow();
        if let Made::Document(other) = make(self.mender, raw, (changes, &long), least(beyond)) {
            add(shown, other, raw);
        }
    }

    /// One document, read in one or several ways.
    fn one(&self, candidate: &Candidate, others: &[&Candidate], left: Kind) -> Outcome {
        let Some(first) = candidate.readings.first() else {
            return self.nothing_at(candidate);
        };
        let changes = self.changes(candidate, first, (others, left));
        if self.has_strange_rest(&changes, candidate) {
            return ambiguous(self.parser.raw, Doubtful::Rest, Vec::new(), Some(candidate.end()));
        }
        if candidate.readings.len() == 1 && self.mender.guide.is_none() {
            let long = self.parser.long.borrow();
            let outcome = settle(self.mender, self.parser.raw, (changes, &long), least(first));
            return match (outcome.document(), first.doubt, candidate.crowded) {
                (None, ..) | (_, Doubt::None, false) => outcome,
                (Some(document), ..) => self.doubted(candidate, first, document),
            };
        }
        self.among_readings(candidate, (others, left))
    }

    fn among_readings(&self, candidate: &Candidate, others: (&[&Candidate], Kind)) -> Outcome {
        let raw = self.parser.raw;
        let mut made = Vec::new();
        let mut twice = Vec::new();
        for ended in &candidate.readings {
            let changes = self.changes(candidate, ended, others);
            match make(self.mender, raw, (changes, &self.parser.long.borrow()), least(ended)) {
                Made::Document(document) => made.push((document, ended)),
                Made::DuplicateKey(twice) if made.is_empty() => return twice.outcome(),
                Made::Refused(refusal) if made.is_empty() => {
                    return Outcome::Rejected(refusal);
                }
                // A laxer policy would make a document of it.
                Made::DuplicateKey(rival) => twice.extend(rival.readings),
                // A rival that is no document is no rival.
                Made::Refused(_) => {}
            }
        }
        if let Some(guide) = self.mender.guide {
            twice.clear();
            let misfit = |document: &Document| {
                document.root(raw).map_or(100, |root| misfits(guide, root, document.class))
            };
            let counts: Vec<usize> = made.iter().map(|(document, _)| misfit(document)).collect();
            let least = counts.iter().min().copied().unwrap_or(0);
            let mut counts = counts.into_iter();
            let all = made.len();
            made.retain(|_| counts.next() == Some(least));
            if made.len() < all {
                // The schema has spoken: of those that fit it, the plainly cheaper one is it.
                let cheapest = made.iter().map(|(_, ended)| ended.cost).min().unwrap_or(0);
                made.retain(|(_, ended)| ended.cost < cheapest + cost::MARGIN);
            }
        }
        let Some((winner, ended)) = made.first() else {
            return self.nothing_at(candidate);
        };
        let is_other = |document: &Document| match (winner.root(raw), document.root(raw)) {
            (Some(one), Some(two)) => !one.same(two),
            _ => true,
        };
        let is_alone = twice.is_empty() && made.iter().all(|(document, _)| !is_other(document));
        if is_alone && ended.doubt == Doubt::None && !candidate.crowded {
            let (winner, _) = made.swap_remove(0);
            return judge_by_policy(self.mender, winner);
        }
        let reason = if is_alone || made.iter().any(|(_, ended)| ended.doubt == Doubt::Shadow) {
            Doubtful::Value
        } else {
            Doubtful::Readings
        };
        let at = match made.as_slice() {
            [(one, _), (two, _), ..] => parting_at(raw, one, two),
            _ => Some(ended.doubt_at),
        };
        let mut shown: Vec<Document> = Vec::new();
        let likely = made.into_iter().filter(|(_, ended)| ended.doubt != Doubt::Shadow);
        for document in likely.map(|(document, _)| document).chain(twice) {
            add(&mut shown, document, raw);
        }
        self.add_beyond(candidate, &mut shown);
        ambiguous(raw, reason, shown, at)
    }

    /// Several documents that speak for themselves equally.
    fn several(&self, several: &[&Candidate]) -> Outcome {
        let raw = self.parser.raw;
        let mut documents = Vec::new();
        let mut twice = Vec::new();
        let mut doubled = 0;
        for candidate in several {
            let Some(first) = candidate.readings.first() else { continue };
            let changes = self.changes(candidate, first, (&[], Kind::OtherCandidate));
            let changes = (changes, self.parser.long.borrow());
            match make(self.mender, raw, (changes.0, &changes.1), least(first)) {
                Made::Document(document) => documents.push((*candidate, document)),
                Made::DuplicateKey(rival) => {
                    twice.extend(rival.readings.into_iter().map(|reading| (*candidate, reading)));
                    doubled += 1;
                }
                Made::Refused(_) => {}
            }
        }
        let Some((first, document)) = documents.first() else {
            let at = several.first().map(|candidate| candidate.site.start);
            return ambiguous(raw, Doubtful::Candidates, Vec::new(), at);
        };
        let root = document.root(raw);
        let is_same = documents.len() == several.len()
            && documents.iter().all(|(_, other)| match (root, other.root(raw)) {
                (Some(one), Some(two)) => one.same(two),
                _ => false,
            });
        if is_same {
            return self.one(first, several, Kind::SameRootTwice);
        }
        let is_all_seen = documents.len() + doubled == several.len();
        if is_all_seen && let Some(fitting) = self.fitting(&documents, &twice) {
            return self.one(fitting, several, Kind::OtherCandidate);
        }
        let chosen = match self.mender.policy.several {
            Several::Only => None,
            Several::First => several.first(),
            Several::Last => several.last(),
            Several::Largest => {
                several.iter().max_by_key(|candidate| candidate.end() - candidate.site.start)
            }
            Several::Array => return self.array(several),
        };
        if let Some(candidate) = chosen {
            return self.one(candidate, several, Kind::OtherCandidate);
        }
        let mut readings = Vec::new();
        documents.sort_by_key(|(candidate, _)| candidate.site.start);
        for (_, document) in documents.into_iter().chain(twice) {
            add(&mut readings, document, raw);
        }
        let second = several.get(1).map(|candidate| candidate.site.start);
        ambiguous(raw, Doubtful::Candidates, readings, second)
    }

    /// The one document that the schema fits, if it fits one only and none of the others is an
    /// attempt at the same answer: a draft that fits must not win over a correction that does not.
    fn fitting<'c>(
        &self,
        documents: &[(&'c Candidate, Document)],
        twice: &[(&'c Candidate, Document)],
    ) -> Option<&'c Candidate> {
        let guide = self.mender.guide?;
        let raw = self.parser.raw;
        let mut fitting = documents.iter().filter(|(_, document)| {
            document.root(raw).is_some_and(|root| misfits(guide, root, document.class) == 0)
        });
        let (Some((chosen, document)), None) = (fitting.next(), fitting.next()) else {
            return None;
        };
        let accepted = document.root(raw)?;
        let others = documents.iter().chain(twice);
        let mut others = others.filter(|(candidate, _)| !std::ptr::eq(*candidate, *chosen));
        let is_rival = |(candidate, other): &(&Candidate, Document)| {
            let is_later = candidate.site.start > chosen.site.start;
            // An empty object in front is a placeholder or a draft; behind, it takes the answer
            // back.
            other.root(raw).is_none_or(|other| {
                is_attempt(guide, other, accepted) && (is_later || !is_empty(other))
            })
        };
        (!others.any(is_rival)).then_some(*chosen)
    }

    /// All documents as the elements of one array.
    fn array(&self, several: &[&Candidate]) -> Outcome {
        let raw = self.parser.raw;
        let mut changes = Vec::new();
        let mut end = 0;
        let mut class = Class::Valid;
        for (number, candidate) in several.iter().enumerate() {
            let Some(ended) = candidate.readings.first() else { continue };
            if ended.doubt != Doubt::None || candidate.readings.len() > 1 || ended.cut {
                return ambiguous(raw, Doubtful::Readings, Vec::new(), Some(ended.doubt_at));
            }
            let start = candidate.site.start;
            if number == 0 {
                changes.extend(before(raw, &candidate.site, &self.found.thought));
                changes.push(Change::new(Kind::Ndjson, start..start, "["));
            } else {
                changes.push(Change::new(Kind::Ndjson, end..start, ","));
            }
            changes.extend_from_slice(&ended.changes);
            end = ended.end;
            class = class.max(least(ended));
        }
        changes.push(Change::new(Kind::Ndjson, end..end, "]"));
        let fence = several.last().and_then(|candidate| candidate.site.fence.as_ref());
        changes.extend(after(raw, end, fence));
        settle(self.mender, raw, (changes, &self.parser.long.borrow()), class)
    }

    /// All changes of a reading: around the document and in it. Other documents that are left
    /// out are reported as that kind.
    fn changes(
        &self,
        candidate: &Candidate,
        ended: &Ended,
        (others, kind): (&[&Candidate], Kind),
    ) -> Vec<Change> {
        let mut changes = self.around(candidate, ended, ended.changes.clone());
        for other in others.iter().filter(|other| !std::ptr::eq(**other, candidate)) {
            let start = other.site.start;
            for change in &mut changes {
                if change.start() <= start && start < change.end() {
                    change.kind = kind;
                }
            }
        }
        changes
    }

    /// A reading's own changes, and those around its document.
    fn around(&self, candidate: &Candidate, ended: &Ended, mut own: Vec<Change>) -> Vec<Change> {
        let raw = self.parser.raw;
        own.splice(0..0, before(raw, &candidate.site, &self.found.thought));
        own.extend(after(raw, ended.end, candidate.site.fence.as_ref()));
        own
    }

    /// Says whether what is left out beside the document looks like a part of it.
    fn has_strange_rest(&self, changes: &[Change], candidate: &Candidate) -> bool {
        let raw = self.parser.raw;
        // Changes within the document are many and do not matter here.
        let first = changes.partition_point(|change| change.start() < candidate.site.start);
        let last = changes.partition_point(|change| change.start() < candidate.end()).max(first);
        let behind = changes.get(last..).unwrap_or_default();
        let beside = || changes.get(..first).unwrap_or_default().iter().chain(behind);
        let text_of = |change: &Change| raw.get(change.start()..change.end()).unwrap_or_default();
        let is_list = behind.array_windows().any(|[one, two]| {
            one.kind == Kind::TrailingComma
                && match two.kind {
                    Kind::ProseAfter
                    | Kind::OtherCandidate
                    | Kind::SameRootTwice
                    | Kind::ExtraCloser => true,
                    Kind::Comment => text_of(two).contains(['"', '}', ']']),
                    _ => false,
                }
        });
        let is_cited = candidate.site.tier == Tier::Citation
            && beside().any(|c| matches!(c.kind, Kind::ProseBefore | Kind::ProseAfter));
        // What stands before may have been the beginning of what the closer behind closes.
        let is_inside = behind.iter().any(|change| change.kind == Kind::ExtraCloser)
            && beside().any(|c| c.kind == Kind::ProseBefore && text_of(c).contains('"'));
        is_list
            || is_inside
            || is_cited
            || beside()
                .filter(|change| is_left_out(change))
                .any(|change| self.holds_members(raw, change))
    }

    /// As [`holds_members`], but for documents that were read and left out with a reason.
    fn holds_members(&self, raw: &str, change: &Change) -> bool {
        let mut at = change.start();
        let mut depth = (0, 0);
        for other in &self.found.candidates {
            let (start, end) = (other.site.start, other.end());
            if start < change.start() || end > change.end() {
                continue;
            }
            let between = raw.get(at..start).unwrap_or_default();
            let (braces, brackets) = depth_of(between);
            depth = (depth.0 + braces, depth.1 + brackets);
            if holds_members(between) {
                return true;
            }
            at = end;
        }
        let rest = raw.get(at..change.end()).unwrap_or_default();
        // A bracket that is open in the prose: the document may be inside of it.
        let (braces, brackets) = depth_of(rest);
        holds_members(rest) || depth.0 + braces > 0 || depth.1 + brackets > 0
    }
}

/// Says whether the change leaves out text around the document, other documents included.
fn is_left_out(change: &Change) -> bool {
    use Kind::{OtherCandidate, ProseAfter, ProseBefore, SameRootTwice};
    matches!(change.kind, ProseBefore | ProseAfter | OtherCandidate | SameRootTwice)
}

fn is_empty(node: Node<'_>) -> bool {
    node.members().next().is_none() && node.items().next().is_none()
}

fn least(ended: &Ended) -> Class {
    if ended.cut { Class::Partial } else { Class::Valid }
}
