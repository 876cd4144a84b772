//! Streams: named events, one list of content blocks, one terminal `message_stop`.

mod read;
mod write;

pub use read::Reader;
pub use write::Writer;

use super::error;
use crate::dialect::ErrorOut;
use crate::frame::sse::write_event;

/// Writes a failure inside a stream: `event: error`, which SDKs raise as a status error.
pub(crate) fn write_error(error: &ErrorOut<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    write_event(&mut out, "error", error::body(error).to_string().as_bytes());
    out
}
