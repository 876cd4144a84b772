//! The bodies the gateway sends: a document, a stream under way, a stream still being sought, or a
//! provider's body handed through.

use std::pin::Pin;
use std::task::{Context, Poll};

use backstay::attempt::forward::{BrokenOff, Passing};
use backstay::attempt::stream::Live;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::Full;

use crate::api::Watched;
use crate::carry::CarriedBody;
use crate::hold::Held;

/// A response's body.
#[derive(Debug)]
pub enum Sent {
    /// All of it is known: head and body leave in one write.
    Full(Full<Bytes>),
    /// A stream under way.
    Live(Box<Live>),
    /// A stream that is still being sought, kept open with comments.
    Held(Box<Held>),
    /// Handed through.
    Through(Box<Passing>),
    /// One that is read to its end when its caller leaves.
    Carried(Box<CarriedBody>),
    /// Handed through, and watched.
    Watched(Box<Watched>),
}

impl Sent {
    /// A document.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self::Full(Full::new(bytes.into()))
    }
}

impl Body for Sent {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Self::Full(body) => Pin::new(body).poll_frame(cx).map_err(Into::into),
            Self::Live(body) => Pin::new(body.as_mut()).poll_frame(cx).map_err(Into::into),
            Self::Held(body) => Pin::new(body.as_mut()).poll_frame(cx).map_err(Into::into),
            Self::Through(body) => Pin::new(body.as_mut()).poll_frame(cx),
            Self::Carried(body) => Pin::new(body.as_mut()).poll_frame(cx),
            Self::Watched(body) => Pin::new(body.as_mut()).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Full(body) => body.is_end_stream(),
            Self::Live(body) => body.is_end_stream(),
            Self::Held(body) => body.is_end_stream(),
            Self::Through(body) => body.is_end_stream(),
            Self::Carried(body) => body.is_end_stream(),
            Self::Watched(body) => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Full(body) => body.size_hint(),
            Self::Live(body) => body.size_hint(),
            Self::Held(body) => body.size_hint(),
            Self::Through(body) => body.size_hint(),
            Self::Carried(body) => body.size_hint(),
            Self::Watched(body) => body.size_hint(),
        }
    }
}
