//! Reads a request's body at the door: bounded in bytes, in time, and in what all bodies take.

use std::time::Duration;

use backstay::fault::CallError;
use backstay_decide::Local;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use crate::room::{Place, Room};

/// Longest wait for a whole body. A minute carries 32 MiB over 4.5 Mbit/s.
const BODY: Duration = Duration::from_mins(1);

/// Most bytes set aside for what is only announced.
const RESERVED: usize = 1 << 20;

/// How much of a body that is too large is read and thrown away, so that the caller, still
/// sending, gets to read why.
const DRAIN: u64 = 256 << 20;

/// How long that may take.
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// The whole body, at most `most` bytes, with its place in `room`.
///
/// # Errors
/// It is larger, takes too long, breaks off, or there is no room for it.
pub(crate) async fn read<B: Body<Data = Bytes> + Unpin>(
    headers: &HeaderMap,
    mut body: B,
    most: u64,
    room: &Room,
) -> Result<Bytes, CallError> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced: Option<u64> = announced.and_then(|value| value.parse().ok());
    if announced.is_some_and(|bytes| bytes > most) {
        drain(body).await;
        return Err(too_large(announced, most));
    }
    let end = Instant::now() + BODY;
    let mut first: Option<Bytes> = None;
    let mut all = BytesMut::new();
    let mut place = Place::default();
    while let Some(frame) = timeout_at(end, body.frame()).await.map_err(|_| slow())? {
        let Ok(piece) = frame.map_err(|_| broken())?.into_data() else { continue };
        let size = all.len() + first.as_ref().map_or(0, Bytes::len) + piece.len();
        if size as u64 > most {
            // Not needed any more, and the drain may take its time.
            drop((first, all, piece, place));
            drain(body).await;
            return Err(too_large(announced, most));
        }
        if let Err(full) = room.grow(&mut place, size).await {
            drop((first, all, piece, place));
            drain(body).await;
            return Err(full);
        }
        match first.take() {
            None if all.is_empty() => first = Some(piece),
            None => all.extend_from_slice(&piece),
            Some(earlier) => {
                let announced = announced.and_then(|bytes| usize::try_from(bytes).ok());
                let announced = announced.unwrap_or_default().min(RESERVED);
                all.reserve(announced.max(earlier.len() + piece.len()));
                all.extend_from_slice(&earlier);
                all.extend_from_slice(&piece);
            }
        }
    }
    Ok(place.hold(first.unwrap_or_else(|| all.freeze())))
}

async fn drain<B: Body<Data = Bytes> + Unpin>(mut body: B) {
    let end = Instant::now() + DRAIN_TIME;
    let mut thrown = 0;
    while thrown < DRAIN {
        let Ok(Some(Ok(frame))) = timeout_at(end, body.frame()).await else { return };
        thrown += frame.data_ref().map_or(0, |piece| piece.len() as u64);
    }
}

/// Refuses a compressed body: it would have to be unpacked before it can be read, at an unknown
/// size.
///
/// # Errors
/// The headers announce an encoding.
pub(crate) fn is_plain(headers: &HeaderMap) -> Result<(), CallError> {
    let encoding = headers.get(CONTENT_ENCODING).and_then(|value| value.to_str().ok());
    match encoding.map(str::trim) {
        None | Some("" | "identity") => Ok(()),
        Some(encoding) => {
            let shown: String = encoding.chars().take(40).collect();
            let note = format!(
                "the request body is compressed (content-encoding: {shown}); send it uncompressed"
            );
            Err(CallError::local(Local::InvalidRequest, note))
        }
    }
}

fn too_large(announced: Option<u64>, most: u64) -> CallError {
    let size = announced.map_or_else(|| "more".to_owned(), |bytes| format!("{bytes} bytes"));
    let note = format!(
        "the request body has {size}, and at most {most} bytes are taken; shorten it or raise \
         server.max_body_bytes"
    );
    CallError::local(Local::BodyTooLarge, note)
}

fn slow() -> CallError {
    let note = format!("the request body was not complete within {BODY:?}");
    CallError::local(Local::InvalidRequest, note)
}

fn broken() -> CallError {
    CallError::local(Local::InvalidRequest, "the request body broke off before its end")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use http::HeaderMap;
    use http_body_util::Full;

    use super::read;
    use crate::room::Room;

    #[tokio::test]
    async fn bodies_that_are_still_held_leave_no_room_for_more() {
        let room = Room::new(64 << 10, Duration::from_millis(50));
        let none = HeaderMap::new();
        let body = || Full::new(Bytes::from(vec![b'x'; 40 << 10]));
        let first = read(&none, body(), 1 << 20, &room).await.unwrap();
        assert_eq!(first.len(), 40 << 10);
        let refused = read(&none, body(), 1 << 20, &room).await.unwrap_err();
        assert_eq!(refused.code(), "gateway_busy");
        // A refused body keeps nothing, one that is too large neither.
        assert_eq!(read(&none, body(), 100, &room).await.unwrap_err().code(), "body_too_large");
        drop(first);
        assert!(read(&none, body(), 1 << 20, &room).await.is_ok());
        assert!(read(&none, body(), 1 << 20, &room).await.is_ok());
    }
}
