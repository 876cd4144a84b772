//! `backstay mend`: the JSON of a model's reply, mended, with every edit named, or a refusal.

mod kinds;
mod minify;
mod report;
mod view;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use backstay::validate::Schema;
use clap::{Args, ValueEnum};
use jsonmend::{Kind, KindSet, Mender, Outcome, Policy, Refusal, Status};

use crate::print;
use crate::source::{self, Unread};
use report::Wrong;

/// The exit code of bad arguments, as in BSD's sysexits.
pub(crate) const BAD_USE: u8 = 64;
/// The exit code of an input or a schema that cannot be read.
const UNREAD: u8 = 66;

const ABOUT: &str = "Mends the JSON of a model's reply and names every edit.

Strict JSON comes back as it is. Else the value is taken out of what stands around it (fences, prose,
think blocks), and damage that has one reading is mended. Nothing is invented: numbers keep their
digits, and what has two readings is refused, with both of them.";

const AFTER: &str = "Examples:
  backstay mend < reply.txt                         the value; a line for each edit on stderr
  backstay mend --schema triage.json reply.txt      the value must fit the schema too
  backstay mend --json reply.txt | jq .edits        what was changed, and where
  backstay mend --cut < half.txt                    the reply ran into its limit: what is there
  backstay mend --policy strict --allow fence FILE  a fence comes off, anything else is refused
  backstay mend --list                              every kind of edit, with an example

With --json, one line:
  {\"outcome\": \"valid|mended|partial|ambiguous|rejected\", \"value\": …, \"edits\": [{\"kind\", \"class\",
   \"span\": [FROM, TO], \"line\", \"column\", \"path\", \"before\", \"after\"}], \"errors\": [{\"code\", \"path\",
   \"message\"}], \"readings\": [{\"value\", \"edits\"}]}
`span` is in bytes of the input, `path` a JSON pointer. `value` is null if the outcome is ambiguous or
rejected; `readings` has something only if it is ambiguous.

Exit codes:
  0   valid or mended
  2   partial: the end was cut, or something was dropped; what is there is right
  3   ambiguous: two readings, or a value that is not in the text
  4   rejected: no JSON, not allowed by the policy, or it does not fit the schema
  64  bad arguments
  66  the input or the schema cannot be read";

#[derive(Debug, Args)]
#[command(about = "Mends the JSON of a model's reply and names every edit", long_about = ABOUT)]
#[command(after_help = AFTER)]
pub(crate) struct Mend {
    /// The reply; without one, or with `-`, standard input. At most 16 MiB
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// A JSON Schema that the value must fit; where a reply has two readings, it decides
    #[arg(long, value_name = "FILE")]
    schema: Option<PathBuf>,
    /// What is accepted
    #[arg(long, value_enum, default_value = "standard")]
    policy: PolicyName,
    /// Mends these kinds and no other; `--list` prints them
    #[arg(long, value_name = "KIND,…", value_delimiter = ',', value_parser = kind)]
    allow: Option<Vec<Kind>>,
    /// How the reply ended; an open bracket is a cut, or damage after a normal end
    #[arg(long, value_enum, default_value = "unknown")]
    status: StatusName,
    /// Short for `--status cut`
    #[arg(long, conflicts_with = "status")]
    cut: bool,
    /// Prints one JSON object instead of the value
    #[arg(long)]
    json: bool,
    /// How the edits are shown on standard error [auto: in place on a terminal, else a line each]
    #[arg(long, value_enum, default_value = "auto")]
    edits: EditsShown,
    /// Prints every kind of edit with an example and ends
    #[arg(long)]
    list: bool,
}

/// The policies of `jsonmend` by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PolicyName {
    /// Notation, and damage with one reading
    Strict,
    /// Also a reply that was cut, marked as partial
    Standard,
    /// Also decides by rule: the last of two keys, `NaN` as text, several documents as an array
    Lenient,
}

/// How a reply ended, by name.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum StatusName {
    /// Nobody said
    Unknown,
    /// The model ended by itself
    Stopped,
    /// It ran into a limit
    Cut,
}

/// How edits are shown on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum EditsShown {
    /// In place on a terminal, else a line each; nothing with --json
    Auto,
    /// In the lines of the reply
    Place,
    /// A line each
    Lines,
    /// Not at all
    Off,
}

/// What came of a reply, after the schema was asked too.
struct Judged {
    outcome: Outcome,
    /// Where the value breaks the schema. Not empty: it is rejected.
    misfits: Vec<Wrong>,
}

pub(crate) fn run(mend: &Mend) -> ExitCode {
    if mend.list {
        kinds::list();
        return ExitCode::SUCCESS;
    }
    match judged(mend) {
        Ok((raw, judged)) => {
            tell(mend, &raw, &judged);
            ExitCode::from(judged.exit_code())
        }
        Err(unread) => {
            print::talk(&format!("error: {unread}"));
            ExitCode::from(UNREAD)
        }
    }
}

/// The reply and what came of it.
fn judged(mend: &Mend) -> Result<(String, Judged), Unread> {
    let schema = mend.schema.as_deref().map(source::schema).transpose()?;
    let policy = mend.policy();
    let bytes = source::reply(mend.file.as_deref(), policy.limits.input)?;
    let rejected = |refusal| Judged { outcome: Outcome::Rejected(refusal), misfits: Vec::new() };
    if bytes.len() > policy.limits.input {
        return Ok((String::new(), rejected(Refusal::TooLarge)));
    }
    let raw = match String::from_utf8(bytes) {
        Ok(raw) => raw,
        Err(error) => {
            let at = error.utf8_error().valid_up_to();
            return Ok((String::new(), rejected(Refusal::NotUtf8(at))));
        }
    };
    let judged = judge(&raw, policy, mend.status(), schema.as_ref());
    Ok((raw, judged))
}

/// What comes of a reply: jsonmend's word, for which the schema chooses among readings, then the
/// schema's on the value.
fn judge(raw: &str, policy: Policy, status: Status, schema: Option<&Schema>) -> Judged {
    let outcome = match schema {
        Some(schema) => Mender::guided(policy, schema.outline()).mend(raw, status),
        None => Mender::new(policy).mend(raw, status),
    };
    let root = outcome.document().and_then(|document| document.root(raw));
    let misfits = match (schema, root) {
        (Some(schema), Some(root)) => report::misfits(schema, root),
        _ => Vec::new(),
    };
    Judged { outcome, misfits }
}

/// Prints the result, and what was done for it.
fn tell(mend: &Mend, raw: &str, judged: &Judged) {
    if mend.json {
        print::line(&report::json(raw, judged));
    } else if let Some(document) = judged.accepted() {
        print::line(document.text(raw).trim());
    }
    let shown = match mend.edits {
        EditsShown::Auto if mend.json => EditsShown::Off,
        EditsShown::Auto if std::io::stderr().is_terminal() => EditsShown::Place,
        EditsShown::Auto => EditsShown::Lines,
        asked => asked,
    };
    let talk = match shown {
        EditsShown::Place => view::in_place(raw, judged),
        EditsShown::Auto | EditsShown::Lines => view::lines(raw, judged),
        EditsShown::Off => return,
    };
    if !talk.is_empty() {
        print::talk(&talk);
    }
}

impl Mend {
    fn policy(&self) -> Policy {
        let policy = match self.policy {
            PolicyName::Strict => Policy::strict(),
            PolicyName::Standard => Policy::standard(),
            PolicyName::Lenient => Policy::lenient(),
        };
        match &self.allow {
            Some(kinds) => Policy { allow: KindSet::of(kinds), ..policy },
            None => policy,
        }
    }

    fn status(&self) -> Status {
        match self.status {
            _ if self.cut => Status::Cut,
            StatusName::Unknown => Status::Unknown,
            StatusName::Stopped => Status::Stopped,
            StatusName::Cut => Status::Cut,
        }
    }
}

impl Judged {
    /// The document, if it may be used.
    fn accepted(&self) -> Option<&jsonmend::Document> {
        self.outcome.document().filter(|_| self.misfits.is_empty())
    }

    /// The outcome's name, with the schema's word counted.
    fn name(&self) -> &'static str {
        if self.misfits.is_empty() { self.outcome.name() } else { "rejected" }
    }

    fn exit_code(&self) -> u8 {
        match self.outcome {
            _ if !self.misfits.is_empty() => 4,
            Outcome::Valid(_) | Outcome::Mended(_) => 0,
            Outcome::Partial(_) => 2,
            Outcome::Ambiguous(_) => 3,
            Outcome::Rejected(_) => 4,
        }
    }
}

/// A kind by its report name.
fn kind(name: &str) -> Result<Kind, String> {
    Kind::from_name(name.trim()).ok_or_else(|| "no kind of edit; `--list` prints them".into())
}

#[cfg(test)]
mod tests;
