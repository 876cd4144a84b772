//! One shot at one target: send, wait under the timers, read, classify.
//!
//! ```text
//!  Armed ─send─▶ head ─┬─ not 2xx ───────────────▶ classify ─▶ Failure
//!                      ├─ a JSON body ─read─▶ Got::Whole, or Failure
//!                      └─ a stream ─┬─ caller wants it whole ─fold─▶ Got::Whole, or Failure
//!                                   └─ held as its mode says ────▶ Got::Live, or Failure
//! ```
//! Whatever happens comes back as a value; nothing is retried here.

pub mod adapter;
mod classify;
mod fold;
pub mod forward;
mod guards;
pub(crate) mod heard;
pub mod notify;
mod read;
mod stop;
pub mod stream;
pub mod transport;

use std::time::Duration;

use backstay_decide::detectors::Signal;
use backstay_decide::fault::Fault;
use backstay_decide::latency::Gaps;
use backstay_decide::pacing;
use backstay_decide::recover::Veto;
use backstay_wire::{Dialect, ProviderError, Reply};
use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use tokio::time::{Instant, timeout_at};

use crate::contract::{Contract, Wants};
use crate::engine::Engine;
use crate::policy::{Holding, StreamMode};
use crate::route::{Armed, Going, Shot, Timed};
use adapter::{Form, Outgoing};
use fold::Lead;
use guards::Watched;
use stop::EarlyStop;
pub(crate) use stop::{Behind, Stopped};
use stream::{Opened, StreamTimers, Told};
use transport::{Incoming, SendFault};

/// Longest wait for the body of an error response: its head alone says what to do next, so the
/// provider's words are not worth the time of another try.
const ERROR_BODY: Duration = Duration::from_secs(2);

/// What came of an attempt.
#[derive(Debug)]
pub(crate) struct Seen {
    /// The target, with all it still holds.
    pub armed: Box<Armed>,
    /// What came.
    pub result: Result<Got, Failure>,
    /// HTTP status. `None`: no response.
    pub status: Option<u16>,
    /// The provider's id of the request.
    pub request_id: Option<String>,
    /// How long it took.
    pub took: Duration,
    /// From sending to the first content of a stream.
    pub first_token: Option<Duration>,
    /// The pauses of a stream that was read to its end.
    pub gaps: Gaps,
    /// The rate limits that the reply stated.
    pub limits: Vec<pacing::Seen>,
    /// What the guards found in a reply that has passed them.
    pub signals: Vec<Signal>,
    /// Why a whole reply is worthless all the same.
    pub cut: Option<Failure>,
    /// What the reply was stopped at before its end.
    pub stopped: Option<Stopped>,
}

impl Seen {
    /// Of an attempt that ended so, of which no more is known.
    fn of(armed: Box<Armed>, result: Result<Got, Failure>) -> Self {
        Self {
            armed,
            result,
            status: None,
            request_id: None,
            took: Duration::ZERO,
            first_token: None,
            gaps: Gaps::default(),
            limits: Vec::new(),
            signals: Vec::new(),
            cut: None,
            stopped: None,
        }
    }

    /// What the clock saw.
    pub(crate) fn timed(&self) -> Timed {
        Timed { took: self.took, first_token: self.first_token, gaps: self.gaps }
    }

    /// Takes note of what there is to say of a stream that is over.
    fn heard(&mut self, opened: &mut Opened) {
        (self.first_token, self.gaps) = (opened.first_token(), opened.gaps());
        self.signals = opened.signals();
    }
}

/// Something worth judging.
#[derive(Debug)]
pub(crate) enum Got {
    /// A whole reply.
    Whole(Box<Whole>),
    /// A stream whose first content is there.
    Live(Box<Opened>),
    /// A stream of which nothing was released, and why another one may be better.
    Doubtful(Box<Opened>, Box<Failure>),
}

/// A whole reply.
#[derive(Clone, Debug)]
pub(crate) struct Whole {
    /// What it says.
    pub reply: Reply,
    /// The provider's bytes, when it came in one piece.
    pub raw: Option<Bytes>,
    /// The events of a stream that say it and may go to the caller as they are.
    pub events: Option<Bytes>,
    /// The dialect of `raw`.
    pub dialect: Dialect,
}

/// Why an attempt came to nothing.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What went wrong.
    pub fault: Fault,
    /// One sentence about it.
    pub note: String,
    /// The provider's own words, if it said any.
    pub provider: Option<Box<ProviderError>>,
    /// The delay the provider asked for.
    pub server_delay: Option<Duration>,
    /// Whether the provider said not to repeat the request.
    pub veto: Veto,
    /// Which connection it came over.
    pub over: Over,
    /// What a guard found, where one cut the reply off.
    pub found: Option<Signal>,
}

/// The connection that an attempt used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Over {
    /// Any, and the failure is not the connection's age.
    #[default]
    Any,
    /// One kept from earlier calls, which was found closed: says nothing about the target.
    Stale,
}

impl Failure {
    /// A failure told by `note`, without a word of the provider.
    pub fn new(fault: Fault, note: impl Into<String>) -> Self {
        Self {
            fault,
            note: note.into(),
            provider: None,
            server_delay: None,
            veto: Veto::Absent,
            over: Over::Any,
            found: None,
        }
    }
}

/// What the response's head said.
struct Head {
    status: u16,
    headers: HeaderMap,
}

/// Makes the shot and waits for what comes of it. Dropping the future cancels it upstream.
pub(crate) async fn race(engine: &Engine, contract: &Contract, shot: Shot) -> Seen {
    let mut armed = shot.first;
    armed.held.goes(match armed.request.form {
        Form::Plain => Going::Plain,
        Form::Stream if is_released(contract, &armed) => Going::Released,
        Form::Stream => Going::Folded,
    });
    let timers = armed.stream_timers();
    let not_sent = Failure::new(Fault::ConnectionLost, "not sent");
    let mut seen = Seen::of(armed, Err(not_sent));
    let result = one(engine, contract, &mut seen, timers).await;
    seen.took = timers.sent.elapsed();
    if let Ok(Got::Live(opened) | Got::Doubtful(opened, _)) = &result {
        seen.first_token = opened.first_token();
    }
    seen.result = result;
    seen
}

async fn one(
    engine: &Engine,
    contract: &Contract,
    seen: &mut Seen,
    timers: StreamTimers,
) -> Result<Got, Failure> {
    #[cfg(feature = "bench")]
    if let Some(body) = engine.canned() {
        let head = Head { status: 200, headers: HeaderMap::new() };
        let read = read::reply(&seen.armed, &head, body, engine.clock());
        return read.map(|whole| Got::Whole(Box::new(whole)));
    }
    // As configured, not as cut: it names the pool. The attempt's own limits bound the wait.
    let connect = contract.route.timeouts.connect_at(seen.armed.target.provider.connect);
    let response = send(engine, &mut seen.armed, timers, connect).await?;
    let (parts, body) = response.into_parts();
    let head = Head { status: parts.status.as_u16(), headers: parts.headers };
    seen.status = Some(head.status);
    seen.request_id = classify::request_id(&head.headers);
    seen.limits = classify::limits(&head.headers, engine.clock());
    let end = timers.sent + timers.total;
    if !parts.status.is_success() {
        let body = read::bounded(body, read::MAX_ERROR, end.min(Instant::now() + ERROR_BODY)).await;
        return Err(classify::status(&seen.armed, &head, &body, engine.clock().wall()));
    }
    let dialect = seen.armed.request.dialect;
    if is_stream(&head.headers) {
        let opened = Opened::new(body, dialect, timers)
            .counted_by(contract.presence.clone())
            .watched_by(Watched::of(contract));
        let opened = Box::new(opened);
        return streamed(contract, seen, opened).await;
    }
    let body = match &contract.presence {
        None => read::whole(body, end, timers.total).await?,
        Some(presence) => {
            let counted = body.map_frame(|frame| {
                presence.came(frame.data_ref().map_or(0, Bytes::len));
                frame
            });
            read::whole(counted, end, timers.total).await?
        }
    };
    let whole = read::reply(&seen.armed, &head, body, engine.clock())?;
    if let Some(mut watched) = Watched::of(contract) {
        seen.cut = watched.whole(&whole.reply).err();
        seen.signals = watched.told(Duration::ZERO);
    }
    Ok(Got::Whole(Box::new(whole)))
}

/// Sends the request and waits for the head, at most until the first content is due in a stream,
/// or the total otherwise.
async fn send(
    engine: &Engine,
    armed: &mut Armed,
    timers: StreamTimers,
    connect: Duration,
) -> Result<Response<Incoming>, Failure> {
    let (limit, fault) = match armed.request.form {
        Form::Stream if timers.first_token < timers.total => {
            (timers.first_token, Fault::NoFirstToken)
        }
        Form::Stream | Form::Plain => (timers.total, Fault::TotalTimeout),
    };
    let sending = engine.transport().send(request(&mut armed.request), connect);
    match timeout_at(timers.sent + limit, sending).await {
        Ok(Ok(response)) => Ok(response),
        Ok(Err(fault @ SendFault::Connect { .. })) => {
            Err(Failure::new(Fault::ConnectFailed, fault.to_string()))
        }
        Ok(Err(fault @ SendFault::Lost { .. })) => {
            Err(Failure::new(Fault::ConnectionLost, fault.to_string()))
        }
        Ok(Err(fault @ SendFault::Stale { .. })) => {
            let failure = Failure::new(Fault::ConnectionLost, fault.to_string());
            Err(Failure { over: Over::Stale, ..failure })
        }
        Err(_) => Err(Failure::new(fault, format!("no answer within {limit:.1?}"))),
    }
}

/// Takes what is sent out of `outgoing`: it is sent once.
fn request(outgoing: &mut Outgoing) -> Request<Full<Bytes>> {
    let mut request = Request::new(Full::new(std::mem::take(&mut outgoing.body)));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = std::mem::take(&mut outgoing.uri);
    *request.headers_mut() = std::mem::take(&mut outgoing.headers);
    request
}

/// A stream: folded when the caller, or a check, needs it whole; else held as its mode says.
async fn streamed(
    contract: &Contract,
    seen: &mut Seen,
    mut opened: Box<Opened>,
) -> Result<Got, Failure> {
    let Holding { pace, window } = contract.route.holding;
    if let Wants::Stream { usage } = contract.wants
        && is_released(contract, &seen.armed)
    {
        let choices = contract.most_choices();
        let way = seen.armed.request.way;
        let told = Told { caller: contract.ask.dialect, usage, choices, way };
        let lead = match (contract.stream_mode, pace) {
            (StreamMode::Passthrough, _) => return Ok(Got::Live(opened)),
            (StreamMode::Gate, None) => return fold::gate(opened, told, seen).await,
            (StreamMode::Gate, Some(pace)) => Some(Lead::Pace(pace)),
            (StreamMode::Windowed, _) => Some(Lead::Window(window)),
            (StreamMode::Buffered, _) => None,
        };
        if let Some(lead) = lead {
            return fold::lead(opened, (told, lead), seen).await;
        }
    }
    let dialect = seen.armed.request.dialect;
    let stop = EarlyStop::of(contract);
    let folded = fold::whole(&mut opened, contract.most_choices(), stop).await;
    seen.heard(&mut opened);
    let (reply, stopped) = folded?;
    seen.stopped = stopped;
    Ok(Got::Whole(Box::new(Whole { reply, raw: None, events: None, dialect })))
}

/// Whether a stream goes to the caller before all of it is there.
fn is_released(contract: &Contract, armed: &Armed) -> bool {
    // What has to be taken back cannot be let out piece by piece.
    contract.is_released() && !armed.request.lowerings.act()
}

fn is_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(http::header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}
