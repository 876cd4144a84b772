//! Ends a call: the answer in the caller's dialect, the receipt, the row.

use std::time::Duration;

use backstay_decide::recover::LastResort as Resort;
use backstay_decide::spend::Took;
use backstay_decide::{Local, Moment};
use backstay_wire::dialect::{StreamPlace, UsageEvent};
use backstay_wire::{Dialect, Reply};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};

use super::amended::{Amended, amend};
use super::report::tally;
use super::retell::retold;
use super::summed::with_usage;
use super::{Answer, Body, Call, End, Plan};
use crate::attempt::Whole;
use crate::attempt::stream::Live;
use crate::contract::Wants;
use crate::fault::{CallError, Cause};
use crate::record::trail::milliseconds;
use crate::record::{Known, Outcome, Receipt, RouteMeter, Row, Step};
use crate::route::{self, Halt};

/// Most notes told to a caller; the call log has all.
const MAX_NOTES: usize = 20;

impl Call {
    /// Ends the call as planned.
    pub(crate) fn finish(mut self: Box<Self>, halt: Halt) -> Result<Answer, CallError> {
        let end = match halt {
            Halt::Failed(error) => End::Fail(Box::new(error)),
            Halt::Planned => self.end.take().unwrap_or_else(|| {
                let note = "the call ended without a plan; please report this";
                End::Fail(Box::new(CallError::local(Local::Internal, note)))
            }),
        };
        match end {
            End::Reply(whole, outcome, amended) => Ok(self.reply(whole, outcome, amended)),
            End::LastResort => Ok(self.resort()),
            End::Fail(error) => Err(self.fail(*error)),
            End::Stream(opened, held) => Ok(self.stream(opened, held)),
        }
    }

    /// No target can be asked any more: the last resort, or a failure told by `note`.
    pub(crate) fn ends_without_target(&mut self, cause: Local, note: String) {
        self.plan = Plan::Over;
        self.tell(Step::Decided { next: "end".into(), why: note.clone() });
        if self.best.is_some() {
            self.falls_back();
            return;
        }
        if self.last_resort() == Resort::Has && cause != Local::OverBudget {
            self.end = Some(End::LastResort);
            return;
        }
        let last = self.last.as_ref().map(|last| self.cause(last));
        let note = match last {
            Some(last) => format!("{note}; last fault: {}", last.note),
            None => note,
        };
        let id = &self.contract.call_id;
        let note = format!("{note}; see `backstay explain {id}`");
        // That all rest is this call's own doing when its attempts failed: then the failure has
        // the name of what went wrong there.
        let error = match last {
            Some(last) if cause == Local::NoTarget => CallError::attempt(last.fault, note),
            Some(_) | None => CallError::local(cause, note),
        };
        let error =
            error.told_by(last.and_then(|last| last.provider.clone())).again_after(self.earliest());
        self.end = Some(End::Fail(Box::new(error)));
    }

    /// The call may not go on, for a reason of ours: the best reply, the last resort, or a failure told
    /// by `why`. `again`: when a new one may be tried.
    pub(super) fn ends_here(&mut self, cause: Local, why: String, again: Option<Duration>) {
        self.plan = Plan::Over;
        let note = format!("{why}; see `backstay explain {}`", self.contract.call_id);
        self.tell(Step::Decided { next: "end".into(), why });
        if self.best.is_some() {
            self.falls_back();
            return;
        }
        self.end = Some(match self.last_resort() {
            Resort::Has => End::LastResort,
            Resort::HasNot => End::Fail(Box::new(CallError::local(cause, note).again_after(again))),
        });
    }

    /// How long until some target may be called again.
    fn earliest(&self) -> Option<Duration> {
        let now = self.engine.now();
        let rests = self.stops.iter().filter_map(|stop| route::rests_until(self, stop, now));
        rests.min().map(|until| until.since(now))
    }

    fn reply(
        mut self: Box<Self>,
        whole: Box<Whole>,
        outcome: Outcome,
        amended: Vec<Amended>,
    ) -> Answer {
        let caller = self.contract.ask.dialect;
        let raw = whole.raw.filter(|_| whole.dialect == caller);
        let raw = match amended.as_slice() {
            [] => raw,
            amended => raw.and_then(|raw| retold(caller, &raw, amended)),
        };
        let earlier = self.usage.less(whole.reply.usage);
        let raw = raw.map(|raw| with_usage(caller, raw, &earlier));
        // Events tell the usage of their own attempt only.
        let is_first = self.attempts <= 1;
        let as_they_are = is_first && amended.is_empty() && whole.dialect == caller;
        let events = whole.events.filter(|_| as_they_are);
        let mut reply = whole.reply;
        reply.usage = reply.usage.plus(earlier);
        amend(&mut reply, amended);
        let body = match (self.contract.wants, raw) {
            (Wants::Stream { usage }, _) => {
                Body::Told(events.unwrap_or_else(|| self.told(&mut reply, usage)))
            }
            (Wants::Whole, Some(raw)) => Body::Whole(raw),
            (Wants::Whole, None) => {
                self.dates(&mut reply);
                let written = caller.write_reply(&reply);
                self.lost(&written.losses);
                Body::Whole(Bytes::from(written.bytes))
            }
        };
        let one_only = caller == Dialect::Anthropic;
        if matches!(body, Body::Told(_)) && one_only && reply.choices.len() > 1 {
            self.notes.push(format!("lost /choices: 1 of {} told", reply.choices.len()));
        }
        let body = self.with_report(body, reply.choices.len());
        self.answered(outcome, body)
    }

    /// Gives `reply` a time where it has none: now.
    fn dates(&self, reply: &mut Reply) {
        if reply.created == 0 {
            reply.created = self.engine.clock().wall().as_secs();
        }
    }

    /// The whole stream that tells `reply`. It names the model that answered, as a plain body does, and
    /// the one asked for where the reply names none.
    fn told(&mut self, reply: &mut Reply, usage: bool) -> Bytes {
        self.dates(reply);
        let usage = if usage { UsageEvent::Send } else { UsageEvent::Omit };
        let model = if reply.model.is_empty() { &self.contract.model } else { &reply.model };
        let place =
            StreamPlace { model: model.clone(), created: reply.created, ..StreamPlace::default() };
        let mut writer = self.contract.ask.dialect.stream_writer_from(&place, usage);
        let mut out = Vec::new();
        for delta in reply.deltas() {
            writer.write(&delta, &mut out);
        }
        self.lost(writer.losses());
        Bytes::from(out)
    }

    /// The route's own answer.
    fn resort(mut self: Box<Self>) -> Answer {
        let choice = self.contract.route.last_resort.as_ref().map(super::resort_choice);
        let mut reply = Reply {
            id: format!("backstay-{}", self.contract.call_id),
            model: "backstay/last-resort".into(),
            created: self.engine.clock().wall().as_secs(),
            choices: choice.into_iter().collect(),
            ..Reply::default()
        };
        let caller = self.contract.ask.dialect;
        let body = match self.contract.wants {
            Wants::Stream { usage } => Body::Told(self.told(&mut reply, usage)),
            Wants::Whole => Body::Whole(Bytes::from(caller.write_reply(&reply).bytes)),
        };
        self.answered(Outcome::LastResort, body)
    }

    fn answered(mut self: Box<Self>, outcome: Outcome, body: Body) -> Answer {
        let receipt = self.receipt(outcome);
        let headers = self.provider_headers();
        self.close_as(&receipt, "", "");
        let edits = std::mem::take(&mut self.edits);
        Answer { receipt, headers, edits, body }
    }

    fn fail(mut self: Box<Self>, error: CallError) -> CallError {
        let receipt = self.receipt(Outcome::Failed);
        // An attempt's failure is told by the steps before; its sentence may quote the reply.
        let note = match error.cause() {
            Cause::Here(_) if self.attempts == 0 => error.to_string(),
            Cause::Here(_) | Cause::Attempt(_) => String::new(),
        };
        self.close_as(&receipt, error.code(), &note);
        error.with_receipt(receipt)
    }

    /// Ends a call that would ask again, for nobody.
    pub(super) fn unheard(mut self: Box<Self>) -> CallError {
        let note = "the caller left; nothing more is asked";
        self.close(Outcome::Abandoned, "", note);
        CallError::local(Local::AttemptsExhausted, note)
    }

    fn stream(
        self: Box<Self>,
        opened: Box<crate::attempt::stream::Opened>,
        held: route::Held,
    ) -> Answer {
        let receipt = self.receipt(Outcome::Answered);
        let headers = self.provider_headers();
        self.contract.set_asked(true);
        let live = Live::new(self, opened, held);
        Answer { receipt, headers, edits: Vec::new(), body: Body::Live(Box::new(live)) }
    }

    /// What the caller is told.
    pub(crate) fn receipt(&self, outcome: Outcome) -> Receipt {
        let stop = self.current.and_then(|index| self.stops.get(index));
        let stop = stop.filter(|_| self.attempts > 0);
        Receipt {
            call_id: self.contract.call_id.clone(),
            outcome,
            target: stop.map(|stop| stop.target.id.clone()),
            tier: stop.map(|stop| u32::try_from(stop.tier).unwrap_or(u32::MAX).saturating_add(1)),
            attempts: self.attempts,
            fingerprint: self.contract.fingerprint.label(),
            edits: tally(&self.edits),
            cost: self.cost(),
            rescued: self.rescue.as_ref().map(|rescue| rescue.came_out),
            notes: self.losses.iter().chain(&self.notes).take(MAX_NOTES).cloned().collect(),
        }
    }

    /// The provider's request id, under the names SDKs read.
    fn provider_headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let id = self.seen.request_id.as_deref().and_then(|id| HeaderValue::from_str(id).ok());
        if let Some(id) = id {
            let name = match self.contract.ask.dialect {
                Dialect::OpenaiChat => "x-request-id",
                Dialect::Anthropic => "request-id",
            };
            headers.insert(HeaderName::from_static(name), id);
        }
        headers
    }

    /// Writes the row. Once; later calls do nothing.
    pub(crate) fn close(&mut self, outcome: Outcome, code: &'static str, note: &str) {
        if !self.closed {
            let receipt = self.receipt(outcome);
            self.close_as(&receipt, code, note);
        }
    }

    pub(super) fn close_as(&mut self, receipt: &Receipt, code: &'static str, note: &str) {
        let unheard = self.contract.is_unheard();
        let outcome = if unheard { Outcome::Abandoned } else { receipt.outcome };
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        let now = self.engine.now();
        let ended = self.ended_at.unwrap_or(now);
        let took = ended.since(self.contract.ask.arrived);
        self.charge_seat();
        let is_plain = outcome == Outcome::Answered && code.is_empty();
        match is_plain.then(|| self.route_meter()).flatten() {
            Some(meter) => self.engine.metrics().answered(meter, took),
            None => self.engine.metrics().ended(self.counted_as(), outcome, code, took),
        }
        if self.contract.wants != Wants::Whole {
            self.engine.metrics().streams().ended(self.contract.stream_mode, outcome);
        }
        let told = (!code.is_empty()).then_some(code.into());
        let note = match note {
            "" if unheard => "the caller left; the reply was read to its end".to_owned(),
            "" => self.ending(receipt),
            note => note.to_owned(),
        };
        self.tell_at(now, Step::Ended { outcome: outcome.word().into(), code: told, note });
        let contract = &self.contract;
        let caller = contract.ask.caller.as_deref();
        let simulated = contract.simulated.as_ref();
        let row = Row {
            call_id: receipt.call_id.clone(),
            at_ms: self.arrived_at(now),
            route: contract.route.name.clone(),
            model: contract.model.clone(),
            dialect: contract.ask.dialect.name().into(),
            streamed: matches!(contract.wants, Wants::Stream { .. }),
            caller: caller.map(|caller| caller.name.clone()).unwrap_or_default(),
            tenant: caller.map(|caller| caller.tenant.clone()).unwrap_or_default(),
            fingerprint: receipt.fingerprint.clone(),
            prompt_version: contract.route.prompt_version.clone().unwrap_or_default(),
            outcome: outcome.word().into(),
            code: code.into(),
            target: receipt.target.clone().unwrap_or_default(),
            tier: receipt.tier.unwrap_or_default(),
            attempts: receipt.attempts,
            provider_request_id: self.seen.request_id.take().unwrap_or_default(),
            finish: self.seen.finish.into(),
            validation: self.seen.validation.into(),
            edits: receipt.edits_told(),
            would: self.would.into(),
            simulated: simulated.map(|fault| fault.behaviour.clone()).unwrap_or_default(),
            latency_ms: milliseconds(took),
            first_token_ms: self.first_out.map(milliseconds).unwrap_or_default(),
            input_tokens: self.usage.input.unwrap_or_default(),
            output_tokens: self.usage.output.unwrap_or_default(),
            at_least: self.at_least,
            cost: receipt.cost.map(|cost| cost.money.to_string()).unwrap_or_default(),
            cost_at_least: receipt.cost.is_some_and(|cost| cost.known == Known::AtLeast),
            booked_tokens: self.bill.tokens(),
            trail: std::mem::take(&mut self.trail),
        };
        self.engine.call_log().put(row);
    }

    /// What the call counts if nothing happens to it, at the target it is at. `None`: there is none, or
    /// its counters have to be looked up.
    pub(super) fn route_meter(&self) -> Option<&RouteMeter> {
        let stop = self.stop()?;
        let (metrics, target) = (self.engine.metrics(), stop.target.id.as_str());
        let route = self.counted_as();
        stop.health.meter(metrics, target).of_route(route, || metrics.route(route, target))
    }

    /// What was changed in the answer and lost of it.
    fn ending(&self, receipt: &Receipt) -> String {
        let edits = receipt.edits_told();
        let edits = (!edits.is_empty()).then(|| format!("edits: {edits}"));
        edits.into_iter().chain(self.notes.iter().cloned()).collect::<Vec<_>>().join("; ")
    }

    /// When the call arrived, in milliseconds since the Unix epoch.
    fn arrived_at(&self, now: Moment) -> u64 {
        let ago = now.since(self.contract.ask.arrived);
        let wall = self.engine.clock().wall().saturating_sub(ago);
        u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)
    }
}

impl Drop for Call {
    /// A call dropped before its end: the caller left.
    fn drop(&mut self) {
        self.at_least |= self.attempts > 0;
        self.pay(Took::Unknown);
        let last = self.trail.notes.last().map(|note| &note.step);
        if let Some(Step::Sent { target, .. }) = last.filter(|_| !self.closed) {
            self.engine.metrics().attempted(target, Outcome::Abandoned.word());
        }
        let left = if self.gave_up() {
            "the caller left while it waited for a seat"
        } else {
            "the caller left before the end"
        };
        self.close(Outcome::Abandoned, "", left);
    }
}
