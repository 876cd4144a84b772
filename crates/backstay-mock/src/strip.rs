//! A stream's events, rendered one after the other into one buffer and cut apart at the end.

use bytes::Bytes;

/// What an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Opens the message or a block.
    Open,
    /// A piece of text, refusal or tool arguments.
    Content,
    /// Closes a block.
    Close,
    /// Carries the finish value.
    Finish,
    /// Carries only usage.
    Usage,
    /// The protocol's terminator.
    Done,
    /// Keep-alive.
    Ping,
    /// An error in the stream.
    Error,
}

/// One event on the wire.
#[derive(Clone, Debug)]
pub(crate) struct Event {
    pub(crate) part: Part,
    pub(crate) bytes: Bytes,
}

/// Events under construction.
#[derive(Debug, Default)]
pub(crate) struct Strip {
    buffer: Vec<u8>,
    marks: Vec<(Part, usize)>,
}

impl Strip {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { buffer: Vec::with_capacity(bytes), marks: Vec::with_capacity(bytes / 200) }
    }

    /// The buffer, to write the next event into; [`Self::mark`] ends it.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// Ends the event written since the last mark.
    pub(crate) fn mark(&mut self, part: Part) {
        self.marks.push((part, self.buffer.len()));
    }

    /// Writes a whole event.
    pub(crate) fn event(&mut self, part: Part, text: &str) {
        self.buffer.extend_from_slice(text.as_bytes());
        self.mark(part);
    }

    /// The events, sharing one allocation.
    pub(crate) fn cut(self) -> Vec<Event> {
        let mut rest = Bytes::from(self.buffer);
        let mut from = 0;
        self.marks
            .into_iter()
            .map(|(part, to)| {
                let bytes = rest.split_to(to - from);
                from = to;
                Event { part, bytes }
            })
            .collect()
    }
}

/// Appends `text` as a JSON string.
pub(crate) fn quote(buffer: &mut Vec<u8>, text: &str) {
    if serde_json::to_writer(&mut *buffer, text).is_err() {
        // Writing a string to memory does not fail; an empty one keeps the JSON whole if it did.
        buffer.extend_from_slice(b"\"\"");
    }
}

/// Appends a number.
pub(crate) fn number(buffer: &mut Vec<u8>, number: u64) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    let mut left = number;
    loop {
        at -= 1;
        if let Some(digit) = digits.get_mut(at) {
            *digit = b'0' + u8::try_from(left % 10).unwrap_or(0);
        }
        left /= 10;
        if left == 0 {
            break;
        }
    }
    buffer.extend_from_slice(digits.get(at..).unwrap_or(b""));
}

/// Cuts `text` into at most `count` pieces of about the same size, none empty, no character cut.
pub(crate) fn pieces(text: &str, count: usize) -> Vec<&str> {
    let count = count.clamp(1, text.len().max(1));
    let mut pieces = Vec::with_capacity(count);
    let mut from = 0;
    for at in 1..=count {
        let mut to = text.len() * at / count;
        while !text.is_char_boundary(to) {
            to += 1;
        }
        if let Some(piece) = text.get(from..to)
            && !piece.is_empty()
        {
            pieces.push(piece);
            from = to;
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_put_together_are_the_text() {
        for text in ["", "a", "naïve 東京 text", &"word ".repeat(40)] {
            for count in [0, 1, 3, 16, 1_000] {
                let cut = pieces(text, count);
                assert_eq!(cut.concat(), text);
                assert!(cut.len() <= count.max(1) && cut.iter().all(|p| !p.is_empty()));
            }
        }
        assert_eq!(pieces(&"word ".repeat(40), 40).len(), 40);
    }

    #[test]
    fn numbers_are_written_as_they_are() {
        for n in [0, 7, 10, 645, u64::MAX] {
            let mut buffer = Vec::new();
            number(&mut buffer, n);
            assert_eq!(buffer, n.to_string().as_bytes());
        }
    }

    #[test]
    fn a_strip_is_cut_at_its_marks() {
        let mut strip = Strip::default();
        strip.event(Part::Open, "one");
        strip.event(Part::Done, "three");
        let events = strip.cut();
        assert_eq!(events.len(), 2);
        assert_eq!((events[0].part, &events[0].bytes[..]), (Part::Open, &b"one"[..]));
        assert_eq!((events[1].part, &events[1].bytes[..]), (Part::Done, &b"three"[..]));
    }
}
