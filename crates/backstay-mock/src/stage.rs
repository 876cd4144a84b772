//! Answers one request: reads it, decides what to play, opens its log entry, plays it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::Settings;
use crate::ask::{Ask, Dialect, Endpoint, Invalid};
use crate::behaviour::Kind;
use crate::clock::Clock;
use crate::control;
use crate::dialect::{Tag, errors, lists};
use crate::limits::{Gate, Limits};
use crate::log::{End, Log, Note, Pen};
use crate::memory::{Memory, Turn};
use crate::order::{BadOrder, Order};
use crate::plan::{Act, JSON, Plan, Reply, Scene};
use crate::reel::{Broken, Reel, Verdict};

/// 32 MiB: Anthropic's limit on a request; beyond it the answer is 413.
const MAX_BODY: usize = 32 << 20;

/// Everything the mock's connections share.
#[derive(Debug)]
pub(crate) struct Stage {
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) log: Log,
    pub(crate) memory: Mutex<Memory>,
    pub(crate) limits: Mutex<Limits>,
    /// Responses named so far; never reset, so that request ids stay unique.
    named: AtomicU64,
    /// Cancelled when the mock stops.
    pub(crate) stop: CancellationToken,
}

/// The body of every response.
pub(crate) type Played = Response<Reel>;

impl Stage {
    pub(crate) fn new(settings: Settings, stop: CancellationToken) -> Self {
        let clock = Clock::start();
        let log = Log::new(clock, settings.log_bodies);
        let named = AtomicU64::new(0);
        let (memory, limits) = (Mutex::default(), Mutex::default());
        Self { settings, clock, log, memory, limits, named, stop }
    }

    /// Forgets the log and every count.
    pub(crate) fn reset(&self) {
        self.log.clear();
        self.memory.lock().reset();
        self.limits.lock().reset();
    }

    /// Answers one request on a connection.
    ///
    /// # Errors
    /// [`Broken`] where the behaviour wants the connection closed without an answer.
    pub(crate) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        verdict: Verdict,
    ) -> Result<Played, Broken> {
        if request.uri().path().starts_with("/_mock") {
            return Ok(control::answer(&self, request, verdict).await);
        }
        let at = self.clock.micros();
        let (head, body) = request.into_parts();
        let note = Note::of(at, head.method.clone(), &head.uri, &head.headers);
        let Some(endpoint) = endpoint(&head.method, head.uri.path()) else {
            let reply = self.elsewhere(&head.method, head.uri.path(), &head.headers);
            return Ok(self.listed(note, reply, verdict));
        };
        // Opened here so that a client who hangs up while sending is seen too.
        let unread = Unread { stage: &self, note: Some(note) };
        let bytes = match Limited::new(body, MAX_BODY).collect().await {
            Ok(body) => body.to_bytes(),
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                let wrong = errors::plain(413, endpoint.dialect(), None, self.tag());
                let reply = Reply::error(wrong, endpoint.dialect(), self.tag());
                return Ok(self.refused(unread.read(), reply, verdict));
            }
            Err(_) => return Err(Broken),
        };
        let mut note = unread.read();
        self.log.keep_body(&mut note, &bytes);
        match Ask::read(endpoint, &bytes) {
            Ok(ask) => self.play(note, &ask, verdict).await,
            Err(invalid) => Ok(self.invalid(note, endpoint.dialect(), &invalid, verdict)),
        }
    }

    /// Plays what the model's name orders.
    async fn play(&self, mut note: Note, ask: &Ask, verdict: Verdict) -> Result<Played, Broken> {
        let turn = self.memory.lock().take(&ask.model, ask.first_digest);
        note.asked(ask);
        note.call_no = turn.call;
        let gate = self.limits.lock().take(ask, self.clock.micros());
        if let Some(gate) = gate.as_ref().filter(|gate| gate.over.is_some()) {
            return Ok(self.over(note, ask, gate, verdict));
        }
        let order = match Order::read(turn.step.as_deref().unwrap_or(&ask.model)) {
            Ok(order) => order,
            Err(bad) => return Ok(self.bad_order(note, ask, &bad, verdict)),
        };
        let kind = kind(&order, &turn);
        note.behaviour =
            if kind == order.behaviour.kind { order.behaviour.name } else { "healthy" };
        let pen = self.log.open(note);
        let settings = &self.settings;
        let scene = Scene { settings, ask, order: &order, kind, turn: turn.ask, tag: self.tag() };
        let mut plan = Plan::of(scene);
        if let (Some(gate), Act::Reply(reply)) = (gate, &mut plan.act) {
            gate.tell(ask.dialect(), &mut reply.headers);
        }
        self.perform(plan, pen, verdict).await
    }

    async fn perform(&self, plan: Plan, mut pen: Pen, verdict: Verdict) -> Result<Played, Broken> {
        // Dropped while it waits: the client has hung up, and the pen says so.
        if !plan.wait.is_zero() {
            tokio::time::sleep(plan.wait).await;
        }
        match plan.act {
            Act::Reply(reply) => Ok(send(reply, pen, verdict)),
            Act::Reset => {
                verdict.reset();
                pen.end(End::Reset);
                Err(Broken)
            }
            Act::Hold(time) => {
                tokio::time::sleep(time).await;
                pen.end(End::Cut);
                Err(Broken)
            }
        }
    }

    /// 429: the model's minute is full.
    fn over(&self, mut note: Note, ask: &Ask, gate: &Gate, verdict: Verdict) -> Played {
        note.behaviour = "limited";
        let (dialect, tag) = (ask.dialect(), self.tag());
        let message = gate.over.as_ref().map(|(message, _)| message.as_str());
        let mut reply = Reply::error(errors::plain(429, dialect, message, tag), dialect, tag);
        gate.tell(dialect, &mut reply.headers);
        self.refused(note, reply, verdict)
    }

    fn bad_order(&self, mut note: Note, ask: &Ask, bad: &BadOrder, verdict: Verdict) -> Played {
        let (dialect, tag) = (ask.dialect(), self.tag());
        if let BadOrder::Unknown { nearest, .. } = bad {
            note.behaviour = "unknown";
            let hint = format!(" The nearest behaviour of the mock is `{nearest}`.");
            let wrong = errors::no_model(dialect, &ask.model, &hint, tag);
            return self.refused(note, Reply::error(wrong, dialect, tag), verdict);
        }
        let invalid =
            Invalid { message: bad.to_string(), code: Some("invalid_value"), param: Some("model") };
        self.invalid(note, dialect, &invalid, verdict)
    }

    fn invalid(
        &self,
        mut note: Note,
        dialect: Dialect,
        invalid: &Invalid,
        verdict: Verdict,
    ) -> Played {
        note.behaviour = "invalid";
        let tag = self.tag();
        self.refused(
            note,
            Reply::error(errors::invalid(dialect, invalid, tag), dialect, tag),
            verdict,
        )
    }

    fn refused(&self, mut note: Note, reply: Reply, verdict: Verdict) -> Played {
        if note.behaviour == "unread" {
            note.behaviour = "invalid";
        }
        send(reply, self.log.open(note), verdict)
    }

    /// Logs and answers a request that no behaviour is for.
    fn listed(&self, mut note: Note, reply: Reply, verdict: Verdict) -> Played {
        note.behaviour = if reply.status == 200 { "models" } else { "invalid" };
        send(reply, self.log.open(note), verdict)
    }

    /// The list of models, or what is said of a path that does not exist.
    fn elsewhere(&self, method: &Method, path: &str, headers: &HeaderMap) -> Reply {
        let anthropic = headers.contains_key("anthropic-version");
        let dialect = if anthropic { Dialect::Anthropic } else { Dialect::OpenAi };
        let tag = self.tag();
        let body = match path.strip_prefix("/v1/models") {
            Some("" | "/") if method == Method::GET => lists::models(dialect),
            Some(rest) if method == Method::GET => {
                let name = rest.trim_start_matches('/');
                if Order::read(name).is_err() {
                    let wrong = errors::no_model(dialect, name, "", tag);
                    return Reply::error(wrong, dialect, tag);
                }
                lists::model(dialect, name)
            }
            _ => {
                let message = format!("Unknown request URL: {method} {path}.");
                let wrong = errors::plain(404, dialect, Some(&message), tag);
                return Reply::error(wrong, dialect, tag);
            }
        };
        Reply::plain(200, Bytes::from(body.to_string()), JSON).named(dialect, tag)
    }

    fn tag(&self) -> Tag {
        let nth = self.named.fetch_add(1, Ordering::Relaxed);
        // Spread out, so that two mocks of different seeds do not share ids.
        Tag(nth.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ self.settings.seed)
    }
}

/// What is played: the behaviour, or healthy once its `times` are over.
fn kind(order: &Order, turn: &Turn) -> Kind {
    match order.params.times {
        Some(times) if turn.call > times => Kind::Healthy,
        _ => order.behaviour.kind,
    }
}

fn endpoint(method: &Method, path: &str) -> Option<Endpoint> {
    if method != Method::POST {
        return None;
    }
    match path {
        "/v1/chat/completions" => Some(Endpoint::Chat),
        "/v1/messages" => Some(Endpoint::Messages),
        "/v1/messages/count_tokens" => Some(Endpoint::CountTokens),
        "/v1/embeddings" => Some(Endpoint::Embeddings),
        _ => None,
    }
}

/// Makes the response. Its body writes the rest of the log entry.
pub(crate) fn send(mut reply: Reply, pen: Pen, verdict: Verdict) -> Played {
    pen.status(reply.status);
    let status = StatusCode::from_u16(reply.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = std::mem::take(&mut reply.headers);
    let mut response = Response::new(Reel::new(reply, verdict, pen));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// A request whose body is still on its way. Dropped, it is logged as it is.
struct Unread<'a> {
    stage: &'a Stage,
    note: Option<Note>,
}

impl Unread<'_> {
    /// The note, for a body that has arrived.
    fn read(mut self) -> Note {
        match self.note.take() {
            Some(note) => note,
            None => Note::of(0, Method::POST, &http::Uri::default(), &HeaderMap::new()),
        }
    }
}

impl Drop for Unread<'_> {
    fn drop(&mut self) {
        if let Some(note) = self.note.take() {
            drop(self.stage.log.open(note));
        }
    }
}
