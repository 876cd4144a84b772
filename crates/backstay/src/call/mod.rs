//! The life of one call. Read [`answer`]: it is the table of contents of this library.

mod again;
mod amended;
mod chain;
mod facts;
mod finish;
mod guarded;
mod objected;
mod pay;
mod places;
mod refuse;
mod report;
mod rescue;
mod retell;
mod seat;
mod spared;
mod stopped;
mod story;
mod streaming;
mod summed;
mod typed;
mod watch;

use std::sync::{Arc, OnceLock};

use backstay_decide::Moment;
use backstay_decide::breaker::{self, Cut, Paced, Report, Shape};
use backstay_decide::deadline::Source;
use backstay_decide::fault::Fault;
use backstay_decide::recover::LastResort;
use backstay_decide::timers::Timers;
use backstay_wire::amend::Objection;
use backstay_wire::chat::{Choice, Part, Turn};
use backstay_wire::{Finish, Usage};
use bytes::Bytes;
use http::HeaderMap;

use crate::admit::Seat;
use crate::attempt::stream::Live;
use crate::attempt::{self, Failure, Whole};
use crate::contract::{self, Ask, Contract};
use crate::engine::Engine;
use crate::fault::CallError;
use crate::policy;
use crate::record::{Outcome, Receipt, Trail};
use crate::route::{self, Halt, Held, Step, Stop};
use crate::validate::{self, Asked, Checks, Edit};
use again::Reasks;
use amended::{Amended, Best};
use chain::Begun;
use pay::Bill;
pub(crate) use pay::Purse;
pub(crate) use rescue::Anew;
use rescue::Rescue;
use seat::Queued;
pub(crate) use typed::Reader;
pub use typed::{Typed, TypedError, answer_as};
pub(crate) use watch::Judge;
pub use watch::{Watch, Would};

/// An answer, and what happened on the way to it.
#[derive(Debug)]
pub struct Answer {
    /// What the caller is told in headers.
    pub receipt: Receipt,
    /// Headers of the provider's that a caller may want, such as its request id.
    pub headers: HeaderMap,
    /// Every change that was made to the reply, in order. Empty for a stream under way.
    pub edits: Vec<Edit>,
    /// The answer itself.
    pub body: Body,
}

/// The answer's bytes, in the caller's dialect.
pub enum Body {
    /// In one piece: a JSON document.
    Whole(Bytes),
    /// A whole, checked reply told as a stream of events.
    Told(Bytes),
    /// A stream under way. Its failures are in-band; dropping it cancels the provider.
    Live(Box<Live>),
}

impl std::fmt::Debug for Body {
    /// Prints lengths: an answer is not for logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(bytes) => write!(f, "Whole({} bytes)", bytes.len()),
            Self::Told(bytes) => write!(f, "Told({} bytes)", bytes.len()),
            Self::Live(_) => f.write_str("Live"),
        }
    }
}

/// Answers one request: a checked answer or a typed failure, inside its deadline.
///
/// Dropping the future at any point cancels the call upstream and gives back all it holds.
///
/// # Errors
/// [`CallError`] says whose side it is on, what happened, and when to try again.
pub async fn answer(engine: &Engine, ask: Ask) -> Result<Answer, CallError> {
    serve(engine, settle(engine, ask)?).await
}

/// Settles a request. A refusal is counted and logged like a call that failed.
///
/// # Errors
/// The request is broken, names no route, or asks for what cannot be given.
pub fn settle(engine: &Engine, ask: Ask) -> Result<Contract, CallError> {
    let seen = refuse::Door::of(&ask);
    contract::settle(engine, ask).map_err(|error| seen.refuse(engine, error))
}

/// As [`answer`], for a contract that is settled already.
///
/// # Errors
/// As [`answer`].
pub async fn serve(engine: &Engine, contract: Contract) -> Result<Answer, CallError> {
    let mut call = Call::begin(engine.clone(), contract);
    call.sit().await;
    loop {
        let step = route::next(&mut call);
        if let Some(halt) = call.take(step).await {
            return call.finish(halt);
        }
        if call.contract.is_unheard() && call.plan != Plan::Over {
            return Err(call.unheard());
        }
    }
}

/// A call under way: it owns every guard and the trail.
#[derive(Debug)]
pub(crate) struct Call {
    pub engine: Engine,
    pub contract: Contract,
    /// Its seat. `None`: it has none yet, or will get none.
    seat: Option<Seat>,
    /// What its attempts take, and what the one under way may take.
    bill: Bill,
    /// Whether it waits for one.
    queued: Queued,
    /// The targets it may ask.
    pub stops: Vec<Stop>,
    /// Which of them it is at.
    pub current: Option<usize>,
    /// The limits of the last attempt, and the same before they were cut.
    timers: Option<[Timers; 2]>,
    /// Why a request could not be built for some target; told only if none was asked.
    pub unbuilt: Option<CallError>,
    /// What comes next.
    pub plan: Plan,
    /// Whether the route's last resort has the caller's shape, once somebody asked.
    resort: OnceLock<LastResort>,
    /// The output cap, once it was raised.
    pub cap: Option<u64>,
    /// Turns a re-ask adds.
    pub reask: Vec<Turn>,
    /// What re-asks took so far.
    reasks: Reasks,
    /// Requests sent.
    pub attempts: u32,
    /// Whether a request was sent again because its connection had been closed while it was kept.
    resent: bool,
    /// What targets objected to in requests of this call, by their place on the list.
    objections: Vec<(usize, Objection)>,
    /// Tokens of all attempts that said.
    usage: Usage,
    /// Whether some attempt did not say.
    at_least: bool,
    /// The story so far.
    trail: Trail,
    /// What the call ends with.
    end: Option<End>,
    /// The last failure, for the final error.
    last: Option<Failure>,
    /// The last reply that began and came to nothing.
    begun: Option<Box<Begun>>,
    /// What the row needs of the last attempt.
    seen: LastSeen,
    /// What was lost of the answer, in few words.
    notes: Vec<String>,
    /// What was changed in the answer.
    edits: Vec<Edit>,
    /// The best reply that is an answer with the declared fallbacks in place.
    best: Option<Box<Best>>,
    /// What the last request could not say in its provider's dialect.
    losses: Vec<String>,
    /// What the schemas of the last request were changed to.
    lowerings: Arc<attempt::adapter::Lowerings>,
    /// From arrival to the first content handed on.
    first_out: Option<std::time::Duration>,
    /// What is known of its stream, once that broke after its release.
    rescue: Option<Box<Rescue>>,
    /// What it would have come to, on a route that only watches; empty: the route acts.
    would: &'static str,
    /// When it was over, where that is written down later.
    ended_at: Option<Moment>,
    /// Whether the row was written.
    closed: bool,
}

/// What the call does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// The first attempt.
    Start,
    /// The same target, not before this moment.
    Again {
        /// When.
        until: Moment,
    },
    /// The same target, now, with something changed.
    Stay,
    /// Another target, now.
    Elsewhere,
    /// Nothing: see [`Call::end`].
    Over,
}

/// What a call ends with.
#[derive(Debug)]
pub(crate) enum End {
    /// A reply, how it ends, and what is put in place of what its choices say.
    Reply(Box<Whole>, Outcome, Vec<Amended>),
    /// A stream to hand on.
    Stream(Box<attempt::stream::Opened>, Held),
    /// The route's last resort.
    LastResort,
    /// A failure.
    Fail(Box<CallError>),
}

/// What the log needs of the last attempt.
#[derive(Clone, Debug, Default)]
struct LastSeen {
    request_id: Option<String>,
    finish: &'static str,
    validation: &'static str,
}

impl Call {
    fn begin(engine: Engine, contract: Contract) -> Box<Self> {
        engine.metrics().began();
        let stops = route::list(&engine, &contract);
        let simulated = contract.simulated.as_ref();
        let notes = simulated.map(|fault| format!("simulated {}", fault.behaviour));
        let mut call = Box::new(Self {
            stops,
            engine,
            contract,
            seat: None,
            bill: Bill::default(),
            queued: Queued::default(),
            current: None,
            timers: None,
            unbuilt: None,
            plan: Plan::Start,
            resort: OnceLock::new(),
            cap: None,
            reask: Vec::new(),
            reasks: Reasks::default(),
            attempts: 0,
            resent: false,
            objections: Vec::new(),
            usage: Usage::default(),
            at_least: false,
            trail: Trail::with_room(),
            end: None,
            last: None,
            begun: None,
            seen: LastSeen::default(),
            notes: notes.into_iter().collect(),
            edits: Vec::new(),
            best: None,
            losses: Vec::new(),
            lowerings: Arc::default(),
            first_out: None,
            rescue: None,
            would: "",
            ended_at: None,
            closed: false,
        });
        call.settled();
        call
    }

    /// Takes the next step. `Some`: it was the last.
    async fn take(&mut self, step: Step) -> Option<Halt> {
        match step {
            Step::Try(shot) => {
                self.contract.set_asked(true);
                let seen = attempt::race(&self.engine, &self.contract, shot).await;
                self.contract.set_asked(false);
                self.note(seen);
            }
            Step::Rest(until) => self.engine.clock().sleep_until(until).await,
            Step::Line { index, until, limit } => route::stand(self, index, until, limit).await,
            Step::End(halt) => return Some(halt),
        }
        None
    }

    /// Turns to another target: what belonged to the last one is left behind.
    pub(crate) fn turn_to(&mut self, index: usize) {
        if let Some(stop) = self.current.and_then(|before| self.stops.get_mut(before)) {
            stop.stay = None;
        }
        self.current = Some(index);
        self.reask.clear();
        self.reasks.turn();
    }

    /// Whether the route has an answer that needs no model, and that has the shape this caller
    /// asked for. The config has held it to the route's own schema; a caller's is known only now.
    pub(crate) fn last_resort(&self) -> LastResort {
        let Some(resort) = &self.contract.route.last_resort else { return LastResort::HasNot };
        if !self.contract.shape.by_caller() {
            return LastResort::Has;
        }
        *self.resort.get_or_init(|| self.fits(resort))
    }

    /// Whether the route's last resort has the shape this caller asked for.
    fn fits(&self, resort: &policy::LastResort) -> LastResort {
        let shape = Checks {
            shape: self.contract.checks.shape.clone(),
            rules: Arc::default(),
            mending: Arc::default(),
        };
        let checked = validate::judge(&resort_choice(resort), &shape, &Asked::nothing());
        match checked.and_then(|checked| self.read(checked)) {
            Ok(_) => LastResort::Has,
            Err(_) => LastResort::HasNot,
        }
    }

    /// What the end of an attempt says about its target. A wait that the caller's own, shorter
    /// deadline cut says nothing: else an impatient caller would take a healthy target from everyone.
    pub(crate) fn report(&self, fault: Option<Fault>) -> Report {
        self.report_of(fault, Paced::HadRoom)
    }

    /// As [`Call::report`], for an attempt whose target's rates had room for it or had not.
    pub(crate) fn report_of(&self, fault: Option<Fault>, paced: Paced) -> Report {
        let shape = match (self.contract.schema_key(), self.contract.quality_key()) {
            (Some(_), _) => Shape::Structured,
            (None, Some(_)) => Shape::Watched,
            (None, None) => Shape::Free,
        };
        let cut =
            if fault.is_some_and(|fault| self.was_cut(fault)) { Cut::Caller } else { Cut::Route };
        Report::of(breaker::Seen { fault, shape, cut, paced })
    }

    /// Whether a wait was shorter than the route's because the caller's deadline is.
    fn was_cut(&self, fault: Fault) -> bool {
        let cut = self.timers.is_some_and(|[timers, uncut]| match fault {
            Fault::NoFirstToken => timers.first_token < uncut.first_token,
            Fault::TotalTimeout => timers.total < uncut.total,
            Fault::Stalled => timers.gap < uncut.gap,
            _ => false,
        });
        cut && self.contract.deadline.source != Source::Route
    }

    /// The target the call is at.
    fn stop(&self) -> Option<&Stop> {
        self.current.and_then(|index| self.stops.get(index))
    }

    /// The target's name, or `none`.
    fn target_id(&self) -> &str {
        self.stop().map_or("none", |stop| stop.target.id.as_str())
    }
}

/// The route's own answer as a choice.
pub(super) fn resort_choice(resort: &policy::LastResort) -> Choice {
    let text = match resort {
        policy::LastResort::Json(value) => value.to_string(),
        policy::LastResort::Text(text) => text.clone(),
    };
    Choice { parts: vec![Part::Text(text)], finish: Finish::Complete, finish_word: None }
}
