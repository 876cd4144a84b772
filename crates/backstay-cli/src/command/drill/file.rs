//! A drill file as it is written: tables of TOML, with nothing checked but their form.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::judge::{Right, Verdict};

/// The whole file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub title: String,
    /// Read before everything else: `{NAME}` anywhere in the file stands for one of the two.
    #[serde(default, rename = "waits")]
    _waits: Waits,
    pub fleet: Vec<MemberTable>,
    /// Tables of a config of our gateway, such as `[gateway.retries]`.
    #[serde(default)]
    pub gateway: toml::Table,
    #[serde(default)]
    pub ask: AskTable,
    pub row: Vec<RowTable>,
    pub case: Vec<CaseTable>,
}

/// `name -> [real, fast]`.
pub(super) type Waits = BTreeMap<String, [String; 2]>;

/// The part of a file that is read first.
#[derive(Debug, Deserialize)]
pub(super) struct WaitsOnly {
    #[serde(default)]
    pub waits: Waits,
}

/// A provider that is played.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MemberTable {
    pub name: String,
    #[serde(default)]
    pub dialect: DialectWord,
    /// Lines for its `[models.NAME]` in the config of our gateway.
    #[serde(default)]
    pub model: toml::Table,
}

/// A wire format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum DialectWord {
    #[default]
    OpenaiChat,
    Anthropic,
}

impl DialectWord {
    /// As a config has it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::OpenaiChat => "openai_chat",
            Self::Anthropic => "anthropic",
        }
    }
}

/// What the caller asks. Absent: as the file's own `[ask]` says, else the default.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskTable {
    pub dialect: Option<DialectWord>,
    pub stream: Option<bool>,
    pub prompt: Option<String>,
    /// A JSON Schema: the answer is then JSON.
    pub schema: Option<serde_json::Value>,
    /// What a healthy provider answers: a text, or with a schema a value.
    pub answer: Option<serde_json::Value>,
    pub deadline: Option<String>,
    pub requests: Option<usize>,
    pub at_once: Option<usize>,
    /// The time between two requests.
    pub apart: Option<String>,
    /// In place of `requests`: how long they are sent, so far apart.
    pub lasting: Option<String>,
}

/// One way to set the gateway up.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowTable {
    pub name: String,
    /// The verdicts that hold.
    pub allow: Vec<Verdict>,
    /// Lines for every route in the config of our gateway.
    #[serde(default)]
    pub route: toml::Table,
}

/// One fault.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CaseTable {
    pub name: String,
    /// Members in the order they are to be asked. Absent: all.
    pub tiers: Option<Vec<String>>,
    /// What each plays, one a request, the last for ever. Absent: healthy.
    #[serde(default)]
    pub play: BTreeMap<String, Steps>,
    /// What changes while requests are sent.
    #[serde(default)]
    pub weather: Vec<WeatherTable>,
    /// After so long the weather begins again.
    pub every: Option<String>,
    #[serde(default)]
    pub route: toml::Table,
    #[serde(default)]
    pub ask: AskTable,
    #[serde(default)]
    pub expect: ExpectTable,
}

/// One behaviour, or several in turn.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a behaviour, or a list of behaviours")]
pub(super) enum Steps {
    One(String),
    Many(Vec<String>),
}

impl Steps {
    pub(super) fn list(&self) -> &[String] {
        match self {
            Self::One(step) => std::slice::from_ref(step),
            Self::Many(steps) => steps,
        }
    }
}

/// From a moment on, members play something else.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WeatherTable {
    pub at: String,
    pub play: BTreeMap<String, Steps>,
}

/// What must hold of a case beside its verdict.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct ExpectTable {
    /// The right ways to end. Absent: an answer.
    pub right: Vec<Right>,
    /// Codes a right error may have. Empty: any.
    pub codes: Vec<String>,
    /// `member -> [least, most]` requests, over the whole case.
    pub attempts: BTreeMap<String, [usize; 2]>,
    /// `member -> time` that must lie between an answer and the next request, and at most a tenth more.
    pub spacing: BTreeMap<String, String>,
    /// Longest time a request may take. Absent: its deadline.
    pub within: Option<String>,
    /// The member whose model an answer must name.
    pub answered_by: Option<String>,
    /// `[input, output]` tokens an answer must report.
    pub usage: Option<[u64; 2]>,
    /// What `x-backstay-cost` must say.
    pub cost: Option<f64>,
    /// Members on which the gateway must hang up.
    pub severed: Vec<String>,
}
