//! Writes the call's story as it goes: steps of the trail, counts of the metrics.

use std::time::Duration;

use backstay_decide::Moment;
use backstay_decide::alert::Kind;
use backstay_decide::breaker::{Transition, Turn};
use backstay_decide::fault::Fault;
use backstay_decide::pacing::Slowed;
use backstay_decide::recover::{Decision, Next};
use backstay_decide::shift::Judged;
use backstay_decide::spend::Took;
use backstay_wire::Reply;
use backstay_wire::amend::Objection;

use super::Call;
use super::facts::REFUSED;
use super::pay::Bill;
use crate::admit::line::Stood;
use crate::attempt::adapter::Form;
use crate::attempt::{Got, Seen};
use crate::contract::{CapOwner, Contract, SIMULATED};
use crate::record::trail::milliseconds;
use crate::record::{GOOD, Step, Word};
use crate::route::{Armed, Limit};
use crate::validate::{INSIDE, Layer, Unfit};

/// The most changes of schemas that one attempt's step tells.
const MAX_CHANGES: usize = 20;

impl Call {
    /// Whether the stop at `index` is a fault that the caller asked for.
    pub(super) fn is_simulated(&self, index: usize) -> bool {
        index == 0 && self.contract.simulated.is_some()
    }

    /// The route's name in the metrics: what is simulated is counted apart.
    pub(super) fn counted_as(&self) -> &str {
        match self.contract.simulated {
            Some(_) => SIMULATED,
            None => &self.contract.route.name,
        }
    }

    /// Tells operators of something, unless it may come of a fault that the caller asked for.
    pub(super) fn alert(&self, kind: Kind, subject: &str, message: impl FnOnce() -> String) {
        if self.contract.simulated.is_none() {
            self.engine.alert(kind, subject, message);
        }
    }

    /// Adds a step to the trail.
    pub(super) fn tell(&mut self, step: Step) {
        self.tell_at(self.engine.now(), step);
    }

    /// Adds a step to the trail that was taken at `now`.
    pub(super) fn tell_at(&mut self, now: Moment, step: Step) {
        self.trail.add(now.since(self.contract.ask.arrived), step);
    }

    pub(super) fn settled(&mut self) {
        let contract = &self.contract;
        let cap_of = match contract.cap.owner {
            CapOwner::Caller => "caller",
            CapOwner::Route => "route",
            CapOwner::Nobody => "nobody",
        };
        let step = Step::Settled {
            route: contract.route.name.clone(),
            deadline_ms: u64::try_from(contract.deadline.total.as_millis()).unwrap_or(u64::MAX),
            deadline_from: deadline_from(contract),
            bytes: contract.ask.body.len() as u64,
            cap_of: cap_of.into(),
            cap: contract.cap.tokens,
            fingerprint: contract.fingerprint.label(),
        };
        self.tell(step);
        let skipped: Vec<Step> = self
            .stops
            .iter()
            .filter_map(|stop| {
                let why = stop.unable.clone()?;
                Some(Step::Skipped { target: stop.target.id.clone(), why })
            })
            .collect();
        for step in skipped {
            self.tell(step);
        }
    }

    /// An attempt goes out: it counts from here, also when nobody waits for its end.
    pub(crate) fn sending(&mut self, armed: &Armed) {
        self.timers = Some([armed.timers, armed.uncut.timers]);
        self.attempts += 1;
        let losses = armed.request.losses.iter().map(|loss| format!("lost {}", loss.path));
        self.losses = losses.collect();
        let lowered = told(&armed.request.lowerings.told);
        self.losses.extend(lowered.first().cloned());
        let t = armed.timers;
        let step = Step::Sent {
            attempt: self.attempts,
            target: armed.target.id.clone(),
            tier: armed.tier,
            form: match armed.request.form {
                Form::Plain => "plain".into(),
                Form::Stream => "stream".into(),
            },
            fingerprint: armed.request.fingerprint.label(),
            limits_ms: [t.connect, t.first_token, t.gap, t.total].map(whole_milliseconds),
            limits_from: armed.uncut.from.map(|from| from.name().into()),
            budget: self.stops.get(armed.index).and_then(|stop| stop.fits),
            losses: armed
                .request
                .losses
                .iter()
                .map(|l| format!("{}: {}", l.path, l.note))
                .collect(),
            lowered,
        };
        self.tell(step);
    }

    /// The attempt that went out does not count: it is made again over another connection.
    pub(super) fn takes_back(&mut self, seen: &Seen) {
        self.attempts -= 1;
        let note = seen.result.as_ref().err().map_or("", |failure| failure.note.as_str());
        let why = format!("{note}: sent again at once, not counted");
        self.tell(Step::Decided { next: "again".into(), why });
    }

    /// The target is asked again without what it objects to.
    pub(super) fn objected(&mut self, objection: Objection) {
        let what = match objection {
            Objection::Field(field) => format!("`{field}` is not taken: asked again without it"),
            Objection::OldCap => {
                "the cap is wanted as `max_completion_tokens`: asked again so".into()
            }
            Objection::NewCap => "the cap is wanted as `max_tokens`: asked again so".into(),
            Objection::SignedThinking => {
                "reasoning signed by another provider is not taken: asked again without it".into()
            }
            Objection::ToolIds => {
                "ids of tool calls are not taken: asked again with short ones".into()
            }
        };
        self.tell(Step::Decided { next: "amend".into(), why: what });
    }

    /// What was about to go out did not, for the call is only watched.
    pub(super) fn unsend(&mut self, why: String) {
        self.trail.notes.retain(|note| !matches!(note.step, Step::Sent { .. }));
        self.attempts = 0;
        self.pay(Took::Nothing);
        // What went out instead has a price of its own.
        self.bill = Bill::default();
        self.tell(Step::Decided { next: "elsewhere".into(), why });
    }

    /// A target is passed over.
    pub(crate) fn skips(&mut self, index: usize) {
        let Some(stop) = self.stops.get(index) else { return };
        let (target, why) = (stop.target.id.clone(), stop.unable.clone().unwrap_or_default());
        self.tell(Step::Skipped { target, why });
    }

    /// A target is passed over that may not be called now.
    pub(crate) fn rests(&mut self, index: usize, why: String) {
        let Some(stop) = self.stops.get_mut(index) else { return };
        stop.passed_over = true;
        let target = stop.target.id.clone();
        self.tell(Step::Skipped { target, why });
    }

    /// A target is left for good without being asked.
    pub(crate) fn leaves(&mut self, index: usize, why: String) {
        self.rests(index, why);
        if let Some(stop) = self.stops.get_mut(index) {
            stop.left = true;
        }
    }

    pub(crate) fn waits(&mut self, why: String, wait: Duration) {
        self.tell(Step::Waited { ms: milliseconds(wait), why: why.into() });
    }

    /// The call waits for a limit of the target at `index`: its name and its sum.
    pub(crate) fn waits_for_limit(&mut self, index: usize, (name, sum): &Limit, wait: Duration) {
        let Some(stop) = self.stops.get(index) else { return };
        let target = &stop.target.id;
        self.engine.metrics().limits().waits(target, name, wait);
        let why = format!("{target}: {name} ({sum})");
        self.waits(why, wait);
    }

    /// The call waited in the line of the target at `index`, where it `stood` so.
    pub(crate) fn waits_behind(&mut self, index: usize, stood: Stood, waited: Duration) {
        let Some(stop) = self.stops.get(index) else { return };
        let target = &stop.target.id;
        self.engine.metrics().limits().waits(target, "queue", waited);
        self.waits(format!("{target}: in its line: {stood}"), waited);
    }

    /// The line of the target at `index` does not take the call, or not any more.
    pub(crate) fn turned_away(&mut self, index: usize, (name, why): (&'static str, String)) {
        let Some(stop) = self.stops.get_mut(index) else { return };
        let target = stop.target.id.clone();
        stop.turned_away = Some(why.clone());
        self.tell(Step::Skipped { target, why: format!("{name}: {why}") });
    }

    /// What came of an attempt, at `now`.
    pub(super) fn came(&mut self, seen: &Seen, now: Moment) {
        let target = seen.armed.target.id.as_str();
        let failure = match &seen.result {
            Ok(Got::Doubtful(_, doubt)) if doubt.fault == Fault::TooSlow => Some(doubt.as_ref()),
            Ok(_) => None,
            Err(failure) => Some(failure),
        };
        let metrics = self.engine.metrics();
        match (failure, self.stops.get(seen.armed.index)) {
            (None, Some(stop)) => stop.health.meter(metrics, target).replied(),
            (Some(_), _) | (None, None) => {
                metrics.attempted(target, failure.map_or("", |failure| failure.fault.code()));
            }
        }
        if let Some(first) = seen.first_token {
            metrics.first_token(target, first);
        }
        let reply = match &seen.result {
            Ok(Got::Whole(whole)) => Some(&whole.reply),
            Ok(Got::Live(_) | Got::Doubtful(..)) | Err(_) => None,
        };
        if failure.is_some_and(|failure| failure.fault == Fault::UnknownFinish) {
            self.unknown_finish(target, failure.map_or("", |failure| failure.note.as_str()));
        }
        let finish = reply.and_then(|reply| reply.choices.first()).map(|c| c.finish.word());
        self.seen.request_id.clone_from(&seen.request_id);
        self.seen.finish = finish.unwrap_or("");
        self.seen.validation = "";
        let step = Step::Came {
            attempt: self.attempts,
            status: seen.status,
            fault: failure.map(|failure| failure.fault.code().into()),
            note: failure.map(|failure| failure.note.clone()).unwrap_or_default(),
            took_ms: milliseconds(seen.took),
            first_token_ms: seen.first_token.map(milliseconds),
            provider_request_id: seen.request_id.clone(),
            finish: finish.map(Into::into),
            usage: reply.map(|reply| (reply.usage.input, reply.usage.output)),
        };
        self.tell_at(now, step);
    }

    /// Adds up the tokens of a reply, and counts what it held that is not known here.
    pub(super) fn counted(&mut self, reply: &Reply) {
        self.count_usage(reply.usage);
        self.met_quirks(&reply.quirks);
        if !reply.unknown.is_empty() {
            let target = self.target_id();
            let found = reply.unknown.join(", ");
            tracing::warn!(%target, %found, "a reply held elements not known here");
            self.engine.metrics().unknown(target, reply.unknown.len() as u64);
        }
    }

    pub(super) fn count_usage(&mut self, usage: backstay_wire::Usage) {
        self.at_least |= usage.input.is_none() || usage.output.is_none();
        if let Some(unread) = self.learn(usage.input) {
            self.signalled(&[unread]);
        }
        self.usage = self.usage.plus(usage);
        let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
        if let Some(stop) = self.stop() {
            stop.health.meter(self.engine.metrics(), &stop.target.id).tokens(input, output);
        }
    }

    /// A finish nobody knows: it failed closed, and an operator has to look.
    pub(super) fn unknown_finish(&self, target: &str, note: &str) {
        tracing::error!(target_id = target, note, "a reply ended in a way not known here");
        self.engine.metrics().unknown(target, 1);
        let call = &self.contract.call_id;
        self.alert(Kind::UnknownFinish, target, || {
            format!("{note}; it was handed on to nobody; see `backstay explain {call}`")
        });
    }

    /// What the checks said of a reply, at `now`.
    pub(super) fn judged(&mut self, unfit: Option<&Unfit>, now: Moment) {
        let status = unfit.map_or(GOOD, |unfit| word(unfit.fault));
        self.seen.validation = status;
        let target = self.target_id();
        if let Some(unfit) = unfit.filter(|unfit| unfit.fault == Fault::UnknownFinish) {
            self.unknown_finish(target, &unfit.errors.join("; "));
        }
        match unfit.is_none().then(|| self.route_meter()).flatten() {
            Some(meter) => meter.passed(),
            None => self.engine.metrics().judged(self.counted_as(), target, status),
        }
        self.watch_shift(target, unfit);
        let errors = unfit.map(logged).unwrap_or_default();
        self.tell_at(now, Step::Judged { verdict: status.into(), errors });
    }

    /// Counts a reply that had to have a shape, and tells when more of them break it than used to.
    fn watch_shift(&self, target: &str, unfit: Option<&Unfit>) {
        let judged = match unfit.map(|unfit| unfit.fault) {
            None => Judged::Good,
            Some(Fault::NotJson | Fault::SchemaError) => Judged::Bad,
            // Of these the shape was not looked at.
            Some(_) => return,
        };
        if !self.contract.wants_json() || !self.engine.has_alerts() {
            return;
        }
        let subject = format!("{} at {target}", self.contract.route.name);
        if let Some(words) = self.engine.alerts().judged(&subject, judged) {
            self.alert(Kind::SchemaShift, &subject, || words);
        }
    }

    pub(super) fn decided(&mut self, decision: &Decision) {
        let next = match decision.next {
            Next::Again { .. } => "again",
            Next::Elsewhere => "elsewhere",
            Next::Reask => "reask",
            Next::RaiseCap => "raise_cap",
            Next::Fallback => "fallback",
            Next::Hand => "hand",
            Next::LastResort => "last_resort",
            Next::Fail => "fail",
        };
        self.tell(Step::Decided { next: next.into(), why: decision.why.to_string() });
    }

    /// Breakers of the target at `index` changed: an operator wants to know at once.
    pub(crate) fn turned(&mut self, index: usize, changes: &[Turn]) {
        let Some(stop) = self.stops.get(index).filter(|_| !changes.is_empty()) else { return };
        let now = self.engine.now();
        let mut steps = Vec::with_capacity(changes.len());
        for turn in changes {
            let (target, plane) = (stop.target.id.as_str(), turn.plane.name());
            match turn.change {
                Transition::Opened { .. } => {
                    tracing::warn!(target_id = target, %turn, "breaker opened");
                }
                Transition::Reopened { .. } => {
                    tracing::warn!(target_id = target, %turn, "breaker opened again");
                }
                Transition::HalfOpened { .. } => {
                    tracing::info!(target_id = target, %turn, "breaker half-open");
                }
                Transition::Closed { .. } => {
                    tracing::info!(target_id = target, %turn, "breaker closed");
                }
                Transition::Restored { .. } => {
                    tracing::info!(target_id = target, %turn, "breaker restored");
                }
            }
            let shut = stop.health.shut(plane, now);
            self.engine.metrics().breaker(target, turn, shut);
            let kind = match turn.change {
                Transition::Opened { .. } => Some(Kind::BreakerOpened),
                Transition::Closed { .. } => Some(Kind::BreakerClosed),
                Transition::Reopened { .. }
                | Transition::HalfOpened { .. }
                | Transition::Restored { .. } => None,
            };
            if let Some(kind) = kind {
                let subject = format!("{target} {}", turn.plane);
                self.alert(kind, &subject, || turn.change.to_string());
            }
            steps.push(Step::Turned { target: target.to_owned(), change: turn.to_string() });
        }
        for step in steps {
            self.tell(step);
        }
    }
}

/// How a 429 slowed a target's rates is told like the change of a breaker.
impl Call {
    pub(super) fn slowed(&mut self, index: usize, slowed: &Slowed) {
        let Some(stop) = self.stops.get(index) else { return };
        let target = stop.target.id.clone();
        if slowed.rate.is_some() {
            tracing::warn!(target_id = %target, %slowed, "slowed after a 429");
            self.engine.metrics().limits().slowed(&target, slowed.dimension.name());
        }
        self.tell(Step::Turned { target, change: slowed.to_string() });
    }
}

/// The changes of schemas for the log: how many, then the first of them.
fn told(changes: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    match changes {
        [] => return lines,
        [only] => lines.push(format!("schema lowered: 1 change: {only}")),
        changes => {
            lines.push(format!("schema lowered: {} changes", changes.len()));
            lines.extend(changes.iter().take(MAX_CHANGES).cloned());
        }
    }
    if let Some(left) = changes.len().checked_sub(MAX_CHANGES).filter(|left| *left > 0) {
        lines.push(format!("and {left} more"));
    }
    lines
}

/// Who set the deadline, and which headers were not understood.
fn deadline_from(contract: &Contract) -> Word {
    let source = contract.deadline.source.name();
    match contract.ignored.as_slice() {
        [] => source.into(),
        ignored => format!("{source}; not understood: {}", ignored.join(", ")).into(),
    }
}

fn whole_milliseconds(time: Duration) -> u32 {
    u32::try_from(time.as_millis()).unwrap_or(u32::MAX)
}

/// The errors of a reply as the log may have them: without the reply's own words. Messages of rules
/// are the operator's; a refusal is left out; of a schema's errors only names that look like names
/// are kept.
fn logged(unfit: &Unfit) -> Vec<String> {
    match unfit.layer {
        Layer::Completion => Vec::new(),
        Layer::Rules => unfit.errors.clone(),
        Layer::Syntax => unfit.errors.iter().map(|e| without_words(&nowhere(e))).collect(),
        Layer::Schema => unfit.errors.iter().map(|e| without_words(e)).collect(),
    }
}

/// Beginnings of sentences that go on in the words of a reply, or of a type that may quote it.
const QUOTING: [&str; 2] = ["it could be read as", REFUSED];

/// The place without its pointer, which may hold keys of the reply.
fn nowhere(error: &str) -> String {
    match error.split_once(INSIDE) {
        Some((place, _)) if place.contains(" (line ") => format!("{place})"),
        _ => error.to_owned(),
    }
}

fn without_words(error: &str) -> String {
    if let Some(start) = QUOTING.iter().find(|start| error.starts_with(**start)) {
        return format!("{start} …");
    }
    // A pointer may hold keys of the reply.
    let error = match error.split_once(": ") {
        Some((pointer, error)) if pointer.starts_with('/') => error,
        _ => error,
    };
    let is_name = |name: &str| {
        let letter = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        name.len() <= 40 && name.chars().all(letter)
    };
    let mut pieces = error.split('\'');
    let (before, quoted, after) = (pieces.next(), pieces.next(), pieces.next());
    match (before.unwrap_or_default(), quoted, after) {
        (whole, None, _) if is_name(whole.split(' ').next().unwrap_or_default()) => {
            // A number is not in quotes.
            let bare = whole.strip_suffix(" not in enum").and_then(|told| told.rsplit_once(' '));
            bare.map_or_else(|| whole.to_owned(), |(name, _)| format!("{name} … not in enum"))
        }
        ("Expecting ", Some(sign), Some(after)) => format!("Expecting '{sign}'{after}"),
        ("missing ", Some(name), Some("")) if is_name(name) => error.to_owned(),
        ("", Some(name), Some(after)) if is_name(name) && after.starts_with(" should be ") => {
            error.to_owned()
        }
        (before, _, _) if error.ends_with(" not in enum") => format!("{before}'…' not in enum"),
        (before, _, _) => format!("{before}'…'"),
    }
}

/// The status of a judged reply, as the log and the metrics have it: S2's words where it has one.
fn word(fault: Fault) -> &'static str {
    match fault {
        Fault::Truncated => "truncated",
        Fault::Refused | Fault::ContentFiltered | Fault::ContentPolicy => "refused",
        Fault::NotJson => "not_json",
        Fault::SchemaError => "schema_error",
        Fault::SemanticError => "semantic_error",
        Fault::Empty => "empty",
        Fault::Paused => "paused",
        Fault::UnknownFinish => "unknown_finish",
        Fault::ContextExceeded => "context_exceeded",
        other => other.code(),
    }
}

#[cfg(test)]
mod tests {
    use super::{nowhere, without_words};

    #[test]
    fn the_log_has_the_line_of_a_refusal_and_no_key_of_the_reply() {
        for (told, kept) in [
            ("Expecting value at char 0", "Expecting value at char 0"),
            (
                "Expecting value at char 9 (line 1, column 10, in /card 4111/it's)",
                "Expecting value at char 9 (line 1, column 10)",
            ),
            (
                "Expecting ',' delimiter at char 9 (line 1, column 10, in /a'b)",
                "Expecting ',' delimiter at char 9 (line 1, column 10)",
            ),
            ("duplicate key 'x' (line 1, column 8, in /card)", "duplicate key '…'"),
            (
                "a part of the value is missing: Expecting value at char 9 (line 1, column 10, in /pin); write the whole value",
                "a part of the value is missing: Expecting value at char 9 (line 1, column 10)",
            ),
        ] {
            assert_eq!(without_words(&nowhere(told)), kept);
        }
    }

    #[test]
    fn the_log_keeps_names_of_the_schema_and_drops_words_of_the_reply() {
        for (told, kept) in [
            ("missing 'needs_human'", "missing 'needs_human'"),
            ("'priority' should be int", "'priority' should be int"),
            ("category 'payments' not in enum", "category '…' not in enum"),
            ("unexpected 'card 4111'", "unexpected '…'"),
            ("code 41111111 not in enum", "code … not in enum"),
            ("it could be read as (1) {\"card\": 4111}", "it could be read as …"),
            ("the value is refused: unknown card 4111", "the value is refused …"),
            ("summary longer than 200 chars", "summary longer than 200 chars"),
            ("duplicate key 'x'", "duplicate key '…'"),
            ("Expecting ',' delimiter at char 212", "Expecting ',' delimiter at char 212"),
            ("Expecting value at char 0", "Expecting value at char 0"),
            ("unexpected 'PIN 1234 should be kept'", "unexpected '…'"),
            ("unexpected 'it's 4111'", "unexpected '…'"),
            ("/a/4111 1111/b: missing 'x'", "missing 'x'"),
            ("'card 4111' should be int", "'…'"),
        ] {
            assert_eq!(without_words(told), kept);
        }
    }
}
