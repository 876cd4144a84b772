//! Takes in what came of an attempt: judge it, decide, and plan the next step.

use std::sync::Arc;

use backstay_decide::extra;
use backstay_decide::fault::Fault;
use backstay_decide::recover::{
    self, Cap, Decision, Facts, Fallback, Next, OnRefusal, OnSemantic, Schema,
};
use backstay_decide::spend::Took;
use backstay_decide::{Backoff, Dice, Moment};
use backstay_wire::Usage;
use backstay_wire::chat::Choice;

use super::amended::has_cut_call;
use super::{Call, End, Plan};
use crate::attempt::{Failure, Got, Over, Seen, Whole};
use crate::clock::ThreadDice;
use crate::contract::CapOwner;
use crate::policy::RefusalPolicy;
use crate::record::Outcome;
use crate::route::{self, Armed, Brought, Ending, Stay, Timed};
use crate::validate::{self, Asked, Checked, Layer, Unfit};

/// What the caller is told of a request that was sent again without being counted.
const RESENT: &str = "sent again: an idle connection had closed";

/// How an error begins that a type's own `Deserialize` gives.
pub(super) const REFUSED: &str = "the value is refused";

impl Call {
    /// Takes note of an attempt and plans what follows.
    pub(crate) fn note(&mut self, seen: Seen) {
        if self.resends(&seen) {
            return;
        }
        if let Some(stop) = self.stops.get_mut(seen.armed.index) {
            stop.tries += 1;
        }
        let now = self.engine.now();
        self.came(&seen, now);
        self.attempted(&seen);
        self.pays_for(&seen);
        if !seen.limits.is_empty() {
            seen.armed.held.observe(&seen.limits, now);
        }
        let timed = seen.timed();
        let Seen { armed, result, first_token, limits, signals, cut, stopped, .. } = seen;
        self.signalled(&signals);
        if let Some(at) = stopped {
            self.stopped_early(at);
        }
        let cut = cut.or_else(|| self.quiet_refusal(&signals));
        match result {
            Ok(Got::Whole(whole)) => match cut {
                Some(cut) => self.cut_whole(armed, &whole, (timed, cut)),
                None => self.judge(armed, whole, timed),
            },
            Ok(Got::Live(opened)) => {
                self.releases(opened, armed.held);
            }
            Ok(Got::Doubtful(opened, failure)) => {
                let failure = *failure;
                let next = self.decide(&failure);
                if next == Next::Hand {
                    if failure.fault == Fault::TooSlow {
                        self.notes.push(failure.note);
                    }
                    self.releases(opened, armed.held);
                    return;
                }
                // It is given up, and what it told so far is no sum.
                self.at_least = true;
                self.pay(Took::Unknown);
                let report = self.report(Some(failure.fault));
                let brought = Brought::Content(first_token);
                self.settle(
                    armed,
                    Ending { report, brought, usage: Usage::default(), timed, leaves: None },
                );
                self.follow(next, failure, None);
            }
            Err(failure) => {
                self.cut_off(&failure);
                // It says nothing about the target, as a dropped attempt does not.
                if self.amends(&armed, &failure) {
                    return;
                }
                self.at_least |= failure.fault != Fault::ConnectFailed;
                self.spares(armed.index, &armed.held, &failure, &limits);
                let report = self.report_of(Some(failure.fault), armed.held.paced());
                let brought = Brought::Fault(failure.fault);
                self.settle(
                    armed,
                    Ending { report, brought, usage: Usage::default(), timed, leaves: None },
                );
                let next = self.decide(&failure);
                self.follow(next, failure, None);
            }
        }
    }

    /// Once a call, a kept connection that turned out closed is replaced, at once and for nothing: it
    /// says as little about the target as it took of its time.
    fn resends(&mut self, seen: &Seen) -> bool {
        let stale = seen.result.as_ref().is_err_and(|failure| failure.over == Over::Stale);
        if !stale || self.resent {
            return false;
        }
        self.resent = true;
        self.at_least = true;
        self.notes.push(RESENT.to_owned());
        self.takes_back(seen);
        self.pay(Took::Nothing);
        self.plan = Plan::Stay;
        true
    }

    /// Judges a whole reply: it ends the call, or is a failure like any other.
    fn judge(&mut self, armed: Box<Armed>, whole: Box<Whole>, timed: Timed) {
        self.lowerings = Arc::clone(&armed.request.lowerings);
        self.counted(&whole.reply);
        let verdict = self.verdict(&whole);
        let report = self.report(verdict.as_ref().err().map(|(_, unfit)| unfit.fault));
        let leaves = self.leaving(verdict.is_ok());
        let (brought, usage) = (Brought::Content(timed.first_token), whole.reply.usage);
        let now = self.settle(armed, Ending { report, brought, usage, timed, leaves });
        self.judged(verdict.as_ref().err().map(|(_, unfit)| unfit), now);
        match verdict {
            Ok(checked) => self.passes(whole, checked),
            Err((at, unfit)) => {
                let failure = Failure::new(unfit.fault, sentence(&unfit));
                if can_be_mended(unfit.fault) {
                    let nothing = Choice::default();
                    let choice = whole.reply.choices.get(at).unwrap_or(&nothing);
                    self.prepare_reask(choice, &unfit, whole.reply.usage);
                }
                let next = if unfit.is_reaskable() {
                    self.keep_best(&whole);
                    self.decide(&failure)
                } else {
                    self.rejected(&failure)
                };
                self.follow(next, failure, Some(whole));
            }
        }
    }

    /// Every choice of the reply must pass; an empty reply is judged as one choice with nothing.
    pub(super) fn verdict(&self, whole: &Whole) -> Result<Vec<Checked>, (usize, Unfit)> {
        self.each_choice(whole, |choice, asked| self.judge_choice(choice, asked))
    }

    fn judge_choice(&self, choice: &Choice, asked: &Asked<'_>) -> Result<Checked, Unfit> {
        let checked = validate::judge(choice, &self.contract.checks, asked)?;
        let value_missing = self.contract.wants_json() && checked.document.is_none();
        if value_missing && !self.contract.offers_tools() {
            return Err(unasked_call());
        }
        self.read(checked)
    }

    /// Every choice as it passes, with declared fallbacks where it does not. `None`: they do not
    /// help.
    pub(super) fn with_fallbacks(&self, whole: &Whole) -> Option<Vec<Checked>> {
        let checks = &self.contract.checks;
        let judged = self.each_choice(whole, |choice, asked| {
            self.judge_choice(choice, asked)
                .or_else(|unfit| validate::with_fallbacks(&unfit, checks, asked).ok_or(unfit))
                .and_then(|checked| self.read(checked))
        });
        judged.ok()
    }

    /// What `judge` makes of each choice, or the first that it refuses.
    fn each_choice(
        &self,
        whole: &Whole,
        judge: impl Fn(&Choice, &Asked<'_>) -> Result<Checked, Unfit>,
    ) -> Result<Vec<Checked>, (usize, Unfit)> {
        let contract = &self.contract;
        let input = |pointer: Option<&str>| contract.rule_input(pointer);
        let tool = |name: &str| contract.tool(name, &self.engine);
        let lowered = |tool: Option<&str>| self.lowerings.of(tool);
        let asked = Asked { input: &input, tool: &tool, lowered: &lowered, way: self.way() };
        let nothing = [Choice::default()];
        let choices = match whole.reply.choices.as_slice() {
            [] => &nothing[..],
            choices => choices,
        };
        let judged = choices.iter().map(|choice| judge(choice, &asked)).enumerate();
        judged.map(|(at, judged)| judged.map_err(|unfit| (at, unfit))).collect()
    }

    /// What the type that was asked for says to a reply that fits its schema.
    pub(super) fn read(&self, checked: Checked) -> Result<Checked, Unfit> {
        let Some(reader) = &self.contract.reader else { return Ok(checked) };
        // A call of a tool is no value, and none of the type's business.
        let read = checked.node().map_or(Ok(()), |node| reader.check(node));
        let refused =
            |why| Unfit::new(Fault::SchemaError, Layer::Schema, vec![format!("{REFUSED}: {why}")]);
        read.map(|()| checked).map_err(refused)
    }

    /// The call's stay at its target, which ends with a good reply.
    fn leaving(&mut self, ends: bool) -> Option<Stay> {
        let stop = self.current.and_then(|index| self.stops.get_mut(index))?;
        if ends { stop.stay.take() } else { None }
    }

    /// Reports how the attempt went to its target. Returns when.
    pub(super) fn settle(&mut self, armed: Box<Armed>, ending: Ending) -> Moment {
        let now = self.engine.now();
        let changes = armed.held.settle(ending, now);
        self.turned(armed.index, &changes);
        now
    }

    /// Asks the one table what to do.
    pub(super) fn decide(&mut self, failure: &Failure) -> Next {
        let decision = self.decide_by(failure, recover::decide);
        self.decided(&decision);
        decision.next
    }

    /// Asks `table` what to do, and the target's budget where that is a retry there.
    pub(super) fn decide_by(
        &mut self,
        failure: &Failure,
        table: impl Fn(&Facts, &mut dyn Dice) -> Decision,
    ) -> Decision {
        let facts = self.facts(failure);
        let decision = table(&facts, &mut ThreadDice);
        // A key that is dead or spent is no load on the target, and its neighbour no retry.
        let of_key = matches!(failure.fault, Fault::QuotaExhausted | Fault::Auth);
        if !matches!(decision.next, Next::Again { .. }) || of_key {
            return decision;
        }
        let retry = self.ask_retry();
        if retry.is_ok() {
            return decision;
        }
        let decision = table(&Facts { retry, ..facts }, &mut ThreadDice);
        if let Some(stop) = self.current.and_then(|index| self.stops.get_mut(index)) {
            stop.asks_again = matches!(decision.next, Next::Again { .. });
        }
        decision
    }

    /// Asks the budget of the target the call is at for a retry there.
    fn ask_retry(&mut self) -> Result<(), extra::Refusal> {
        let now = self.engine.now();
        let Some(stop) = self.current.and_then(|index| self.stops.get_mut(index)) else {
            return Ok(());
        };
        let asked = stop.stay.as_mut().map_or(Ok(()), |stay| stay.ask(now));
        if let Err(refusal) = &asked {
            self.engine.metrics().limits().retry_refused(&stop.target.id, refusal.name());
        }
        asked
    }

    /// What follows a reply of which the route rejects a field: no re-ask and no fallback.
    fn rejected(&mut self, failure: &Failure) -> Next {
        let on_semantic = OnSemantic::Reject;
        let facts = Facts { fault: Fault::SemanticError, on_semantic, ..self.facts(failure) };
        let decision = recover::decide(&facts, &mut ThreadDice);
        self.decided(&decision);
        decision.next
    }

    pub(super) fn facts(&self, failure: &Failure) -> Facts {
        let now = self.engine.now();
        let route = &self.contract.route;
        let throttled = matches!(failure.fault, Fault::RateLimited | Fault::Overloaded);
        let asked = self.contract.wants_json();
        let stop = self.stop();
        Facts {
            fault: failure.fault,
            server_delay: failure.server_delay,
            veto: failure.veto,
            left: now.until(self.contract.models_until()),
            attempts: self.attempts.saturating_add(self.charged()),
            max_attempts: route.max_attempts,
            tries_here: stop.map_or(1, |stop| stop.tries.max(1)),
            retry: Ok(()),
            other_key: route::other_key(self, now),
            reask: self.reask_budget(),
            fallback: if self.best.is_some() { Fallback::Has } else { Fallback::HasNot },
            cap: self.cap_standing(),
            schema: if asked { Schema::Asked } else { Schema::None },
            live_elsewhere: route::live_elsewhere(self, now),
            on_semantic: route.on_semantic,
            on_refusal: match route.on_refusal {
                // A guard reports a refusal only where the route goes on from it.
                RefusalPolicy::LastResort if failure.found.is_none() => OnRefusal::LastResort,
                RefusalPolicy::LastResort | RefusalPolicy::NextTier => OnRefusal::NextTier,
            },
            last_resort: self.last_resort(),
            backoff: if throttled { Backoff::THROTTLED } else { Backoff::TRANSIENT },
            min_attempt: self.contract.min_attempt(),
        }
    }

    /// Attempts charged for the tries that layers above us made: they cost this call its retries,
    /// never the first attempt at each tier.
    fn charged(&self) -> u32 {
        let route = &self.contract.route;
        let tiers = u32::try_from(route.tiers.len()).unwrap_or(u32::MAX);
        self.contract.prior_attempts.min(route.max_attempts.saturating_sub(tiers))
    }

    fn cap_standing(&self) -> Cap {
        let cap = self.contract.cap;
        let structured = self.contract.wants_json();
        match (cap.owner, self.cap, cap.ceiling) {
            (CapOwner::Route, None, Some(_)) => Cap::Raisable,
            // Free text that cannot get longer is handed on with its finish, as the provider
            // itself would.
            (CapOwner::Route | CapOwner::Nobody, _, _) if structured => Cap::Spent,
            (CapOwner::Route | CapOwner::Nobody | CapOwner::Caller, _, _) => Cap::CallersOwn,
        }
    }

    /// Turns a decision into a plan.
    pub(super) fn follow(&mut self, next: Next, failure: Failure, whole: Option<Box<Whole>>) {
        self.plan = match next {
            Next::Again { after } => Plan::Again { until: self.engine.now().plus(after) },
            Next::Elsewhere => {
                self.leave(failure.fault);
                Plan::Elsewhere
            }
            Next::Reask => {
                self.ask_again();
                Plan::Stay
            }
            Next::RaiseCap => {
                self.cap = self.contract.cap.ceiling;
                Plan::Stay
            }
            Next::Hand => {
                self.end = Some(self.handed(&failure, whole));
                Plan::Over
            }
            Next::LastResort => {
                self.end = Some(End::LastResort);
                Plan::Over
            }
            Next::Fallback if self.best.is_some() => {
                self.falls_back();
                Plan::Over
            }
            Next::Fallback | Next::Fail => {
                self.end = Some(End::Fail(Box::new(self.error(&failure))));
                Plan::Over
            }
        };
        self.failed(failure);
    }

    /// Leaves a target for good where its fault would come again.
    fn leave(&mut self, fault: Fault) {
        let repeats = !matches!(
            fault,
            Fault::RateLimited
                | Fault::Overloaded
                | Fault::ServerError
                | Fault::ProviderTimeout
                | Fault::ConnectFailed
                | Fault::ConnectionLost
                | Fault::NoFirstToken
                | Fault::Stalled
                | Fault::TotalTimeout
                | Fault::StreamCut
                | Fault::MalformedReply
                | Fault::Empty
                | Fault::TooSlow
        );
        if let Some(stop) = self.current.and_then(|index| self.stops.get_mut(index)) {
            stop.left |= repeats;
        }
    }

    /// What the caller gets as it is: a reply with its own finish, or the provider's refusal.
    fn handed(&self, failure: &Failure, whole: Option<Box<Whole>>) -> End {
        // A call of a tool is an effect: half of one is never handed on.
        let Some(whole) = whole.filter(|whole| !has_cut_call(&whole.reply)) else {
            return End::Fail(Box::new(self.error(failure)));
        };
        let outcome = match failure.fault {
            Fault::Truncated => Outcome::Truncated,
            Fault::Paused => Outcome::Paused,
            _ => Outcome::Refused,
        };
        End::Reply(whole, outcome, Vec::new())
    }
}

/// Whether the model may do better when it is told what is wrong.
fn can_be_mended(fault: Fault) -> bool {
    matches!(fault, Fault::NotJson | Fault::SchemaError | Fault::SemanticError)
}

/// A reply that calls tools where JSON was asked for and no tool was offered.
fn unasked_call() -> Unfit {
    let note = "the reply calls a tool, and none was offered; answer with JSON text";
    Unfit::new(Fault::NotJson, Layer::Syntax, vec![note.to_owned()])
}

/// What was wrong with a reply in one sentence, also where the fault says it all.
pub(super) fn sentence(unfit: &Unfit) -> String {
    if !unfit.errors.is_empty() {
        return unfit.errors.join("; ");
    }
    match unfit.fault {
        Fault::Truncated => "the reply was cut off at its output cap".to_owned(),
        Fault::Refused => "the model refused".to_owned(),
        Fault::ContentFiltered => "the provider's filter stopped the reply".to_owned(),
        Fault::Empty => "the reply was empty".to_owned(),
        other => other.code().replace('_', " "),
    }
}
