//! What was done to a reply, for people: in the lines of the reply, or a line for each edit.
//!
//! ```text
//! 3 | {'name': 'Bo', "tags": [1, True,]}
//!   |  ^    ^  ^  ^              ^^^^^
//!   = single_quotes ×4 (lossless) at /name: ' becomes "
//!   = python_literal (lossless) at /tags/1: True becomes true
//!   = trailing_comma (lossless) at /tags/1: , taken out
//! ```
//!
//! No colour is used, so none has to be turned off.

use std::fmt::Write as _;

use jsonmend::{Document, Edit, Outcome};

use super::Judged;
use super::report::{self, Wrong};

/// Most stretches of the reply that are shown; the rest is counted.
const MAX_STRETCHES: usize = 20;
/// Most characters of a line that are shown.
const MAX_SHOWN: usize = 100;
/// Characters kept before the first caret in a line that is cut.
const LEAD: usize = 20;
/// Most characters of a text that an edit took out or put in.
const MAX_QUOTED: usize = 40;
/// Most characters of a reading that is shown.
const MAX_READING: usize = 200;
/// Most edits that get a line each; 1,000 is the most that a document may have.
const MAX_LINES: usize = 1_000;

/// A line for each edit and each error; empty for a reply that is valid.
pub(super) fn lines(raw: &str, judged: &Judged) -> String {
    let mut out: Vec<String> = judged
        .outcome
        .document()
        .map_or_else(Vec::new, |document| document.edits(raw))
        .iter()
        .take(MAX_LINES)
        .map(|edit| {
            let what = format!("{} ({}){}", edit.kind, edit.class.name(), at(&edit.path));
            format!("{}:{}: {what}: {}", edit.line, edit.column, change(edit))
        })
        .collect();
    out.extend(verdict(judged));
    if let Outcome::Ambiguous(ambiguity) = &judged.outcome {
        out.extend(ambiguity.readings.iter().enumerate().map(|(at, reading)| {
            format!("reading {}: {}", at + 1, clipped(reading.text(raw).trim(), MAX_READING))
        }));
    }
    out.join("\n")
}

/// The edits in the lines of the reply, and the errors; empty for a reply that is valid.
pub(super) fn in_place(raw: &str, judged: &Judged) -> String {
    let mut out = Vec::new();
    if let Some(document) = judged.outcome.document() {
        out.extend(marked(raw, document));
        if document.edit_count() > 0 && judged.misfits.is_empty() {
            out.push(format!("{}, edits: {}", judged.name(), document.edit_count()));
        }
    }
    out.extend(verdict(judged));
    if let Outcome::Ambiguous(ambiguity) = &judged.outcome {
        for (at, reading) in ambiguity.readings.iter().enumerate() {
            let value = clipped(reading.text(raw).trim(), MAX_READING);
            out.push(format!("reading {}: {value}", at + 1));
            out.extend(marked(raw, reading));
        }
    }
    out.join("\n")
}

/// Why the reply is not used; nothing if it is.
fn verdict(judged: &Judged) -> Vec<String> {
    let told = |wrong: Wrong| {
        let Wrong { code, path, message } = wrong;
        format!("{}{}: {message} ({code})", judged.name(), at(&path))
    };
    report::errors(judged).into_iter().map(told).collect()
}

/// Stretches of the reply, each with its carets and what they mean.
fn marked(raw: &str, document: &Document) -> Vec<String> {
    let edits = document.edits(raw);
    let mut left = edits.as_slice();
    let mut out = Vec::new();
    while let Some(first) = left.first() {
        if out.len() == MAX_STRETCHES {
            out.push(format!("and {} more edits; --json lists all of them", left.len()));
            break;
        }
        let window = Window::around(raw, first);
        let is_inside = |edit: &&Edit| edit.line == first.line && window.shows(edit.column);
        let count = left.iter().take_while(is_inside).count().max(1);
        let (here, later) = left.split_at(count);
        out.push(stretch(&window, here));
        left = later;
    }
    out
}

/// The part of one line that is shown.
struct Window {
    line: usize,
    /// Characters of the line before it.
    from: usize,
    letters: Vec<char>,
    goes_on: bool,
}

impl Window {
    fn around(raw: &str, edit: &Edit) -> Self {
        let start = raw.get(..edit.span.start).and_then(|before| before.rfind('\n'));
        let rest = raw.get(start.map_or(0, |end| end + 1)..).unwrap_or_default();
        let line = rest.split('\n').next().unwrap_or_default();
        let column = edit.column - 1;
        let is_early = column < MAX_SHOWN - LEAD || line.chars().nth(MAX_SHOWN).is_none();
        let from = if is_early { 0 } else { column - LEAD };
        let mut letters: Vec<char> =
            line.chars().skip(from).take(MAX_SHOWN + 1).map(seen).collect();
        let goes_on = letters.len() > MAX_SHOWN;
        letters.truncate(MAX_SHOWN);
        Self { line: edit.line, from, letters, goes_on }
    }

    fn shows(&self, column: usize) -> bool {
        (self.from..self.from + MAX_SHOWN).contains(&(column - 1))
    }
}

/// A part of a line with the edits that begin in it.
fn stretch(window: &Window, edits: &[Edit]) -> String {
    let number = window.line.to_string();
    let gutter = number.len();
    let lead = if window.from > 0 { "…" } else { "" };
    let shift = usize::from(window.from > 0);
    let source: String = window.letters.iter().collect();
    let tail = if window.goes_on { "…" } else { "" };
    // One place more: something may be put in behind the last character.
    let mut carets = vec![' '; shift + window.letters.len() + 1];
    for edit in edits {
        let at = (edit.column - 1).saturating_sub(window.from) + shift;
        let width = edit.before.chars().take_while(|c| *c != '\n').count().max(1);
        carets.iter_mut().skip(at).take(width).for_each(|sign| *sign = '^');
    }
    let carets: String = carets.iter().collect();
    let mut out = format!("{number} | {lead}{}{tail}", source.trim_end());
    let _ = write!(out, "\n{:gutter$} | {}", "", carets.trim_end());
    for label in labels(edits) {
        let _ = write!(out, "\n{:gutter$} = {label}", "");
    }
    out
}

/// What was done, in words; the same thing done several times at one value is told once.
fn labels(edits: &[Edit]) -> Vec<String> {
    let mut told: Vec<(String, String, usize)> = Vec::new();
    for edit in edits {
        let rest = format!(" ({}){}: {}", edit.class.name(), at(&edit.path), change(edit));
        let kind = edit.kind.name();
        match told.iter_mut().find(|(name, text, _)| name == kind && *text == rest) {
            Some((.., count)) => *count += 1,
            None => told.push((kind.to_owned(), rest, 1)),
        }
    }
    let line = |(kind, rest, count): (String, String, usize)| match count {
        1 => format!("{kind}{rest}"),
        _ => format!("{kind} ×{count}{rest}"),
    };
    told.into_iter().map(line).collect()
}

fn change(edit: &Edit) -> String {
    let quoted = |text: &str| clipped(text, MAX_QUOTED);
    match (edit.before.is_empty(), edit.after.is_empty()) {
        (true, _) => format!("{} put in", quoted(&edit.after)),
        (false, true) => format!("{} taken out", quoted(&edit.before)),
        (false, false) => format!("{} becomes {}", quoted(&edit.before), quoted(&edit.after)),
    }
}

fn at(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!(" at {}", clipped(path, MAX_SHOWN)) }
}

/// The character itself, or a sign for one that would move the cursor rather than be seen.
fn seen(letter: char) -> char {
    let acts = letter.is_control()
        || matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}');
    match letter {
        '\t' => ' ',
        '\n' => '⏎',
        _ if acts => '\u{fffd}',
        letter => letter,
    }
}

/// At most `most` characters of a text, on one line and fit to print.
fn clipped(text: &str, most: usize) -> String {
    let mut out: String = text.chars().take(most).map(seen).collect();
    if text.chars().nth(most).is_some() {
        out.push('…');
    }
    out
}
