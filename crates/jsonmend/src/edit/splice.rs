//! Replays edits onto a text.

use std::ops::Range;

use super::kind::Kind;
use super::place::Edit;

/// What a change puts in place: up to six bytes, which is nearly always enough, or the number of a
/// longer text in [`Long`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    /// [`Text::LONG`] for a longer text: then the bytes are its number and its length.
    length: u8,
    bytes: [u8; 6],
}

/// The texts that do not fit into a change.
pub(crate) type Long = Vec<Box<str>>;

impl Text {
    const LONG: u8 = u8::MAX;

    /// A text of at most six bytes.
    const fn short(text: &str) -> Self {
        let from = text.as_bytes();
        debug_assert!(from.len() <= 6, "a longer text has its place in the list");
        let mut bytes = [0; 6];
        let mut at = 0;
        while at < from.len() && at < bytes.len() {
            bytes[at] = from[at];
            at += 1;
        }
        #[expect(clippy::cast_possible_truncation, reason = "at most six")]
        Self { length: at as u8, bytes }
    }

    /// A text of any length below 64 KiB.
    pub(crate) fn of(text: &str, long: &mut Long) -> Self {
        if text.len() <= 6 {
            return Self::short(text);
        }
        let number = u32::try_from(long.len()).unwrap_or(u32::MAX);
        let length = u16::try_from(text.len()).unwrap_or_default();
        long.push(text.into());
        let mut bytes = [0; 6];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        bytes[4..].copy_from_slice(&length.to_le_bytes());
        Self { length: Self::LONG, bytes }
    }

    /// How a control character is written in a strict string.
    pub(crate) fn of_control(byte: u8) -> Self {
        let short = match byte {
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            _ => return Self::of_code(byte),
        };
        Self::short(short)
    }

    /// `\u00` and the two digits of this byte.
    pub(crate) fn of_code(byte: u8) -> Self {
        let digit = |four: u8| b"0123456789abcdef".get(usize::from(four)).copied().unwrap_or(b'0');
        Self { length: 6, bytes: [b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte & 15)] }
    }

    /// Length in bytes.
    pub(crate) fn len(self) -> usize {
        if self.length == Self::LONG {
            let [.., low, high] = self.bytes;
            return usize::from(u16::from_le_bytes([low, high]));
        }
        usize::from(self.length)
    }

    /// The text's bytes.
    pub(crate) fn bytes<'t>(&'t self, long: &'t [Box<str>]) -> &'t [u8] {
        if self.length == Self::LONG {
            let number = self.bytes.first_chunk::<4>().copied().unwrap_or_default();
            let text = long.get(u32::from_le_bytes(number) as usize);
            return text.map_or(&[], |text| text.as_bytes());
        }
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

impl From<&'static str> for Text {
    #[inline]
    fn from(text: &'static str) -> Self {
        Self::short(text)
    }
}

/// One change, in offsets of the raw text. 16 bytes, for a reply may need one every ten bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Change {
    start: u32,
    end: u32,
    pub(crate) kind: Kind,
    pub(crate) after: Text,
}

impl Change {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "texts are shorter than 2^28 bytes")]
    pub(crate) fn new(kind: Kind, span: Range<usize>, after: impl Into<Text>) -> Self {
        Self { kind, start: span.start as u32, end: span.end as u32, after: after.into() }
    }

    #[inline]
    pub(crate) const fn start(self) -> usize {
        self.start as usize
    }

    #[inline]
    pub(crate) const fn end(self) -> usize {
        self.end as usize
    }

    /// The same change of the text that begins at `from`.
    pub(crate) fn within(self, from: usize) -> Self {
        Self::new(self.kind, self.start() - from..self.end() - from, self.after)
    }

    /// By how many bytes the text grows; less than 0 if it shrinks.
    #[inline]
    pub(crate) fn growth(self) -> isize {
        self.after.len().cast_signed() - (self.end() - self.start()).cast_signed()
    }
}

/// The text with all changes made. They are in order and do not overlap.
pub(crate) fn spliced(raw: &str, changes: &[Change], long: &[Box<str>]) -> String {
    let mut text = Vec::new();
    spliced_into(&mut text, raw, 0..raw.len(), (changes, long));
    // The parts are text, and so is the whole.
    String::from_utf8(text).unwrap_or_default()
}

/// Adds the part of the raw text to `text`, with its changes made.
///
/// Most changes put as many bytes as they take: a run of them is copied at once and written over.
#[inline(never)]
pub(crate) fn spliced_into(
    text: &mut Vec<u8>,
    raw: &str,
    part: Range<usize>,
    (changes, long): (&[Change], &[Box<str>]),
) {
    let bytes = raw.as_bytes();
    text.reserve(room_for(&part, changes));
    let mut kept = part.start;
    // Changes from here on are in the text as they are in the raw one, but for their bytes.
    let mut run = 0;
    for (at, change) in changes.iter().enumerate() {
        if change.growth() == 0 {
            continue;
        }
        let same = changes.get(run..at).unwrap_or_default();
        overwritten(text, bytes.get(kept..change.start()).unwrap_or_default(), kept, (same, long));
        text.extend_from_slice(change.after.bytes(long));
        kept = change.end();
        run = at + 1;
    }
    let same = changes.get(run..).unwrap_or_default();
    overwritten(text, bytes.get(kept..part.end).unwrap_or_default(), kept, (same, long));
}

/// Changes that are few enough to be summed up for the room they need. One of many documents in a
/// long text has few, and takes most of it away.
const FEW: usize = 256;

fn room_for(part: &Range<usize>, changes: &[Change]) -> usize {
    if changes.len() > FEW {
        // Few of them put more than one byte more than they take; room that is not used costs
        // nothing.
        return part.len() + changes.len();
    }
    let growth: isize = changes.iter().map(|change| change.growth()).sum();
    part.len().saturating_add_signed(growth)
}

/// Adds bytes that begin at `start` in the raw text, and makes changes that put as much as they
/// take.
fn overwritten(
    text: &mut Vec<u8>,
    bytes: &[u8],
    start: usize,
    (changes, long): (&[Change], &[Box<str>]),
) {
    let base = text.len();
    text.extend_from_slice(bytes);
    let Some(added) = text.get_mut(base..) else { return };
    for change in changes {
        let place = added.get_mut(change.start().saturating_sub(start)..).unwrap_or_default();
        for (old, new) in place.iter_mut().zip(change.after.bytes(long)) {
            *old = *new;
        }
    }
}

/// Makes the edits of a report in the raw reply: the mended text, which parses strictly to the
/// value of the report. `None` if the edits are not of this reply.
pub fn apply(edits: &[Edit], raw: &str) -> Option<String> {
    let mut text = String::with_capacity(raw.len());
    let mut kept = 0;
    for edit in edits {
        if raw.get(edit.span.clone())? != edit.before {
            return None;
        }
        text.push_str(raw.get(kept..edit.span.start)?);
        text.push_str(&edit.after);
        kept = edit.span.end;
    }
    text.push_str(raw.get(kept..)?);
    Some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_long_texts_come_back_as_they_went_in() {
        let mut long = Long::new();
        for text in ["", "\"", "\\u001f", "[1.2345]", "é"] {
            let kept = Text::of(text, &mut long);
            assert_eq!(kept.bytes(&long), text.as_bytes());
            assert_eq!(kept.len(), text.len());
        }
        assert_eq!(Text::of_control(0x1f).bytes(&long), b"\\u001f");
        assert_eq!(long.len(), 1);
        assert_eq!(size_of::<Change>(), 16);
    }

    #[test]
    fn changes_of_the_same_length_and_others_are_made_in_one_text() {
        let change = |span, after: &'static str| Change::new(Kind::SingleQuotes, span, after);
        let changes = [change(1..2, "\""), change(3..4, "\""), change(4..4, ","), change(6..7, "")];
        assert_eq!(spliced("['a' b]x", &changes, &[]), "[\"a\", bx");
    }
}
