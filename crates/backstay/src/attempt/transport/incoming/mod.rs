//! The body of a response.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Response, Version};
use http_body::{Body, Frame, SizeHint};

use super::driven::{Drive, Driven};
use super::kept::Turns;

/// A body that is still to be read. Dropped before its end it cancels the request.
#[derive(Debug)]
pub struct Incoming {
    body: hyper::body::Incoming,
    connection: Connection,
}

/// What its reader has to do with the connection.
#[derive(Debug)]
enum Connection {
    /// Nothing: others share it, or there is no more to come.
    Apart,
    /// It can drive it.
    Drivable(Drive),
    /// It drives it.
    Driven(Driven),
}

impl Incoming {
    pub(super) fn of(response: Response<hyper::body::Incoming>) -> Response<Self> {
        let is_alone = response.version() <= Version::HTTP_11;
        let turns = response.extensions().get::<Turns>().filter(|_| is_alone);
        let drive = turns.and_then(Turns::drive);
        let connection = drive.map_or(Connection::Apart, Connection::Drivable);
        response.map(|body| Self { body, connection })
    }
}

impl Body for Incoming {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Self { body, connection } = &mut *self;
        let mut read = |cx: &mut Context<'_>| Pin::new(&mut *body).poll_frame(cx);
        if let Connection::Drivable(drive) = connection {
            let frame = read(cx);
            if frame.is_ready() {
                return frame;
            }
            // Nothing is here of a body that has not ended, so nobody else uses the connection.
            match drive.clone().take_over(&mut read) {
                Ok(driven) => *connection = Connection::Driven(driven),
                Err(frame) => return Poll::Ready(frame),
            }
        }
        let Connection::Driven(driven) = connection else { return read(cx) };
        let frame = driven.read(cx, read);
        if let Poll::Ready(frame) = &frame {
            let is_data = matches!(frame, Some(Ok(frame)) if frame.is_data());
            // After the last of a body the connection carries the next request.
            if !is_data || body.is_end_stream() {
                *connection = Connection::Apart;
            }
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests;
