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
    has_spoken: bool,
    has_refused: bool,
}

impl Ends {
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

    /// How many choices there are.
    pub(super) fn count(&self) -> usize {
        1 + self.others.len()
    }

    /// How the stream ended: as the worst of its choices.
    ///
    /// # Errors
    /// Some choice has no finish, or it is one of several and said nothing.
    pub(super) fn whole(&self) -> Result<Ended, Failure> {
        let mut worst = self.first.whole()?;
        if self.others.is_empty() {
            return Ok(worst);
        }
        let others = self.others.iter().map(|(place, end)| (*place, end));
        for (place, end) in std::iter::once((0, &self.first)).chain(others) {
            let found = end.whole()?;
            // The gate saw to it that one of them has content.
            if found.finish == Finish::Complete && !end.has_spoken {
                let note = format!("choice {place} finished without any content");
                return Err(Failure::new(Fault::Empty, note));
            }
            if rank(found.outcome) > rank(worst.outcome) {
                worst = found;
            }
        }
        Ok(worst)
    }
}

impl End {
    fn note(&mut self, delta: &Delta) -> Result<(), Failure> {
        self.has_spoken |= delta.is_content();
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
        let outcome = match (finish, self.has_refused) {
            (_, true) => Outcome::Refused,
            (Finish::Truncated | Finish::ContextExceeded, false) => Outcome::Truncated,
            (Finish::Paused, false) => Outcome::Paused,
            (_, false) => Outcome::Answered,
        };
        Ok(Ended { outcome, finish })
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
