//! Server-sent events over bytes: any split of the input gives the same events.
//!
//! The rules are those of the HTML standard's event stream (9.2.6), in bytes, so that a character
//! cut in two is of no concern. Four things go beyond it, because servers do:
//!
//! - a line that begins with `{` is an event of its own whose data is that line: some servers
//!   answer a failure inside a stream with a bare JSON line and hang up. It closes an open event;
//! - a field `error` is data of an event of that name: some servers tell a failure so;
//! - a comment between two events is told at once, without waiting for a blank line;
//! - what stands unclosed at the end of the body is handed out as [`Frame::Cut`].
//!
//! The raw bytes of all frames, put together, are the body. A piece that holds whole events is
//! never copied: `raw` and `data` are slices of it. Each byte is looked at once, and copied once
//! only when its event spans two pieces.
//!
//! A line may end in LF, CRLF or CR. Whether a CR at the end of a piece is a whole line end shows
//! with the next byte, so the line waits for it; unless the line before ended in a bare CR, which
//! shows that this server writes those: then nothing waits.

use std::collections::VecDeque;
use std::ops::Range;

use bytes::{Buf, Bytes, BytesMut};
use memchr::{memchr, memchr2};

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The bytes as received, from its first field to its closing blank line, comments inside it
    /// included. An event that is a bare JSON line, or was closed by one, has no blank line.
    pub raw: Bytes,
    /// The `event` field; empty: none (`message`).
    pub name: String,
    /// The `data` lines joined by LF. May be empty.
    pub data: Bytes,
}

/// What the decoder found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A dispatched event with data.
    Event(Event),
    /// A comment line, a blank line or an event without data: a sign of life. The bytes as
    /// received.
    Alive(Bytes),
    /// The body ended inside this event, which has data: its last line or its blank line is
    /// missing. Only [`Decoder::finish`] gives it. Some servers end `data: [DONE]` so; half a JSON
    /// text comes so too. Who passes `raw` on and writes more must write a blank line between.
    Cut(Event),
}

/// Bounds of one stream.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest line, in bytes, without its end.
    pub line: usize,
    /// The largest event, in bytes, line ends included.
    pub event: usize,
}

/// A stream that breaks its bounds or its form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SseFault {
    /// A line or event over its limit.
    #[error("a stream event is larger than {limit} bytes")]
    TooLarge {
        /// The limit that was broken.
        limit: usize,
    },
}

/// Cuts bytes into events.
///
/// Offsets inside count from the first byte of the open frame, which is `carry` followed by
/// `front`.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    /// The open frame's bytes out of pieces that are used up.
    carry: BytesMut,
    /// What is left of the piece in work.
    front: Bytes,
    /// Pieces that wait. None is empty.
    queue: VecDeque<Bytes>,
    /// Where the open line begins.
    line: usize,
    /// How far line ends were looked for.
    scanned: usize,
    end: LineEnd,
    /// Whether the last line ended in a bare CR.
    bare: bool,
    open: Open,
    /// A second frame found with the last one.
    ready: Option<Frame>,
    /// Whether no line was read yet: a byte order mark may stand here.
    fresh: bool,
    fault: Option<SseFault>,
}

/// The fields of the open event.
#[derive(Debug, Default)]
struct Open {
    /// Whether any field line was read, known or not.
    begun: bool,
    name: String,
    data: Vec<Range<usize>>,
}

/// What the last byte looked at means for the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineEnd {
    /// The line goes on.
    Open,
    /// It was a CR; the next byte shows whether an LF belongs to it.
    AfterCr,
    /// It was a CR that ended its line already; an LF now is the rest of that line end.
    SkipLf,
}

/// One line: its content is `start..end`, the next one begins at `next`.
#[derive(Clone, Copy, Debug)]
struct Line {
    start: usize,
    end: usize,
    next: usize,
}

impl Default for Limits {
    fn default() -> Self {
        // Recorded streams stay under 100 KiB a line; a base64 image of a few MiB must pass.
        Self { line: 4 << 20, event: 8 << 20 }
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new(Limits::default())
    }
}

impl Frame {
    /// The bytes as received.
    pub fn raw(&self) -> &Bytes {
        match self {
            Self::Event(event) | Self::Cut(event) => &event.raw,
            Self::Alive(raw) => raw,
        }
    }
}

impl Decoder {
    /// A decoder with these bounds.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            carry: BytesMut::new(),
            front: Bytes::new(),
            queue: VecDeque::new(),
            line: 0,
            scanned: 0,
            end: LineEnd::Open,
            bare: false,
            open: Open::default(),
            ready: None,
            fresh: true,
            fault: None,
        }
    }

    /// Takes the next piece, which may be empty. Drain [`Decoder::next_frame`] before the next
    /// one: pieces that wait are held whole.
    pub fn push(&mut self, piece: Bytes) {
        if self.fault.is_none() && !piece.is_empty() {
            self.queue.push_back(piece);
        }
    }

    /// The next frame that is complete, if any.
    ///
    /// # Errors
    /// [`SseFault`] when a bound is broken; the decoder gives nothing more, and the same error
    /// each time it is asked.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, SseFault> {
        if let Some(frame) = self.ready.take() {
            return Ok(Some(frame));
        }
        loop {
            if let Some(fault) = &self.fault {
                return Err(fault.clone());
            }
            let Some(line) = self.next_line() else {
                self.check(self.content_end(), self.held())?;
                return Ok(None);
            };
            self.check(line.end, line.next)?;
            if let Some(frame) = self.take_line(line) {
                return Ok(Some(frame));
            }
        }
    }

    /// The body ended: gives what is left, one frame a call, until `None`. An event whose blank
    /// line is missing is a [`Frame::Cut`] if it has data, else it is [`Frame::Alive`].
    ///
    /// # Errors
    /// As [`Decoder::next_frame`].
    pub fn finish(&mut self) -> Result<Option<Frame>, SseFault> {
        if let Some(frame) = self.next_frame()? {
            return Ok(Some(frame));
        }
        let next = self.held();
        if self.end == LineEnd::AfterCr {
            self.end = LineEnd::Open;
            let line = Line { start: self.line, end: next - 1, next };
            if let Some(frame) = self.take_line(line) {
                return Ok(Some(frame));
            }
        }
        if next > self.line {
            let line = Line { start: self.line, end: next, next };
            let cut = |frame| match frame {
                Frame::Event(event) => Frame::Cut(event),
                other => other,
            };
            let found = self.take_line(line);
            if let Some(second) = self.ready.take() {
                self.ready = Some(cut(second));
                return Ok(found);
            }
            if let Some(frame) = found {
                return Ok(Some(cut(frame)));
            }
        }
        if self.held() == 0 {
            return Ok(None);
        }
        Ok(Some(match self.dispatch(self.held()) {
            Frame::Event(event) => Frame::Cut(event),
            other => other,
        }))
    }

    /// Bytes of the open frame that are here.
    fn held(&self) -> usize {
        self.carry.len() + self.front.len()
    }

    /// Where the content of the open line ends, as far as it is here.
    fn content_end(&self) -> usize {
        self.held() - usize::from(self.end == LineEnd::AfterCr)
    }

    fn check(&mut self, content_end: usize, frame_end: usize) -> Result<(), SseFault> {
        let Limits { line, event } = self.limits;
        let limit = match (content_end.saturating_sub(self.line) > line, frame_end > event) {
            (false, false) => return Ok(()),
            (true, false) => line,
            // Both: the one that was broken first, which is all that smaller pieces would show.
            (true, true) if self.line.saturating_add(line) <= event => line,
            (_, true) => event,
        };
        let fault = SseFault::TooLarge { limit };
        self.fault = Some(fault.clone());
        self.carry = BytesMut::new();
        self.front = Bytes::new();
        self.queue.clear();
        Err(fault)
    }

    /// Finds the end of the open line. `None`: not here yet, or a bound is in danger; then the
    /// caller checks.
    fn next_line(&mut self) -> Option<Line> {
        loop {
            let at = self.scanned - self.carry.len();
            let Some(&byte) = self.front.get(at) else {
                let over = self.content_end().saturating_sub(self.line) > self.limits.line
                    || self.held() > self.limits.event;
                if over || self.queue.is_empty() {
                    return None;
                }
                self.refill();
                continue;
            };
            match self.end {
                LineEnd::AfterCr => {
                    self.end = LineEnd::Open;
                    let end = self.scanned - 1;
                    self.bare = byte != b'\n';
                    self.scanned += usize::from(!self.bare);
                    return Some(Line { start: self.line, end, next: self.scanned });
                }
                LineEnd::SkipLf => {
                    self.end = LineEnd::Open;
                    if byte == b'\n' {
                        self.bare = false;
                        self.scanned += 1;
                        self.line = self.scanned;
                    }
                    continue;
                }
                LineEnd::Open => {}
            }
            let rest = self.front.get(at..).unwrap_or_default();
            let Some(found) = memchr2(b'\r', b'\n', rest) else {
                self.scanned = self.held();
                continue;
            };
            let end = self.scanned + found;
            self.scanned = end + 1;
            if rest.get(found) == Some(&b'\n') {
                self.bare = false;
                return Some(Line { start: self.line, end, next: end + 1 });
            }
            if self.bare {
                self.end = LineEnd::SkipLf;
                return Some(Line { start: self.line, end, next: end + 1 });
            }
            self.end = LineEnd::AfterCr;
        }
    }

    /// Sets the piece in work aside and takes the next one.
    fn refill(&mut self) {
        self.carry.extend_from_slice(&self.front);
        self.front = self.queue.pop_front().unwrap_or_default();
    }

    /// Reads one complete line; gives a frame when it closes one.
    fn take_line(&mut self, line: Line) -> Option<Frame> {
        self.line = line.next;
        self.join(line);
        let mut start = line.start;
        let mut content = self.view(start..line.end);
        if self.fresh
            && let Some(rest) = content.strip_prefix(b"\xEF\xBB\xBF")
        {
            content = rest;
            start += 3;
        }
        let field = match content {
            [] => Field::Blank,
            [b':', ..] => Field::Comment,
            [b'{', ..] => Field::BareJson,
            _ => Field::read(content, start, line.end),
        };
        self.fresh = false;
        match field {
            Field::Blank => return Some(self.dispatch(line.next)),
            Field::Comment if !self.open.begun => {
                return Some(Frame::Alive(self.cut(line.next)));
            }
            Field::BareJson => return Some(self.bare_json(start, line)),
            Field::Comment => return None,
            Field::Data(value) => self.open.data.push(value),
            Field::Name(name) => self.open.name = name,
            Field::Error(value) => {
                self.open.data.push(value);
                "error".clone_into(&mut self.open.name);
            }
            Field::Other => {}
        }
        self.open.begun = true;
        None
    }

    /// A line that is an event of its own; an open event with data is closed before it.
    fn bare_json(&mut self, start: usize, line: Line) -> Frame {
        if self.open.data.is_empty() {
            self.open.data.push(start..line.end);
            return self.dispatch(line.next);
        }
        let first = self.dispatch(line.start);
        self.open.data.push(start - line.start..line.end - line.start);
        self.ready = Some(self.dispatch(line.next - line.start));
        first
    }

    /// Closes the open frame, whose bytes end at `at`.
    fn dispatch(&mut self, at: usize) -> Frame {
        let raw = self.cut(at);
        let open = std::mem::take(&mut self.open);
        let data = match open.data.as_slice() {
            [] => return Frame::Alive(raw),
            [one] => raw.slice(one.clone()),
            lines => {
                let size = lines.iter().map(|line| line.len() + 1).sum();
                let mut joined = Vec::with_capacity(size);
                for line in lines {
                    joined.extend_from_slice(raw.get(line.clone()).unwrap_or_default());
                    joined.push(b'\n');
                }
                joined.pop();
                Bytes::from(joined)
            }
        };
        Frame::Event(Event { raw, name: open.name, data })
    }

    /// Takes the first `at` bytes of the open frame out.
    fn cut(&mut self, at: usize) -> Bytes {
        self.line = self.line.saturating_sub(at);
        self.scanned = self.scanned.saturating_sub(at);
        if self.carry.is_empty() {
            return self.front.split_to(at.min(self.front.len()));
        }
        self.pull(at);
        self.carry.split_to(at.min(self.carry.len())).freeze()
    }

    /// Makes a line contiguous that began in an earlier piece.
    fn join(&mut self, line: Line) {
        if line.start < self.carry.len() {
            self.pull(line.next);
        }
    }

    /// Moves bytes from `front` to `carry` until it holds `size`.
    fn pull(&mut self, size: usize) {
        let more = size.saturating_sub(self.carry.len()).min(self.front.len());
        self.carry.extend_from_slice(self.front.get(..more).unwrap_or_default());
        self.front.advance(more);
    }

    /// Bytes of the open frame that lie in one of the two buffers.
    fn view(&self, range: Range<usize>) -> &[u8] {
        let carried = self.carry.len();
        let found = if range.start < carried {
            self.carry.get(range)
        } else {
            self.front.get(range.start - carried..range.end - carried)
        };
        found.unwrap_or_default()
    }
}

/// What a line says.
enum Field {
    Blank,
    Comment,
    BareJson,
    Data(Range<usize>),
    Name(String),
    /// A failure told in a field of its own.
    Error(Range<usize>),
    /// `id`, `retry`, or a field that is not known.
    Other,
}

impl Field {
    /// Reads `content`, which stands at `start..end` of its frame and is neither blank nor a
    /// comment.
    fn read(content: &[u8], start: usize, end: usize) -> Self {
        let colon = memchr(b':', content).unwrap_or(content.len());
        let (name, rest) = content.split_at(colon);
        let value = rest.strip_prefix(b":").unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"data" => Self::Data((end - value.len()).max(start)..end),
            // `error: {…}`: an event of that name, told in one line.
            b"error" if !value.trim_ascii().is_empty() => {
                Self::Error((end - value.len()).max(start)..end)
            }
            b"event" => Self::Name(String::from_utf8_lossy(value).into_owned()),
            _ => Self::Other,
        }
    }
}

/// Appends one event. An empty `name` writes no `event` field. Line ends inside `data` become
/// further `data` lines (a CR is read back as LF); those inside `name` are left out.
pub fn write_event(out: &mut Vec<u8>, name: &str, data: &[u8]) {
    out.reserve(name.len() + data.len() + 24);
    if !name.is_empty() {
        out.extend_from_slice(b"event: ");
        out.extend(name.bytes().filter(|b| !matches!(b, b'\r' | b'\n')));
        out.push(b'\n');
    }
    write_lines(out, b"data: ", data);
    out.push(b'\n');
}

/// Appends a comment, closed by a blank line, as a sign of life or as a note that SDKs skip.
pub fn comment(out: &mut Vec<u8>, text: &str) {
    write_lines(out, b": ", text.as_bytes());
    out.push(b'\n');
}

fn write_lines(out: &mut Vec<u8>, prefix: &[u8], mut rest: &[u8]) {
    loop {
        out.extend_from_slice(prefix);
        let end = memchr2(b'\r', b'\n', rest);
        let (line, after) = rest.split_at(end.unwrap_or(rest.len()));
        out.extend_from_slice(line);
        out.push(b'\n');
        if end.is_none() {
            return;
        }
        rest = after.strip_prefix(b"\r\n").or_else(|| after.get(1..)).unwrap_or_default();
    }
}
