//! What is shared by all calls: the plan in force, the health of targets, the connections, the log.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use backstay_decide::Moment;
use backstay_decide::spend::Day;
use backstay_wire::scan::scan;

use crate::admit::Seats;
use crate::admit::line::Line;
use crate::admit::spend::{Allowance, Purses};
use crate::attempt::adapter::LoweringCache;
use crate::attempt::transport::Transport;
use crate::call::Judge;
use crate::clock::Clock;
use crate::contract::{Caller, may_use};
use crate::fault::CallError;
use crate::policy::{Policy, Queueing, Route, RouteMode};
use crate::record::{Alerts, CallLog, Lines, Metrics, PARTS, Trouble};
use crate::recover::Template;
use crate::route::{self, Health, Snapshot};
use crate::validate::rules::Rule;
use crate::validate::schema::{Schema, SchemaCache};

/// How deep a body may nest that is handed through; as where it is handed through otherwise.
const MAX_DEPTH: usize = 127;

/// The engine. Cheap to clone; all clones are one.
#[derive(Clone, Debug)]
pub struct Engine {
    shared: Arc<Shared>,
    /// The connections to providers. Clones share them; see [`Engine::with_own_connections`].
    transport: Arc<Transport>,
}

#[derive(Debug)]
struct Shared {
    plan: ArcSwap<Plan>,
    clock: Clock,
    health: Health,
    schemas: SchemaCache,
    lowerings: LoweringCache,
    call_log: CallLog,
    metrics: Metrics,
    alerts: Alerts,
    lines: OnceLock<Lines>,
    judge: Judge,
    line: ArcSwap<Line<Seats>>,
    purses: Purses,
    #[cfg(feature = "bench")]
    canned: OnceLock<bytes::Bytes>,
}

/// A policy with its schemas and rules compiled.
#[derive(Debug, Default)]
pub struct Plan {
    policy: Policy,
    directs: route::Directs,
    ready: HashMap<String, Arc<Ready>>,
    /// Whether some route only watches.
    has_shadow: bool,
}

/// What one route needs compiled.
#[derive(Debug, Default)]
pub struct Ready {
    /// The route's schema.
    pub schema: Option<Arc<Schema>>,
    /// The route's rules.
    pub rules: Arc<[Rule]>,
    /// The wording of the route's re-asks. `None`: the default.
    pub template: Option<Template>,
}

/// A policy that cannot be put in force.
#[derive(Debug, thiserror::Error)]
#[error("route `{route}`: {note}")]
pub struct PolicyFault {
    /// The route.
    pub route: String,
    /// What is wrong.
    pub note: String,
}

impl Engine {
    /// An engine that serves `policy` and logs to `call_log`.
    ///
    /// # Errors
    /// A schema or a rule of the policy does not compile.
    pub fn new(policy: Policy, call_log: CallLog) -> Result<Self, PolicyFault> {
        let plan = Plan::compile(policy)?;
        let clock = Clock::start();
        let line = line(&plan.policy.queue, clock);
        Ok(Self {
            shared: Arc::new(Shared {
                plan: ArcSwap::from_pointee(plan),
                clock,
                health: Health::default(),
                schemas: SchemaCache::default(),
                lowerings: LoweringCache::default(),
                call_log,
                metrics: Metrics::new(),
                alerts: Alerts::default(),
                lines: OnceLock::new(),
                judge: Judge::default(),
                line: ArcSwap::from_pointee(line),
                purses: Purses::default(),
                #[cfg(feature = "bench")]
                canned: OnceLock::new(),
            }),
            transport: Arc::new(Transport::new()),
        })
    }

    /// From now on every attempt brings `reply`, without a network: to measure what stands around it.
    #[cfg(feature = "bench")]
    pub fn answer_all_with(&self, reply: bytes::Bytes) {
        let _ = self.shared.canned.set(reply);
    }

    #[cfg(feature = "bench")]
    pub(crate) fn canned(&self) -> Option<bytes::Bytes> {
        self.shared.canned.get().cloned()
    }

    /// The same engine, with the same policy, health, log and counts, and with connections of its
    /// own: for a runtime of one thread. A connection is driven by the runtime it was opened on, so
    /// one that is shared by two of them wakes a thread for each request.
    #[must_use]
    pub fn with_own_connections(&self) -> Self {
        let transport = Arc::new(self.transport.with_own_pools());
        Self { shared: Arc::clone(&self.shared), transport }
    }

    /// Puts another policy in force. Calls under way keep theirs; the health of targets is kept by
    /// their names. Where the classes of the queue are others, a new queue begins beside the old one,
    /// with as many seats of its own, until that one is empty.
    ///
    /// # Errors
    /// A schema or a rule does not compile; the old policy stays.
    pub fn reload(&self, policy: Policy) -> Result<(), PolicyFault> {
        let plan = Plan::compile(policy)?;
        let queue = &plan.policy.queue;
        let old = self.line();
        old.gate().set(queue.seats);
        if old.reload(queue.rules.clone()).is_err() {
            self.shared.line.store(Arc::new(line(queue, self.shared.clock)));
        }
        self.shared.plan.store(Arc::new(plan));
        Ok(())
    }

    /// The plan in force.
    pub fn plan(&self) -> Arc<Plan> {
        self.shared.plan.load_full()
    }

    /// The clock.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// Now.
    pub fn now(&self) -> Moment {
        self.shared.clock.now()
    }

    /// The connections to providers.
    pub fn transport(&self) -> &Transport {
        &self.transport
    }

    /// The call log.
    pub fn call_log(&self) -> &CallLog {
        &self.shared.call_log
    }

    /// The metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.shared.metrics
    }

    /// Whether the route that serves this request's model only watches.
    ///
    /// # Errors
    /// It does, and the caller's key does not open it: watching opens nothing.
    pub fn watches(&self, body: &[u8], caller: Option<&Caller>) -> Result<bool, CallError> {
        match self.shared.plan.load().watched(body) {
            Some(route) => may_use(caller, &route).map(|()| true),
            None => Ok(false),
        }
    }

    /// Whether operators are told of anything.
    pub(crate) fn has_alerts(&self) -> bool {
        self.shared.plan.load().policy.alerts.is_some()
    }

    pub(crate) fn judge(&self) -> &Judge {
        &self.shared.judge
    }

    pub(crate) fn alerts(&self) -> &Alerts {
        &self.shared.alerts
    }

    /// The line for the seats.
    pub fn line(&self) -> arc_swap::Guard<Arc<Line<Seats>>> {
        self.shared.line.load()
    }

    pub(crate) fn purses(&self) -> &Purses {
        &self.shared.purses
    }

    /// Takes over from the call log what each of `keys` spent today, so that a restart gives no day
    /// back. Call it once, before the first call; it reads the log, and blocks.
    ///
    /// # Errors
    /// The log cannot be read.
    pub fn resume_spend(
        &self,
        keys: &HashMap<String, Allowance>,
    ) -> Result<(), crate::record::store::StoreFault> {
        let day = Day::of(self.clock().wall());
        if !keys.values().any(Allowance::is_limited) {
            return Ok(());
        }
        for before in self.call_log().spent_on(day)? {
            if let Some(allowed) = keys.get(&before.key).filter(|allowed| allowed.is_limited()) {
                self.shared.purses.resume(before, *allowed, day);
            }
        }
        Ok(())
    }

    /// How every target stands that was called since the start, in no order.
    pub fn standings(&self) -> Vec<Snapshot> {
        self.shared.health.snapshots(self.now())
    }

    /// Watches the lines of the program's log as well. The first that are given are those.
    pub fn watch_lines(&self, lines: Lines) {
        let _ = self.shared.lines.set(lines);
    }

    /// What works beside the calls and does not do its work now. Calls go on all the same. Empty: all
    /// is well.
    pub fn troubles(&self) -> Vec<Trouble> {
        let Shared { call_log, alerts, lines, .. } = &*self.shared;
        let notes =
            [call_log.trouble(), alerts.delivery().trouble(), lines.get().and_then(Lines::trouble)];
        let both = PARTS.into_iter().zip(notes);
        both.filter_map(|(part, note)| Some(Trouble { part, note: note? })).collect()
    }

    /// All metrics as text, with how the targets and the queue stand now.
    pub fn metrics_text(&self) -> String {
        self.shared.metrics.text(|metrics| {
            let lines_lost = self.shared.lines.get().map_or(0, Lines::lost);
            metrics.beside().stand(self.call_log().dropped(), lines_lost, &self.troubles());
            metrics.limits().stand(&self.standings());
            metrics.breakers_stand(&self.targets());
            metrics.queue(&self.line().report());
            let day = Day::of(self.clock().wall());
            metrics.spend().stand(&self.shared.purses.levels(day));
        })
    }

    pub(crate) fn health(&self) -> &Health {
        &self.shared.health
    }

    pub(crate) fn schemas(&self) -> &SchemaCache {
        &self.shared.schemas
    }

    pub(crate) fn lowerings(&self) -> &LoweringCache {
        &self.shared.lowerings
    }

    /// A new call id: a UUID of version 7, so that ids sort by time. It names a call and protects
    /// nothing, so its random part comes from the fast generator, not from the system.
    pub(crate) fn new_id(&self) -> String {
        let clock = self.clock();
        let (wall, random) = (clock.wall_ms(), clock.scatter());
        let id = uuid::Builder::from_unix_timestamp_millis(wall, &random).into_uuid();
        id.to_string()
    }
}

fn line(queue: &Queueing, clock: Clock) -> Line<Seats> {
    Line::new(queue.rules.clone(), Seats::new(queue.seats), clock)
}

impl Plan {
    /// Compiles every schema and rule of `policy`.
    ///
    /// # Errors
    /// The first that does not compile, with its route.
    pub fn compile(policy: Policy) -> Result<Self, PolicyFault> {
        let mut ready = HashMap::new();
        for route in &policy.routes {
            ready.insert(route.name.clone(), Arc::new(Ready::of(route)?));
        }
        let has_shadow = policy.routes.iter().any(|route| route.mode == RouteMode::Shadow);
        Ok(Self { policy, directs: route::Directs::default(), ready, has_shadow })
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The route that serves `model`, and what it needs: the configured one of that very name, else
    /// the target of that name alone, else the model of that name at a provider
    /// (`provider/model`), else a configured pattern. So `provider/model` works beside a route `*`.
    pub fn route(&self, model: &str) -> Option<(Arc<Route>, Arc<Ready>)> {
        let configured = self.policy.route(model);
        if configured.is_none_or(|route| route.pattern.is_glob())
            && let Some(direct) = self.directs.of(&self.policy, model)
        {
            return Some((direct, Arc::default()));
        }
        let route = configured?;
        let ready = self.ready.get(&route.name).cloned().unwrap_or_default();
        Some((Arc::clone(route), ready))
    }

    /// The route that serves this request's model, if it only watches.
    fn watched(&self, body: &[u8]) -> Option<Arc<Route>> {
        if !self.has_shadow {
            return None;
        }
        let model = scan(body, MAX_DEPTH).ok()?.string(body, "model").ok()??;
        let (route, _) = self.route(&model)?;
        (route.mode == RouteMode::Shadow).then_some(route)
    }

    /// The names of the configured routes, at most 20, for an error's text.
    pub fn names(&self) -> Vec<String> {
        self.policy.routes.iter().take(20).map(|route| format!("`{}`", route.pattern.0)).collect()
    }
}

impl Ready {
    fn of(route: &Route) -> Result<Self, PolicyFault> {
        let fault = |note: String| PolicyFault { route: route.name.clone(), note };
        let schema = match &route.schema {
            Some(source) => {
                let schema = Schema::with_fallbacks(source);
                Some(Arc::new(schema.map_err(|cause| fault(format!("schema: {cause}")))?))
            }
            None => None,
        };
        let compile = |rule: &crate::policy::RuleText| {
            Rule::compile(&rule.name, &rule.check, rule.message.as_deref(), rule.input.as_deref())
                .map_err(|cause| fault(format!("rule `{}`: {cause}", rule.name)))
        };
        let rules = route.rules.iter().map(compile).collect::<Result<Arc<[Rule]>, _>>()?;
        let template = match &route.reask.template {
            Some(source) => Some(
                Template::compile(source)
                    .map_err(|cause| fault(format!("re-ask template: {cause}")))?,
            ),
            None => None,
        };
        Ok(Self { schema, rules, template })
    }
}
