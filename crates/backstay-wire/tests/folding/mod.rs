//! Reads a stream that arrives in pieces, for the tests that look at what it adds up to.

use backstay_wire::chat::Fold;
use backstay_wire::dialect::Dialect;
use backstay_wire::frame::sse::{Decoder, Frame};
use bytes::Bytes;

/// What a stream of `dialect` adds up to that arrives in these pieces.
pub(crate) fn fold<'a>(dialect: Dialect, pieces: impl IntoIterator<Item = &'a [u8]>) -> Fold {
    let (mut decoder, mut reader, mut fold) =
        (Decoder::default(), dialect.stream_reader(), Fold::default());
    let mut deltas = Vec::new();
    let mut take = |frame| {
        if let Frame::Event(event) | Frame::Cut(event) = frame {
            reader.read(&event, &mut deltas).unwrap();
            for delta in deltas.drain(..) {
                fold.push(&delta);
            }
        }
    };
    for piece in pieces {
        decoder.push(Bytes::copy_from_slice(piece));
        while let Some(frame) = decoder.next_frame().unwrap() {
            take(frame);
        }
    }
    while let Some(frame) = decoder.finish().unwrap() {
        take(frame);
    }
    fold
}
