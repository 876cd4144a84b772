//! The config file as it is written: every section and key, before anything is checked.
//!
//! The comments here are the reference page and the editor's hints, so each says shape, unit,
//! range, what zero means and the default. A last sentence that begins with "Default:" becomes the
//! page's own column.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

use super::alert_words::AlertsTable;
use super::breaker_words::BreakerTable;
use super::guard_words::{GuardsTable, QuietWord};
use super::limit_words::{PlacesTable, RatesTable, RetriesTable};
use super::mend_words::{AlignTable, FieldTable, MendTable, ReportWord};
use super::queue_words::QueueTable;
use super::stream_words::{GateTable, StreamWord, WindowTable};
use super::words::{
    AfterReleaseWord, AuthWord, CapWord, Day, DialectWord, DisconnectWord, KeyText, Length,
    PrefillWord, RefusalWord, RouteModeWord, RuntimeWord, SemanticWord, StructuredWord, SubsetWord,
    TemplateText, Tier, TimerText, UpstreamWord,
};

/// The configuration of Backstay.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct File {
    /// The gateway's own socket, limits and log.
    pub(super) server: ServerTable,
    /// Callers, by name. None are needed while the gateway listens on loopback only.
    pub(super) keys: BTreeMap<String, KeyTable>,
    /// How many calls run at once, and who waits in which order: [the queue](limits.md#queue).
    pub(super) queue: QueueTable,
    /// Model APIs, by name.
    pub(super) providers: BTreeMap<String, ProviderTable>,
    /// Targets, by name: each is one model at one provider.
    pub(super) models: BTreeMap<String, ModelTable>,
    /// When targets rest, and how they come back: [the breaker](../breaker.md).
    pub(super) breaker: BreakerTable,
    /// What retries cost and earn: [extra attempts](limits.md#extra-attempts).
    pub(super) retries: RetriesTable,
    /// What operators are told of by itself, in the log and by a webhook: [alerts](alerts.md). Without
    /// this table: nothing but the log's own lines.
    pub(super) alerts: Option<AlertsTable>,
    /// What callers ask for as `model`, by name. A `*` in a (quoted) name stands for any run of
    /// characters; exact names are tried first, then the longest pattern.
    pub(super) routes: BTreeMap<String, RouteTable>,
}

/// The gateway's own socket, limits and log.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ServerTable {
    /// Address and port to listen on. Anything but loopback needs at least one `[keys.NAME]`.
    pub(super) listen: String,
    /// The largest request body, in bytes; a larger one gets a 413. At least 1024.
    #[schemars(range(min = 1024))]
    pub(super) max_body_bytes: u64,
    /// What an operator sends as `Authorization: Bearer …` or `x-api-key` to [the admin
    /// API](admin.md): `{ env = "BACKSTAY_ADMIN_KEY" }`. Default: none, and no admin API.
    pub(super) admin_key: Option<KeyText>,
    /// Most connections at once; further ones wait to be accepted. At least 1.
    #[schemars(range(min = 1))]
    pub(super) max_connections: u32,
    /// Most headers in a request; more get a 431. 1 to 1000.
    #[schemars(range(min = 1, max = 1000))]
    pub(super) max_headers: u32,
    /// The largest head of a request, in bytes; a larger one gets a 431. 8192 to 1048576.
    #[schemars(range(min = 8192, max = 1_048_576))]
    pub(super) max_header_bytes: u32,
    /// How long a connection may take to send a whole head, from its first byte; a new connection
    /// from its opening. Between requests it may rest for 75 seconds. At least `"100ms"`.
    pub(super) header_timeout: Length,
    /// How long calls in flight may go on after a signal to stop. `"0s"` cuts them off at once.
    pub(super) drain: Length,
    /// Where calls are written down: `"sqlite"` (a file named `backstay.sqlite` beside this one), a
    /// path ending in `.sqlite` or `.db` (relative to this file), `"memory"` (lost at the end) or
    /// `"off"`.
    pub(super) call_log: String,
    /// How the work is spread over threads. `"per_core"`: one runtime a core; a connection goes to
    /// the core that has the fewest and stays there, with connections to providers of its own.
    /// Cheapest for each request. `"shared"`: one runtime for all cores; idle threads take work from
    /// busy ones, and all share one set of connections to each provider.
    pub(super) runtime: RuntimeWord,
}

impl Default for ServerTable {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".into(),
            max_body_bytes: 32 << 20,
            admin_key: None,
            // A connection idles at about 20 KB, so this bounds the idle cost to about 200 MB.
            max_connections: 10_000,
            max_headers: 100,
            max_header_bytes: 64 << 10,
            header_timeout: Length::seconds(10),
            drain: Length::seconds(30),
            call_log: "sqlite".into(),
            runtime: RuntimeWord::PerCore,
        }
    }
}

/// A caller.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("required" = ["token"]))]
pub(super) struct KeyTable {
    /// What the caller sends as `Authorization: Bearer …` or `x-api-key`. Keep it out of the file:
    /// `{ env = "APP_KEY" }`.
    pub(super) token: Option<KeyText>,
    /// Whose calls these are, in the log and the metrics. Default: the key's name.
    pub(super) tenant: Option<String>,
    /// The class of its calls that name none in `x-backstay-priority`: a name of
    /// `[queue.classes.NAME]`. Default: the first of `classes`, else the highest there is.
    pub(super) priority: Option<String>,
    /// The classes its calls may name. Default: all.
    pub(super) classes: Vec<String>,
    /// What its calls may cost in a UTC day, in the currency of the models' prices. 0 to 1000000; 0:
    /// only what is free. Every model it can reach needs prices. Default: no limit.
    #[schemars(range(min = 0, max = 1_000_000), extend("x-type" = "number"))]
    pub(super) spend_per_day: Option<f64>,
    /// Tokens, input and output, that its calls may take in a UTC day. 0: none. Default: no limit.
    pub(super) tokens_per_day: Option<u64>,
    /// Names of the `[routes.NAME]` it may use. Not empty. Default: all.
    #[schemars(length(min = 1))]
    pub(super) routes: Option<Vec<String>>,
    /// Whether it may also use what no route stands for: models by their own name or as
    /// `provider/model`, bypass, and paths that are handed through. No limit holds for what is handed
    /// through. Default: yes without `routes`, `spend_per_day` and `tokens_per_day`, else no.
    pub(super) direct: Option<bool>,
    /// Whether its calls may ask for [faults](headers.md#simulated-faults) with `x-backstay-simulate`.
    pub(super) dev: bool,
}

/// A model API somebody operates.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("required" = ["dialect", "base_url"]))]
pub(super) struct ProviderTable {
    /// Its wire format.
    pub(super) dialect: Option<DialectWord>,
    /// Where it is: `http` or `https`, host, port and the path before `/chat/completions`
    /// (`openai_chat`) or before `/v1/messages` (`anthropic`; a `/v1` at the end is dropped).
    pub(super) base_url: Option<String>,
    /// The keys sent to it, used in turn. Default: none.
    pub(super) api_keys: Vec<KeyText>,
    /// Whose key goes upstream: `"own"` (`api_keys`), `"caller"` (the caller's own) or `"none"`.
    /// Default: `"own"` with `api_keys`, else `"none"`.
    pub(super) auth: Option<AuthWord>,
    /// Headers sent with every request, by name. Default: none.
    pub(super) headers: BTreeMap<String, KeyText>,
    /// The name under which the output cap is sent (`openai_chat` only). Default:
    /// `"max_completion_tokens"` at `api.openai.com`, else `"max_tokens"`.
    pub(super) cap_field: Option<CapWord>,
    /// What its models take of JSON Schema; schemas are lowered to it, and the replies taken back.
    /// Default: `"anthropic"` for that dialect, `"openai_strict"` at `api.openai.com`, else `"none"`:
    /// schemas go as they are.
    pub(super) schema_subset: Option<SubsetWord>,
    /// Longest wait for a connection where a route sets none. `"1ms"` to `"24h"`. Default: `"3s"`.
    pub(super) connect: Option<Length>,
}

/// A target: one model at one provider.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("required" = ["provider", "model"]))]
pub(super) struct ModelTable {
    /// The name of a `[providers.NAME]`.
    pub(super) provider: Option<String>,
    /// The provider's name of the model; `"*"` sends on the name the caller gave.
    pub(super) model: Option<String>,
    /// Tokens its window holds, input and output. At least 1. Default: not checked.
    #[schemars(range(min = 1))]
    pub(super) context_tokens: Option<u64>,
    /// The most tokens it can write. At least 1. Default: not known.
    #[schemars(range(min = 1))]
    pub(super) max_output_tokens: Option<u64>,
    /// Whether the name always means the same weights. Default: yes for a name with a date, a
    /// loopback address or a provider without keys, else no, with a warning.
    pub(super) pinned: Option<bool>,
    /// The day the provider retires it, as `"2027-03-01"`; warns 60 days ahead. Default: not
    /// announced.
    pub(super) retires: Option<Day>,
    /// What a million tokens of input cost, in the currency of your choice; 0 to 1000000. With
    /// `output_price`. Default: not known.
    #[schemars(range(min = 0, max = 1_000_000), extend("x-type" = "number"))]
    pub(super) input_price: Option<f64>,
    /// What a million tokens of output cost, in the same currency; 0 to 1000000. With
    /// `input_price`. Default: not known.
    #[schemars(range(min = 0, max = 1_000_000), extend("x-type" = "number"))]
    pub(super) output_price: Option<f64>,
    /// What a million tokens of input cost that the provider read from its cache; 0 to 1000000. With
    /// `input_price` and `output_price`. Default: as other input.
    #[schemars(range(min = 0, max = 1_000_000), extend("x-type" = "number"))]
    pub(super) cached_input_price: Option<f64>,
    /// What a million tokens of input cost that the provider wrote to its cache; 0 to 1000000. With
    /// `input_price` and `output_price`. Default: as other input.
    #[schemars(range(min = 0, max = 1_000_000), extend("x-type" = "number"))]
    pub(super) cache_write_price: Option<f64>,
    /// How far it can be held to a schema: `"json_schema"` (decoding is constrained),
    /// `"json_object"` (some JSON) or `"none"`.
    pub(super) structured: StructuredWord,
    /// What it takes of JSON Schema. Default: as its provider.
    pub(super) schema_subset: Option<SubsetWord>,
    /// Whether it can stream.
    pub(super) streams: bool,
    /// How it is given the beginning of its own reply, for `after_release = "continue"`: `"assistant"`
    /// (as the last message), `"prefix"` (marked so: `DeepSeek`, Mistral) or `"continue_final_message"`
    /// (vLLM, `SGLang`). Default: it is not.
    pub(super) prefill: Option<PrefillWord>,
    /// Most calls at once; fewer while the target strains: [calls at once](limits.md#calls-at-once). 0:
    /// no limit until it strains.
    pub(super) max_concurrency: u32,
    /// What else bounds the calls at once. Default: those below.
    pub(super) places: PlacesTable,
    /// The provider's rates, of each of its keys: [rates](limits.md#rates). Default: learned.
    pub(super) rates: RatesTable,
    /// What its retries cost and earn, where that differs from `[retries]`: the same keys. Default: as
    /// there.
    pub(super) retries: RetriesTable,
    /// The largest request body it takes, in bytes. 0: not checked.
    pub(super) max_request_bytes: u64,
    /// When it rests, where that differs from `[breaker]`: the same keys. Default: as there.
    pub(super) breaker: BreakerTable,
}

impl Default for ModelTable {
    fn default() -> Self {
        Self {
            provider: None,
            model: None,
            context_tokens: None,
            max_output_tokens: None,
            pinned: None,
            retires: None,
            input_price: None,
            output_price: None,
            cached_input_price: None,
            cache_write_price: None,
            structured: StructuredWord::JsonSchema,
            schema_subset: None,
            streams: true,
            prefill: None,
            max_concurrency: 0,
            places: PlacesTable::default(),
            rates: RatesTable::default(),
            retries: RetriesTable::default(),
            max_request_bytes: 0,
            breaker: BreakerTable::default(),
        }
    }
}

/// What a caller asks for as `model`, and how it is answered.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("required" = ["tiers"]))]
pub(super) struct RouteTable {
    /// Names of `[models.NAME]` in the order they are tried; an inner list shares the calls among
    /// its models. Not empty.
    #[schemars(length(min = 1))]
    pub(super) tiers: Option<Vec<Tier>>,
    /// `"normal"`, or `"shadow"`: every request and reply goes through untouched, by the first model of
    /// `tiers` that speaks the caller's format, and the log and the metrics say what the route [would
    /// have done](shadow.md).
    pub(super) mode: RouteModeWord,
    /// The longest a call may take, from its arrival to its last byte. `"1ms"` to `"24h"`.
    pub(super) deadline: Length,
    /// Limits of one attempt; each is cut to what is left of the deadline. Default: those
    /// below.
    pub(super) timeouts: TimeoutsTable,
    /// Most attempts a call may make. 1 to 6. Default: tiers + 2, at most 6.
    #[schemars(range(min = 1, max = 6))]
    pub(super) max_attempts: Option<u32>,
    /// Most times one target is asked again with the errors in its answer. 0 to 5; 0: never.
    #[schemars(range(max = 5))]
    pub(super) reasks: u32,
    /// Tokens, input and output, that all re-asks of a call may take. At least 1. Default: no bound.
    #[schemars(range(min = 1))]
    pub(super) reask_tokens: Option<u64>,
    /// What all re-asks of a call may cost, in the currency of the models' prices. 0 to 1000000;
    /// 0: none at models that cost something. Default: no bound.
    #[schemars(range(min = 0, max = 1_000_000), extend("x-type" = "number"))]
    pub(super) reask_cost: Option<f64>,
    /// The wording of a re-ask: the path of a Jinja template, relative to this file, or
    /// `{ inline = "…" }`. It sees `errors` (each prints as a sentence with its place and has
    /// `pointer`, `rule` and `message`), `reply`, `shortened`, `schema`, `request` and `number`. Default: a built-in
    /// one.
    pub(super) reask_template: Option<TemplateText>,
    /// The output cap sent when the caller sends none. At least 1. Default: the provider's.
    #[schemars(range(min = 1))]
    pub(super) max_output_tokens: Option<u64>,
    /// How far the route's own cap is raised, once, after an answer was cut at it. At least the
    /// cap. Default: not raised.
    #[schemars(range(min = 1))]
    pub(super) max_output_tokens_ceiling: Option<u64>,
    /// Stop sequences sent when the caller sends none. None empty. Default: none.
    pub(super) stop: Vec<String>,
    /// A label of the prompt; part of the fingerprint, so change it with the prompt. Default: none.
    pub(super) prompt_version: Option<String>,
    /// Path of a JSON Schema the answer must fit, relative to this file. The caller's own
    /// `response_format` wins where it sends one. Default: none.
    pub(super) schema: Option<String>,
    /// Checks beyond the schema. Default: none.
    pub(super) rules: Vec<RuleTable>,
    /// What of a broken answer's JSON is mended: `"strict"` (damage with one reading), `"standard"`
    /// (the same, and with `partial = "accept"` also what lost something), `"lenient"` (also doubtful
    /// keys and numbers, by rule), `"off"`, or the table below. Default: `"standard"`.
    #[serde(deserialize_with = "super::mend_words::word_or_table")]
    #[schemars(schema_with = "super::mend_words::schema")]
    pub(super) mend: MendTable,
    /// Which values of an answer that breaks its schema are brought to the schema's form. Default:
    /// none.
    pub(super) align: AlignTable,
    /// Fields for which something else holds when they break the route's schema. The first that
    /// matches a place counts. On a route without a schema they hold for the callers' own, but
    /// `"flag"` lets nothing pass there. Default: none.
    pub(super) fields: Vec<FieldTable>,
    /// Whether every answer tells its edits as `backstay.edits` in its body: `"on_request"` (where
    /// the caller sends `x-backstay-edits: 1`) or `"always"`.
    pub(super) report_edits: ReportWord,
    /// How a call that the caller does not stream is asked of the provider: `"auto"` (streamed when
    /// the output cap is unknown or above 1,000 tokens), `"stream"` or `"as_asked"`.
    pub(super) upstream: UpstreamWord,
    /// How a call that the caller streams is handed on, see [streams](streams.md): `"passthrough"` (as
    /// it comes), `"gate"` (from the first content on; a failure before it is rerouted), `"windowed"`
    /// (the newest part held back) or `"buffered"` (when the whole answer is checked). Default:
    /// `"buffered"` with a schema or rules, else `"gate"`.
    pub(super) stream: Option<StreamWord>,
    /// The pace a stream has to show at the gate, as `{ tokens = 32, min_tokens_per_second = 5 }`.
    /// Default: none; its first content opens the gate.
    pub(super) gate: GateTable,
    /// What the mode `"windowed"` holds back. Default: 512 tokens.
    pub(super) window: WindowTable,
    /// What a stream leads to that breaks after its first content went out: `"error"` (the fault is told
    /// in the stream), `"restart"` (another reply is told from there on, while it begins with the same
    /// words) or `"continue"` (a model with `prefill` goes on from the last word, others as
    /// `"restart"`): [streams that break](rescue.md).
    pub(super) after_release: AfterReleaseWord,
    /// What is looked for in a reply while it comes. Default: exact loops are cut off, the rest is told.
    pub(super) guards: GuardsTable,
    /// What a refusal in words leads to, where nothing of the answer is out: `"tag"` (it is told) or
    /// `"next_tier"`.
    pub(super) on_quiet_refusal: QuietWord,
    /// What a refusal leads to: `"last_resort"` (that, else the provider's reason) or `"next_tier"`.
    pub(super) on_refusal: RefusalWord,
    /// What becomes of a call whose caller leaves: `"cancel"` (the provider is cancelled at once) or
    /// `"finish"` (what it was asked for is read to its end, at most 1 MiB more, and nobody gets it: for
    /// a server that bears no cancel, or to have the usage booked).
    pub(super) on_disconnect: DisconnectWord,
    /// How long a call goes on without its caller, with `on_disconnect = "finish"`. `"1ms"` to `"24h"`.
    pub(super) finish_within: Length,
    /// What an answer that breaks a rule leads to: `"reask"` (the target is asked again),
    /// `"reject"` (a typed error) or `"human"` (the last resort, where a person looks at it).
    pub(super) on_semantic: SemanticWord,
    /// What answers when no model can. Default: a typed error.
    pub(super) last_resort: Option<LastResortTable>,
}

impl Default for RouteTable {
    fn default() -> Self {
        Self {
            tiers: None,
            mode: RouteModeWord::Normal,
            // What the SDKs of both dialects wait by default: not worse than a direct call.
            deadline: Length::seconds(600),
            timeouts: TimeoutsTable::default(),
            max_attempts: None,
            reasks: 2,
            reask_tokens: None,
            reask_cost: None,
            reask_template: None,
            max_output_tokens: None,
            max_output_tokens_ceiling: None,
            stop: Vec::new(),
            prompt_version: None,
            schema: None,
            rules: Vec::new(),
            mend: MendTable::default(),
            align: AlignTable::default(),
            fields: Vec::new(),
            report_edits: ReportWord::OnRequest,
            upstream: UpstreamWord::Auto,
            stream: None,
            gate: GateTable::default(),
            window: WindowTable::default(),
            after_release: AfterReleaseWord::Error,
            guards: GuardsTable::default(),
            on_quiet_refusal: QuietWord::Tag,
            on_refusal: RefusalWord::LastResort,
            on_disconnect: DisconnectWord::Cancel,
            finish_within: Length::seconds(30),
            on_semantic: SemanticWord::Reask,
            last_resort: None,
        }
    }
}

/// Limits of one attempt, and the shortest that are derived: [timers](timers.md). Each is `"1ms"` to
/// `"24h"`; `"auto"` is what the target usually takes, with its default where that is not known and as
/// the longest.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct TimeoutsTable {
    /// Until the connection stands. Default: the provider's `connect`.
    pub(super) connect: Option<Length>,
    /// From the request to the first content. Default: `"auto"`, at most `"120s"` and `total`.
    pub(super) first_token: Option<TimerText>,
    /// Between two pieces of content. Default: `"auto"`, at most `"60s"` and `total`.
    pub(super) gap: Option<TimerText>,
    /// The whole attempt. Default: `"auto"`, at most the deadline.
    pub(super) total: Option<TimerText>,
    /// The shortest `first_token` that is derived. Default: `"5s"`.
    pub(super) least_first_token: Option<Length>,
    /// The shortest `gap` that is derived. Default: `"20s"`.
    pub(super) least_gap: Option<Length>,
}

/// A check of the answer beyond the schema.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RuleTable {
    /// What it demands, in words a model understands. Unique within the route.
    pub(super) name: String,
    /// A CEL expression over `reply` and `input` that gives `true` for a good answer.
    pub(super) check: String,
    /// What is told to the model, the log and the caller when it fails. Default: the name.
    pub(super) message: Option<String>,
    /// What `input` is, as a JSON pointer into the request. Default: the last user message.
    pub(super) input: Option<String>,
}

/// What answers when no model can: exactly one of the two.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(super) struct LastResortTable {
    /// This value as JSON; it must fit the route's schema. Default: none.
    #[schemars(with = "Option<serde_json::Value>")]
    pub(super) reply: Option<toml::Value>,
    /// This text; not with a schema. Default: none.
    pub(super) text: Option<String>,
}
