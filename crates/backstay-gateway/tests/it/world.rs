//! A mock provider and a gateway in one process, set up as a user would: by a config.

use std::fmt::Write as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use backstay::clock::Clock;
use backstay::engine::Engine;
use backstay::policy::RuleText;
use backstay::record::CallLog;
use backstay::recover::Template;
use backstay::validate::rules::Rule;
use backstay::validate::schema::Schema;
use backstay_gateway::auth::Callers;
use backstay_gateway::config::{self, Checks, Outside, Settings};
use backstay_gateway::simulate::Simulator;
use backstay_gateway::{Gateway, Running};
use backstay_mock::{Answer, End, Entry, Mock, UNRESOLVABLE, refused_address};
use backstay_wire::Dialect;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::client::{self, Seen};

/// A ticket of the triage example, and the answer a good model gives.
pub(crate) const TICKET: &str = "I was charged twice for order 1182, please refund one of them.";

/// A message that asks for prose.
pub(crate) const HELLO: &str = "Tell me about lighthouses.";

/// A message that every healthy target answers with the same words.
pub(crate) const TALE: &str = "Tell me the tale of the lamp.";

/// Those words.
pub(crate) const TOLD: &str = "The keeper lit the lamp at dusk, as he had each evening for thirty \
    years. That night the fog came in early; he heard the bell of a ship, and then nothing. He \
    turned the lens by hand until morning, and the ship found its way home.";

/// Rules of the triage example.
pub(crate) const TRIAGE: &str = r#"
schema = "triage.schema.json"
rules = [
  { name = "evidence is a quote", check = "input.contains(reply.evidence)" },
  { name = "urgent needs a person", check = "reply.priority != 1 || reply.needs_human" },
]
"#;

/// The triage of [`TICKET`].
pub(crate) fn triaged() -> Value {
    json!({"category": "billing", "priority": 2, "summary": "Charged twice, wants a refund",
        "evidence": "charged twice for order 1182", "needs_human": true})
}

/// A config being written, and what the mock is to play.
#[derive(Debug)]
pub(crate) struct Setup {
    server: String,
    tables: String,
    scripts: Vec<(String, Vec<String>)>,
    log: Option<PathBuf>,
    simulator: Option<Arc<dyn Simulator>>,
}

impl Setup {
    pub(crate) fn new() -> Self {
        Self {
            server: "drain = \"2s\"\n".into(),
            tables: String::new(),
            scripts: Vec::new(),
            log: None,
            simulator: None,
        }
    }

    /// Adds a line to `[server]`.
    pub(crate) fn server(mut self, line: &str) -> Self {
        let _ = writeln!(self.server, "{line}");
        self
    }

    /// Adds tables as they are.
    pub(crate) fn tables(mut self, text: &str) -> Self {
        let _ = writeln!(self.tables, "{text}");
        self
    }

    /// Lets callers ask for faults.
    pub(crate) fn simulator(mut self, simulator: Arc<dyn Simulator>) -> Self {
        self.simulator = Some(simulator);
        self
    }

    /// Keeps the call log in this file.
    pub(crate) fn log(mut self, file: &Path) -> Self {
        self.log = Some(file.to_owned());
        self
    }

    /// A target at `provider`; the mock plays `steps` for it, one a call, the last for ever.
    pub(crate) fn target(mut self, id: &str, provider: &str, steps: &[&str]) -> Self {
        self.scripts.push((id.into(), steps.iter().map(|step| (*step).to_owned()).collect()));
        let _ = writeln!(
            self.tables,
            "[models.{id}]\nprovider = \"{provider}\"\nmodel = \"{id}\"\npinned = true"
        );
        self
    }

    /// Adds a line to the target just made.
    pub(crate) fn and(mut self, line: &str) -> Self {
        let _ = writeln!(self.tables, "{line}");
        self
    }

    /// A route over targets, with whatever else it says.
    pub(crate) fn route(mut self, name: &str, tiers: &[&str], more: &str) -> Self {
        let _ = writeln!(self.tables, "[routes.{name}]\ntiers = {tiers:?}\n{more}");
        self
    }

    /// A route with one target of its own, `NAME-1`.
    pub(crate) fn alone(self, name: &str, provider: &str, steps: &[&str], more: &str) -> Self {
        let first = format!("{name}-1");
        self.target(&first, provider, steps).route(name, &[&first], more)
    }

    /// A route with a target `NAME-1` that plays `steps` and a healthy second tier `NAME-2`.
    pub(crate) fn backed(self, name: &str, provider: &str, steps: &[&str], more: &str) -> Self {
        let (first, second) = (format!("{name}-1"), format!("{name}-2"));
        self.target(&first, provider, steps).target(&second, "openai", &["healthy"]).route(
            name,
            &[&first, &second],
            more,
        )
    }

    pub(crate) async fn start(self) -> World {
        let tale = Answer { contains: TALE.into(), reply: Value::Null, text: Some(TOLD.into()) };
        let triage = Answer { contains: TICKET.into(), reply: triaged(), text: None };
        let answers = vec![triage, tale];
        let settings = backstay_mock::Settings { answers, ..backstay_mock::Settings::default() };
        let mock = Mock::start(settings).await.expect("a mock");
        for (model, steps) in &self.scripts {
            let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
            mock.script(model, &steps);
        }
        let settings = read(&self.text(&mock));
        let log = match &self.log {
            Some(file) => CallLog::sqlite(file).expect("a file"),
            None => CallLog::memory(10_000),
        };
        let engine = Engine::new(settings.policy.clone(), log).expect("the policy compiles");
        engine.resume_spend(&settings.allowances()).expect("the log is read");
        let callers = Callers::new(&settings.keys).with_admin(settings.admin_key.as_ref());
        let mut gateway = Gateway::new(engine, callers, settings.server.clone());
        if let Some(simulator) = self.simulator {
            gateway = gateway.with_simulator(simulator);
        }
        let running = gateway.start().await.expect("a gateway");
        World { mock, running, settings }
    }

    fn text(&self, mock: &Mock) -> String {
        let (refused, nowhere) = (refused_address(), UNRESOLVABLE);
        let mut text =
            format!("[server]\nlisten = \"127.0.0.1:0\"\ncall_log = \"memory\"\n{}\n", self.server);
        for (name, dialect, base) in [
            ("openai", "openai_chat", mock.openai_base()),
            ("anthropic", "anthropic", mock.anthropic_base()),
            ("refused", "openai_chat", format!("http://{refused}/v1")),
            ("refused_too", "anthropic", format!("http://{refused}")),
            ("nowhere", "openai_chat", format!("http://{nowhere}/v1")),
            ("nowhere_too", "anthropic", format!("http://{nowhere}")),
        ] {
            let _ = writeln!(
                text,
                "[providers.{name}]\ndialect = \"{dialect}\"\nbase_url = \"{base}\"\nauth = \"none\""
            );
        }
        text + &self.tables.replace("OPENAI_BASE", &mock.openai_base())
    }
}

/// Reads a config whose schema is the triage example's.
pub(crate) fn read(text: &str) -> Settings {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/triage");
    let outside = Outside {
        env: &|_| None,
        today: Clock::start().today(),
        checks: Checks {
            schema: &|schema| {
                Schema::with_fallbacks(schema).map(|_| ()).map_err(|fault| fault.to_string())
            },
            rule: &|rule: &RuleText| {
                Rule::compile(
                    &rule.name,
                    &rule.check,
                    rule.message.as_deref(),
                    rule.input.as_deref(),
                )
                .map(|_| ())
                .map_err(|fault| fault.to_string())
            },
            fits: &|_, _| Ok(()),
            template: &|source| {
                Template::compile(source).map(|_| ()).map_err(|fault| fault.to_string())
            },
        },
    };
    config::from_text(text, "test.toml", &folder, &outside).unwrap_or_else(|problems| {
        let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
        panic!("{}", told.join("\n"))
    })
}

/// A mock and a gateway that run.
#[derive(Debug)]
pub(crate) struct World {
    pub mock: Mock,
    pub running: Running,
    pub settings: Settings,
}

impl World {
    pub(crate) fn address(&self) -> SocketAddr {
        self.running.address()
    }

    pub(crate) fn engine(&self) -> &Engine {
        self.running.gateway().engine()
    }

    /// What the provider saw for a target.
    pub(crate) fn log(&self, model: &str) -> Vec<Entry> {
        self.mock.log().into_iter().filter(|entry| entry.model == model).collect()
    }

    /// As [`World::log`], once no call for `model` is under way any more; waits up to a second.
    pub(crate) async fn settled_log(&self, model: &str) -> Vec<Entry> {
        let end = Instant::now() + Duration::from_secs(1);
        loop {
            let log = self.log(model);
            if Instant::now() > end || log.iter().all(|entry| entry.end != End::Pending) {
                return log;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Asks for a generation.
    pub(crate) async fn ask(&self, dialect: Dialect, body: &Value) -> Seen {
        self.ask_with(dialect, &[], body).await
    }

    pub(crate) async fn ask_with(
        &self,
        dialect: Dialect,
        headers: &[(&str, &str)],
        body: &Value,
    ) -> Seen {
        let start = start(dialect);
        client::call(self.address(), start, headers, body.to_string().as_bytes()).await
    }

    pub(crate) async fn get(&self, path: &str) -> Seen {
        client::call(self.address(), &format!("GET {path}"), &[], b"").await
    }

    pub(crate) async fn stop(self) {
        self.running.stop().await;
        self.mock.stop().await;
    }
}

/// The start of a request's first line.
pub(crate) fn start(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenaiChat => "POST /v1/chat/completions",
        Dialect::Anthropic => "POST /v1/messages",
    }
}

/// A request of one user message; a cap only where the protocol asks for one.
pub(crate) fn request(dialect: Dialect, model: &str, text: &str) -> Value {
    let mut body = json!({"model": model, "messages": [{"role": "user", "content": text}]});
    if dialect == Dialect::Anthropic {
        body["max_tokens"] = json!(1000);
    }
    body
}

/// The same, as a stream.
pub(crate) fn streamed(mut body: Value) -> Value {
    body["stream"] = json!(true);
    body
}

/// The provider's name in the config for its dialect.
pub(crate) fn provider(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenaiChat => "openai",
        Dialect::Anthropic => "anthropic",
    }
}

/// A short word for a dialect, to be part of a name.
pub(crate) fn short(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::OpenaiChat => "o",
        Dialect::Anthropic => "a",
    }
}

pub(crate) const BOTH: [Dialect; 2] = [Dialect::OpenaiChat, Dialect::Anthropic];

/// Both dialects of callers with both of providers.
pub(crate) fn pairs() -> impl Iterator<Item = (Dialect, Dialect)> {
    BOTH.into_iter().flat_map(|caller| BOTH.into_iter().map(move |provider| (caller, provider)))
}
