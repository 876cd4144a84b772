//! Carries calls on whose callers left, where their routes say so: what a provider was asked for is read
//! to its end and booked, and nothing is sent to anybody.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use backstay::call::{Answer, Body as Said};
use backstay::contract::{Contract, Presence};
use backstay::fault::CallError;
use backstay::policy::OnDisconnect;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::body::Sent;
use crate::hold::Seeking;

/// Most calls carried on at once; one more is cancelled, as on other routes.
const MOST: usize = 1_000;

/// Those that are carried on.
#[derive(Debug)]
pub(crate) struct Carriers {
    /// What they run in; once it is closed no more are taken.
    pub(crate) tasks: TaskTracker,
    /// Cancels those there are.
    pub(crate) cut: CancellationToken,
    places: Arc<Semaphore>,
}

impl Carriers {
    pub(crate) fn new() -> Arc<Self> {
        let places = Arc::new(Semaphore::new(MOST));
        Arc::new(Self { tasks: TaskTracker::new(), cut: CancellationToken::new(), places })
    }

    /// Who carries a call of `contract` on. `None`: its route cancels it.
    pub(crate) fn of(self: &Arc<Self>, contract: &Contract) -> Option<Carrier> {
        let OnDisconnect::Finish { within } = contract.route.on_disconnect else { return None };
        let presence = contract.presence.clone()?;
        Some(Carrier { carriers: Arc::clone(self), presence, within })
    }
}

/// Carries one call on.
#[derive(Clone, Debug)]
pub(crate) struct Carrier {
    carriers: Arc<Carriers>,
    presence: Arc<Presence>,
    within: Duration,
}

impl Carrier {
    /// `seeking`, which is carried on when it is dropped while a provider is at work.
    pub(crate) fn call(&self, seeking: Seeking) -> CarriedCall {
        CarriedCall { seeking: Some(seeking), carrier: self.clone() }
    }

    /// `body`, which is read to its end when it is dropped before.
    pub(crate) fn body(&self, body: Sent) -> Sent {
        match body {
            Sent::Live(_) | Sent::Held(_) => {
                Sent::Carried(Box::new(CarriedBody { body: Some(body), carrier: self.clone() }))
            }
            Sent::Full(_) | Sent::Through(_) | Sent::Watched(_) | Sent::Carried(_) => body,
        }
    }

    /// Goes on with `rest` where there is room for that; else drops it.
    fn carry(&self, rest: impl Future<Output = ()> + Send + 'static) {
        let Carriers { tasks, cut, places } = &*self.carriers;
        let Ok(place) = Arc::clone(places).try_acquire_owned() else { return };
        if tasks.is_closed() || Handle::try_current().is_err() || !self.presence.leave() {
            return;
        }
        let (cut, presence, within) = (cut.clone(), Arc::clone(&self.presence), self.within);
        tasks.spawn(async move {
            // Whatever comes first, the rest is dropped then, which cancels what is left of it.
            tokio::select! {
                biased;
                () = cut.cancelled() => {}
                () = presence.full() => {}
                _ = tokio::time::timeout(within, rest) => {}
            }
            drop(place);
        });
    }
}

/// A call that goes on without its caller.
pub(crate) struct CarriedCall {
    /// `None`: it is over.
    seeking: Option<Seeking>,
    carrier: Carrier,
}

impl Future for CarriedCall {
    type Output = Result<Answer, CallError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(seeking) = &mut self.seeking else { return Poll::Pending };
        let told = seeking.as_mut().poll(cx);
        if told.is_ready() {
            self.seeking = None;
        }
        told
    }
}

impl Drop for CarriedCall {
    fn drop(&mut self) {
        let Some(seeking) = self.seeking.take() else { return };
        self.carrier.carry(async move {
            if let Ok(Answer { body: Said::Live(live), .. }) = seeking.await {
                read(*live).await;
            }
        });
    }
}

/// A body that is read to its end without its caller.
pub struct CarriedBody {
    /// `None` while it is dropped only.
    body: Option<Sent>,
    carrier: Carrier,
}

impl std::fmt::Debug for CarriedBody {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CarriedBody({:?})", self.body)
    }
}

impl Body for CarriedBody {
    type Data = Bytes;
    type Error = <Sent as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        match &mut self.body {
            Some(body) => Pin::new(body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Sent::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map(Sent::size_hint).unwrap_or_default()
    }
}

impl Drop for CarriedBody {
    fn drop(&mut self) {
        if let Some(body) = self.body.take().filter(|body| !body.is_end_stream()) {
            self.carrier.carry(read(body));
        }
    }
}

/// Reads `body` to its end, for nobody.
async fn read<B: Body + Unpin>(mut body: B) {
    while let Some(Ok(_)) = body.frame().await {}
}
