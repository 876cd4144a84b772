//! Reads `backstay.toml` into values that cannot be wrong, or tells everything that is wrong in it.
//!
//! ```text
//! text ─tree─▶ places ─file─▶ tables as written ─build─▶ Settings { server, keys, policy, warnings }
//! ```
//!
//! Nothing outside the file is read but what [`Outside`] gives, the schemas the file names, and
//! the file itself.

mod alert_words;
mod breaker_words;
mod build;
mod environment;
mod file;
mod guard_words;
mod limit_words;
mod mend_words;
mod nearest;
mod problem;
mod queue_words;
mod return_words;
mod schema;
mod stream_words;
mod tree;
mod veil;
mod wording;
mod words;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use backstay::admit::spend::Allowance;
use backstay::contract::Reach;
use backstay::policy::{Policy, RuleText, Secret};
use jiff::civil::Date;
use serde_json::Value;

pub use environment::from_environment;
pub use problem::{Place, Problem, Severity};
pub use schema::json_schema;

use build::Loading;
use file::File;
use tree::Tree;

/// The largest config file, in bytes: a thousand routes fit, a file given by mistake does not.
pub const MAX_FILE: u64 = 1 << 20;

/// Everything a config says.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The gateway itself.
    pub server: Server,
    /// Callers, by name in rising order. Empty: anybody may call (on loopback only).
    pub keys: Vec<CallerKey>,
    /// What opens the admin API. `None`: nothing does. As a token of `keys`, and none of them.
    pub admin_key: Option<Secret>,
    /// What the engine goes by.
    pub policy: Policy,
    /// The file of each route's schema, by the route's name.
    pub schema_files: BTreeMap<String, PathBuf>,
    /// What is doubtful but can be used, in the order of the file.
    pub warnings: Vec<Problem>,
}

impl Settings {
    /// What each key may spend in a day, by its name.
    pub fn allowances(&self) -> HashMap<String, Allowance> {
        self.keys.iter().map(|key| (key.name.clone(), key.allowance)).collect()
    }
}

/// The gateway's own socket, limits and log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The largest request body, in bytes. At least 1,024.
    pub max_body_bytes: u64,
    /// Most connections at once. At least 1.
    pub max_connections: u32,
    /// Most headers in a request. 1 to 1,000.
    pub max_headers: u32,
    /// The largest head of a request, in bytes. 8,192 to 1 MiB.
    pub max_header_bytes: u32,
    /// How long a connection may take to send a whole head, from its first byte; a new connection
    /// from its opening. At least 100 ms.
    pub header_timeout: Duration,
    /// How long calls in flight may go on after a signal to stop. 0 cuts them off at once.
    pub drain: Duration,
    /// Where calls are written down.
    pub call_log: CallLog,
    /// How the work is spread over threads.
    pub runtime: Runtime,
}

/// How the gateway's work is spread over threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// One runtime for all cores; idle threads take work from busy ones.
    Shared,
    /// One runtime a core, with connections to providers of its own.
    PerCore,
}

/// Where calls are written down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallLog {
    /// In this file, made when it is not there.
    Sqlite(PathBuf),
    /// In memory, the newest calls only.
    Memory,
    /// Nowhere.
    Off,
}

/// A caller that may use the gateway.
#[derive(Clone, Debug)]
pub struct CallerKey {
    /// Its name in config.
    pub name: String,
    /// What it must send. Never empty, visible ASCII.
    pub token: Secret,
    /// Whose calls these are, in the log and the metrics.
    pub tenant: String,
    /// The class of its calls where they name none. `None`: the first.
    pub class: Option<String>,
    /// The classes it may name. Empty: all.
    pub classes: Vec<String>,
    /// What it may spend in a day.
    pub allowance: Allowance,
    /// Whether it may ask for faults in its own calls.
    pub dev: bool,
    /// What it opens.
    pub reach: Reach,
}

/// What a config needs to know that is not in it.
#[derive(Clone, Copy)]
pub struct Outside<'a> {
    /// The value of an environment variable, if it is set.
    pub env: &'a dyn Fn(&str) -> Option<String>,
    /// The day, for `retires`.
    pub today: Date,
    /// What the engine says about schemas and rules.
    pub checks: Checks<'a>,
}

/// Judges parts of a config that only the engine understands. An `Err` is one sentence that says
/// why not, in lower case.
#[derive(Clone, Copy)]
pub struct Checks<'a> {
    /// Whether a schema compiles.
    pub schema: &'a dyn Fn(&Value) -> Result<(), String>,
    /// Whether a rule compiles.
    pub rule: &'a dyn Fn(&RuleText) -> Result<(), String>,
    /// Whether a value (second) fits a schema (first).
    pub fits: &'a dyn Fn(&Value, &Value) -> Result<(), String>,
    /// Whether the template of a re-ask can be used.
    pub template: &'a dyn Fn(&str) -> Result<(), String>,
}

impl fmt::Debug for Outside<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").field("today", &self.today).finish_non_exhaustive()
    }
}

impl fmt::Debug for Checks<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checks").finish_non_exhaustive()
    }
}

/// Reads the config file at `path`.
///
/// # Errors
/// Everything that is wrong with it (at least one error) and everything doubtful, in the order of
/// the file. A file that cannot be read is one problem with the code `unreadable`.
pub fn load(path: &Path, outside: &Outside<'_>) -> Result<Settings, Vec<Problem>> {
    let name = path.display().to_string();
    let unreadable = |why: &str| Problem::error("unreadable", format!("cannot read {name}: {why}"));
    let bytes = match read_at_most(path, MAX_FILE) {
        Ok(bytes) => bytes,
        Err(error) => {
            let help = "name a file with `-c FILE`, or set OPENAI_API_KEY or ANTHROPIC_API_KEY \
                        and run without one";
            return Err(vec![unreadable(&error.to_string()).help(help)]);
        }
    };
    let text = String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        vec![
            Problem::error("not-utf8", format!("{name} is not UTF-8"))
                .placed(Place::new(&name, &text, good..good + 1, &veil::of_text(&text)))
                .label("the first byte that is not")
                .help("save the file as UTF-8"),
        ]
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    from_text(&text, &name, folder, outside)
}

/// Reads a config from `text`, which is named `name` in problems. Paths in it are relative to
/// `folder`.
///
/// # Errors
/// As [`load`].
pub fn from_text(
    text: &str,
    name: &str,
    folder: &Path,
    outside: &Outside<'_>,
) -> Result<Settings, Vec<Problem>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() as u64 > MAX_FILE {
        let message = format!("{name} is larger than {MAX_FILE} bytes");
        return Err(vec![Problem::error("unreadable", message)]);
    }
    let tree = Tree::parse(name, text)?;
    let mut problems = Vec::new();
    let Some(file) = tree.read::<File>(&mut problems) else {
        return Err(tree.told(problems));
    };
    Loading::new(&tree, folder, *outside, problems).settings(&file)
}

/// The bytes of a file no larger than `most`.
fn read_at_most(path: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let file = std::fs::File::open(path)?;
    // A directory opens on some systems; a pipe would be waited for without end.
    if !file.metadata()?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(std::io::Error::other(format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}
