//! What came of a reply as one JSON object, for programs.

use backstay::validate::Schema;
use jsonmend::{Document, Edit, Node, Outcome, Policy, Refusal};
use serde::Serialize;
use serde_json::value::RawValue;

use super::Judged;
use super::minify::minified;

/// One reason why a reply is not used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Wrong {
    /// A stable word: a refusal's name, what is in doubt, or `schema`.
    pub(super) code: &'static str,
    /// JSON pointer to the value it is about; empty for the whole.
    pub(super) path: String,
    /// What is wrong, in one sentence.
    pub(super) message: String,
}

#[derive(Serialize)]
struct Report {
    outcome: &'static str,
    value: Option<Box<RawValue>>,
    edits: Vec<EditLine>,
    errors: Vec<Wrong>,
    readings: Vec<Reading>,
}

#[derive(Serialize)]
struct Reading {
    value: Option<Box<RawValue>>,
    edits: Vec<EditLine>,
}

#[derive(Serialize)]
struct EditLine {
    kind: &'static str,
    class: &'static str,
    span: [usize; 2],
    line: usize,
    column: usize,
    path: String,
    before: String,
    after: String,
}

/// The report on one line.
pub(super) fn json(raw: &str, judged: &Judged) -> String {
    let readings = match &judged.outcome {
        Outcome::Ambiguous(ambiguity) => ambiguity.readings.as_slice(),
        Outcome::Valid(_) | Outcome::Mended(_) | Outcome::Partial(_) | Outcome::Rejected(_) => &[],
    };
    let report = Report {
        outcome: judged.name(),
        value: judged.accepted().and_then(|document| value(raw, document)),
        edits: judged.outcome.document().map_or_else(Vec::new, |document| edits(raw, document)),
        errors: errors(judged),
        readings: readings
            .iter()
            .map(|reading| Reading { value: value(raw, reading), edits: edits(raw, reading) })
            .collect(),
    };
    serde_json::to_string(&report).unwrap_or_default()
}

/// The document's own text, so that no digit is lost.
fn value(raw: &str, document: &Document) -> Option<Box<RawValue>> {
    RawValue::from_string(minified(document.text(raw))).ok()
}

fn edits(raw: &str, document: &Document) -> Vec<EditLine> {
    document.edits(raw).into_iter().map(EditLine::from).collect()
}

impl From<Edit> for EditLine {
    fn from(edit: Edit) -> Self {
        Self {
            kind: edit.kind.name(),
            class: edit.class.name(),
            span: [edit.span.start, edit.span.end],
            line: edit.line,
            column: edit.column,
            path: edit.path,
            before: edit.before,
            after: edit.after,
        }
    }
}

/// Why the reply is not used; empty if it is.
pub(super) fn errors(judged: &Judged) -> Vec<Wrong> {
    let whole = |code, message: String| vec![Wrong { code, path: String::new(), message }];
    match &judged.outcome {
        Outcome::Valid(_) | Outcome::Mended(_) | Outcome::Partial(_) => judged.misfits.clone(),
        Outcome::Ambiguous(ambiguity) => {
            let doubt = doubt(ambiguity.reason);
            let place = ambiguity.spot.as_ref().map_or_else(String::new, |spot| {
                format!(", at line {}, column {}", spot.line, spot.column)
            });
            let more = match ambiguity.more {
                0 => String::new(),
                more => format!("; {more} more are not shown"),
            };
            let path = ambiguity.spot.as_ref().map(|spot| spot.path.clone()).unwrap_or_default();
            let message = format!("{doubt}{place}{more}");
            vec![Wrong { code: ambiguity.reason.name(), path, message }]
        }
        Outcome::Rejected(refusal) => whole(refusal.name(), refused(refusal)),
    }
}

fn doubt(reason: jsonmend::Doubtful) -> &'static str {
    use jsonmend::Doubtful;
    match reason {
        Doubtful::Readings => "the damage can be explained in two ways, with two values",
        Doubtful::Candidates => "there is more than one document",
        Doubtful::DuplicateKey => "a key stands twice in an object, with two values",
        Doubtful::Value => {
            "something that stands for a value could be one of two, or is none in JSON"
        }
        Doubtful::Rest => "text beside the document looks like a part of it",
        _ => "it has more than one reading",
    }
}

fn refused(refusal: &Refusal) -> String {
    match refusal {
        Refusal::TooLarge => {
            format!("{refusal}: {} bytes are read", Policy::standard().limits.input)
        }
        other => other.to_string(),
    }
}

/// Where the value breaks the schema; empty if it fits.
pub(super) fn misfits(schema: &Schema, root: Node<'_>) -> Vec<Wrong> {
    let Err(unfit) = schema.check_node(root) else { return Vec::new() };
    let wrong = |path, message| Wrong { code: "schema", path, message };
    let untold = unfit.errors.into_iter().skip(unfit.violations.len());
    let told = unfit.violations.into_iter();
    told.map(|one| wrong(one.pointer.unwrap_or_default(), one.message))
        .chain(untold.map(|message| wrong(String::new(), message)))
        .collect()
}
