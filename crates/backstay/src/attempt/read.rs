//! Reads a reply that comes in one piece.

use std::time::Duration;

use backstay_decide::fault::Fault;
use backstay_wire::dialect::ReadFault;
use bytes::{Bytes, BytesMut};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use tokio::time::{Instant, timeout_at};

use super::transport::{Incoming, innermost};
use super::{Failure, Head, Whole, classify};
use crate::clock::Clock;
use crate::route::Armed;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The largest reply read, in bytes: far over any model's output, pictures included.
pub(super) const MAX_REPLY: usize = 64 << 20;

/// As much of an error body as is looked at, in bytes.
pub(super) const MAX_ERROR: usize = 64 << 10;

/// The first `most` bytes of `body`, until `end`; what came until then when it breaks off.
pub(super) async fn bounded(mut body: Incoming, most: usize, end: Instant) -> Bytes {
    let mut kept = BytesMut::new();
    while kept.len() < most {
        let Ok(Some(Ok(frame))) = timeout_at(end, body.frame()).await else { break };
        if let Ok(piece) = frame.into_data() {
            let room = most - kept.len();
            kept.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
        }
    }
    kept.freeze()
}

/// The whole body.
pub(super) async fn whole<B>(body: B, end: Instant, total: Duration) -> Result<Bytes, Failure>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    match timeout_at(end, Limited::new(body, MAX_REPLY).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(cause)) => {
            let cause = innermost(&*cause);
            if cause.contains("length limit exceeded") {
                let note = format!("the reply is larger than {MAX_REPLY} bytes");
                return Err(Failure::new(Fault::MalformedReply, note));
            }
            Err(Failure::new(Fault::ConnectionLost, format!("the reply broke off: {cause}")))
        }
        Err(_) => {
            let note = format!("the reply was not complete within {total:.1?}");
            Err(Failure::new(Fault::TotalTimeout, note))
        }
    }
}

/// Reads `body` as a reply of the target's dialect.
pub(super) fn reply(
    armed: &Armed,
    head: &Head,
    body: Bytes,
    clock: &Clock,
) -> Result<Whole, Failure> {
    let dialect = armed.request.dialect;
    if body.iter().all(u8::is_ascii_whitespace) {
        let note = format!("status {} with an empty body", head.status);
        return Err(Failure::new(Fault::Empty, note));
    }
    match dialect.read_reply(&body) {
        Ok(reply) => Ok(Whole { reply, raw: Some(body), events: None, dialect }),
        Err(ReadFault::Malformed(malformed)) => {
            let note = format!("not a reply of {}: {malformed}", dialect.name());
            Err(Failure::new(Fault::MalformedReply, note))
        }
        Err(ReadFault::Failure(error)) => Err(classify::reported(error, head, clock.wall())),
    }
}
