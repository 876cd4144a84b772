//! A problem in a config file, with its place, printed so that the fault can be seen at a glance.
//!
//! ```text
//! error: unknown key `deadlin`
//!  --> backstay.toml:12:1
//!    |
//! 12 | deadlin = "30s"
//!    | ^^^^^^^ did you mean `deadline`?
//!    = help: the keys here are `tiers`, `deadline`, …
//! ```

use std::fmt;
use std::ops::Range;

/// What is wrong with a config, or only doubtful in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Whether the config can be used in spite of it.
    pub severity: Severity,
    /// A stable word for programs, such as `unknown-key`.
    pub code: &'static str,
    /// What is wrong, in one sentence.
    pub message: String,
    /// Where, in bytes of the file. `None`: nowhere in particular, or not in the file.
    pub span: Option<Range<usize>>,
    /// The same, for people.
    pub place: Option<Place>,
    /// What the caret points at, in a few words. May be empty.
    pub label: String,
    /// What to do. `None`: the message says it.
    pub help: Option<String>,
}

/// Whether a config with this problem can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It cannot.
    Error,
    /// It can, but something in it is doubtful.
    Warning,
}

/// A stretch of one line of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file, as it was named to the loader.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column of its first character, from 1.
    pub column: usize,
    /// The line's text, fit to print: secrets and control characters replaced, a long line cut.
    pub source: String,
    /// Characters of `source` before the stretch.
    pub indent: usize,
    /// Characters in the stretch; at least 1.
    pub width: usize,
}

/// Most characters of a sentence; the longest of ours, a list of keys, has 300.
const MAX_SENTENCE: usize = 600;
/// Most characters of a line that are shown.
const MAX_SHOWN: usize = 110;
/// Characters kept before the caret in a line that is cut.
const LEAD: usize = 30;

impl Problem {
    /// An error known by `code`.
    pub(super) fn error(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, &message.into())
    }

    /// A warning known by `code`.
    pub(super) fn warning(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, &message.into())
    }

    fn new(severity: Severity, code: &'static str, message: &str) -> Self {
        let message = sober(message);
        Self { severity, code, message, span: None, place: None, label: String::new(), help: None }
    }

    /// Puts it at `span`; its place is looked up when it is told, see `Tree::told`.
    pub(super) fn at(self, span: Range<usize>) -> Self {
        Self { span: Some(span), ..self }
    }

    /// Says where that is.
    pub(super) fn placed(self, place: Place) -> Self {
        Self { place: Some(place), ..self }
    }

    /// Says beside the caret what is seen there.
    pub(super) fn label(self, label: impl Into<String>) -> Self {
        Self { label: sober(&label.into()), ..self }
    }

    /// Says what to do.
    pub(super) fn help(self, help: impl Into<String>) -> Self {
        Self { help: Some(sober(&help.into())), ..self }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.severity, self.message)?;
        let mut gutter = 0;
        if let Some(place) = &self.place {
            let number = place.line.to_string();
            gutter = number.len();
            write!(f, "\n{:gutter$}--> {}:{}:{}", "", place.file, place.line, place.column)?;
            write!(f, "\n{:gutter$} |\n{number} | {}", "", place.source)?;
            let carets = "^".repeat(place.width);
            let marked = format!("{:indent$}{carets} {}", "", self.label, indent = place.indent);
            write!(f, "\n{:gutter$} | {}", "", marked.trim_end())?;
        }
        if let Some(help) = &self.help {
            write!(f, "\n{:gutter$} = help: {help}", "")?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

impl Place {
    /// The place of `span` (bytes) in `text`, which is named `file`; bytes of a line that lie in
    /// `veiled` are shown as `*`. A span over several lines is cut to its first.
    pub fn new(file: &str, text: &str, span: Range<usize>, veiled: &[Range<usize>]) -> Self {
        let start = floor(text, span.start);
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let line = before.bytes().filter(|&b| b == b'\n').count() + 1;
        let rest = text.get(line_start..).unwrap_or_default();
        let whole = rest.split('\n').next().unwrap_or_default();
        let whole = whole.strip_suffix('\r').unwrap_or(whole);
        let mut shown: Vec<char> = Vec::new();
        let (mut column, mut width) = (0, 0);
        for (at, c) in whole.char_indices() {
            let at = line_start + at;
            column += usize::from(at < start);
            width += usize::from(at >= start && at < span.end);
            let hidden = veiled.iter().any(|range| range.contains(&at));
            shown.push(match c {
                _ if hidden => '*',
                '\t' => ' ',
                c => visible(c),
            });
        }
        let (source, indent) = cut(&shown, column);
        let room = source.chars().count().saturating_sub(indent).max(1);
        let width = width.clamp(1, room);
        Self { file: file.into(), line, column: column + 1, source, indent, width }
    }
}

/// A sentence fit to print: names from the file may be long and hold what moves a cursor.
fn sober(text: &str) -> String {
    let mut sober: String = text.chars().take(MAX_SENTENCE).map(visible).collect();
    if text.chars().nth(MAX_SENTENCE).is_some() {
        sober.push('…');
    }
    sober
}

/// The character itself, or a sign for one that would do something rather than be seen.
fn visible(c: char) -> char {
    // The last two ranges turn the direction of writing.
    let acts = c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if acts { '\u{fffd}' } else { c }
}

/// The nearest start of a character at or before `at`.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// A line's part around `column`, and where `column` is in it.
fn cut(line: &[char], column: usize) -> (String, usize) {
    if line.len() <= MAX_SHOWN {
        return (line.iter().collect(), column);
    }
    let from = if column < MAX_SHOWN - LEAD { 0 } else { column - LEAD };
    let to = line.len().min(from + MAX_SHOWN);
    let mut source = String::new();
    let mut indent = column - from;
    if from > 0 {
        source.push('…');
        indent += 1;
    }
    source.extend(line.get(from..to).unwrap_or_default());
    if to < line.len() {
        source.push('…');
    }
    (source, indent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caret_stands_under_the_token() {
        let text = "a = 1\r\n\tdé = \"30s\"\r\n";
        let place = Place::new("f.toml", text, 8..11, &[]);
        let problem = Problem::error("x", "m").placed(place).label("here").help("do");
        assert_eq!(
            problem.to_string(),
            "error: m\n --> f.toml:2:2\n  |\n2 |  dé = \"30s\"\n  |  ^^ here\n  = help: do"
        );
    }

    #[test]
    fn a_long_line_is_cut_around_the_caret() {
        let text = "x".repeat(1_000_000);
        let place = Place::new("f", &text, 500_000..500_004, &[]);
        assert_eq!(place.column, 500_001);
        assert_eq!((place.indent, place.width), (LEAD + 1, 4));
        assert!(place.source.chars().count() <= MAX_SHOWN + 2);
    }

    #[test]
    fn a_span_past_the_end_points_behind_the_last_character() {
        let place = Place::new("f", "ab", 2..9, &[]);
        assert_eq!((place.line, place.column, place.indent, place.width), (1, 3, 2, 1));
    }

    #[test]
    fn a_veiled_stretch_is_shown_as_stars() {
        let place = Place::new("f", "k = \"sk-1\" # ok", 4..10, std::slice::from_ref(&(5..9)));
        assert_eq!(place.source, "k = \"****\" # ok");
    }
}
