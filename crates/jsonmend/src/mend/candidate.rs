//! Reads every place where a document may begin.

use super::{Mender, escaped};
use crate::draft::Draft;
use crate::edit::{Change, Kind};
use crate::hypothesis::{Ended, Explored, explore};
use crate::lex::space;
use crate::locate::{Fence, Scout, Site, Tier, before, start_of_text};
use crate::parse::{Doubt, Expect, Parser, Reading, Shape, Stuck, cost, notation};
use crate::tape::build::{Builder, Reach, Step};

/// Places whose text and tape are made while they are read, with all that stands before them.
const MAX_DRAFTS: usize = 16;

/// A document and where it was found.
#[derive(Debug)]
pub(super) struct Candidate {
    pub(super) site: Site,
    /// The cheapest reading, then those within the margin.
    pub(super) readings: Vec<Ended>,
    /// A dearer one, to be shown beside the only one that is doubted.
    pub(super) beyond: Option<Ended>,
    pub(super) crowded: bool,
    /// Text and tape of the only reading, if they were made on the way.
    pub(super) draft: Option<Draft>,
}

impl Candidate {
    pub(super) fn end(&self) -> usize {
        self.readings.first().map_or(self.site.start, |ended| ended.end)
    }
}

/// All that was found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) candidates: Vec<Candidate>,
    /// Blocks of reasoning.
    pub(super) thought: Vec<(usize, usize)>,
    /// The best tier of a place that looks like a document and cannot be read as one.
    pub(super) broken: Option<Tier>,
    /// How far reading went at most.
    pub(super) reached: usize,
    /// Where it could not go on.
    pub(super) stuck: Option<Stuck>,
    pub(super) too_many: bool,
    /// Whether there were more places than the limit.
    pub(super) crowd: bool,
}

/// `strict` is the strict parse of the text, which broke in a document.
pub(super) fn gather(
    mender: &Mender<'_>,
    parser: &Parser<'_>,
    mut strict: Option<Builder>,
) -> Found {
    if let Some(found) = without_opener(parser) {
        return found;
    }
    let mut scout = Scout::new(parser.raw);
    let mut found = Found { thought: scout.thought().to_vec(), ..Found::default() };
    let (mut places, mut sites) = (0, 0);
    while let Some(site) = scout.next() {
        sites += 1;
        let broken = strict.take_if(|builder| builder.root_start() == Some(site.start));
        let before = (sites <= MAX_DRAFTS).then(|| before(parser.raw, &site, &found.thought));
        let explored = read(mender, parser, (site.start, before), broken);
        found.reached = found.reached.max(explored.reached);
        found.too_many |= explored.too_many;
        if let Some(stuck) = explored.stuck
            && found.stuck.is_none_or(|other| stuck.is_beyond(&other))
        {
            found.stuck = Some(stuck);
        }
        let start = site.start;
        // Placeholders in prose are many and cost little.
        let counts = parser.is_like_document(start) || !explored.readings.is_empty();
        places += usize::from(counts);
        if places > mender.policy.limits.candidates {
            found.crowd = true;
            break;
        }
        let Some(first) = explored.readings.first() else {
            if parser.is_like_document(start) {
                found.broken = found.broken.max(Some(site.tier));
            }
            scout.skip_to(explored.reached.max(start + 1));
            continue;
        };
        scout.skip_to(first.end);
        let Explored { readings, beyond, crowded, draft, .. } = explored;
        found.candidates.push(Candidate { site, readings, beyond, crowded, draft });
    }
    if found.candidates.is_empty() && found.broken.is_none() {
        found.candidates.extend(scalar(parser));
    }
    found
}

/// Strictly, if the document there is strict; else tolerantly. `strict` is the parse that broke in
/// this document. Without what stands `before` it, the readings are all there is.
fn read(
    mender: &Mender<'_>,
    parser: &Parser<'_>,
    (start, before): (usize, Option<Vec<Change>>),
    strict: Option<Builder>,
) -> Explored {
    match strict {
        Some(builder) => {
            if let Some((reading, draft)) = resumed(parser, builder) {
                return explore(parser, reading, draft);
            }
        }
        None => {
            if let Some((end, builder)) = strict_end(mender, parser, start) {
                let readings = vec![plain(end)];
                let draft = before.and_then(|before| Draft::strict(builder, &before));
                return Explored { readings, reached: end, draft, ..Explored::default() };
            }
        }
    }
    if let Some(ended) = escaped::read(mender, parser, start) {
        let reached = ended.end;
        return Explored { readings: vec![ended], reached, ..Explored::default() };
    }
    let Some(before) = before else {
        let draft = Draft::apart(parser, start);
        return Explored { draft: None, ..explore(parser, Reading::new(start), draft) };
    };
    explore(parser, Reading::new(start), Draft::new(parser, start, &before))
}

/// Where the strict document that starts here ends, if there is one and nothing strange behind it.
fn strict_end(mender: &Mender<'_>, parser: &Parser<'_>, start: usize) -> Option<(usize, Builder)> {
    let mut builder = Builder::new(mender.policy.limits.depth);
    builder.skip_to(start);
    let end = match builder.run(parser.bytes, Reach::Whole) {
        Step::Done | Step::Broken(_) => builder.root_end()?,
        Step::More | Step::TooDeep(_) => return None,
    };
    (!parser.is_strange_rest(end) && !parser.has_closer_at(end)).then_some((end, builder))
}

/// The state of reading behind the strict beginning of a document: what a strict parse has read,
/// up to its second last scalar. The last two may be read otherwise, because of what follows them.
fn resumed(parser: &Parser<'_>, mut builder: Builder) -> Option<(Reading, Draft)> {
    let rewound = builder.rewind(parser.bytes)?;
    let reading = parser.resume(builder.words(), &rewound)?;
    Some((reading, Draft::resumed(builder, rewound.end)))
}

fn plain(end: usize) -> Ended {
    let doubt_at = end;
    Ended { changes: Vec::new(), cost: 0, doubt: Doubt::None, doubt_at, end, cut: false }
}

/// `"a": 1}`: the text begins with a key.
fn without_opener(parser: &Parser<'_>) -> Option<Found> {
    let start = start_of_text(parser.raw);
    if parser.byte(start) != Some(b'"') || !parser.is_key(start) {
        return None;
    }
    let mut reading = Reading::new(start);
    let mut opened = Vec::new();
    parser.open(reading.clone(), Shape::Object, 0, &mut opened);
    reading = opened.pop()?;
    reading.expect = Expect::Member;
    reading.change(Kind::MissingOpener, start, start, "{");
    reading.cost += cost::LOST_CLOSER;
    let explored = explore(parser, reading, Draft::new(parser, start, &[]));
    let first = explored.readings.first()?;
    if first.cut {
        // Neither end of the document is there.
        return None;
    }
    let site = Site { start, tier: Tier::Bare, fence: None };
    let Explored { readings, beyond, crowded, reached, too_many, draft, .. } = explored;
    let candidates = vec![Candidate { site, readings, beyond, crowded, draft }];
    Some(Found { candidates, reached, too_many, ..Found::default() })
}

/// A reply that is one scalar and nothing else, bare or in a fence.
fn scalar(parser: &Parser<'_>) -> Option<Candidate> {
    let raw = parser.raw;
    let start = start_of_text(raw);
    let fence = Fence::open(raw, start).filter(|fence| !fence.is_foreign());
    let start = fence.as_ref().map_or(start, |fence| space::skip(parser.bytes, fence.inside));
    let mut text = raw.get(start..)?.trim_end();
    if fence.is_some() {
        text = text.trim_end_matches('`').trim_end();
    }
    let end = start + text.len();
    let tier = if fence.is_some() { Tier::Fenced } else { Tier::Bare };
    let site = Site { start, tier, fence };
    let mut builder = Builder::new(1);
    let ended = if builder.run(text.as_bytes(), Reach::Whole) == Step::Done {
        plain(end)
    } else if let Some((kind, strict)) = notation(text) {
        Ended { changes: vec![Change::new(kind, start..end, parser.text(&strict))], ..plain(end) }
    } else {
        let explored = explore(parser, Reading::new(start), Draft::new(parser, start, &[]));
        let ended = explored.readings.into_iter().next()?;
        // Only a string, and only if nothing else is there.
        if ended.end != end || text.starts_with(['"', '{', '[']) {
            return None;
        }
        ended
    };
    Some(Candidate { site, readings: vec![ended], beyond: None, crowded: false, draft: None })
}
