//! Settles what is asked: who serves it, within what limits, and what a good answer is.
//!
//! In: the caller's bytes and headers. Out: a [`Contract`], which names no target: that is the
//! route stage's affair. Everything that is wrong with a request by itself is found here, before
//! any network call and at no cost: broken JSON, wrong types, an unknown route, a bad schema.

mod ask;
mod budget;
mod cap;
mod effects;
mod fingerprint;
mod guards;
pub mod lint;
mod mode;
mod presence;
mod priority;
pub mod shape;
mod simulated;
mod tools;

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use backstay_decide::deadline::{self, Asked, Deadline};
use backstay_decide::timers::{min_attempt, reserve};
use backstay_decide::{Local, Moment};
use backstay_wire::Chat;
use backstay_wire::dialect::Malformed;
use backstay_wire::scan::{Edit, Scanned, scan};
use bytes::Bytes;

use crate::call::Reader;
use crate::engine::Engine;
use crate::fault::CallError;
use crate::policy::{GuardPolicy, OnDisconnect, Route, StreamMode};
use crate::recover::Template;
use crate::validate::{Checks, Shape};

pub use ask::{Ask, Caller, Reach};
pub use backstay_wire::Dialect;
pub use budget::Added;
pub(crate) use budget::may_hold_pictures;
pub(crate) use cap::fields as cap_fields;
pub use cap::{Cap, CapOwner};
pub use fingerprint::Fingerprint;
pub use presence::{MAX_UNHEARD, Presence};
use shape::Print;
pub(crate) use shape::{field as format_field, output_config};
pub use simulated::{SIMULATED, Simulated};

/// Deepest nesting of a request: more than any real tool schema, far below a stack's end.
const MAX_DEPTH: usize = 120;

/// The longest model name, in bytes: it names state, rows and headers.
const MAX_MODEL: usize = 256;

/// The quality of text stands under this, where that of a schema stands under its hash.
pub(crate) const TEXT: u64 = 0;

/// What one call is about. Settled once, never changed.
#[derive(Debug)]
pub struct Contract {
    /// The call's id, a UUID of version 7.
    pub call_id: String,
    /// What came in.
    pub ask: Ask,
    /// Where its top-level fields stand.
    pub head: Scanned,
    /// The route that serves it.
    pub route: Arc<Route>,
    /// The model's name as the caller wrote it.
    pub model: String,
    /// Whether the caller wants a stream.
    pub wants: Wants,
    /// How a stream is handed on, when one is wanted.
    pub stream_mode: StreamMode,
    /// What is looked for in a reply, and what is done about it.
    pub guards: GuardPolicy,
    /// The place of its class among those of the queue, the highest first.
    pub class: usize,
    /// The output cap and whose it is.
    pub cap: Cap,
    /// What a reply must be.
    pub checks: Checks,
    /// What the type says that a program asked for. `None`: it asked for none.
    pub(crate) reader: Option<Reader>,
    /// The wording of re-asks. `None`: the default.
    pub template: Option<Template>,
    /// The schema in force as JSON text, when it is the route's and has to be sent.
    pub shape: shape::Asked,
    /// From arrival to the last byte.
    pub deadline: Deadline,
    /// What the contract hashes to.
    pub fingerprint: Fingerprint,
    /// Deadline headers that were there and made no sense.
    pub ignored: Vec<&'static str>,
    /// Tries of this same request by layers above.
    pub prior_attempts: u32,
    /// The pause between two comments of a stream while nothing can be shown.
    pub keep_alive: Duration,
    /// A fault that the caller asked for. `None`: everything is real.
    pub simulated: Option<Simulated>,
    /// Whether the caller is still there. `None`: the route does not ask.
    pub presence: Option<Arc<Presence>>,
    neutral: OnceLock<Result<Chat, Malformed>>,
    offered: OnceLock<tools::Offered>,
    print: OnceLock<Option<Print>>,
    pictures: OnceLock<bool>,
    counted: OnceLock<Option<u64>>,
    effect: OnceLock<Option<&'static str>>,
}

/// How the caller wants its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wants {
    /// In one piece.
    Whole,
    /// As a stream.
    Stream {
        /// Whether it asked for a usage event.
        usage: bool,
    },
}

impl Contract {
    /// The deadline as a moment.
    pub fn ends_at(&self) -> Moment {
        self.ask.arrived.plus(self.deadline.total)
    }

    /// The models' deadline: the caller's, less the reserve. Of a very short deadline a tenth is
    /// kept instead.
    pub fn models_until(&self) -> Moment {
        let kept = reserve(self.deadline.total);
        self.ask.arrived.plus(self.deadline.total.saturating_sub(kept))
    }

    /// The shortest attempt worth starting.
    pub fn min_attempt(&self) -> Duration {
        min_attempt(self.deadline.total)
    }

    /// Whether its caller left, and it goes on.
    pub(crate) fn is_unheard(&self) -> bool {
        self.presence.as_ref().is_some_and(|presence| presence.has_left())
    }

    /// Notes whether a provider is at work for the call.
    pub(crate) fn set_asked(&self, asked: bool) {
        if let Some(presence) = &self.presence {
            presence.set_asked(asked);
        }
    }

    /// The request in the neutral form, built when first needed.
    ///
    /// # Errors
    /// The request is not of its dialect's form.
    pub fn neutral(&self) -> Result<&Chat, CallError> {
        self.neutral.get_or_init(|| self.read()).as_ref().map_err(malformed)
    }

    /// The Messages API demands a cap; where the caller left it to the route, the route's stands in.
    fn read(&self) -> Result<Chat, Malformed> {
        let dialect = self.ask.dialect;
        let by_route = dialect == Dialect::Anthropic && self.cap.owner == CapOwner::Route;
        let Some(tokens) = self.cap.tokens.filter(|_| by_route) else {
            return dialect.read_request(&self.ask.body);
        };
        let edit = Edit::Set("max_tokens", tokens.to_string());
        dialect.read_request(&self.head.edit(&self.ask.body, &[edit]))
    }

    /// A rule that looks at the last user message needs a request that can be read; without it, it
    /// would fail every reply, at the price of every re-ask.
    fn rules_have_their_input(&self) -> Result<(), CallError> {
        let mut rules = self.route.rules.iter();
        if !self.checks.rules.is_empty() && rules.any(|rule| rule.input.is_none()) {
            self.neutral()?;
        }
        Ok(())
    }

    /// Whether the reply has to be JSON.
    pub fn wants_json(&self) -> bool {
        match self.checks.shape {
            Shape::Text => false,
            Shape::Json | Shape::Schema(_) => true,
        }
    }

    /// The schema of the reply as JSON text; empty: there is none.
    pub fn schema_text(&self) -> String {
        match &self.checks.shape {
            Shape::Schema(schema) => schema.source().to_string(),
            Shape::Text | Shape::Json => String::new(),
        }
    }

    /// What the quality of replies is kept apart by: the schema's hash. `None`: there is none.
    pub fn schema_key(&self) -> Option<u64> {
        match &self.checks.shape {
            Shape::Schema(schema) => u64::from_str_radix(schema.hash(), 16).ok(),
            Shape::Text | Shape::Json => None,
        }
    }

    /// What the quality of replies is kept apart by, text that is watched for loops included. `None`:
    /// nothing is judged.
    pub(crate) fn quality_key(&self) -> Option<u64> {
        self.schema_key().or_else(|| self.guards.cuts().then_some(TEXT))
    }

    /// The schema of the reply as it is sent, measured when first needed. `None`: there is none.
    pub(crate) fn schema_print(&self) -> Option<Print> {
        *self.print.get_or_init(|| self.shape.schema().map(|schema| Print::of(schema)))
    }

    /// Whether a reply may call tools.
    pub fn offers_tools(&self) -> bool {
        shape::offers_tools(&self.head, &self.ask)
    }

    /// Whether more than one answer may come: anything but `n` absent, null or 1. What is no whole
    /// number is the provider's to judge.
    pub fn wants_several(&self) -> bool {
        wants_several(&self.head, &self.ask)
    }

    /// How many answers are asked for; at least 1. What is no whole number counts as one.
    pub(crate) fn choices(&self) -> u64 {
        let told = self.head.unsigned(&self.ask.body, "n").ok().flatten();
        told.unwrap_or(1).max(1)
    }

    /// How many answers may come. What is no whole number counts as more than there can be.
    pub(crate) fn most_choices(&self) -> usize {
        if !self.wants_several() {
            return 1;
        }
        let told = self.head.unsigned(&self.ask.body, "n").ok().flatten();
        told.and_then(|told| usize::try_from(told).ok()).unwrap_or(usize::MAX)
    }

    /// Whether a stream goes to the caller before all of it is there.
    pub fn is_released(&self) -> bool {
        matches!(self.wants, Wants::Stream { .. }) && self.stream_mode != StreamMode::Buffered
    }

    /// The input a rule looks at: the last user message, or what a pointer finds in the request.
    pub fn rule_input(&self, pointer: Option<&str>) -> String {
        let Some(pointer) = pointer else {
            return self.neutral().map(Chat::last_user_text).unwrap_or_default();
        };
        let request: serde_json::Value = serde_json::from_slice(&self.ask.body).unwrap_or_default();
        match request.pointer(pointer) {
            Some(serde_json::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
            None => String::new(),
        }
    }
}

/// Settles `ask` under the engine's present policy.
///
/// # Errors
/// The request is broken, names no route, or asks for what cannot be given.
pub fn settle(engine: &Engine, ask: Ask) -> Result<Contract, CallError> {
    let head = scanned(&ask)?;
    let model = required_model(&head, &ask.body)?;
    let plan = engine.plan();
    let (route, ready) = plan.route(&model).ok_or_else(|| unknown_route(&model, &plan.names()))?;
    may_use(ask.caller.as_deref(), &route)?;
    let wants = wants(&head, &ask)?;
    let class = priority::settle(&ask, &plan.policy().queue)?;
    messages_are_a_list(&head, &ask.body)?;
    let cap = cap::settle(&head, &ask, &route).map_err(|fault| malformed(&fault))?;
    let (shape, checks) = shape::settle(&head, &ask, &route, &ready, engine)?;
    let stream_mode =
        mode::settle(&head, &ask, (wants, wants_several(&head, &ask)), &route, &checks)?;
    let guards = guards::settle(&head, &ask, &route, &checks)?;
    let asked = patience(&ask.headers);
    let fingerprint = fingerprint::of(&head, &ask, &route);
    let contract = Contract {
        call_id: engine.new_id(),
        deadline: deadline::settle(route.deadline, &asked),
        prior_attempts: asked.prior_attempts,
        keep_alive: asked.keep_alive(),
        ignored: asked.ignored.iter().map(|source| source.name()).collect(),
        model: model.into_owned(),
        presence: match route.on_disconnect {
            OnDisconnect::Cancel => None,
            OnDisconnect::Finish { .. } => Some(Arc::default()),
        },
        simulated: None,
        neutral: OnceLock::new(),
        offered: OnceLock::new(),
        print: OnceLock::new(),
        pictures: OnceLock::new(),
        counted: OnceLock::new(),
        effect: OnceLock::new(),
        ask,
        head,
        route,
        wants,
        stream_mode,
        guards,
        class,
        cap,
        checks,
        template: ready.template.clone(),
        reader: None,
        shape,
        fingerprint,
    };
    contract.rules_have_their_input()?;
    Ok(contract)
}

/// Where the top-level fields of a request stand.
pub(crate) fn scanned(ask: &Ask) -> Result<Scanned, CallError> {
    scan(&ask.body, MAX_DEPTH)
        .map_err(|fault| CallError::local(Local::InvalidRequest, fault.to_string()))
}

/// How the names end that [`Asked::read`] asks for.
const KNOWN_ENDS: [&str; 4] = ["-timeout", "-timeout-ms", "-deadline", "-count"];

/// What the caller's headers say of its patience. The names are looked for among the few headers
/// there are, not the other way round: most callers send none of them.
fn patience(headers: &http::HeaderMap) -> Asked {
    let known = |name: &str| KNOWN_ENDS.iter().any(|end| name.ends_with(end));
    let told: Vec<(&str, &str)> = headers
        .iter()
        .filter(|(name, _)| known(name.as_str()))
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    Asked::read(|wanted| told.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value))
}

fn required_model<'a>(head: &Scanned, body: &'a Bytes) -> Result<Cow<'a, str>, CallError> {
    let model = head.string(body, "model").map_err(|fault| malformed(&fault))?;
    if let Some(name) = model.as_deref()
        && (name.len() > MAX_MODEL || name.chars().any(char::is_control))
    {
        let note = format!("`model` must be at most {MAX_MODEL} bytes without control characters");
        return Err(CallError::local(Local::InvalidRequest, note).blaming("model"));
    }
    model.filter(|name| !name.is_empty()).ok_or_else(|| {
        CallError::local(
            Local::InvalidRequest,
            "`model` is missing; name a route or provider/model",
        )
        .blaming("model")
    })
}

fn wants_several(head: &Scanned, ask: &Ask) -> bool {
    !matches!(head.raw(&ask.body, "n"), None | Some(b"1" | b"null"))
}

fn wants(head: &Scanned, ask: &Ask) -> Result<Wants, CallError> {
    let stream = head.boolean(&ask.body, "stream").map_err(|fault| malformed(&fault))?;
    if stream != Some(true) {
        return Ok(Wants::Whole);
    }
    let options = head.raw(&ask.body, "stream_options").unwrap_or_default();
    let options: serde_json::Value = serde_json::from_slice(options).unwrap_or_default();
    let usage = options.get("include_usage").and_then(serde_json::Value::as_bool);
    Ok(Wants::Stream { usage: usage == Some(true) || ask.dialect == Dialect::Anthropic })
}

fn messages_are_a_list(head: &Scanned, body: &Bytes) -> Result<(), CallError> {
    let wrong = |note: &str| {
        Err(CallError::local(Local::InvalidRequest, format!("`messages` {note}"))
            .blaming("messages"))
    };
    match head.raw(body, "messages") {
        None => wrong("is missing; give a list of messages"),
        Some(raw) if raw.first() != Some(&b'[') => wrong("must be a list of messages"),
        Some(raw) if raw.iter().skip(1).all(|b| b.is_ascii_whitespace() || *b == b']') => {
            wrong("is empty; give at least one message")
        }
        Some(_) => Ok(()),
    }
}

/// Whether the caller's key opens the route.
pub(crate) fn may_use(caller: Option<&Caller>, route: &Route) -> Result<(), CallError> {
    let Some(caller) = caller.filter(|caller| !caller.reach.has(route)) else {
        return Ok(());
    };
    let opens = match &caller.reach {
        Reach::These(names) => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>(),
        Reach::Everything | Reach::Routes => vec!["the configured routes".to_owned()],
    };
    let note = format!(
        "the key `{}` may not use the model `{}`; it may use {}",
        caller.name,
        route.pattern.0,
        opens.join(", ")
    );
    Err(CallError::local(Local::Forbidden, note).blaming("model"))
}

fn unknown_route(model: &str, names: &[String]) -> CallError {
    let shown: String = model.chars().take(100).collect();
    let known = match names {
        [] => "no routes are configured".to_owned(),
        names => format!("configured routes: {}", names.join(", ")),
    };
    let note = format!("no route or provider serves the model `{shown}`; {known}");
    CallError::local(Local::UnknownRoute, note).blaming("model")
}

/// A request that is not of its dialect's form, as a failure.
pub(crate) fn malformed(fault: &Malformed) -> CallError {
    let error = CallError::local(Local::InvalidRequest, fault.to_string());
    let param = fault.path.trim_start_matches('/').replace('/', ".");
    if param.is_empty() { error } else { error.blaming(param) }
}

#[cfg(test)]
mod tests {
    use backstay_decide::deadline::{Asked, Source};
    use http::{HeaderMap, HeaderName, HeaderValue};

    use super::patience;

    #[test]
    fn every_header_that_tells_of_patience_is_found() {
        let others =
            ["x-stainless-read-timeout", "x-stainless-retry-count", "x-envoy-attempt-count"];
        for name in Source::HEADERS.map(Source::name).into_iter().chain(others) {
            let header = (HeaderName::from_static(name), HeaderValue::from_static("5"));
            let headers: HeaderMap = [header].into_iter().collect();
            assert_ne!(patience(&headers), Asked::default(), "{name}");
        }
    }
}
