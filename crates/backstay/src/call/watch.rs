//! Watches a call that goes through untouched, and says what Backstay would have done.
//!
//! Before the request goes out, the route is asked who would be called; after the last byte of the
//! reply, a thread of its own judges a copy and asks what would have followed. The caller waits for
//! neither. What was seen counts for the target's health like any attempt, or nothing would ever
//! rest.
//!
//! ```text
//!  begin ─▶ Watch ── bytes pass, a copy is kept ──▶ ended ─▶ thread: judge ─▶ row, metric
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};

use backstay_decide::Moment;
use backstay_decide::spend::Took;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;

use super::{Call, End, Plan, refuse};
use crate::attempt::heard::{self, Heard, Shown};
use crate::contract::{self, Ask};
use crate::engine::Engine;
use crate::fault::{CallError, Cause};
use crate::record::Outcome;
use crate::route::{self, Armed, Step};

/// Most of a reply that is kept to be judged; a longer one is not.
const MAX_KEPT: usize = 1 << 20;

/// Replies that wait to be judged: together at most 64 MiB. With more, they are not.
const MAX_WAITING: usize = 64;

/// What would have become of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Would {
    /// It would have gone out as it is.
    Nothing,
    /// It would have been mended, aligned, flagged, or completed by a fallback.
    Mended,
    /// The same target would have been asked again after a wait.
    Retried,
    /// The same target would have been asked again, with the errors or a higher cap.
    Reasked,
    /// Another target would have been asked.
    Rerouted,
    /// The route's last resort would have answered.
    LastResort,
    /// The caller would have got a typed failure.
    Refused,
    /// The call would have waited for its target.
    Waited,
    /// It is not known: the reply was too long, the caller left, or too many waited.
    NotJudged,
}

impl Would {
    /// Every one, for metrics and docs.
    pub const ALL: [Self; 9] = [
        Self::Nothing,
        Self::Mended,
        Self::Retried,
        Self::Reasked,
        Self::Rerouted,
        Self::LastResort,
        Self::Refused,
        Self::Waited,
        Self::NotJudged,
    ];

    /// The word in the log and the metrics.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Mended => "mended",
            Self::Retried => "retried",
            Self::Reasked => "reasked",
            Self::Rerouted => "rerouted",
            Self::LastResort => "last_resort",
            Self::Refused => "refused",
            Self::Waited => "waited",
            Self::NotJudged => "not_judged",
        }
    }
}

/// A call that is watched. Dropped before its end it was not judged.
#[derive(Debug)]
pub struct Watch {
    /// `None`: it would have been refused at the door, and that is written down.
    call: Option<Box<Call>>,
    armed: Option<Box<Armed>>,
    /// What was decided before the request went out.
    early: Option<Would>,
    sent: Moment,
    head: Option<(u16, HeaderMap)>,
    kept: BytesMut,
    bytes: usize,
}

impl Watch {
    /// Asks what would be done with `ask`.
    pub fn begin(engine: &Engine, ask: Ask) -> Self {
        let door = refuse::Door::of(&ask);
        let mut watch = Self {
            call: None,
            armed: None,
            early: None,
            sent: engine.now(),
            head: None,
            kept: BytesMut::new(),
            bytes: 0,
        };
        match contract::settle(engine, ask) {
            // It takes no seat: it goes through in any case.
            Ok(contract) => watch.choose(Call::begin(engine.clone(), contract)),
            Err(error) => door.watched(engine, &error),
        }
        watch
    }

    /// Lets the call at the target that gets it, the first of the caller's format. Where that may not
    /// be called, what would be done instead settles it.
    fn choose(&mut self, mut call: Box<Call>) {
        let dialect = call.contract.ask.dialect;
        let first = call.stops.iter().position(|stop| stop.target.provider.dialect == dialect);
        let step = match first.map(|index| route::at(&mut call, index)) {
            Some(Step::Try(shot)) => Step::Try(shot),
            Some(Step::Rest(_) | Step::Line { .. } | Step::End(_)) | None => route::next(&mut call),
        };
        match step {
            Step::Try(shot) if Some(shot.first.index) == first => {
                self.armed = Some(shot.first);
            }
            Step::Try(shot) => {
                let why = format!("{} would be asked first", shot.first.target.id);
                shot.first.held.unsent(call.engine.now());
                call.unsend(why);
                self.early = Some(Would::Rerouted);
            }
            Step::Rest(_) | Step::Line { .. } => self.early = Some(Would::Waited),
            Step::End(_) => self.early = Some(would(&call)),
        }
        self.call = Some(call);
    }

    /// The call's id; `None`: it would have been refused at the door.
    pub fn call_id(&self) -> Option<&str> {
        self.call.as_ref().map(|call| call.contract.call_id.as_str())
    }

    /// The response's head came, from `target`. Another than the route's own is not judged.
    pub fn head(&mut self, target: &str, status: u16, headers: &HeaderMap) {
        self.armed = self.armed.take().filter(|armed| armed.target.id == target);
        self.head = Some((status, headers.clone()));
    }

    /// A piece of the body passed.
    pub fn passed(&mut self, piece: &Bytes) {
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes <= MAX_KEPT && self.armed.is_some() {
            self.kept.extend_from_slice(piece);
        } else {
            self.kept = BytesMut::new();
        }
    }

    /// The last byte passed, or the body broke off. Hands the copy to the thread that judges.
    pub fn ended(mut self, broke: Option<String>) {
        let Some(mut call) = self.call.take() else { return };
        let engine = call.engine.clone();
        let now = engine.now();
        call.ended_at = Some(now);
        let (armed, head) = (self.armed.take(), self.head.take());
        let too_long = self.bytes > MAX_KEPT;
        let job = match (self.early, armed, head) {
            (Some(would), ..) => return call.watched(would),
            (None, Some(armed), Some((status, headers))) if !too_long => {
                let body = std::mem::take(&mut self.kept).freeze();
                let took = now.since(self.sent);
                Job { call, armed, heard: Heard { status, headers, body, broke, took } }
            }
            (None, ..) => return call.watched(Would::NotJudged),
        };
        engine.judge().give(job);
    }

    /// No response came.
    pub fn failed(mut self, error: &CallError) {
        let Some(call) = self.call.take() else { return };
        // The request was never answered, so there is nothing to judge but the fault itself.
        match (self.early, error.cause(), self.armed.take()) {
            (Some(would), ..) => call.watched(would),
            (None, Cause::Attempt(fault), Some(armed)) => {
                let took = call.engine.now().since(self.sent);
                let mut call = call;
                call.note(heard::nothing(armed, fault, took));
                let would = would(&call);
                call.watched(would);
            }
            (None, ..) => call.watched(Would::NotJudged),
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(mut call) = self.call.take() {
            call.would = Would::NotJudged.word();
            call.engine.metrics().watched(&call.contract.route.name, call.would);
            // Dropping it writes the row: the caller left.
        }
    }
}

/// What the judge gets.
#[derive(Debug)]
struct Job {
    call: Box<Call>,
    armed: Box<Armed>,
    heard: Heard,
}

impl Job {
    fn judge(self) {
        let Self { mut call, armed, heard } = self;
        let clock = *call.engine.clock();
        let choices = call.contract.most_choices();
        let (seen, shown) = heard::seen(armed, heard, choices, &clock);
        call.note(seen);
        let would = match would(&call) {
            Would::Nothing => Would::Nothing,
            // What is out cannot be taken back: the stream would end in an error.
            _ if shown == Shown::Some && call.contract.is_released() => Would::Refused,
            would => would,
        };
        call.watched(would);
    }
}

/// The thread that judges; it begins with the first job and ends with the engine.
#[derive(Debug, Default)]
pub(crate) struct Judge(OnceLock<Option<SyncSender<Job>>>);

impl Judge {
    /// Leaves a job for the thread. Where too many wait, it is not judged.
    fn give(&self, job: Job) {
        let left = match self.0.get_or_init(begin) {
            Some(desk) => desk.try_send(job).err(),
            None => Some(TrySendError::Disconnected(job)),
        };
        if let Some(TrySendError::Full(job) | TrySendError::Disconnected(job)) = left {
            job.call.watched(Would::NotJudged);
        }
    }
}

fn begin() -> Option<SyncSender<Job>> {
    let (desk, jobs) = sync_channel::<Job>(MAX_WAITING);
    let judging = move || {
        for job in jobs {
            // One reply that breaks the judge must not end the judging of all others.
            if catch_unwind(AssertUnwindSafe(|| job.judge())).is_err() {
                tracing::error!("the judging of a watched call panicked; please report this");
            }
        }
    };
    let thread = std::thread::Builder::new().name("watch".into()).spawn(judging);
    thread.ok().map(|_| desk)
}

/// What the call is about to do.
fn would(call: &Call) -> Would {
    match (call.plan, &call.end) {
        (Plan::Start, _) => Would::Waited,
        (Plan::Again { .. }, _) => Would::Retried,
        (Plan::Stay, _) => Would::Reasked,
        (Plan::Elsewhere, _) => Would::Rerouted,
        (Plan::Over, Some(End::Reply(_, outcome, _))) => match outcome {
            Outcome::Mended | Outcome::Flagged | Outcome::Partial | Outcome::Fallback => {
                Would::Mended
            }
            _ => Would::Nothing,
        },
        (Plan::Over, Some(End::Stream(..))) => Would::Nothing,
        (Plan::Over, Some(End::LastResort)) => Would::LastResort,
        (Plan::Over, Some(End::Fail(_)) | None) => Would::Refused,
    }
}

impl Call {
    /// Writes down what would have become of the call.
    fn watched(mut self: Box<Self>, would: Would) {
        self.would = would.word();
        self.engine.metrics().watched(&self.contract.route.name, self.would);
        let code = match &self.end {
            Some(End::Fail(error)) => error.code(),
            Some(End::Reply(..) | End::Stream(..) | End::LastResort) | None => "",
        };
        self.pay(Took::Unknown);
        self.close(Outcome::Watched, code, "");
    }
}
