//! Walks over JSON bytes without recursion and without building a value.

use super::{Member, Scanned};

/// Where the JSON breaks, and how.
#[derive(Debug)]
pub(super) struct Fault {
    /// Offset in the body.
    pub(super) at: usize,
    /// What is wrong.
    pub(super) note: String,
}

/// What may stand next.
#[derive(Clone, Copy)]
enum Expect {
    /// A value, after a colon or a comma.
    Value,
    /// A value or `]`, after `[`.
    ItemOrEnd,
    /// A key or `}`, after `{`.
    KeyOrEnd,
    /// A key, after a comma.
    Key,
    /// A comma or the end of what is open, after a value.
    More,
}

/// One bit for each open bracket: 1 for `{`, 0 for `[`. 128 bits are enough for
/// [`super::MAX_DEPTH`].
#[derive(Default)]
struct Open {
    bits: u128,
    level: usize,
}

struct Walker<'b> {
    body: &'b [u8],
    at: usize,
    open: Open,
    depth: usize,
    found: Scanned,
}

pub(super) fn walk(body: &[u8], depth: usize) -> Result<Scanned, Fault> {
    // Room for an ordinary request's keys: two allocations in all.
    let found = Scanned {
        names: String::with_capacity(128),
        members: Vec::with_capacity(12),
        object: 0..0,
    };
    let mut walker = Walker { body, at: 0, open: Open::default(), depth, found };
    walker.object()?;
    Ok(walker.found)
}

impl Open {
    fn push(&mut self, is_object: bool) {
        self.bits = (self.bits << 1) | u128::from(is_object);
        self.level += 1;
    }

    fn pop(&mut self) {
        self.bits >>= 1;
        self.level -= 1;
    }

    fn in_object(&self) -> bool {
        self.bits & 1 == 1
    }
}

/// How many bytes stand before the next quote, backslash or control character, and whether all of
/// them are ASCII. False may be said too often, when a byte behind the end is not.
fn plain_length(rest: &[u8]) -> (usize, bool) {
    let mut seen = 0;
    let mut length = 0;
    // Blocks of one size without a branch inside: the compiler makes them vector instructions.
    let (blocks, _) = rest.as_chunks::<32>();
    for block in blocks {
        if length == LONG {
            return long_length(rest, seen < 0x80);
        }
        let mut stops = 0;
        for byte in block {
            seen |= byte;
            stops |= u8::from(is_stop(*byte));
        }
        if stops != 0 {
            break;
        }
        length += block.len();
    }
    let (words, _) = rest.get(length..).unwrap_or_default().as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word);
        let stops = stops_in(word);
        seen |= u8::from(word & HIGH_BITS != 0) << 7;
        if stops != 0 {
            return (length + stops.trailing_zeros() as usize / 8, seen < 0x80);
        }
        length += 8;
    }
    let tail = rest.get(length..).unwrap_or_default();
    let count = tail.iter().take_while(|byte| !is_stop(**byte)).count();
    (length + count, seen < 0x80 && tail.is_ascii())
}

/// A stretch without a stop in its first bytes is likely long: a prompt, a picture.
const LONG: usize = 96;

/// As [`plain_length`], for a stretch whose first [`LONG`] bytes have no stop: the next quote or
/// backslash is found first, and what stands before it is looked over in one go, with one answer at
/// its end instead of one a block.
fn long_length(rest: &[u8], is_ascii: bool) -> (usize, bool) {
    let after = rest.get(LONG..).unwrap_or_default();
    let end = memchr::memchr2(b'"', b'\\', after).unwrap_or(after.len());
    let span = after.get(..end).unwrap_or_default();
    let (mut control, mut high) = (0, 0);
    for byte in span {
        control |= u8::from(*byte < 0x20);
        high |= byte & 0x80;
    }
    if control != 0 {
        let before = span.iter().take_while(|byte| **byte >= 0x20).count();
        return (LONG + before, false);
    }
    (LONG + end, is_ascii && high == 0)
}

fn is_stop(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

const LOW_BITS: u64 = 0x0101_0101_0101_0101;
const HIGH_BITS: u64 = LOW_BITS << 7;

/// The high bit of every byte that is a stop. Above the lowest stop there may be false ones: a
/// subtraction borrows from the next byte.
fn stops_in(word: u64) -> u64 {
    let zero = |bytes: u64| bytes.wrapping_sub(LOW_BITS) & !bytes;
    let quote = zero(word ^ (LOW_BITS * 0x22));
    let backslash = zero(word ^ (LOW_BITS * 0x5c));
    let control = word.wrapping_sub(LOW_BITS * 0x20) & !word;
    (quote | backslash | control) & HIGH_BITS
}

impl Walker<'_> {
    fn object(&mut self) -> Result<(), Fault> {
        self.skip_space();
        if self.peek() != Some(b'{') {
            return Err(self.unexpected("an object"));
        }
        let start = self.at;
        self.enter()?;
        let mut expect = Expect::KeyOrEnd;
        while self.open.level > 0 {
            expect = self.step(expect)?;
        }
        self.found.object = start..self.at;
        self.skip_space();
        if self.at < self.body.len() {
            return Err(self.unexpected("nothing after the object"));
        }
        Ok(())
    }

    /// Reads one token and says what may follow it.
    fn step(&mut self, expect: Expect) -> Result<Expect, Fault> {
        self.skip_space();
        match (expect, self.peek()) {
            (Expect::KeyOrEnd, Some(b'}')) | (Expect::ItemOrEnd, Some(b']')) => Ok(self.leave()),
            (Expect::KeyOrEnd | Expect::Key, Some(b'"')) => self.key(),
            (Expect::KeyOrEnd, _) => Err(self.unexpected("a key in double quotes or '}'")),
            (Expect::Key, _) => Err(self.unexpected("a key in double quotes after the comma")),
            (Expect::Value | Expect::ItemOrEnd, _) => self.value(),
            (Expect::More, Some(b',')) => {
                self.at += 1;
                Ok(if self.open.in_object() { Expect::Key } else { Expect::Value })
            }
            (Expect::More, Some(b'}')) if self.open.in_object() => Ok(self.leave()),
            (Expect::More, Some(b']')) if !self.open.in_object() => Ok(self.leave()),
            (Expect::More, _) if self.open.in_object() => {
                Err(self.unexpected("a comma or '}' after a value"))
            }
            (Expect::More, _) => Err(self.unexpected("a comma or ']' after an item")),
        }
    }

    fn key(&mut self) -> Result<Expect, Fault> {
        let start = self.at;
        self.string()?;
        let end = self.at;
        self.skip_space();
        if self.peek() != Some(b':') {
            return Err(self.unexpected("a colon after the key"));
        }
        self.at += 1;
        self.skip_space();
        if self.open.level == 1 {
            self.note_member(start, end)?;
        }
        Ok(Expect::Value)
    }

    fn note_member(&mut self, start: usize, end: usize) -> Result<(), Fault> {
        let name_start = self.found.names.len();
        let quoted = self.body.get(start..end).unwrap_or_default();
        let inside = quoted.get(1..quoted.len().saturating_sub(1)).unwrap_or_default();
        match std::str::from_utf8(inside) {
            Ok(name) if !name.contains('\\') => self.found.names.push_str(name),
            _ => {
                let unescaped = super::text(quoted).ok_or_else(|| Fault {
                    at: start,
                    note: "a key is not readable text".to_owned(),
                })?;
                self.found.names.push_str(&unescaped);
            }
        }
        let name = name_start..self.found.names.len();
        self.found.members.push(Member { name, start, value: self.at..self.at });
        Ok(())
    }

    fn value(&mut self) -> Result<Expect, Fault> {
        match self.peek() {
            Some(b'{') => {
                self.enter()?;
                return Ok(Expect::KeyOrEnd);
            }
            Some(b'[') => {
                self.enter()?;
                return Ok(Expect::ItemOrEnd);
            }
            Some(b'"') => self.string()?,
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.literal(b"true")?,
            Some(b'f') => self.literal(b"false")?,
            Some(b'n') => self.literal(b"null")?,
            _ => return Err(self.unexpected("a value")),
        }
        self.close_member();
        Ok(Expect::More)
    }

    fn enter(&mut self) -> Result<(), Fault> {
        if self.open.level >= self.depth {
            let note = format!("the nesting is deeper than {} levels", self.depth);
            return Err(Fault { at: self.at, note });
        }
        self.open.push(self.peek() == Some(b'{'));
        self.at += 1;
        Ok(())
    }

    fn leave(&mut self) -> Expect {
        self.open.pop();
        self.at += 1;
        self.close_member();
        Expect::More
    }

    /// At the top level a value has just ended: its span is known now.
    fn close_member(&mut self) {
        if self.open.level == 1
            && let Some(member) = self.found.members.last_mut()
        {
            member.value.end = self.at;
        }
    }

    fn string(&mut self) -> Result<(), Fault> {
        let opening = self.at;
        self.at += 1;
        loop {
            self.plain()?;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.escape()?,
                Some(_) => {
                    return Err(self.fault("a control character in a string must be escaped"));
                }
                None => {
                    let note = "a string has no closing quote".to_owned();
                    return Err(Fault { at: opening, note });
                }
            }
        }
    }

    /// Goes over a stretch of a string up to the next quote, backslash or control character, and
    /// checks that it is whole UTF-8.
    fn plain(&mut self) -> Result<(), Fault> {
        let rest = self.body.get(self.at..).unwrap_or_default();
        let (length, is_ascii) = plain_length(rest);
        if !is_ascii && let Err(error) = std::str::from_utf8(rest.get(..length).unwrap_or_default())
        {
            let note = "a string is not valid UTF-8".to_owned();
            return Err(Fault { at: self.at + error.valid_up_to(), note });
        }
        self.at += length;
        Ok(())
    }

    fn escape(&mut self) -> Result<(), Fault> {
        match self.body.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => self.unicode_escape()?,
            _ => return Err(self.fault("a backslash in a string starts no known escape")),
        }
        Ok(())
    }

    /// `\uXXXX`, or two of them that make a surrogate pair.
    fn unicode_escape(&mut self) -> Result<(), Fault> {
        match self.hex_escape() {
            None => Err(self.fault("\\u in a string needs four hex digits")),
            Some(0xDC00..=0xDFFF) => Err(self.fault("\\u in a string is half of a pair")),
            Some(0xD800..=0xDBFF) => {
                self.at += 6;
                match self.hex_escape() {
                    Some(0xDC00..=0xDFFF) => self.at += 6,
                    _ => return Err(self.fault("\\u in a string is half of a pair")),
                }
                Ok(())
            }
            Some(_) => {
                self.at += 6;
                Ok(())
            }
        }
    }

    fn hex_escape(&self) -> Option<u32> {
        let digits = self.body.get(self.at..self.at + 6)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |sum, b| Some(sum * 16 + char::from(*b).to_digit(16)?))
    }

    fn number(&mut self) -> Result<(), Fault> {
        let start = self.at;
        self.at += usize::from(self.peek() == Some(b'-'));
        if self.peek() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        let has_exponent = matches!(self.peek(), Some(b'e' | b'E'));
        if has_exponent {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            self.digits()?;
        }
        // Only these can be too large for a double, which `serde_json` would refuse to build.
        if has_exponent || self.at - start > 300 {
            let number = self.body.get(start..self.at).unwrap_or_default();
            if serde_json::from_slice::<f64>(number).is_err() {
                return Err(Fault { at: start, note: "a number is out of range".to_owned() });
            }
        }
        Ok(())
    }

    /// One digit or more.
    fn digits(&mut self) -> Result<(), Fault> {
        let rest = self.body.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|b| b.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(self.unexpected("a digit in a number")) } else { Ok(()) }
    }

    fn literal(&mut self, word: &[u8]) -> Result<(), Fault> {
        if !self.body.get(self.at..).unwrap_or_default().starts_with(word) {
            return Err(self.unexpected("a value"));
        }
        self.at += word.len();
        Ok(())
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.body.get(self.at).copied()
    }

    fn fault(&self, note: &str) -> Fault {
        Fault { at: self.at, note: note.to_owned() }
    }

    fn unexpected(&self, expected: &str) -> Fault {
        let found = match self.peek() {
            None if self.body.is_empty() => "an empty body".to_owned(),
            None => "the end of the body".to_owned(),
            Some(b'"') => "a string".to_owned(),
            Some(byte @ 0x21..=0x7e) => format!("'{}'", char::from(byte)),
            Some(byte) => format!("byte 0x{byte:02x}"),
        };
        Fault { at: self.at, note: format!("expected {expected}, found {found}") }
    }
}
