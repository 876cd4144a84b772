//! Server-sent events over bytes: any split of the input gives the same events.
use bytes::Bytes;

/// One event of a stream.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Event {
    /// The bytes as received, from its first field to its closing blank line, comments included.
    pub raw: Bytes,
    /// The `event` field; empty: none (`message`).
    pub name: String,
    /// The `data` lines joined by LF.
    pub data: Bytes,
}

/// What the decoder found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A dispatched event with data.
    Event(Event),
    /// Comment lines or an event without data: a sign of life. The bytes as received.
    Alive(Bytes),
}

/// Bounds of one stream.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The longest line, in bytes.
    pub line: usize,
    /// The largest event, in bytes.
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
#[derive(Debug)]
pub struct Decoder {}

impl Default for Limits {
    fn default() -> Self {
        Self { line: 4 << 20, event: 8 << 20 }
    }
}

impl Decoder {
    /// A decoder with these bounds.
    pub fn new(_limits: Limits) -> Self {
        Self {}
    }
    /// Takes the next piece.
    pub fn push(&mut self, _piece: Bytes) {}
    /// The next frame that is complete, if any.
    ///
    /// # Errors
    /// [`SseFault`] when a bound is broken; the decoder gives nothing more.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, SseFault> {
        Ok(None)
    }
    /// The body ended: an event whose blank line is missing is dispatched if it has data.
    ///
    /// # Errors
    /// As [`Decoder::next_frame`].
    pub fn finish(&mut self) -> Result<Option<Frame>, SseFault> {
        Ok(None)
    }
}
