//! Calls of a route that only watches: the request and the reply pass untouched, and the engine is
//! told what passed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use backstay::attempt::forward::{BrokenOff, Forward, Passing, forward};
use backstay::call::Watch;
use backstay::contract::Ask;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response};
use http_body::{Body, Frame, SizeHint};

use super::through;
use crate::body::Sent;
use crate::respond;
use crate::server::Gateway;

/// Hands the request through and has the call watched.
pub(super) async fn serve(gateway: &Arc<Gateway>, request: Forward, ask: Ask) -> Response<Sent> {
    let dialect = request.dialect;
    let mut watch = Watch::begin(gateway.engine(), ask);
    let call_id = watch.call_id().and_then(|id| HeaderValue::from_str(id).ok());
    let mut response = match forward(gateway.engine(), request).await {
        Ok(forwarded) => {
            let (mut parts, body) = forwarded.response.into_parts();
            watch.head(&forwarded.target, parts.status.as_u16(), &parts.headers);
            through::say_target(&mut parts.headers, &forwarded.target);
            Response::from_parts(parts, Sent::Watched(Box::new(Watched::new(body, watch))))
        }
        Err(error) => {
            watch.failed(&error);
            through::may_retry(respond::failure(dialect, &error), &error)
        }
    };
    stamp(response.headers_mut(), call_id);
    response
}

fn stamp(headers: &mut HeaderMap, call_id: Option<HeaderValue>) {
    headers.insert("x-backstay-outcome", HeaderValue::from_static("watched"));
    if let Some(id) = call_id {
        headers.insert("x-backstay-call-id", id);
    }
}

/// A body on its way through, with somebody watching. Its bytes leave as they come.
#[derive(Debug)]
pub struct Watched {
    body: Passing,
    /// `None`: the end was told.
    watch: Option<Watch>,
}

impl Watched {
    fn new(body: Passing, watch: Watch) -> Self {
        let mut watched = Self { body, watch: Some(watch) };
        watched.end_if_over();
        watched
    }

    /// The library does not ask again once a body says that it is over.
    fn end_if_over(&mut self) {
        if self.body.is_end_stream() {
            self.end(None);
        }
    }

    fn end(&mut self, broke: Option<String>) {
        if let Some(watch) = self.watch.take() {
            watch.ended(broke);
        }
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        let this = &mut *self;
        let frame = ready!(Pin::new(&mut this.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let (Some(watch), Some(piece)) = (&mut this.watch, frame.data_ref()) {
                    watch.passed(piece);
                }
                this.end_if_over();
            }
            Some(Err(error)) => this.end(Some(error.to_string())),
            None => this.end(None),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
