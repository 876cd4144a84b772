//! The tolerant parser: takes one reading one step further, and names what it changed.
//!
//! A reading is a place in the text, a stack of open containers, what is expected next, the
//! changes made so far and their cost. One step reads one token. Where the text allows several
//! explanations, a step leaves several readings; which of them wins is not decided here, but by
//! comparing costs when they meet again or end (see `hypothesis`).

mod ahead;
mod bare;
mod close;
mod cut;
mod doubtful;
mod guided;
mod key;
mod next;
mod quote;
mod resume;
mod skim;
mod string;
mod stuck;
mod trivia;
mod value;
mod word;

use std::cell::{Cell, RefCell};

use crate::edit::{Change, Kind, Long, Text};
use crate::guide::{Guide, Place};
use crate::policy::{Policy, Status};

pub(crate) use quote::Quote;
pub(crate) use stuck::Stuck;
pub(crate) use word::notation;

/// What each assumption costs. A runner-up within [`cost::MARGIN`] makes the text ambiguous.
pub(crate) mod cost {
    /// Readings this close are equally likely.
    pub(crate) const MARGIN: u32 = 2;
    /// A reading this much dearer than the best is given up.
    pub(crate) const HOPELESS: u32 = 14;
    pub(crate) const UNQUOTED: u32 = 1;
    pub(crate) const LOST_COMMA: u32 = 2;
    /// A line break stands where the comma was lost: likelier.
    pub(crate) const LOST_COMMA_AT_LINE_END: u32 = 1;
    pub(crate) const LOST_COLON: u32 = 2;
    pub(crate) const LOST_QUOTE: u32 = 2;
    pub(crate) const LOST_CLOSER: u32 = 2;
    pub(crate) const WRONG_CLOSER: u32 = 2;
    pub(crate) const EXTRA_CLOSER: u32 = 2;
    /// The first quote inside a string that was not escaped.
    pub(crate) const INNER_QUOTE: u32 = 2;
    /// A quote that looks like the end of its string, or like a key's, is inside after all.
    pub(crate) const UNLIKELY_INNER: u32 = 3;
    pub(crate) const DOUBLED: u32 = 2;
    /// A key or value that the schema does not have at its place.
    pub(crate) const MISFIT: u32 = 4;
    /// An opener was lost: nobody can say that none was. Only shown.
    pub(crate) const LOST_OPENER: u32 = 9;
    /// What follows the root does not look like prose.
    pub(crate) const STRANGE_REST: u32 = 8;
}

/// What a reading expects next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    Root,
    /// A first element or the end of the array.
    Element,
    /// An element after a comma.
    Again,
    /// The value of a member.
    Value,
    /// A first key or the end of the object.
    Member,
    /// A key after a comma.
    Key,
    Colon,
    Next,
    /// Behind the root.
    Done,
}

/// A kind of container, as the text opened it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Object,
    Array,
    /// `( … )`, read as an array.
    Tuple,
    /// `{{ … }}`, read as an object.
    Doubled,
}

/// An open container.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact of its own, noted on the way")]
pub(crate) struct Frame {
    pub(crate) shape: Shape,
    pub(crate) items: u32,
    /// Where the member or element being read starts: its separator, or its first byte.
    pub(crate) member: usize,
    /// Where the container starts.
    pub(crate) start: usize,
    /// Whether its closer could stand earlier, with the rest going to a container of the same
    /// kind around it. If the closer of that one is lost, nobody can say which it was.
    pub(crate) movable: bool,
    /// Whether that holds for the last element.
    pub(crate) last_movable: bool,
    /// Whether it held for the element before the last.
    pub(crate) before_movable: bool,
    /// Whether anything in it was read whole.
    pub(crate) whole: bool,
    /// Whether a comma stood in it where an element may be lost.
    pub(crate) elided: bool,
    /// Whether a container of the same kind was read in it.
    pub(crate) has_twin: bool,
    /// Whether a closer in it could be one too many, with what follows going one level deeper.
    /// If there is a closer too many at the end, nobody can say which one it is.
    pub(crate) mergeable: bool,
    /// What the schema says of it; nothing without one.
    pub(crate) place: Option<Place>,
    /// Keys read that it must have.
    pub(crate) needed: u32,
    /// Whether the schema says that the last thing in it belongs nowhere else.
    pub(crate) fixed: bool,
}

impl Frame {
    pub(crate) const fn new(shape: Shape, start: usize) -> Self {
        Self {
            shape,
            items: 0,
            member: start,
            start,
            movable: false,
            last_movable: false,
            before_movable: false,
            whole: false,
            elided: false,
            has_twin: false,
            mergeable: false,
            place: None,
            needed: 0,
            fixed: false,
        }
    }

    /// Whether its closer could stand earlier.
    pub(crate) const fn may_end_earlier(self) -> bool {
        self.items > 1 && !self.fixed
    }

    pub(crate) const fn is_object(self) -> bool {
        matches!(self.shape, Shape::Object | Shape::Doubled)
    }

    pub(crate) const fn closer(self) -> u8 {
        match self.shape {
            Shape::Object | Shape::Doubled => b'}',
            Shape::Array => b']',
            Shape::Tuple => b')',
        }
    }
}

/// Why the cheapest reading may still not be the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Doubt {
    None,
    /// A guess: never accepted, but shown as a reading.
    Always,
    /// Stands in for a reading whose value the text does not have; only there so that another one
    /// is not taken for the only one.
    Shadow,
}

/// What the last whole value was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Last {
    None,
    String,
    Bare,
    Container,
}

impl Open {
    pub(crate) const fn new(quote: Quote, start: usize) -> Self {
        Self {
            quote,
            start,
            inner: 0,
            inches: false,
            ends_early: false,
            mark: start,
            nested: 0,
            bad: false,
            doubtful: false,
            escaped: false,
        }
    }
}

impl Open {
    /// Whether some backslashes in it are text, so that others may be, too.
    pub(crate) const fn has_doubtful_escapes(&self) -> bool {
        self.bad && self.doubtful
    }
}

/// A string being read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact of its own, noted on the way")]
pub(crate) struct Open {
    pub(crate) quote: Quote,
    /// The offset of its inside.
    pub(crate) start: usize,
    /// Quotes found inside that were not escaped.
    pub(crate) inner: u32,
    /// Whether a quote inside follows a digit, as inches do.
    pub(crate) inches: bool,
    /// Whether a quote inside stands before a mark that may follow a value.
    pub(crate) ends_early: bool,
    /// Where the last quote inside was, or the start.
    pub(crate) mark: usize,
    /// Brackets opened in the text so far, less those closed.
    pub(crate) nested: i32,
    /// Escapes that JSON does not know, and escapes that a path or formula may have meant.
    pub(crate) bad: bool,
    pub(crate) doubtful: bool,
    /// Whether anything in it is escaped, or was changed.
    pub(crate) escaped: bool,
}

/// One reading of the text so far.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is one fact of its own, noted on the way")]
pub(crate) struct Reading {
    pub(crate) at: usize,
    pub(crate) expect: Expect,
    pub(crate) frames: Vec<Frame>,
    pub(crate) string: Option<Open>,
    pub(crate) cost: u32,
    /// Changes that are not on the trail yet.
    pub(crate) changes: Vec<Change>,
    pub(crate) doubt: Doubt,
    /// Where it was first doubted.
    pub(crate) doubt_at: usize,
    /// Where the last comma stands; meaningful right behind one.
    pub(crate) comma: usize,
    /// Where the last value ends.
    pub(crate) value_end: usize,
    /// Where the last value starts.
    pub(crate) value_start: usize,
    pub(crate) last: Last,
    /// Whether the last value is a container in which a closer could be one too many.
    pub(crate) last_mergeable: bool,
    /// What the schema says of the container that closed last, and of the value of the last key.
    pub(crate) last_place: Option<Place>,
    pub(crate) key_place: Option<Place>,
    /// Whether the container that closed last is an object, and what it holds.
    pub(crate) last_container: (bool, u32),
    /// Whether a container lost its closer, one was too many, and a string lost its closing quote.
    pub(crate) lost_closer: bool,
    pub(crate) extra_closer: bool,
    pub(crate) lost_quote: bool,
    /// Whether doubled quotes were seen: then they are this text's habit.
    pub(crate) doubles: bool,
    /// Everything from here on is dropped: the text was cut.
    pub(crate) dropped_from: Option<usize>,
    /// Whether the text ended inside the document.
    pub(crate) cut: bool,
    /// Other ways to this point, nearly as likely.
    pub(crate) rivals: Vec<Rival>,
    /// The last of the changes that are on the trail already.
    pub(crate) tail: u32,
    /// Changes on the trail that end behind this offset are taken back.
    pub(crate) undo: Option<usize>,
    /// The lowest offset behind which changes were taken back.
    pub(crate) floor: usize,
    /// By how much an offset here is greater in the mended text; kept up while skimming.
    pub(crate) shift: isize,
    /// Kind and end of the last change made.
    pub(crate) last_change: Option<(Kind, usize)>,
}

/// Another way to the same point: walking back the trail, at the first place of each pair go on
/// from the second.
#[derive(Clone, Debug)]
pub(crate) struct Rival {
    pub(crate) turns: Vec<(u32, u32)>,
    pub(crate) doubt: Doubt,
    /// By how much its cost is above the other's.
    pub(crate) dearer: u32,
}

impl Reading {
    pub(crate) fn new(at: usize) -> Self {
        Self {
            at,
            expect: Expect::Root,
            frames: Vec::new(),
            string: None,
            cost: 0,
            changes: Vec::new(),
            doubt: Doubt::None,
            doubt_at: at,
            comma: at,
            value_end: at,
            value_start: at,
            last: Last::None,
            last_mergeable: false,
            last_place: None,
            key_place: None,
            last_container: (false, 0),
            lost_closer: false,
            extra_closer: false,
            lost_quote: false,
            doubles: false,
            dropped_from: None,
            cut: false,
            rivals: Vec::new(),
            tail: 0,
            undo: None,
            floor: usize::MAX,
            shift: 0,
            last_change: None,
        }
    }

    pub(crate) fn change(&mut self, kind: Kind, start: usize, end: usize, after: impl Into<Text>) {
        self.last_change = Some((kind, end));
        let change = Change::new(kind, start..end, after);
        self.shift += change.growth();
        self.changes.push(change);
    }

    /// Where a raw offset at the reading is in the mended text.
    #[inline]
    pub(crate) fn mended(&self, at: usize) -> usize {
        at.saturating_add_signed(self.shift)
    }

    /// Takes back all changes that end behind `offset`.
    pub(crate) fn take_back(&mut self, offset: usize) {
        self.changes.retain(|change| change.end() <= offset);
        self.undo = Some(self.undo.map_or(offset, |undo| undo.min(offset)));
        self.floor = self.floor.min(offset);
    }

    pub(crate) fn doubted(&mut self, doubt: Doubt) {
        if self.doubt == Doubt::None {
            self.doubt_at = self.at;
        }
        self.doubt = self.doubt.max(doubt);
    }

    /// A value is whole and ends at `end`.
    pub(crate) fn valued(&mut self, last: Last, end: usize) {
        self.at = end;
        self.value_end = end;
        self.last = last;
        match self.frames.last_mut() {
            Some(frame) => {
                frame.items += 1;
                frame.whole = true;
                frame.mergeable |= frame.has_twin;
                if last != Last::Container {
                    frame.before_movable = frame.last_movable;
                    frame.last_movable = false;
                }
                self.expect = Expect::Next;
            }
            None => self.expect = Expect::Done,
        }
    }

    /// Says whether the document is read to its end.
    pub(crate) fn is_done(&self) -> bool {
        self.expect == Expect::Done && self.string.is_none()
    }

    /// Says whether two readings will go the same way from here.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        self.at == other.at
            && self.expect == other.expect
            && self.string == other.string
            && self.frames.len() == other.frames.len()
            && self
                .frames
                .iter()
                .zip(&other.frames)
                .all(|(one, two)| one.shape == two.shape && one.place == two.place)
    }
}

/// The text and the rules under which it is read.
#[derive(Debug)]
pub(crate) struct Parser<'r> {
    pub(crate) raw: &'r str,
    pub(crate) bytes: &'r [u8],
    pub(crate) status: Status,
    pub(crate) policy: &'r Policy,
    /// The schema that readings are asked to fit; only in a second look.
    pub(crate) guide: Option<&'r dyn Guide>,
    /// Quotes and unmatched closers behind the last offset asked for.
    tally: Cell<close::Tally>,
    /// Nothing is read that begins at or behind this offset: what follows is still to come.
    pub(crate) until: usize,
    /// Texts that do not fit into a change.
    pub(crate) long: RefCell<Long>,
    /// Whether a reading was given up because it had too many changes.
    pub(crate) many: Cell<bool>,
    /// Whether a reading was given up because it was nested too deep.
    pub(crate) deep: Cell<bool>,
}

impl<'r> Parser<'r> {
    pub(crate) fn new(raw: &'r str, status: Status, policy: &'r Policy) -> Self {
        let bytes = raw.as_bytes();
        let tally = Cell::new(close::Tally::at_end(bytes.len()));
        Self {
            raw,
            bytes,
            status,
            policy,
            guide: None,
            tally,
            until: usize::MAX,
            long: RefCell::default(),
            deep: Cell::new(false),
            many: Cell::new(false),
        }
    }

    /// Asks a schema about every reading.
    pub(crate) fn guided(self, guide: &'r dyn Guide) -> Self {
        Self { guide: Some(guide), ..self }
    }

    /// As [`Parser::new`], for a text of which more will come.
    pub(crate) fn part(raw: &'r str, policy: &'r Policy, until: usize, long: Long) -> Self {
        let long = RefCell::new(long);
        Self { until, long, ..Self::new(raw, Status::Cut, policy) }
    }

    /// Says whether more of the text will come.
    pub(crate) fn is_part(&self) -> bool {
        self.until != usize::MAX
    }

    /// A text of any length, for a change.
    pub(crate) fn text(&self, text: &str) -> Text {
        Text::of(text, &mut self.long.borrow_mut())
    }

    #[inline]
    pub(crate) fn byte(&self, at: usize) -> Option<u8> {
        self.bytes.get(at).copied()
    }

    pub(crate) fn rest(&self, at: usize) -> &'r [u8] {
        self.bytes.get(at..).unwrap_or_default()
    }

    pub(crate) fn slice(&self, start: usize, end: usize) -> &'r str {
        self.raw.get(start..end).unwrap_or_default()
    }

    /// Reads one token of a reading that is not done. What is left is put on `out`; nothing, if
    /// the reading cannot go on.
    pub(crate) fn step(&self, mut reading: Reading, out: &mut Vec<Reading>) {
        if reading.string.is_some() {
            self.inside(reading, out);
            return;
        }
        let made = reading.changes.len();
        reading.at = self.skip(reading.at, &mut reading.changes);
        if reading.changes.get(made..).is_some_and(|skipped| self.hides_text(skipped)) {
            reading.doubted(Doubt::Always);
        }
        if reading.at >= self.bytes.len() {
            self.end(reading, out);
            return;
        }
        match reading.expect {
            Expect::Root | Expect::Element | Expect::Again | Expect::Value => {
                self.value(reading, out);
            }
            Expect::Member | Expect::Key => self.key(reading, out),
            Expect::Colon => self.colon(reading, out),
            Expect::Next => self.next(reading, out),
            Expect::Done => out.push(reading),
        }
    }
}
