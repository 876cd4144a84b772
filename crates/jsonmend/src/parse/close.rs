//! Judges whether a quote ends its string, by what follows it.

use super::ahead::KeyAhead;
use super::quote::Quote;
use super::{Frame, Parser};

/// How well what follows a quote goes with the end of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Close {
    /// It cannot be the end.
    Never,
    /// It may be, with something else lost.
    Fair,
    /// Just what follows a string.
    Clean,
}

/// Quotes, and closers less openers, from an offset to the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tally {
    from: usize,
    quotes: isize,
    closers: isize,
}

impl Tally {
    /// Nothing is counted yet.
    pub(super) const fn at_end(end: usize) -> Self {
        Self { from: end, quotes: 0, closers: 0 }
    }

    /// Counts from another offset on: only what lies between is looked at.
    fn move_to(&mut self, bytes: &[u8], from: usize) {
        let (start, end, sign) =
            if from < self.from { (from, self.from, 1) } else { (self.from, from, -1) };
        for byte in bytes.get(start..end).unwrap_or_default() {
            self.quotes += sign * isize::from(*byte == b'"');
            self.closers += sign * isize::from(matches!(byte, b'}' | b']'));
            self.closers -= sign * isize::from(matches!(byte, b'{' | b'['));
        }
        self.from = from;
    }
}

impl Parser<'_> {
    /// Says whether a closer stands right behind the root: one too many.
    pub(crate) fn has_closer_at(&self, end: usize) -> bool {
        matches!(self.byte(self.peek(end)), Some(b'}' | b']'))
    }

    /// Says whether what follows the root is unlike prose: half a string, or a closer without its
    /// opener. Closers right behind the root do not count: they are just too many.
    pub(crate) fn is_strange_rest(&self, at: usize) -> bool {
        // A quote right behind the root: its text may go on.
        if matches!(self.rest(at), [b'"' | 0xe2, ..]) && Quote::at(self.rest(at)).is_some() {
            return true;
        }
        let mut from = self.peek(at);
        while let Some(b'}' | b']' | b')' | b';' | b',') = self.byte(from) {
            from = self.peek(from + 1);
        }
        if from >= self.bytes.len() {
            return false;
        }
        let mut tally = self.tally.get();
        tally.move_to(self.bytes, from);
        self.tally.set(tally);
        tally.quotes % 2 == 1 || tally.closers > 0
    }

    /// Judges the end of a value's string whose closing quote ends at `after`.
    pub(super) fn ends_value(&self, frames: &[Frame], after: usize) -> Close {
        let at = self.peek(after);
        let Some(byte) = self.byte(at) else { return Close::Clean };
        let Some(frame) = frames.last() else {
            return Close::Fair;
        };
        match byte {
            b',' | b';' => self.ends_before_comma(frames, at + 1),
            b'}' | b']' | b')' => self.ends_before_closer(frames, at),
            b'+' => match Quote::at(self.rest(self.peek(at + 1))) {
                Some(_) => Close::Clean,
                None => Close::Never,
            },
            b'`' | b'~' if self.is_fence_line(after, at) => Close::Fair,
            b':' => Close::Fair,
            _ => match self.fullwidth(at) {
                Some((b',', width)) => self.ends_before_comma(frames, at + width),
                Some((b'}' | b']', _)) => Close::Clean,
                _ if frame.is_object() => self.before_lost_comma(at, after),
                _ => self.before_element(at, after),
            },
        }
    }

    /// Says whether marks of a fence stand at `at`, in a line below `after`.
    fn is_fence_line(&self, after: usize, at: usize) -> bool {
        let marks = self.rest(at);
        (marks.starts_with(b"```") || marks.starts_with(b"~~~"))
            && self.slice(after, at).contains('\n')
    }

    /// In an object, a comma may be lost before a key.
    fn before_lost_comma(&self, at: usize, after: usize) -> Close {
        match self.key_ahead(at) {
            KeyAhead::Quoted if at > after => Close::Clean,
            KeyAhead::None => Close::Never,
            _ => Close::Fair,
        }
    }

    /// In an array, a comma may be lost before an element.
    fn before_element(&self, at: usize, after: usize) -> Close {
        let is_marked = matches!(self.byte(at), Some(b'"' | b'{' | b'['));
        if is_marked && self.slice(after, at).contains('\n') {
            // Text in quotes does not go on in the next line with another quote.
            return Close::Clean;
        }
        if Quote::at(self.rest(at)).is_some() || matches!(self.byte(at), Some(b'{' | b'[')) {
            return Close::Fair;
        }
        let end = self.word_end(at);
        let is_scalar = self.is_scalar(at, end);
        let is_half_quoted = end > at && Quote::at(self.rest(end)).is_some();
        if is_scalar || is_half_quoted { Close::Fair } else { Close::Never }
    }

    fn ends_before_comma(&self, frames: &[Frame], behind: usize) -> Close {
        let at = self.peek(behind);
        let Some(byte) = self.byte(at) else { return Close::Clean };
        let Some(frame) = frames.last() else { return Close::Fair };
        match byte {
            b'}' | b']' | b')' => return self.ends_before_closer(frames, at),
            b',' => return Close::Fair,
            _ => {}
        }
        let is_quote = Quote::at(self.rest(at)).is_some();
        if frame.is_object() {
            return match self.key_ahead(at) {
                KeyAhead::Quoted | KeyAhead::Bare | KeyAhead::Half => Close::Clean,
                KeyAhead::None if is_quote => Close::Fair,
                KeyAhead::None => Close::Never,
            };
        }
        if is_quote || matches!(byte, b'{' | b'[' | b'(') {
            return Close::Clean;
        }
        let end = self.word_end(at);
        match (self.is_scalar(at, end), Quote::at(self.rest(end))) {
            (true, None) => Close::Clean,
            (false, None) if end == at => Close::Never,
            _ => Close::Fair,
        }
    }

    /// Follows the closers at `at` through the open containers.
    fn ends_before_closer(&self, frames: &[Frame], mut at: usize) -> Close {
        let mut open = frames;
        let mut best = Close::Clean;
        while let Some(byte @ (b'}' | b']' | b')')) = self.byte(at) {
            let Some((frame, outer)) = open.split_last() else { break };
            if frame.closer() != byte {
                best = Close::Fair;
            }
            open = outer;
            at = self.peek(at + 1);
        }
        let Some(frame) = open.last() else {
            return if self.is_strange_rest(at) { Close::Fair } else { best };
        };
        let follows = match self.byte(at) {
            None => Close::Clean,
            Some(b',' | b';') => self.ends_before_comma(open, at + 1),
            Some(_) if frame.is_object() => match self.key_ahead(at) {
                KeyAhead::None => Close::Never,
                _ => Close::Fair,
            },
            Some(_) => self.before_element(at, at),
        };
        best.min(follows)
    }
}
