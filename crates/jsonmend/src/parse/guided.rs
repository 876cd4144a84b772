//! Asks a schema about a reading: what it forbids costs, and where it says so a closer is taken for
//! one too many, or for lost.
//!
//! Only a second look asks (see `mend`). Without a guide nothing here does anything, and the guide
//! adds nothing to a text: it knows keys and types, and the parser takes neither from it.

use super::ahead::KeyAhead;
use super::bare::quote_word;
use super::quote::Quote;
use super::{Doubt, Expect, Frame, Last, Parser, Reading, cost};
use crate::edit::Kind;
use crate::guide::{Guide, Listed, Member, Place, Types};

/// Required keys that are looked through for each key.
const MAX_REQUIRED: usize = 256;
/// Containers around a key of which one may be its own.
const MAX_OUTER: usize = 4;

/// How well something goes into a container, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    Never,
    /// The schema says nothing of it.
    Open,
    Known,
    /// The container must have it.
    Needed,
}

/// What stands at a place.
#[derive(Clone, Copy, Debug)]
enum Ahead<'r> {
    Key(&'r str),
    Value(Types),
}

/// A container as the schema sees it.
#[derive(Clone, Copy, Debug)]
struct Seen {
    is_object: bool,
    place: Option<Place>,
    items: u32,
}

impl Seen {
    const fn of(frame: &Frame) -> Self {
        Self { is_object: frame.is_object(), place: frame.place, items: frame.items }
    }
}

fn fit(guide: &dyn Guide, container: Seen, what: Ahead<'_>) -> Fit {
    match (what, container.is_object, container.place) {
        (Ahead::Key(_), false, _) | (Ahead::Value(_), true, _) => Fit::Never,
        (_, _, None) => Fit::Open,
        (Ahead::Key(key), true, Some(at)) => match guide.member(at, key) {
            Member::Forbidden => Fit::Never,
            Member::Open => Fit::Open,
            Member::Known(_) if needs(guide, at, key) => Fit::Needed,
            Member::Known(_) => Fit::Known,
        },
        (Ahead::Value(types), false, Some(at)) => match guide.element(at, container.items as usize)
        {
            Some(element) if !guide.types(element).meets(types) => Fit::Never,
            Some(element) if guide.types(element) != Types::ANY => Fit::Known,
            Some(_) | None => Fit::Open,
        },
    }
}

fn needs(guide: &dyn Guide, at: Place, key: &str) -> bool {
    let required = guide.required(at);
    required.len() <= MAX_REQUIRED && required.iter().any(|name| name == key)
}

/// Says whether the schema itself prefers one place to another, not just the count of what is odd.
fn is_decided(fit: Fit, other: Fit) -> bool {
    (other == Fit::Never && fit >= Fit::Known) || (fit == Fit::Needed && other < Fit::Needed)
}

impl<'r> Parser<'r> {
    /// The place of the value that comes next.
    pub(super) fn place_of_value(&self, reading: &Reading) -> Option<Place> {
        let guide = self.guide?;
        match reading.frames.last() {
            None => Some(guide.root()),
            Some(frame) if frame.is_object() => reading.key_place,
            Some(frame) => guide.element(frame.place?, frame.items as usize),
        }
    }

    /// A value of one of these types is being read.
    pub(super) fn guide_type(&self, reading: &mut Reading, types: Types) {
        let Some(guide) = self.guide else { return };
        let place = self.place_of_value(reading);
        if place.is_some_and(|place| !guide.types(place).meets(types)) {
            reading.cost += cost::MISFIT;
        }
        if reading.frames.last().is_some_and(|frame| !frame.is_object()) {
            self.guide_part(reading, Ahead::Value(types));
        }
    }

    /// The string whose inside starts at `start` ends at `end`: a key or a value.
    pub(super) fn guide_string(&self, reading: &mut Reading, start: usize, end: usize) {
        if matches!(reading.expect, Expect::Member | Expect::Key) {
            self.guide_key(reading, start, end);
        } else {
            self.guide_text(reading, start, end);
        }
    }

    /// The string whose inside starts at `start` ends at `end`.
    fn guide_text(&self, reading: &mut Reading, start: usize, end: usize) {
        let Some(guide) = self.guide else { return };
        let text = self.slice(start, end);
        let place = self.place_of_value(reading).filter(|_| !text.contains('\\'));
        if place.is_some_and(|place| guide.listed(place, text) == Listed::No) {
            reading.cost += cost::MISFIT;
        }
    }

    /// A word without quotes was read, and perhaps put in some.
    pub(super) fn guide_word(&self, reading: &mut Reading, end: usize) {
        let Some(guide) = self.guide else { return };
        let word = self.slice(reading.at, end);
        let is_text = matches!(
            reading.last_change,
            Some((Kind::UnquotedValue | Kind::BareNumber, changed)) if changed == end
        );
        let types = match word.as_bytes().first() {
            _ if is_text => Types::STRING,
            Some(b't' | b'T' | b'f' | b'F') => Types::BOOLEAN,
            Some(b'n' | b'N') => Types::NULL,
            _ => Types::NUMBER,
        };
        self.guide_type(reading, types);
        let place = self.place_of_value(reading).filter(|_| is_text);
        if place.is_some_and(|place| guide.listed(place, word) == Listed::No) {
            reading.cost += cost::MISFIT;
        }
    }

    /// `1,234.50` where the schema wants text: the digits as they stand. What the commas mean, only
    /// a person of that place knows.
    pub(super) fn guide_grouped(&self, reading: &Reading, end: usize, out: &mut Vec<Reading>) {
        let Some(guide) = self.guide else { return };
        let types = self.place_of_value(reading).map_or(Types::ANY, |place| guide.types(place));
        let in_object = reading.frames.last().is_some_and(|frame| frame.is_object());
        let at = reading.at;
        let Some(end) = self.group_end(end).filter(|_| in_object) else { return };
        if !types.has(Types::STRING) || types.meets(Types::NUMBER) {
            return;
        }
        let mut text = reading.clone();
        quote_word(&mut text, Kind::UnquotedValue, at, end);
        text.cost += cost::UNQUOTED;
        text.value_start = at;
        text.valued(Last::Bare, end);
        out.push(text);
    }

    /// Where `,234,567.8` ends, if it begins here.
    fn group_end(&self, mut at: usize) -> Option<usize> {
        let digits = |at: usize| self.rest(at).iter().take_while(|b| b.is_ascii_digit()).count();
        let start = at;
        while self.byte(at) == Some(b',') && digits(at + 1) == 3 {
            at += 4;
        }
        if at > start && self.byte(at) == Some(b'.') {
            at += 1 + digits(at + 1);
        }
        (at > start).then_some(at)
    }

    /// A key was read.
    pub(super) fn guide_key(&self, reading: &mut Reading, start: usize, end: usize) {
        let Some(guide) = self.guide else { return };
        let key = self.slice(start, end);
        reading.key_place = None;
        let Some(frame) = reading.frames.last() else { return };
        let Some(at) = frame.place.filter(|_| !key.contains('\\')) else { return };
        if let Member::Known(place) = guide.member(at, key) {
            reading.key_place = Some(place);
        }
        self.guide_part(reading, Ahead::Key(key));
    }

    /// Notes what the schema says of a member or element and of its neighbours.
    fn guide_part(&self, reading: &mut Reading, what: Ahead<'_>) {
        let Some(guide) = self.guide else { return };
        let last = reading.last_seen();
        let Some((frame, outer)) = reading.frames.split_last_mut() else { return };
        let here = fit(guide, Seen::of(frame), what);
        if here == Fit::Never && matches!(what, Ahead::Key(_)) {
            reading.cost += cost::MISFIT;
        }
        frame.needed += u32::from(here == Fit::Needed);
        // Could the container before it have gone on with it?
        if frame.items > 0 && reading.last == Last::Container {
            let before = fit(guide, last, what);
            if before == Fit::Never || is_decided(here, before) {
                frame.has_twin = false;
            }
        }
        // Could this container have ended before it?
        frame.fixed = outer.last().is_some_and(|outer| {
            let there = fit(guide, Seen::of(outer), what);
            there == Fit::Never || is_decided(here, there)
        });
    }

    /// A container closes: what it should have and has not.
    pub(super) fn guide_close(&self, reading: &mut Reading) {
        let Some(guide) = self.guide else { return };
        let Some(frame) = reading.frames.last() else { return };
        let required = frame.place.map_or(0, |place| guide.required(place).len());
        if frame.is_object() && required <= MAX_REQUIRED {
            let missing = required.saturating_sub(frame.needed as usize);
            reading.cost += cost::MISFIT * u32::try_from(missing.min(4)).unwrap_or_default();
        }
        reading.last_place = frame.place;
    }

    /// The key or value at `at`; `None` if nobody can say what it is.
    fn ahead(&self, at: usize) -> Option<Ahead<'r>> {
        let (start, end) = match (self.key_ahead(at), Quote::at(self.rest(at))) {
            (KeyAhead::Quoted, Some((quote, width))) => {
                let end = self.quote_ahead(at + width, quote)?;
                (at + width, end - quote.ends(self.rest(end - width)).max(1))
            }
            (KeyAhead::Bare, _) => (at, self.name_end(at)),
            (KeyAhead::Quoted | KeyAhead::Half, _) => return None,
            (KeyAhead::None, _) => return self.value_ahead(at).map(Ahead::Value),
        };
        let key = self.slice(start, end);
        (!key.contains('\\')).then_some(Ahead::Key(key))
    }

    fn value_ahead(&self, at: usize) -> Option<Types> {
        Some(match self.byte(at)? {
            b'{' => Types::OBJECT,
            b'[' => Types::ARRAY,
            b'"' => Types::STRING,
            b'-' | b'0'..=b'9' => Types::NUMBER,
            _ => return None,
        })
    }

    /// The closer at the reading is one too many, if what stands behind it and a comma goes better
    /// into the container that it would close than into those around it.
    pub(super) fn guide_extra(&self, reading: &Reading, out: &mut Vec<Reading>) {
        let Some(guide) = self.guide else { return };
        let Some((frame, mut outer)) = reading.frames.split_last() else { return };
        // Behind this closer and all that follow it.
        let mut at = self.peek(reading.at + 1);
        let mut best = Fit::Never;
        let mut passed = Vec::new();
        while let Some(b'}' | b']') = self.byte(at) {
            let Some((next, further)) = outer.split_last() else { break };
            passed.push(next);
            outer = further;
            at = self.peek(at + 1);
        }
        while let Some(b'}' | b']') = self.byte(at) {
            if at > reading.at + super::ahead::REACH {
                return;
            }
            outer = &[];
            at = self.peek(at + 1);
        }
        let next = match self.byte(at) {
            Some(b',') => self.peek(at + 1),
            _ if self.is_key(at) => at,
            _ => return,
        };
        let Some(what) = self.ahead(next) else { return };
        passed.extend(outer.last());
        for other in passed {
            best = best.max(fit(guide, Seen::of(other), what));
        }
        let here = fit(guide, Seen::of(frame), what);
        if here <= best {
            return;
        }
        let mut extra = reading.clone();
        // Another closer before it may be the one.
        let is_other = reading.frames.iter().any(|frame| frame.mergeable);
        if is_other || !is_decided(here, best) {
            extra.doubted(Doubt::Always);
        }
        let at = extra.at;
        extra.change(Kind::ExtraCloser, at, at + 1, "");
        extra.cost += cost::EXTRA_CLOSER;
        extra.extra_closer = true;
        extra.at += 1;
        out.push(extra);
    }

    /// The container lost its closer before the comma, if what stands behind that goes better into
    /// one around it.
    pub(super) fn guide_lost(&self, reading: &Reading, out: &mut Vec<Reading>) {
        let Some(guide) = self.guide else { return };
        let Some((frame, outer)) = reading.frames.split_last() else { return };
        let Some(what) = self.ahead(reading.at).filter(|_| frame.items > 0) else { return };
        let here = fit(guide, Seen::of(frame), what);
        let around = || outer.iter().rev().take(MAX_OUTER);
        if around().all(|other| fit(guide, Seen::of(other), what) <= here) {
            return;
        }
        let mut closed = reading.clone();
        for other in around() {
            self.lose_closer(&mut closed);
            let there = fit(guide, Seen::of(other), what);
            if there <= here {
                continue;
            }
            let mut lost = closed.clone();
            if !is_decided(there, here) {
                lost.doubted(Doubt::Always);
            }
            if let Some(frame) = lost.frames.last_mut() {
                frame.member = reading.comma;
            }
            lost.expect = if other.is_object() { Expect::Key } else { Expect::Again };
            lost.at = reading.at;
            out.push(lost);
        }
    }
}

impl Reading {
    fn last_seen(&self) -> Seen {
        let (is_object, items) = self.last_container;
        Seen { is_object, place: self.last_place, items }
    }
}
