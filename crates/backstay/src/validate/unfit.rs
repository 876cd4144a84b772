//! Why a reply may not be used, in words for a model and in parts for a program.

use std::borrow::Cow;

use backstay_decide::fault::Fault;

use super::Violation;
use crate::policy::OnFail;

/// The most errors told of one reply. 20: more does not help a model, and fills its window.
pub const MAX_ERRORS: usize = 20;

/// The most bytes of one error. 300: a path, a name and a short value.
pub const MAX_ERROR_BYTES: usize = 300;

/// The rule of a line that stands for problems not told.
const MORE: &str = "more";

/// A reply that may not be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// What it is called; decides what comes next.
    pub fault: Fault,
    /// The layer that refused it.
    pub layer: Layer,
    /// What is wrong, one line each: the messages of `problems`. Empty where the fault says it
    /// all. At most [`MAX_ERRORS`], each at most [`MAX_ERROR_BYTES`] and without control
    /// characters.
    pub errors: Vec<String>,
    /// The same in parts and in the same order.
    pub problems: Vec<Problem>,
    /// The errors of the schema with the place of each in the schema, in the order of `errors`,
    /// without its last line where that counts the rest. Empty at the other layers.
    pub violations: Vec<Violation>,
    /// Problems that are known and not told, with what the route wants done about each.
    pub(super) untold: Vec<Problem>,
    /// Whether there may be more still.
    pub(super) extent: Extent,
    /// The reply as far as it could be mended and aligned. `None`: it is no JSON, or tool calls.
    pub candidate: Option<Box<Candidate>>,
}

/// One thing that is wrong with a reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The JSON pointer to the value, the missing or the unexpected key. Empty: the whole reply.
    pub at: String,
    /// What is broken: a keyword of the schema, a rule's name, or a word such as `ambiguous`. The
    /// same `at` and `rule` again is the same error again, whatever the value.
    pub rule: Cow<'static, str>,
    /// The sentence for the model.
    pub message: String,
    /// What the route wants done about it.
    pub on_fail: OnFail,
}

/// How much of what is wrong with a reply is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it.
    Whole,
    /// Looking for it ended early: nothing that holds of each problem may be said.
    Cut,
}

/// A reply that is JSON and breaks its schema.
#[derive(Clone, PartialEq, Eq)]
pub struct Candidate {
    pub(super) text: String,
    pub(super) edits: Vec<super::Edit>,
}

/// One layer of checks, in the order they are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Layer {
    /// How the model finished.
    Completion,
    /// Whether the text is one JSON value.
    Syntax,
    /// Whether the value fits the schema.
    Schema,
    /// Whether the rules hold.
    Rules,
}

impl Layer {
    /// The layer's name as logs and metrics print it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Completion => "completion",
            Self::Syntax => "syntax",
            Self::Schema => "schema",
            Self::Rules => "rules",
        }
    }
}

impl Problem {
    /// A problem that the model is asked about again.
    pub fn new(
        at: impl Into<String>,
        rule: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Self {
        let (at, rule, message) = (at.into(), rule.into(), message.into());
        Self { at, rule, message, on_fail: OnFail::Reask }
    }

    /// The line for problems that are not told.
    pub(super) fn count(untold: usize) -> Self {
        Self::new("", MORE, format!("and {untold} more errors"))
    }

    /// Whether `other` is the same error, perhaps about another value.
    pub fn same(&self, other: &Self) -> bool {
        self.at == other.at && self.rule == other.rule
    }
}

impl Unfit {
    /// A fault of a layer with its errors, which are about the whole reply; cut down to what may
    /// be told.
    pub fn new(fault: Fault, layer: Layer, errors: Vec<String>) -> Self {
        let rule = match layer {
            Layer::Completion => fault.code(),
            Layer::Syntax | Layer::Schema | Layer::Rules => layer.name(),
        };
        let problems = errors.into_iter().map(|error| Problem::new("", rule, error));
        Self::of(fault, layer, problems.collect())
    }

    /// A fault of a layer with its problems, cut down to what may be told.
    pub fn of(fault: Fault, layer: Layer, mut problems: Vec<Problem>) -> Self {
        let mut untold = Vec::new();
        if problems.len() > MAX_ERRORS {
            untold = problems.split_off(MAX_ERRORS - 1);
            problems.push(Problem::count(untold.len()));
        }
        for problem in &mut problems {
            problem.message = clipped(&problem.message, MAX_ERROR_BYTES);
        }
        let errors = problems.iter().map(|problem| problem.message.clone()).collect();
        let (violations, extent) = (Vec::new(), Extent::Whole);
        Self { fault, layer, errors, problems, violations, untold, extent, candidate: None }
    }

    /// The same where what is wrong is not all known, with a last line that says so.
    pub(super) fn and_cut(self, line: &str) -> Self {
        let mut problems = self.problems;
        problems.retain(|problem| problem.rule != MORE);
        let mut untold = problems.split_off(problems.len().min(MAX_ERRORS - 1));
        untold.extend(self.untold);
        problems.push(Problem::new("", MORE, line));
        let told = Self::of(self.fault, self.layer, problems);
        let violations = self.violations.into_iter().take(MAX_ERRORS - 1).collect();
        Self { violations, untold, extent: Extent::Cut, ..told }
    }

    /// Each problem that is known; the line that counts the rest is none.
    pub(super) fn each(&self) -> impl Iterator<Item = &Problem> {
        self.problems.iter().filter(|problem| problem.rule != MORE).chain(&self.untold)
    }

    /// The same, to note what the route wants done about each.
    pub(super) fn each_mut(&mut self) -> impl Iterator<Item = &mut Problem> {
        self.problems.iter_mut().chain(&mut self.untold).filter(|problem| problem.rule != MORE)
    }

    /// A reply without any answer in it.
    pub fn empty() -> Self {
        Self::new(Fault::Empty, Layer::Completion, vec!["no answer in the reply".to_owned()])
    }

    /// Whether the model may be asked again. Not where the route rejects one of the problems.
    pub fn is_reaskable(&self) -> bool {
        self.each().all(|problem| problem.on_fail != OnFail::Reject)
    }

    /// Whether it has the same problems as `other`, perhaps about other values. False if neither
    /// has any.
    pub fn same_errors(&self, other: &Self) -> bool {
        let met = |one: &[Problem], two: &[Problem]| {
            one.iter().all(|problem| two.iter().any(|other| problem.same(other)))
        };
        self.fault == other.fault
            && !self.problems.is_empty()
            && met(&self.problems, &other.problems)
            && met(&other.problems, &self.problems)
    }
}

impl Candidate {
    /// The reply as far as it could be mended and aligned.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// Prints lengths: a reply is not for logs.
impl std::fmt::Debug for Candidate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Candidate({} bytes, {} edits)", self.text.len(), self.edits.len())
    }
}

/// `text` on one line and in at most `most` bytes, at least 3; an ellipsis stands for what is cut.
pub(super) fn clipped(text: &str, most: usize) -> String {
    let mut line = String::with_capacity(text.len().min(most));
    for letter in text.chars() {
        let letter = if letter.is_control() { ' ' } else { letter };
        if line.len() + letter.len_utf8() > most {
            while line.len() + '…'.len_utf8() > most {
                line.pop();
            }
            line.push('…');
            break;
        }
        line.push(letter);
    }
    line
}
