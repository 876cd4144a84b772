//! What the operator wants, parsed at the door into values that cannot be wrong.
//!
//! A [`Policy`] is immutable; a reload makes a new one. A call reads it once and keeps that copy.

mod alerts;
mod guards;
mod limits;
mod mending;
mod provider;
mod queue;
mod route;
mod secret;
mod streaming;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use alerts::{AlertPolicy, Webhook};
pub use guards::{EarlyStop, GuardPolicy, OnFinding, QuietRefusal};
pub use limits::Limits;
pub use mending::{
    Align, Coercion, Encoded, Enums, Extra, Field, FieldPath, Mending, Missing, OnFail, Partial,
    Report, Syntax,
};
pub use provider::{
    CapField, CredentialSource, Money, Pinning, Prefill, Price, Prices, Provider, Structured,
    Target, Tariff,
};
pub use queue::{Queueing, SEATS};
pub use route::{
    AfterRelease, LastResort, OnDisconnect, OnSemantic, Pattern, ReaskPolicy, RefusalPolicy, Route,
    RouteMode, RuleText, Timeouts, Timer, Upstream,
};
pub(crate) use secret::KeyDigest;
pub use secret::Secret;
pub use streaming::{Holding, Pace, StreamMode, Tokens, Window};

/// Everything the engine needs to know to serve calls.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// Providers by name.
    pub providers: BTreeMap<String, Arc<Provider>>,
    /// Targets (a model at a provider) by name.
    pub targets: BTreeMap<String, Arc<Target>>,
    /// Routes in the order they are tried: exact names first, then globs, longest pattern first.
    pub routes: Vec<Arc<Route>>,
    /// How operators are told of what needs them. `None`: by the log's own lines only.
    pub alerts: Option<Arc<AlertPolicy>>,
    /// How many calls run at once, and who waits in which order.
    pub queue: Queueing,
}

impl Policy {
    /// A policy without routes: every model is asked for as `provider/model`.
    pub fn of(providers: impl IntoIterator<Item = Provider>) -> Self {
        let named = |provider: Provider| (provider.name.clone(), Arc::new(provider));
        Self { providers: providers.into_iter().map(named).collect(), ..Self::default() }
    }

    /// The route a caller means by `model`, if any.
    pub fn route(&self, model: &str) -> Option<&Arc<Route>> {
        self.routes.iter().find(|route| route.pattern.matches(model))
    }
}
