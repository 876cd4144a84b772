//! How each choice of a stream ends: the stream is whole when all of them are.

use std::collections::BTreeMap;

use backstay_decide::fault::Fault;
use backstay_wire::{Delta, Finish};

use crate::attempt::Failure;
use crate::record::Outcome;

/// What all choices have said so far of their ends.
#[derive(Debug, Default)]
pub(super) struct Ends {
    first: End,
    /// Choice -> its end, for those after the first.
    others: BTreeMap<u32, End>,
}

/// How a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ended {
    pub(super) outcome: Outcome,
    /// What says so.
    pub(super) finish: Finish,
}

/// What one choice has said.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    finish: Option<Finish>,
    /// Said anything that reasoning is not.
    has_answered: bool,
    has_refused: bool,
}

impl Ends {
    /// Of a reply that goes on with what was said, which was an answer or none.
    pub(super) fn going_on(has_answered: bool) -> Self {
        Self { first: End { has_answered, ..End::default() }, ..Self::default() }
    }

    /// Takes note of `delta`.
    ///
    /// # Errors
    /// A choice finished in a word that is not known.
    pub(super) fn note(&mut self, delta: &Delta) -> Result<(), Failure> {
        match delta {
            Delta::OtherChoice { choice, delta } => {
                self.others.entry(*choice).or_default().note(delta)
            }
            delta => self.first.note(delta),
        }
    }

    /// Whether the first choice has finished.
    pub(super) fn has_finished(&self) -> bool {
        self.first.finish.is_some()
    }

    /// Whether all choices that began have finished, and they are at least so many.
    pub(super) fn have_finished(&self, choices: usize) -> bool {
        let others = self.others.values().all(|end| end.finish.is_some());
        self.count() >= choices && self.has_finished() && others
    }

    /// How many choices there are.
    pub(super) fn count(&self) -> usize {
        1 + self.others.len()
    }

    /// How the stream ended: as the worst of its choices.
    ///
    /// # Errors
    /// Some choice has no finish, or no answer.
    pub(super) fn whole(&self) -> Result<Ended, Failure> {
        let mut worst = self.first.whole()?;
        for end in self.others.values() {
            let found = end.whole()?;
            if rank(found.outcome) > rank(worst.outcome) {
                worst = found;
            }
        }
        Ok(worst)
    }
}

impl End {
    fn note(&mut self, delta: &Delta) -> Result<(), Failure> {
        self.has_answered |= is_answer(delta);
        match delta {
            Delta::Finish { finish: Finish::Unknown, word } => {
                let word = word.as_deref().unwrap_or("none");
                let note = format!("finish reason `{word}` is not known");
                Err(Failure::new(Fault::UnknownFinish, note))
            }
            Delta::Finish { finish, .. } => {
                self.finish = Some(*finish);
                self.has_refused |= matches!(finish, Finish::Refused | Finish::ContentFiltered);
                Ok(())
            }
            Delta::Refusal(_) => {
                self.has_refused = true;
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn whole(self) -> Result<Ended, Failure> {
        let Some(finish) = self.finish else {
            let note = "the stream ended without a finish reason";
            return Err(Failure::new(Fault::StreamCut, note));
        };
        // The gate lets reasoning pass, and any choice for the others.
        let is_done = matches!(finish, Finish::Complete | Finish::ToolUse);
        if is_done && !self.has_answered && !self.has_refused {
            let note = "a choice finished without an answer";
            return Err(Failure::new(Fault::Empty, note));
        }
        let outcome = match (finish, self.has_refused) {
            (_, true) => Outcome::Refused,
            (Finish::Truncated | Finish::ContextExceeded, false) => Outcome::Truncated,
            (Finish::Paused, false) => Outcome::Paused,
            (_, false) => Outcome::Answered,
        };
        Ok(Ended { outcome, finish })
    }
}

/// Whether `delta` is of an answer, as a whole reply is judged: blanks and reasoning are none.
fn is_answer(delta: &Delta) -> bool {
    match delta {
        Delta::Text(text) => !text.trim().is_empty(),
        Delta::Reasoning(_) => false,
        Delta::Untold(_) => true,
        delta => delta.is_content(),
    }
}

/// The larger, the worse.
fn rank(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Refused => 3,
        Outcome::Truncated => 2,
        Outcome::Paused => 1,
        _ => 0,
    }
}
